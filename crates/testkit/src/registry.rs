//! A registry of images on this machine, for tests: it has what it was given, answers over plain HTTP, and
//! remembers what it was asked. Its threads end with the process.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use sha2::{Digest as _, Sha256};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";

/// A registry that runs.
#[derive(Debug)]
pub struct Registry {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// A kind and a content for every path.
    content: BTreeMap<String, (String, Vec<u8>)>,
    /// Methods and paths, in order.
    requests: Vec<String>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of some content, as registries have it.
pub fn digest(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let hex: Vec<String> = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{}", hex.concat())
}

impl Registry {
    /// A registry that has nothing yet.
    pub fn start() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let served = Arc::clone(&served);
                std::thread::spawn(move || answer(stream, &served));
            }
        });
        Ok(Self { address, shared })
    }

    /// `127.0.0.1:port`: the first part of the names of its images.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it was asked so far, as `GET /v2/…`.
    pub fn requests(&self) -> Vec<String> {
        self.shared.state().requests.clone()
    }

    /// Has it serve a content at a path.
    pub fn put(&self, path: impl Into<String>, kind: &str, body: Vec<u8>) {
        let mut state = self.shared.state();
        state.content.insert(path.into(), (kind.to_owned(), body));
    }

    /// Has it serve a manifest under its digest and, if it has one, a tag.
    pub fn put_manifest(&self, repository: &str, tag: Option<&str>, kind: &str, body: &[u8]) {
        let at = format!("/v2/{repository}/manifests");
        self.put(format!("{at}/{}", digest(body)), kind, body.to_vec());
        if let Some(tag) = tag {
            self.put(format!("{at}/{tag}"), kind, body.to_vec());
        }
    }

    /// Has it serve a blob.
    pub fn put_blob(&self, repository: &str, kind: &str, body: Vec<u8>) {
        let path = format!("/v2/{repository}/blobs/{}", digest(&body));
        self.put(path, kind, body);
    }

    /// An image without layers for one platform: enough to see what it is for. The platform is OCI's text with
    /// the build behind a colon, as `windows/amd64:10.0.20348.1`.
    pub fn put_image(&self, repository: &str, tag: Option<&str>, platform: &str) -> String {
        let config = format!(
            r#"{{{},"rootfs":{{"type":"layers","diff_ids":[]}}}}"#,
            platform_fields(platform)
        );
        let manifest = format!(
            r#"{{"schemaVersion":2,"mediaType":"{MANIFEST}","config":{{"mediaType":"{CONFIG}","digest":"{}","size":{}}},"layers":[]}}"#,
            digest(config.as_bytes()),
            config.len()
        );
        self.put_blob(repository, CONFIG, config.into_bytes());
        self.put_manifest(repository, tag, MANIFEST, manifest.as_bytes());
        format!(
            r#"{{"mediaType":"{MANIFEST}","digest":"{}","size":{},"platform":{{{}}}}}"#,
            digest(manifest.as_bytes()),
            manifest.len(),
            platform_fields(platform)
        )
    }

    /// An index of images for several platforms.
    pub fn put_index(&self, repository: &str, tag: &str, platforms: &[&str]) {
        let entries: Vec<String> = platforms
            .iter()
            .map(|platform| self.put_image(repository, None, platform))
            .collect();
        let index = format!(
            r#"{{"schemaVersion":2,"mediaType":"{INDEX}","manifests":[{}]}}"#,
            entries.join(",")
        );
        self.put_manifest(repository, Some(tag), INDEX, index.as_bytes());
    }
}

/// The fields of a platform in JSON.
fn platform_fields(platform: &str) -> String {
    let (system, version) = match platform.split_once(':') {
        Some((system, version)) => (system, format!(r#","os.version":"{version}""#)),
        None => (platform, String::new()),
    };
    let (os, architecture) = system.split_once('/').unwrap_or((system, "amd64"));
    format!(r#""os":"{os}","architecture":"{architecture}"{version}"#)
}

/// Answers all requests of a connection.
fn answer(stream: TcpStream, shared: &Shared) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut request = String::new();
        if reader.read_line(&mut request).ok()? == 0 {
            return None;
        }
        let mut line = String::new();
        while reader.read_line(&mut line).ok()? > 2 {
            line.clear();
        }
        let mut words = request.split(' ');
        let (method, path) = (words.next()?, words.next()?);
        // A mirror is told whom it stands for behind a question mark.
        let path = path.split('?').next()?;
        let found = {
            let mut state = shared.state();
            state.requests.push(format!("{method} {path}"));
            state.content.get(path).cloned()
        };
        let status = match &found {
            None if path != "/v2/" => "404 Not Found",
            _ => "200 OK",
        };
        let (kind, body) = found.unwrap_or_else(|| ("text/plain".to_owned(), Vec::new()));
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
             Docker-Content-Digest: {}\r\n\r\n",
            body.len(),
            digest(&body)
        );
        let stream = reader.get_mut();
        stream.write_all(head.as_bytes()).ok()?;
        if method == "GET" {
            stream.write_all(&body).ok()?;
        }
    }
}
