//! An agent that is started again, and one that cannot reach the API.

use std::time::Duration;

use kube::{ResourceExt as _, api::DeleteParams};
use serde_json::json;
use transom_host::files::{Access, Files as _};
use transom_model::Os;
use transom_runtime::{ContainerState, Runtime as _, fake::Plan};

use crate::cluster::{Cluster, NODE, PATIENCE, gone, phase, when};

async fn running(cluster: &Cluster, attempt: u32) -> transom_runtime::Container {
    let wait = async {
        loop {
            for pod in cluster.runtime.pods().await.unwrap() {
                for one in pod.containers {
                    if one.attempt == attempt && matches!(one.state, ContainerState::Running { .. })
                    {
                        return one;
                    }
                }
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_new_agent_adopts_what_runs() {
    let mut cluster = Cluster::started(Os::Linux, |_, _| Plan::default()).await;
    cluster
        .pod(
            "web",
            json!({"containers": [{"name": "main", "image": "x:1"}]}),
        )
        .await;
    when(&cluster.pods(), "web", |pod| phase(pod) == "Running").await;
    let before = running(&cluster, 0).await;
    cluster.kill().await;
    cluster.start();
    cluster
        .pod(
            "other",
            json!({"containers": [{"name": "main", "image": "x:1"}]}),
        )
        .await;
    when(&cluster.pods(), "other", |pod| phase(pod) == "Running").await;
    let pods = cluster.runtime.pods().await.unwrap();
    let after = pods
        .iter()
        .flat_map(|pod| &pod.containers)
        .find(|one| one.id == before.id);
    assert_eq!(after.unwrap().state, before.state);
    assert_eq!(pods.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_was_deleted_while_no_agent_ran_is_ended_by_the_next() {
    let mut cluster = Cluster::started(Os::Linux, |_, _| Plan::default()).await;
    cluster
        .pod(
            "web",
            json!({"containers": [{"name": "main", "image": "x:1"}]}),
        )
        .await;
    when(&cluster.pods(), "web", |pod| phase(pod) == "Running").await;
    cluster.kill().await;
    let now = DeleteParams {
        grace_period_seconds: Some(0),
        ..DeleteParams::default()
    };
    cluster.pods().delete("web", &now).await.unwrap();
    gone(&cluster.pods(), "web").await;
    cluster.start();
    cluster.emptied().await;
}

#[tokio::test(start_paused = true)]
async fn without_the_api_a_new_agent_restarts_what_dies_and_tells_later() {
    let mut cluster = Cluster::started(Os::Linux, |_, _| Plan::default()).await;
    cluster
        .pod(
            "web",
            json!({"containers": [{"name": "main", "image": "x:1"}]}),
        )
        .await;
    when(&cluster.pods(), "web", |pod| phase(pod) == "Running").await;
    let container = running(&cluster, 0).await;
    cluster.set_away(true);
    cluster.kill().await;
    cluster.start();
    cluster.runtime.crash(&container.id, 1);
    running(&cluster, 1).await;
    cluster.set_away(false);
    when(&cluster.pods(), "web", |pod| {
        let statuses = pod.status.as_ref().unwrap().container_statuses.as_ref();
        statuses.is_some_and(|all| all[0].restart_count == 1 && all[0].ready)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_manifest_in_the_folder_runs_and_has_a_mirror() {
    let cluster = Cluster::started(Os::Linux, |_, _| Plan::default()).await;
    let manifest = "apiVersion: v1\nkind: Pod\nmetadata: {name: static}\nspec:\n  containers: [{name: main, image: 'x:1'}]\n";
    let folder = camino::Utf8Path::new("/var/lib/transom/manifests");
    // Of an imaginary Linux: joined as it joins, on whatever system this runs.
    let file = camino::Utf8PathBuf::from(format!("{folder}/static.yaml"));
    cluster.files().create_dir_all(folder).unwrap();
    cluster
        .files()
        .write_durable(&file, manifest.as_bytes(), Access::Public)
        .unwrap();
    let name = format!("static-{NODE}");
    let mirror = when(&cluster.pods(), &name, |pod| phase(pod) == "Running").await;
    assert!(
        mirror
            .annotations()
            .contains_key("kubernetes.io/config.mirror")
    );
    cluster.files().remove_file(&file).unwrap();
    gone(&cluster.pods(), &name).await;
    cluster.emptied().await;
}
