//! Whether a node is short of something. Pure: the same figures at the same moment give the same judgement.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;

use super::threshold::{Signal, Threshold};
use crate::figures::NodeFigures;

/// What is told of a node that is short of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Condition {
    Memory,
    Disk,
    Processes,
}

impl Condition {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memory => "MemoryPressure",
            Self::Disk => "DiskPressure",
            Self::Processes => "PIDPressure",
        }
    }

    fn of(signal: Signal) -> Self {
        match signal {
            Signal::MemoryAvailable => Self::Memory,
            Signal::NodeFsAvailable | Signal::NodeFsInodesFree | Signal::ImageFsAvailable => {
                Self::Disk
            }
            Signal::PidAvailable => Self::Processes,
        }
    }
}

/// How much there is of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Observed {
    pub(crate) available: u64,
    pub(crate) capacity: u64,
}

/// A threshold that is crossed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crossed {
    pub(crate) threshold: Threshold,
    pub(crate) observed: Observed,
}

/// What the figures of a node say about a signal; `None` where nothing is counted.
pub(crate) fn observe(signal: Signal, node: &NodeFigures) -> Option<Observed> {
    let observed = match signal {
        Signal::MemoryAvailable => {
            let capacity = node.memory_bytes?;
            Observed {
                available: capacity.saturating_sub(node.counters.memory?.working_set),
                capacity,
            }
        }
        Signal::NodeFsAvailable => Observed {
            available: node.space?.available,
            capacity: node.space?.total,
        },
        Signal::NodeFsInodesFree => {
            let inodes = node.space?.inodes?;
            Observed {
                available: inodes.available,
                capacity: inodes.total,
            }
        }
        Signal::ImageFsAvailable => {
            let images = node.images?;
            // Two disks of the very same size and fill are one.
            let is_own = node
                .space
                .is_none_or(|space| space.total != images.capacity_bytes);
            is_own.then_some(Observed {
                available: images.available_bytes,
                capacity: images.capacity_bytes,
            })?
        }
        Signal::PidAvailable => {
            let most = node.counters.most_processes?;
            Observed {
                available: most.saturating_sub(node.counters.processes?),
                capacity: most,
            }
        }
    };
    (observed.capacity > 0).then_some(observed)
}

/// What came of a look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Judgement {
    /// What is told of the node: what is seen now, and what was seen a short while ago.
    pub(crate) conditions: Vec<Condition>,
    /// What is to be made good, the most urgent first: memory before everything else.
    pub(crate) crossed: Vec<Crossed>,
}

/// Judges a node. `seen` keeps when each condition was seen last.
pub(crate) fn judge(
    thresholds: &[Threshold],
    transition: Duration,
    node: &NodeFigures,
    seen: &mut BTreeMap<Condition, Timestamp>,
    now: Timestamp,
) -> Judgement {
    let cross = |threshold: &Threshold| {
        let observed = observe(threshold.signal, node)?;
        let is_crossed = observed.available < threshold.least.of(observed.capacity);
        is_crossed.then_some(Crossed {
            threshold: *threshold,
            observed,
        })
    };
    let mut crossed: Vec<Crossed> = thresholds.iter().filter_map(cross).collect();
    crossed.sort_by_key(|one| one.threshold.signal != Signal::MemoryAvailable);
    for one in &crossed {
        seen.insert(Condition::of(one.threshold.signal), now);
    }
    let is_recent = |last: Timestamp| {
        Duration::try_from(now.duration_since(last)).is_ok_and(|ago| ago < transition)
            || last >= now
    };
    seen.retain(|_, last| is_recent(*last));
    Judgement {
        conditions: seen.keys().copied().collect(),
        crossed,
    }
}
