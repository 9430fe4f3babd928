//! Unix sockets.

use std::io;

use tokio::net::UnixStream;

pub(crate) async fn connect(path: &str) -> io::Result<UnixStream> {
    UnixStream::connect(path).await
}
