//! A small HTTP server on the loopback that does what a test tells it: it cuts connections, lies about
//! lengths, falls silent, or serves a folder properly. One request per connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use url::Url;

const LONGEST_HEAD: usize = 1 << 16;
/// A silent server ends with its test; this is for a test that forgot.
const LONGEST_SILENCE: Duration = Duration::from_mins(2);

/// What a client asked for.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Where the wanted range begins.
    pub(crate) fn start(&self) -> Option<usize> {
        let range = self.header("range")?.strip_prefix("bytes=")?;
        range.strip_suffix('-')?.parse().ok()
    }
}

/// What the server sends, byte for byte, and then.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) bytes: Vec<u8>,
    /// Neither sends nor closes any more.
    pub(crate) falls_silent: bool,
}

impl Reply {
    pub(crate) fn new(status: &str, headers: &[(&str, &str)], body: &[u8]) -> Self {
        let length = body.len().to_string();
        let mut all = vec![("Content-Length", length.as_str())];
        all.extend_from_slice(headers);
        Self::raw(status, &all, body)
    }

    /// Without a length that fits by itself.
    pub(crate) fn raw(status: &str, headers: &[(&str, &str)], body: &[u8]) -> Self {
        let headers: String = headers
            .iter()
            .flat_map(|(name, value)| [name, ": ", value, "\r\n"])
            .collect();
        let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n{headers}\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body);
        Self {
            bytes,
            falls_silent: false,
        }
    }

    /// What a proper server answers for this content.
    pub(crate) fn content(asked: &Asked, content: &[u8], tag: &str) -> Self {
        let same = asked.header("if-range").is_none_or(|asked| asked == tag);
        match asked.start() {
            Some(start) if same && start < content.len() => {
                let range = format!("bytes {start}-{}/{}", content.len() - 1, content.len());
                let headers = [("ETag", tag), ("Content-Range", range.as_str())];
                Self::new("206 Partial Content", &headers, &content[start..])
            }
            Some(_) if same => {
                let range = format!("bytes */{}", content.len());
                Self::new(
                    "416 Range Not Satisfiable",
                    &[("Content-Range", range.as_str())],
                    b"",
                )
            }
            _ => Self::new(
                "200 OK",
                &[("ETag", tag), ("Accept-Ranges", "bytes")],
                content,
            ),
        }
    }

    /// Cuts the connection after so many bytes of the body.
    pub(crate) fn cut(mut self, body: usize) -> Self {
        let head = self
            .bytes
            .windows(4)
            .position(|window| window == b"\r\n\r\n")
            .expect("a head");
        self.bytes.truncate(head + 4 + body);
        self
    }

    pub(crate) fn then_silence(mut self) -> Self {
        self.falls_silent = true;
        self
    }
}

/// Answers the nth request, counted from 0.
type Handler = dyn Fn(usize, &Asked) -> Reply + Send + Sync;

/// Ends when dropped.
pub(crate) struct Server {
    pub(crate) url: Url,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub(crate) async fn start(
        handler: impl Fn(usize, &Asked) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("an address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let task = tokio::spawn(accept(listener, Arc::new(handler), Arc::clone(&asked)));
        Self {
            url: Url::parse(&format!("http://{address}/")).expect("an address"),
            asked,
            task,
        }
    }

    /// Serves the files below a folder.
    pub(crate) async fn of_folder(folder: &Utf8Path) -> Self {
        let folder = folder.to_owned();
        Self::start(move |_, asked| serve_file(&folder, asked)).await
    }

    pub(crate) fn url(&self, path: &str) -> Url {
        self.url.join(path).expect("an address")
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("not poisoned").clone()
    }
}

fn serve_file(folder: &Utf8Path, asked: &Asked) -> Reply {
    let path = decode(asked.path.trim_start_matches('/'));
    assert!(!path.contains(".."), "{path}");
    let file: Utf8PathBuf = folder.join(path);
    match fs_err::read(&file) {
        Ok(content) => {
            let tag = format!(
                "\"{}-{}\"",
                content.len(),
                content.iter().map(|b| u64::from(*b)).sum::<u64>()
            );
            Reply::content(asked, &content, &tag)
        }
        Err(_) => Reply::new("404 Not Found", &[], b"no such file"),
    }
}

/// Undoes the percent-encoding of a path.
fn decode(path: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        rest = more;
        if *first == b'%' {
            let digits = std::str::from_utf8(&more[..2]).expect("two digits");
            bytes.push(u8::from_str_radix(digits, 16).expect("two digits"));
            rest = &more[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).expect("text")
}

async fn accept(listener: TcpListener, handler: Arc<Handler>, asked: Arc<Mutex<Vec<Asked>>>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (handler, asked) = (Arc::clone(&handler), Arc::clone(&asked));
        connections.spawn(async move {
            // A client that goes away is its own affair.
            let _ = answer(stream, &*handler, &asked).await;
        });
    }
}

async fn answer(
    mut stream: TcpStream,
    handler: &Handler,
    asked: &Mutex<Vec<Asked>>,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < LONGEST_HEAD {
        head.push(stream.read_u8().await?);
    }
    let request = parse(&String::from_utf8_lossy(&head));
    let number = {
        let mut asked = asked.lock().expect("not poisoned");
        asked.push(request.clone());
        asked.len() - 1
    };
    let reply = handler(number, &request);
    stream.write_all(&reply.bytes).await?;
    stream.flush().await?;
    if reply.falls_silent {
        tokio::time::sleep(LONGEST_SILENCE).await;
    }
    stream.shutdown().await
}

fn parse(head: &str) -> Asked {
    let mut lines = head.lines();
    let path = lines
        .next()
        .and_then(|line| line.split(' ').nth(1))
        .unwrap_or_default()
        .to_owned();
    let headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    Asked { path, headers }
}
