//! Which pod goes first when a node is short of something, and what it is told. Pure.

use std::cmp::Reverse;

use k8s_openapi::api::core::v1::Pod;

use super::{judge::Crossed, threshold::Signal};
use crate::{figures::PodFigures, quantity, resources};

/// Pods from here on are never evicted.
const CRITICAL: i32 = 2_000_000_000;

/// What there is too little of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Memory,
    Storage,
    Inodes,
    Pids,
}

impl Resource {
    pub(crate) fn of(signal: Signal) -> Self {
        match signal {
            Signal::MemoryAvailable => Self::Memory,
            Signal::NodeFsAvailable | Signal::ImageFsAvailable => Self::Storage,
            Signal::NodeFsInodesFree => Self::Inodes,
            Signal::PidAvailable => Self::Pids,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Storage => "ephemeral-storage",
            Self::Inodes => "inodes",
            Self::Pids => "pids",
        }
    }

    fn is_bytes(self) -> bool {
        matches!(self, Self::Memory | Self::Storage)
    }

    /// How much a pod uses; `None` if nobody counted.
    fn used(self, figures: &PodFigures) -> Option<u64> {
        match self {
            Self::Memory => figures.working_set(),
            Self::Pids => figures.processes,
            Self::Storage | Self::Inodes => Some(
                figures
                    .containers
                    .iter()
                    .flat_map(|one| [one.stats.writable, one.stats.logs])
                    .flatten()
                    .map(|usage| (usage.used_bytes, usage.inodes_used.unwrap_or(0)))
                    .chain(
                        figures
                            .volumes
                            .iter()
                            .map(|one| (one.used_bytes, one.entries)),
                    )
                    .map(|(bytes, inodes)| match self {
                        Self::Storage => bytes,
                        _ => inodes,
                    })
                    .sum(),
            ),
        }
    }
}

/// A pod that could go.
#[derive(Clone, Debug)]
pub(crate) struct Candidate<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) figures: Option<&'a PodFigures>,
}

/// Whether the system itself needs a pod.
pub(crate) fn is_critical(pod: &Pod) -> bool {
    let priority = pod.spec.as_ref().and_then(|spec| spec.priority);
    crate::pods::is_own(pod) || priority.is_some_and(|priority| priority >= CRITICAL)
}

fn requested(pod: &Pod, resource: Resource) -> u64 {
    let amounts = pod.spec.as_ref().map(resources::pod_requests);
    let millis = amounts.and_then(|amounts| amounts.get(resource.name()).copied());
    u64::try_from(millis.unwrap_or(0) / 1000).unwrap_or(0)
}

/// Orders pods by who goes first: who takes more than was asked for, who matters less, who takes most beyond it.
/// One of whom nothing is known goes before all others.
pub(crate) fn rank(candidates: &mut [Candidate<'_>], resource: Resource) {
    candidates.sort_by_cached_key(|one| {
        let priority = one
            .pod
            .spec
            .as_ref()
            .and_then(|spec| spec.priority)
            .unwrap_or(0);
        let used = one.figures.and_then(|figures| resource.used(figures));
        let request = requested(one.pod, resource);
        let beyond = used.map(|used| i128::from(used) - i128::from(request));
        // Nobody asks for processes: only the number counts.
        let is_beyond = resource != Resource::Pids && beyond.is_some_and(|beyond| beyond > 0);
        (
            used.is_some(),
            !is_beyond,
            priority,
            Reverse(beyond.unwrap_or(0)),
        )
    });
}

/// What an evicted pod is told, as kubelet says it.
pub(crate) fn message(crossed: &Crossed, candidate: &Candidate<'_>) -> String {
    let resource = Resource::of(crossed.threshold.signal);
    let amount = |number: u64| {
        if resource.is_bytes() {
            quantity::binary(number)
        } else {
            quantity::decimal(number)
        }
    };
    let least = crossed.threshold.least.of(crossed.observed.capacity);
    let mut text = format!(
        "The node was low on resource: {}. Threshold quantity: {}, available: {}. ",
        resource.name(),
        amount(least),
        amount(crossed.observed.available)
    );
    for one in candidate
        .figures
        .iter()
        .flat_map(|figures| &figures.containers)
    {
        let used = match resource {
            Resource::Memory => one.stats.memory.map(|memory| memory.working_set_bytes),
            Resource::Storage => {
                let parts = [one.stats.writable, one.stats.logs];
                Some(parts.iter().flatten().map(|usage| usage.used_bytes).sum())
            }
            Resource::Inodes | Resource::Pids => None,
        };
        let request = container_request(candidate.pod, &one.stats.name, resource);
        if let Some(used) = used.filter(|used| *used > request) {
            let more = format!(
                "Container {} was using {}, request is {}, has larger consumption of {}. ",
                one.stats.name,
                amount(used),
                amount(request),
                resource.name()
            );
            text.push_str(&more);
        }
    }
    text
}

fn container_request(pod: &Pod, name: &str, resource: Resource) -> u64 {
    let amount = || {
        let spec = pod.spec.as_ref()?;
        let mut all = spec
            .containers
            .iter()
            .chain(spec.init_containers.iter().flatten());
        let container = all.find(|one| one.name == name)?;
        let requests = container.resources.as_ref()?.requests.as_ref()?;
        let millis = quantity::millis(requests.get(resource.name())?)?;
        u64::try_from(millis / 1000).ok()
    };
    amount().unwrap_or(0)
}
