//! The streams of a program over one WebSocket: the first byte of each message says which stream it is of.

use std::{io, time::Duration};

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code};
use bytes::Bytes;
use futures::{SinkExt as _, Stream, StreamExt as _, stream::SplitSink};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::mpsc,
};
use transom_runtime::{RuntimeError, Session, Size};

/// What we speak, the best first. The fifth can end the input alone.
pub(super) const PROTOCOLS: [&str; 2] = ["v5.channel.k8s.io", "v4.channel.k8s.io"];

pub(super) const INPUT: u8 = 0;
pub(super) const OUTPUT: u8 = 1;
pub(super) const ERRORS: u8 = 2;
pub(super) const RESULT: u8 = 3;
pub(super) const RESIZE: u8 = 4;
const CLOSE: u8 = 255;

const BLOCK: usize = 32 << 10;
const QUEUE: usize = 8;
/// How often the other end has to show that it is there.
const PING: Duration = Duration::from_secs(30);
/// How long output may keep coming after the program has ended: somebody else may hold its pipe.
const REST: Duration = Duration::from_secs(2);

pub(super) type Writer = Box<dyn AsyncWrite + Send + Unpin>;
type Reader = Box<dyn AsyncRead + Send + Unpin>;

#[derive(Deserialize)]
pub(super) struct Resize {
    #[serde(rename = "Width")]
    pub(super) width: u16,
    #[serde(rename = "Height")]
    pub(super) height: u16,
}

pub(super) fn message(channel: u8, bytes: &[u8]) -> Message {
    let mut whole = Vec::with_capacity(bytes.len() + 1);
    whole.push(channel);
    whole.extend_from_slice(bytes);
    Message::Binary(whole.into())
}

/// The end that clients take for a good one: without a code they believe that the connection broke.
pub(super) fn farewell() -> Message {
    Message::Close(Some(CloseFrame {
        code: close_code::NORMAL,
        reason: Utf8Bytes::from_static(""),
    }))
}

/// Carries streams both ways until the program ends or the client goes.
pub(super) async fn converse(socket: WebSocket, session: Session) {
    let (mut sink, stream) = socket.split();
    let Session {
        input,
        output,
        errors,
        resize,
        ended,
    } = session;
    let (pieces, mut outgoing) = mpsc::channel(QUEUE);
    let reading = read_all(output, errors, pieces);
    let listening = listen(stream, input, resize);
    let sending = async {
        let mut pings = tokio::time::interval(PING);
        let mut ended = ended;
        let mut reading = std::pin::pin!(reading);
        let mut code = None;
        loop {
            tokio::select! {
                Some((channel, bytes)) = outgoing.recv() => sink.send(message(channel, &bytes)).await?,
                () = &mut reading, if code.is_none() => {
                    code = Some((&mut ended).await);
                    break;
                }
                ended = &mut ended, if code.is_none() => {
                    code = Some(ended);
                    let rest = drain(&mut sink, &mut outgoing, reading.as_mut());
                    if let Ok(drained) = tokio::time::timeout(REST, rest).await {
                        drained?;
                    }
                    break;
                }
                _ = pings.tick() => sink.send(Message::Ping(Bytes::new())).await?,
            }
        }
        while let Ok((channel, bytes)) = outgoing.try_recv() {
            sink.send(message(channel, &bytes)).await?;
        }
        let verdict = verdict(code.unwrap_or(Ok(0)));
        sink.send(message(RESULT, verdict.to_string().as_bytes()))
            .await?;
        sink.send(farewell()).await
    };
    let mut listening = std::pin::pin!(listening);
    let sent = tokio::select! {
        sent = sending => sent,
        () = listening.as_mut() => return,
    };
    match sent {
        Err(error) => tracing::debug!(%error, "a client went"),
        // A connection that ends before the client has answered may take what it has not read yet along.
        Ok(()) => drop(tokio::time::timeout(REST, listening).await),
    }
}

async fn drain(
    sink: &mut SplitSink<WebSocket, Message>,
    outgoing: &mut mpsc::Receiver<(u8, Vec<u8>)>,
    mut reading: std::pin::Pin<&mut impl Future<Output = ()>>,
) -> Result<(), axum::Error> {
    loop {
        tokio::select! {
            Some((channel, bytes)) = outgoing.recv() => sink.send(message(channel, &bytes)).await?,
            () = &mut reading => return Ok(()),
        }
    }
}

