//! All that a process was given, as one value. Invariant: everything after this depends on the value
//! alone, so a test can stand for any user at any terminal.

use std::ffi::OsString;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use anstream::{AutoStream, ColorChoice};
use jiff::Timestamp;
use transom_model::Os;

use crate::environment::Environment;

/// One call of the program.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The name we were called by: `argv[0]`.
    pub program: OsString,
    /// What follows the name.
    pub arguments: Vec<OsString>,
    pub environment: Environment,
    /// The system we run on.
    pub host: Os,
    /// When the call began; ages are counted from here.
    pub now: Timestamp,
    pub stdout: Sink,
    pub stderr: Sink,
    pub stdout_is_terminal: bool,
    pub stderr_is_terminal: bool,
    /// Columns of the terminal, when there is one.
    pub width: Option<usize>,
}

/// Where a stream goes.
#[derive(Debug, Clone)]
pub enum Sink {
    Stdout,
    Stderr,
    /// Kept for a test to look at.
    Memory(Memory),
}

impl Sink {
    /// Opens the stream; styles are taken out of the text unless `color`.
    ///
    /// # Platform behavior
    /// On Windows a console that does not know escape sequences gets its colours through the
    /// console functions.
    pub fn open(&self, color: bool) -> Box<dyn Write + Send> {
        let choice = if color {
            ColorChoice::Always
        } else {
            ColorChoice::Never
        };
        match self {
            Self::Stdout => Box::new(AutoStream::new(io::stdout(), choice)),
            Self::Stderr => Box::new(AutoStream::new(io::stderr(), choice)),
            Self::Memory(memory) => {
                let raw: Box<dyn Write + Send> = Box::new(memory.clone());
                Box::new(AutoStream::new(raw, choice))
            }
        }
    }
}

/// A stream that remembers. Clones share what was written.
#[derive(Debug, Clone, Default)]
pub struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    /// Everything written so far.
    pub fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
