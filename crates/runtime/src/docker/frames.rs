//! Two streams in one connection: a head of eight bytes, then the bytes of one of them.
//!
//! Invariant: whatever the other side says about a length, no more than a bounded piece is held.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::logs::Stream;

/// The longest piece that is read at once.
const LONGEST_PIECE: usize = 32 << 10;
const HEAD: usize = 8;

/// Reads frames, or pieces of long ones.
pub(super) struct Frames<R> {
    from: R,
    /// With a terminal there is one stream and no frame.
    is_raw: bool,
    stream: Stream,
    left: usize,
}

/// A piece of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) stream: Stream,
    pub(super) bytes: Vec<u8>,
    /// Whether the frame ends here.
    pub(super) is_last: bool,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub(super) fn new(from: R, is_raw: bool) -> Self {
        Self {
            from,
            is_raw,
            stream: Stream::Stdout,
            left: 0,
        }
    }

    /// `None`: it has ended.
    pub(super) async fn next(&mut self) -> io::Result<Option<Piece>> {
        if !self.is_raw {
            while self.left == 0 {
                if !self.read_head().await? {
                    return Ok(None);
                }
            }
        }
        let room = if self.is_raw {
            LONGEST_PIECE
        } else {
            self.left.min(LONGEST_PIECE)
        };
        let mut bytes = vec![0; room];
        let read = self.from.read(&mut bytes).await?;
        if read == 0 {
            return if self.is_raw {
                Ok(None)
            } else {
                Err(io::ErrorKind::UnexpectedEof.into())
            };
        }
        bytes.truncate(read);
        self.left = self.left.saturating_sub(read);
        Ok(Some(Piece {
            stream: self.stream,
            bytes,
            is_last: self.left == 0,
        }))
    }

    /// Whether there was one.
    async fn read_head(&mut self) -> io::Result<bool> {
        let mut head = [0; HEAD];
        if self.from.read(&mut head[..1]).await? == 0 {
            return Ok(false);
        }
        self.from.read_exact(&mut head[1..]).await?;
        let [kind, _, _, _, length @ ..] = head;
        self.stream = match kind {
            2 | 3 => Stream::Stderr,
            _ => Stream::Stdout,
        };
        self.left = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(bytes: &[u8], is_raw: bool) -> io::Result<Vec<Piece>> {
        let mut frames = Frames::new(bytes, is_raw);
        let mut pieces = Vec::new();
        while let Some(piece) = frames.next().await? {
            pieces.push(piece);
        }
        Ok(pieces)
    }

    #[tokio::test]
    async fn streams_are_told_apart() {
        let bytes = b"\x01\0\0\0\0\0\0\x02hi\x02\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\x03bad";
        let pieces = all(bytes, false).await.unwrap();
        let found: Vec<_> = pieces
            .iter()
            .map(|piece| (piece.stream, piece.bytes.as_slice(), piece.is_last))
            .collect();
        assert_eq!(
            found,
            [
                (Stream::Stdout, b"hi".as_slice(), true),
                (Stream::Stderr, b"bad".as_slice(), true)
            ]
        );
    }

    #[tokio::test]
    async fn a_stream_of_a_terminal_is_what_it_is() {
        let pieces = all(b"\x01\0\0\0\0\0\0\x02hi", true).await.unwrap();
        assert_eq!(pieces.len(), 1);
        assert_eq!(pieces[0].bytes.len(), 10);
    }

    #[tokio::test]
    async fn a_frame_that_is_cut_off_is_an_error_and_a_long_one_is_not_held() {
        assert!(all(b"\x01\0\0", false).await.is_err());
        assert!(all(b"\x01\0\0\0\0\0\0\x09hi", false).await.is_err());
        let mut long = b"\x01\0\0\0\xff\xff\xff\xff".to_vec();
        long.extend(vec![0; LONGEST_PIECE * 3]);
        let mut frames = Frames::new(long.as_slice(), false);
        let piece = frames.next().await.unwrap().unwrap();
        assert!(piece.bytes.len() <= LONGEST_PIECE && !piece.is_last);
    }
}
