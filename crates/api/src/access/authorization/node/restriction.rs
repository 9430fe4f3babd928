//! What a node may change, judged by the content of the change. For admission.
//!
//! A node changes itself and the pods that are bound to it, and never in a way that draws other pods or other
//! rights to it.

use std::collections::BTreeSet;

use serde_json::Value;
use transom_model::images;

use super::{
    audience,
    references::{self, Sort},
};
use crate::{
    access::{authentication::User, authorization::Resource},
    status::ApiError,
};

const MIRROR: &str = "kubernetes.io/config.mirror";
const LEASE_NAMESPACE: &str = "kube-node-lease";
const RESTRICTED: &str = "node-restriction.kubernetes.io";

/// The labels of Kubernetes that a node may set on itself.
const NODE_LABELS: [&str; 11] = [
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];
/// Everything in these name spaces is the node's own.
const NODE_LABEL_SPACES: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];

/// What is done to the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    fn word(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// A change that somebody asks for.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    pub operation: Operation,
    pub resource: &'a Resource,
    /// The object as it is to be; null for a deletion.
    pub object: &'a Value,
    /// The object as it is; null for a creation.
    pub old: &'a Value,
}

/// What else must be known.
pub trait Known {
    /// The pod that exists under this name.
    fn pod(&self, namespace: &str, name: &str) -> Option<Value>;
    /// The uid of a node.
    fn node_uid(&self, name: &str) -> Option<String>;
    /// The audiences that a driver of volumes wants tokens of pods for.
    fn driver_audiences(&self, driver: &str) -> Vec<String>;
    /// The driver of the volume that a claim is bound to.
    fn claim_driver(&self, namespace: &str, claim: &str) -> Option<String>;
    /// Whether whoever asks may have tokens of the account for any pod's sake.
    fn may_ask_for(&self, audience: &str, account: &str) -> bool;
}

/// Whether `user` may make the change, if it is a node. Anybody else is not restricted here.
pub fn check_node(user: &User, change: &Change<'_>, known: &dyn Known) -> Result<(), ApiError> {
    let Some(node) = user.node_name() else {
        return Ok(());
    };
    let about = change.resource;
    let judged = match (
        about.group.as_str(),
        about.resource.as_str(),
        about.subresource.as_str(),
    ) {
        ("", "pods", "") => pod(node, change, known),
        ("", "pods", "status") => pod_status(node, change),
        ("", "pods", "eviction") => eviction(node, change, known),
        ("", "pods", other) => Err(Refusal::Because(format!(
            "unexpected pod subresource {other:?}, only 'status' and 'eviction' are allowed"
        ))),
        ("", "nodes", _) => own_node(node, change),
        ("", "persistentvolumeclaims", "status") => claim_status(node, change),
        ("", "persistentvolumeclaims", _) => {
            because(false, || "may only update PVC status".to_owned())
        }
        ("", "serviceaccounts", "token") if change.operation == Operation::Create => {
            token(node, change, known)
        }
        ("coordination.k8s.io", "leases", _) => lease(node, change),
        ("storage.k8s.io", "csinodes", _) => because(name_of(change) == node, || {
            "can only access CSINode with the same name as the requesting node".to_owned()
        }),
        ("resource.k8s.io", "resourceslices", _) => slice(node, change),
        (images::GROUP, images::PLURAL, _) => image(node, change),
        _ => Ok(()),
    };
    judged.map_err(|refusal| match refusal {
        Refusal::Because(why) => {
            ApiError::forbidden(&about.group, &about.resource, name_of(change), &why)
        }
        Refusal::NotFound(resource, name) => ApiError::not_found("", resource, &name),
    })
}

