//! Claims, volumes and classes: which node a pod's data allows.

use std::collections::{BTreeMap, HashMap};

use k8s_openapi::api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    storage::v1::StorageClass,
};

use crate::{
    labels::{Labels, Requirement, Selector},
    node::{NodeFacts, ZONE},
    pod::{NodeTerm, node_terms},
    quantity::Amount,
    text::{Text, Texts},
};

const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Labels that say where a machine or a volume is, and how they were called before.
const ZONES: [(&str, &str); 2] = [
    (ZONE, "failure-domain.beta.kubernetes.io/zone"),
    (
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/region",
    ),
];
/// Stands between the values of such a label of a volume that is in several places.
const BETWEEN_ZONES: &str = "__";

/// Namespace and name of a claim.
pub(crate) type ClaimKey = (Text, Text);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) volume: Option<Text>,
    pub(crate) is_bound: bool,
    pub(crate) is_lost: bool,
    pub(crate) is_leaving: bool,
    /// Whether only one pod at a time may use it.
    pub(crate) is_exclusive: bool,
    pub(crate) selected_node: Option<Text>,
    class: Text,
    modes: Box<[Text]>,
    is_block: bool,
    size: i64,
    selector: Option<Selector>,
}

/// Labels of a node and the values of which it must have one.
type Zones = Box<[(&'static str, Box<[Text]>)]>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Volume {
    pub(crate) name: Text,
    class: Text,
    modes: Box<[Text]>,
    is_block: bool,
    size: i64,
    labels: Labels,
    zones: Zones,
    nodes: Option<Box<[NodeTerm]>>,
    claim: Option<ClaimKey>,
    is_available: bool,
}

impl Volume {
    pub(crate) fn can_be_on(&self, node: &NodeFacts) -> bool {
        self.nodes
            .as_ref()
            .is_none_or(|terms| terms.iter().any(|term| term.matches(node)))
    }

    /// Whether a node is where the labels of the volume say that it is. A node that says nothing is everywhere.
    pub(crate) fn is_in_zone_of(&self, node: &NodeFacts) -> bool {
        let value = |(name, old): &(&str, &str)| node.labels.get(name).or(node.labels.get(old));
        if self.zones.is_empty() || !ZONES.iter().any(|zone| value(zone).is_some()) {
            return true;
        }
        self.zones.iter().all(|(name, values)| {
            let zone = ZONES.iter().find(|zone| zone.0 == *name);
            zone.and_then(value).is_some_and(|has| values.contains(has))
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    waits_for_pod: bool,
    provisions: bool,
    /// Alternatives of labels of which a node must have all of one; none means anywhere.
    places: Box<[Box<[Requirement]>]>,
}

impl Class {
    fn can_make_on(&self, node: &NodeFacts) -> bool {
        let matches = |one: &Requirement| one.matches(|key| node.labels.get(key));
        self.provisions
            && (self.places.is_empty() || self.places.iter().any(|all| all.iter().all(matches)))
    }
}

/// What becomes of a claim when its pod goes to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimPlan {
    /// A volume that is there becomes the claim's.
    Bind { claim: String, volume: String },
    /// A volume is made for the claim, where the node can reach it.
    Provision { claim: String },
}

#[derive(Debug, Default)]
pub(crate) struct Storage {
    pub(crate) claims: HashMap<ClaimKey, Claim>,
    pub(crate) volumes: HashMap<Text, Volume>,
    classes: HashMap<Text, Class>,
    /// Volumes without a claim, by class.
    unclaimed: HashMap<Text, std::collections::BTreeSet<(i64, Text)>>,
    /// Volumes that have a claim, which may not know of it yet.
    claimed: HashMap<ClaimKey, Text>,
    /// Volumes that were promised to a claim and do not show it yet.
    promised: HashMap<Text, ClaimKey>,
}

impl Storage {
    pub(crate) fn put_claim(&mut self, claim: &PersistentVolumeClaim, texts: &mut Texts) {
        let key = key(
            claim.metadata.namespace.as_deref(),
            claim.metadata.name.as_deref(),
            texts,
        );
        let claim = Claim::of(claim, texts);
        if claim.is_bound {
            self.promised.retain(|_, to| *to != key);
        }
        self.claims.insert(key, claim);
    }

    pub(crate) fn remove_claim(&mut self, namespace: &str, name: &str, texts: &mut Texts) {
        let key = key(Some(namespace), Some(name), texts);
        self.promised.retain(|_, to| *to != key);
        self.claims.remove(&key);
    }

    pub(crate) fn put_volume(&mut self, volume: &PersistentVolume, texts: &mut Texts) {
        let volume = Volume::of(volume, texts);
        self.remove_volume(&volume.name);
        match &volume.claim {
            Some(claim) => {
                self.claimed.insert(claim.clone(), volume.name.clone());
            }
            None if volume.is_available => {
                let entry = (volume.size, volume.name.clone());
                self.unclaimed
                    .entry(volume.class.clone())
                    .or_default()
                    .insert(entry);
            }
            None => {}
        }
        self.volumes.insert(volume.name.clone(), volume);
    }

    pub(crate) fn remove_volume(&mut self, name: &str) {
        let Some(old) = self.volumes.remove(name) else {
            return;
        };
        if let Some(claim) = &old.claim
            && self.claimed.get(claim) == Some(&old.name)
        {
            self.claimed.remove(claim);
        }
        if let Some(list) = self.unclaimed.get_mut(&old.class) {
            list.remove(&(old.size, old.name));
            if list.is_empty() {
                self.unclaimed.remove(&old.class);
            }
        }
    }

    pub(crate) fn put_class(&mut self, class: &StorageClass, texts: &mut Texts) {
        let name = texts.keep(class.metadata.name.as_deref().unwrap_or_default());
        self.classes.insert(name, Class::of(class, texts));
    }

    pub(crate) fn remove_class(&mut self, name: &str) {
        self.classes.remove(name);
    }

    /// Sets a volume aside until the watch tells that the claim has it, or that it never will.
    pub(crate) fn promise(&mut self, volume: &str, claim: ClaimKey) {
        if let Some(volume) = self.volumes.get(volume) {
            self.promised.insert(volume.name.clone(), claim);
        }
    }

    pub(crate) fn forget_promise(&mut self, claim: &ClaimKey) {
        self.promised.retain(|_, to| to != claim);
    }

    /// Whether a claim gets its volume only when its pod has a node.
    pub(crate) fn waits_for_pod(&self, claim: &Claim) -> bool {
        self.classes
            .get(&claim.class)
            .is_some_and(|class| class.waits_for_pod)
    }

    /// How a claim that has no volume yet could get one on a node.
    pub(crate) fn plan(
        &self,
        key: &ClaimKey,
        claim: &Claim,
        node: &NodeFacts,
        taken: &[ClaimPlan],
    ) -> Option<ClaimPlan> {
        let name = || key.1.to_string();
        let class = self.classes.get(&claim.class)?;
        if let Some(selected) = &claim.selected_node {
            // Somebody makes it already, and only there.
            return (*selected == node.name).then(|| ClaimPlan::Provision { claim: name() });
        }
        if let Some(volume) = self
            .claimed
            .get(key)
            .and_then(|name| self.volumes.get(name))
        {
            return volume.can_be_on(node).then(|| ClaimPlan::Bind {
                claim: name(),
                volume: volume.name.to_string(),
            });
        }
        let is_taken = |volume: &Volume| {
            taken.iter().any(|plan| matches!(plan, ClaimPlan::Bind { volume: other, .. } if volume.name == other.as_str()))
        };
        // The smallest that is large enough, so that large ones stay for those who need them.
        let found = self
            .unclaimed
            .get(&claim.class)
            .into_iter()
            .flat_map(|list| list.range((claim.size, Text::from(""))..))
            .filter_map(|(_, name)| self.volumes.get(name))
            .find(|volume| {
                claim.fits(volume)
                    && volume.can_be_on(node)
                    && !is_taken(volume)
                    && self.promised.get(&volume.name).is_none_or(|to| to == key)
            });
        if let Some(volume) = found {
            return Some(ClaimPlan::Bind {
                claim: name(),
                volume: volume.name.to_string(),
            });
        }
        class
            .can_make_on(node)
            .then(|| ClaimPlan::Provision { claim: name() })
    }
}

fn key(namespace: Option<&str>, name: Option<&str>, texts: &mut Texts) -> ClaimKey {
    (
        texts.keep(namespace.unwrap_or_default()),
        texts.keep(name.unwrap_or_default()),
    )
}

fn kept(list: Option<&Vec<String>>, texts: &mut Texts) -> Box<[Text]> {
    list.into_iter()
        .flatten()
        .map(|text| texts.keep(text))
        .collect()
}

fn size_of(
    quantities: Option<&BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>>,
) -> i64 {
    let quantity = quantities.and_then(|all| all.get("storage"));
    quantity
        .and_then(|one| Amount::parse(&one.0))
        .map_or(0, Amount::units)
}

impl Claim {
    fn of(claim: &PersistentVolumeClaim, texts: &mut Texts) -> Self {
        let annotation = |name: &str| claim.metadata.annotations.as_ref()?.get(name);
        let spec = claim.spec.clone().unwrap_or_default();
        let phase = claim
            .status
            .as_ref()
            .and_then(|status| status.phase.as_deref());
        let volume = spec.volume_name.as_deref().filter(|name| !name.is_empty());
        let class = annotation(OLD_CLASS).or(spec.storage_class_name.as_ref());
        Self {
            is_bound: volume.is_some()
                && (phase == Some("Bound") || annotation(BIND_COMPLETED).is_some()),
            volume: volume.map(|name| texts.keep(name)),
            is_lost: phase == Some("Lost"),
            is_leaving: claim.metadata.deletion_timestamp.is_some(),
            is_exclusive: spec
                .access_modes
                .iter()
                .flatten()
                .any(|mode| mode == "ReadWriteOncePod"),
            selected_node: annotation(SELECTED_NODE).map(|name| texts.keep(name)),
            class: texts.keep(class.map_or("", String::as_str)),
            modes: kept(spec.access_modes.as_ref(), texts),
            is_block: spec.volume_mode.as_deref() == Some("Block"),
            size: size_of(
                spec.resources
                    .as_ref()
                    .and_then(|resources| resources.requests.as_ref()),
            ),
            selector: spec
                .selector
                .as_ref()
                .map(|selector| Selector::of(Some(selector), texts)),
        }
    }

    fn fits(&self, volume: &Volume) -> bool {
        volume.size >= self.size
            && volume.is_block == self.is_block
            && self.modes.iter().all(|mode| volume.modes.contains(mode))
            && self
                .selector
                .as_ref()
                .is_none_or(|selector| selector.matches(&volume.labels))
    }
}

impl Volume {
    fn of(volume: &PersistentVolume, texts: &mut Texts) -> Self {
        let spec = volume.spec.clone().unwrap_or_default();
        let required = spec
            .node_affinity
            .as_ref()
            .and_then(|affinity| affinity.required.as_ref());
        let phase = volume
            .status
            .as_ref()
            .and_then(|status| status.phase.as_deref());
        Self {
            name: texts.keep(volume.metadata.name.as_deref().unwrap_or_default()),
            class: texts.keep(spec.storage_class_name.as_deref().unwrap_or_default()),
            modes: kept(spec.access_modes.as_ref(), texts),
            is_block: spec.volume_mode.as_deref() == Some("Block"),
            size: size_of(spec.capacity.as_ref()),
            labels: Labels::of(volume.metadata.labels.as_ref(), texts),
            zones: zones_of(volume.metadata.labels.as_ref(), texts),
            nodes: required.map(|required| node_terms(&required.node_selector_terms, texts)),
            claim: spec
                .claim_ref
                .as_ref()
                .map(|claim| key(claim.namespace.as_deref(), claim.name.as_deref(), texts)),
            is_available: matches!(phase, None | Some("Available" | "Pending"))
                && volume.metadata.deletion_timestamp.is_none(),
        }
    }
}

/// Where the labels of a volume say that it is.
fn zones_of(labels: Option<&BTreeMap<String, String>>, texts: &mut Texts) -> Zones {
    let get = |name: &str| labels.and_then(|labels| labels.get(name));
    ZONES
        .iter()
        .filter_map(|(name, old)| {
            let values = get(name).or_else(|| get(old))?.split(BETWEEN_ZONES);
            Some((*name, values.map(|value| texts.keep(value)).collect()))
        })
        .collect()
}

impl Class {
    fn of(class: &StorageClass, texts: &mut Texts) -> Self {
        let places = class.allowed_topologies.iter().flatten();
        Self {
            waits_for_pod: class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"),
            provisions: class.provisioner != NO_PROVISIONER,
            places: places
                .map(|place| {
                    let all = place.match_label_expressions.iter().flatten();
                    all.map(|one| Requirement::of(&one.key, "In", &one.values, texts))
                        .collect()
                })
                .collect(),
        }
    }
}
