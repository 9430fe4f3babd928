//! What a download survives, what it refuses, and what it leaves behind.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use sha2::Digest as _;
use transom_package::download::{
    Digest, DownloadError, Downloaded, Downloader, Event, Pace, Policy, Request,
};
use transom_package::hash::{hex, sha1_hex};
use url::Url;

use crate::server::{Asked, Reply, Server};

const LIMIT: u64 = 1 << 24;

/// No time passes; what would have been waited for is noted.
#[derive(Debug, Default)]
pub(crate) struct Impatience {
    pub(crate) slept: Mutex<Vec<Duration>>,
}

impl Pace for Impatience {
    fn jitter(&self) -> f64 {
        1.0
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.slept.lock().expect("not poisoned").push(duration);
        Box::pin(std::future::ready(()))
    }
}

struct Scene {
    folder: tempfile::TempDir,
    pace: Arc<Impatience>,
    policy: Policy,
}

impl Scene {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            pace: Arc::default(),
            policy: Policy {
                keep_free: 0,
                ..Policy::default()
            },
        }
    }

    fn root(&self) -> &Utf8Path {
        Utf8Path::from_path(self.folder.path()).expect("text")
    }

    fn path(&self) -> Utf8PathBuf {
        self.root().join("file")
    }

    /// Puts what an earlier process would have left.
    fn leave_part(&self, url: &Url, bytes: &[u8], tag: &str, total: usize) {
        fs_err::write(self.root().join("file.part"), bytes).expect("written");
        let url_sha256 = sha256(url.as_str().as_bytes()).as_str().to_owned();
        let state = serde_json::json!({"url_sha256": url_sha256, "validator": tag, "total": total});
        fs_err::write(self.root().join("file.part.json"), state.to_string()).expect("written");
    }

    async fn fetch(&self, request: &Request) -> Result<Downloaded, DownloadError> {
        Downloader::with_pace(self.policy.clone(), self.pace.clone())
            .expect("a client")
            .fetch(request, &|_| ())
            .await
    }

    fn request(&self, url: Url, content: &[u8]) -> Request {
        Request {
            url,
            destination: self.path(),
            digest: Some(sha256(content)),
            length: Some(content.len() as u64),
            limit: LIMIT,
        }
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs_err::read_dir(self.root())
            .expect("listed")
            .map(|entry| {
                entry
                    .expect("read")
                    .file_name()
                    .into_string()
                    .expect("text")
            })
            .collect();
        names.sort();
        names
    }

    fn pauses(&self) -> Vec<Duration> {
        self.pace.slept.lock().expect("not poisoned").clone()
    }
}

fn sha256(content: &[u8]) -> Digest {
    Digest::Sha256(hex(&sha2::Sha256::digest(content)))
}

/// Bytes that are different at every place.
fn content(length: usize) -> Vec<u8> {
    (0..length)
        .map(|n| u8::try_from(n * 7 % 251).expect("small"))
        .collect()
}

#[tokio::test]
async fn a_file_arrives_with_its_digest_and_nothing_else_is_left() {
    let scene = Scene::new();
    let body = content(3_000_000);
    let offered = body.clone();
    let server = Server::start(move |_, asked| Reply::content(asked, &offered, "\"a\"")).await;
    let seen = Mutex::new(Vec::new());
    let request = scene.request(server.url("file?token=secret"), &body);
    let got = Downloader::new(scene.policy.clone())
        .expect("a client")
        .fetch(&request, &|event| {
            seen.lock().expect("not poisoned").push(event);
        })
        .await
        .expect("fetched");
    assert_eq!(Digest::Sha256(got.sha256), sha256(&body));
    assert_eq!(got.length, 3_000_000);
    assert_eq!(fs_err::read(scene.path()).expect("read"), body);
    assert_eq!(scene.names(), ["file"]);
    let seen = seen.into_inner().expect("not poisoned");
    assert!(seen.len() >= 2, "{seen:?}");
    let all = Some(3_000_000);
    assert_eq!(
        seen.last(),
        Some(&Event::Progress {
            done: 3_000_000,
            total: all
        })
    );
}

