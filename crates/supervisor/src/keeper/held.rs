//! One process that a keeper started, with the threads that wait for it and carry its output.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read};
use std::sync::Arc;
use std::sync::mpsc as threads;
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;
use transom_host::process::{Delivered, Exit, Process, Processes, Scope, Spawn, SpawnError};

use super::Happening;
use crate::control::protocol::Whom;
use crate::engine::{Role, RunId};
use crate::logs::{LONGEST_LOG_LINE, LogWriter, Stream};
use crate::unit::Signal;

/// How long the end of a process is kept back for its last words. Whoever inherited its output may hold on to it.
const LAST_WORDS: Duration = Duration::from_millis(250);

pub(super) struct Held {
    pub process: Arc<dyn Process>,
    pub role: Role,
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
        let (carrier, ended) = threads::channel();
        if let Some(pipe) = process.take_stdout() {
            carry(pipe, Stream::Output, pid, log.clone(), carrier.clone());
        }
        if let Some(pipe) = process.take_stderr() {
            carry(pipe, Stream::Error, pid, log.clone(), carrier);
        }
        wait_for(run, Arc::clone(&process), ended, happened.clone());
        Ok(Self {
            process,
            role,
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

    pub(super) fn signal(&self, signal: Signal, scope: Scope) -> Delivered {
        self.process
            .signal(signal.into(), scope)
            .unwrap_or_else(|error| {
                let pid = self.process.identity().pid;
                tracing::warn!(pid, %signal, error = %error, "signal failed");
                Delivered::Gone
            })
    }

    /// Ends the input of the process.
    pub(super) fn close_input(&mut self) {
        self.stdin = None;
    }
}

/// Nothing is ever said with it: who carries output drops it at the end.
type Carrier = threads::Sender<std::convert::Infallible>;

/// Copies lines into the log until all writers have gone.
fn carry(pipe: PipeReader, stream: Stream, pid: u32, log: LogWriter, carrier: Carrier) {
    thread::spawn(move || {
        let _carrier = carrier;
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

/// Tells of the end of a process, after what it said last is in the log.
fn wait_for(
    run: RunId,
    process: Arc<dyn Process>,
    ended: threads::Receiver<std::convert::Infallible>,
    happened: mpsc::Sender<Happening>,
) {
    thread::spawn(move || {
        let exit = match process.wait(None) {
            Ok(Some(exit)) => exit,
            Ok(None) => Exit::Unknown,
            Err(error) => {
                tracing::warn!(pid = process.identity().pid, error = %error, "wait failed");
                Exit::Unknown
            }
        };
        // Returns when all carriers have ended, or not within the time.
        let _ = ended.recv_timeout(LAST_WORDS);
        // Fails only when the keeper is ending, and then nobody wants to know.
        let _ = happened.blocking_send(Happening::Exited { run, exit });
    });
}
