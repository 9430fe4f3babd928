//! Pods that nobody looks after, and budgets that say how many may go.

use std::time::Duration;

use k8s_openapi::api::{
    apps::v1::ReplicaSet,
    core::v1::{Node, Pod, ServiceAccount},
    policy::v1::PodDisruptionBudget,
};
use kube::{
    Api as Objects, ResourceExt as _,
    api::{DeleteParams, EvictParams, Patch, PatchParams},
};
use serde_json::json;
use tokio::time::Instant;

use crate::cluster::{Cluster, create, gone, when};

async fn equipped() -> (Cluster, Objects<Pod>) {
    let cluster = Cluster::new().await;
    cluster.namespace("work").await;
    let accounts: Objects<ServiceAccount> = Objects::namespaced(cluster.client.clone(), "work");
    when(&accounts, "default", |_| true).await;
    let pods = Objects::namespaced(cluster.client.clone(), "work");
    (cluster, pods)
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_node_that_is_gone_go_after_a_while() {
    let (cluster, pods) = equipped().await;
    let nodes = cluster.all::<Node>();
    create(&nodes, json!({"metadata": {"name": "brief"}})).await;
    let pod = json!({
        "metadata": {"name": "p", "finalizers": ["example.org/hold"]},
        "spec": {"nodeName": "brief", "containers": [{"name": "c", "image": "i"}]},
    });
    let pod = create(&pods, pod).await;
    let begun = Instant::now();
    nodes
        .delete("brief", &DeleteParams::default())
        .await
        .unwrap();
    let is_going = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
    let last = when(&pods, "p", is_going).await;
    assert!(begun.elapsed() >= Duration::from_secs(40));
    let status = last.status.unwrap();
    assert_eq!(status.phase.as_deref(), Some("Failed"));
    let mut conditions = status.conditions.into_iter().flatten();
    let why = conditions.find(|each| each.type_ == "DisruptionTarget");
    assert_eq!(why.unwrap().reason.as_deref(), Some("DeletionByPodGC"));
    let free = json!({"metadata": {"finalizers": null}});
    pods.patch("p", &PatchParams::default(), &Patch::Merge(free))
        .await
        .unwrap();
    gone(&pods, &pod).await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_allows_what_is_well_beyond_what_must_be() {
    let (cluster, pods) = equipped().await;
    let sets: Objects<ReplicaSet> = Objects::namespaced(cluster.client.clone(), "work");
    let set = json!({
        "metadata": {"name": "set"},
        "spec": {
            "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    });
    let set = create(&sets, set).await;
    for name in ["a", "b", "c"] {
        let pod = json!({
            "metadata": {"name": name, "labels": {"app": "web"}, "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "set", "uid": set.uid(), "controller": true,
            }]},
            "spec": {"nodeName": "node", "containers": [{"name": "c", "image": "i"}]},
        });
        create(&pods, pod).await;
        let ready = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
        pods.patch_status(name, &PatchParams::default(), &Patch::Merge(ready))
            .await
            .unwrap();
    }
    let budgets: Objects<PodDisruptionBudget> = Objects::namespaced(cluster.client.clone(), "work");
    let budget = json!({
        "metadata": {"name": "b"},
        "spec": {"maxUnavailable": "34%", "selector": {"matchLabels": {"app": "web"}}},
    });
    create(&budgets, budget).await;
    let numbers = |budget: &PodDisruptionBudget| {
        let status = budget.status.clone().unwrap_or_default();
        [
            status.expected_pods,
            status.desired_healthy,
            status.current_healthy,
            status.disruptions_allowed,
        ]
        .map(Option::unwrap_or_default)
    };
    when(&budgets, "b", |each| numbers(each) == [3, 1, 3, 2]).await;
    pods.evict("a", &EvictParams::default()).await.unwrap();
    when(&budgets, "b", |each| numbers(each) == [3, 1, 2, 1]).await;
    pods.evict("b", &EvictParams::default()).await.unwrap();
    when(&budgets, "b", |each| numbers(each) == [3, 1, 1, 0]).await;
    let refused = pods.evict("c", &EvictParams::default()).await.unwrap_err();
    assert!(
        refused.to_string().contains("disruption budget"),
        "{refused}"
    );
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_asks_a_controller_of_another_kind_for_its_size() {
    let (cluster, pods) = equipped().await;
    let scale = json!({"scale": {
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
    }});
    let widgets = cluster.define_with("work", scale).await;
    let widget = json!({
        "apiVersion": "example.org/v1", "kind": "Widget",
        "metadata": {"name": "w"}, "spec": {"replicas": 5},
    });
    let widget = create(&widgets, widget).await;
    let pod = json!({
        "metadata": {"name": "p", "labels": {"app": "web"}, "ownerReferences": [{
            "apiVersion": "example.org/v1", "kind": "Widget", "name": "w", "uid": widget.uid(), "controller": true,
        }]},
        "spec": {"nodeName": "node", "containers": [{"name": "c", "image": "i"}]},
    });
    create(&pods, pod).await;
    let budgets: Objects<PodDisruptionBudget> = Objects::namespaced(cluster.client.clone(), "work");
    let budget = json!({
        "metadata": {"name": "b"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    });
    create(&budgets, budget).await;
    when(&budgets, "b", |budget| {
        let status = budget.status.clone().unwrap_or_default();
        status.expected_pods == Some(5) && status.desired_healthy == Some(4)
    })
    .await;
    cluster.stop().await;
}
