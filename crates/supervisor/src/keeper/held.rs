//! One process that a keeper started, with the threads that wait for it and carry its output.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read};
use std::sync::Arc;
use std::thread;

use tokio::sync::mpsc;
use transom_host::process::{Delivered, Exit, Process, Processes, Scope, Spawn, SpawnError};

use super::Happening;
use crate::control::protocol::Whom;
use crate::engine::{Role, RunId};
use crate::logs::{LONGEST_LOG_LINE, LogWriter, Stream};
use crate::unit::Signal;

pub(super) struct Held {
    pub process: Arc<dyn Process>,
    pub role: Role,
    pub ended: bool,
    /// Where a process is stopped by the end of its input, this is our end of it.
    stdin: Option<PipeWriter>,
}

impl Held {
    pub(super) fn start(
        processes: &dyn Processes,
        run: RunId,
        role: Role,
        spawn: &Spawn,
        log: &LogWriter,
        happened: &mpsc::Sender<Happening>,
    ) -> Result<Self, SpawnError> {
        let process: Arc<dyn Process> = Arc::from(processes.spawn(spawn)?);
        let pid = process.identity().pid;
        let stdin = process.take_stdin();
        if let Some(pipe) = process.take_stdout() {
            carry(pipe, Stream::Output, pid, log.clone());
        }
        if let Some(pipe) = process.take_stderr() {
            carry(pipe, Stream::Error, pid, log.clone());
        }
        wait_for(run, Arc::clone(&process), happened.clone());
        Ok(Self {
            process,
            role,
            ended: false,
            stdin,
        })
    }

    pub(super) fn is_meant_by(&self, whom: Whom) -> bool {
        match whom {
            Whom::Main => self.role == Role::Main,
            Whom::Control => self.role != Role::Main,
            Whom::All => true,
        }
    }

    /// Delivers a signal. Where the system has no such thing, a polite one closes the input instead,
    /// which is how a service on Windows learns that it should end.
    pub(super) fn signal(&mut self, signal: Signal, whom: Whom) {
        let scope = if whom == Whom::All {
            Scope::Tree
        } else {
            Scope::Main
        };
        match self.process.signal(signal.into(), scope) {
            Ok(Delivered::NotSupported) => {
                let asks_to_end = matches!(
                    signal,
                    Signal::TERM | Signal::INT | Signal::HUP | Signal::QUIT
                );
                if asks_to_end {
                    self.stdin = None;
                }
            }
            Ok(Delivered::To(_) | Delivered::Gone) => {}
            Err(error) => {
                tracing::warn!(pid = self.process.identity().pid, %signal, error = %error, "signal failed");
            }
        }
    }
}

/// Copies lines into the log until all writers have gone.
fn carry(pipe: PipeReader, stream: Stream, pid: u32, log: LogWriter) {
    thread::spawn(move || {
        let mut reader = BufReader::new(pipe);
        let mut line = Vec::new();
        loop {
            line.clear();
            let limit = LONGEST_LOG_LINE as u64;
            match reader.by_ref().take(limit).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => log.write_bytes(stream, Some(pid), &line),
            }
        }
    });
}

fn wait_for(run: RunId, process: Arc<dyn Process>, happened: mpsc::Sender<Happening>) {
    thread::spawn(move || {
        let exit = match process.wait(None) {
            Ok(Some(exit)) => exit,
            Ok(None) => Exit::Unknown,
            Err(error) => {
                tracing::warn!(pid = process.identity().pid, error = %error, "wait failed");
                Exit::Unknown
            }
        };
        // Fails only when the keeper is ending, and then nobody wants to know.
        let _ = happened.blocking_send(Happening::Exited { run, exit });
    });
}
