//! A small web server and client: the workload of tests on both systems. It says on standard output what
//! it does, one line each.
//!
//! ```text
//! testkit-echo serve --port 8080 --name X [--ignore-input]   answers every request with X
//! testkit-echo get http://host:8080/path                     prints the body of the answer
//! testkit-echo act STEP…                                     does the steps, see `act`
//! ```
//!
//! The server prints `listening on <address>`, tells `NOTIFY_SOCKET` that it is ready, and on
//! `SIGTERM`, or when the pipe that is its input ends, prints `stopping` and exits with 0.
//!
//! By the name of `tar` it packs and unpacks, see `archive`.

mod act;
mod archive;
mod ending;

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

/// How long a peer may take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The largest request or answer that is read.
const LARGEST: u64 = 1 << 20;
const USAGE: &str =
    "usage: testkit-echo serve --port N --name X [--ignore-input] | get URL | act STEP…";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "testkit-echo: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if archive::is_asked_for() {
        return archive::run(&arguments);
    }
    match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["serve", "--port", port, "--name", name, rest @ ..] if ignores_input(rest).is_some() => {
            serve(port.parse()?, name, ignores_input(rest) == Some(true))
        }
        ["get", url] => get(url),
        ["act", steps @ ..] => act::run(steps),
        _ => bail!(USAGE),
    }
}

fn ignores_input(rest: &[&str]) -> Option<bool> {
    match rest {
        [] => Some(false),
        ["--ignore-input"] => Some(true),
        _ => None,
    }
}

fn say(line: &str) -> Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()?;
    Ok(())
}

fn serve(port: u16, name: &str, ignore_input: bool) -> Result<()> {
    // First of all, so that no signal finds the process unprepared.
    let ending = ending::Ending::watch(ignore_input)?;
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))
        .with_context(|| format!("could not listen on port {port}"))?;
    say(&format!("listening on {}", listener.local_addr()?))?;
    let body = format!("{name}\n");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let body = body.clone();
            // A peer that goes away in the middle is its own affair.
            thread::spawn(move || answer(stream, &body));
        }
    });
    ending::report_ready()?;
    ending.wait();
    say("stopping")
}

fn answer(mut stream: TcpStream, body: &str) -> Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let length = stream.read(&mut piece)?;
        if length == 0 || request.len() as u64 > LARGEST {
            bail!("no request");
        }
        request.extend_from_slice(&piece[..length]);
    }
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    Ok(())
}

fn get(url: &str) -> Result<()> {
    let rest = url
        .strip_prefix("http://")
        .context("only http:// is known")?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let path = if path.is_empty() { "/" } else { path };
    let target = if authority.contains(':') {
        authority.to_owned()
    } else {
        format!("{authority}:80")
    };
    let mut stream =
        TcpStream::connect(&target).with_context(|| format!("could not connect to {target}"))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {authority}\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(LARGEST).read_to_string(&mut answer)?;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .context("the answer has no body")?;
    let status = head.lines().next().unwrap_or_default();
    if status.split(' ').nth(1) != Some("200") {
        bail!("{target} answered: {status}");
    }
    say(body.trim_end())
}
