//! Whoever goes away in the middle: callers, agents, and records that cannot be read.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use camino::Utf8PathBuf;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use transom_runtime::oci::BridgeSettings;
use transom_runtime::{PodNetwork, PodState};

use super::Oci;
use super::machine::{members, wait_for_helper, wait_for_members};
use super::survival::{hear, start_agent};
use crate::backend::{Backend, Role};
use crate::tool::{Place, is_running, pod_spec};

super::cases! {
    a_start_that_nobody_waits_for_goes_on_and_its_pod_can_be_removed,
    a_pod_that_nobody_waits_for_is_made_and_found,
    a_container_that_comes_while_its_pod_ends_ends_with_it,
    a_container_that_was_being_started_when_its_agent_died_is_taken_over,
    a_shim_that_is_killed_takes_the_first_process_of_its_pod_along,
    a_record_that_cannot_be_read_keeps_no_other_pod_from_being_taken_over,
    a_pod_that_could_not_be_made_leaves_nothing,
    a_removal_that_failed_halfway_is_done_again,
    a_node_that_is_cleared_keeps_no_cgroup,
}

/// All folders of a cgroup, in whatever hierarchy.
fn groups(backend: &Oci) -> Vec<Utf8PathBuf> {
    let mut pending = vec![Utf8PathBuf::from("/sys/fs/cgroup")];
    let mut found = Vec::new();
    for depth in 0..2 {
        for folder in std::mem::take(&mut pending) {
            if folder.join(backend.cgroup()).is_dir() {
                found.push(folder.join(backend.cgroup()));
            }
            let inner = folder.read_dir_utf8().into_iter().flatten().flatten();
            let inner = inner.filter(|entry| depth == 0 && entry.path().is_dir());
            pending.extend(inner.map(|entry| entry.path().to_owned()));
        }
    }
    found
}

async fn a_start_that_nobody_waits_for_goes_on_and_its_pod_can_be_removed() {
    let backend = Arc::new(Oci::new());
    let place = Place::new(Arc::clone(&backend) as Arc<dyn Backend>).await;
    let id = place.create(&place.spec("main", &Role::Stubborn)).await;
    let (cgroup, starting) = (
        backend.cgroup().to_owned(),
        place.runtime.start_container(&id),
    );
    let seen = tokio::task::spawn_blocking(move || wait_for_helper(&cgroup));
    tokio::select! {
        biased;
        seen = seen => seen.unwrap(),
        started = starting => panic!("it was too fast to be interrupted: {started:?}"),
    }
    place.clean_up().await;
    wait_for_members(backend.cgroup(), 0);
}

async fn a_pod_that_nobody_waits_for_is_made_and_found() {
    let backend = Arc::new(Oci::new());
    let runtime = backend.open().await;
    let spec = pod_spec(&*backend, "one");
    // Begun and let go.
    tokio::select! {
        biased;
        made = runtime.start_pod(&spec) => panic!("it was too fast to be interrupted: {made:?}"),
        () = std::future::ready(()) => {}
    }
    let pod = runtime.start_pod(&spec).await.unwrap();
    wait_for_members(&format!("{}/shims", backend.cgroup()), 1);
    runtime.remove_pod(&pod).await.unwrap();
    wait_for_members(backend.cgroup(), 0);
}

/// What an agent says to the shim of a pod, by hand.
fn shut_down(socket: &str) {
    let call = br#"{"version": 1, "call": "Shutdown"}"#;
    let mut frame = u32::try_from(call.len()).unwrap().to_be_bytes().to_vec();
    frame.push(0);
    frame.extend(call);
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(&frame).unwrap();
    // Open until the shim is gone.
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer));
}

async fn a_container_that_comes_while_its_pod_ends_ends_with_it() {
    let backend = Arc::new(Oci::new());
    let place = Place::new(Arc::clone(&backend) as Arc<dyn Backend>).await;
    let id = place.create(&place.spec("main", &Role::Stubborn)).await;
    let (runtime, starting) = (Arc::clone(&place.runtime), id.clone());
    let started = tokio::spawn(async move { runtime.start_container(&starting).await });
    let cgroup = backend.cgroup().to_owned();
    let socket = backend.folder().join("state/pods").join(&place.pod.0);
    tokio::task::spawn_blocking(move || {
        wait_for_helper(&cgroup);
        shut_down(socket.join("s").as_str());
    })
    .await
    .unwrap();
    wait_for_members(backend.cgroup(), 0);
    // Started and killed, or told that the shim is gone: either is true.
    drop(started.await.unwrap());
    wait_until_not_ready(&place).await;
    place.clean_up().await;
}

