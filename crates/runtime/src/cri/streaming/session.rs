//! From frames to the streams of a session, and back.

use bytes::Bytes;
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, SimplexStream};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};

use super::spdy::{self, Frame};
use super::{BUFFER, DATA, ERROR, RESIZE, STDERR, STDIN, STDOUT};
use crate::{RuntimeError, Session, Size};

const CHUNK: usize = 32 << 10;
const MOST_FRAMES: usize = 16;
/// What is kept of the words of an error.
const LONGEST_ERROR: usize = 64 << 10;

/// Which streams a program has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cri) struct Wanted {
    pub(in crate::cri) stdin: bool,
    pub(in crate::cri) stdout: bool,
    pub(in crate::cri) stderr: bool,
    pub(in crate::cri) terminal: bool,
}

/// How streams ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Exited(i32),
    Failed(String),
}

/// What a runtime says on the stream of errors when a program has ended.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    #[serde(rename = "status")]
    outcome: String,
    reason: String,
    message: String,
    details: Details,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Details {
    causes: Vec<Cause>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Cause {
    reason: String,
    message: String,
}

fn read_ending(words: &[u8]) -> Ending {
    if words.is_empty() {
        return Ending::Exited(0);
    }
    let Ok(status) = serde_json::from_slice::<Status>(words) else {
        return Ending::Failed(String::from_utf8_lossy(words).into_owned());
    };
    if status.outcome == "Success" {
        return Ending::Exited(0);
    }
    let mut causes = status.details.causes.iter();
    let code = causes
        .find(|cause| cause.reason == "ExitCode")
        .and_then(|cause| cause.message.parse().ok());
    match code {
        Some(code) if status.reason == "NonZeroExitCode" => Ending::Exited(code),
        _ => Ending::Failed(status.message),
    }
}

/// Where data of a connection goes.
#[derive(Default)]
struct Sinks {
    output: Option<DuplexStream>,
    errors: Option<DuplexStream>,
    /// The number of the stream of output.
    output_number: u32,
    words: Vec<u8>,
}

impl Sinks {
    async fn take(&mut self, stream: u32, bytes: &[u8], is_last: bool) {
        let sink = match stream {
            ERROR => {
                let room = LONGEST_ERROR.saturating_sub(self.words.len());
                self.words
                    .extend_from_slice(&bytes[..bytes.len().min(room)]);
                return;
            }
            number if number == self.output_number => &mut self.output,
            STDERR => &mut self.errors,
            _ => return,
        };
        if let Some(to) = sink {
            // Who does not read any more does not miss it.
            let gone = to.write_all(bytes).await.is_err();
            if gone || is_last {
                *sink = None;
            }
        }
    }
}

pub(super) fn begin(stream: TcpStream, wanted: Wanted) -> Session {
    let (input, their_input) = tokio::io::simplex(BUFFER);
    let (output, our_output) = tokio::io::duplex(BUFFER);
    let (errors, our_errors) = tokio::io::duplex(BUFFER);
    let (resize, sizes) = mpsc::channel(MOST_FRAMES);
    let (mut end, ended) = oneshot::channel();
    let sinks = Sinks {
        output: Some(our_output),
        errors: Some(our_errors),
        output_number: STDOUT,
        words: Vec::new(),
    };
    tokio::spawn(async move {
        let (frames, to_send) = mpsc::channel(MOST_FRAMES);
        let carried = carry(stream, sinks, frames.clone(), to_send);
        let ending = tokio::select! {
            ending = carried => ending,
            never = send_input(input, frames.clone(), wanted.stdin) => match never {},
            never = send_sizes(sizes, frames) => match never {},
            // The session was dropped: the connection goes with it.
            () = end.closed() => return,
        };
        // Nobody may be waiting.
        let _ = end.send(ending);
    });
    Session {
        input: wanted.stdin.then(|| Box::new(their_input) as _),
        output: wanted.stdout.then(|| Box::new(output) as _),
        errors: wanted.stderr.then(|| Box::new(errors) as _),
        resize: wanted.terminal.then_some(resize),
        ended: Box::pin(async move {
            match ended.await {
                Ok(Ending::Exited(code)) => Ok(code),
                Ok(Ending::Failed(cause)) => Err(RuntimeError::Other(cause)),
                Err(_) => Err(RuntimeError::Other("the stream has ended".to_owned())),
            }
        }),
    }
}

/// Carries a connection to a port until one side ends it; says how, if the other side has.
pub(super) fn carry_port(stream: TcpStream, ours: DuplexStream) -> oneshot::Receiver<Ending> {
    let (end, ended) = oneshot::channel();
    tokio::spawn(async move {
        let (mut from, to) = tokio::io::split(ours);
        let (received, mut relay) = tokio::io::duplex(BUFFER);
        let (frames, to_send) = mpsc::channel(MOST_FRAMES);
        let sinks = Sinks {
            output: Some(received),
            output_number: DATA,
            ..Sinks::default()
        };
        let sending = async {
            let mut buffer = vec![0; CHUNK];
            loop {
                let read = from.read(&mut buffer).await.unwrap_or(0);
                let frame = spdy::data(DATA, &buffer[..read], read == 0);
                if frames.send(frame).await.is_err() || read == 0 {
                    return std::future::pending::<std::convert::Infallible>().await;
                }
            }
        };
        let receiving = async {
            let mut to = to;
            // Either side may hang up at any time.
            let _ = tokio::io::copy(&mut relay, &mut to).await;
            let _ = to.shutdown().await;
            std::future::pending::<std::convert::Infallible>().await
        };
        let ending = tokio::select! {
            ending = carry(stream, sinks, frames.clone(), to_send) => ending,
            never = sending => match never {},
            never = receiving => match never {},
        };
        // Heard only while the connection is new.
        let _ = end.send(ending);
    });
    ended
}

/// Sends what waits to be sent and takes what comes, until the other side has ended it all.
async fn carry(
    stream: TcpStream,
    mut sinks: Sinks,
    answers: mpsc::Sender<Bytes>,
    mut to_send: mpsc::Receiver<Bytes>,
) -> Ending {
    let (mut reader, mut writer) = stream.into_split();
    let sending = async {
        while let Some(frame) = to_send.recv().await {
            if writer.write_all(&frame).await.is_err() {
                break;
            }
        }
        std::future::pending::<std::convert::Infallible>().await
    };
    let receiving = async {
        let mut words_ended = false;
        loop {
            match spdy::read(&mut reader).await {
                Ok(Some(Frame::Data {
                    stream,
                    bytes,
                    is_last,
                })) => {
                    sinks.take(stream, &bytes, is_last).await;
                    words_ended |= stream == ERROR && is_last;
                }
                Ok(Some(Frame::Ping(number))) => {
                    if answers.send(spdy::pong(number)).await.is_err() {
                        break;
                    }
                }
                Ok(Some(Frame::Reset { stream })) => sinks.take(stream, &[], true).await,
                Ok(Some(Frame::GoAway) | None) => break,
                Ok(Some(Frame::Other)) => {}
                Err(error) if words_ended => {
                    tracing::debug!(%error, "a stream ended without a farewell");
                    break;
                }
                Err(error) => return Ending::Failed(error.to_string()),
            }
        }
        read_ending(&sinks.words)
    };
    tokio::select! {
        ending = receiving => ending,
        never = sending => match never {},
    }
}

/// Never returns: whether there is more input says nothing about the program.
async fn send_input(
    mut input: ReadHalf<SimplexStream>,
    frames: mpsc::Sender<Bytes>,
    wanted: bool,
) -> std::convert::Infallible {
    let mut buffer = vec![0; CHUNK];
    let mut more = wanted;
    while more {
        let read = input.read(&mut buffer).await.unwrap_or(0);
        let frame = spdy::data(STDIN, &buffer[..read], read == 0);
        more = frames.send(frame).await.is_ok() && read > 0;
    }
    std::future::pending().await
}

async fn send_sizes(
    mut sizes: mpsc::Receiver<Size>,
    frames: mpsc::Sender<Bytes>,
) -> std::convert::Infallible {
    while let Some(size) = sizes.recv().await {
        let text = format!("{{\"Width\":{},\"Height\":{}}}", size.columns, size.rows);
        let frame = spdy::data(RESIZE, text.as_bytes(), false);
        if frames.send(frame).await.is_err() {
            break;
        }
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_of_a_program_are_its_exit_code_or_an_error() {
        assert_eq!(read_ending(b""), Ending::Exited(0));
        assert_eq!(read_ending(br#"{"status":"Success"}"#), Ending::Exited(0));
        let failed = br#"{"status":"Failure","reason":"NonZeroExitCode","message":"exit 9",
            "details":{"causes":[{"reason":"ExitCode","message":"9"}]}}"#;
        assert_eq!(read_ending(failed), Ending::Exited(9));
        let error = br#"{"status":"Failure","reason":"InternalError","message":"no such file"}"#;
        assert_eq!(
            read_ending(error),
            Ending::Failed("no such file".to_owned())
        );
        assert_eq!(read_ending(b"plain"), Ending::Failed("plain".to_owned()));
    }
}
