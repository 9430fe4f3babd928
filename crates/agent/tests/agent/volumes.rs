//! Where the files of volumes are, and who may read them.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Patch, PatchParams};
use serde_json::json;
use transom_host::files::Files as _;
use transom_model::Os;
use transom_runtime::fake::Plan;

use crate::cluster::{Cluster, create, phase, when};

#[tokio::test(start_paused = true)]
async fn files_have_their_modes_and_secrets_are_in_memory() {
    let cluster = Cluster::started(Os::Linux, |_, _| Plan::default()).await;
    let secrets = kube::Api::<Secret>::namespaced(cluster.client.clone(), "default");
    create(
        &secrets,
        json!({"metadata": {"name": "s"}, "stringData": {"key": "x", "other": "y"}}),
    )
    .await;
    let maps = kube::Api::<ConfigMap>::namespaced(cluster.client.clone(), "default");
    create(
        &maps,
        json!({"metadata": {"name": "m"}, "data": {"run": "#!"}}),
    )
    .await;
    cluster
        .pod("web", json!({
            "securityContext": {"fsGroup": 77},
            "containers": [{"name": "main", "image": "x:1"}],
            "volumes": [
                {"name": "secret", "secret": {"secretName": "s", "defaultMode": 0o400, "items": [{"key": "key", "path": "key"}, {"key": "other", "path": "below/other", "mode": 0o600}]}},
                {"name": "map", "configMap": {"name": "m", "defaultMode": 0o755}},
                {"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
                {"name": "disk", "emptyDir": {}},
            ],
        }))
        .await;
    let pod = when(&cluster.pods(), "web", |pod| phase(pod) == "Running").await;
    let uid = pod.metadata.uid.unwrap();
    let path = |kind: &str, below: &str| {
        let path = format!("/var/lib/transom/pods/{uid}/volumes/kubernetes.io~{kind}/{below}");
        camino::Utf8PathBuf::from(path)
    };
    let mode = |path: &camino::Utf8Path| cluster.files().metadata(path).unwrap().mode.unwrap();
    // The group may read, whatever the mode says.
    assert_eq!(mode(&path("secret", "secret/..data/key")), 0o440);
    assert_eq!(mode(&path("secret", "secret/..data/below/other")), 0o640);
    assert_eq!(mode(&path("configmap", "map/..data/run")), 0o755);
    let memory = |path: &camino::Utf8Path| cluster.files().memory_limit(path);
    assert_eq!(memory(&path("secret", "secret")), Some(None));
    assert_eq!(memory(&path("configmap", "map")), None);
    assert_eq!(memory(&path("empty-dir", "scratch")), Some(Some(1 << 20)));
    assert_eq!(memory(&path("empty-dir", "disk")), None);
}

#[tokio::test(start_paused = true)]
async fn programs_of_any_user_may_leave_last_words() {
    let cluster = Cluster::started(Os::Linux, |_, _| Plan::default()).await;
    cluster
        .pod(
            "web",
            json!({"containers": [{"name": "main", "image": "x:1"}]}),
        )
        .await;
    let pod = when(&cluster.pods(), "web", |pod| phase(pod) == "Running").await;
    let uid = pod.metadata.uid.unwrap();
    let path = format!("/var/lib/transom/pods/{uid}/containers/main/0.termination");
    let found = cluster.files().metadata(path.as_str().into()).unwrap();
    assert_eq!(found.mode, Some(0o666));
}

#[tokio::test(start_paused = true)]
async fn a_windows_node_says_that_it_has_no_folders_in_memory() {
    let cluster = Cluster::started(Os::Windows, |_, _| Plan::default()).await;
    cluster
        .pod(
            "web",
            json!({
                "os": {"name": "windows"},
                "hostNetwork": true,
                "securityContext": {"windowsOptions": {"hostProcess": true}},
                "containers": [{"name": "main", "image": "x:1"}],
                "volumes": [{"name": "scratch", "emptyDir": {"medium": "Memory"}}],
            }),
        )
        .await;
    let wanted = "FailedMount: MountVolume.SetUp failed for volume \"scratch\" : emptyDir with medium \"Memory\" is not supported on a Windows node: use the default medium";
    let told = async {
        while !cluster
            .events("web")
            .await
            .iter()
            .any(|text| text == wanted)
        {
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        }
    };
    let in_time = tokio::time::timeout(crate::cluster::PATIENCE, told).await;
    assert!(in_time.is_ok(), "{:?}", cluster.events("web").await);
}

#[tokio::test(start_paused = true)]
async fn volumes_of_a_pod_that_is_never_quiet_are_brought_up_to_date() {
    let cluster = Cluster::started(Os::Linux, |_, _| Plan::default()).await;
    let maps = kube::Api::<ConfigMap>::namespaced(cluster.client.clone(), "default");
    create(
        &maps,
        json!({"metadata": {"name": "m"}, "data": {"key": "old"}}),
    )
    .await;
    cluster
        .pod(
            "web",
            json!({
                "containers": [{"name": "main", "image": "x:1"}],
                "volumes": [{"name": "map", "configMap": {"name": "m"}}],
            }),
        )
        .await;
    let pod = when(&cluster.pods(), "web", |pod| phase(pod) == "Running").await;
    let uid = pod.metadata.uid.unwrap();
    let file = format!("/var/lib/transom/pods/{uid}/volumes/kubernetes.io~configmap/map/key");
    let read = || cluster.files().read(file.as_str().into(), 99).unwrap();
    assert_eq!(read(), b"old");
    let patch = PatchParams::default();
    let change = Patch::Merge(json!({"data": {"key": "new"}}));
    maps.patch("m", &patch, &change).await.unwrap();
    let mut rounds = 0;
    while read() != b"new" {
        rounds += 1;
        assert!(rounds < 20, "nobody looked after the volume");
        let change = Patch::Merge(json!({"metadata": {"labels": {"round": rounds.to_string()}}}));
        cluster.pods().patch("web", &patch, &change).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_secs(20)).await;
    }
}
