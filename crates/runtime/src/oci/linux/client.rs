//! The agent's side of a shim: requests, and sessions with programs.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use camino::Utf8Path;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::time::{Duration, timeout};

use super::descriptors;
use super::protocol::{self, Call, Channel, Reply, Request, VERSION};
use super::records::PodFolder;
use crate::RuntimeError;

/// A shim answers at once, but for starts, which its disk may hold up.
const LONGEST_ANSWER: Duration = Duration::from_mins(2);

/// A connection to a shim.
pub(super) struct ShimConnection {
    pub(super) stream: UnixStream,
    received: Vec<u8>,
    pub(super) descriptors: Vec<OwnedFd>,
}

impl ShimConnection {
    pub(super) async fn open(folder: &PodFolder) -> Result<Self, RuntimeError> {
        // The address of a socket is short, a path may be long: the folder is named by its descriptor.
        let opened = fs_err::File::open(&folder.0);
        let connected = match opened {
            Ok(folder) => {
                use std::os::fd::AsRawFd;
                let short = format!(
                    "/proc/self/fd/{}/{}",
                    folder.file().as_raw_fd(),
                    super::records::SOCKET
                );
                UnixStream::connect(short).await
            }
            Err(error) => Err(error),
        };
        let stream = connected.map_err(|error| unavailable(&folder.0, &error))?;
        Ok(Self {
            stream,
            received: Vec::new(),
            descriptors: Vec::new(),
        })
    }

    /// The process that listens.
    pub(super) fn peer(&self) -> Result<u32, RuntimeError> {
        let credentials = self
            .stream
            .peer_cred()
            .map_err(|error| RuntimeError::io("ask who the shim is", error))?;
        let pid = credentials.pid().and_then(|pid| u32::try_from(pid).ok());
        pid.ok_or_else(|| RuntimeError::Other("the shim does not say who it is".to_owned()))
    }

    /// Sends a request, and descriptors beside it.
    pub(super) async fn send(
        &mut self,
        call: Call,
        given: &[BorrowedFd<'_>],
    ) -> Result<(), RuntimeError> {
        let failed = |error| RuntimeError::io("speak to the shim", error);
        let request = Request {
            version: VERSION,
            call,
        };
        let frame = protocol::control(&request).map_err(failed)?;
        let stream = &self.stream;
        let sent = stream
            .async_io(Interest::WRITABLE, || {
                descriptors::send(stream.as_fd(), &frame, given)
            })
            .await
            .map_err(failed)?;
        self.stream.write_all(&frame[sent..]).await.map_err(failed)
    }

    /// The next frame; `None` when the shim hung up.
    pub(super) async fn next(&mut self) -> io::Result<Option<(Channel, Vec<u8>)>> {
        let mut chunk = vec![0; 64 * 1024];
        loop {
            if let Some(frame) = protocol::take_frame(&mut self.received)? {
                return Ok(Some(frame));
            }
            let stream = &self.stream;
            let found = &mut self.descriptors;
            let count = stream
                .async_io(Interest::READABLE, || {
                    descriptors::receive(stream.as_fd(), &mut chunk, found)
                })
                .await?;
            if count == 0 {
                return Ok(None);
            }
            self.received.extend_from_slice(&chunk[..count]);
        }
    }

    /// The next reply; whatever else comes is passed over.
    pub(super) async fn reply(&mut self) -> Result<Reply, RuntimeError> {
        let failed = |error| RuntimeError::io("hear the shim", error);
        loop {
            match self.next().await.map_err(failed)? {
                Some((Channel::Control, content)) => {
                    return serde_json::from_slice(&content).map_err(|error| failed(error.into()));
                }
                Some(_) => {}
                None => {
                    return Err(RuntimeError::Unavailable {
                        runtime: "the shim of the pod",
                        cause: "it hung up".to_owned(),
                    });
                }
            }
        }
    }

    /// Asks, and waits for the answer.
    pub(super) async fn ask(
        &mut self,
        call: Call,
        given: &[BorrowedFd<'_>],
    ) -> Result<Reply, RuntimeError> {
        let answered = timeout(LONGEST_ANSWER, async {
            self.send(call, given).await?;
            self.reply().await
        });
        match answered.await {
            Ok(reply) => reply,
            Err(_) => Err(RuntimeError::Unavailable {
                runtime: "the shim of the pod",
                cause: format!("it said nothing for {LONGEST_ANSWER:?}"),
            }),
        }
    }
}

/// One question to the shim of a pod.
pub(super) async fn ask(folder: &PodFolder, call: Call) -> Result<Reply, RuntimeError> {
    ShimConnection::open(folder).await?.ask(call, &[]).await
}

fn unavailable(folder: &Utf8Path, error: &io::Error) -> RuntimeError {
    RuntimeError::Unavailable {
        runtime: "the shim of the pod",
        cause: format!("{folder}: {error}"),
    }
}

/// Reads the rest of a stream that must be short.
pub(super) async fn read_line(
    source: &mut (impl AsyncReadExt + Unpin),
    limit: usize,
) -> io::Result<String> {
    let mut text = Vec::new();
    let mut byte = [0];
    while text.len() < limit {
        match source.read(&mut byte).await? {
            0 => break,
            _ if byte[0] == b'\n' => break,
            _ => text.push(byte[0]),
        }
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Reads frames of a connection that somebody else writes to.
pub(super) struct FrameReader {
    half: tokio::net::unix::OwnedReadHalf,
    received: Vec<u8>,
}

impl FrameReader {
    pub(super) async fn next(&mut self) -> io::Result<Option<(Channel, Vec<u8>)>> {
        let mut chunk = vec![0; 64 * 1024];
        loop {
            if let Some(frame) = protocol::take_frame(&mut self.received)? {
                return Ok(Some(frame));
            }
            match self.half.read(&mut chunk).await? {
                0 => return Ok(None),
                count => self.received.extend_from_slice(&chunk[..count]),
            }
        }
    }
}

impl ShimConnection {
    /// Both directions apart.
    pub(super) fn split(self) -> (FrameReader, tokio::net::unix::OwnedWriteHalf) {
        let (half, writer) = self.stream.into_split();
        let reader = FrameReader {
            half,
            received: self.received,
        };
        (reader, writer)
    }
}
