//! A backup of a running server, for whoever may `get` the path `/transom/backup`.
//!
//! The store writes a file of its own first: sending it may take a while. There is at most one such file, and it
//! is gone when it was sent, also to a client that is gone before.

use std::{io, sync::Arc, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use camino::Utf8PathBuf;
use fs_err::tokio as files;
use futures::{Stream, stream};
use http::{HeaderValue, Response, header};
use tokio::{
    io::AsyncReadExt as _,
    sync::{OwnedSemaphorePermit, mpsc},
};
use transom_store::{Revision, Store};

use super::Incoming;
use crate::{
    access::{
        authentication::User,
        limits::{Class, Permit},
    },
    cache::store_fault,
    state::Api,
    status::ApiError,
};

const CHUNK: usize = 256 << 10;
/// So many chunks wait for the client.
const CHUNKS: usize = 2;
/// A client that does not take a chunk for so long keeps others from their backups for nothing.
const PATIENCE: Duration = Duration::from_mins(1);
/// When another backup is most likely done.
const TRY_AGAIN_SECONDS: u32 = 10;

/// What is given back when the file is gone.
struct Held {
    _gate: Permit,
    _alone: OwnedSemaphorePermit,
}

pub(super) async fn answer(
    api: &Api,
    request: &Incoming,
    user: &User,
) -> Result<Response<Body>, ApiError> {
    if request.method != http::Method::GET {
        return Err(super::not_allowed());
    }
    let folder = api.settings.scratch.as_ref().ok_or_else(|| {
        ApiError::new(
            501,
            "NotImplemented",
            "this server has no folder to make a backup in",
        )
    })?;
    let gate = api.gate.enter(&user.name, Class::Lasting).await?;
    let alone = Arc::clone(&api.backups).try_acquire_owned().map_err(|_| {
        ApiError::too_many_requests("another backup is being made", TRY_AGAIN_SECONDS)
    })?;
    let held = Held {
        _gate: gate,
        _alone: alone,
    };
    let file = folder.join(format!("backup-{}", uuid::Uuid::new_v4()));
    // The store goes on writing when nobody waits any more, so whoever removes the file has to go on as well.
    let saving = tokio::spawn(save(Arc::clone(&api.store), file, held));
    let (revision, reader, held) = saving
        .await
        .map_err(|error| ApiError::internal(error.to_string()))??;
    let (sender, receiver) = mpsc::channel(CHUNKS);
    tokio::spawn(send(reader, sender, held));
    let mut response = Response::new(Body::from_stream(chunks(receiver)));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/octet-stream"),
    );
    headers.insert("transom-revision", revision.0.into());
    Ok(response)
}

/// Has the store write the file and opens it. It is removed at once, and goes with its reader; what a crash
/// leaves is swept at the next start.
async fn save(
    store: Arc<dyn Store>,
    file: Utf8PathBuf,
    held: Held,
) -> Result<(Revision, files::File, Held), ApiError> {
    let revision = store
        .backup(&file)
        .await
        .map_err(|error| store_fault(&error))?;
    let opened = files::File::open(&file).await;
    if let Err(error) = files::remove_file(&file).await {
        tracing::warn!(%file, %error, "could not remove the file of a backup yet");
    }
    let reader = opened.map_err(|error| ApiError::internal(error.to_string()))?;
    Ok((revision, reader, held))
}

/// Hands the file on in chunks, the last of which is empty, until it is sent or the client is not there.
async fn send(mut reader: files::File, chunks: mpsc::Sender<io::Result<Bytes>>, _held: Held) {
    loop {
        let mut chunk = vec![0; CHUNK];
        let read = reader.read(&mut chunk).await.map(|read| {
            chunk.truncate(read);
            Bytes::from(chunk)
        });
        let is_last = read.as_ref().map_or(true, Bytes::is_empty);
        let sent = chunks.send_timeout(read, PATIENCE).await;
        if is_last || sent.is_err() {
            return;
        }
    }
}

/// The chunks as a body. One that ends before its last chunk is broken, and the client must know.
fn chunks(receiver: mpsc::Receiver<io::Result<Bytes>>) -> impl Stream<Item = io::Result<Bytes>> {
    stream::try_unfold(receiver, |mut receiver| async move {
        let given_up = || Err(io::ErrorKind::TimedOut.into());
        let chunk = receiver.recv().await.unwrap_or_else(given_up)?;
        Ok((!chunk.is_empty()).then_some((chunk, receiver)))
    })
}
