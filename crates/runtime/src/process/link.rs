//! The runtime's end of a conversation with a keeper.

use std::io;
use std::time::Duration;

use tokio::time::timeout;
use transom_host::ipc::{self, Endpoint, Stream};

use super::folder::{Folder, Record};
use super::keeper::protocol::{ENDPOINT, Frame, Reply, Request, read_frame, write_frame};
use crate::RuntimeError;

const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Killing a group may take its keeper half a minute.
const REPLY_LIMIT: Duration = Duration::from_secs(40);

fn broken(error: &io::Error) -> RuntimeError {
    RuntimeError::Unavailable {
        runtime: "the keeper of the container",
        cause: error.to_string(),
    }
}

/// Connects to a container's keeper and says what is wanted.
pub(super) async fn open(folder: &Folder, request: &Request) -> Result<Stream, RuntimeError> {
    let endpoint = Endpoint::in_directory(&folder.0, ENDPOINT);
    let connected = ipc::connect(&endpoint, CONNECT_LIMIT).await;
    let mut stream = connected.map_err(|error| broken(&io::Error::other(error)))?;
    let sent = async { write_frame(&mut stream, &Frame::message(request)?).await };
    match timeout(CONNECT_LIMIT, sent).await {
        Ok(Ok(())) => Ok(stream),
        Ok(Err(error)) => Err(broken(&error)),
        Err(_) => Err(broken(&io::ErrorKind::TimedOut.into())),
    }
}

/// The next reply; `None` if the keeper has hung up.
async fn next(stream: &mut Stream) -> Result<Option<Reply>, RuntimeError> {
    let frame = read_frame(stream).await.map_err(|error| broken(&error))?;
    let reply = frame.map(|frame| frame.parse::<Reply>()).transpose();
    reply.map_err(|error| broken(&error))
}

pub(super) async fn reply(stream: &mut Stream) -> Result<Reply, RuntimeError> {
    match timeout(REPLY_LIMIT, next(stream)).await {
        Ok(Ok(Some(reply))) => Ok(reply),
        Ok(Ok(None)) => Err(broken(&io::ErrorKind::UnexpectedEof.into())),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(broken(&io::ErrorKind::TimedOut.into())),
    }
}

/// Has a keeper do something that has no streams.
pub(super) async fn ask(folder: &Folder, request: &Request) -> Result<(), RuntimeError> {
    let mut stream = open(folder, request).await?;
    match reply(&mut stream).await? {
        Reply::Failed { cause } => Err(RuntimeError::Other(cause)),
        _ => Ok(()),
    }
}

/// The next thing that a watched keeper has to say; `None` if it has hung up.
pub(super) async fn watched(stream: &mut Stream) -> Option<Record> {
    match next(stream).await {
        Ok(Some(Reply::Record(record))) => Some(record),
        Ok(_) => None,
        Err(error) => {
            tracing::debug!(%error, "a keeper is not heard any more");
            None
        }
    }
}
