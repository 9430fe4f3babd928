//! Pods get nodes, or are told why not.

use kube::api::DeleteParams;
use serde_json::json;

use crate::cluster::{Cluster, when};

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_gets_the_node_that_it_selects_and_everybody_is_told() {
    let cluster = Cluster::new().await;
    cluster.node("plain", "4", json!({})).await;
    cluster
        .node("fast", "4", json!({"labels": {"disk": "ssd"}}))
        .await;
    let scheduler = cluster.scheduler();
    cluster
        .pod("web-1", "1", json!({"nodeSelector": {"disk": "ssd"}}))
        .await;
    assert_eq!(cluster.node_of("web-1").await, "fast");
    assert_eq!(
        cluster.event("web-1", "Scheduled").await,
        "Successfully assigned default/web-1 to fast"
    );
    let pod = cluster.pods().get("web-1").await.unwrap();
    let conditions = pod.status.unwrap().conditions.unwrap();
    assert!(
        conditions
            .iter()
            .any(|one| one.type_ == "PodScheduled" && one.status == "True")
    );
    scheduler.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_fits_nowhere_is_told_why_and_goes_when_there_is_room() {
    let cluster = Cluster::new().await;
    let taint = json!({"taints": [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]});
    cluster.node("small", "1", json!({})).await;
    cluster.node("tainted", "8", json!({"spec": taint})).await;
    // News of nodes and of pods come apart: only who begins now knows both nodes before any pod.
    let _scheduler = cluster.scheduler();
    cluster.pod("first", "800m", json!({})).await;
    assert_eq!(cluster.node_of("first").await, "small");
    cluster.pod("second", "800m", json!({})).await;
    let why = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint {dedicated: db}. \
               preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, \
               1 Preemption is not helpful for scheduling.";
    assert_eq!(cluster.refusal("second").await, why);
    assert_eq!(cluster.event("second", "FailedScheduling").await, why);
    let now = DeleteParams::default().grace_period(0);
    cluster.pods().delete("first", &now).await.unwrap();
    assert_eq!(cluster.node_of("second").await, "small");
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_of_other_schedulers_and_pods_with_gates_are_left_alone() {
    let cluster = Cluster::new().await;
    cluster.node("only", "4", json!({})).await;
    let _scheduler = cluster.scheduler();
    cluster
        .pod("other", "1", json!({"schedulerName": "somebody-else"}))
        .await;
    cluster
        .pod(
            "gated",
            "1",
            json!({"schedulingGates": [{"name": "example.org/wait"}]}),
        )
        .await;
    cluster.pod("ours", "1", json!({})).await;
    assert_eq!(cluster.node_of("ours").await, "only");
    let open = kube::api::Patch::Merge(json!({"spec": {"schedulingGates": null}}));
    for name in ["other", "gated"] {
        when(&cluster.pods(), name, |pod| {
            crate::cluster::node_of(pod).is_none()
        })
        .await;
    }
    cluster
        .pods()
        .patch("gated", &kube::api::PatchParams::default(), &open)
        .await
        .unwrap();
    assert_eq!(cluster.node_of("gated").await, "only");
    when(&cluster.pods(), "other", |pod| {
        crate::cluster::node_of(pod).is_none()
    })
    .await;
}
