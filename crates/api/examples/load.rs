//! A client of an API server that is in a hurry: what `cargo xtask bench` times and measures.
//!
//! `load creates COUNT` makes config maps of 2 KiB, 64 clients at a time, and prints the seconds that it took. `load
//! watchers WATCHERS CHANGES` has so many watches told of each change and prints the median of the seconds from a change
//! to the last watch that heard of it. `load fill NODES PODS` makes nodes, and pods that are on them. The server is the
//! one of `KUBECONFIG`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures::{AsyncBufReadExt as _, StreamExt as _, TryStreamExt as _, stream};
use http::Request;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::mpsc;

const CLIENTS: usize = 64;
const SIZE: usize = 2 << 10;
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// The longest that one change may take to get everywhere.
const PATIENCE: Duration = Duration::from_secs(30);

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let client = Client::try_default().await?;
    let answer = match words.as_slice() {
        ["creates", count] => creates(&client, count.parse()?).await?,
        ["watchers", watchers, changes] => {
            watchers_of(&client, watchers.parse()?, changes.parse()?).await?
        }
        ["fill", nodes, pods] => fill(&client, nodes.parse()?, pods.parse()?).await?,
        _ => {
            return Err(
                "usage: load creates COUNT | watchers WATCHERS CHANGES | fill NODES PODS".into(),
            );
        }
    };
    #[expect(clippy::print_stdout, reason = "the answer of the program")]
    {
        println!("{}", answer.as_secs_f64());
    }
    Ok(())
}

async fn post(client: &Client, path: &str, object: &Value) -> Result<(), Failure> {
    let request = Request::post(path)
        .header("content-type", "application/json")
        .body(object.to_string().into_bytes())?;
    client.request_text(request).await?;
    Ok(())
}

/// Makes objects, so many at a time, and tells how long it took.
async fn make(
    client: &Client,
    path: &str,
    objects: impl Iterator<Item = Value>,
) -> Result<Duration, Failure> {
    let begun = Instant::now();
    stream::iter(objects.map(Ok))
        .try_for_each_concurrent(CLIENTS, |object| async move {
            post(client, path, &object).await
        })
        .await?;
    Ok(begun.elapsed())
}

async fn creates(client: &Client, count: usize) -> Result<Duration, Failure> {
    let content = "x".repeat(SIZE);
    let run = std::process::id();
    let maps = (0..count).map(|number| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("load-{run}-{number}")},
            "data": {"content": content},
        })
    });
    make(client, MAPS, maps).await
}

/// What all watches have heard together.
#[derive(Default)]
struct Heard {
    count: AtomicUsize,
    watches: usize,
}

async fn watchers_of(client: &Client, watches: usize, changes: usize) -> Result<Duration, Failure> {
    let name = format!("watched-{}", std::process::id());
    let map = |number: usize| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name},
            "data": {"number": number.to_string()},
        })
    };
    post(client, MAPS, &map(0)).await?;
    let heard = Arc::new(Heard {
        count: AtomicUsize::new(0),
        watches,
    });
    let (sender, mut complete) = mpsc::channel(1);
    let path = format!("{MAPS}?watch=true&fieldSelector=metadata.name={name}");
    for _ in 0..watches {
        let lines = client
            .request_stream(Request::get(&path).body(Vec::new())?)
            .await?
            .lines();
        let (heard, sender) = (Arc::clone(&heard), sender.clone());
        tokio::spawn(async move {
            let mut lines = std::pin::pin!(lines);
            while let Some(Ok(_)) = lines.next().await {
                let count = heard.count.fetch_add(1, Ordering::AcqRel) + 1;
                if count.is_multiple_of(heard.watches) {
                    // Nobody listens any more when the measurement is over.
                    let _ = sender.send(Instant::now()).await;
                }
            }
        });
    }
    // Each watch begins with the object as it is.
    next(&mut complete).await?;
    let mut times = Vec::new();
    for number in 1..=changes {
        let body = map(number).to_string().into_bytes();
        let request = Request::put(format!("{MAPS}/{name}"))
            .header("content-type", "application/json")
            .body(body)?;
        let begun = Instant::now();
        client.request_text(request).await?;
        times.push(next(&mut complete).await? - begun);
    }
    times.sort_unstable();
    times
        .get(times.len() / 2)
        .copied()
        .ok_or_else(|| "no change was made".into())
}

async fn next(complete: &mut mpsc::Receiver<Instant>) -> Result<Instant, Failure> {
    let heard = tokio::time::timeout(PATIENCE, complete.recv()).await;
    heard
        .map_err(|_| "not all watches heard of a change")?
        .ok_or_else(|| "the watches ended".into())
}

async fn fill(client: &Client, nodes: usize, pods: usize) -> Result<Duration, Failure> {
    let node = |number: usize| {
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": format!("node-{number}"),
                "labels": {"kubernetes.io/os": "linux", "kubernetes.io/hostname": format!("node-{number}")},
            },
            "status": {
                "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
                "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"},
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            },
        })
    };
    let pod = |number: usize| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("pod-{number}"), "labels": {"app": "web"}},
            "spec": {
                "nodeName": format!("node-{}", number % nodes.max(1)),
                "containers": [{
                    "name": "web", "image": "registry.example.org/web:1",
                    "env": [{"name": "GREETING", "value": "hello"}],
                    "ports": [{"containerPort": 8080}],
                    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                }],
            },
        })
    };
    let some = make(client, "/api/v1/nodes", (0..nodes).map(node)).await?;
    let rest = make(
        client,
        "/api/v1/namespaces/default/pods",
        (0..pods).map(pod),
    )
    .await?;
    Ok(some + rest)
}
