//! Conversations on this machine, over whatever the system has for them.
#![expect(
    clippy::unwrap_used,
    reason = "functions beside the tests are tests too, which clippy does not know"
)]

use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use transom_host::ipc::{
    Access, BindError, ConnectError, Endpoint, LineError, LineStream, Listener, Stream, connect,
};

const PATIENCE: Duration = Duration::from_mins(1);
const LIMIT: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Message {
    number: u32,
    text: String,
}

fn message(number: u32) -> Message {
    Message {
        number,
        text: "grün\n日本".to_owned(),
    }
}

struct Place {
    _guard: tempfile::TempDir,
    folder: Utf8PathBuf,
}

impl Place {
    fn new() -> Self {
        let guard = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(guard.path()).unwrap().to_owned();
        Self {
            _guard: guard,
            folder,
        }
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::in_directory(&self.folder, "control")
    }
}

fn bind(endpoint: &Endpoint) -> Listener {
    Listener::bind(endpoint, Access::OwnerOnly).unwrap()
}

async fn lines(endpoint: &Endpoint) -> LineStream<Stream> {
    LineStream::new(connect(endpoint, PATIENCE).await.unwrap(), LIMIT)
}

/// Answers each client's messages with the same message, forever.
async fn echo(mut listener: Listener) {
    loop {
        let stream = listener.accept().await.unwrap();
        tokio::spawn(async move {
            let mut lines = LineStream::new(stream, LIMIT);
            while let Some(message) = lines.receive::<Message>().await.unwrap() {
                lines.send(&message).await.unwrap();
            }
        });
    }
}

#[tokio::test]
async fn many_clients_talk_at_once() {
    let place = Place::new();
    let server = tokio::spawn(echo(bind(&place.endpoint())));
    let clients: Vec<_> = (0..40)
        .map(|number| {
            let endpoint = place.endpoint();
            tokio::spawn(async move {
                let mut lines = lines(&endpoint).await;
                for step in 0..5 {
                    let sent = message(number * 10 + step);
                    lines.send(&sent).await.unwrap();
                    let answer = lines.receive::<Message>().await.unwrap();
                    assert_eq!(answer, Some(sent));
                }
            })
        })
        .collect();
    for client in clients {
        tokio::time::timeout(PATIENCE, client)
            .await
            .unwrap()
            .unwrap();
    }
    server.abort();
}

#[tokio::test]
async fn a_second_listener_is_refused_and_the_first_goes_on() {
    let place = Place::new();
    let server = tokio::spawn(echo(bind(&place.endpoint())));
    let error = Listener::bind(&place.endpoint(), Access::OwnerOnly).unwrap_err();
    assert!(matches!(error, BindError::InUse { .. }), "{error:?}");
    let mut lines = lines(&place.endpoint()).await;
    lines.send(&message(1)).await.unwrap();
    assert_eq!(lines.receive().await.unwrap(), Some(message(1)));
    server.abort();
}

#[tokio::test]
async fn a_client_of_nobody_is_told_at_once() {
    let place = Place::new();
    let started = Instant::now();
    let missing = Endpoint::in_directory(&place.folder.join("missing"), "control");
    for endpoint in [place.endpoint(), missing] {
        let error = connect(&endpoint, PATIENCE).await.unwrap_err();
        assert!(
            matches!(error, ConnectError::NobodyListens { .. }),
            "{error:?}"
        );
        assert!(error.to_string().contains(&endpoint.to_string()));
    }
    assert!(started.elapsed() < PATIENCE / 2);
}

