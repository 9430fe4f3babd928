//! Streams into containers: exec, attach, and connections to ports.

use std::fmt;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use crate::RuntimeError;

/// A program to run beside a container's own.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Exec {
    pub command: Vec<String>,
    pub stdin: bool,
    pub stdout: bool,
    pub stderr: bool,
    pub terminal: bool,
}

impl fmt::Debug for Exec {
    /// Arguments may hold a secret: only the program is printed.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Exec")
            .field("program", &self.command.first())
            .field("terminal", &self.terminal)
            .finish_non_exhaustive()
    }
}

/// Which streams of a container's program are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attach {
    pub stdin: bool,
    pub stdout: bool,
    pub stderr: bool,
}

/// The size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub columns: u16,
    pub rows: u16,
}

/// A running program and its streams. Dropping it ends an exec and leaves an attached program alone.
pub struct Session {
    pub input: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    pub output: Option<Box<dyn AsyncRead + Send + Unpin>>,
    /// Never there with a terminal: it has one stream.
    pub errors: Option<Box<dyn AsyncRead + Send + Unpin>>,
    /// There with a terminal.
    pub resize: Option<mpsc::Sender<Size>>,
    /// The exit code, once the program has ended.
    pub ended: BoxFuture<'static, Result<i32, RuntimeError>>,
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Session").finish_non_exhaustive()
    }
}

/// Both directions of a connection to a port.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection to a port inside a pod.
pub struct Connection(pub Box<dyn Duplex>);

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Connection")
    }
}
