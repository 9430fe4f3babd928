//! What of nodes and their pods matters to whether they live.

use k8s_openapi::{
    api::core::v1::{Node, Pod, Taint, Toleration},
    apimachinery::pkg::apis::meta::v1::Time,
};

pub(super) const NO_EXECUTE: &str = "NoExecute";

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NodeFacts {
    pub(super) name: String,
    pub(super) uid: String,
    /// Region and zone; nodes of the same often fail together.
    pub(super) zone: String,
    /// Types and states of its conditions.
    pub(super) conditions: Vec<(String, String)>,
    /// When it last said that it is ready, or not.
    pub(super) heartbeat: Option<Time>,
    pub(super) taints: Vec<Taint>,
    pub(super) is_unschedulable: bool,
    /// Whether it does not count when it is judged how much of a zone failed.
    pub(super) is_excluded: bool,
}

impl NodeFacts {
    pub(super) fn read(node: &Node) -> Self {
        let label = |name: &str| {
            let labels = node.metadata.labels.as_ref();
            labels.and_then(|labels| labels.get(name)).cloned()
        };
        let region = label("topology.kubernetes.io/region").unwrap_or_default();
        let zone = label("topology.kubernetes.io/zone").unwrap_or_default();
        let spec = node.spec.clone().unwrap_or_default();
        let status = node.status.clone().unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let ready = conditions.iter().find(|each| each.type_ == "Ready");
        Self {
            name: node.metadata.name.clone().unwrap_or_default(),
            uid: node.metadata.uid.clone().unwrap_or_default(),
            zone: format!("{region}/{zone}"),
            heartbeat: ready.and_then(|ready| ready.last_heartbeat_time.clone()),
            conditions: conditions
                .iter()
                .map(|each| (each.type_.clone(), each.status.clone()))
                .collect(),
            taints: spec.taints.unwrap_or_default(),
            is_unschedulable: spec.unschedulable == Some(true),
            is_excluded: label("node.kubernetes.io/exclude-disruption").is_some(),
        }
    }

    pub(super) fn condition(&self, kind: &str) -> Option<&str> {
        let mut conditions = self.conditions.iter();
        let found = conditions.find(|(each, _)| each == kind)?;
        Some(&found.1)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.condition("Ready") == Some("True")
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PodFacts {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) node: String,
    /// Those that say something about being evicted.
    pub(super) tolerations: Vec<Toleration>,
    pub(super) is_ready: bool,
    pub(super) is_going: bool,
}

impl PodFacts {
    /// A pod that has a node and has not ended.
    pub(super) fn read(pod: &Pod) -> Option<Self> {
        let spec = pod.spec.as_ref()?;
        let status = pod.status.as_ref();
        let phase = status.and_then(|status| status.phase.as_deref());
        if matches!(phase, Some("Succeeded" | "Failed")) {
            return None;
        }
        let counts =
            |each: &&Toleration| matches!(each.effect.as_deref(), None | Some("" | NO_EXECUTE));
        let tolerations = spec.tolerations.iter().flatten().filter(counts);
        let mut conditions = status
            .into_iter()
            .flat_map(|status| status.conditions.iter().flatten());
        let metadata = &pod.metadata;
        Some(Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            node: spec.node_name.clone().filter(|name| !name.is_empty())?,
            tolerations: tolerations.cloned().collect(),
            is_ready: conditions.any(|each| each.type_ == "Ready" && each.status == "True"),
            is_going: pod.metadata.deletion_timestamp.is_some(),
        })
    }
}
