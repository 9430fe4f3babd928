//! The conversation between the runtime and a keeper: frames of a kind, a length and a content. Every connection is
//! about one request.

use std::io;

use bytes::{Bytes, BytesMut};
use camino::Utf8PathBuf;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use transom_host::process::Spawn;

use super::super::folder::Record;

/// The name of a keeper's endpoint in its folder.
pub(in super::super) const ENDPOINT: &str = "keeper";
/// No frame is longer: a request carries a whole environment.
const LONGEST_FRAME: usize = 16 << 20;

/// What a keeper has to know from the start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in super::super) struct Setup {
    pub(in super::super) spawn: Spawn,
    pub(in super::super) log: Utf8PathBuf,
    /// The name of the signal that asks the program to end.
    pub(in super::super) stop_signal: String,
    /// Whether the program's input is for whoever attaches, and not only there to be closed.
    pub(in super::super) stdin: bool,
    pub(in super::super) stdin_once: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in super::super) enum Request {
    /// Say how the container is, and again whenever that changes.
    Watch,
    /// Ask the program to end.
    Stop,
    /// End everything.
    Kill,
    /// Begin a new log file.
    Reopen,
    /// Run a program beside the container's own.
    Exec(Box<Spawn>),
    Attach {
        stdin: bool,
        stdout: bool,
        stderr: bool,
    },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in super::super) enum Reply {
    Record(Record),
    Done,
    /// The streams begin.
    Started,
    Failed {
        cause: String,
    },
    /// The streams have ended, and the program did with this code.
    Ended {
        exit_code: i32,
    },
}

/// A piece of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Frame {
    /// A request or a reply, as JSON.
    Message(Bytes),
    Input(Bytes),
    InputEnd,
    Output(Bytes),
    Errors(Bytes),
}

impl Frame {
    pub(in super::super) fn message(value: &impl Serialize) -> io::Result<Self> {
        Ok(Self::Message(serde_json::to_vec(value)?.into()))
    }

    /// What a message says; an error if this is none.
    pub(in super::super) fn parse<T: DeserializeOwned>(&self) -> io::Result<T> {
        match self {
            Self::Message(bytes) => Ok(serde_json::from_slice(bytes)?),
            _ => Err(unexpected("a stream began before its time")),
        }
    }

    fn parts(&self) -> (u8, &[u8]) {
        match self {
            Self::Message(bytes) => (0, bytes),
            Self::Input(bytes) => (1, bytes),
            Self::InputEnd => (2, &[]),
            Self::Output(bytes) => (3, bytes),
            Self::Errors(bytes) => (4, bytes),
        }
    }
}

fn unexpected(text: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

pub(in super::super) async fn write_frame(
    stream: &mut (impl AsyncWrite + Unpin),
    frame: &Frame,
) -> io::Result<()> {
    let (kind, bytes) = frame.parts();
    let length = u32::try_from(bytes.len()).map_err(|_| unexpected("a frame is too long"))?;
    let mut head = BytesMut::with_capacity(5 + bytes.len());
    head.extend_from_slice(&[kind]);
    head.extend_from_slice(&length.to_be_bytes());
    head.extend_from_slice(bytes);
    stream.write_all(&head).await?;
    stream.flush().await
}

/// The next frame; `None` if the other side has hung up.
pub(in super::super) async fn read_frame(
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<Option<Frame>> {
    let kind = match stream.read_u8().await {
        Ok(kind) => kind,
        Err(error) if has_hung_up(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let length = stream.read_u32().await? as usize;
    if length > LONGEST_FRAME {
        return Err(unexpected("a frame is too long"));
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).await?;
    let bytes = Bytes::from(bytes);
    Ok(Some(match kind {
        0 => Frame::Message(bytes),
        1 => Frame::Input(bytes),
        2 => Frame::InputEnd,
        3 => Frame::Output(bytes),
        4 => Frame::Errors(bytes),
        _ => return Err(unexpected("a frame of an unknown kind")),
    }))
}

fn has_hung_up(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_come_back_as_they_were_sent() {
        let (mut one, mut two) = tokio::io::duplex(64);
        let frames = [
            Frame::message(&Request::Watch).unwrap(),
            Frame::Input(Bytes::from_static(b"a\0b")),
            Frame::InputEnd,
            Frame::Output(Bytes::from(vec![7; 1000])),
            Frame::Errors(Bytes::new()),
        ];
        let sent = frames.clone();
        let sending = tokio::spawn(async move {
            for frame in sent {
                write_frame(&mut one, &frame).await.unwrap();
            }
        });
        for frame in frames {
            assert_eq!(read_frame(&mut two).await.unwrap(), Some(frame));
        }
        sending.await.unwrap();
        assert_eq!(read_frame(&mut two).await.unwrap(), None);
    }

    #[tokio::test]
    async fn lengths_and_kinds_that_cannot_be_are_refused() {
        let mut huge: &[u8] = &[0, 0xff, 0xff, 0xff, 0xff];
        assert!(read_frame(&mut huge).await.is_err());
        let mut strange: &[u8] = &[9, 0, 0, 0, 0];
        assert!(read_frame(&mut strange).await.is_err());
        let mut torn: &[u8] = &[1, 0, 0, 0, 5, 1];
        assert!(read_frame(&mut torn).await.is_err());
        assert!(Frame::InputEnd.parse::<Request>().is_err());
    }
}
