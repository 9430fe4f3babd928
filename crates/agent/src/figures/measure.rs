//! One pass: the machine, its disks, and all that runs on it.

use std::{collections::HashMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use transom_runtime::{ContainerState, ContainerStats, Pod, PodStats};

use super::{ContainerFigures, NodeFigures, PodFigures, Snapshot, Work, volumes};
use crate::{pods::Pods, quantity, site::Site};

/// How long the runtime may take to count.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn measure(site: &Arc<Site>, pods: &Pods, before: &Snapshot) -> Snapshot {
    let node = measure_node(site, &before.node).await;
    let counted = tokio::time::timeout(PATIENCE, site.options.runtime.stats()).await;
    let (pods, trouble) = match counted {
        Ok(Ok(stats)) => {
            let wanted = pods.list();
            let mut all = of_pods(site, &wanted, stats, &before.pods);
            volumes::measure(site, &wanted, &mut all, before).await;
            (all, None)
        }
        Ok(Err(error)) => (before.pods.clone(), Some(error.to_string())),
        Err(_) => (
            before.pods.clone(),
            Some("the runtime did not count in time".to_owned()),
        ),
    };
    if let Some(trouble) = &trouble {
        tracing::warn!(error = trouble, "what pods use could not be measured");
    }
    Snapshot {
        node,
        pods,
        trouble,
    }
}

async fn measure_node(site: &Arc<Site>, before: &NodeFigures) -> NodeFigures {
    let images = tokio::time::timeout(PATIENCE, site.options.runtime.image_space()).await;
    let here = Arc::clone(site);
    let read = tokio::task::spawn_blocking(move || {
        let options = &here.options;
        let taken = options.clock.now();
        let uptime = options.machine.uptime().ok();
        NodeFigures {
            taken: Some(taken),
            booted: uptime.and_then(|uptime| taken.checked_sub(uptime).ok()),
            work: None,
            memory_bytes: options.machine.memory().ok().map(|memory| memory.total),
            counters: options.machine.counters(),
            space: options.files.free_space(&options.state).ok(),
            images: None,
        }
    });
    let mut now = read.await.unwrap_or_default();
    now.images = images.ok().and_then(Result::ok);
    if let (Some(taken), Some(done)) = (now.taken, now.counters.processor_time) {
        let done = u64::try_from(done.as_nanos()).unwrap_or(u64::MAX);
        now.work = Some(Work::counted(done, taken, None, before.work.as_ref()));
    }
    now
}

/// Brings together who is wanted here, who runs, and what was counted.
fn of_pods(
    site: &Site,
    wanted: &[Arc<v1::Pod>],
    stats: Vec<PodStats>,
    before: &[PodFigures],
) -> Vec<PodFigures> {
    let mut counted: HashMap<_, _> = stats
        .into_iter()
        .map(|one| (one.pod.clone(), one))
        .collect();
    let before: HashMap<_, _> = before.iter().map(|pod| (pod.uid.as_str(), pod)).collect();
    let mut all = Vec::new();
    for object in wanted {
        let uid = object.metadata.uid.clone().unwrap_or_default();
        let sandboxes = site.observer.sandboxes(&uid);
        let Some(sandbox) = sandboxes.first() else {
            continue;
        };
        let Some(stats) = counted.remove(&sandbox.id) else {
            continue;
        };
        let before = before.get(uid.as_str()).copied();
        all.push(of_pod(object, sandbox, stats, before));
    }
    all
}

pub(super) fn of_pod(
    object: &v1::Pod,
    sandbox: &Pod,
    stats: PodStats,
    before: Option<&PodFigures>,
) -> PodFigures {
    let taken = stats.taken;
    let containers = stats.containers.into_iter();
    PodFigures {
        namespace: object.metadata.namespace.clone().unwrap_or_default(),
        name: object.metadata.name.clone().unwrap_or_default(),
        uid: object.metadata.uid.clone().unwrap_or_default(),
        started: sandbox.created,
        taken,
        containers: containers
            .filter_map(|one| of_container(object, sandbox, one, taken, before))
            .collect(),
        network: stats.network,
        processes: stats.processes,
        volumes: Vec::new(),
        volumes_taken: None,
    }
}

/// `None` for one that the runtime does not list as running: it ended meanwhile.
fn of_container(
    object: &v1::Pod,
    sandbox: &Pod,
    stats: ContainerStats,
    taken: Timestamp,
    before: Option<&PodFigures>,
) -> Option<ContainerFigures> {
    let (id, started) = sandbox.containers.iter().find_map(|one| match one.state {
        ContainerState::Running { started } if one.name == stats.name => {
            Some((one.id.clone(), started))
        }
        _ => None,
    })?;
    let earlier = before.and_then(|pod| pod.containers.iter().find(|one| one.id == id));
    let earlier = earlier.and_then(|one| one.work);
    let work = stats
        .cpu
        .map(|cpu| Work::counted(cpu.used_nanoseconds, taken, Some(started), earlier.as_ref()));
    Some(ContainerFigures {
        id,
        started,
        work,
        memory_limit: memory_limit(object, &stats.name),
        stats,
    })
}

fn memory_limit(object: &v1::Pod, name: &str) -> Option<u64> {
    let spec = object.spec.as_ref()?;
    let mut all = spec
        .containers
        .iter()
        .chain(spec.init_containers.iter().flatten());
    let container = all.find(|one| one.name == name)?;
    let limits = container.resources.as_ref()?.limits.as_ref()?;
    u64::try_from(quantity::millis(limits.get("memory")?)? / 1000).ok()
}
