//! From an address to a connection that speaks SPDY.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::broken;
use crate::RuntimeError;

const LIMIT: Duration = Duration::from_secs(30);
const LONGEST_HEAD: usize = 16 << 10;

/// The host and the path of an address.
fn split(url: &str) -> Result<(&str, &str), RuntimeError> {
    let Some(rest) = url.strip_prefix("http://") else {
        let text = "streams of a container runtime over TLS: let it serve them on loopback";
        return Err(RuntimeError::NotSupported(text.to_owned()));
    };
    let slash = rest.find('/').unwrap_or(rest.len());
    let (host, path) = rest.split_at(slash);
    let is_clean = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    if host.is_empty() || !is_clean(rest) {
        return Err(RuntimeError::Other(format!(
            "{url:?} is no address of a stream"
        )));
    }
    Ok((host, if path.is_empty() { "/" } else { path }))
}

pub(super) async fn upgrade(url: &str, protocol: &str) -> Result<TcpStream, RuntimeError> {
    let (host, path) = split(url)?;
    let work = async {
        let mut stream = TcpStream::connect(host).await?;
        stream.set_nodelay(true)?;
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\
             X-Stream-Protocol-Version: {protocol}\r\nContent-Length: 0\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let head = read_head(&mut stream).await?;
        let status = head.split(' ').nth(1).unwrap_or_default();
        if status == "101" {
            return Ok(stream);
        }
        let line = head.lines().next().unwrap_or_default();
        Err(io::Error::other(format!("it answered {line:?}")))
    };
    match tokio::time::timeout(LIMIT, work).await {
        Ok(upgraded) => upgraded.map_err(broken),
        Err(_) => Err(broken(io::ErrorKind::TimedOut.into())),
    }
}

/// Reads exactly the head of an answer: what follows belongs to the streams.
async fn read_head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= LONGEST_HEAD {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the answer is too long",
            ));
        }
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_path() {
        let good = "http://127.0.0.1:41/exec/t0ken";
        assert_eq!(split(good).unwrap(), ("127.0.0.1:41", "/exec/t0ken"));
        assert_eq!(split("http://[::1]:41").unwrap(), ("[::1]:41", "/"));
        for bad in ["https://h/x", "http:///x", "http://h/x\r\nA: b", "x"] {
            assert!(split(bad).is_err(), "{bad}");
        }
    }
}
