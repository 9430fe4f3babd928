//! The smallest HTTP client that a test needs: one GET, plain, bounded in time and size. It speaks
//! HTTP/1.0, so that an answer always ends where the connection ends.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The largest answer that is read.
const LARGEST: u64 = 16 << 20;

/// The answer of a web server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub body: String,
}

/// Splits `http://host[:port][/path]` into host, port and path.
fn split(url: &str) -> Result<(&str, u16, &str)> {
    let rest = url
        .strip_prefix("http://")
        .with_context(|| format!("`{url}` does not start with http://"))?;
    let (authority, path) = match rest.find('/') {
        Some(start) => rest.split_at(start),
        None => (rest, "/"),
    };
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (
            host,
            port.parse()
                .with_context(|| format!("`{port}` is no port"))?,
        ),
        None => (authority, 80),
    };
    if host.is_empty() {
        bail!("`{url}` names no host");
    }
    Ok((host, port, path))
}

/// Gets `url` from this thread's network; `look_up` knows the address of a host name.
pub(crate) fn get(url: &str, look_up: impl Fn(&str) -> Result<Ipv4Addr>) -> Result<Response> {
    let (host, port, path) = split(url)?;
    let address = match host.parse() {
        Ok(address) => address,
        Err(_) => look_up(host)?,
    };
    let deadline = Instant::now() + TIMEOUT;
    let peer = SocketAddr::from((address, port));
    let mut stream = TcpStream::connect_timeout(&peer, TIMEOUT)
        .with_context(|| format!("could not connect to {peer}"))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    write!(
        stream,
        "GET {path} HTTP/1.0\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n"
    )?;
    let answer =
        read_until(&mut stream, deadline).with_context(|| format!("no answer of {peer}"))?;
    parse(&answer).with_context(|| format!("unexpected answer of {peer}"))
}

fn read_until(stream: &mut TcpStream, deadline: Instant) -> Result<Vec<u8>> {
    let mut answer = Vec::new();
    let mut piece = [0; 16384];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            bail!("not complete after {TIMEOUT:?}");
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece)? {
            0 => return Ok(answer),
            length => answer.extend_from_slice(&piece[..length]),
        }
        if answer.len() as u64 > LARGEST {
            bail!("longer than {LARGEST} bytes");
        }
    }
}

fn parse(answer: &[u8]) -> Result<Response> {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text
        .split_once("\r\n\r\n")
        .context("no end of the header")?;
    let status_line = head.lines().next().unwrap_or_default();
    let status = match status_line.split(' ').collect::<Vec<_>>().as_slice() {
        [version, status, ..] if version.starts_with("HTTP/1.") => status.parse().ok(),
        _ => None,
    };
    let status = status.with_context(|| format!("`{status_line}` is no status line"))?;
    Ok(Response {
        status,
        body: body.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_split_into_host_port_and_path() {
        assert_eq!(
            split("http://alpha:8080/a/b?c").unwrap(),
            ("alpha", 8080, "/a/b?c")
        );
        assert_eq!(split("http://alpha").unwrap(), ("alpha", 80, "/"));
        for bad in [
            "alpha/x",
            "https://alpha/",
            "http:///x",
            "http://:80/",
            "http://a:99999/",
        ] {
            assert!(split(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_answer_is_a_status_and_a_body() {
        let response = parse(b"HTTP/1.1 404 Not Found\r\nA: b\r\n\r\nnothing\r\n\r\nhere").unwrap();
        assert_eq!(
            response,
            Response {
                status: 404,
                body: "nothing\r\n\r\nhere".to_owned()
            }
        );
    }

    #[test]
    fn what_is_no_http_is_refused() {
        for bad in [
            "",
            "HTTP/1.1 200 OK",
            "SSH-2.0 200\r\n\r\n",
            "HTTP/1.1 many\r\n\r\n",
        ] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
