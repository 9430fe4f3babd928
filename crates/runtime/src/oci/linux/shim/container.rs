//! A container as its shim sees it: a process, its streams and its log.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use camino::Utf8Path;
use jiff::Timestamp;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::WaitStatus;
use nix::unistd::Pid;
use rustix::termios::Winsize;

use super::super::cgroup::processes_below;
use super::super::protocol::Start;
use super::super::records::{self, CONTAINERS, ENDED, STARTED, StartRecord};
use crate::Ended;
use crate::logs::{LogWriter, Stream};

const CHUNK: usize = 64 * 1024;
const MOST_INPUT: usize = 256 * 1024;
/// At the end what is left in the pipes is written down; a pipe holds no more than a megabyte.
const MOST_AT_THE_END: usize = 1024 * 1024;
/// A program that starts others faster than they are killed is stopped by the limit of its processes.
const MOST_LOOKS: usize = 20;

pub(super) struct Container {
    pub(super) start: Start,
    /// There while it runs.
    pub(super) pid: Option<i32>,
    started: Option<Timestamp>,
    pub(super) output: Option<File>,
    pub(super) errors: Option<File>,
    pub(super) input: Option<File>,
    input_pending: VecDeque<u8>,
    close_input: bool,
    log: LogWriter,
    memory_events_before: u64,
}

impl Container {
    pub(super) fn new(start: Start) -> io::Result<Self> {
        Ok(Self {
            log: LogWriter::open(Utf8Path::new(&start.log), Timestamp::now)?,
            start,
            pid: None,
            started: None,
            output: None,
            errors: None,
            input: None,
            input_pending: VecDeque::new(),
            close_input: false,
            memory_events_before: 0,
        })
    }

    /// Takes the terminal that the container's program has: one descriptor for both directions.
    pub(super) fn take_terminal(&mut self, terminal: OwnedFd) -> io::Result<()> {
        rustix::io::ioctl_fionbio(&terminal, true)?;
        let terminal = File::from(terminal);
        if self.start.stdin {
            self.input = Some(terminal.try_clone()?);
        }
        self.output = Some(terminal);
        Ok(())
    }