#[tokio::test]
async fn a_listener_comes_back_where_another_was() {
    let place = Place::new();
    for round in 0..3 {
        let server = tokio::spawn(echo(bind(&place.endpoint())));
        let mut lines = lines(&place.endpoint()).await;
        lines.send(&message(round)).await.unwrap();
        assert_eq!(lines.receive().await.unwrap(), Some(message(round)));
        drop(lines);
        server.abort();
        assert!(server.await.unwrap_err().is_cancelled());
        let deadline = Instant::now() + PATIENCE;
        // The conversation of the last client may hold the place for a moment longer.
        while !matches!(
            connect(&place.endpoint(), Duration::ZERO).await,
            Err(ConnectError::NobodyListens { .. })
        ) {
            assert!(Instant::now() < deadline, "the listener does not go away");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test]
async fn a_line_that_is_too_long_is_refused_by_both_sides() {
    let place = Place::new();
    let mut listener = bind(&place.endpoint());
    let mut client = connect(&place.endpoint(), PATIENCE).await.unwrap();
    let mut server = LineStream::new(listener.accept().await.unwrap(), LIMIT);
    let long = Message {
        number: 1,
        text: "x".repeat(LIMIT),
    };
    let error = server.send(&long).await.unwrap_err();
    assert!(
        matches!(error, LineError::TooLong { limit: LIMIT }),
        "{error:?}"
    );
    assert!(error.to_string().contains("1000"));
    client.write_all(&vec![b'x'; 4 * LIMIT]).await.unwrap();
    let error = server.receive::<Message>().await.unwrap_err();
    assert!(
        matches!(error, LineError::TooLong { limit: LIMIT }),
        "{error:?}"
    );
}

#[tokio::test]
async fn broken_json_is_refused_and_the_next_line_is_read() {
    let place = Place::new();
    let mut listener = bind(&place.endpoint());
    let mut client = connect(&place.endpoint(), PATIENCE).await.unwrap();
    let mut server = LineStream::new(listener.accept().await.unwrap(), LIMIT);
    client.write_all(b"{not json}\n").await.unwrap();
    let good = serde_json::to_string(&message(7)).unwrap() + "\n";
    client.write_all(good.as_bytes()).await.unwrap();
    let error = server.receive::<Message>().await.unwrap_err();
    assert!(matches!(error, LineError::Broken { .. }), "{error:?}");
    assert_eq!(server.receive().await.unwrap(), Some(message(7)));
}

#[tokio::test]
async fn a_client_that_hangs_up_ends_the_conversation() {
    let place = Place::new();
    let mut listener = bind(&place.endpoint());
    let client = connect(&place.endpoint(), PATIENCE).await.unwrap();
    let mut server = LineStream::new(listener.accept().await.unwrap(), LIMIT);
    drop(client);
    assert_eq!(server.receive::<Message>().await.unwrap(), None);

    let mut client = connect(&place.endpoint(), PATIENCE).await.unwrap();
    let mut server = LineStream::new(listener.accept().await.unwrap(), LIMIT);
    client.write_all(b"{\"number\":").await.unwrap();
    client.flush().await.unwrap();
    // The server has read the half before the client goes.
    let half = tokio::time::timeout(Duration::from_millis(100), server.receive::<Message>()).await;
    assert!(half.is_err(), "half a message is no message");
    drop(client);
    let error = server.receive::<Message>().await.unwrap_err();
    assert!(matches!(error, LineError::Truncated), "{error:?}");
}

#[tokio::test]
async fn a_client_finds_a_place_while_another_is_served() {
    let place = Place::new();
    let mut listener = bind(&place.endpoint());
    let _first = connect(&place.endpoint(), PATIENCE).await.unwrap();
    let _served = listener.accept().await.unwrap();
    // Nobody accepts now, and still the next client gets in.
    let mut second = connect(&place.endpoint(), PATIENCE).await.unwrap();
    second.write_all(b"x").await.unwrap();
    let mut served = listener.accept().await.unwrap();
    assert_eq!(served.read_u8().await.unwrap(), b'x');
}

#[tokio::test]
async fn a_client_that_left_before_it_was_accepted_does_no_harm() {
    let place = Place::new();
    let mut listener = bind(&place.endpoint());
    drop(connect(&place.endpoint(), PATIENCE).await.unwrap());
    let endpoint = place.endpoint();
    let second = tokio::spawn(async move {
        let mut stream = connect(&endpoint, PATIENCE).await.unwrap();
        stream.write_all(b"x").await.unwrap();
        stream
    });
    let served = async {
        // The first may show up as a conversation that is over.
        while listener.accept().await.unwrap().read_u8().await.is_err() {}
    };
    tokio::time::timeout(PATIENCE, served).await.unwrap();
    second.await.unwrap();
}

#[tokio::test]
async fn the_peer_is_this_process() {
    let place = Place::new();
    let mut listener = bind(&place.endpoint());
    let client = connect(&place.endpoint(), PATIENCE).await.unwrap();
    let server = listener.accept().await.unwrap();
    assert_eq!(server.peer().pid, Some(std::process::id()));
    assert_eq!(server.peer().user.is_some(), cfg!(unix));
    assert_eq!(client.peer().user, server.peer().user);
}

#[tokio::test]
async fn a_very_long_folder_is_no_obstacle() {
    let place = Place::new();
    let deep = (0..6).fold(place.folder.clone(), |path, _| {
        path.join("a long name ".repeat(3).trim())
    });
    fs_err::create_dir_all(&deep).unwrap();
    assert!(deep.as_str().len() > 200);
    let endpoint = Endpoint::in_directory(&deep, "control");
    let server = tokio::spawn(echo(bind(&endpoint)));
    let mut lines = lines(&endpoint).await;
    lines.send(&message(3)).await.unwrap();
    assert_eq!(lines.receive().await.unwrap(), Some(message(3)));
    server.abort();
}

#[cfg(target_os = "linux")]
mod linux {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[tokio::test]
    async fn the_socket_of_a_dead_listener_is_replaced() {
        let place = Place::new();
        let path = place.folder.join("control.sock");
        // As a killed process leaves it: a socket file that nobody listens at.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let error = connect(&place.endpoint(), PATIENCE).await.unwrap_err();
        assert!(
            matches!(error, ConnectError::NobodyListens { .. }),
            "{error:?}"
        );
        let listener = bind(&place.endpoint());
        connect(&place.endpoint(), PATIENCE).await.unwrap();
        drop(listener);
        assert!(!path.exists(), "the socket is removed at the end");
    }

    #[tokio::test]
    async fn a_stranger_who_listens_is_not_replaced() {
        let place = Place::new();
        let path = place.folder.join("control.sock");
        let _stranger = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let error = Listener::bind(&place.endpoint(), Access::OwnerOnly).unwrap_err();
        assert!(matches!(error, BindError::InUse { .. }), "{error:?}");
    }

    #[tokio::test]
    async fn the_socket_belongs_to_its_owner_only() {
        let place = Place::new();
        let _listener = bind(&place.endpoint());
        let metadata = fs_err::metadata(place.folder.join("control.sock")).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    }

    #[tokio::test]
    async fn a_missing_folder_is_named() {
        let place = Place::new();
        let endpoint = Endpoint::in_directory(&place.folder.join("missing"), "control");
        let error = Listener::bind(&endpoint, Access::OwnerOnly).unwrap_err();
        assert!(matches!(error, BindError::System { .. }), "{error:?}");
        assert!(error.to_string().contains("missing"));
    }
}
