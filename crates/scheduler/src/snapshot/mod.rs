//! What the cluster looks like, kept up to date piece by piece.
//!
//! Each piece can be put and removed in any order, any number of times: the snapshot is the same as one
//! built from what there is at the end.

mod neighbours;
mod storage;
mod topology;

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use k8s_openapi::api::{
    core::v1::{Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod},
    policy::v1::PodDisruptionBudget,
    storage::v1::StorageClass,
};
use transom_model::{
    Platform,
    images::{ImageSpec, ImageStatus},
    labels as names,
};

pub(crate) use neighbours::Neighbours;
pub use storage::ClaimPlan;
pub(crate) use storage::{Claim, ClaimKey, Storage};
pub(crate) use topology::Topology;

use crate::{
    changes::Changes,
    images::Images,
    labels::{Labels, Selector},
    node::{NodeFacts, Taint, Usage, ZONE},
    pod::{PodFacts, PodToPlace, is_over, node_of},
    text::{Text, Texts},
};

/// A pod that has a node.
#[derive(Clone, Debug)]
pub(crate) struct Resident {
    pub(crate) facts: Arc<PodFacts>,
    pub(crate) node: usize,
}

/// A node, or the name of one that pods claim to be on.
#[derive(Debug)]
pub(crate) struct NodeSlot {
    pub(crate) name: Text,
    pub(crate) facts: Option<NodeFacts>,
    pub(crate) usage: Usage,
    pub(crate) pods: Vec<Arc<PodFacts>>,
    /// Pods for which room is being made here.
    pub(crate) nominated: Vec<Arc<PodFacts>>,
}

/// How many pods may still be disturbed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    pub(crate) selector: Selector,
    pub(crate) allowed: i32,
    /// Pods that were counted already.
    pub(crate) disrupted: Box<[Text]>,
}

/// What the cluster looks like.
#[derive(Debug)]
pub struct Snapshot {
    texts: Texts,
    nodes: Vec<Option<NodeSlot>>,
    free: Vec<usize>,
    names: HashMap<Text, usize>,
    /// Nodes in the order in which they are looked at: one of each zone in turn.
    order: Vec<usize>,
    order_is_stale: bool,
    pub(crate) neighbours: Neighbours,
    topologies: topology::Topologies,
    pub(crate) storage: Storage,
    /// How many pods use a claim.
    claim_users: HashMap<ClaimKey, usize>,
    pub(crate) budgets: HashMap<(Text, Text), Budget>,
    pub(crate) namespaces: HashMap<Text, Labels>,
    pub(crate) images: Images,
    /// How many nodes have an image.
    pub(crate) image_nodes: HashMap<Text, usize>,
    /// How many nodes there are of each platform, updates left aside.
    kinds: HashMap<Platform, usize>,
    pub(crate) unschedulable: Taint,
    nominations: HashMap<Text, usize>,
    zone_key: Text,
}

impl Default for Snapshot {
    fn default() -> Self {
        let mut texts = Texts::default();
        Self {
            unschedulable: NodeFacts::unschedulable_taint(&mut texts),
            zone_key: texts.keep(ZONE),
            texts,
            nodes: Vec::new(),
            free: Vec::new(),
            names: HashMap::new(),
            order: Vec::new(),
            order_is_stale: false,
            neighbours: Neighbours::default(),
            topologies: topology::Topologies::default(),
            storage: Storage::default(),
            claim_users: HashMap::new(),
            budgets: HashMap::new(),
            namespaces: HashMap::new(),
            images: Images::default(),
            image_nodes: HashMap::new(),
            kinds: HashMap::new(),
            nominations: HashMap::new(),
        }
    }
}

impl Snapshot {
    /// Reads what a pod wants, and gets ready to answer it.
    pub fn prepare(&mut self, pod: &Pod) -> PodToPlace {
        let pod = PodToPlace::of(pod, &mut self.texts);
        self.refresh(&pod);
        pod
    }

    /// Gets ready to answer a pod that was read before.
    pub(crate) fn refresh(&mut self, pod: &PodToPlace) {
        self.settle();
        let zone = self.zone_key.clone();
        self.remember(&zone);
        for key in pod.topologies() {
            self.remember(&key);
        }
        for (key, _) in pod.need.pairs() {
            self.remember(key);
        }
    }

    pub(crate) fn texts(&mut self) -> &mut Texts {
        &mut self.texts
    }

    fn remember(&mut self, key: &Text) {
        if !self.topologies.knows(key) {
            let nodes = labelled(&self.nodes, key);
            self.topologies.remember(key, nodes);
        }
    }

