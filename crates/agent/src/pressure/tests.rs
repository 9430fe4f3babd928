//! When a node is short of something, who goes first, and what is said.

use std::{collections::BTreeMap, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use transom_host::{
    files::{Inodes, Space},
    machine::{Counters, MemoryInUse},
};
use transom_model::Os;
use transom_runtime::{ContainerId, ContainerStats, ImageSpace, Memory, Usage};

use super::{
    Condition, Eviction, Least, Signal, Threshold,
    judge::{Crossed, Observed, judge},
    limits::exceeded,
    rank::{Candidate, Resource, is_critical, message, rank},
};
use crate::figures::{ContainerFigures, NodeFigures, PodFigures, VolumeFigures};

const MIB: u64 = 1 << 20;

fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

/// A node with plenty of everything.
fn node() -> NodeFigures {
    NodeFigures {
        memory_bytes: Some(1000 * MIB),
        counters: Counters {
            memory: Some(MemoryInUse {
                working_set: 100 * MIB,
                ..MemoryInUse::default()
            }),
            processes: Some(10),
            most_processes: Some(1000),
            ..Counters::default()
        },
        space: Some(Space {
            total: 1000,
            available: 500,
            inodes: Some(Inodes {
                total: 1000,
                available: 500,
            }),
        }),
        images: Some(ImageSpace {
            used_bytes: 1,
            capacity_bytes: 2000,
            available_bytes: 1000,
        }),
        ..NodeFigures::default()
    }
}

fn judged(eviction: &Eviction, node: &NodeFigures) -> (Vec<Condition>, Vec<Signal>) {
    let found = judge(
        &eviction.hard,
        eviction.transition,
        node,
        &mut BTreeMap::new(),
        at(0),
    );
    let signals = found.crossed.iter().map(|one| one.threshold.signal);
    (found.conditions, signals.collect())
}

#[test]
fn a_node_is_short_of_what_falls_below_its_threshold() {
    type Change = fn(&mut NodeFigures);
    let cases: [(&str, Change, &[Condition]); 9] = [
        ("plenty", |_| {}, &[]),
        (
            "100Mi of memory are enough",
            |node| node.counters.memory.as_mut().unwrap().working_set = 900 * MIB,
            &[],
        ),
        (
            "less memory is not",
            |node| node.counters.memory.as_mut().unwrap().working_set = 900 * MIB + 1,
            &[Condition::Memory],
        ),
        (
            "a tenth of the disk is enough",
            |node| node.space.as_mut().unwrap().available = 100,
            &[],
        ),
        (
            "less disk is not",
            |node| node.space.as_mut().unwrap().available = 99,
            &[Condition::Disk],
        ),
        (
            "few inodes",
            |node| {
                node.space
                    .as_mut()
                    .unwrap()
                    .inodes
                    .as_mut()
                    .unwrap()
                    .available = 49;
            },
            &[Condition::Disk],
        ),
        (
            "a full disk of images",
            |node| node.images.as_mut().unwrap().available_bytes = 299,
            &[Condition::Disk],
        ),
        (
            "images on the disk of the node",
            |node| {
                node.space.as_mut().unwrap().available = 140;
                *node.images.as_mut().unwrap() = ImageSpace {
                    used_bytes: 1,
                    capacity_bytes: 1000,
                    available_bytes: 140,
                };
            },
            &[],
        ),
        (
            "what is not counted is not short",
            |node| *node = NodeFigures::default(),
            &[],
        ),
    ];
    for (name, change, wanted) in cases {
        let mut node = node();
        change(&mut node);
        let (conditions, crossed) = judged(&Eviction::usual(Os::Linux), &node);
        assert_eq!(conditions, wanted, "{name}");
        assert_eq!(crossed.len(), wanted.len(), "{name}");
    }
}

#[test]
fn memory_is_the_most_urgent() {
    let eviction: Eviction = "pid.available<991,nodefs.available<60%,memory.available<1Gi"
        .parse()
        .unwrap();
    let (conditions, crossed) = judged(&eviction, &node());
    assert_eq!(
        conditions,
        [Condition::Memory, Condition::Disk, Condition::Processes]
    );
    assert_eq!(crossed[0], Signal::MemoryAvailable);
}

#[test]
fn a_condition_stays_for_a_while_after_it_was_seen_last() {
    let eviction = Eviction::usual(Os::Windows);
    let mut short = node();
    short.counters.memory.as_mut().unwrap().working_set = 501 * MIB;
    let mut seen = BTreeMap::new();
    let mut look = |node: &NodeFigures, now: i64| {
        let found = judge(
            &eviction.hard,
            Duration::from_mins(5),
            node,
            &mut seen,
            at(now),
        );
        (found.conditions.len(), found.crossed.len())
    };
    assert_eq!(look(&short, 0), (1, 1));
    assert_eq!(look(&node(), 299), (1, 0));
    assert_eq!(look(&short, 299), (1, 1));
    assert_eq!(look(&node(), 598), (1, 0));
    assert_eq!(look(&node(), 599), (0, 0));
    // A clock that was set back makes nothing end sooner.
    assert_eq!(look(&short, 1000), (1, 1));
    assert_eq!(look(&node(), 10), (1, 0));
}

fn pod(name: &str, priority: i32, memory: &str) -> Pod {
    let requests = if memory.is_empty() {
        json!({})
    } else {
        json!({"memory": memory})
    };
    serde_json::from_value(json!({
        "metadata": {"name": name, "uid": name},
        "spec": {"priority": priority, "containers": [{"name": "c", "resources": {"requests": requests}}]},
    }))
    .unwrap()
}

fn figures(name: &str, memory: u64, processes: u64) -> PodFigures {
    PodFigures {
        namespace: "n".to_owned(),
        name: name.to_owned(),
        uid: name.to_owned(),
        started: at(0),
        taken: at(0),
        containers: vec![ContainerFigures {
            id: ContainerId(name.to_owned()),
            started: at(0),
            work: None,
            memory_limit: None,
            stats: ContainerStats {
                name: "c".to_owned(),
                cpu: None,
                memory: Some(Memory {
                    usage_bytes: memory,
                    working_set_bytes: memory,
                    rss_bytes: None,
                    page_faults: None,
                }),
                writable: Some(Usage {
                    used_bytes: processes * MIB,
                    inodes_used: Some(processes),
                }),
                logs: None,
            },
        }],
        network: None,
        processes: Some(processes),
        volumes: Vec::new(),
        volumes_taken: None,
    }
}

#[test]
fn a_pod_that_writes_more_than_it_may_goes() {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "p"},
        "spec": {
            "containers": [{"name": "c", "resources": {"limits": {"ephemeral-storage": "7Mi"}}}],
            "volumes": [{"name": "free", "emptyDir": {}}, {"name": "data", "emptyDir": {"sizeLimit": "1Ki"}}],
        },
    }))
    .unwrap();
    let written = |volume: u64, layer: u64| {
        let mut figures = figures("p", 0, layer);
        let named = |name: &str, used_bytes| VolumeFigures {
            name: name.to_owned(),
            taken: at(0),
            used_bytes,
            entries: 1,
        };
        figures.volumes = vec![named("free", MIB), named("data", volume)];
        exceeded(&pod, &figures)
    };
    assert_eq!(written(1024, 7), None);
    assert_eq!(
        written(1025, 7).as_deref(),
        Some("Usage of EmptyDir volume \"data\" exceeds the limit \"1Ki\". ")
    );
    assert_eq!(
        written(1024, 8).as_deref(),
        Some("Container c exceeded its local ephemeral storage limit \"7Mi\". ")
    );
}

