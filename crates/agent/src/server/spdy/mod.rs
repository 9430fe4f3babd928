//! SPDY/3.1, as little of it as kubectl and its friends speak: streams that clients open, data both ways.
//!
//! Everything is bounded: frames, streams, and what waits for a reader. A reader that is slow makes the client wait.

mod commands;
mod forward;
mod headers;

use std::{collections::BTreeMap, io};

use bytes::Bytes;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::mpsc,
};

pub(super) use self::{commands::converse, forward::forward};

use self::headers::Headers;
use self::headers::{Packer, Unpacker};

const VERSION: u16 = 3;
const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GOAWAY: u16 = 7;
const FIN: u8 = 1;
/// Status of a stream that was refused.
const REFUSED: u32 = 3;

const LARGEST_FRAME: usize = 1 << 20;
const MOST_STREAMS: usize = 256;
const QUEUE: usize = 16;
const BLOCK: usize = 16 << 10;

#[derive(Debug, thiserror::Error)]
pub(super) enum SpdyError {
    #[error("the connection broke")]
    Io(#[from] io::Error),
    #[error("headers make no sense: {0}")]
    Headers(String),
    #[error("a frame makes no sense: {0}")]
    Frame(&'static str),
}

/// What goes out.
enum Out {
    Reply(u32),
    Data(u32, Bytes),
    Fin(u32),
    Reset(u32),
    Pong(u32),
}

/// A stream that a client opened.
pub(super) struct Stream {
    id: u32,
    incoming: mpsc::Receiver<Bytes>,
    outgoing: mpsc::Sender<Out>,
}

impl Stream {
    /// What the client sends next; `None` when it has ended its side.
    pub(super) async fn read(&mut self) -> Option<Bytes> {
        self.incoming.recv().await
    }

    pub(super) fn writer(&self) -> Writer {
        Writer {
            id: self.id,
            outgoing: self.outgoing.clone(),
        }
    }
}

/// Our side of a stream.
#[derive(Clone)]
pub(super) struct Writer {
    id: u32,
    outgoing: mpsc::Sender<Out>,
}

impl Writer {
    /// Whether the connection still takes something.
    pub(super) async fn write(&self, bytes: &[u8]) -> bool {
        for piece in bytes.chunks(BLOCK) {
            if self
                .outgoing
                .send(Out::Data(self.id, Bytes::copy_from_slice(piece)))
                .await
                .is_err()
            {
                return false;
            }
        }
        true
    }

    /// Ends our side.
    pub(super) async fn finish(&self) {
        if self.outgoing.send(Out::Fin(self.id)).await.is_err() {
            tracing::debug!("a connection was gone before its stream ended");
        }
    }

    /// Copies all of a reader, then ends our side.
    pub(super) async fn copy(&self, mut reader: impl AsyncRead + Unpin) {
        let mut block = vec![0; BLOCK];
        while let Ok(length @ 1..) = reader.read(&mut block).await {
            if !self.write(&block[..length]).await {
                return;
            }
        }
        self.finish().await;
    }
}

/// Speaks with a client until it goes. New streams are handed out with their headers.
pub(super) async fn serve(
    io: impl AsyncRead + AsyncWrite + Unpin + Send,
    streams: mpsc::Sender<(Stream, Headers)>,
) -> Result<(), SpdyError> {
    let (mut reader, mut writer) = tokio::io::split(io);
    let (outgoing, mut waiting) = mpsc::channel(QUEUE);
    let mut packer = Packer::new()?;
    let sending = async {
        while let Some(out) = waiting.recv().await {
            let frame = render(&mut packer, &out)?;
            writer.write_all(&frame).await?;
            writer.flush().await?;
        }
        Ok::<(), SpdyError>(())
    };
    let reading = async {
        let mut state = Reading {
            unpacker: Unpacker::new(),
            open: BTreeMap::new(),
            outgoing,
            streams,
        };
        while let Some(frame) = read_frame(&mut reader).await? {
            state.take(frame).await?;
        }
        Ok::<(), SpdyError>(())
    };
    tokio::select! {
        done = reading => done,
        done = sending => done,
    }
}

fn control(kind: u16, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = (0x8000 | VERSION).to_be_bytes().to_vec();
    frame.extend_from_slice(&kind.to_be_bytes());
    put_length(&mut frame, flags, payload.len());
    frame.extend_from_slice(payload);
    frame
}

fn put_length(frame: &mut Vec<u8>, flags: u8, length: usize) {
    let length = u32::try_from(length).unwrap_or(0) & 0x00ff_ffff;
    frame.extend_from_slice(&(u32::from(flags) << 24 | length).to_be_bytes());
}

fn data(id: u32, flags: u8, bytes: &[u8]) -> Vec<u8> {
    let mut frame = id.to_be_bytes().to_vec();
    put_length(&mut frame, flags, bytes.len());
    frame.extend_from_slice(bytes);
    frame
}

fn render(packer: &mut Packer, out: &Out) -> Result<Vec<u8>, SpdyError> {
    Ok(match out {
        Out::Reply(id) => {
            let mut payload = id.to_be_bytes().to_vec();
            payload.extend(packer.pack(&[])?);
            control(SYN_REPLY, 0, &payload)
        }
        Out::Data(id, bytes) => data(*id, 0, bytes),
        Out::Fin(id) => data(*id, FIN, &[]),
        Out::Reset(id) => control(
            RST_STREAM,
            0,
            &[id.to_be_bytes(), REFUSED.to_be_bytes()].concat(),
        ),
        Out::Pong(id) => control(PING, 0, &id.to_be_bytes()),
    })
}

/// A frame as it came.
struct Frame {
    /// `None` for data.
    kind: Option<u16>,
    /// Of data: the stream.
    id: u32,
    flags: u8,
    payload: Vec<u8>,
}

/// The next frame; `None` at the end of the connection.
async fn read_frame(reader: &mut (impl AsyncRead + Unpin)) -> Result<Option<Frame>, SpdyError> {
    let first = match reader.read_u32().await {
        Ok(first) => first,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let second = reader.read_u32().await?;
    let [flags, ..] = second.to_be_bytes();
    let length = (second & 0x00ff_ffff) as usize;
    if length > LARGEST_FRAME {
        return Err(SpdyError::Frame("it is too large"));
    }
    let mut payload = vec![0; length];
    reader.read_exact(&mut payload).await?;
    if first >> 31 == 0 {
        return Ok(Some(Frame {
            kind: None,
            id: first,
            flags,
            payload,
        }));
    }
    let [high, low, kind_high, kind_low] = first.to_be_bytes();
    if u16::from_be_bytes([high & 0x7f, low]) != VERSION {
        return Err(SpdyError::Frame("it is of another version"));
    }
    Ok(Some(Frame {
        kind: Some(u16::from_be_bytes([kind_high, kind_low])),
        id: 0,
        flags,
        payload,
    }))
}

struct Reading {
    unpacker: Unpacker,
    /// Where the data of streams go that the client has not ended.
    open: BTreeMap<u32, mpsc::Sender<Bytes>>,
    outgoing: mpsc::Sender<Out>,
    streams: mpsc::Sender<(Stream, Headers)>,
}

fn id_of(payload: &[u8]) -> Result<u32, SpdyError> {
    let first = payload
        .first_chunk::<4>()
        .ok_or(SpdyError::Frame("it is cut off"))?;
    Ok(u32::from_be_bytes(*first) & 0x7fff_ffff)
}

impl Reading {
    async fn take(&mut self, frame: Frame) -> Result<(), SpdyError> {
        match frame.kind {
            None => self.take_data(frame).await,
            Some(SYN_STREAM) => self.begin(&frame).await?,
            Some(RST_STREAM) => {
                self.open.remove(&id_of(&frame.payload)?);
            }
            Some(PING) => {
                let number = frame
                    .payload
                    .first_chunk::<4>()
                    .ok_or(SpdyError::Frame("it is cut off"))?;
                self.send(Out::Pong(u32::from_be_bytes(*number))).await;
            }
            Some(GOAWAY) => self.open.clear(),
            // Settings and windows: nothing here goes by them.
            Some(_) => {}
        }
        Ok(())
    }

    async fn take_data(&mut self, frame: Frame) {
        if let Some(stream) = self.open.get(&frame.id)
            && !frame.payload.is_empty()
            && stream.send(frame.payload.into()).await.is_err()
        {
            // Nobody reads it any more.
            self.open.remove(&frame.id);
        }
        if frame.flags & FIN != 0 {
            self.open.remove(&frame.id);
        }
    }

    async fn begin(&mut self, frame: &Frame) -> Result<(), SpdyError> {
        let id = id_of(&frame.payload)?;
        let packed = frame
            .payload
            .get(10..)
            .ok_or(SpdyError::Frame("it is cut off"))?;
        // The headers of a stream that is refused are part of the one stream of all headers.
        let headers = self.unpacker.unpack(packed)?;
        if self.open.len() >= MOST_STREAMS || self.open.contains_key(&id) {
            self.send(Out::Reset(id)).await;
            return Ok(());
        }
        let (sender, incoming) = mpsc::channel(QUEUE);
        let stream = Stream {
            id,
            incoming,
            outgoing: self.outgoing.clone(),
        };
        self.send(Out::Reply(id)).await;
        if self.streams.send((stream, headers)).await.is_err() {
            self.send(Out::Reset(id)).await;
        } else if frame.flags & FIN == 0 {
            self.open.insert(id, sender);
        }
        Ok(())
    }

    async fn send(&self, out: Out) {
        if self.outgoing.send(out).await.is_err() {
            tracing::debug!("a connection was gone before it was answered");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream as a client opens it.
    fn opening(packer: &mut Packer, id: u32, headers: &[(&str, &str)]) -> Vec<u8> {
        let mut payload = [id.to_be_bytes(), 0_u32.to_be_bytes()].concat();
        payload.extend_from_slice(&[0, 0]);
        payload.extend(packer.pack(headers).unwrap());
        control(SYN_STREAM, 0, &payload)
    }

    #[tokio::test]
    async fn a_client_opens_a_stream_and_both_sides_speak() {
        let (mut client, server) = tokio::io::duplex(1 << 16);
        let (sender, mut streams) = mpsc::channel(1);
        let serving = tokio::spawn(serve(server, sender));
        let mut packer = Packer::new().unwrap();
        client
            .write_all(&opening(
                &mut packer,
                1,
                &[("streamType", "data"), ("port", "80")],
            ))
            .await
            .unwrap();
        client.write_all(&data(1, 0, b"hello")).await.unwrap();
        client.write_all(&data(1, FIN, b"")).await.unwrap();
        client
            .write_all(&control(PING, 0, &7_u32.to_be_bytes()))
            .await
            .unwrap();
        let (mut stream, headers) = streams.recv().await.unwrap();
        assert_eq!(headers[0], ("streamtype".to_owned(), "data".to_owned()));
        assert_eq!(stream.read().await.as_deref(), Some(&b"hello"[..]));
        assert_eq!(stream.read().await, None);
        assert!(stream.writer().write(b"answer").await);
        stream.writer().finish().await;
        let mut seen = Vec::new();
        for _ in 0..4 {
            let frame = read_frame(&mut client).await.unwrap().unwrap();
            seen.push((frame.kind, frame.flags, frame.payload));
        }
        assert_eq!(seen[0].0, Some(SYN_REPLY));
        let rest: Vec<_> = seen[1..].to_vec();
        assert!(rest.contains(&(Some(PING), 0, 7_u32.to_be_bytes().to_vec())));
        assert!(rest.contains(&(None, 0, b"answer".to_vec())));
        assert!(rest.contains(&(None, FIN, Vec::new())));
        drop(client);
        serving.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn frames_that_make_no_sense_end_the_connection() {
        for bad in [
            vec![0x80, 2, 0, 1, 0, 0, 0, 0],
            vec![0x80, 3, 0, 1, 0, 0, 0, 2, 0, 0],
            vec![0, 0, 0, 1, 0, 0xff, 0xff, 0xff],
            vec![0x80, 3, 0, 6, 0, 0, 0, 0],
        ] {
            let (mut client, server) = tokio::io::duplex(1 << 16);
            let (sender, _streams) = mpsc::channel(1);
            client.write_all(&bad).await.unwrap();
            assert!(serve(server, sender).await.is_err(), "{bad:?}");
        }
    }
}
