//! Pods that make place for others.

use k8s_openapi::api::{core::v1::Pod, scheduling::v1::PriorityClass};
use serde_json::json;

use crate::cluster::{Cluster, create, when};

#[tokio::test(flavor = "multi_thread")]
async fn an_important_pod_gets_the_place_of_an_unimportant_one() {
    let cluster = Cluster::new().await;
    let class = json!({"metadata": {"name": "high"}, "value": 1000});
    create(&cluster.all::<PriorityClass>(), class).await;
    cluster.node("only", "2", json!({})).await;
    let _scheduler = cluster.scheduler();
    cluster.pod("low", "2", json!({})).await;
    assert_eq!(cluster.node_of("low").await, "only");
    cluster
        .pod("high", "1", json!({"priorityClassName": "high"}))
        .await;

    let is_leaving = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
    let victim = when(&cluster.pods(), "low", is_leaving).await;
    let conditions = victim.status.unwrap().conditions.unwrap();
    let why = conditions
        .iter()
        .find(|one| one.type_ == "DisruptionTarget")
        .unwrap();
    assert_eq!(why.reason.as_deref(), Some("PreemptionByScheduler"));
    assert_eq!(
        why.message.as_deref(),
        Some("default-scheduler: preempting to accommodate a higher priority pod")
    );
    let nominated = when(&cluster.pods(), "high", |pod| {
        let status = pod.status.as_ref();
        status.is_some_and(|status| status.nominated_node_name.as_deref() == Some("only"))
    })
    .await;
    let uid = nominated.metadata.uid.unwrap();
    assert_eq!(
        cluster.event("low", "Preempted").await,
        format!("Preempted by pod {uid} on node only")
    );
    // The agent would do this when the pod's programs have ended.
    let now = kube::api::DeleteParams::default().grace_period(0);
    cluster.pods().delete("low", &now).await.unwrap();
    assert_eq!(cluster.node_of("high").await, "only");
}

#[tokio::test(flavor = "multi_thread")]
async fn room_that_is_kept_for_a_pod_goes_to_a_more_important_one() {
    let cluster = Cluster::new().await;
    for (name, value) in [("high", 1000), ("middle", 500)] {
        let class = json!({"metadata": {"name": name}, "value": value});
        create(&cluster.all::<PriorityClass>(), class).await;
    }
    cluster.node("only", "2", json!({})).await;
    let _scheduler = cluster.scheduler();
    cluster.pod("low", "2", json!({})).await;
    assert_eq!(cluster.node_of("low").await, "only");
    let nominated = |pod: &Pod| {
        let status = pod.status.clone().unwrap_or_default();
        status.nominated_node_name.filter(|name| !name.is_empty())
    };
    for name in ["middle", "high"] {
        cluster
            .pod(name, "2", json!({"priorityClassName": name}))
            .await;
        when(&cluster.pods(), name, |pod| nominated(pod).is_some()).await;
    }
    when(&cluster.pods(), "middle", |pod| nominated(pod).is_none()).await;
    let now = kube::api::DeleteParams::default().grace_period(0);
    cluster.pods().delete("low", &now).await.unwrap();
    assert_eq!(cluster.node_of("high").await, "only");
}