#[test]
fn who_takes_more_than_was_asked_for_goes_first() {
    // Name, priority, request, use of memory, processes.
    let table: [(&str, i32, &str, u64, u64); 6] = [
        ("modest", 0, "500Mi", 400 * MIB, 9),
        ("important", 100, "", 900 * MIB, 1),
        ("greedy", 0, "100Mi", 300 * MIB, 3),
        ("small", 0, "", 10 * MIB, 5),
        ("unimportant", -5, "500Mi", 100 * MIB, 2),
        ("humble", -5, "", MIB, 4),
    ];
    let pods: Vec<Pod> = table
        .iter()
        .map(|(name, priority, request, ..)| pod(name, *priority, request))
        .collect();
    let counted: Vec<PodFigures> = table
        .iter()
        .map(|(name, .., memory, processes)| figures(name, *memory, *processes))
        .collect();
    let unknown = pod("unknown", 1000, "1Gi");
    let order = |resource: Resource| -> Vec<String> {
        let known = pods.iter().zip(&counted).map(|(pod, figures)| Candidate {
            pod,
            figures: Some(figures),
        });
        let mut all: Vec<_> = known.collect();
        all.push(Candidate {
            pod: &unknown,
            figures: None,
        });
        rank(&mut all, resource);
        let names = all.iter().map(|one| one.pod.metadata.name.clone());
        names.map(Option::unwrap).collect()
    };
    assert_eq!(
        order(Resource::Memory),
        [
            "unknown",
            "humble",
            "greedy",
            "small",
            "important",
            "unimportant",
            "modest"
        ]
    );
    assert_eq!(
        order(Resource::Pids),
        [
            "unknown",
            "humble",
            "unimportant",
            "modest",
            "small",
            "greedy",
            "important"
        ]
    );
    assert_eq!(
        order(Resource::Inodes),
        [
            "unknown",
            "humble",
            "unimportant",
            "modest",
            "small",
            "greedy",
            "important"
        ]
    );
}

