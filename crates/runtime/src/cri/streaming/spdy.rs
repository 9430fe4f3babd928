//! As much of SPDY/3.1 as streams of container runtimes need: we open streams and send and receive data on them.
//!
//! Invariant: headers are sent uncompressed inside valid compression, and received headers are never looked into; so
//! nothing here decompresses what others sent.

use std::io;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

const CONTROL: u16 = 0x8003;
const SYN_STREAM: u16 = 1;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GO_AWAY: u16 = 7;
const FIN: u8 = 1;
/// Frames of data are cut by the sender at a fraction of this.
const LONGEST_FRAME: usize = 16 << 20;
/// What every compressed header block of a connection begins with: the name of the dictionary that the protocol
/// prescribes, which we then make no use of.
const COMPRESSION_BEGIN: [u8; 6] = [0x38, 0xea, 0xe3, 0xc6, 0xa7, 0xc2];
/// An empty piece that has the receiver take what came before.
const COMPRESSION_FLUSH: [u8; 5] = [0, 0, 0, 0xff, 0xff];

/// What the other side says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Data {
        stream: u32,
        bytes: Bytes,
        is_last: bool,
    },
    /// To be sent back as it is.
    Ping(u32),
    Reset {
        stream: u32,
    },
    GoAway,
    /// Something that needs no answer.
    Other,
}

/// Writes frames of one connection.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    compression_began: bool,
}

impl Encoder {
    /// Opens a stream with headers, whose names are in lower case.
    pub(super) fn open(&mut self, stream: u32, headers: &[(&str, &str)]) -> Bytes {
        let mut plain = BytesMut::new();
        plain.put_u32(length(headers.len()));
        for (name, value) in headers {
            for text in [name, value] {
                plain.put_u32(length(text.len()));
                plain.put_slice(text.as_bytes());
            }
        }
        let mut block = BytesMut::new();
        if !std::mem::replace(&mut self.compression_began, true) {
            block.put_slice(&COMPRESSION_BEGIN);
        }
        // Headers of ours are tens of bytes; a stored piece holds sixty-four thousand.
        let stored = u16::try_from(plain.len()).unwrap_or(u16::MAX);
        block.put_u8(0);
        block.put_u16_le(stored);
        block.put_u16_le(!stored);
        block.put_slice(&plain);
        block.put_slice(&COMPRESSION_FLUSH);
        let mut body = BytesMut::new();
        body.put_u32(stream);
        body.put_u32(0);
        body.put_u16(0);
        body.put_slice(&block);
        control(SYN_STREAM, &body)
    }
}

fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn control(kind: u16, body: &[u8]) -> Bytes {
    let mut frame = BytesMut::new();
    frame.put_u16(CONTROL);
    frame.put_u16(kind);
    frame.put_u32(length(body.len()));
    frame.put_slice(body);
    frame.freeze()
}

/// Data on a stream; the last of it if `is_last`.
pub(super) fn data(stream: u32, bytes: &[u8], is_last: bool) -> Bytes {
    let mut frame = BytesMut::with_capacity(8 + bytes.len());
    frame.put_u32(stream);
    frame.put_u8(if is_last { FIN } else { 0 });
    frame.put_uint(bytes.len() as u64, 3);
    frame.put_slice(bytes);
    frame.freeze()
}

pub(super) fn pong(number: u32) -> Bytes {
    control(PING, &number.to_be_bytes())
}

/// The next frame; `None` when the other side has hung up between two.
pub(super) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Frame>> {
    let mut head = [0; 8];
    match from.read(&mut head[..1]).await? {
        0 => return Ok(None),
        _ => from.read_exact(&mut head[1..]).await?,
    };
    let [first, second, third, fourth, flags, size @ ..] = head;
    let length = size
        .iter()
        .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    if length > LONGEST_FRAME {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a frame is too long",
        ));
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).await?;
    if first & 0x80 == 0 {
        return Ok(Some(Frame::Data {
            stream: u32::from_be_bytes([first, second, third, fourth]),
            bytes: body.into(),
            is_last: flags & FIN != 0,
        }));
    }
    let number = body
        .first_chunk::<4>()
        .map(|bytes| u32::from_be_bytes(*bytes));
    Ok(Some(match (u16::from_be_bytes([third, fourth]), number) {
        (PING, Some(number)) => Frame::Ping(number),
        (RST_STREAM, Some(stream)) => Frame::Reset { stream },
        (GO_AWAY, _) => Frame::GoAway,
        _ => Frame::Other,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_opened_with_headers_that_are_stored_not_compressed() {
        let mut encoder = Encoder::default();
        let first = encoder.open(1, &[("streamtype", "error")]);
        assert_eq!(first[..4], [0x80, 3, 0, 1]);
        assert_eq!(first[8..12], [0, 0, 0, 1]);
        assert_eq!(first[18..24], COMPRESSION_BEGIN);
        assert_eq!(first[24..29], [0, 27, 0, 228, 255]);
        assert_eq!(first[29..37], [0, 0, 0, 1, 0, 0, 0, 10]);
        assert!(first.ends_with(&COMPRESSION_FLUSH));
        let second = encoder.open(3, &[("streamtype", "stdin")]);
        assert_eq!(second[18..23], [0, 27, 0, 228, 255]);
        assert_eq!(usize::from(first[7]), first.len() - 8);
    }

    #[tokio::test]
    async fn frames_are_read_as_they_are_written() {
        let mut bytes = data(5, b"hello", true).to_vec();
        bytes.extend(pong(7));
        bytes.extend(control(RST_STREAM, &[0, 0, 0, 5, 0, 0, 0, 1]));
        bytes.extend(control(4, &[0; 12]));
        let mut from = &bytes[..];
        let expected = [
            Frame::Data {
                stream: 5,
                bytes: Bytes::from_static(b"hello"),
                is_last: true,
            },
            Frame::Ping(7),
            Frame::Reset { stream: 5 },
            Frame::Other,
        ];
        for frame in expected {
            assert_eq!(read(&mut from).await.unwrap(), Some(frame));
        }
        assert_eq!(read(&mut from).await.unwrap(), None);
        let mut torn: &[u8] = &[0, 0, 0, 1, 0, 0, 0, 9, 1];
        assert!(read(&mut torn).await.is_err());
    }
}
