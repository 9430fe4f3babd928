//! Probes, volumes and Windows: what a pod sees, and what is seen of it.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{Api as Objects, api::DeleteParams};
use serde_json::json;
use transom_host::files::Files as _;
use transom_model::Os;
use transom_runtime::fake::{ExecPlan, Plan};

use crate::cluster::{Cluster, create, gone, phase, when};

fn is_ready(pod: &Pod) -> bool {
    let statuses = pod
        .status
        .as_ref()
        .and_then(|status| status.container_statuses.as_ref());
    statuses.is_some_and(|all| all.iter().all(|one| one.ready))
}

#[tokio::test(start_paused = true)]
async fn a_sick_container_is_started_again_and_people_are_told_why() {
    let cluster = Cluster::started(Os::Linux, |_, _| Plan {
        exec: Arc::new(|exec| ExecPlan {
            exit_code: i32::from(exec.command == ["live"]),
            errors: b"no pulse".to_vec(),
            ..ExecPlan::default()
        }),
        ..Plan::default()
    })
    .await;
    let container = json!({
        "name": "main",
        "image": "x:1",
        "readinessProbe": {"exec": {"command": ["ready"]}, "initialDelaySeconds": 5},
        "livenessProbe": {"exec": {"command": ["live"]}, "periodSeconds": 10, "failureThreshold": 2},
    });
    cluster
        .pod("sick", json!({"containers": [container]}))
        .await;
    let unready = when(&cluster.pods(), "sick", |pod| phase(pod) == "Running").await;
    assert!(!is_ready(&unready));
    when(&cluster.pods(), "sick", is_ready).await;
    when(&cluster.pods(), "sick", |pod| {
        let statuses = pod.status.as_ref().unwrap().container_statuses.as_ref();
        statuses.is_some_and(|all| all[0].restart_count == 1)
    })
    .await;
    let events = cluster.events("sick").await;
    for wanted in [
        "Unhealthy: Liveness probe failed: no pulse",
        "Killing: Container main failed liveness probe, will be restarted",
    ] {
        assert!(events.iter().any(|event| event == wanted), "{events:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_windows_node_gives_a_pod_its_files_and_takes_them_back() {
    let cluster = Cluster::started(Os::Windows, |_, _| Plan::default()).await;
    let maps: Objects<ConfigMap> = Objects::namespaced(cluster.client.clone(), "default");
    create(
        &maps,
        json!({"metadata": {"name": "settings"}, "data": {"a": "1", "b": "2"}}),
    )
    .await;
    let pod = cluster
        .pod("app", json!({
            "os": {"name": "windows"},
            "containers": [{"name": "main", "image": "x:1", "volumeMounts": [{"name": "settings", "mountPath": "/settings"}]}],
            "volumes": [{"name": "settings", "configMap": {"name": "settings", "items": [{"key": "a", "path": "below/a.txt"}]}}],
        }))
        .await;
    when(&cluster.pods(), "app", |pod| phase(pod) == "Running").await;
    let folder = format!(r"C:\Transom\pods\{}", pod.metadata.uid.unwrap());
    let volume = format!(r"{folder}\volumes\kubernetes.io~configmap\settings");
    let files = cluster.files();
    assert_eq!(
        files
            .read(format!(r"{volume}\below\a.txt").as_str().into(), 10)
            .unwrap(),
        b"1"
    );
    assert!(
        files
            .metadata(format!(r"{volume}\b").as_str().into())
            .is_err()
    );
    cluster
        .pods()
        .delete("app", &DeleteParams::default())
        .await
        .unwrap();
    gone(&cluster.pods(), "app").await;
    assert!(cluster.files().metadata(folder.as_str().into()).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_volume_nobody_can_make_is_told_clearly() {
    let cluster = Cluster::started(Os::Linux, |_, _| Plan::default()).await;
    cluster
        .pod(
            "app",
            json!({
                "containers": [{"name": "main", "image": "x:1"}],
                "volumes": [{"name": "share", "nfs": {"server": "192.0.2.1", "path": "/"}}],
            }),
        )
        .await;
    let wanted = "FailedMount: MountVolume.SetUp failed for volume \"share\" : volume type nfs is not supported yet";
    let told = async {
        while !cluster
            .events("app")
            .await
            .iter()
            .any(|event| event == wanted)
        {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(crate::cluster::PATIENCE, told)
        .await
        .unwrap();
    let pod = when(&cluster.pods(), "app", |_| true).await;
    assert_eq!(phase(&pod), "Pending");
}
