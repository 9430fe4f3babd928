//! Messages on a stream: one JSON document per line, and no line longer than the reader allows.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};

use super::LineError;

/// Sends and receives messages. After an error of `receive` other than `Broken`, the position in the
/// stream is lost and only hanging up makes sense.
#[derive(Debug)]
pub struct LineStream<S> {
    stream: BufReader<S>,
    limit: usize,
    /// The part of a line that has come so far, so that a dropped `receive` loses nothing.
    partial: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> LineStream<S> {
    /// `limit` is the longest line in bytes, its end not counted, in both directions.
    pub fn new(stream: S, limit: usize) -> Self {
        Self {
            stream: BufReader::new(stream),
            limit,
            partial: Vec::new(),
        }
    }

    pub fn get_ref(&self) -> &S {
        self.stream.get_ref()
    }

    pub async fn send(&mut self, message: &impl Serialize) -> Result<(), LineError> {
        let mut line =
            serde_json::to_vec(message).map_err(|source| LineError::Broken { source })?;
        if line.len() > self.limit {
            return Err(LineError::TooLong { limit: self.limit });
        }
        line.push(b'\n');
        let stream = self.stream.get_mut();
        stream.write_all(&line).await.map_err(system)?;
        stream.flush().await.map_err(system)
    }

    /// The next message; `None`: the other side has hung up between messages. The future may be
    /// dropped and `receive` called again.
    pub async fn receive<T: DeserializeOwned>(&mut self) -> Result<Option<T>, LineError> {
        loop {
            let bytes = self.stream.fill_buf().await.map_err(system)?;
            if bytes.is_empty() {
                return if self.partial.is_empty() {
                    Ok(None)
                } else {
                    Err(LineError::Truncated)
                };
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let part = end.unwrap_or(bytes.len());
            if self.partial.len() + part > self.limit {
                return Err(LineError::TooLong { limit: self.limit });
            }
            self.partial.extend_from_slice(&bytes[..part]);
            self.stream.consume(end.map_or(part, |end| end + 1));
            if end.is_some() {
                let line = std::mem::take(&mut self.partial);
                return serde_json::from_slice(&line)
                    .map(Some)
                    .map_err(|source| LineError::Broken { source });
            }
        }
    }
}

fn system(source: std::io::Error) -> LineError {
    LineError::System { source }
}
