//! The door for clients: reads one request per connection, hands it to the main task, writes the
//! answer.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use transom_host::ipc::{LineStream, Listener, Stream};

use super::Arrival;
use crate::control::LONGEST_LINE;
use crate::control::protocol::{Answer, Request, RequestError};

/// How long a client may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves clients. Each conversation holds a clone of `open` until its answer has been written.
pub(super) async fn serve(
    mut listener: Listener,
    inbox: mpsc::Sender<Arrival>,
    open: mpsc::Sender<()>,
) {
    loop {
        match listener.accept().await {
            Ok(stream) => {
                let (inbox, open) = (inbox.clone(), open.clone());
                tokio::spawn(async move {
                    converse(stream, inbox).await;
                    drop(open);
                });
            }
            Err(error) => {
                tracing::warn!(error = %error, "a client could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn converse(stream: Stream, inbox: mpsc::Sender<Arrival>) {
    let mut stream = LineStream::new(stream, LONGEST_LINE);
    let request = match timeout(PATIENCE, stream.receive::<Request>()).await {
        Ok(Ok(Some(request))) => request,
        Ok(Ok(None)) | Err(_) => return,
        Ok(Err(error)) => {
            let error = RequestError::BadRequest {
                message: error.to_string(),
            };
            // The client may have gone: then nobody wants the answer.
            let _ = stream.send(&Answer::Failed { error }).await;
            return;
        }
    };
    let (reply, answer) = oneshot::channel();
    if inbox
        .send(Arrival::Request { request, reply })
        .await
        .is_err()
    {
        return;
    }
    tokio::select! {
        answer = answer => if let Ok(answer) = answer {
            let _ = stream.send(&answer).await;
        },
        // A client that hangs up while a long job runs is not waited for.
        _ = stream.receive::<Request>() => {}
    }
}
