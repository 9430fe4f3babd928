//! Which node uses which object, kept up with every change of a pod, a volume or an attachment.
//!
//! An object counts how many pods of each node refer to it, so that a change costs as much as the pod has
//! references, and a question costs one look.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use serde_json::Value;

use super::references::{self, Sort};

/// Pods that a node shows to the server although nobody made them there.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// Namespace and name.
type Place = (Arc<str>, Arc<str>);

/// Who uses what.
#[derive(Debug, Default)]
pub struct NodeGraph {
    pods: HashMap<Place, Pod>,
    /// How many pods of each node refer to an object.
    users: HashMap<(Sort, Place), HashMap<Arc<str>, u32>>,
    volumes: HashMap<String, Volume>,
    /// The volumes that need a secret.
    needing: HashMap<Place, BTreeSet<String>>,
    attachments: HashMap<String, String>,
    slices: HashMap<String, String>,
    /// One copy of every text: namespaces, nodes and names come again and again.
    texts: HashMap<Arc<str>, usize>,
}

#[derive(Debug)]
struct Pod {
    node: Arc<str>,
    references: Box<[(Sort, Arc<str>)]>,
}

#[derive(Debug)]
struct Volume {
    claim: Option<Place>,
    secrets: Vec<Place>,
}

impl NodeGraph {
    /// Takes in a pod that was added or changed.
    pub fn put_pod(&mut self, pod: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let namespace = text(&pod["metadata"]["namespace"]);
        let name = text(&pod["metadata"]["name"]);
        let node = text(&pod["spec"]["nodeName"]);
        self.remove_pod(&namespace, &name);
        if node.is_empty() {
            return;
        }
        // A node makes mirror pods itself: what they refer to would be its own choice.
        let found = if pod["metadata"]["annotations"][MIRROR].is_null() {
            references::of_pod(pod)
        } else {
            references::References::new()
        };
        let place = (self.keep(&namespace), self.keep(&name));
        let node = self.keep(&node);
        let mut kept = Vec::with_capacity(found.len());
        for (sort, name) in found {
            let name = self.keep(&name);
            let object = (sort, (Arc::clone(&place.0), Arc::clone(&name)));
            let nodes = self.users.entry(object).or_default();
            *nodes.entry(Arc::clone(&node)).or_default() += 1;
            kept.push((sort, name));
        }
        let references = kept.into_boxed_slice();
        self.pods.insert(place, Pod { node, references });
    }

    pub fn remove_pod(&mut self, namespace: &str, name: &str) {
        let place = (Arc::from(namespace), Arc::from(name));
        let Some((place, pod)) = self.pods.remove_entry(&place) else {
            return;
        };
        for (sort, name) in &pod.references {
            let object = (*sort, (Arc::clone(&place.0), Arc::clone(name)));
            if let Some(nodes) = self.users.get_mut(&object) {
                if let Some(count) = nodes.get_mut(&pod.node) {
                    *count -= 1;
                    if *count == 0 {
                        nodes.remove(&pod.node);
                    }
                }
                if nodes.is_empty() {
                    self.users.remove(&object);
                }
            }
            self.let_go(name);
        }
        self.let_go(&place.0);
        self.let_go(&place.1);
        self.let_go(&pod.node);
    }

    /// Takes in a persistent volume that was added or changed.
    pub fn put_persistent_volume(&mut self, volume: &Value) {
        let text = |value: &Value| Arc::from(value.as_str().unwrap_or_default());
        let name = volume["metadata"]["name"].as_str().unwrap_or_default();
        self.remove_persistent_volume(name);
        let claim = &volume["spec"]["claimRef"];
        let claim = claim
            .is_object()
            .then(|| (text(&claim["namespace"]), text(&claim["name"])));
        let secrets: Vec<Place> = references::of_persistent_volume(volume)
            .into_iter()
            .map(|(namespace, name)| (Arc::from(namespace), Arc::from(name)))
            .collect();
        for secret in &secrets {
            let needing = self.needing.entry(secret.clone()).or_default();
            needing.insert(name.to_owned());
        }
        let volume = Volume { claim, secrets };
        self.volumes.insert(name.to_owned(), volume);
    }

