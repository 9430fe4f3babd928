//! Local conversations between processes of one machine: Unix sockets, named pipes.
//!
//! Invariant: only the user who listens (and the machine's administrator) can take part.

mod errors;
mod lines;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use camino::Utf8Path;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub use errors::{AcceptError, BindError, ConnectError, LineError};
pub use lines::LineStream;
#[cfg(target_os = "linux")]
use linux as system;
#[cfg(windows)]
use windows as system;

/// A place to meet: as stable as the folder it belongs to.
///
/// # Platform behavior
///
/// A socket `<folder>/<name>.sock` on Linux, however long that path is. On Windows a pipe whose name
/// is derived from the absolute path of the folder, in any case and with either separator.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Endpoint(system::Address);

impl Endpoint {
    pub fn in_directory(directory: &Utf8Path, name: &str) -> Self {
        Self(system::Address::in_directory(directory, name))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Who may connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The user who listens, and the administrator of the machine.
    OwnerOnly,
}

/// What the system knows about the other side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Peer {
    pub pid: Option<u32>,
    /// Linux only.
    pub user: Option<u32>,
}

/// Waits for clients. At most one listens at an endpoint at a time.
#[derive(Debug)]
pub struct Listener(system::Listener);

impl Listener {
    /// Listens from now on: a client that connects after this returns is served, or waits.
    pub fn bind(endpoint: &Endpoint, access: Access) -> Result<Self, BindError> {
        let Access::OwnerOnly = access;
        system::Listener::bind(&endpoint.0).map(Self)
    }

    /// The next client. Dropping the future loses no client.
    pub async fn accept(&mut self) -> Result<Stream, AcceptError> {
        self.0.accept().await.map(Stream)
    }
}

/// Connects to whoever listens at `endpoint`. When nobody does, that is an error at once, not after
/// `timeout`: the time is for a listener that is busy.
pub async fn connect(endpoint: &Endpoint, timeout: Duration) -> Result<Stream, ConnectError> {
    system::connect(&endpoint.0, timeout).await.map(Stream)
}

/// One conversation.
#[derive(Debug)]
pub struct Stream(system::Stream);

impl Stream {
    pub fn peer(&self) -> Peer {
        system::peer(&self.0)
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
