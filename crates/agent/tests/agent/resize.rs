//! Pods that get other resources while they run.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use transom_model::Os;
use transom_runtime::{ContainerState, Runtime as _, fake::Plan};

use crate::cluster::{Cluster, phase, when};

fn spec(cpu: &str, policy: &str) -> Value {
    json!({"containers": [{
        "name": "main",
        "image": "x:1",
        "resources": {"requests": {"cpu": cpu}},
        "resizePolicy": [{"resourceName": "cpu", "restartPolicy": policy}],
    }]})
}

async fn resize(cluster: &Cluster, cpu: &str) {
    let patch = json!({"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}});
    cluster
        .pods()
        .patch_subresource(
            "resize",
            "web",
            &PatchParams::default(),
            &Patch::Strategic(patch),
        )
        .await
        .unwrap();
}

fn main(pod: &Pod) -> Option<ContainerStatus> {
    pod.status.clone()?.container_statuses?.into_iter().next()
}

/// What the status says the container has, and what it may have.
fn cpu(pod: &Pod) -> Option<(String, String)> {
    let status = main(pod)?;
    let has = status.resources?.requests?.get("cpu")?.0.clone();
    Some((has, status.allocated_resources?.get("cpu")?.0.clone()))
}

fn told(pod: &Pod, condition: &str) -> Option<(String, String)> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let found = conditions.iter().find(|one| one.type_ == condition)?;
    Some((
        found.reason.clone().unwrap_or_default(),
        found.message.clone().unwrap_or_default(),
    ))
}

/// Waits until the status says why a wish is not fulfilled yet.
async fn pending(cluster: &Cluster) -> Pod {
    when(&cluster.pods(), "web", |pod| {
        told(pod, "PodResizePending").is_some()
    })
    .await
}

/// Takes out of the status what an agent said of a wish: who waits for it next hears the next agent.
async fn withdraw(cluster: &Cluster) {
    let patch =
        json!({"status": {"conditions": [{"type": "PodResizePending", "$patch": "delete"}]}});
    cluster
        .pods()
        .patch_status("web", &PatchParams::default(), &Patch::Strategic(patch))
        .await
        .unwrap();
}

async fn running(cluster: &Cluster) -> Vec<u32> {
    let pods = cluster.runtime.pods().await.unwrap();
    let containers = pods.iter().flat_map(|pod| &pod.containers);
    let running = containers.filter(|one| matches!(one.state, ContainerState::Running { .. }));
    running.map(|one| one.attempt).collect()
}

#[tokio::test(start_paused = true)]
async fn a_running_container_gets_what_it_asks_for() {
    let cluster = Cluster::started(Os::Linux, |_, _| Plan::default()).await;
    cluster.pod("web", spec("100m", "NotRequired")).await;
    when(&cluster.pods(), "web", |pod| phase(pod) == "Running").await;
    resize(&cluster, "700m").await;
    let both = ("700m".to_owned(), "700m".to_owned());
    let pod = when(&cluster.pods(), "web", |pod| {
        cpu(pod).as_ref() == Some(&both)
    })
    .await;
    assert_eq!(told(&pod, "PodResizePending"), None);
    when(&cluster.pods(), "web", |pod| {
        told(pod, "PodResizeInProgress").is_none()
    })
    .await;
    assert_eq!(running(&cluster).await, [0], "it was not started again");
}

#[tokio::test(start_paused = true)]
async fn a_container_that_wants_to_be_started_again_is() {
    let cluster = Cluster::started(Os::Linux, |_, _| Plan::default()).await;
    cluster.pod("web", spec("100m", "RestartContainer")).await;
    when(&cluster.pods(), "web", |pod| phase(pod) == "Running").await;
    resize(&cluster, "700m").await;
    let both = ("700m".to_owned(), "700m".to_owned());
    when(&cluster.pods(), "web", |pod| {
        cpu(pod).as_ref() == Some(&both) && main(pod).is_some_and(|one| one.restart_count == 1)
    })
    .await;
    assert_eq!(running(&cluster).await, [1]);
}

#[tokio::test(start_paused = true)]
async fn what_a_node_never_has_is_infeasible_and_survives_a_restart() {
    let mut cluster = Cluster::started(Os::Linux, |_, _| Plan::default()).await;
    cluster.pod("web", spec("100m", "NotRequired")).await;
    when(&cluster.pods(), "web", |pod| phase(pod) == "Running").await;
    resize(&cluster, "9").await;
    for _ in 0..2 {
        let pod = pending(&cluster).await;
        let (reason, message) = told(&pod, "PodResizePending").unwrap();
        assert_eq!(reason, "Infeasible");
        assert_eq!(
            message,
            "Node didn't have enough capacity: cpu, requested: 9000, capacity: 1500"
        );
        assert_eq!(cpu(&pod), Some(("100m".to_owned(), "100m".to_owned())));
        cluster.kill().await;
        withdraw(&cluster).await;
        cluster.start();
    }
    pending(&cluster).await;
    resize(&cluster, "200m").await;
    let pod = when(&cluster.pods(), "web", |pod| {
        cpu(pod).is_some_and(|(has, _)| has == "200m")
    })
    .await;
    assert_eq!(told(&pod, "PodResizePending"), None);
}

#[tokio::test(start_paused = true)]
async fn a_wish_that_was_changed_while_no_agent_ran_is_not_pending_any_more() {
    let mut cluster = Cluster::started(Os::Linux, |_, _| Plan::default()).await;
    cluster.pod("web", spec("100m", "NotRequired")).await;
    when(&cluster.pods(), "web", |pod| phase(pod) == "Running").await;
    resize(&cluster, "9").await;
    pending(&cluster).await;
    cluster.kill().await;
    resize(&cluster, "200m").await;
    cluster.start();
    let pod = when(&cluster.pods(), "web", |pod| {
        cpu(pod).is_some_and(|(has, _)| has == "200m")
    })
    .await;
    assert_eq!(told(&pod, "PodResizePending"), None);
}

#[tokio::test(start_paused = true)]
async fn what_others_have_is_given_when_they_are_gone() {
    let cluster = Cluster::started(Os::Linux, |_, _| Plan::default()).await;
    let other = json!({"containers": [{"name": "a", "image": "x:1", "resources": {"requests": {"cpu": "1"}}}]});
    cluster.pod("other", other).await;
    when(&cluster.pods(), "other", |pod| phase(pod) == "Running").await;
    cluster.pod("web", spec("100m", "NotRequired")).await;
    when(&cluster.pods(), "web", |pod| phase(pod) == "Running").await;
    resize(&cluster, "900m").await;
    let pod = pending(&cluster).await;
    assert_eq!(
        told(&pod, "PodResizePending").unwrap(),
        (
            "Deferred".to_owned(),
            "Node didn't have enough resource: cpu, requested: 900, used: 1000, capacity: 1500"
                .to_owned()
        )
    );
    let now = kube::api::DeleteParams::default().grace_period(0);
    cluster.pods().delete("other", &now).await.unwrap();
    let pod = when(&cluster.pods(), "web", |pod| {
        cpu(pod).is_some_and(|(has, _)| has == "900m")
    })
    .await;
    assert_eq!(told(&pod, "PodResizePending"), None);
}
