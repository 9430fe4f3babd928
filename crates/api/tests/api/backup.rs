//! Backups over the API: one at a time, and nothing of them stays.

use std::time::Duration;

use axum::body::Body;
use camino::{Utf8Path, Utf8PathBuf};
use futures::FutureExt as _;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use serde_json::json;
use transom_api::Settings;

use crate::client::Client;

/// Larger than all that waits for a client at once.
const VALUES: usize = 4;
const VALUE: usize = 600 << 10;
const PATIENCE: Duration = Duration::from_mins(1);

async fn with_much(folder: &tempfile::TempDir) -> Client {
    let settings = Settings {
        scratch: Some(path(folder)),
        ..Settings::default()
    };
    let client = Client::with(settings).await;
    for number in 0..VALUES {
        let data = json!({"filler": "x".repeat(VALUE)});
        client.config_map(&format!("m{number}"), &data).await;
    }
    client
}

fn path(folder: &tempfile::TempDir) -> Utf8PathBuf {
    Utf8Path::from_path(folder.path()).unwrap().to_owned()
}

async fn ask(client: &Client) -> Response<Body> {
    let request = Request::builder().uri("/transom/backup");
    client.raw(request.body(Body::empty()).unwrap()).await
}

/// Asks until the place of the one backup is free.
async fn ask_until_free(client: &Client) -> Response<Body> {
    let answered = async {
        loop {
            let response = ask(client).await;
            if response.status() != 429 {
                return response;
            }
            tokio::task::yield_now().await;
        }
    };
    let answered = tokio::time::timeout(PATIENCE, answered).await;
    answered.expect("the place is never free")
}

/// Returns when the folder is empty. On Windows a file goes with the last who has it open.
async fn emptied(folder: &tempfile::TempDir) {
    let is_empty = || fs_err::read_dir(path(folder)).unwrap().next().is_none();
    let emptied = async {
        while !is_empty() {
            tokio::task::yield_now().await;
        }
    };
    let emptied = tokio::time::timeout(PATIENCE, emptied).await;
    emptied.expect("something of a backup is left");
}

#[tokio::test]
async fn one_backup_is_made_at_a_time_and_its_place_is_free_when_it_was_sent() {
    let folder = tempfile::tempdir().unwrap();
    let client = with_much(&folder).await;
    let first = ask(&client).await;
    assert_eq!(first.status(), 200);
    let second = ask(&client).await;
    assert_eq!(second.status(), 429);
    assert!(second.headers().contains_key("retry-after"));
    let body = first.into_body().collect().await.unwrap().to_bytes();
    assert!(body.len() > VALUES * VALUE);
    let third = ask_until_free(&client).await;
    assert_eq!(third.status(), 200);
    // A client that does not read on gives its place back when it is gone.
    drop(third);
    assert_eq!(ask_until_free(&client).await.status(), 200);
    emptied(&folder).await;
}

#[tokio::test]
async fn a_backup_whose_client_is_gone_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let client = with_much(&folder).await;
    // The store has begun to write when the client goes.
    assert!(ask(&client).now_or_never().is_none());
    let next = ask_until_free(&client).await;
    assert_eq!(next.status(), 200);
    drop(next);
    emptied(&folder).await;
}
