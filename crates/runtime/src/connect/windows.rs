//! Named pipes. All instances of one may be taken for a moment.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient};

const ALL_BUSY: i32 = 231;
const PAUSE: Duration = Duration::from_millis(50);
const MOST_ATTEMPTS: usize = 100;

/// A pipe that can tell that nothing more will be written, as servers of Go's world understand it: an empty message.
#[derive(Debug)]
pub(crate) struct Pipe {
    pipe: NamedPipeClient,
    is_shut: bool,
}

pub(crate) async fn connect(path: &str) -> io::Result<Pipe> {
    let path = path.replace('/', r"\");
    let mut attempt = 0;
    loop {
        attempt += 1;
        match ClientOptions::new().open(&path) {
            Err(error) if error.raw_os_error() == Some(ALL_BUSY) && attempt < MOST_ATTEMPTS => {
                tokio::time::sleep(PAUSE).await;
            }
            opened => {
                return opened.map(|pipe| Pipe {
                    pipe,
                    is_shut: false,
                });
            }
        }
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        // An empty message would be taken for the end.
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        Pin::new(&mut self.pipe).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_shut {
            ready!(Pin::new(&mut self.pipe).poll_write(cx, &[]))?;
            self.is_shut = true;
        }
        Pin::new(&mut self.pipe).poll_flush(cx)
    }
}
