//! Claims, volumes and pods that use them.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod, ServiceAccount};
use kube::{Api as Objects, ResourceExt as _, api::DeleteParams};
use serde_json::json;

use crate::cluster::{Cluster, create, gone, when};

fn phase_of(volume: &PersistentVolume) -> Option<&str> {
    volume.status.as_ref()?.phase.as_deref()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_is_bound_kept_while_it_is_used_and_its_volume_released() {
    let cluster = Cluster::new().await;
    cluster.namespace("work").await;
    let accounts: Objects<ServiceAccount> = Objects::namespaced(cluster.client.clone(), "work");
    when(&accounts, "default", |_| true).await;
    let volumes = cluster.all::<PersistentVolume>();
    let claims: Objects<PersistentVolumeClaim> =
        Objects::namespaced(cluster.client.clone(), "work");
    let claim = json!({
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}},
    });
    let claim = create(&claims, claim).await;
    let phase = |wanted: &'static str| {
        move |claim: &PersistentVolumeClaim| {
            let status = claim.status.as_ref();
            status.and_then(|status| status.phase.as_deref()) == Some(wanted)
        }
    };
    when(&claims, "data", phase("Pending")).await;
    // The volume comes later than the claim.
    let volume = json!({
        "metadata": {"name": "disk"},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"},
            "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": "/data"},
        },
    });
    let volume = create(&volumes, volume).await;
    let bound = when(&claims, "data", phase("Bound")).await;
    assert_eq!(bound.spec.unwrap().volume_name.as_deref(), Some("disk"));
    when(&volumes, "disk", |volume| phase_of(volume) == Some("Bound")).await;

    let pods: Objects<Pod> = Objects::namespaced(cluster.client.clone(), "work");
    let pod = json!({
        "metadata": {"name": "p"},
        "spec": {
            "nodeName": "node", "containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
        },
    });
    create(&pods, pod).await;
    claims
        .delete("data", &DeleteParams::default())
        .await
        .unwrap();
    let held = claims.get("data").await.unwrap();
    assert!(held.metadata.deletion_timestamp.is_some());
    pods.delete("p", &DeleteParams::default().grace_period(0))
        .await
        .unwrap();
    gone(&claims, &claim).await;
    when(&volumes, "disk", |volume| {
        phase_of(volume) == Some("Released")
    })
    .await;
    volumes
        .delete("disk", &DeleteParams::default())
        .await
        .unwrap();
    gone(&volumes, &volume).await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_gets_the_claims_of_its_own_volumes_and_they_go_with_it() {
    let cluster = Cluster::new().await;
    cluster.namespace("work").await;
    let accounts: Objects<ServiceAccount> = Objects::namespaced(cluster.client.clone(), "work");
    when(&accounts, "default", |_| true).await;
    let claims: Objects<PersistentVolumeClaim> =
        Objects::namespaced(cluster.client.clone(), "work");
    let pods: Objects<Pod> = Objects::namespaced(cluster.client.clone(), "work");
    let wanted = json!({"accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}});
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": wanted});
    let foreign = create(
        &claims,
        json!({"metadata": {"name": "p-taken"}, "spec": wanted}),
    )
    .await;
    let pod = json!({
        "metadata": {"name": "p"},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "volumes": [
                {"name": "taken", "ephemeral": {"volumeClaimTemplate": template}},
                {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}},
            ],
        },
    });
    let pod = create(&pods, pod).await;
    let made = when(&claims, "p-scratch", |_| true).await;
    assert_eq!(made.labels()["app"], "web");
    let spec = made.spec.as_ref().unwrap();
    assert_eq!(spec.storage_class_name.as_deref(), Some("fast"));
    let owners = made.owner_references();
    assert_eq!((owners.len(), &owners[0].uid), (1, &pod.uid().unwrap()));
    assert_eq!(owners[0].controller, Some(true));

    // What somebody else made is not the pod's until they take it away.
    let kept = claims.get("p-taken").await.unwrap();
    assert_eq!(kept.owner_references(), []);
    let now = DeleteParams::default().grace_period(0);
    claims.delete("p-taken", &now).await.unwrap();
    let own = when(&claims, "p-taken", |claim| claim.uid() != foreign.uid()).await;
    assert_eq!(own.owner_references()[0].uid, pod.uid().unwrap());

    pods.delete("p", &now).await.unwrap();
    for claim in [&made, &own] {
        gone(&claims, claim).await;
    }
}
