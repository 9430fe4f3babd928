//! The life of pods: from bound to running, through crashes, to deleted.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::api::DeleteParams;
use serde_json::json;
use transom_host::files::Files as _;
use transom_model::Os;
use transom_runtime::{
    Runtime as _,
    fake::{OnStop, Plan},
};

use crate::cluster::{Cluster, NODE, condition, gone, phase, when};

fn first(pod: &Pod) -> &ContainerStatus {
    &pod.status
        .as_ref()
        .unwrap()
        .container_statuses
        .as_ref()
        .unwrap()[0]
}

fn waiting_for(pod: &Pod) -> Option<(String, String)> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let waiting = statuses.first()?.state.as_ref()?.waiting.clone()?;
    Some((waiting.reason?, waiting.message.unwrap_or_default()))
}

#[tokio::test(start_paused = true)]
async fn a_node_registers_with_what_it_has_and_comes_back_when_deleted() {
    let cluster = Cluster::started(Os::Windows, |_, _| Plan::default()).await;
    let node = cluster.node_when(|_| true).await;
    let labels = node.metadata.labels.clone().unwrap();
    for (name, value) in [
        ("kubernetes.io/os", "windows"),
        ("beta.kubernetes.io/os", "windows"),
        ("kubernetes.io/arch", "amd64"),
        ("kubernetes.io/hostname", NODE),
        ("node.kubernetes.io/windows-build", "10.0.20348"),
        ("zone", "a"),
    ] {
        assert_eq!(labels[name], value, "{name}");
    }
    for name in ["MemoryPressure", "DiskPressure", "PIDPressure"] {
        assert_eq!(condition(&node, name).as_deref(), Some("False"), "{name}");
    }
    let status = node.status.unwrap();
    assert_eq!(status.capacity.unwrap()["cpu"].0, "2");
    assert_eq!(status.allocatable.unwrap()["cpu"].0, "1500m");
    let nodes = kube::Api::<k8s_openapi::api::core::v1::Node>::all(cluster.client.clone());
    nodes.delete(NODE, &DeleteParams::default()).await.unwrap();
    let uid = node.metadata.uid;
    cluster
        .node_when(|newer| {
            newer.metadata.uid != uid && condition(newer, "Ready").as_deref() == Some("True")
        })
        .await;
    let leases = kube::Api::<k8s_openapi::api::coordination::v1::Lease>::namespaced(
        cluster.client.clone(),
        "kube-node-lease",
    );
    let before = when(&leases, NODE, |_| true).await.spec.unwrap().renew_time;
    when(&leases, NODE, |lease| {
        lease.spec.as_ref().unwrap().renew_time != before
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_bound_pod_runs_and_leaves_nothing_when_it_is_deleted() {
    let cluster = Cluster::started(Os::Linux, |_, _| Plan::default()).await;
    cluster
        .pod("web", json!({
            "containers": [{"name": "main", "image": "registry.example.org/web:1", "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]}],
            "volumes": [{"name": "scratch", "emptyDir": {}}],
        }))
        .await;
    let pod = when(&cluster.pods(), "web", |pod| phase(pod) == "Running").await;
    let status = pod.status.clone().unwrap();
    assert_eq!(status.host_ip.as_deref(), Some("192.0.2.7"));
    assert!(status.pod_ip.is_some());
    assert_eq!(status.qos_class.as_deref(), Some("BestEffort"));
    for name in [
        "PodReadyToStartContainers",
        "Initialized",
        "ContainersReady",
        "Ready",
        "PodScheduled",
    ] {
        let conditions = status.conditions.as_ref().unwrap();
        let one = conditions.iter().find(|one| one.type_ == name).unwrap();
        assert_eq!(one.status, "True", "{name}");
    }
    let main = first(&pod);
    assert!(main.ready && main.started == Some(true) && main.restart_count == 0);
    let events = cluster.events("web").await;
    let reasons: Vec<_> = events
        .iter()
        .map(|event| event.split(':').next().unwrap())
        .collect();
    assert_eq!(
        reasons,
        ["Pulling", "Pulled", "Created", "Started"],
        "{events:?}"
    );

    cluster
        .pods()
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
    gone(&cluster.pods(), "web").await;
    assert!(cluster.runtime.pods().await.unwrap().is_empty());
    let uid = pod.metadata.uid.unwrap();
    assert!(
        cluster
            .files()
            .metadata(format!("/var/lib/transom/pods/{uid}").as_str().into())
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
async fn a_container_that_crashes_comes_back_later_each_time() {
    let cluster = Cluster::started(Os::Linux, |_, _| Plan::ends(Duration::from_secs(1), 3)).await;
    let begun = cluster.now();
    cluster
        .pod(
            "bad",
            json!({"containers": [{"name": "main", "image": "x:1"}]}),
        )
        .await;
    let mut times = Vec::new();
    for restarts in 1..=4 {
        let pod = when(&cluster.pods(), "bad", |pod| {
            pod.status
                .as_ref()
                .is_some_and(|status| status.container_statuses.is_some())
                && first(pod).restart_count == restarts
        })
        .await;
        assert_eq!(phase(&pod), "Running");
        times.push(cluster.now().duration_since(begun).as_secs());
    }
    let pauses: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(times[0] <= 3, "the first restart comes at once: {times:?}");
    for (pause, wanted) in pauses.iter().zip([10, 20, 40]) {
        assert!((wanted..=wanted + 3).contains(pause), "{pauses:?}");
    }
    let pod = when(&cluster.pods(), "bad", |pod| waiting_for(pod).is_some()).await;
    let (reason, message) = waiting_for(&pod).unwrap();
    assert_eq!(reason, "CrashLoopBackOff");
    let uid = pod.metadata.uid.as_deref().unwrap();
    assert_eq!(
        message,
        format!("back-off 1m20s restarting failed container=main pod=bad_default({uid})")
    );
    let last = first(&pod).last_state.clone().unwrap().terminated.unwrap();
    assert_eq!(last.exit_code, 3);
    let events = cluster.events("bad").await;
    let told =
        format!("BackOff: Back-off restarting failed container main in pod bad_default({uid})");
    assert!(events.contains(&told), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn older_parts_of_a_log_go_with_the_container_that_is_forgotten() {
    let cluster = Cluster::started(Os::Linux, |_, _| Plan::ends(Duration::from_secs(1), 3)).await;
    cluster
        .pod(
            "bad",
            json!({"containers": [{"name": "main", "image": "x:1"}]}),
        )
        .await;
    let restarted = async |wanted: i32| {
        when(&cluster.pods(), "bad", |pod| {
            let status = pod.status.as_ref();
            let is_there = status.is_some_and(|status| status.container_statuses.is_some());
            is_there && first(pod).restart_count >= wanted
        })
        .await
    };
    let pod = restarted(1).await;
    let uid = pod.metadata.uid.as_deref().unwrap();
    let folder = format!("/var/lib/transom/logs/default_bad_{uid}/main");
    let [own, other] = ["0.log.20260101-000000", "10.log.20260101-000000"]
        .map(|name| camino::Utf8PathBuf::from(format!("{folder}/{name}")));
    cluster
        .files()
        .create_dir_all(folder.as_str().into())
        .unwrap();
    for path in [&own, &other] {
        let access = transom_host::files::Access::Public;
        cluster.files().write_durable(path, b"x", access).unwrap();
    }
    restarted(4).await;
    assert!(cluster.files().metadata(&own).is_err());
    assert!(cluster.files().metadata(&other).is_ok());
}

#[tokio::test(start_paused = true)]
async fn containers_begin_in_order_and_a_job_succeeds() {
    let cluster = Cluster::started(Os::Linux, |_, container| match container.name.as_str() {
        "sidecar" => Plan::default(),
        _ => Plan::ends(Duration::from_secs(5), 0),
    })
    .await;
    let spec = json!({
        "restartPolicy": "Never",
        "initContainers": [
            {"name": "first", "image": "x:1"},
            {"name": "sidecar", "image": "x:1", "restartPolicy": "Always"},
            {"name": "second", "image": "x:1"},
        ],
        "containers": [{"name": "main", "image": "x:1"}],
    });
    cluster.pod("job", spec).await;
    let pod = when(&cluster.pods(), "job", |pod| phase(pod) == "Succeeded").await;
    let started: Vec<_> = cluster
        .events("job")
        .await
        .into_iter()
        .filter(|event| event.starts_with("Started"))
        .collect();
    assert_eq!(started.len(), 4);
    let status = pod.status.unwrap();
    let at = |list: &[ContainerStatus], index: usize| {
        list[index].state.clone().unwrap().terminated.unwrap()
    };
    let init = status.init_container_statuses.unwrap();
    let main = status.container_statuses.unwrap();
    assert!(at(&init, 0).finished_at <= at(&init, 1).started_at);
    assert!(at(&init, 2).finished_at <= at(&main, 0).started_at);
    assert!(
        at(&main, 0).finished_at <= at(&init, 1).finished_at,
        "the sidecar ends last"
    );
    let reason = |name: &str| {
        let conditions = status.conditions.as_ref().unwrap();
        conditions
            .iter()
            .find(|one| one.type_ == name)
            .unwrap()
            .reason
            .clone()
    };
    assert_eq!(reason("Ready").as_deref(), Some("PodCompleted"));
}

#[tokio::test(start_paused = true)]
async fn a_program_that_does_not_end_is_killed_after_its_grace() {
    let cluster = Cluster::started(Os::Linux, |_, _| Plan {
        on_stop: OnStop::Nothing,
        ..Plan::default()
    })
    .await;
    cluster.pod("deaf", json!({"terminationGracePeriodSeconds": 20, "containers": [{"name": "main", "image": "x:1"}]})).await;
    when(&cluster.pods(), "deaf", |pod| phase(pod) == "Running").await;
    let begun = cluster.now();
    cluster
        .pods()
        .delete("deaf", &DeleteParams::default())
        .await
        .unwrap();
    gone(&cluster.pods(), "deaf").await;
    let took = cluster.now().duration_since(begun).as_secs();
    assert!((20..=23).contains(&took), "{took}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_the_node_cannot_have_is_refused() {
    let cluster = Cluster::started(Os::Linux, |_, _| Plan::default()).await;
    for (name, spec, reason) in [
        (
            "windows",
            json!({"os": {"name": "windows"}, "containers": [{"name": "a", "image": "x"}]}),
            "PodOSNotSupported",
        ),
        (
            "large",
            json!({"containers": [{"name": "a", "image": "x", "resources": {"requests": {"cpu": "1600m"}}}]}),
            "OutOfcpu",
        ),
    ] {
        cluster.pod(name, spec).await;
        let pod = when(&cluster.pods(), name, |pod| phase(pod) == "Failed").await;
        assert_eq!(pod.status.unwrap().reason.as_deref(), Some(reason));
    }
    assert!(cluster.runtime.pods().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_missing_config_map_is_told_and_waited_for() {
    let cluster = Cluster::started(Os::Linux, |_, _| Plan::default()).await;
    let container = json!({"name": "main", "image": "x:1", "env": [
        {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "a"}}},
    ]});
    cluster.pod("app", json!({"containers": [container]})).await;
    let pod = when(&cluster.pods(), "app", |pod| {
        waiting_for(pod).is_some_and(|(reason, _)| reason == "CreateContainerConfigError")
    })
    .await;
    assert_eq!(
        waiting_for(&pod).unwrap().1,
        "configmap \"settings\" not found"
    );
    let maps = kube::Api::<k8s_openapi::api::core::v1::ConfigMap>::namespaced(
        cluster.client.clone(),
        "default",
    );
    crate::cluster::create(
        &maps,
        json!({"metadata": {"name": "settings"}, "data": {"a": "1"}}),
    )
    .await;
    when(&cluster.pods(), "app", |pod| phase(pod) == "Running").await;
}
