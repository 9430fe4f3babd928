//! The gate as clients meet it: who asks too much is told when to come back, and others notice nothing. Invariant:
//! no test counts seconds; a place is held until the test gives it back.

use axum::body::Body;
use http::{Request, header};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use transom_api::Settings;
use transom_api::access::limits::Limits;

use crate::raw::{Answer, Client, request};
use crate::tls::{Running, any_port};

async fn start(folder: &tempfile::TempDir, limits: Limits) -> Running {
    let settings = Settings {
        limits,
        ..Settings::default()
    };
    Running::with(folder, any_port(), settings).await
}

/// Whether somebody was sent away, and told when to come back.
fn is_sent_away(answer: &Answer) -> bool {
    let retry = answer.headers.get(header::RETRY_AFTER);
    let seconds = retry.and_then(|value| value.to_str().unwrap().parse::<u32>().ok());
    assert_eq!(answer.code == 429, seconds.is_some(), "{answer:?}");
    answer.code == 429
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_path_but_health_is_behind_the_gate() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(
        &folder,
        Limits {
            rate_for_each_user: 0.000_001,
            burst_for_each_user: 1.0,
            ..Limits::default()
        },
    )
    .await;
    let quiet = Client::new(&folder, &server, "quiet", &[]);
    for (number, path) in [
        "/api",
        "/apis",
        "/apis/apps/v1",
        "/openapi/v2",
        "/openapi/v3",
        "/version",
        "/metrics",
        "/transom/backup",
        "/api/v1/namespaces",
    ]
    .iter()
    .enumerate()
    {
        let noisy = Client::new(&folder, &server, &format!("noisy-{number}"), &[]);
        assert!(!is_sent_away(&noisy.get(path).await), "{path}");
        assert!(is_sent_away(&noisy.get(path).await), "{path}");
        for health in ["/livez", "/readyz", "/healthz"] {
            assert_eq!(noisy.get(health).await.code, 200, "{health}");
        }
    }
    assert_eq!(quiet.get("/api").await.code, 200);
    // Whoever keeps the cluster running is not counted.
    let admin = Client::admin(&folder, &server);
    for _ in 0..3 {
        assert_eq!(admin.get("/api/v1/namespaces").await.code, 200);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_noisy_user_does_not_keep_another_out() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(
        &folder,
        Limits {
            ordinary: 1,
            waiting_for_each_user: 1,
            ..Limits::default()
        },
    )
    .await;
    let noisy = Client::new(&folder, &server, "noisy", &[]);
    let quiet = Client::new(&folder, &server, "quiet", &[]);
    // The only place is taken by a request whose body is awaited; that the server asks for it shows that it is in.
    let body = json!({}).to_string();
    let mut holder = noisy.connect().await;
    let head = format!(
        "POST /apis/authentication.k8s.io/v1/selfsubjectreviews HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\nconnection: close\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    holder.write_all(head.as_bytes()).await.unwrap();
    let mut go_on = [0; 25];
    holder.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");

    // Of two more, one waits and the other is sent away.
    let ask = || -> Request<Body> { request("GET", "/api", Body::empty()) };
    let (one, other) = (Box::pin(noisy.send(ask())), Box::pin(noisy.send(ask())));
    let (first, waiting) = futures::future::select(one, other).await.factor_first();
    assert!(is_sent_away(&first), "{first:?}");
    // Another user may wait all the same, and gets a turn.
    let mut patient = Box::pin(quiet.send(ask()));
    assert!(futures::poll!(&mut patient).is_pending());
    holder.write_all(body.as_bytes()).await.unwrap();
    let (waiting, patient) = tokio::join!(waiting, patient);
    assert_eq!((waiting.code, patient.code), (200, 200));
    let mut answer = String::new();
    holder.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    server.stop().await;
}