#[test]
fn an_evicted_pod_is_told_what_kubelet_would_say() {
    let crossed = |signal, least, available, capacity| Crossed {
        threshold: Threshold { signal, least },
        observed: Observed {
            available,
            capacity,
        },
    };
    let (pod, figures) = (pod("p", 0, "10Mi"), figures("p", 60 * MIB, 7));
    let candidate = Candidate {
        pod: &pod,
        figures: Some(&figures),
    };
    let memory = crossed(
        Signal::MemoryAvailable,
        Least::Amount(100 * MIB),
        51_200 << 10,
        1 << 30,
    );
    assert_eq!(
        message(&memory, &candidate),
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. \
         Container c was using 60Mi, request is 10Mi, has larger consumption of memory. "
    );
    let disk = crossed(Signal::NodeFsAvailable, Least::Share(10_000), 1025, 20_480);
    assert_eq!(
        message(&disk, &candidate),
        "The node was low on resource: ephemeral-storage. Threshold quantity: 2Ki, available: 1025. \
         Container c was using 7Mi, request is 0, has larger consumption of ephemeral-storage. "
    );
    let pids = crossed(Signal::PidAvailable, Least::Amount(1000), 7, 32_768);
    assert_eq!(
        message(&pids, &candidate),
        "The node was low on resource: pids. Threshold quantity: 1k, available: 7. "
    );
}

#[test]
fn what_the_system_needs_is_never_evicted() {
    let with = |change: fn(&mut Value)| -> Pod {
        let mut value = json!({"metadata": {"name": "p"}, "spec": {"containers": []}});
        change(&mut value);
        serde_json::from_value(value).unwrap()
    };
    assert!(!is_critical(&with(|_| {})));
    assert!(is_critical(&with(|pod| {
        pod["spec"]["priority"] = json!(2_000_000_000);
    })));
    assert!(is_critical(&with(|pod| {
        pod["metadata"]["annotations"] = json!({"kubernetes.io/config.source": "file"});
    })));
}
