//! What can change in a cluster, and for which reasons of failure it may be good news.

use std::ops::{BitOr, BitOrAssign};

use crate::{node::NodeFacts, place::Unplaceable, reason::Reason};

/// A set of kinds of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changes(u16);

impl Changes {
    pub const NONE: Self = Self(0);
    /// A node came.
    pub const NODE: Self = Self(1);
    /// A node has other labels, or is another machine.
    pub const LABELS: Self = Self(1 << 1);
    /// A node has other taints, or may be used again.
    pub const TAINTS: Self = Self(1 << 2);
    /// A node has more of something, or a pod left it.
    pub const ROOM: Self = Self(1 << 3);
    /// A pod got its place, or other labels.
    pub const NEIGHBOURS: Self = Self(1 << 4);
    /// A pod left.
    pub const DEPARTURE: Self = Self(1 << 5);
    /// A claim, a volume or a class is new or different.
    pub const STORAGE: Self = Self(1 << 6);
    pub const NAMESPACES: Self = Self(1 << 7);
    /// More is known of images.
    pub const IMAGES: Self = Self(1 << 8);
    /// Those that are about one node only.
    pub(crate) const LOCAL: Self =
        Self(Self::NODE.0 | Self::LABELS.0 | Self::TAINTS.0 | Self::ROOM.0);

    /// How many kinds there are.
    pub(crate) const KINDS: usize = 9;

    /// The numbers of the kinds that are in it.
    pub(crate) fn kinds(self) -> impl Iterator<Item = usize> {
        (0..Self::KINDS).filter(move |kind| self.0 & (1 << kind) != 0)
    }

    pub(crate) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// What is in it besides.
    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// What is new about a node that could be good news for somebody.
    pub(crate) fn of_node(old: Option<&NodeFacts>, new: &NodeFacts) -> Self {
        let Some(old) = old else {
            return Self::NODE;
        };
        let mut changes = Self::NONE;
        if old.labels != new.labels || old.platform != new.platform {
            changes |= Self::LABELS;
        }
        if old.taints != new.taints || old.is_unschedulable != new.is_unschedulable {
            changes |= Self::TAINTS;
        }
        if old.allocatable != new.allocatable || old.most_pods != new.most_pods {
            changes |= Self::ROOM;
        }
        changes
    }

    /// What would have to change for a pod to have another chance.
    pub(crate) fn that_help(why: &Unplaceable) -> Self {
        if why.whole.is_some() {
            return Self::STORAGE;
        }
        why.reasons
            .iter()
            .map(|(reason, _)| Self::for_reason(reason))
            .fold(Self::NODE, Self::bitor)
    }

    fn for_reason(reason: &Reason) -> Self {
        match reason {
            Reason::Unschedulable | Reason::Taint { .. } => Self::TAINTS,
            Reason::NodeAffinity | Reason::System(_) | Reason::Admission => Self::LABELS,
            Reason::Platform { .. } => Self::LABELS | Self::IMAGES,
            Reason::Ports | Reason::Insufficient(_) | Reason::TooManyPods | Reason::PortPool => {
                Self::ROOM
            }
            Reason::ClaimInUse => Self::DEPARTURE | Self::STORAGE,
            Reason::VolumeAffinity
            | Reason::NoVolume
            | Reason::VolumeMissing
            | Reason::VolumeZone => Self::STORAGE | Self::LABELS,
            Reason::SpreadWithoutLabel => Self::LABELS,
            Reason::Spread => Self::LABELS | Self::TAINTS | Self::NEIGHBOURS | Self::DEPARTURE,
            Reason::PodAffinity => Self::NEIGHBOURS | Self::LABELS | Self::NAMESPACES,
            Reason::PodAntiAffinity | Reason::ExistingAntiAffinity => {
                Self::DEPARTURE | Self::LABELS | Self::NEIGHBOURS | Self::NAMESPACES
            }
        }
    }
}

impl BitOr for Changes {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Changes {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}
