//! From frames of a keeper to the streams of a session, and back.

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, SimplexStream, WriteHalf};
use tokio::sync::oneshot;
use transom_host::ipc::Stream;

use super::keeper::protocol::{Frame, Reply, read_frame, write_frame};
use crate::{Attach, RuntimeError, Session};

const BUFFER: usize = 64 << 10;
const CHUNK: usize = 32 << 10;

/// Carries the streams of a program that its keeper has begun to send.
pub(super) fn begin(stream: Stream, wanted: Attach) -> Session {
    let (reader, writer) = tokio::io::split(stream);
    let (input, their_input) = tokio::io::simplex(BUFFER);
    let (output, their_output) = tokio::io::duplex(BUFFER);
    let (errors, their_errors) = tokio::io::duplex(BUFFER);
    let (end, ended) = oneshot::channel();
    tokio::spawn(async move {
        let mut end = end;
        let carried = carry_out(reader, their_output, their_errors);
        tokio::select! {
            code = carried => {
                // Nobody may be waiting.
                let _ = end.send(code);
            }
            // The session was dropped: the connection goes with it.
            () = end.closed() => {}
            never = carry_in(input, writer, wanted.stdin) => match never {},
        }
    });
    Session {
        input: wanted.stdin.then(|| Box::new(their_input) as _),
        output: wanted.stdout.then(|| Box::new(output) as _),
        errors: wanted.stderr.then(|| Box::new(errors) as _),
        resize: None,
        ended: Box::pin(async move {
            ended.await.unwrap_or_else(|_| {
                let text = "the conversation with the program has ended".to_owned();
                Err(RuntimeError::Other(text))
            })
        }),
    }
}

/// Takes what a program says to who reads it. What nobody reads is thrown away.
async fn carry_out(
    mut reader: ReadHalf<Stream>,
    output: DuplexStream,
    errors: DuplexStream,
) -> Result<i32, RuntimeError> {
    let (mut output, mut errors) = (Some(output), Some(errors));
    loop {
        let frame = read_frame(&mut reader).await;
        match frame.map_err(|error| RuntimeError::io("hear from the keeper", error))? {
            Some(Frame::Output(bytes)) => give(&mut output, &bytes).await,
            Some(Frame::Errors(bytes)) => give(&mut errors, &bytes).await,
            Some(frame) => {
                let reply = frame.parse::<Reply>();
                match reply.map_err(|error| RuntimeError::io("understand the keeper", error))? {
                    Reply::Ended { exit_code } => return Ok(exit_code),
                    Reply::Failed { cause } => return Err(RuntimeError::Other(cause)),
                    _ => {}
                }
            }
            None => {
                let text = "the keeper of the container is gone".to_owned();
                return Err(RuntimeError::Other(text));
            }
        }
    }
}

async fn give(to: &mut Option<DuplexStream>, bytes: &[u8]) {
    if let Some(stream) = to
        && stream.write_all(bytes).await.is_err()
    {
        *to = None;
    }
}

/// Takes input to the program. Never returns: whether there is more input says nothing about the program.
async fn carry_in(
    mut input: ReadHalf<SimplexStream>,
    mut writer: WriteHalf<Stream>,
    wanted: bool,
) -> std::convert::Infallible {
    if !wanted {
        return std::future::pending().await;
    }
    let mut buffer = vec![0; CHUNK];
    loop {
        let frame = match input.read(&mut buffer).await {
            Ok(0) | Err(_) => Frame::InputEnd,
            Ok(read) => Frame::Input(Bytes::copy_from_slice(&buffer[..read])),
        };
        if write_frame(&mut writer, &frame).await.is_err() || frame == Frame::InputEnd {
            break;
        }
    }
    std::future::pending().await
}
