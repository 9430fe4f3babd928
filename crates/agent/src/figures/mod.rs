//! What the node and its pods use, measured from time to time and kept for all who ask.
//!
//! One pass over the runtime serves everybody, and only the last two are remembered. What cannot be measured is
//! absent.

mod measure;
mod rate;
#[cfg(test)]
mod tests;
mod volumes;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use transom_host::{files::Space, machine::Counters};
use transom_runtime::{ContainerId, ContainerState, ContainerStats, ImageSpace};

pub(crate) use rate::Work;
pub(crate) use volumes::VolumeFigures;

use crate::{pods::Pods, site::Site};

/// How often all is measured.
const PERIOD: Duration = Duration::from_secs(10);
/// Who came meanwhile is measured sooner, but never more often than this.
const SHORTEST: Duration = Duration::from_secs(1);

/// All that was measured in one pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) node: NodeFigures,
    /// By the order of their uids.
    pub(crate) pods: Vec<PodFigures>,
    /// Why the pods are those of an earlier pass, if they are.
    pub(crate) trouble: Option<String>,
}

/// What the machine uses.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeFigures {
    /// `None` before the first pass.
    pub(crate) taken: Option<Timestamp>,
    pub(crate) booted: Option<Timestamp>,
    pub(crate) work: Option<Work>,
    /// The whole memory of the machine.
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) counters: Counters,
    /// The disk of the agent's state.
    pub(crate) space: Option<Space>,
    pub(crate) images: Option<ImageSpace>,
}

/// What a pod uses.
#[derive(Clone, Debug)]
pub(crate) struct PodFigures {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) started: Timestamp,
    pub(crate) taken: Timestamp,
    pub(crate) containers: Vec<ContainerFigures>,
    /// Received and sent.
    pub(crate) network: Option<(u64, u64)>,
    pub(crate) processes: Option<u64>,
    /// Those that the agent makes.
    pub(crate) volumes: Vec<VolumeFigures>,
    /// When they were last looked at.
    pub(crate) volumes_taken: Option<Timestamp>,
}

/// What a container uses.
#[derive(Clone, Debug)]
pub(crate) struct ContainerFigures {
    pub(crate) id: ContainerId,
    pub(crate) started: Timestamp,
    pub(crate) work: Option<Work>,
    pub(crate) memory_limit: Option<u64>,
    pub(crate) stats: ContainerStats,
}

impl PodFigures {
    /// Of all its containers that are counted; `None` if none is.
    fn sum(&self, one: impl Fn(&ContainerFigures) -> Option<u64>) -> Option<u64> {
        let counted = self.containers.iter().filter_map(one);
        counted.fold(None, |sum, more| Some(sum.unwrap_or(0) + more))
    }

    /// The work of all its containers together.
    pub(crate) fn work(&self) -> Option<Work> {
        Work::sum(self.containers.iter().filter_map(|one| one.work))
    }

    pub(crate) fn working_set(&self) -> Option<u64> {
        self.sum(|one| one.stats.memory.map(|memory| memory.working_set_bytes))
    }

    pub(crate) fn memory_usage(&self) -> Option<u64> {
        self.sum(|one| one.stats.memory.map(|memory| memory.usage_bytes))
    }

    pub(crate) fn resident(&self) -> Option<u64> {
        self.sum(|one| one.stats.memory.and_then(|memory| memory.rss_bytes))
    }

    pub(crate) fn page_faults(&self) -> Option<u64> {
        self.sum(|one| one.stats.memory.and_then(|memory| memory.page_faults))
    }
}

/// What was measured last.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    latest: watch::Sender<Arc<Snapshot>>,
    wanted: Notify,
}

impl Figures {
    pub(crate) fn latest(&self) -> Arc<Snapshot> {
        Arc::clone(&self.latest.borrow())
    }

    /// Changes with every pass.
    pub(crate) fn passes(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.latest.subscribe()
    }

    /// Has the next pass come soon.
    pub(crate) fn want(&self) {
        self.wanted.notify_one();
    }

    fn keep(&self, snapshot: Snapshot) {
        self.latest.send_replace(Arc::new(snapshot));
    }
}

/// Measures until `stop`.
pub(crate) async fn run(site: Arc<Site>, pods: Arc<Pods>, stop: CancellationToken) {
    // Rates need two passes: the second does not wait for long.
    let mut period = 2 * SHORTEST;
    while !stop.is_cancelled() {
        let begun = Instant::now();
        let running = running(&site);
        let before = site.figures.latest();
        let snapshot = measure::measure(&site, &pods, &before).await;
        site.figures.keep(snapshot);
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep_until(begun + period) => {}
            () = wanted(&site, &running) => {
                // There is to be something that can be counted.
                let pause = tokio::time::sleep(SHORTEST);
                if stop.run_until_cancelled(pause).await.is_none() {
                    return;
                }
            }
        }
        period = PERIOD;
    }
}

fn running(site: &Site) -> BTreeSet<ContainerId> {
    let mut all = BTreeSet::new();
    site.observer.each_container(|one| {
        if matches!(one.state, ContainerState::Running { .. }) {
            all.insert(one.id.clone());
        }
    });
    all
}

/// Returns when somebody asks for a pass, or something runs that did not before.
async fn wanted(site: &Site, before: &BTreeSet<ContainerId>) {
    tokio::select! {
        () = site.figures.wanted.notified() => {}
        () = newcomers(site, before) => {}
    }
}

/// Returns when something runs that did not before.
async fn newcomers(site: &Site, before: &BTreeSet<ContainerId>) {
    let mut lists = site.observer.lists();
    while running(site).is_subset(before) {
        if lists.changed().await.is_err() {
            // Nobody lists any more: the agent ends.
            return std::future::pending().await;
        }
    }
}
