//! Who owns whom, as watches tell it.
//!
//! The graph may be behind the truth but is never ahead of it: what it lacks is asked for before anything is
//! deleted. Each change tells which objects have to be looked at because of it.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::resources::Deletable;

/// What is put on an object that is to go after its dependants.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
/// What is put on an object that is to go without its dependants.
pub(super) const ORPHAN: &str = "orphan";

pub(super) type Uid = Arc<str>;

/// An object, as far as ownership is concerned.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) resource: Arc<Deletable>,
    /// Empty for what is in no namespace.
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: Uid,
    pub(super) version: String,
    pub(super) owners: Vec<OwnerReference>,
    pub(super) finalizers: Vec<String>,
    pub(super) is_being_deleted: bool,
}

impl Node {
    /// `None` for what has no uid, which no stored object is without.
    pub(super) fn read(resource: &Arc<Deletable>, metadata: ObjectMeta) -> Option<Self> {
        Some(Self {
            resource: Arc::clone(resource),
            namespace: metadata.namespace.unwrap_or_default(),
            name: metadata.name.unwrap_or_default(),
            uid: metadata.uid?.into(),
            version: metadata.resource_version.unwrap_or_default(),
            owners: metadata.owner_references.unwrap_or_default(),
            finalizers: metadata.finalizers.unwrap_or_default(),
            is_being_deleted: metadata.deletion_timestamp.is_some(),
        })
    }

    fn waits_with(&self, finalizer: &str) -> bool {
        self.is_being_deleted && self.finalizers.iter().any(|each| each == finalizer)
    }

    pub(super) fn waits_for_dependants(&self) -> bool {
        self.waits_with(FOREGROUND)
    }

    pub(super) fn waits_for_orphans(&self) -> bool {
        self.waits_with(ORPHAN)
    }

    /// Whether the object keeps an owner from going before it.
    pub(super) fn blocks(&self, owner: &str) -> bool {
        self.owners
            .iter()
            .any(|each| each.uid == owner && each.block_owner_deletion == Some(true))
    }

    /// Whether this is what a reference calls its owner, namespace aside.
    fn is_called(&self, reference: &OwnerReference) -> bool {
        self.resource.api.group == group(reference)
            && self.resource.api.kind == reference.kind
            && self.name == reference.name
    }
}

/// The group that a reference names.
pub(super) fn group(reference: &OwnerReference) -> &str {
    let parts = reference.api_version.split_once('/');
    parts.map_or("", |(group, _)| group)
}

/// What the graph knows of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Present,
    /// It goes as soon as its dependants are gone.
    Waiting,
    /// It is there, but in a namespace where it can own nothing of ours.
    Elsewhere,
    Nothing,
}

#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: HashMap<Uid, Node>,
    /// Who names a uid as owner, whether that exists or not.
    dependants: HashMap<Uid, BTreeSet<Uid>>,
}

impl Graph {
    pub(super) fn get(&self, uid: &str) -> Option<&Node> {
        self.nodes.get(uid)
    }

    pub(super) fn dependants(&self, uid: &str) -> impl Iterator<Item = &Node> {
        let uids = self.dependants.get(uid).into_iter().flatten();
        uids.filter_map(|uid| self.nodes.get(uid))
    }

    /// What is known of the owner that a dependant refers to.
    pub(super) fn owner(&self, dependant: &Node, reference: &OwnerReference) -> Known {
        match self.nodes.get(reference.uid.as_str()) {
            Some(owner) if !owner.is_called(reference) => Known::Nothing,
            Some(owner) if owner.resource.namespaced && owner.namespace != dependant.namespace => {
                Known::Elsewhere
            }
            Some(owner) if owner.waits_for_dependants() => Known::Waiting,
            Some(_) => Known::Present,
            None => Known::Nothing,
        }
    }

    /// An object is there or has changed.
    pub(super) fn put(&mut self, node: Node) -> Vec<Uid> {
        let uid = Arc::clone(&node.uid);
        let mut look = Vec::new();
        for owner in &node.owners {
            let dependants = self.dependants.entry(owner.uid.as_str().into());
            dependants.or_default().insert(Arc::clone(&uid));
        }
        if self.is_to_be_looked_at(&node) {
            look.push(Arc::clone(&uid));
        }
        let waits = node.waits_for_dependants();
        let old = self.nodes.insert(Arc::clone(&uid), node);
        if waits && !old.as_ref().is_some_and(Node::waits_for_dependants) {
            look.extend(self.dependants(&uid).map(|each| Arc::clone(&each.uid)));
        }
        if let Some(old) = old {
            self.leave(&old, &mut look);
        }
        look
    }

    /// Something about the object is not as it should stay.
    fn is_to_be_looked_at(&self, node: &Node) -> bool {
        if node.is_being_deleted {
            return node.waits_for_dependants() || node.waits_for_orphans();
        }
        node.owners
            .iter()
            .any(|reference| self.owner(node, reference) != Known::Present)
    }

    /// Forgets what an object was, as far as it is not so any more, and finds owners that waited for that.
    fn leave(&mut self, old: &Node, look: &mut Vec<Uid>) {
        for reference in &old.owners {
            let owner = reference.uid.as_str();
            let new = self.nodes.get(&old.uid);
            if !new.is_some_and(|new| new.owners.iter().any(|each| each.uid == owner))
                && let Some(dependants) = self.dependants.get_mut(owner)
            {
                dependants.remove(&old.uid);
                if dependants.is_empty() {
                    self.dependants.remove(owner);
                }
            }
            let new = self.nodes.get(&old.uid);
            if !new.is_some_and(|new| new.blocks(owner))
                && let Some(owner) = self.nodes.get(owner)
                && owner.waits_for_dependants()
            {
                look.push(Arc::clone(&owner.uid));
            }
        }
    }

    /// An object is gone. Nothing happens if it is known by another version of its resource.
    pub(super) fn remove(&mut self, resource: &Deletable, uid: &str) -> Vec<Uid> {
        let mut look = Vec::new();
        if !self
            .nodes
            .get(uid)
            .is_some_and(|node| *node.resource == *resource)
        {
            return look;
        }
        if let Some(old) = self.nodes.remove(uid) {
            self.leave(&old, &mut look);
            look.extend(self.dependants(uid).map(|each| Arc::clone(&each.uid)));
        }
        look
    }

    /// All objects of a resource were seen: the others are gone.
    pub(super) fn retain(&mut self, resource: &Deletable, seen: &HashSet<Uid>) -> Vec<Uid> {
        let gone: Vec<Uid> = self
            .nodes
            .values()
            .filter(|node| *node.resource == *resource && !seen.contains(&node.uid))
            .map(|node| Arc::clone(&node.uid))
            .collect();
        gone.iter()
            .flat_map(|uid| self.remove(resource, uid))
            .collect()
    }
}