    pub fn remove_persistent_volume(&mut self, name: &str) {
        let Some(volume) = self.volumes.remove(name) else {
            return;
        };
        for secret in volume.secrets {
            if let Some(needing) = self.needing.get_mut(&secret) {
                needing.remove(name);
                if needing.is_empty() {
                    self.needing.remove(&secret);
                }
            }
        }
    }

    /// Takes in a volume attachment that was added or changed.
    pub fn put_volume_attachment(&mut self, attachment: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.attachments.insert(
            text(&attachment["metadata"]["name"]),
            text(&attachment["spec"]["nodeName"]),
        );
    }

    pub fn remove_volume_attachment(&mut self, name: &str) {
        self.attachments.remove(name);
    }

    /// Takes in a resource slice that was added or changed.
    pub fn put_resource_slice(&mut self, slice: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.slices.insert(
            text(&slice["metadata"]["name"]),
            text(&slice["spec"]["nodeName"]),
        );
    }

    pub fn remove_resource_slice(&mut self, name: &str) {
        self.slices.remove(name);
    }

    pub(super) fn runs_pod(&self, node: &str, namespace: &str, name: &str) -> bool {
        let place = (Arc::from(namespace), Arc::from(name));
        self.pods
            .get(&place)
            .is_some_and(|pod| pod.node.as_ref() == node)
    }

    /// Whether a pod of the node refers to the object; a secret also through a volume.
    pub(super) fn uses(&self, node: &str, sort: Sort, namespace: &str, name: &str) -> bool {
        let place = (Arc::from(namespace), Arc::from(name));
        self.uses_directly(node, sort, &place)
            || (sort == Sort::Secret
                && self.needing.get(&place).is_some_and(|volumes| {
                    let mut volumes = volumes.iter();
                    volumes.any(|volume| self.uses_volume(node, volume))
                }))
    }

    fn uses_directly(&self, node: &str, sort: Sort, place: &Place) -> bool {
        let object = (sort, place.clone());
        self.users
            .get(&object)
            .is_some_and(|nodes| nodes.contains_key(node))
    }

    pub(super) fn uses_volume(&self, node: &str, name: &str) -> bool {
        let claim = self
            .volumes
            .get(name)
            .and_then(|found| found.claim.as_ref());
        claim.is_some_and(|claim| self.uses_directly(node, Sort::Claim, claim))
    }

    pub(super) fn is_attached(&self, node: &str, attachment: &str) -> bool {
        self.attachments
            .get(attachment)
            .is_some_and(|found| found == node)
    }

    pub(super) fn has_slice(&self, node: &str, slice: &str) -> bool {
        self.slices.get(slice).is_some_and(|found| found == node)
    }

    /// The one copy of a text, counted.
    fn keep(&mut self, text: &str) -> Arc<str> {
        if let Some((kept, _)) = self.texts.get_key_value(text) {
            let kept = Arc::clone(kept);
            *self.texts.entry(Arc::clone(&kept)).or_default() += 1;
            return kept;
        }
        let kept: Arc<str> = Arc::from(text);
        self.texts.insert(Arc::clone(&kept), 1);
        kept
    }

    fn let_go(&mut self, text: &Arc<str>) {
        if let Some(count) = self.texts.get_mut(text) {
            *count -= 1;
            if *count == 0 {
                self.texts.remove(text);
            }
        }
    }

    /// How many entries there are in all tables together: nothing is left once everything is removed.
    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.pods.len()
            + self.users.len()
            + self.volumes.len()
            + self.needing.len()
            + self.attachments.len()
            + self.slices.len()
            + self.texts.len()
    }
}
