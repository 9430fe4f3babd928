//! Nodes that fall silent. Time is not waited for: it jumps when nothing is left to do.

use std::time::Duration;

use k8s_openapi::{
    api::{
        coordination::v1::Lease,
        core::v1::{Node, Pod, ServiceAccount},
    },
    jiff::{SignedDuration, Timestamp},
};
use kube::{
    Api as Objects, Client,
    api::{Patch, PatchParams},
};
use serde_json::json;
use tokio::time::Instant;

use crate::cluster::{Cluster, create, when};

const LEASES: &str = "kube-node-lease";

async fn add_node(cluster: &Cluster, name: &str) {
    let nodes = cluster.all::<Node>();
    create(&nodes, json!({"metadata": {"name": name}})).await;
    let ready = json!({"status": {"conditions": [
        {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"},
    ]}});
    nodes
        .patch_status(name, &PatchParams::default(), &Patch::Merge(ready))
        .await
        .unwrap();
    let leases: Objects<Lease> = Objects::namespaced(cluster.client.clone(), LEASES);
    let lease = json!({
        "metadata": {"name": name},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000000Z"},
    });
    create(&leases, lease).await;
}

/// Renews the lease of a node for ever, as its agent would.
async fn breathe(client: Client, name: &'static str) {
    let leases: Objects<Lease> = Objects::namespaced(client, LEASES);
    let begun = Instant::now();
    loop {
        tokio::time::sleep(Duration::from_secs(10)).await;
        let now = Timestamp::UNIX_EPOCH + SignedDuration::try_from(begun.elapsed()).unwrap();
        let renewed = json!({"spec": {"renewTime": format!("{now:.6}")}});
        leases
            .patch(name, &PatchParams::default(), &Patch::Merge(renewed))
            .await
            .unwrap();
    }
}

fn taints(node: &Node) -> Vec<(&str, &str)> {
    let taints = node
        .spec
        .iter()
        .flat_map(|spec| spec.taints.iter().flatten());
    let mut found: Vec<_> = taints
        .map(|taint| (taint.key.as_str(), taint.effect.as_str()))
        .collect();
    found.sort_unstable();
    found
}

fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a str> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let found = conditions.iter().find(|each| each.type_ == kind)?;
    Some(found.status.as_str())
}

#[tokio::test(start_paused = true)]
async fn a_silent_node_becomes_unknown_loses_its_pods_and_can_come_back() {
    let cluster = Cluster::new().await;
    cluster.namespace("work").await;
    cluster.namespace(LEASES).await;
    add_node(&cluster, "alive").await;
    add_node(&cluster, "silent").await;
    let alive = tokio::spawn(breathe(cluster.client.clone(), "alive"));
    let accounts: Objects<ServiceAccount> = Objects::namespaced(cluster.client.clone(), "work");
    when(&accounts, "default", |_| true).await;
    let nodes = cluster.all::<Node>();
    // New nodes have a taint until they are ready.
    for name in ["alive", "silent"] {
        when(&nodes, name, |node| taints(node).is_empty()).await;
    }
    let pods: Objects<Pod> = Objects::namespaced(cluster.client.clone(), "work");
    for (name, seconds) in [("soon", Some(20)), ("stays", None)] {
        let pod = json!({
            "metadata": {"name": name},
            "spec": {
                "nodeName": "silent", "containers": [{"name": "c", "image": "i"}],
                "tolerations": [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}],
            },
        });
        create(&pods, pod).await;
        let ready = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
        pods.patch_status(name, &PatchParams::default(), &Patch::Merge(ready))
            .await
            .unwrap();
    }
    let begun = Instant::now();
    when(&nodes, "silent", |node| {
        taints(node)
            == [
                ("node.kubernetes.io/unreachable", "NoExecute"),
                ("node.kubernetes.io/unreachable", "NoSchedule"),
            ]
    })
    .await;
    let unknown = begun.elapsed();
    assert!(unknown > Duration::from_secs(45), "{unknown:?}");
    assert!(unknown < Duration::from_mins(1), "{unknown:?}");
    let not_ready = |pod: &Pod| condition(pod, "Ready") == Some("False");
    when(&pods, "stays", not_ready).await;
    let is_going = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
    let begun = Instant::now();
    let evicted = when(&pods, "soon", is_going).await;
    assert_eq!(condition(&evicted, "DisruptionTarget"), Some("True"));
    assert!(begun.elapsed() > Duration::from_secs(15));
    assert!(!is_going(&pods.get("stays").await.unwrap()));
    assert_eq!(taints(&nodes.get("alive").await.unwrap()), []);

    let back = json!({"status": {"conditions": [
        {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:10:00Z"},
    ]}});
    nodes
        .patch_status("silent", &PatchParams::default(), &Patch::Merge(back))
        .await
        .unwrap();
    when(&nodes, "silent", |node| taints(node).is_empty()).await;
    alive.abort();
    cluster.stop().await;
}