    /// Which nodes are in the same place, as far as this label says.
    pub(crate) fn topology(&self, key: &Text) -> Cow<'_, Topology> {
        self.topologies.get(key, labelled(&self.nodes, key))
    }

    /// The same, only if it need not be worked out first.
    pub(crate) fn remembered_topology(&self, key: &Text) -> Option<&Topology> {
        self.topologies.remembered(key)
    }

    pub(crate) fn zones(&self) -> Cow<'_, Topology> {
        self.topology(&self.zone_key)
    }

    /// How many nodes there are.
    pub fn node_count(&self) -> usize {
        self.order.len()
    }

    /// How many pods have a node.
    pub fn pod_count(&self) -> usize {
        self.neighbours.len()
    }

    pub(crate) fn order(&self) -> &[usize] {
        &self.order
    }

    pub(crate) fn slot(&self, index: usize) -> Option<&NodeSlot> {
        self.nodes.get(index)?.as_ref()
    }

    /// A node that there is.
    pub(crate) fn node(&self, index: usize) -> Option<(&NodeFacts, &NodeSlot)> {
        let slot = self.slot(index)?;
        Some((slot.facts.as_ref()?, slot))
    }

    pub(crate) fn index_of(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    /// Puts the nodes in order, if they changed.
    pub(crate) fn settle(&mut self) {
        if !std::mem::take(&mut self.order_is_stale) {
            return;
        }
        let mut zones: std::collections::BTreeMap<Option<&Text>, Vec<usize>> =
            std::collections::BTreeMap::new();
        for (index, slot) in self.nodes.iter().enumerate() {
            if let Some(facts) = slot.as_ref().and_then(|slot| slot.facts.as_ref()) {
                zones.entry(facts.zone.as_ref()).or_default().push(index);
            }
        }
        let longest = zones.values().map(Vec::len).max().unwrap_or_default();
        self.order = (0..longest)
            .flat_map(|round| {
                zones
                    .values()
                    .filter_map(move |zone| zone.get(round).copied())
            })
            .collect();
    }

    fn index(&mut self, name: &Text) -> usize {
        if let Some(index) = self.names.get(name) {
            return *index;
        }
        let slot = NodeSlot {
            name: name.clone(),
            facts: None,
            usage: Usage::default(),
            pods: Vec::new(),
            nominated: Vec::new(),
        };
        let index = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(None);
            self.nodes.len() - 1
        });
        self.nodes[index] = Some(slot);
        self.names.insert(name.clone(), index);
        index
    }

    fn drop_if_unused(&mut self, index: usize) {
        let Some(Some(slot)) = self.nodes.get(index) else {
            return;
        };
        if slot.facts.is_none() && slot.pods.is_empty() && slot.nominated.is_empty() {
            self.names.remove(&slot.name);
            self.nodes[index] = None;
            self.free.push(index);
        }
    }

    /// Learns what a node is. Tells what about it is new.
    pub fn put_node(&mut self, node: &Node) -> Changes {
        let facts = NodeFacts::of(node, &mut self.texts);
        let index = self.index(&facts.name.clone());
        let Some(slot) = self.nodes[index].as_mut() else {
            return Changes::NONE;
        };
        let changes = Changes::of_node(slot.facts.as_ref(), &facts);
        if changes == Changes::NONE && slot.facts.as_ref() == Some(&facts) {
            return Changes::NONE;
        }
        let old = slot.facts.take();
        let zone_is_new = old.as_ref().is_none_or(|old| old.zone != facts.zone);
        self.order_is_stale |= zone_is_new;
        count_images(&mut self.image_nodes, old.as_ref(), Some(&facts));
        count_kinds(&mut self.kinds, old.as_ref(), Some(&facts));
        self.topologies.put(index, |key| facts.labels.get(key));
        if let Some(slot) = self.nodes[index].as_mut() {
            slot.facts = Some(facts);
        }
        changes
    }

    pub fn remove_node(&mut self, name: &str) {
        let Some(index) = self.index_of(name) else {
            return;
        };
        let Some(slot) = self.nodes[index].as_mut() else {
            return;
        };
        let old = slot.facts.take();
        self.order_is_stale |= old.is_some();
        count_images(&mut self.image_nodes, old.as_ref(), None);
        count_kinds(&mut self.kinds, old.as_ref(), None);
        self.topologies.put(index, |_| None);
        self.drop_if_unused(index);
    }

    /// Learns what a pod is and where. A pod without a node, or one that is over, is nowhere. Tells whether
    /// that is something new.
    pub fn put_pod(&mut self, pod: &Pod) -> bool {
        match node_of(pod).filter(|_| !is_over(pod)) {
            Some(node) => {
                let node = self.texts.keep(node);
                let facts = PodFacts::of(pod, &mut self.texts);
                self.settle_at(Arc::new(facts), &node)
            }
            None => {
                let uid = pod.metadata.uid.as_deref();
                uid.is_some_and(|uid| self.remove_pod(uid).is_some())
            }
        }
    }

    /// Counts a pod as being on a node before the API says so. [`Self::remove_pod`] takes it back.
    pub fn assume(&mut self, pod: &PodToPlace, node: &str) {
        let node = self.texts.keep(node);
        self.settle_at(Arc::clone(&pod.facts), &node);
    }

    fn settle_at(&mut self, facts: Arc<PodFacts>, node: &Text) -> bool {
        if let Some(known) = self.neighbours.get(&facts.uid) {
            let same_node = self.slot(known.node).is_some_and(|slot| slot.name == *node);
            if same_node && *known.facts == *facts {
                return false;
            }
        }
        self.remove_pod(&facts.uid.clone());
        self.forget_nomination(&facts.uid.clone());
        let index = self.index(node);
        for one in &facts.terms {
            self.remember(&one.term.topology);
        }
        if let Some(slot) = self.nodes[index].as_mut() {
            slot.usage.add(&facts);
            slot.pods.push(Arc::clone(&facts));
        }
        for claim in &facts.claims {
            let key = (facts.namespace.clone(), claim.clone());
            *self.claim_users.entry(key).or_default() += 1;
        }
        self.neighbours.insert(Resident { facts, node: index });
        true
    }

    /// Forgets a pod. Tells the node that it was on, if it was on one.
    pub fn remove_pod(&mut self, uid: &str) -> Option<Text> {
        let resident = self.neighbours.remove(uid)?;
        let facts = resident.facts;
        for claim in &facts.claims {
            let key = (facts.namespace.clone(), claim.clone());
            if let Some(users) = self.claim_users.get_mut(&key) {
                *users -= 1;
                if *users == 0 {
                    self.claim_users.remove(&key);
                }
            }
        }
        let slot = self.nodes.get_mut(resident.node)?.as_mut()?;
        slot.usage.remove(&facts);
        slot.pods.retain(|pod| pod.uid != facts.uid);
        let name = slot.name.clone();
        self.drop_if_unused(resident.node);
        Some(name)
    }

    /// The node of a pod, if it has one.
    pub fn node_of(&self, uid: &str) -> Option<&str> {
        let resident = self.neighbours.get(uid)?;
        self.slot(resident.node).map(|slot| &*slot.name)
    }

    pub(crate) fn claim_users(&self, key: &ClaimKey) -> usize {
        self.claim_users.get(key).copied().unwrap_or_default()
    }

    /// Keeps room on a node for a pod that others had to make place for.
    pub fn nominate(&mut self, pod: &PodToPlace, node: &str) {
        let uid = pod.facts.uid.clone();
        self.forget_nomination(&uid);
        let node = self.texts.keep(node);
        let index = self.index(&node);
        if let Some(slot) = self.nodes[index].as_mut() {
            slot.nominated.push(Arc::clone(&pod.facts));
        }
        self.nominations.insert(uid, index);
    }

    /// Those that room is kept for on a node though they are less important than that.
    pub(crate) fn nominated_below(&self, node: &str, priority: i32) -> Vec<Arc<PodFacts>> {
        let slot = self.index_of(node).and_then(|index| self.slot(index));
        let nominated = slot.into_iter().flat_map(|slot| &slot.nominated);
        let below = nominated.filter(|other| other.priority < priority);
        below.cloned().collect()
    }

    pub fn forget_nomination(&mut self, uid: &str) {
        let Some(index) = self.nominations.remove(uid) else {
            return;
        };
        if let Some(Some(slot)) = self.nodes.get_mut(index) {
            slot.nominated.retain(|pod| pod.uid != uid);
        }
        self.drop_if_unused(index);
    }

    pub fn put_claim(&mut self, claim: &PersistentVolumeClaim) {
        self.storage.put_claim(claim, &mut self.texts);
    }

    pub fn remove_claim(&mut self, namespace: &str, name: &str) {
        self.storage.remove_claim(namespace, name, &mut self.texts);
    }

    pub fn put_volume(&mut self, volume: &PersistentVolume) {
        self.storage.put_volume(volume, &mut self.texts);
    }

    pub fn remove_volume(&mut self, name: &str) {
        self.storage.remove_volume(name);
    }

    pub fn put_class(&mut self, class: &StorageClass) {
        self.storage.put_class(class, &mut self.texts);
    }

    pub fn remove_class(&mut self, name: &str) {
        self.storage.remove_class(name);
    }

    pub fn put_budget(&mut self, budget: &PodDisruptionBudget) {
        let texts = &mut self.texts;
        let key = (
            texts.keep(budget.metadata.namespace.as_deref().unwrap_or_default()),
            texts.keep(budget.metadata.name.as_deref().unwrap_or_default()),
        );
        let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        let status = budget.status.as_ref();
        let disrupted = status.and_then(|status| status.disrupted_pods.as_ref());
        let budget = Budget {
            selector: Selector::of(selector, texts),
            allowed: status
                .and_then(|status| status.disruptions_allowed)
                .unwrap_or_default(),
            disrupted: disrupted
                .into_iter()
                .flatten()
                .map(|(name, _)| texts.keep(name))
                .collect(),
        };
        self.budgets.insert(key, budget);
    }

    pub fn remove_budget(&mut self, namespace: &str, name: &str) {
        let key = (self.texts.keep(namespace), self.texts.keep(name));
        self.budgets.remove(&key);
    }

    pub fn put_namespace(&mut self, namespace: &Namespace) {
        let name = self
            .texts
            .keep(namespace.metadata.name.as_deref().unwrap_or_default());
        let labels = Labels::of(namespace.metadata.labels.as_ref(), &mut self.texts);
        self.namespaces.insert(name, labels);
    }

    pub fn remove_namespace(&mut self, name: &str) {
        self.namespaces.remove(name);
    }

    /// Learns what an image is for.
    pub fn put_image(&mut self, name: &str, spec: &ImageSpec, status: Option<&ImageStatus>) {
        self.images.put(name, spec, status, &mut self.texts);
    }

    pub fn remove_image(&mut self, name: &str) {
        self.images.remove(name);
    }

    /// Whether it would matter what the pod's images are for, and nobody has looked yet: the nodes that its
    /// labels and its system leave are of several kinds.
    pub(crate) fn awaits_images(&self, pod: &PodToPlace) -> bool {
        if self.kinds.len() < 2 || !pod.images.iter().any(|image| self.images.is_open(image)) {
            return false;
        }
        let is_wanted = |kind: &&Platform| {
            pod.os.is_none_or(|os| os == kind.os)
                && pod.need.pairs().all(|(key, value)| match &**key {
                    names::OS | names::OS_BETA => **value == *kind.os.as_str(),
                    names::ARCH | names::ARCH_BETA => **value == *kind.arch.as_str(),
                    _ => true,
                })
        };
        self.kinds.keys().filter(is_wanted).nth(1).is_some()
    }

    /// All platforms of nodes, and how many nodes have each.
    pub(crate) fn platforms(&self) -> std::collections::BTreeMap<String, usize> {
        let mut all = std::collections::BTreeMap::new();
        for index in &self.order {
            if let Some((
                NodeFacts {
                    platform: Some(platform),
                    ..
                },
                _,
            )) = self.node(*index)
            {
                *all.entry(build_of(platform).to_string()).or_default() += 1;
            }
        }
        all
    }
}

