//! What an agent knows about a pod beside its object and its runtime: pauses, failures, probes.
//!
//! All of it may be lost: an agent that begins with none only tries sooner.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ResourceRequirements;
use transom_runtime::ContainerId;

use super::{back_off::Pause, resize::Attempt};

/// Why something waits, as the status says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// When it is tried again.
    pub(crate) retry: Timestamp,
}

/// A pull that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FailedPull {
    pub(crate) pause: Pause,
    pub(crate) error: String,
}

/// What probes found out about one container. `None`: nothing yet, or nobody asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Health {
    pub(crate) started: Option<bool>,
    pub(crate) ready: Option<bool>,
    pub(crate) live: Option<bool>,
}

/// Why the whole pod has to end though nobody deleted it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) reason: String,
    pub(crate) message: String,
    /// The node needs its room: it ends fast, and whoever made it is told that it was not its fault.
    pub(crate) is_eviction: bool,
}

impl Verdict {
    pub(crate) fn eviction(message: String) -> Self {
        Self {
            reason: "Evicted".to_owned(),
            message,
            is_eviction: true,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) enum Volumes {
    #[default]
    Missing,
    Failed(Failure),
    Ready,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Memory {
    pub(crate) verdict: Option<Verdict>,
    /// By container name.
    pub(crate) restarts: BTreeMap<String, Pause>,
    /// By image name.
    pub(crate) pulls: BTreeMap<String, FailedPull>,
    /// By container name.
    pub(crate) failures: BTreeMap<String, Failure>,
    pub(crate) sandbox: Option<Failure>,
    pub(crate) volumes: Volumes,
    pub(crate) health: BTreeMap<ContainerId, Health>,
    /// What containers left as their last words.
    pub(crate) messages: BTreeMap<ContainerId, String>,
    /// When the agent first saw the pod.
    pub(crate) seen: Option<Timestamp>,
    /// When the end of the pod began.
    pub(crate) ending: Option<Timestamp>,
    /// Containers whose start is not over: a hook still runs.
    pub(crate) starting: BTreeSet<String>,
    /// What each container may use, by its name.
    pub(crate) allocated: BTreeMap<String, ResourceRequirements>,
    /// What each container was given.
    pub(crate) given: BTreeMap<ContainerId, ResourceRequirements>,
    /// What came of the last wish to change that.
    pub(crate) resize: Option<Attempt>,
    /// Nothing of the pod is left on the disk.
    pub(crate) cleaned: bool,
}

impl Memory {
    /// Forgets what is about containers that are no more.
    pub(crate) fn retain(&mut self, is_there: impl Fn(&ContainerId) -> bool) {
        self.health.retain(|id, _| is_there(id));
        self.messages.retain(|id, _| is_there(id));
        self.given.retain(|id, _| is_there(id));
    }
}
