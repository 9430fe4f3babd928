//! What another program printed, passed on. Invariant: every byte arrives as it was, also those that no terminal would
//! show: it may be an archive on its way into a pipe.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use super::OutputError;
use crate::invocation::Sink;

/// Both streams, without anything between us and them.
pub struct Relay {
    stdout: Mutex<Box<dyn Write + Send>>,
    stderr: Mutex<Box<dyn Write + Send>>,
}

impl Relay {
    pub fn new(stdout: &Sink, stderr: &Sink) -> Self {
        // Colours that are always wanted are never taken out.
        Self {
            stdout: Mutex::new(stdout.open(true)),
            stderr: Mutex::new(stderr.open(true)),
        }
    }

    pub fn stdout(&self, bytes: &[u8]) -> Result<(), OutputError> {
        pass(&self.stdout, bytes)
    }

    pub fn stderr(&self, bytes: &[u8]) -> Result<(), OutputError> {
        pass(&self.stderr, bytes)
    }
}

fn pass(stream: &Mutex<Box<dyn Write + Send>>, bytes: &[u8]) -> Result<(), OutputError> {
    let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
    stream
        .write_all(bytes)
        .and_then(|()| stream.flush())
        .map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => OutputError::ReaderGone,
            _ => OutputError::Write(error),
        })
}
