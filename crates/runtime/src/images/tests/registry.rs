//! A registry of one image, as small as one can be, that makes trouble on demand.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::Digest;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The first answer with a layer breaks off in the middle.
    CutBlobsOnce,
    WrongLayer,
    NeedsPassword,
    OtherPlatform,
    /// The image has its layer twice.
    RepeatedLayer,
}

/// The parts of one image.
struct Parts {
    layer: Vec<u8>,
    configuration: Vec<u8>,
    manifest: Vec<u8>,
    index: Vec<u8>,
}

fn parts(platform: &serde_json::Value, copies: usize) -> Parts {
    let mut archive = tar::Builder::new(Vec::new());
    // Not compressible, so that half of it is a lot.
    let mut state = 1_u32;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    })
    .take(300_000)
    .collect();
    let mut header = tar::Header::new_gnu();
    header.set_size(noise.len() as u64);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    archive
        .append_data(&mut header, "noise", noise.as_slice())
        .expect("an entry");
    let layer = archive.into_inner().expect("an archive");
    let configuration = json!({"os": "linux", "architecture": "amd64", "config": {"User": "app"},
        "rootfs": {"type": "layers", "diff_ids": vec![Digest::of(&layer); copies]}});
    let configuration = configuration.to_string().into_bytes();
    let descriptor = json!({"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": Digest::of(&layer), "size": layer.len()});
    let manifest = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": Digest::of(&configuration), "size": configuration.len()},
        "layers": vec![descriptor; copies]});
    let manifest = manifest.to_string().into_bytes();
    let index = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": Digest::of(&manifest),
            "size": manifest.len(), "platform": platform}]});
    Parts {
        layer,
        configuration,
        manifest,
        index: index.to_string().into_bytes(),
    }
}

fn here() -> serde_json::Value {
    json!({"os": "linux", "architecture": "amd64"})
}

fn pack(files: &[(String, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        archive
            .append_data(&mut header, path, *content)
            .expect("an entry");
    }
    archive.into_inner().expect("an archive")
}

/// An OCI layout.
pub(super) fn layout_archive() -> Vec<u8> {
    let parts = parts(&here(), 1);
    let blob = |content: &[u8]| format!("blobs/sha256/{}", Digest::of(content).hex());
    pack(&[
        (
            "oci-layout".to_owned(),
            br#"{"imageLayoutVersion": "1.0.0"}"#,
        ),
        (blob(&parts.layer), &parts.layer),
        (blob(&parts.configuration), &parts.configuration),
        (blob(&parts.manifest), &parts.manifest),
        ("index.json".to_owned(), &parts.index),
    ])
}

/// What `docker save` writes.
pub(super) fn saved_archive() -> Vec<u8> {
    let parts = parts(&here(), 1);
    let manifest =
        json!([{"Config": "c.json", "RepoTags": null, "Layers": ["l/layer.tar"]}]).to_string();
    pack(&[
        ("l/layer.tar".to_owned(), &parts.layer),
        ("c.json".to_owned(), &parts.configuration),
        ("manifest.json".to_owned(), manifest.as_bytes()),
    ])
}

pub(super) struct Registry {
    pub(super) address: String,
    shared: Arc<Shared>,
    task: tokio::task::JoinHandle<()>,
}

struct Shared {
    parts: Parts,
    troubles: Vec<Trouble>,
    cuts: AtomicUsize,
    sent: AtomicUsize,
    /// Who asked, as he said it.
    asked_as: Mutex<BTreeSet<String>>,
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Registry {
    pub(super) async fn start(troubles: &[Trouble]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let platform = if troubles.contains(&Trouble::OtherPlatform) {
            json!({"os": "windows", "architecture": "amd64", "os.version": "10.0.20348.1"})
        } else {
            here()
        };
        let copies = 1 + usize::from(troubles.contains(&Trouble::RepeatedLayer));
        let shared = Arc::new(Shared {
            parts: parts(&platform, copies),
            troubles: troubles.to_vec(),
            cuts: AtomicUsize::new(0),
            sent: AtomicUsize::new(0),
            asked_as: Mutex::default(),
        });
        let served = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&served)));
            }
        });
        Self {
            address,
            shared,
            task,
        }
    }

    pub(super) fn bytes_of_layers(&self) -> usize {
        self.shared.sent.load(Ordering::Relaxed)
    }

    pub(super) fn asked_as(&self) -> Vec<String> {
        let asked = self.shared.asked_as.lock().expect("no panic");
        asked.iter().cloned().collect()
    }

    pub(super) fn layer_length(&self) -> usize {
        self.shared.parts.layer.len()
    }
}

/// One request per connection.
async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let mut stream = BufReader::new(stream);
    let (mut first, mut range, mut authorization) = (String::new(), 0, String::new());
    stream.read_line(&mut first).await.expect("a request");
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.expect("a header");
        let lower = line.trim().to_ascii_lowercase();
        if lower.is_empty() {
            break;
        }
        if let Some(value) = lower.strip_prefix("range: bytes=") {
            range = value
                .trim_end_matches('-')
                .split('-')
                .next()
                .and_then(|start| start.parse().ok())
                .unwrap_or(0);
        }
        if lower.starts_with("authorization: ") {
            authorization = line.trim()["authorization: ".len()..].to_owned();
        }
    }
    // A mirror is told whom it stands for behind a question mark.
    let path = first.split_whitespace().nth(1).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default().to_owned();
    let (head, body) = answer(&shared, &path, range, &authorization);
    let mut target = stream.into_inner();
    // Whoever hung up does not need the rest.
    drop(target.write_all(head.as_bytes()).await);
    if !first.starts_with("HEAD ") {
        drop(target.write_all(&body).await);
    }
    drop(target.shutdown().await);
}

fn answer(shared: &Shared, path: &str, range: usize, authorization: &str) -> (String, Vec<u8>) {
    let parts = &shared.parts;
    let mut asked = shared.asked_as.lock().expect("no panic");
    asked.insert(authorization.to_owned());
    drop(asked);
    // `me:right`
    if shared.troubles.contains(&Trouble::NeedsPassword) && authorization != "Basic bWU6cmlnaHQ=" {
        let head = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"here\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        return (head.to_owned(), Vec::new());
    }
    let ok = |kind: &str, body: &[u8]| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nDocker-Content-Digest: {}\r\nConnection: close\r\n\r\n",
            body.len(),
            Digest::of(body)
        );
        (head, body.to_vec())
    };
    let is = |content: &[u8]| path.ends_with(Digest::of(content).as_str());
    if path == "/v2/" {
        return ok("application/json", b"{}");
    }
    if path.ends_with("/manifests/1") {
        return ok("application/vnd.oci.image.index.v1+json", &parts.index);
    }
    if is(&parts.manifest) || path.ends_with("/manifests/single") {
        return ok(
            "application/vnd.oci.image.manifest.v1+json",
            &parts.manifest,
        );
    }
    if is(&parts.configuration) {
        return ok("application/octet-stream", &parts.configuration);
    }
    if !is(&parts.layer) {
        return (
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned(),
            Vec::new(),
        );
    }
    let mut body = parts.layer[range..].to_vec();
    if shared.troubles.contains(&Trouble::WrongLayer) {
        body[1000] ^= 1;
    }
    let status = if range > 0 {
        "206 Partial Content"
    } else {
        "200 OK"
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    if shared.troubles.contains(&Trouble::CutBlobsOnce)
        && shared.cuts.fetch_add(1, Ordering::Relaxed) == 0
    {
        body.truncate(body.len() / 2);
    }
    shared.sent.fetch_add(body.len(), Ordering::Relaxed);
    (head, body)
}
