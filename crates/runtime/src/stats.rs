//! What pods use of the machine, as counted by who runs them.

use jiff::Timestamp;

use crate::PodId;

/// What one pod uses. Parts that a system does not count are absent, never zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodStats {
    pub pod: PodId,
    pub taken: Timestamp,
    pub containers: Vec<ContainerStats>,
    /// Received and sent, for pods with a network of their own.
    pub network: Option<(u64, u64)>,
    pub processes: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerStats {
    pub name: String,
    pub cpu: Option<Cpu>,
    pub memory: Option<Memory>,
    /// What it wrote above its image.
    pub writable: Option<Usage>,
    pub logs: Option<Usage>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Since it started.
    pub used_nanoseconds: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    pub usage_bytes: u64,
    /// What cannot be taken from it without harm: what limits and evictions go by.
    pub working_set_bytes: u64,
    pub rss_bytes: Option<u64>,
    pub page_faults: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    pub used_bytes: u64,
    pub inodes_used: Option<u64>,
}
