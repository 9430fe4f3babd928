//! Many pods at once, nodes that vanish, and schedulers that begin in the middle.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Node;
use kube::{Client, api::DeleteParams, client::Body};
use serde_json::json;
use transom_scheduler::Options;

use crate::cluster::{Cluster, node_of};

/// Makes so many pods, some at a time.
async fn burst(cluster: &Cluster, numbers: std::ops::Range<usize>) {
    stream::iter(numbers)
        .for_each_concurrent(16, |number| async move {
            cluster.pod(&format!("web-{number}"), "1", json!({})).await;
        })
        .await;
}

fn per_node(placed: &[(String, String)]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for (_, node) in placed {
        *counts.entry(node.as_str()).or_default() += 1;
    }
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_fills_the_nodes_evenly_and_never_too_full() {
    let cluster = Cluster::new().await;
    for number in 0..10 {
        cluster.node(&format!("n{number}"), "8", json!({})).await;
    }
    let scheduler = cluster.scheduler();
    burst(&cluster, 0..80).await;
    let placed = cluster.placed(80).await;
    let counts = per_node(&placed);
    assert_eq!(counts.len(), 10);
    assert!(counts.values().all(|count| *count == 8), "{counts:?}");
    cluster.pod("more", "1", json!({})).await;
    assert!(
        cluster
            .refusal("more")
            .await
            .starts_with("0/10 nodes are available: 10 Insufficient cpu.")
    );
    scheduler.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_goes_to_a_node_that_is_gone() {
    let cluster = Cluster::new().await;
    for name in ["stays", "goes"] {
        cluster.node(name, "100", json!({})).await;
    }
    let _scheduler = cluster.scheduler();
    burst(&cluster, 0..10).await;
    cluster.placed(10).await;
    cluster
        .all::<Node>()
        .delete("goes", &DeleteParams::default())
        .await
        .unwrap();
    // News of pods may be faster, but those of nodes come in order: who knows the next one knows that this is gone.
    let next = json!({"labels": {"is": "next"}});
    cluster.node("next", "1", next).await;
    cluster
        .pod("probe", "1", json!({"nodeSelector": {"is": "next"}}))
        .await;
    assert_eq!(cluster.node_of("probe").await, "next");
    cluster.pod("large", "1000", json!({})).await;
    let why = cluster.refusal("large").await;
    assert!(
        why.starts_with("0/2 nodes are available: 2 Insufficient cpu."),
        "{why}"
    );
    // The probe leaves no room beside it.
    burst(&cluster, 10..30).await;
    let placed = cluster.placed(31).await;
    for (name, node) in placed {
        let Some(number) = name.strip_prefix("web-") else {
            continue;
        };
        let number: usize = number.parse().unwrap();
        assert!(number < 10 || node == "stays", "{name} is on {node}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scheduler_that_begins_in_the_middle_knows_what_the_last_one_did() {
    let cluster = Cluster::new().await;
    for number in 0..4 {
        cluster.node(&format!("n{number}"), "10", json!({})).await;
    }
    let first = cluster.scheduler();
    let making = burst(&cluster, 0..40);
    let stopping = async {
        cluster.placed(5).await;
        first.stop().await;
    };
    tokio::join!(making, stopping);
    let before: BTreeMap<String, String> = cluster
        .list_pods()
        .await
        .iter()
        .filter_map(|pod| Some((pod.metadata.name.clone()?, node_of(pod)?.to_owned())))
        .collect();
    let second = cluster.scheduler();
    let placed = cluster.placed(40).await;
    assert!(
        per_node(&placed).values().all(|count| *count == 10),
        "{placed:?}"
    );
    for (name, node) in &placed {
        assert!(
            before.get(name).is_none_or(|known| known == node),
            "{name} moved"
        );
    }
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_that_wait_go_as_soon_as_there_is_a_node() {
    let cluster = Cluster::new().await;
    let _scheduler = cluster.scheduler();
    cluster.pod("early", "1", json!({})).await;
    assert_eq!(
        cluster.refusal("early").await,
        "no nodes available to schedule pods"
    );
    cluster.node("late", "4", json!({})).await;
    assert_eq!(cluster.node_of("early").await, "late");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_panics_does_not_lose_its_pod() {
    let cluster = Cluster::new().await;
    cluster.node("only", "4", json!({})).await;
    let has_panicked = Arc::new(AtomicBool::new(false));
    let (inner, panicked) = (cluster.client.clone(), Arc::clone(&has_panicked));
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (inner, panicked) = (inner.clone(), Arc::clone(&panicked));
        async move {
            let is_binding = request.uri().path().ends_with("/binding");
            assert!(
                !is_binding || panicked.swap(true, Ordering::Relaxed),
                "on purpose"
            );
            inner.send(request).await
        }
    });
    let _scheduler = Cluster::scheduler_of(Client::new(service, "default"), Options::default());
    cluster.pod("unlucky", "1", json!({})).await;
    assert_eq!(cluster.node_of("unlucky").await, "only");
    assert!(has_panicked.load(Ordering::Relaxed));
}
