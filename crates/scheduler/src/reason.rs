//! Why a pod cannot go to a node, in the words that people know from Kubernetes.

use std::fmt;

use transom_model::Os;

use crate::text::Text;

/// One reason why a pod cannot go to a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    Unschedulable,
    Taint {
        key: Text,
        value: Text,
    },
    NodeAffinity,
    /// The pod says which system it is for, and the node has another.
    System(Os),
    /// The pod's image is for other machines.
    Platform {
        image: Text,
    },
    Ports,
    Insufficient(Text),
    TooManyPods,
    ClaimInUse,
    VolumeAffinity,
    NoVolume,
    VolumeMissing,
    VolumeZone,
    SpreadWithoutLabel,
    Spread,
    PodAffinity,
    PodAntiAffinity,
    ExistingAntiAffinity,
    /// The node admits only pods with certain labels.
    Admission,
    /// All ports of the pod must be free at one address of the node.
    PortPool,
}

impl Reason {
    /// Whether fewer pods on the node could help.
    pub fn is_resolvable(&self) -> bool {
        matches!(
            self,
            Self::Ports
                | Self::Insufficient(_)
                | Self::TooManyPods
                | Self::ClaimInUse
                | Self::Spread
                | Self::PodAntiAffinity
                | Self::ExistingAntiAffinity
                | Self::PortPool
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unschedulable => f.write_str("node(s) were unschedulable"),
            Self::Taint { key, value } => {
                write!(f, "node(s) had untolerated taint {{{key}: {value}}}")
            }
            Self::NodeAffinity => f.write_str("node(s) didn't match Pod's node affinity/selector"),
            Self::System(os) => write!(f, "node(s) didn't run {os}, which the pod is for"),
            Self::Platform { image } => write!(f, "node(s) cannot run image {image}"),
            Self::Ports => f.write_str("node(s) didn't have free ports for the requested pod ports"),
            Self::Insufficient(resource) => write!(f, "Insufficient {resource}"),
            Self::TooManyPods => f.write_str("Too many pods"),
            Self::ClaimInUse => f.write_str(
                "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",
            ),
            Self::VolumeAffinity => f.write_str("node(s) didn't match PersistentVolume's node affinity"),
            Self::NoVolume => {
                f.write_str("node(s) didn't find available persistent volumes to bind")
            }
            Self::VolumeMissing => f.write_str(
                "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
            ),
            Self::VolumeZone => f.write_str("node(s) had no available volume zone"),
            Self::SpreadWithoutLabel => f.write_str(
                "node(s) didn't match pod topology spread constraints (missing required label)",
            ),
            Self::Spread => f.write_str("node(s) didn't match pod topology spread constraints"),
            Self::PodAffinity => f.write_str("node(s) didn't match pod affinity rules"),
            Self::PodAntiAffinity => f.write_str("node(s) didn't match pod anti-affinity rules"),
            Self::ExistingAntiAffinity => {
                f.write_str("node(s) didn't satisfy existing pods anti-affinity rules")
            }
            Self::Admission => f.write_str("node(s) admit only pods with certain labels"),
            Self::PortPool => f.write_str("node(s) had no address with all requested ports free"),
        }
    }
}
