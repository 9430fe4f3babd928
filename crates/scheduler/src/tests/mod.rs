//! The core against tables, and against a second implementation that looks at everything each time.

mod filters;
mod images;
mod naive;
mod preemption;
mod properties;
mod queue;
mod scores;
mod volumes;

use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

use crate::{Placement, Snapshot, place};

/// A node with 4 processors and 8 GiB in a zone; `more` replaces parts of it.
fn node(name: &str, zone: &str, more: &Value) -> Node {
    let mut value = json!({
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name,
            "topology.kubernetes.io/zone": zone,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
        }},
        "spec": {},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    });
    merge(&mut value, more);
    serde_json::from_value(value).unwrap()
}

/// A pod that asks for a processor; `more` replaces parts of it.
fn pod(name: &str, more: &Value) -> Pod {
    let mut value = json!({
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"), "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
    });
    merge(&mut value, more);
    serde_json::from_value(value).unwrap()
}

fn merge(value: &mut Value, more: &Value) {
    match (value, more) {
        (Value::Object(value), Value::Object(more)) => {
            for (key, one) in more {
                merge(value.entry(key.clone()).or_insert(Value::Null), one);
            }
        }
        (value, more) => *value = more.clone(),
    }
}

/// A pod that is on a node.
fn resident(name: &str, node: &str, more: &Value) -> Pod {
    let mut pod = pod(name, more);
    pod.spec.get_or_insert_default().node_name = Some(node.to_owned());
    pod
}

fn snapshot(nodes: &[Node], pods: &[Pod]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for node in nodes {
        snapshot.put_node(node);
    }
    for pod in pods {
        snapshot.put_pod(pod);
    }
    snapshot
}

/// The node that a pod gets, or why it gets none.
fn outcome(snapshot: &mut Snapshot, pod: &Pod) -> String {
    let pod = snapshot.prepare(pod);
    match place(snapshot, &pod) {
        Placement::Node(place) => place.node.to_string(),
        Placement::Unplaceable(why) => why.message(),
    }
}
