//! What is counted is told under the names that others read, and what is not is not told.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use transom_host::{
    files::{Inodes, Space},
    machine::{Counters, MemoryInUse, Traffic},
};
use transom_runtime::{ContainerId, ContainerStats, Memory};

use super::{resource, summary};
use crate::figures::{ContainerFigures, NodeFigures, PodFigures, Snapshot, VolumeFigures, Work};

fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

fn container(name: &str, is_counted: bool) -> ContainerFigures {
    ContainerFigures {
        id: ContainerId(name.to_owned()),
        started: at(98),
        work: is_counted.then(|| Work::counted(1_500_000_000, at(100), Some(at(98)), None)),
        memory_limit: is_counted.then_some(10),
        stats: ContainerStats {
            name: name.to_owned(),
            cpu: None,
            memory: is_counted.then_some(Memory {
                usage_bytes: 9,
                working_set_bytes: 7,
                rss_bytes: None,
                page_faults: None,
            }),
            writable: None,
            logs: None,
        },
    }
}

fn snapshot(containers: Vec<ContainerFigures>) -> Snapshot {
    Snapshot {
        pods: vec![PodFigures {
            namespace: "n".to_owned(),
            name: "p".to_owned(),
            uid: "u".to_owned(),
            started: at(97),
            taken: at(100),
            containers,
            network: None,
            processes: None,
            volumes: vec![VolumeFigures {
                name: "data".to_owned(),
                taken: at(100),
                used_bytes: 5,
                entries: 2,
            }],
            volumes_taken: None,
        }],
        ..Snapshot::default()
    }
}

#[test]
fn what_is_not_counted_is_not_told() {
    let snapshot = snapshot(vec![container("a", true), container("b", false)]);
    let shown = summary::render("node", &snapshot);
    assert_eq!(
        shown["pods"][0]["containers"],
        json!([
            {
                "name": "a",
                "startTime": "1970-01-01T00:01:38Z",
                "cpu": {"time": "1970-01-01T00:01:40Z", "usageNanoCores": 750_000_000, "usageCoreNanoSeconds": 1_500_000_000, "windowNanoSeconds": 2_000_000_000_u64},
                "memory": {"time": "1970-01-01T00:01:40Z", "availableBytes": 3, "usageBytes": 9, "workingSetBytes": 7},
            },
            {"name": "b", "startTime": "1970-01-01T00:01:38Z"},
        ])
    );
    assert_eq!(shown["node"], json!({"nodeName": "node"}));
    assert!(shown["pods"][0].get("network").is_none());
    assert_eq!(
        shown["pods"][0]["volume"],
        json!([{"time": "1970-01-01T00:01:40Z", "name": "data", "usedBytes": 5, "inodesUsed": 2}])
    );
    assert_eq!(shown["pods"][0]["ephemeral-storage"]["usedBytes"], 5);
    let text = resource::render(&snapshot);
    for line in [
        "container_cpu_usage_seconds_total{container=\"a\",namespace=\"n\",pod=\"p\"} 1.5 100000\n",
        "container_start_time_seconds{container=\"b\",namespace=\"n\",pod=\"p\"} 98.000\n",
        "pod_memory_working_set_bytes{namespace=\"n\",pod=\"p\"} 7 100000\n",
        "resource_scrape_error 0\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
    assert!(!text.contains("node_memory"), "{text}");
    assert_eq!(text.matches("container=\"b\"").count(), 1, "{text}");
}

#[test]
fn a_node_tells_what_its_machine_counts() {
    let node = NodeFigures {
        taken: Some(at(100)),
        booted: Some(at(10)),
        work: Some(Work::counted(1, at(100), None, None)),
        memory_bytes: Some(100),
        counters: Counters {
            memory: Some(MemoryInUse {
                usage: 60,
                working_set: 40,
                resident: Some(20),
                page_faults: None,
                major_page_faults: None,
            }),
            processes: Some(5),
            most_processes: Some(1000),
            traffic: vec![Traffic {
                link: "eth0".to_owned(),
                received_bytes: 1,
                receive_errors: 2,
                sent_bytes: 3,
                send_errors: 4,
            }],
            ..Counters::default()
        },
        space: Some(Space {
            total: 100,
            available: 30,
            inodes: Some(Inodes {
                total: 10,
                available: 4,
            }),
        }),
        images: None,
    };
    let shown = summary::render(
        "node",
        &Snapshot {
            node,
            ..Snapshot::default()
        },
    );
    let time = "1970-01-01T00:01:40Z";
    let link = json!({"name": "eth0", "rxBytes": 1, "rxErrors": 2, "txBytes": 3, "txErrors": 4});
    assert_eq!(
        shown["node"],
        json!({
            "nodeName": "node",
            "startTime": "1970-01-01T00:00:10Z",
            "cpu": {"time": time, "usageCoreNanoSeconds": 1},
            "memory": {"time": time, "availableBytes": 60, "usageBytes": 60, "workingSetBytes": 40, "rssBytes": 20},
            "network": {"time": time, "name": "eth0", "rxBytes": 1, "rxErrors": 2, "txBytes": 3, "txErrors": 4, "interfaces": [link]},
            "fs": {"time": time, "availableBytes": 30, "capacityBytes": 100, "usedBytes": 70, "inodesFree": 4, "inodes": 10, "inodesUsed": 6},
            "rlimit": {"time": time, "maxpid": 1000, "curproc": 5},
        })
    );
}