    pub(super) fn resize(&self, columns: u16, rows: u16) -> io::Result<()> {
        let Some(terminal) = self.output.as_ref().filter(|_| self.start.terminal) else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the container has no terminal",
            ));
        };
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        Ok(rustix::termios::tcsetwinsize(terminal, size)?)
    }

    pub(super) fn is_running(&self) -> bool {
        self.pid.is_some()
    }

    pub(super) fn began(&mut self, pid: i32) -> Result<(), String> {
        let now = Timestamp::now();
        self.pid = Some(pid);
        self.started = Some(now);
        let record = StartRecord { pid, started: now };
        let path = Utf8Path::new(CONTAINERS)
            .join(&self.start.container)
            .join(STARTED);
        records::write(&path, &record).map_err(|error| error.to_string())
    }

    pub(super) fn reopen_log(&mut self) -> io::Result<()> {
        self.log.reopen()
    }

    /// Reads what a stream has and logs it. Empty: there is nothing now. `None`: it ended.
    pub(super) fn read(&mut self, stream: Stream) -> Option<Vec<u8>> {
        let source = match stream {
            Stream::Stdout => &mut self.output,
            Stream::Stderr => &mut self.errors,
        };
        let mut chunk = vec![0; CHUNK];
        let read = source
            .as_mut()
            .map_or(Ok(0), |source| source.read(&mut chunk));
        match read {
            Ok(count) if count > 0 => {
                chunk.truncate(count);
                if let Err(error) = self.log.write(stream, &chunk) {
                    // A full disk must not stop the program.
                    super::complain(&format!(
                        "the log {} cannot be written: {error}",
                        self.start.log
                    ));
                }
                Some(chunk)
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                Some(Vec::new())
            }
            // A terminal whose program is gone says EIO.
            Ok(_) | Err(_) => {
                *source = None;
                None
            }
        }
    }

    pub(super) fn takes_input(&self) -> bool {
        self.input.is_some() && self.input_pending.len() < MOST_INPUT
    }

    pub(super) fn has_input_pending(&self) -> bool {
        self.input.is_some() && !self.input_pending.is_empty()
    }

    pub(super) fn push_input(&mut self, bytes: &[u8]) {
        if self.input.is_some() {
            self.input_pending.extend(bytes);
            self.flush_input();
        }
    }

    /// Ends the input once all of it was taken.
    pub(super) fn end_input(&mut self) {
        self.close_input = true;
        self.flush_input();
    }

    pub(super) fn flush_input(&mut self) {
        while let (Some(input), false) = (&mut self.input, self.input_pending.is_empty()) {
            let (front, _) = self.input_pending.as_slices();
            match input.write(front) {
                Ok(count) => drop(self.input_pending.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The program does not read any more.
                Err(_) => {
                    self.input = None;
                    self.input_pending.clear();
                }
            }
        }
        if self.close_input && self.input_pending.is_empty() {
            self.input = None;
        }
    }

    pub(super) fn remember_memory_events(&mut self) {
        self.memory_events_before = self.memory_events();
    }

    fn memory_events(&self) -> u64 {
        let Some(path) = &self.start.memory_events else {
            return 0;
        };
        let text = fs_err::read_to_string(path).unwrap_or_default();
        text.lines()
            .find_map(|line| line.strip_prefix("oom_kill "))
            .and_then(|count| count.trim().parse().ok())
            .unwrap_or(0)
    }

    /// Kills what is left of the container. Whoever is born while we look is found by the next look.
    pub(super) fn kill_rest(&self) {
        for _ in 0..MOST_LOOKS {
            let found = self.processes();
            if found.is_empty() {
                return;
            }
            for pid in found {
                // Whoever is gone already needs no signal.
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
    }

    /// All processes of the container, also those in groups that it made for itself.
    fn processes(&self) -> Vec<i32> {
        let group = Utf8Path::new(&self.start.processes).parent();
        group.map(processes_below).unwrap_or_default()
    }

    /// Signals the first process, or all.
    pub(super) fn signal(&self, number: i32, all: bool) -> Result<(), String> {
        let signal =
            Signal::try_from(number).map_err(|error| format!("{number} is no signal: {error}"))?;
        let Some(pid) = self.pid else {
            return Ok(());
        };
        if all {
            for pid in self.processes() {
                let _ = kill(Pid::from_raw(pid), signal);
            }
        }
        match kill(Pid::from_raw(pid), signal) {
            Ok(()) | Err(nix::Error::ESRCH) => Ok(()),
            Err(error) => Err(format!("the signal cannot be sent: {error}")),
        }
    }

    /// Writes down how it ended, after all it said.
    pub(super) fn ended(&mut self, exit_code: i32) -> (Ended, Vec<(Stream, Vec<u8>)>) {
        self.pid = None;
        self.kill_rest();
        let mut last = Vec::new();
        for stream in [Stream::Stdout, Stream::Stderr] {
            let mut taken = 0;
            while taken < MOST_AT_THE_END {
                match self.read(stream) {
                    Some(bytes) if !bytes.is_empty() => {
                        taken += bytes.len();
                        last.push((stream, bytes));
                    }
                    _ => break,
                }
            }
        }
        (self.output, self.errors, self.input) = (None, None, None);
        let now = Timestamp::now();
        for stream in [Stream::Stdout, Stream::Stderr] {
            if let Err(error) = self.log.finish(stream) {
                super::complain(&format!(
                    "the log {} cannot be written: {error}",
                    self.start.log
                ));
            }
        }
        let out_of_memory = self.memory_events() > self.memory_events_before;
        let reason = match exit_code {
            _ if out_of_memory => "OOMKilled",
            0 => "Completed",
            _ => "Error",
        };
        let ended = Ended {
            started: self.started,
            finished: now,
            exit_code,
            reason: reason.to_owned(),
            message: String::new(),
        };
        let path = Utf8Path::new(CONTAINERS)
            .join(&self.start.container)
            .join(ENDED);
        if let Err(error) = records::write(&path, &ended) {
            super::complain(&format!(
                "the end of {} cannot be recorded: {error}",
                self.start.container
            ));
        }
        (ended, last)
    }
}

/// How a process ended, as shells say it.
pub(super) fn exit_code(status: WaitStatus) -> Option<(i32, i32)> {
    match status {
        WaitStatus::Exited(pid, code) => Some((pid.as_raw(), code)),
        WaitStatus::Signaled(pid, signal, _) => Some((pid.as_raw(), 128 + signal as i32)),
        _ => None,
    }
}

/// A pipe of which the shim keeps one end, which never blocks, and a program gets the other.
pub(super) fn output_pipe() -> io::Result<(File, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    rustix::io::ioctl_fionbio(reader.as_fd(), true)?;
    Ok((File::from(OwnedFd::from(reader)), writer.into()))
}

pub(super) fn input_pipe() -> io::Result<(OwnedFd, File)> {
    let (reader, writer) = io::pipe()?;
    rustix::io::ioctl_fionbio(writer.as_fd(), true)?;
    Ok((reader.into(), File::from(OwnedFd::from(writer))))
}
