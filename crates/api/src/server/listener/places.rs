//! How many connections there may be at once. Invariant: a place is taken before a connection is accepted, and
//! is free again when its socket is closed, also one that was upgraded and is no longer spoken HTTP on.

use std::{
    io::{self, IoSlice},
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use super::strangers::{Seat, Strangers};

/// How often it is said that there are no places: a full server changes between full and not full all the time.
const SAID_EVERY: Duration = Duration::from_mins(1);

/// The places for connections.
#[derive(Debug)]
pub(super) struct Places {
    all: usize,
    free: Arc<Semaphore>,
    strangers: Arc<Strangers>,
    /// When it was last said that all are taken.
    said: Option<Instant>,
    /// When it was last said that a stranger was sent away.
    sent_away: Option<Instant>,
}

impl Places {
    pub(super) fn new(all: usize) -> Self {
        let all = all.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            all,
            free: Arc::new(Semaphore::new(all)),
            strangers: Arc::new(Strangers::new(all)),
            said: None,
            sent_away: None,
        }
    }

    /// Waits for a place, then for a client. Loses neither when it is dropped. Strangers for whom there is no
    /// room are sent away at once: to let them wait would keep those waiting who come after them.
    pub(super) async fn accept(
        &mut self,
        listener: &TcpListener,
    ) -> io::Result<(Seated, SocketAddr)> {
        if self.free.available_permits() == 0 && is_time(&mut self.said) {
            tracing::warn!(
                connections = self.all,
                "no more connections are accepted until others end"
            );
        }
        let place = Arc::clone(&self.free)
            .acquire_owned()
            .await
            .map_err(io::Error::other)?;
        loop {
            let (stream, address) = listener.accept().await?;
            if let Some(seat) = self.strangers.enter(address.ip()) {
                let stream = Seated {
                    stream,
                    seat: Arc::new(seat),
                    _place: place,
                };
                return Ok((stream, address));
            }
            if is_time(&mut self.sent_away) {
                tracing::warn!(%address, "there are too many connections of clients that have not shown who they are; some are sent away");
            }
        }
    }
}

/// Whether something is to be said again.
fn is_time(said: &mut Option<Instant>) -> bool {
    let is_time = said.is_none_or(|said| said.elapsed() >= SAID_EVERY);
    if is_time {
        *said = Some(Instant::now());
    }
    is_time
}

/// A connection with its place.
#[derive(Debug)]
pub(super) struct Seated {
    stream: TcpStream,
    seat: Arc<Seat>,
    _place: OwnedSemaphorePermit,
}

impl Seated {
    pub(super) fn seat(&self) -> &Arc<Seat> {
        &self.seat
    }

    /// Sends what is written at once.
    pub(super) fn without_delay(&self) -> io::Result<()> {
        self.stream.set_nodelay(true)
    }

    fn stream(self: Pin<&mut Self>) -> Pin<&mut TcpStream> {
        Pin::new(&mut self.get_mut().stream)
    }
}

impl AsyncRead for Seated {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream().poll_read(context, buffer)
    }
}

impl AsyncWrite for Seated {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(context)
    }
}