enum Refusal {
    Because(String),
    NotFound(&'static str, String),
}

fn because(is_right: bool, otherwise: impl FnOnce() -> String) -> Result<(), Refusal> {
    if is_right {
        Ok(())
    } else {
        Err(Refusal::Because(otherwise()))
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The name in the path, else the one in the object: a creation has none in the path.
fn name_of<'a>(change: &Change<'a>) -> &'a str {
    match change.resource.name.as_str() {
        "" => text(&change.object["metadata"]["name"]),
        name => name,
    }
}

/// A node speaks for itself, and what a registry told is truer than what a node did.
fn image(node: &str, change: &Change<'_>) -> Result<(), Refusal> {
    because(change.operation != Operation::Delete, || {
        "nodes cannot delete images".to_owned()
    })?;
    because(text(&change.object["status"]["node"]) == node, || {
        format!("node {node:?} can only tell of images with status.node set to itself")
    })?;
    let old = &change.old["status"];
    let is_of_registry = old["node"].is_null() && old["platforms"].is_array();
    because(!is_of_registry, || {
        "a registry told what this image is for".to_owned()
    })?;
    let reference = |object: &Value| text(&object["spec"]["reference"]).to_owned();
    let is_same = change.old.is_null() || reference(change.old) == reference(change.object);
    because(is_same, || {
        "an object stays about the same image".to_owned()
    })
}

fn find_pod(change: &Change<'_>, name: &str, known: &dyn Known) -> Result<Value, Refusal> {
    let found = known.pod(&change.resource.namespace, name);
    found.ok_or_else(|| Refusal::NotFound("pods", name.to_owned()))
}

fn pod(node: &str, change: &Change<'_>, known: &dyn Known) -> Result<(), Refusal> {
    match change.operation {
        Operation::Create => mirror_pod(node, change.object, known),
        Operation::Delete => {
            let pod = find_pod(change, name_of(change), known)?;
            because(text(&pod["spec"]["nodeName"]) == node, || {
                format!("node {node:?} can only delete pods with spec.nodeName set to itself")
            })
        }
        Operation::Update => because(false, || {
            format!(
                "unexpected operation {:?}, node {node:?} can only create and delete mirror pods",
                change.operation.word()
            )
        }),
    }
}

/// A pod that the node runs on its own account. It may not refer to anything: it would make the node see it.
fn mirror_pod(node: &str, pod: &Value, known: &dyn Known) -> Result<(), Refusal> {
    because(pod["metadata"]["annotations"][MIRROR].is_string(), || {
        format!(
            "pod does not have {MIRROR:?} annotation, node {node:?} can only create mirror pods"
        )
    })?;
    because(text(&pod["spec"]["nodeName"]) == node, || {
        format!("node {node:?} can only create pods with spec.nodeName set to itself")
    })?;
    own_reference(node, &pod["metadata"]["ownerReferences"], known)?;
    let account = text(&pod["spec"]["serviceAccountName"]);
    because(account.is_empty(), || {
        format!("node {node:?} can not create pods that reference a service account")
    })?;
    for (sort, _) in references::of_pod(pod) {
        let what = match sort {
            Sort::Secret => "secrets",
            Sort::ConfigMap => "configmaps",
            Sort::Claim => "persistentvolumeclaims",
            Sort::ResourceClaim => "resourceclaims",
            Sort::ServiceAccount => "a service account",
        };
        because(false, || {
            format!("node {node:?} can not create pods that reference {what}")
        })?;
    }
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    let trusts = volumes
        .filter_map(|volume| volume["projected"]["sources"].as_array())
        .flatten()
        .any(|source| source["clusterTrustBundle"].is_object());
    because(!trusts, || {
        format!("node {node:?} can not create pods that reference clustertrustbundles")
    })
}

fn own_reference(node: &str, references: &Value, known: &dyn Known) -> Result<(), Refusal> {
    let references = references.as_array().map_or(&[][..], Vec::as_slice);
    let owner = match references {
        [owner] => owner,
        [] => {
            return because(false, || {
                format!("node {node:?} can only create pods with an owner reference set to itself")
            });
        }
        _ => {
            return because(false, || {
                format!(
                    "node {node:?} can only create pods with a single owner reference set to itself"
                )
            });
        }
    };
    let is_self = text(&owner["apiVersion"]) == "v1"
        && text(&owner["kind"]) == "Node"
        && text(&owner["name"]) == node;
    because(is_self, || {
        format!("node {node:?} can only create pods with an owner reference set to itself")
    })?;
    because(owner["controller"] == true, || {
        format!(
            "node {node:?} can only create pods with a controller owner reference set to itself"
        )
    })?;
    because(owner["blockOwnerDeletion"] != true, || {
        format!("node {node:?} must not set blockOwnerDeletion on an owner reference")
    })?;
    let uid = known
        .node_uid(node)
        .ok_or_else(|| Refusal::NotFound("nodes", node.to_owned()))?;
    let claimed = text(&owner["uid"]);
    because(claimed == uid, || {
        format!("node {node} UID mismatch: expected {claimed} got {uid}")
    })
}

fn pod_status(node: &str, change: &Change<'_>) -> Result<(), Refusal> {
    let (new, old) = (change.object, change.old);
    because(change.operation == Operation::Update, || {
        format!("unexpected operation {:?}", change.operation.word())
    })?;
    because(text(&old["spec"]["nodeName"]) == node, || {
        format!(
            "node {node:?} can only update pod status for pods with spec.nodeName set to itself"
        )
    })?;
    let same_labels = modified_labels(new, old).is_empty();
    because(same_labels, || {
        format!("node {node:?} cannot update labels through pod status")
    })?;
    let claims = |pod: &Value| -> Vec<(String, Value)> {
        let statuses = pod["status"]["resourceClaimStatuses"].as_array();
        let statuses = statuses.into_iter().flatten();
        statuses
            .map(|status| {
                let name = text(&status["name"]).to_owned();
                (name, status["resourceClaimName"].clone())
            })
            .collect()
    };
    because(claims(new) == claims(old), || {
        format!("node {node:?} cannot update resource claim statues")
    })
}

fn eviction(node: &str, change: &Change<'_>, known: &dyn Known) -> Result<(), Refusal> {
    because(change.operation == Operation::Create, || {
        format!("unexpected operation {}", change.operation.word())
    })?;
    let name = name_of(change);
    because(!name.is_empty(), || {
        "could not determine pod from request data".to_owned()
    })?;
    let pod = find_pod(change, name, known)?;
    because(text(&pod["spec"]["nodeName"]) == node, || {
        format!("node {node} can only evict pods with spec.nodeName set to itself")
    })
}

fn own_node(node: &str, change: &Change<'_>) -> Result<(), Refusal> {
    let name = name_of(change);
    because(name == node, || {
        format!("node {node:?} is not allowed to modify node {name:?}")
    })?;
    let (new, old) = (change.object, change.old);
    match change.operation {
        Operation::Delete => Ok(()),
        Operation::Create => {
            because(new["spec"]["configSource"].is_null(), || {
                format!("node {node:?} is not allowed to create pods with a non-nil configSource")
            })?;
            let labels = forbidden_labels(new, &Value::Null);
            because(labels.is_empty(), || {
                let labels = labels.join(", ");
                format!("node {node:?} is not allowed to set the following labels: {labels}")
            })
        }
        Operation::Update => {
            let source = &new["spec"]["configSource"];
            because(
                source.is_null() || *source == old["spec"]["configSource"],
                || {
                    format!(
                        "node {node:?} is not allowed to update configSource to a new non-nil configSource"
                    )
                },
            )?;
            let taints = |object: &Value| object["spec"]["taints"].as_array().cloned();
            let same = taints(new).unwrap_or_default() == taints(old).unwrap_or_default();
            because(same, || {
                format!("node {node:?} is not allowed to modify taints")
            })?;
            let labels = forbidden_labels(new, old);
            because(labels.is_empty(), || {
                format!("is not allowed to modify labels: {}", labels.join(", "))
            })?;
            let same = new["metadata"]["ownerReferences"] == old["metadata"]["ownerReferences"];
            because(same, || {
                format!("node {node:?} is not allowed to modify ownerReferences")
            })
        }
    }
}

/// The keys of labels that differ.
fn modified_labels(new: &Value, old: &Value) -> BTreeSet<String> {
    let empty = serde_json::Map::new();
    let new = new["metadata"]["labels"].as_object().unwrap_or(&empty);
    let old = old["metadata"]["labels"].as_object().unwrap_or(&empty);
    let keys = new.keys().chain(old.keys());
    keys.filter(|key| new.get(*key) != old.get(*key))
        .cloned()
        .collect()
}

fn forbidden_labels(new: &Value, old: &Value) -> Vec<String> {
    let modified = modified_labels(new, old).into_iter();
    modified.filter(|label| is_forbidden(label)).collect()
}

fn is_forbidden(label: &str) -> bool {
    let space = label.split_once('/').map_or("", |(space, _)| space);
    let is_in = |parent: &str| {
        space == parent
            || space
                .strip_suffix(parent)
                .is_some_and(|rest| rest.ends_with('.'))
    };
    let is_kubernetes = is_in("kubernetes.io") || is_in("k8s.io");
    let is_own = NODE_LABELS.contains(&label) || NODE_LABEL_SPACES.iter().any(|own| is_in(own));
    is_in(RESTRICTED) || (is_kubernetes && !is_own)
}

fn claim_status(node: &str, change: &Change<'_>) -> Result<(), Refusal> {
    because(change.operation == Operation::Update, || {
        format!("unexpected operation {:?}", change.operation.word())
    })?;
    let rest = |claim: &Value| {
        let mut claim = claim.clone();
        for (object, keys) in [
            ("metadata", &["resourceVersion", "managedFields"][..]),
            (
                "status",
                &[
                    "capacity",
                    "conditions",
                    "allocatedResources",
                    "allocatedResourceStatuses",
                    "currentVolumeAttributesClassName",
                    "modifyVolumeStatus",
                ],
            ),
        ] {
            if let Some(map) = claim[object].as_object_mut() {
                map.retain(|key, _| !keys.contains(&key.as_str()));
            }
        }
        if claim["status"]
            .as_object()
            .is_none_or(serde_json::Map::is_empty)
        {
            claim["status"] = Value::Null;
        }
        claim
    };
    because(rest(change.object) == rest(change.old), || {
        format!(
            "node {node:?} is not allowed to update fields other than status.capacity and status.conditions"
        )
    })
}

fn token(node: &str, change: &Change<'_>, known: &dyn Known) -> Result<(), Refusal> {
    let reference = &change.object["spec"]["boundObjectRef"];
    let is_pod = text(&reference["apiVersion"]) == "v1"
        && text(&reference["kind"]) == "Pod"
        && !text(&reference["name"]).is_empty();
    because(is_pod, || {
        "node requested token not bound to a pod".to_owned()
    })?;
    let uid = text(&reference["uid"]);
    because(!uid.is_empty(), || {
        "node requested token with a pod binding without a uid".to_owned()
    })?;
    let pod = find_pod(change, text(&reference["name"]), known)?;
    because(text(&pod["metadata"]["uid"]) == uid, || {
        format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
        )
    })?;
    because(text(&pod["spec"]["nodeName"]) == node, || {
        "node requested token bound to a pod scheduled on a different node".to_owned()
    })?;
    audience::refusal(change, &pod, known).map_or(Ok(()), |why| Err(Refusal::Because(why)))
}

fn lease(node: &str, change: &Change<'_>) -> Result<(), Refusal> {
    because(change.resource.namespace == LEASE_NAMESPACE, || {
        format!("can only access leases in the {LEASE_NAMESPACE:?} system namespace")
    })?;
    because(name_of(change) == node, || {
        "can only access node lease with the same name as the requesting node".to_owned()
    })
}

fn slice(node: &str, change: &Change<'_>) -> Result<(), Refusal> {
    let object = match change.operation {
        Operation::Delete => change.old,
        Operation::Create | Operation::Update => change.object,
    };
    because(text(&object["spec"]["nodeName"]) == node, || {
        "can only create ResourceSlice with the same NodeName as the requesting node".to_owned()
    })
}
