//! `/stats/summary`, with upstream's names. What a system does not count is absent.

use axum::{Json, extract::State};
use jiff::Timestamp;
use serde_json::{Value, json};
use transom_host::{
    files::Space,
    machine::{MemoryInUse, Traffic},
};
use transom_runtime::{ImageSpace, Usage};

use super::super::Desk;
use crate::figures::{ContainerFigures, NodeFigures, PodFigures, Snapshot, VolumeFigures, Work};

pub(in super::super) async fn summary(State(desk): State<Desk>) -> Json<Value> {
    let latest = desk.site.figures.latest();
    Json(render(&desk.site.options.node, &latest))
}

pub(super) fn render(name: &str, snapshot: &Snapshot) -> Value {
    without_nulls(json!({
        "node": node(name, &snapshot.node),
        "pods": snapshot.pods.iter().map(|one| pod(one, &snapshot.node)).collect::<Vec<_>>(),
    }))
}

/// Times are told in whole seconds.
fn time(when: Timestamp) -> Value {
    json!(Timestamp::from_second(when.as_second()).unwrap_or(when))
}

/// The window is a word of our own: over which time the rate was seen.
fn cpu(work: &Work) -> Value {
    json!({
        "time": time(work.taken),
        "usageNanoCores": work.rate.map(|rate| rate.nanocores),
        "usageCoreNanoSeconds": work.done,
        "windowNanoSeconds": work.rate.map(|rate| rate.window_nanoseconds),
    })
}

fn node(name: &str, node: &NodeFigures) -> Value {
    let taken = node.taken.map(time);
    let counters = &node.counters;
    json!({
        "nodeName": name,
        "startTime": node.booted.map(time),
        "cpu": node.work.as_ref().map(cpu),
        "memory": counters.memory.map(|memory| node_memory(taken.as_ref(), &memory, node.memory_bytes)),
        "network": network(taken.as_ref(), &counters.traffic),
        "fs": node.space.map(|space| file_system(taken.as_ref(), &space)),
        "runtime": node.images.map(|images| json!({
            "imageFs": image_file_system(taken.as_ref(), &images),
        })),
        "rlimit": counters.processes.map(|count| json!({
            "time": taken, "maxpid": counters.most_processes, "curproc": count,
        })),
    })
}

fn node_memory(taken: Option<&Value>, memory: &MemoryInUse, whole: Option<u64>) -> Value {
    json!({
        "time": taken,
        "availableBytes": whole.map(|whole| whole.saturating_sub(memory.working_set)),
        "usageBytes": memory.usage,
        "workingSetBytes": memory.working_set,
        "rssBytes": memory.resident,
        "pageFaults": memory.page_faults,
        "majorPageFaults": memory.major_page_faults,
    })
}

/// The busiest link stands for all, as upstream's default one does.
fn network(taken: Option<&Value>, all: &[Traffic]) -> Option<Value> {
    let one = |link: &Traffic| {
        json!({
            "name": link.link,
            "rxBytes": link.received_bytes,
            "rxErrors": link.receive_errors,
            "txBytes": link.sent_bytes,
            "txErrors": link.send_errors,
        })
    };
    let mut shown = one(all.iter().max_by_key(|link| link.received_bytes)?);
    shown["time"] = json!(taken);
    shown["interfaces"] = all.iter().map(one).collect();
    Some(shown)
}

fn file_system(taken: Option<&Value>, space: &Space) -> Value {
    json!({
        "time": taken,
        "availableBytes": space.available,
        "capacityBytes": space.total,
        "usedBytes": space.total.saturating_sub(space.available),
        "inodesFree": space.inodes.map(|inodes| inodes.available),
        "inodes": space.inodes.map(|inodes| inodes.total),
        "inodesUsed": space.inodes.map(|inodes| inodes.total.saturating_sub(inodes.available)),
    })
}

fn image_file_system(taken: Option<&Value>, images: &ImageSpace) -> Value {
    json!({
        "time": taken,
        "availableBytes": images.available_bytes,
        "capacityBytes": images.capacity_bytes,
        "usedBytes": images.used_bytes,
    })
}

fn pod(pod: &PodFigures, node: &NodeFigures) -> Value {
    let taken = time(pod.taken);
    let containers = pod.containers.iter();
    let written: Vec<u64> = containers
        .clone()
        .flat_map(|one| [one.stats.writable, one.stats.logs])
        .flatten()
        .map(|usage: Usage| usage.used_bytes)
        .chain(pod.volumes.iter().map(|volume| volume.used_bytes))
        .collect();
    json!({
        "podRef": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
        "startTime": time(pod.started),
        "containers": containers.map(|one| container(one, &taken, node)).collect::<Vec<_>>(),
        "cpu": pod.work().as_ref().map(cpu),
        "memory": pod.working_set().map(|working_set| json!({
            "time": taken,
            "usageBytes": pod.memory_usage(),
            "workingSetBytes": working_set,
            "rssBytes": pod.resident(),
            "pageFaults": pod.page_faults(),
        })),
        "network": pod.network.map(|(received, sent)| json!({
            "time": taken, "name": "eth0", "rxBytes": received, "txBytes": sent,
            "interfaces": [{"name": "eth0", "rxBytes": received, "txBytes": sent}],
        })),
        "volume": (!pod.volumes.is_empty()).then(|| {
            let volumes = pod.volumes.iter();
            volumes.map(|one| volume(one, node)).collect::<Vec<_>>()
        }),
        "ephemeral-storage": (!written.is_empty()).then(|| json!({
            "time": taken,
            "usedBytes": written.iter().sum::<u64>(),
            "availableBytes": node.space.map(|space| space.available),
            "capacityBytes": node.space.map(|space| space.total),
        })),
        "process_stats": pod.processes.map(|count| json!({"process_count": count})),
    })
}

fn volume(one: &VolumeFigures, node: &NodeFigures) -> Value {
    json!({
        "time": time(one.taken),
        "name": one.name,
        "availableBytes": node.space.map(|space| space.available),
        "capacityBytes": node.space.map(|space| space.total),
        "usedBytes": one.used_bytes,
        "inodesUsed": one.entries,
    })
}

fn container(one: &ContainerFigures, taken: &Value, node: &NodeFigures) -> Value {
    let stats = &one.stats;
    let images = node.images.as_ref();
    json!({
        "name": stats.name,
        "startTime": time(one.started),
        "cpu": one.work.as_ref().map(cpu),
        "memory": stats.memory.map(|memory| json!({
            "time": taken,
            "availableBytes": one.memory_limit.map(|limit| limit.saturating_sub(memory.working_set_bytes)),
            "usageBytes": memory.usage_bytes,
            "workingSetBytes": memory.working_set_bytes,
            "rssBytes": memory.rss_bytes,
            "pageFaults": memory.page_faults,
        })),
        "rootfs": stats.writable.map(|used| json!({
            "time": taken,
            "availableBytes": images.map(|images| images.available_bytes),
            "capacityBytes": images.map(|images| images.capacity_bytes),
            "usedBytes": used.used_bytes,
            "inodesUsed": used.inodes_used,
        })),
        "logs": stats.logs.map(|used| json!({
            "time": taken,
            "availableBytes": node.space.map(|space| space.available),
            "capacityBytes": node.space.map(|space| space.total),
            "usedBytes": used.used_bytes,
            "inodesUsed": used.inodes_used,
        })),
    })
}

/// What a system does not count is absent, never null.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(
                kept.map(|(key, value)| (key, without_nulls(value)))
                    .collect(),
            )
        }
        Value::Array(list) => Value::Array(list.into_iter().map(without_nulls).collect()),
        other => other,
    }
}
