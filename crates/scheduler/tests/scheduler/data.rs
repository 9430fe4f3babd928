//! Claims and images.

use std::time::Duration;

use k8s_openapi::api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    storage::v1::StorageClass,
};
use kube::{
    Api as Objects,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use transom_model::images::{canonical, object_name};
use transom_scheduler::{Options, image_objects};

use crate::cluster::{Cluster, create, node_of, when};

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_waits_gets_a_volume_before_its_pod_gets_the_node() {
    let cluster = Cluster::new().await;
    for name in ["a", "b"] {
        cluster.node(name, "4", json!({})).await;
    }
    let class = json!({"metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner",
                       "volumeBindingMode": "WaitForFirstConsumer"});
    create(&cluster.all::<StorageClass>(), class).await;
    let volumes: Objects<PersistentVolume> = cluster.all();
    let volume = json!({"metadata": {"name": "pv"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "local", "capacity": {"storage": "5Gi"},
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": ["b"]}]}]}}}});
    create(&volumes, volume).await;
    let claims: Objects<PersistentVolumeClaim> =
        Objects::default_namespaced(cluster.client.clone());
    let claim = json!({"metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "local", "resources": {"requests": {"storage": "1Gi"}}}});
    create(&claims, claim).await;
    let _scheduler = cluster.scheduler();
    let uses = json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]});
    cluster.pod("user", "1", uses).await;

    when(&volumes, "pv", |volume| {
        let claim = volume
            .spec
            .as_ref()
            .and_then(|spec| spec.claim_ref.as_ref());
        claim.is_some_and(|claim| claim.name.as_deref() == Some("data"))
    })
    .await;
    let pod = cluster.pods().get("user").await.unwrap();
    assert_eq!(node_of(&pod), None, "the claim is not bound yet");
    // The controller of volumes would do this.
    let parameters = PatchParams::default();
    let bound = Patch::Merge(json!({"spec": {"volumeName": "pv"},
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}}));
    claims.patch("data", &parameters, &bound).await.unwrap();
    assert_eq!(cluster.node_of("user").await, "b");
}

/// What somebody found out about the image that all pods here have.
async fn tell(cluster: &Cluster, status: Value) {
    let image = json!({
        "apiVersion": "transom.dev/v1", "kind": "Image", "metadata": {"name": object_name("app")},
        "spec": {"reference": canonical("app")}, "status": status,
    });
    create(&image_objects(&cluster.client), image).await;
}

fn windows_only() -> Value {
    json!({"platforms": [{"os": "windows", "architecture": "amd64", "osVersion": "10.0.20348.2113"}]})
}

async fn windows(cluster: &Cluster, name: &str, build: &str) {
    let labels = json!({"kubernetes.io/os": "windows", "node.kubernetes.io/windows-build": build});
    cluster.node(name, "4", json!({"labels": labels})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_of_images_keeps_pods_from_wrong_machines() {
    let cluster = Cluster::new().await;
    cluster.node("linux", "4", json!({})).await;
    tell(&cluster, windows_only()).await;
    let _scheduler = cluster.scheduler();
    cluster.pod("app-1", "1", json!({})).await;
    let why = cluster.event("app-1", "FailedScheduling").await;
    assert!(
        why.starts_with(
            "0/1 nodes are available: 1 node(s) cannot run image docker.io/library/app:latest. No node can ever run \
             image docker.io/library/app:latest: it needs a host with a build from 20348 (Windows Server 2022) to \
             26100 (Windows Server 2025), windows/amd64; there are linux/amd64 (1)."
        ),
        "{why}"
    );
    windows(&cluster, "windows", "10.0.20348").await;
    assert_eq!(cluster.node_of("app-1").await, "windows");
}

/// Far longer than any test: who waits that long waits for the answer alone.
fn patient() -> Options {
    Options {
        image_patience: Duration::from_hours(1),
        ..Options::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_waits_for_what_its_image_is_for_where_nodes_differ() {
    let cluster = Cluster::new().await;
    // The free one is the better one, but for the image.
    cluster.node("linux", "64", json!({})).await;
    windows(&cluster, "windows", "10.0.20348").await;
    let _scheduler = cluster.scheduler_with(patient());
    cluster.pod("app-1", "1", json!({})).await;
    // One that needs no answer passes it by.
    let linux = json!({"nodeSelector": {"kubernetes.io/os": "linux"}});
    cluster.pod("other-1", "1", linux).await;
    assert_eq!(cluster.node_of("other-1").await, "linux");
    let pod = cluster.pods().get("app-1").await.unwrap();
    assert_eq!(node_of(&pod), None, "nobody knows where it can run");
    tell(&cluster, windows_only()).await;
    assert_eq!(cluster.node_of("app-1").await, "windows");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_whose_image_nobody_can_tell_of_is_placed_as_ever() {
    let cluster = Cluster::new().await;
    cluster.node("linux", "64", json!({})).await;
    windows(&cluster, "windows", "10.0.20348").await;
    let _scheduler = cluster.scheduler_with(patient());
    cluster.pod("app-1", "1", json!({})).await;
    tell(&cluster, json!({"message": "no route to the registry"})).await;
    cluster.node_of("app-1").await;
    let other = Cluster::new().await;
    other.node("linux", "64", json!({})).await;
    windows(&other, "windows", "10.0.20348").await;
    let _scheduler = other.scheduler_with(Options {
        image_patience: Duration::from_millis(50),
        ..Options::default()
    });
    other.pod("app-1", "1", json!({})).await;
    other.node_of("app-1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_where_all_nodes_are_alike() {
    let cluster = Cluster::new().await;
    cluster.node("a", "4", json!({})).await;
    cluster.node("b", "4", json!({})).await;
    let _scheduler = cluster.scheduler_with(patient());
    cluster.pod("app-1", "1", json!({})).await;
    cluster.node_of("app-1").await;
}