#[tokio::test]
async fn what_is_there_already_is_not_fetched_again() {
    let scene = Scene::new();
    let server = Server::start(|_, _| panic!("asked")).await;
    fs_err::write(scene.path(), b"there").expect("written");
    let request = scene.request(server.url("file"), b"there");
    scene.fetch(&request).await.expect("there");
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn a_cut_connection_is_resumed_where_it_broke() {
    let scene = Scene::new();
    let body = content(1000);
    let offered = body.clone();
    let server = Server::start(move |number, asked| {
        let reply = Reply::content(asked, &offered, "\"a\"");
        if number < 3 { reply.cut(200) } else { reply }
    })
    .await;
    let request = scene.request(server.url("file"), &body);
    scene.fetch(&request).await.expect("fetched");
    let starts: Vec<_> = server.asked().iter().map(Asked::start).collect();
    assert_eq!(starts, [None, Some(200), Some(400), Some(600)]);
    let again = &server.asked()[1];
    assert_eq!(again.header("if-range"), Some("\"a\""));
    assert_eq!(scene.names(), ["file"]);
    // Each attempt brought something, so the pause stays the first one.
    assert_eq!(scene.pauses(), [Duration::from_millis(500); 3]);
}

#[tokio::test]
async fn a_part_of_an_earlier_process_is_resumed() {
    let scene = Scene::new();
    let body = content(1000);
    let offered = body.clone();
    let server = Server::start(move |_, asked| Reply::content(asked, &offered, "\"a\"")).await;
    let url = server.url("file");
    scene.leave_part(&url, &body[..900], "\"a\"", 1000);
    let request = scene.request(url, &body);
    scene.fetch(&request).await.expect("fetched");
    assert_eq!(server.asked()[0].start(), Some(900));
    assert_eq!(fs_err::read(scene.path()).expect("read"), body);
}

#[tokio::test]
async fn a_part_that_is_complete_is_only_checked() {
    let scene = Scene::new();
    let body = content(1000);
    let offered = body.clone();
    let server = Server::start(move |_, asked| Reply::content(asked, &offered, "\"a\"")).await;
    let url = server.url("file");
    scene.leave_part(&url, &body, "\"a\"", 1000);
    let request = scene.request(url, &body);
    scene.fetch(&request).await.expect("fetched");
    assert_eq!(server.asked().len(), 1);
    assert_eq!(scene.names(), ["file"]);
}

#[tokio::test]
async fn a_file_that_changed_between_attempts_starts_again() {
    let scene = Scene::new();
    let (old, new) = (content(1000), content(1500));
    let offered = new.clone();
    let server = Server::start(move |number, asked| match number {
        0 => Reply::content(asked, &old, "\"old\"").cut(300),
        _ => Reply::content(asked, &offered, "\"new\""),
    })
    .await;
    let mut request = scene.request(server.url("file"), &new);
    request.length = None;
    scene.fetch(&request).await.expect("fetched");
    assert_eq!(fs_err::read(scene.path()).expect("read"), new);
}

#[tokio::test]
async fn a_server_that_ignores_ranges_is_listened_to_from_the_start() {
    let scene = Scene::new();
    let body = content(1000);
    let offered = body.clone();
    let server = Server::start(move |number, _| {
        let reply = Reply::new("200 OK", &[("ETag", "\"a\"")], &offered);
        if number == 0 { reply.cut(500) } else { reply }
    })
    .await;
    let request = scene.request(server.url("file"), &body);
    scene.fetch(&request).await.expect("fetched");
    assert_eq!(server.asked()[1].start(), Some(500));
    assert_eq!(fs_err::read(scene.path()).expect("read"), body);
}

#[tokio::test]
async fn a_wrong_range_is_not_mixed_into_the_file() {
    let scene = Scene::new();
    let body = content(1000);
    let offered = body.clone();
    let server = Server::start(move |number, asked| match number {
        0 => Reply::content(asked, &offered, "\"a\"").cut(500),
        2 => Reply::content(asked, &offered, "\"a\"").cut(500),
        3 => Reply::new(
            "206 Partial Content",
            &[("Content-Range", "bytes 500-999/100")],
            &offered[500..],
        ),
        1 => Reply::new(
            "206 Partial Content",
            &[("Content-Range", "bytes 100-999/1000")],
            &offered[100..],
        ),
        _ => Reply::content(asked, &offered, "\"a\""),
    })
    .await;
    let request = scene.request(server.url("file"), &body);
    scene.fetch(&request).await.expect("fetched");
    let starts: Vec<_> = server.asked().iter().map(Asked::start).collect();
    assert_eq!(starts, [None, Some(500), None, Some(500), None]);
}

#[tokio::test]
async fn a_damaged_part_is_fetched_once_more_from_the_start() {
    let scene = Scene::new();
    let body = content(1000);
    let offered = body.clone();
    let server = Server::start(move |_, asked| Reply::content(asked, &offered, "\"a\"")).await;
    let url = server.url("file");
    scene.leave_part(&url, &[0; 900], "\"a\"", 1000);
    let request = scene.request(url, &body);
    scene.fetch(&request).await.expect("fetched");
    assert_eq!(server.asked().len(), 2);
    assert_eq!(scene.names(), ["file"]);
}

#[tokio::test]
async fn a_busy_server_is_asked_again_when_it_says() {
    let scene = Scene::new();
    let server = Server::start(|number, asked| match number {
        0 => Reply::new("503 Service Unavailable", &[("Retry-After", "7")], b""),
        1 => Reply::new("429 Too Many Requests", &[("Retry-After", "99999")], b""),
        2 => Reply::new("500 Internal Server Error", &[], b""),
        3 => Reply::new("408 Request Timeout", &[], b""),
        _ => Reply::content(asked, b"here", "\"a\""),
    })
    .await;
    let request = scene.request(server.url("file"), b"here");
    scene.fetch(&request).await.expect("fetched");
    assert_eq!(
        scene.pauses(),
        [
            Duration::from_secs(7),
            scene.policy.longest_asked_pause,
            Duration::from_secs(2),
            Duration::from_secs(4)
        ]
    );
}

#[tokio::test]
async fn a_refusal_is_final() {
    for (status, missing) in [("404 Not Found", true), ("403 Forbidden", false)] {
        let scene = Scene::new();
        let server = Server::start(move |_, _| Reply::new(status, &[], b"no")).await;
        let request = scene.request(server.url("file"), b"here");
        let error = scene.fetch(&request).await.expect_err("refused");
        assert_eq!(error.is_not_found(), missing, "{error}");
        assert_eq!(server.asked().len(), 1);
        assert!(scene.names().is_empty(), "{:?}", scene.names());
    }
}

#[tokio::test]
async fn retries_have_an_end() {
    let scene = Scene::new();
    let server = Server::start(|_, _| Reply::new("502 Bad Gateway", &[], b"")).await;
    let request = scene.request(server.url("file?token=secret"), b"here");
    let error = scene.fetch(&request).await.expect_err("given up");
    assert!(
        matches!(error, DownloadError::Unreachable { attempts: 6, .. }),
        "{error}"
    );
    assert!(!error.to_string().contains("secret"), "{error}");
    assert_eq!(server.asked().len(), 6);
    assert_eq!(scene.pauses().len(), 5);
}

#[tokio::test]
async fn attempts_that_bring_a_little_each_have_an_end_too() {
    let mut scene = Scene::new();
    scene.policy.total_attempts = 9;
    let body = content(1000);
    let offered = body.clone();
    let server =
        Server::start(move |_, asked| Reply::content(asked, &offered, "\"a\"").cut(1)).await;
    let request = scene.request(server.url("file"), &body);
    let error = scene.fetch(&request).await.expect_err("given up");
    assert!(
        matches!(error, DownloadError::Unreachable { attempts: 9, .. }),
        "{error}"
    );
    // The bytes are kept for another time.
    assert_eq!(
        fs_err::read(scene.root().join("file.part"))
            .expect("kept")
            .len(),
        9
    );
}

#[tokio::test]
async fn nobody_listening_is_an_error_that_may_pass() {
    let scene = Scene::new();
    let server = Server::start(|_, _| panic!("asked")).await;
    let url = server.url("file");
    drop(server);
    let error = scene
        .fetch(&scene.request(url, b"here"))
        .await
        .expect_err("nobody");
    assert!(error.is_transient(), "{error}");
    assert!(scene.names().is_empty(), "{:?}", scene.names());
}

#[tokio::test]
async fn a_silent_server_is_given_up_and_resumed() {
    let mut scene = Scene::new();
    scene.policy.idle_timeout = Duration::from_secs(2);
    let body = content(1000);
    let offered = body.clone();
    let server = Server::start(move |number, asked| {
        let reply = Reply::content(asked, &offered, "\"a\"");
        if number == 0 {
            reply.cut(400).then_silence()
        } else {
            reply
        }
    })
    .await;
    let request = scene.request(server.url("file"), &body);
    scene.fetch(&request).await.expect("fetched");
    assert_eq!(server.asked()[1].start(), Some(400));
}

#[tokio::test]
async fn a_wrong_digest_keeps_the_content_aside_and_names_both() {
    let scene = Scene::new();
    let server = Server::start(|_, asked| Reply::content(asked, b"evil", "\"a\"")).await;
    fs_err::write(scene.path(), b"old").expect("written");
    let request = scene.request(server.url("file"), b"good");
    let error = scene.fetch(&request).await.expect_err("wrong");
    let message = error.to_string();
    assert!(message.contains(sha256(b"evil").as_str()), "{message}");
    assert!(message.contains(sha256(b"good").as_str()), "{message}");
    assert_eq!(scene.names(), ["file", "file.corrupt"]);
    assert_eq!(fs_err::read(scene.path()).expect("read"), b"old");
    assert_eq!(
        fs_err::read(scene.root().join("file.corrupt")).expect("read"),
        b"evil"
    );
}

#[tokio::test]
async fn a_digest_of_dcos_is_sha1() {
    let scene = Scene::new();
    let server = Server::start(|_, asked| Reply::content(asked, b"good", "\"a\"")).await;
    let mut request = scene.request(server.url("file"), b"good");
    request.digest = Some(Digest::sha1(&sha1_hex(b"good")).expect("a digest"));
    request.length = None;
    let got = scene.fetch(&request).await.expect("fetched");
    assert_eq!(Digest::Sha256(got.sha256), sha256(b"good"));
    request.digest = Some(Digest::sha1(&sha1_hex(b"other")).expect("a digest"));
    let error = scene.fetch(&request).await.expect_err("wrong");
    assert!(
        matches!(
            error,
            DownloadError::Digest {
                algorithm: "sha1",
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn lies_about_the_length_are_found_out() {
    let scene = Scene::new();
    let server = Server::start(|_, asked| match asked.path.as_str() {
        "/longer" => Reply::new("200 OK", &[], b"four and more"),
        "/shorter" => Reply::raw("200 OK", &[("Content-Length", "4")], b"fo"),
        _ => Reply::raw("200 OK", &[("Content-Length", "2")], b"four"),
    })
    .await;
    let longer = scene.request(server.url("longer"), b"four");
    let error = scene.fetch(&longer).await.expect_err("longer");
    assert!(
        matches!(
            error,
            DownloadError::Length {
                expected: 4,
                found: 13,
                ..
            }
        ),
        "{error}"
    );
    let shorter = scene.request(server.url("shorter"), b"four");
    let error = scene.fetch(&shorter).await.expect_err("shorter");
    assert!(
        matches!(error, DownloadError::Unreachable { .. }),
        "{error}"
    );
    let mut cut = scene.request(server.url("cut"), b"four");
    cut.length = None;
    let error = scene.fetch(&cut).await.expect_err("cut by the server");
    assert!(matches!(error, DownloadError::Digest { .. }), "{error}");
    assert_eq!(scene.names(), ["file.corrupt"]);
}

#[tokio::test]
async fn endless_data_is_cut_off_at_the_limit() {
    let mut scene = Scene::new();
    scene.policy.idle_timeout = Duration::from_secs(30);
    let server = Server::start(|_, asked| match asked.path.as_str() {
        "/announced" => Reply::raw("200 OK", &[("Content-Length", "99999999999")], b""),
        _ => Reply::raw("200 OK", &[], &vec![0; 1 << 22]).then_silence(),
    })
    .await;
    for path in ["announced", "endless"] {
        let request = Request {
            limit: 1000,
            length: None,
            ..scene.request(server.url(path), b"small")
        };
        let error = scene.fetch(&request).await.expect_err("too much");
        assert!(
            matches!(error, DownloadError::TooLarge { limit: 1000, .. }),
            "{error}"
        );
        let error = Downloader::new(scene.policy.clone())
            .expect("a client")
            .read(&request.url, 1000)
            .await
            .expect_err("too much");
        assert!(
            matches!(error, DownloadError::TooLarge { limit: 1000, .. }),
            "{error}"
        );
    }
    assert!(scene.names().is_empty(), "{:?}", scene.names());
}

#[tokio::test]
async fn a_disk_that_is_too_small_is_noticed_before_the_transfer() {
    let mut scene = Scene::new();
    scene.policy.keep_free = u64::MAX / 2;
    let server = Server::start(|_, asked| Reply::content(asked, b"four", "\"a\"")).await;
    let request = scene.request(server.url("file"), b"four");
    let error = scene.fetch(&request).await.expect_err("no space");
    assert!(
        matches!(error, DownloadError::Space { needed: 4, .. }),
        "{error}"
    );
    assert!(scene.names().is_empty(), "{:?}", scene.names());
}

#[tokio::test]
async fn redirects_are_followed_to_an_end() {
    let scene = Scene::new();
    let server = Server::start(|_, asked| match asked.path.as_str() {
        "/once" => Reply::new("302 Found", &[("Location", "/file")], b""),
        "/round" => Reply::new("302 Found", &[("Location", "/round")], b""),
        "/away" => Reply::new("302 Found", &[("Location", "file:///etc/hostname")], b""),
        _ => Reply::content(asked, b"four", "\"a\""),
    })
    .await;
    let error = scene
        .fetch(&scene.request(server.url("round"), b"four"))
        .await
        .expect_err("round and round");
    assert!(matches!(error, DownloadError::Redirect { .. }), "{error}");
    scene
        .fetch(&scene.request(server.url("away"), b"four"))
        .await
        .expect_err("not ours to read");
    assert!(scene.names().is_empty(), "{:?}", scene.names());
    scene
        .fetch(&scene.request(server.url("once"), b"four"))
        .await
        .expect("followed");
}

#[tokio::test]
async fn files_are_copied_with_the_same_promises() {
    let scene = Scene::new();
    let source = scene.root().join("source");
    fs_err::write(&source, b"here").expect("written");
    let url = Url::from_file_path(&source).expect("an address");
    scene
        .fetch(&scene.request(url.clone(), b"here"))
        .await
        .expect("copied");
    assert_eq!(scene.names(), ["file", "source"]);
    let error = scene
        .fetch(&scene.request(url.clone(), b"else"))
        .await
        .expect_err("wrong");
    assert!(matches!(error, DownloadError::Digest { .. }), "{error}");
    let small = Request {
        limit: 3,
        digest: Some(sha256(b"x")),
        ..scene.request(url, b"here")
    };
    let error = scene.fetch(&small).await.expect_err("too large");
    assert!(matches!(error, DownloadError::TooLarge { .. }), "{error}");
    let missing = Url::from_file_path(scene.root().join("nothing")).expect("an address");
    let error = scene
        .fetch(&scene.request(missing, b"x"))
        .await
        .expect_err("missing");
    assert!(error.is_not_found(), "{error}");
    let strange = Url::parse("ftp://localhost/file").expect("an address");
    let error = scene
        .fetch(&scene.request(strange, b"x"))
        .await
        .expect_err("strange");
    assert!(matches!(error, DownloadError::Scheme { .. }), "{error}");
}

#[tokio::test]
async fn two_downloads_of_one_file_do_not_disturb_each_other() {
    let scene = Scene::new();
    let body = content(2_000_000);
    let offered = body.clone();
    let server = Server::start(move |_, asked| Reply::content(asked, &offered, "\"a\"")).await;
    let request = scene.request(server.url("file"), &body);
    let results = futures::future::join_all((0..4).map(|_| scene.fetch(&request))).await;
    for result in results {
        result.expect("fetched");
    }
    assert_eq!(server.asked().len(), 1);
    assert_eq!(fs_err::read(scene.path()).expect("read"), body);
    assert_eq!(scene.names(), ["file"]);
}

#[tokio::test]
async fn whoever_waits_for_another_download_waits_with_a_bound() {
    use transom_host::files::{Files as _, Native};
    let mut scene = Scene::new();
    scene.policy.lock_wait = Duration::from_millis(20);
    let lock = Native
        .lock(&scene.root().join("file.lock"), Duration::ZERO)
        .expect("locked");
    let server = Server::start(|_, _| panic!("asked")).await;
    let error = scene
        .fetch(&scene.request(server.url("file"), b"four"))
        .await
        .expect_err("busy");
    assert!(matches!(error, DownloadError::Busy { .. }), "{error}");
    lock.release();
}
