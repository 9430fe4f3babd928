//! Pods and nodes as far as hollow nodes look at them. Invariant: what is not looked at is not kept, since every
//! change of every pod passes here.

use std::borrow::Cow;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::ClusterResourceScope;
use serde::{Deserialize, Serialize};

/// A pod, as little of it as will do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SeenPod {
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: SeenPodSpec,
    #[serde(default)]
    pub(crate) status: SeenPodStatus,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SeenPodSpec {
    pub(crate) node_name: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct SeenPodStatus {
    pub(crate) phase: Option<String>,
}

/// A node, as little of it as will do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SeenNode {
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: SeenNodeSpec,
    #[serde(default)]
    pub(crate) status: SeenNodeStatus,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct SeenNodeSpec {
    #[serde(default)]
    pub(crate) taints: Vec<SeenTaint>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SeenTaint {
    pub(crate) key: String,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct SeenNodeStatus {
    #[serde(default)]
    pub(crate) conditions: Vec<SeenCondition>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SeenCondition {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) status: String,
}

impl SeenNode {
    /// Whether nobody knows any more how the node is.
    pub(crate) fn is_given_up(&self) -> bool {
        let mut conditions = self.status.conditions.iter();
        conditions.any(|one| one.kind == "Ready" && one.status == "Unknown")
    }
}

macro_rules! resource {
    ($name:ident, $scope:ty, $kind:literal, $plural:literal) => {
        impl Resource for $name {
            type DynamicType = ();
            type Scope = $scope;

            fn kind((): &()) -> Cow<'_, str> {
                $kind.into()
            }

            fn group((): &()) -> Cow<'_, str> {
                "".into()
            }

            fn version((): &()) -> Cow<'_, str> {
                "v1".into()
            }

            fn plural((): &()) -> Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

impl kube::api::Evict for SeenPod {}

resource!(SeenPod, NamespaceResourceScope, "Pod", "pods");
resource!(SeenNode, ClusterResourceScope, "Node", "nodes");
