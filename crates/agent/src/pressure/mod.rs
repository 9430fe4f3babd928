//! Keeps a node alive that runs out of memory, disk or processes: it says so, and gives pods away one at a time.
//!
//! A pod is only evicted for figures that were taken after the one before it had ended, and after images that
//! nobody uses made no more room.

mod judge;
mod limits;
mod rank;
#[cfg(test)]
mod tests;
mod threshold;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub use threshold::{Eviction, Least, Signal, Threshold, ThresholdError};

pub(crate) use judge::Condition;
pub(crate) use rank::is_critical;

use self::{
    judge::{Crossed, judge},
    rank::{Candidate, Resource},
};
use crate::{
    events::{about_node, about_pod},
    figures::Snapshot,
    images::Aim,
    pods::{Pods, Verdict},
    site::Site,
};

/// How long an evicted pod may take to end until the next one is looked for.
const CLEANUP: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(500);

/// What the node is short of.
#[derive(Debug, Default)]
pub(crate) struct Pressure {
    conditions: Mutex<Vec<Condition>>,
    /// Wakes whoever tells of the node.
    pub(crate) changed: Notify,
    /// How many pods were evicted, by signal.
    evictions: Mutex<BTreeMap<Signal, u64>>,
}

impl Pressure {
    pub(crate) fn conditions(&self) -> Vec<Condition> {
        let held = self
            .conditions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        held.clone()
    }

    pub(crate) fn evictions(&self) -> BTreeMap<Signal, u64> {
        let held = self
            .evictions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        held.clone()
    }

    fn set(&self, conditions: Vec<Condition>) {
        let mut held = self
            .conditions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if *held != conditions {
            *held = conditions;
            self.changed.notify_one();
        }
    }

    fn count(&self, signal: Signal) {
        let mut held = self
            .evictions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *held.entry(signal).or_default() += 1;
    }
}

/// Looks at every pass of the figures until `stop`.
pub(crate) async fn run(site: Arc<Site>, pods: Arc<Pods>, stop: CancellationToken) {
    let eviction = site.options.eviction.clone();
    let mut passes = site.figures.passes();
    let mut seen = BTreeMap::new();
    // Older figures still have what was given up since.
    let mut not_before: Option<Timestamp> = None;
    while let Some(Ok(())) = stop.run_until_cancelled(passes.changed()).await {
        let snapshot = Arc::clone(&passes.borrow_and_update());
        let now = site.options.clock.now();
        let node = &snapshot.node;
        let judgement = judge(&eviction.hard, eviction.transition, node, &mut seen, now);
        site.pressure.set(judgement.conditions);
        evict_greedy(&site, &pods, &snapshot);
        let is_fresh = node.taken >= not_before;
        let Some(crossed) = judgement.crossed.first().filter(|_| is_fresh) else {
            continue;
        };
        if reclaim(&site, &pods, crossed, &snapshot, &stop).await {
            not_before = Some(site.options.clock.now());
            site.figures.want();
        }
    }
}

/// Ends pods that wrote more than they may.
fn evict_greedy(site: &Site, pods: &Pods, snapshot: &Snapshot) {
    for pod in pods.list().iter().filter(|pod| may_go(pod)) {
        let mut figures = snapshot.pods.iter();
        let figures = figures.find(|one| Some(&one.uid) == pod.metadata.uid.as_ref());
        let Some(message) = figures.and_then(|figures| limits::exceeded(pod, figures)) else {
            continue;
        };
        if pods.evict(
            pod.metadata.uid.as_deref().unwrap_or_default(),
            Verdict::eviction(message.clone()),
        ) {
            site.events.warning(about_pod(pod), "Evicted", message);
        }
    }
}

/// Makes room; tells whether anything was given up.
async fn reclaim(
    site: &Arc<Site>,
    pods: &Pods,
    crossed: &Crossed,
    snapshot: &Snapshot,
    stop: &CancellationToken,
) -> bool {
    let resource = Resource::of(crossed.threshold.signal);
    tracing::warn!(
        resource = resource.name(),
        available = crossed.observed.available,
        "the node is short of something"
    );
    site.events.warning(
        about_node(&site.options.node),
        "EvictionThresholdMet",
        format!("Attempting to reclaim {}", resource.name()),
    );
    if matches!(resource, Resource::Storage | Resource::Inodes) {
        match site.images.collect(site, Aim::AllUnused).await {
            Ok(0) => {}
            Ok(_) => return true,
            Err(error) => tracing::warn!(%error, "images could not be removed to make room"),
        }
    }
    let all = pods.list();
    let mut candidates: Vec<Candidate<'_>> = all
        .iter()
        .filter(|pod| may_go(pod))
        .map(|pod| Candidate {
            pod,
            figures: snapshot
                .pods
                .iter()
                .find(|one| Some(&one.uid) == pod.metadata.uid.as_ref()),
        })
        .collect();
    rank::rank(&mut candidates, resource);
    for candidate in &candidates {
        if let Some(uid) = evict(site, pods, crossed, candidate) {
            wait_for_end(pods, &uid, stop).await;
            return true;
        }
    }
    tracing::warn!(resource = resource.name(), "no pod can be evicted");
    false
}

/// Whether a pod lives, and nobody ends it already.
fn may_go(pod: &Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    let is_over = matches!(phase, Some("Succeeded" | "Failed"));
    !is_over && pod.metadata.deletion_timestamp.is_none() && !is_critical(pod)
}

/// Has a pod end; its uid, unless it is ending already.
fn evict(site: &Site, pods: &Pods, crossed: &Crossed, candidate: &Candidate<'_>) -> Option<String> {
    let message = rank::message(crossed, candidate);
    let uid = candidate.pod.metadata.uid.clone()?;
    if !pods.evict(&uid, Verdict::eviction(message.clone())) {
        return None;
    }
    tracing::warn!(uid, message, "a pod is evicted");
    site.events
        .warning(about_pod(candidate.pod), "Evicted", message);
    site.pressure.count(crossed.threshold.signal);
    Some(uid)
}

/// Returns when nothing of a pod runs any more, but not too late.
async fn wait_for_end(pods: &Pods, uid: &str, stop: &CancellationToken) {
    let ended = async {
        while pods.is_running(uid) {
            tokio::time::sleep(POLL).await;
        }
    };
    let in_time = tokio::time::timeout(CLEANUP, ended);
    if let Some(Err(_)) = stop.run_until_cancelled(in_time).await {
        tracing::warn!(uid, "an evicted pod has not ended yet");
    }
}