async fn read_all(
    output: Option<Reader>,
    errors: Option<Reader>,
    pieces: mpsc::Sender<(u8, Vec<u8>)>,
) {
    let read = |channel: u8, reader: Option<Reader>| {
        let pieces = pieces.clone();
        async move {
            let Some(mut reader) = reader else { return };
            let mut block = vec![0; BLOCK];
            while let Ok(length @ 1..) = reader.read(&mut block).await {
                if pieces
                    .send((channel, block[..length].to_vec()))
                    .await
                    .is_err()
                {
                    return;
                }
            }
        }
    };
    tokio::join!(read(OUTPUT, output), read(ERRORS, errors));
}

/// Takes what the client sends; returns when it is gone.
async fn listen(
    mut stream: impl Stream<Item = Result<Message, axum::Error>> + Unpin,
    mut input: Option<Writer>,
    resize: Option<mpsc::Sender<Size>>,
) {
    while let Some(Ok(message)) = stream.next().await {
        let bytes = match message {
            Message::Binary(bytes) => bytes,
            Message::Text(text) => Bytes::from(text),
            Message::Close(_) => return,
            Message::Ping(_) | Message::Pong(_) => continue,
        };
        let Some((channel, rest)) = bytes.split_first() else {
            continue;
        };
        match *channel {
            INPUT => write(&mut input, rest).await,
            RESIZE => set_size(resize.as_ref(), rest),
            CLOSE if rest.first() == Some(&INPUT) => end(input.take()).await,
            _ => {}
        }
    }
}

/// A program that does not take its input any more is no reason to stop showing its output.
pub(super) async fn write(input: &mut Option<Writer>, bytes: &[u8]) {
    if let Some(writer) = input
        && let Err(error) = written(writer, bytes).await
    {
        tracing::debug!(%error, "a program does not take its input");
        *input = None;
    }
}

async fn written(writer: &mut Writer, bytes: &[u8]) -> io::Result<()> {
    writer.write_all(bytes).await?;
    writer.flush().await
}

pub(super) async fn end(input: Option<Writer>) {
    if let Some(mut writer) = input
        && let Err(error) = writer.shutdown().await
    {
        tracing::debug!(%error, "an input could not be ended");
    }
}

pub(super) fn set_size(resize: Option<&mpsc::Sender<Size>>, bytes: &[u8]) {
    let Some(resize) = resize else { return };
    if let Ok(size) = serde_json::from_slice::<Resize>(bytes) {
        // The newest size matters; one more comes with the next change.
        let sent = resize.try_send(Size {
            columns: size.width,
            rows: size.height,
        });
        if let Err(error) = sent {
            tracing::debug!(%error, "a terminal was not told its size");
        }
    }
}

/// How a program ended, as clients read it.
pub(super) fn verdict(ended: Result<i32, RuntimeError>) -> Value {
    match ended {
        Ok(0) => json!({"metadata": {}, "status": "Success"}),
        Ok(code) => json!({
            "metadata": {},
            "status": "Failure",
            "reason": "NonZeroExitCode",
            "message": format!("command terminated with non-zero exit code: exit status {code}"),
            "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
        }),
        Err(error) => json!({
            "metadata": {},
            "status": "Failure",
            "reason": "InternalError",
            "message": format!("Internal error occurred: error executing command in container: {error}"),
            "code": 500,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_what_kubectl_reads() {
        assert_eq!(verdict(Ok(0))["status"], "Success");
        let failed = verdict(Ok(7));
        assert_eq!(failed["details"]["causes"][0]["message"], "7");
        assert_eq!(failed["reason"], "NonZeroExitCode");
        assert_eq!(
            verdict(Err(RuntimeError::Other("x".to_owned())))["reason"],
            "InternalError"
        );
    }

    #[tokio::test]
    async fn a_client_feeds_input_sizes_and_their_end() {
        let (mut program, ours) = tokio::io::duplex(64);
        let (sizes, mut seen) = mpsc::channel(1);
        let messages = [
            message(INPUT, b"abc"),
            message(RESIZE, br#"{"Width":80,"Height":24}"#),
            message(RESIZE, b"nonsense"),
            message(9, b"ignored"),
            Message::Binary(Bytes::new()),
            message(CLOSE, &[INPUT]),
            message(INPUT, b"too late"),
        ];
        let stream = futures::stream::iter(messages.map(Ok));
        listen(stream, Some(Box::new(ours)), Some(sizes)).await;
        let mut text = String::new();
        program.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "abc");
        assert_eq!(
            seen.recv().await,
            Some(Size {
                columns: 80,
                rows: 24
            })
        );
    }
}
