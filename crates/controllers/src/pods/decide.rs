//! Decides which pods nobody will ever clean up but us.

use k8s_openapi::{
    api::core::v1::{Node, Pod},
    jiff::Timestamp,
};

const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PodFacts {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) node: Option<String>,
    pub(super) created: Option<Timestamp>,
    pub(super) has_ended: bool,
    pub(super) is_going: bool,
}

impl PodFacts {
    pub(super) fn read(pod: &Pod) -> Self {
        let status = pod.status.as_ref();
        let phase = status.and_then(|status| status.phase.as_deref());
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        let metadata = &pod.metadata;
        Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            node: node.filter(|name| !name.is_empty()),
            created: metadata.creation_timestamp.as_ref().map(|time| time.0),
            has_ended: matches!(phase, Some("Succeeded" | "Failed")),
            is_going: pod.metadata.deletion_timestamp.is_some(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NodeFacts {
    /// Somebody says that it is off and will not come back by itself.
    pub(super) is_out_of_service: bool,
}

impl NodeFacts {
    pub(super) fn read(node: &Node) -> Self {
        let taints = node
            .spec
            .iter()
            .flat_map(|spec| spec.taints.iter().flatten());
        let is_marked = taints.clone().any(|taint| taint.key == OUT_OF_SERVICE);
        let conditions = node
            .status
            .iter()
            .flat_map(|status| status.conditions.iter().flatten());
        let mut ready = conditions.filter(|each| each.type_ == "Ready");
        Self {
            is_out_of_service: is_marked && !ready.any(|each| each.status == "True"),
        }
    }
}

/// Why a pod must go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Its node does not exist; this must be asked of the API.
    Orphaned,
    /// It was deleted before it had a node, so there is nobody to stop it.
    NeverPlaced,
    /// Its node is off for good.
    OutOfService,
}

/// Whether a pod must go, from what is known of its node.
pub(super) fn cause(pod: &PodFacts, node: Option<&NodeFacts>) -> Option<Cause> {
    match (&pod.node, node) {
        (None, _) => pod.is_going.then_some(Cause::NeverPlaced),
        (Some(_), None) => Some(Cause::Orphaned),
        (Some(_), Some(node)) => {
            (pod.is_going && node.is_out_of_service).then_some(Cause::OutOfService)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(taint: &str, ready: &str) -> NodeFacts {
        let node: Value = json!({
            "metadata": {"name": "n"},
            "spec": {"taints": [{"key": taint, "effect": "NoExecute"}]},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        });
        NodeFacts::read(&serde_json::from_value(node).unwrap())
    }

    fn pod(node: Option<&str>, is_going: bool) -> PodFacts {
        PodFacts {
            node: node.map(str::to_owned),
            is_going,
            ..PodFacts::default()
        }
    }

    #[test]
    fn pods_go_that_no_node_answers_for() {
        let well = NodeFacts::default();
        let off = node(OUT_OF_SERVICE, "Unknown");
        for (pod, node, expected) in [
            (pod(None, false), None, None),
            (pod(None, true), None, Some(Cause::NeverPlaced)),
            (pod(Some("n"), false), None, Some(Cause::Orphaned)),
            (pod(Some("n"), true), Some(&well), None),
            (pod(Some("n"), false), Some(&off), None),
            (pod(Some("n"), true), Some(&off), Some(Cause::OutOfService)),
        ] {
            assert_eq!(cause(&pod, node), expected, "{pod:?} {node:?}");
        }
    }

    #[test]
    fn a_node_is_out_of_service_when_it_is_marked_and_not_ready() {
        assert!(node(OUT_OF_SERVICE, "False").is_out_of_service);
        assert!(!node(OUT_OF_SERVICE, "True").is_out_of_service);
        assert!(!node("other", "False").is_out_of_service);
    }
}
