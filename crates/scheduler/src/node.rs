//! A node as the scheduler sees it: what it is, and apart from that what its pods use of it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;
use transom_model::{
    Platform, labels as names,
    node::{self, Reported},
};

use crate::{
    extras::{self, Admission, EVERYWHERE},
    labels::Labels,
    pod::PodFacts,
    quantity::Amount,
    resources::{PODS, Resources},
    text::{Text, Texts},
};

const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    NoSchedule,
    PreferNoSchedule,
    NoExecute,
    /// An effect that nobody knows has none.
    Unknown,
}

impl Effect {
    pub(crate) fn of(text: &str) -> Self {
        match text {
            "NoSchedule" => Self::NoSchedule,
            "PreferNoSchedule" => Self::PreferNoSchedule,
            "NoExecute" => Self::NoExecute,
            _ => Self::Unknown,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taint {
    pub(crate) key: Text,
    pub(crate) value: Text,
    pub(crate) effect: Effect,
}

/// A port of the node itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostPort {
    /// No address means all.
    address: Option<Text>,
    protocol: Text,
    number: i32,
}

impl HostPort {
    pub(crate) fn of(
        address: Option<&str>,
        protocol: &str,
        number: i32,
        texts: &mut Texts,
    ) -> Self {
        let address = address.filter(|address| !matches!(*address, "" | EVERYWHERE));
        Self {
            address: address.map(|address| texts.keep(address)),
            protocol: texts.keep(protocol),
            number,
        }
    }

    /// The same port at an address, unless it has one of its own.
    pub(crate) fn at(&self, address: &Text) -> Self {
        if &**address == EVERYWHERE {
            return self.clone();
        }
        Self {
            address: self.address.clone().or_else(|| Some(address.clone())),
            ..self.clone()
        }
    }

    pub(crate) fn collides(&self, other: &Self) -> bool {
        self.number == other.number
            && self.protocol == other.protocol
            && (self.address.is_none() || other.address.is_none() || self.address == other.address)
    }
}

/// What a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeFacts {
    pub(crate) name: Text,
    pub(crate) labels: Labels,
    pub(crate) taints: Box<[Taint]>,
    pub(crate) is_unschedulable: bool,
    pub(crate) allocatable: Resources,
    pub(crate) most_pods: i64,
    /// Names of images that are there and their sizes, sorted by name.
    pub(crate) images: Box<[(Text, i64)]>,
    pub(crate) platform: Option<Platform>,
    pub(crate) zone: Option<Text>,
    /// Which pods may come at all.
    pub(crate) admission: Admission,
    /// Addresses that pods can have ports at.
    pub(crate) addresses: Box<[Text]>,
}

impl NodeFacts {
    pub(crate) fn of(node: &Node, texts: &mut Texts) -> Self {
        let status = node.status.as_ref();
        let spec = node.spec.as_ref();
        let allocatable = status.and_then(|status| status.allocatable.as_ref());
        let most_pods = allocatable
            .and_then(|all| all.get(PODS))
            .and_then(|quantity| Amount::parse(&quantity.0))
            .map_or(0, Amount::units);
        let known = with_both_spellings(node);
        let labels = Labels::of(Some(&known), texts);
        let taints = spec.iter().flat_map(|spec| spec.taints.iter().flatten());
        Self {
            name: texts.keep(node.metadata.name.as_deref().unwrap_or_default()),
            taints: taints
                .map(|taint| Taint {
                    key: texts.keep(&taint.key),
                    value: texts.keep(taint.value.as_deref().unwrap_or_default()),
                    effect: Effect::of(&taint.effect),
                })
                .collect(),
            is_unschedulable: spec.and_then(|spec| spec.unschedulable).unwrap_or_default(),
            allocatable: Resources::of(allocatable, texts),
            most_pods,
            images: images(node, texts),
            platform: platform(node, &labels),
            zone: labels.get(ZONE).cloned(),
            admission: Admission::of(node.metadata.annotations.as_ref()),
            addresses: extras::addresses(node.metadata.annotations.as_ref(), texts),
            labels,
        }
    }

    /// The taint that a node has for as long as nothing may be put there.
    pub(crate) fn unschedulable_taint(texts: &mut Texts) -> Taint {
        Taint {
            key: texts.keep(UNSCHEDULABLE),
            value: texts.keep(""),
            effect: Effect::NoSchedule,
        }
    }

    pub(crate) fn has_image(&self, name: &Text) -> bool {
        let found = self.images.binary_search_by(|(known, _)| known.cmp(name));
        found.is_ok()
    }

    pub(crate) fn image_size(&self, name: &Text) -> i64 {
        let found = self.images.binary_search_by(|(known, _)| known.cmp(name));
        found.map_or(0, |place| self.images[place].1)
    }
}

/// Old manifests select by old labels; a node has them whether its agent wrote them or not.
fn with_both_spellings(node: &Node) -> BTreeMap<String, String> {
    let mut labels = node.metadata.labels.clone().unwrap_or_default();
    let info = node
        .status
        .as_ref()
        .and_then(|status| status.node_info.as_ref());
    for (new, old, reported) in [
        (
            names::OS,
            names::OS_BETA,
            info.map(|info| &info.operating_system),
        ),
        (
            names::ARCH,
            names::ARCH_BETA,
            info.map(|info| &info.architecture),
        ),
    ] {
        let reported = reported.filter(|value| !value.is_empty());
        let known = labels
            .get(new)
            .or_else(|| labels.get(old))
            .or(reported)
            .cloned();
        if let Some(value) = known {
            labels
                .entry(new.to_owned())
                .or_insert_with(|| value.clone());
            labels.entry(old.to_owned()).or_insert(value);
        }
    }
    labels
}

fn platform(node: &Node, labels: &Labels) -> Option<Platform> {
    let info = node
        .status
        .as_ref()
        .and_then(|status| status.node_info.as_ref());
    let reported = info.map_or_else(Reported::default, |info| Reported {
        os: &info.operating_system,
        arch: &info.architecture,
        kernel_version: &info.kernel_version,
    });
    node::platform(|name| labels.get(name).map(|value| &**value), reported)
}

fn images(node: &Node, texts: &mut Texts) -> Box<[(Text, i64)]> {
    let status = node.status.iter();
    let mut images: Vec<(Text, i64)> = status
        .flat_map(|status| status.images.iter().flatten())
        .flat_map(|image| {
            let size = image.size_bytes.unwrap_or_default();
            image.names.iter().flatten().map(move |name| (name, size))
        })
        .map(|(name, size)| (texts.keep(&transom_model::images::canonical(name)), size))
        .collect();
    images.sort();
    images.dedup_by(|one, other| one.0 == other.0);
    images.into()
}

/// What the pods of a node use of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) requested: Resources,
    pub(crate) padded: (i64, i64),
    pub(crate) pods: i64,
    pub(crate) ports: Vec<HostPort>,
}

impl Usage {
    pub(crate) fn add(&mut self, pod: &PodFacts) {
        self.requested.add(&pod.requests);
        self.padded.0 += pod.padded.0;
        self.padded.1 += pod.padded.1;
        self.pods += 1;
        self.ports.extend(pod.ports.iter().cloned());
    }

    pub(crate) fn remove(&mut self, pod: &PodFacts) {
        self.requested.subtract(&pod.requests);
        self.padded.0 -= pod.padded.0;
        self.padded.1 -= pod.padded.1;
        self.pods -= 1;
        for port in &pod.ports {
            if let Some(place) = self.ports.iter().position(|used| used == port) {
                self.ports.swap_remove(place);
            }
        }
    }
}