/// A platform without the updates that it has: people ask for builds.
fn build_of(platform: &Platform) -> Platform {
    Platform {
        os_version: platform
            .os_version
            .map(transom_model::windows::WindowsVersion::without_revision),
        ..platform.clone()
    }
}

fn labelled<'a>(
    nodes: &'a [Option<NodeSlot>],
    key: &'a Text,
) -> impl Iterator<Item = (usize, Option<&'a Text>)> {
    nodes.iter().enumerate().filter_map(move |(index, slot)| {
        let facts = slot.as_ref()?.facts.as_ref()?;
        Some((index, facts.labels.get(key)))
    })
}

fn count_kinds(
    counts: &mut HashMap<Platform, usize>,
    old: Option<&NodeFacts>,
    new: Option<&NodeFacts>,
) {
    if let Some(platform) = new.and_then(|facts| facts.platform.as_ref()) {
        *counts.entry(build_of(platform)).or_default() += 1;
    }
    if let Some(platform) = old.and_then(|facts| facts.platform.as_ref()) {
        let platform = build_of(platform);
        if let Some(count) = counts.get_mut(&platform) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&platform);
            }
        }
    }
}

fn count_images(
    counts: &mut HashMap<Text, usize>,
    old: Option<&NodeFacts>,
    new: Option<&NodeFacts>,
) {
    for (name, _) in new.iter().flat_map(|facts| &facts.images) {
        *counts.entry(name.clone()).or_default() += 1;
    }
    for (name, _) in old.iter().flat_map(|facts| &facts.images) {
        if let Some(count) = counts.get_mut(name) {
            *count -= 1;
            if *count == 0 {
                counts.remove(name);
            }
        }
    }
}