async fn a_container_that_was_being_started_when_its_agent_died_is_taken_over() {
    let backend = Arc::new(Oci::new());
    let (mut agent, mut output) = start_agent(&backend);
    hear(&mut output, "made\n");
    wait_for_helper(backend.cgroup());
    agent.kill().unwrap();
    agent.wait().unwrap();
    let place = Place::new(Arc::clone(&backend) as Arc<dyn Backend>).await;
    let containers = place.pod().await.containers;
    assert_eq!(containers.len(), 1);
    assert!(is_running(&containers[0]), "{containers:?}");
    place.wait_for_log(&containers[0].id, "ready\n").await;
    place.clean_up().await;
    wait_for_members(backend.cgroup(), 0);
}

async fn a_shim_that_is_killed_takes_the_first_process_of_its_pod_along() {
    let backend = Arc::new(Oci::new());
    let runtime = backend.open().await;
    let mut spec = pod_spec(&*backend, "one");
    spec.share_processes = true;
    let pod = runtime.start_pod(&spec).await.unwrap();
    let shims = format!("{}/shims", backend.cgroup());
    let socket = backend.folder().join("state/pods").join(&pod.0);
    // A shim and a first process.
    wait_for_members(&shims, 2);
    let attendants = members(&shims);
    let place = Place {
        backend: Arc::clone(&backend) as Arc<dyn Backend>,
        runtime,
        pod,
    };
    for pid in attendants {
        let words = fs_err::read(format!("/proc/{pid}/cmdline")).unwrap();
        if words.ends_with(format!("{socket}\0").as_bytes()) {
            kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
        }
    }
    wait_until_not_ready(&place).await;
    place.clean_up().await;
    wait_for_members(backend.cgroup(), 0);
}

/// The end of a shim is noticed a moment later.
async fn wait_until_not_ready(place: &Place) {
    let mut events = place.runtime.events();
    while place.pod().await.state != PodState::NotReady {
        events.recv().await.unwrap();
    }
}

async fn a_record_that_cannot_be_read_keeps_no_other_pod_from_being_taken_over() {
    let backend = Arc::new(Oci::new());
    let place = Place::new(Arc::clone(&backend) as Arc<dyn Backend>).await;
    let id = place.start_ready("main", &Role::Run).await;
    let other = pod_spec(&*backend, "two");
    let broken = place.runtime.start_pod(&other).await.unwrap();
    let folder = backend.folder().join("state/pods").join(&broken.0);
    fs_err::write(folder.join("pod.json"), "{ half a").unwrap();
    let place = place.reopen().await;
    let pods = place.runtime.pods().await.unwrap();
    assert_eq!(pods.len(), 1, "{pods:?}");
    assert!(is_running(&place.container(&id).await));
    assert!(!folder.exists());
    wait_for_members(&format!("{}/shims", backend.cgroup()), 1);
    place.clean_up().await;
}

async fn a_pod_that_could_not_be_made_leaves_nothing() {
    let backend = Arc::new(Oci::new());
    let runtime = backend.open().await;
    let mut spec = pod_spec(&*backend, "one");
    spec.network = PodNetwork::Own;
    "kubepods/podone".clone_into(&mut spec.cgroup_parent);
    spec.sysctls = [("kernel.panic".to_owned(), "1".to_owned())].into();
    runtime.start_pod(&spec).await.unwrap_err();
    wait_for_members(backend.cgroup(), 0);
    let pods = backend.folder().join("state/pods");
    assert_eq!(fs_err::read_dir(pods).unwrap().count(), 0);
    let groups = groups(&backend);
    assert!(!groups.is_empty());
    for group in groups {
        assert!(!group.join("kubepods/podone").exists(), "{group}");
    }
}

async fn a_removal_that_failed_halfway_is_done_again() {
    let backend = Arc::new(Oci::new());
    let place = Place::new(Arc::clone(&backend) as Arc<dyn Backend>).await;
    let id = place.start_ready("main", &Role::Run).await;
    let folder = backend.folder().join("state/pods").join(&place.pod.0);
    // As far as an earlier removal came.
    fs_err::remove_file(folder.join("c").join(&id.0).join("container.json")).unwrap();
    place.runtime.remove_container(&id).await.unwrap();
    fs_err::remove_file(folder.join("pod.json")).unwrap();
    place.clean_up().await;
    assert!(!folder.exists());
}

async fn a_node_that_is_cleared_keeps_no_cgroup() {
    let backend = Arc::new(Oci::new());
    let place = Place::new(Arc::clone(&backend) as Arc<dyn Backend>).await;
    place.start_ready("main", &Role::Run).await;
    place.clean_up().await;
    assert!(!groups(&backend).is_empty());
    let unique = uuid::Uuid::new_v4().simple().to_string();
    let bridge = BridgeSettings {
        name: format!("tt{}", &unique[..6]),
        subnet: "10.213.0.0/24".to_owned(),
    };
    for _ in 0..2 {
        transom_runtime::oci::remove_all(&backend.settings(), &bridge)
            .await
            .unwrap();
    }
    assert_eq!(groups(&backend), Vec::<Utf8PathBuf>::new());
}
