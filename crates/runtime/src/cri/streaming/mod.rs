//! Streams of programs and ports, by the address that a runtime gives for them.

mod session;
mod spdy;
mod upgrade;

use std::time::Duration;

use tokio::io::AsyncWriteExt;

use session::Ending;
pub(super) use session::Wanted;
use spdy::Encoder;
use upgrade::upgrade;

use crate::{Connection, RuntimeError, Session};

const EXEC_PROTOCOL: &str = "v4.channel.k8s.io";
const FORWARD_PROTOCOL: &str = "portforward.k8s.io";
/// How long a port that refuses may take to say so. Nothing says that it does not.
const REFUSAL: Duration = Duration::from_millis(250);
const BUFFER: usize = 64 << 10;

const ERROR: u32 = 1;
const STDIN: u32 = 3;
const STDOUT: u32 = 5;
const STDERR: u32 = 7;
const RESIZE: u32 = 9;
const DATA: u32 = 3;

fn broken(error: std::io::Error) -> RuntimeError {
    RuntimeError::io("stream to the container runtime", error)
}

/// Joins the streams of a program.
pub(super) async fn run(url: &str, wanted: Wanted) -> Result<Session, RuntimeError> {
    let mut stream = upgrade(url, EXEC_PROTOCOL).await?;
    let mut encoder = Encoder::default();
    let streams = [
        (true, ERROR, "error"),
        (wanted.stdin, STDIN, "stdin"),
        (wanted.stdout, STDOUT, "stdout"),
        (wanted.stderr, STDERR, "stderr"),
        (wanted.terminal, RESIZE, "resize"),
    ];
    for (is_wanted, number, kind) in streams {
        if is_wanted {
            let frame = encoder.open(number, &[("streamtype", kind)]);
            stream.write_all(&frame).await.map_err(broken)?;
        }
    }
    Ok(session::begin(stream, wanted))
}

/// Connects to a port of a pod.
pub(super) async fn forward(url: &str, port: u16) -> Result<Connection, RuntimeError> {
    let mut stream = upgrade(url, FORWARD_PROTOCOL).await?;
    let mut encoder = Encoder::default();
    let port = port.to_string();
    for (number, kind) in [(ERROR, "error"), (DATA, "data")] {
        let headers = [
            ("streamtype", kind),
            ("port", port.as_str()),
            ("requestid", "0"),
        ];
        let frame = encoder.open(number, &headers);
        stream.write_all(&frame).await.map_err(broken)?;
    }
    // We have nothing to say on the stream of errors.
    let end = spdy::data(ERROR, &[], true);
    stream.write_all(&end).await.map_err(broken)?;
    let (ours, theirs) = tokio::io::duplex(BUFFER);
    let mut ending = session::carry_port(stream, ours);
    match tokio::time::timeout(REFUSAL, &mut ending).await {
        Ok(Ok(Ending::Failed(cause))) => {
            let refused = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, cause);
            Err(RuntimeError::io(format!("connect to port {port}"), refused))
        }
        _ => Ok(Connection(Box::new(theirs))),
    }
}
