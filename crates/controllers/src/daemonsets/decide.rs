//! Decides on which nodes daemons begin and end, and what the set says about itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::{
    api::{
        apps::v1::{DaemonSet, DaemonSetSpec, DaemonSetStatus},
        core::v1::Pod,
    },
    apimachinery::pkg::util::intstr::IntOrString,
    jiff::Timestamp,
};
use kube::ResourceExt as _;

use super::nodes::{Verdict, target};
use crate::workloads::{events::News, pods, revisions::REVISION, shares::scaled};

const GENERATION_LABEL: &str = "pod-template-generation";
/// The annotation that counted templates before there were revisions.
pub(super) const GENERATION: &str = "deprecated.daemonset.template.generation";

/// What is seen of a set: its nodes, and its pods by the node that they are meant for.
pub(super) struct Sight<'a> {
    pub(super) set: &'a DaemonSet,
    pub(super) spec: &'a DaemonSetSpec,
    pub(super) hash: &'a str,
    pub(super) verdicts: &'a BTreeMap<String, Verdict>,
    pub(super) pods: BTreeMap<String, Vec<Arc<Pod>>>,
    pub(super) now: Timestamp,
}

/// What to do for a set.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The nodes that get a daemon.
    pub(super) create: Vec<String>,
    pub(super) delete: Vec<Arc<Pod>>,
    pub(super) news: Vec<News>,
}

impl<'a> Sight<'a> {
    pub(super) fn new(
        set: &'a DaemonSet,
        spec: &'a DaemonSetSpec,
        hash: &'a str,
        verdicts: &'a BTreeMap<String, Verdict>,
        owned: &[Arc<Pod>],
        now: Timestamp,
    ) -> Self {
        let mut pods: BTreeMap<String, Vec<Arc<Pod>>> = BTreeMap::new();
        for one in owned {
            // One that is over and going leaves its place already.
            if pods::is_over(one) && pods::is_going(one) {
                continue;
            }
            if let Some(node) = target(one) {
                pods.entry(node.to_owned())
                    .or_default()
                    .push(Arc::clone(one));
            }
        }
        for list in pods.values_mut() {
            list.sort_by_key(|pod| {
                (
                    pod.metadata.creation_timestamp.clone(),
                    pod.metadata.name.clone(),
                )
            });
        }
        Self {
            set,
            spec,
            hash,
            verdicts,
            pods,
            now,
        }
    }

    fn is_available(&self, pod: &Pod) -> bool {
        pods::is_available(pod, self.spec.min_ready_seconds.unwrap_or(0), self.now)
    }

    /// Whether a daemon as the set wants it runs.
    fn is_running(&self, pod: &Pod) -> bool {
        pods::phase(pod) == "Running" && self.is_updated(pod)
    }

    fn is_updated(&self, pod: &Pod) -> bool {
        let label = |name: &str| pod.labels().get(name).map(String::as_str);
        let generation = self.set.annotations().get(GENERATION).map(String::as_str);
        label(REVISION) == Some(self.hash)
            || (generation.is_some() && label(GENERATION_LABEL) == generation)
    }

    fn desired(&self) -> i32 {
        let count = self
            .verdicts
            .values()
            .filter(|verdict| verdict.should_run)
            .count();
        i32::try_from(count).unwrap_or(i32::MAX)
    }

    /// How many may be missing and how many may be too many during an update.
    fn limits(&self) -> (i32, i32) {
        let rolling = self
            .spec
            .update_strategy
            .as_ref()
            .and_then(|strategy| strategy.rolling_update.as_ref());
        let (one, none) = (IntOrString::Int(1), IntOrString::Int(0));
        let unavailable = rolling
            .and_then(|rolling| rolling.max_unavailable.as_ref())
            .unwrap_or(&one);
        let surge = rolling
            .and_then(|rolling| rolling.max_surge.as_ref())
            .unwrap_or(&none);
        let desired = self.desired();
        let (mut unavailable, surge) = (
            scaled(unavailable, desired, true),
            scaled(surge, desired, true),
        );
        if unavailable == 0 && surge == 0 {
            unavailable = 1;
        }
        (unavailable, surge)
    }

    fn allows_surge(&self) -> bool {
        self.limits().1 > 0 && self.is_rolling()
    }

    fn is_rolling(&self) -> bool {
        let strategy = self.spec.update_strategy.as_ref();
        strategy.and_then(|strategy| strategy.type_.as_deref()) != Some("OnDelete")
    }

    /// What to do. `may_retry` tells whether a failed pod on a node was left alone for long enough.
    pub(super) fn plan(&self, may_retry: impl Fn(&str) -> bool) -> Plan {
        let mut plan = Plan::default();
        if self.set.metadata.deletion_timestamp.is_some() {
            return plan;
        }
        let none = Vec::new();
        for (node, verdict) in self.verdicts {
            let pods = self.pods.get(node).unwrap_or(&none);
            if pods.is_empty() {
                if verdict.should_run {
                    plan.create.push(node.clone());
                }
            } else if verdict.may_stay {
                self.tend(node, pods, &may_retry, &mut plan);
            } else {
                let is_spared = |pod: &Pod| verdict.spares_running && self.is_running(pod);
                let goes = |pod: &&Arc<Pod>| !(pods::is_going(pod) || is_spared(pod));
                plan.delete.extend(pods.iter().filter(goes).cloned());
            }
        }
        for (node, pods) in &self.pods {
            // Their node is gone before they came to it, and nobody else would tell them.
            if !self.verdicts.contains_key(node) {
                let waiting = pods
                    .iter()
                    .filter(|pod| !is_bound(pod) && !pods::is_going(pod));
                plan.delete.extend(waiting.cloned());
            }
        }
        if plan.create.is_empty() && plan.delete.is_empty() && self.is_rolling() {
            self.update(&mut plan);
        }
        plan
    }

    /// Leaves one daemon on a node, or two while one takes the place of the other.
    fn tend(
        &self,
        node: &str,
        all: &[Arc<Pod>],
        may_retry: &impl Fn(&str) -> bool,
        plan: &mut Plan,
    ) {
        let mut running = Vec::new();
        for pod in all.iter().filter(|pod| !pods::is_going(pod)) {
            let place = || {
                format!(
                    "{}/{} on node {node}",
                    pod.namespace().unwrap_or_default(),
                    pod.name_any()
                )
            };
            match pods::phase(pod) {
                "Failed" if may_retry(node) => {
                    let text = format!("Found failed daemon pod {}, will try to kill it", place());
                    plan.news.push(News::warning("FailedDaemonPod", text));
                    plan.delete.push(Arc::clone(pod));
                }
                "Failed" => {}
                "Succeeded" => {
                    let text = format!(
                        "Found succeeded daemon pod {}, will try to delete it",
                        place()
                    );
                    plan.news.push(News::normal("SucceededDaemonPod", text));
                    plan.delete.push(Arc::clone(pod));
                }
                _ => running.push(pod),
            }
        }
        if !self.allows_surge() {
            plan.delete.extend(running.into_iter().skip(1).cloned());
            return;
        }
        let (new, old): (Vec<_>, Vec<_>) =
            running.into_iter().partition(|pod| self.is_updated(pod));
        plan.delete.extend(
            new.iter()
                .skip(1)
                .chain(old.iter().skip(1))
                .map(|pod| Arc::clone(pod)),
        );
        if let (Some(new), Some(old)) = (new.first(), old.first())
            && (!pods::is_ready(old) || self.is_available(new))
        {
            plan.delete.push(Arc::clone(old));
        }
    }

    /// Replaces old daemons, as many at a time as may be missing or too many.
    fn update(&self, plan: &mut Plan) {
        let (max_unavailable, max_surge) = self.limits();
        let mut busy = 0;
        let mut due: Vec<(&String, &Arc<Pod>)> = Vec::new();
        let mut candidates: Vec<(&String, &Arc<Pod>)> = Vec::new();
        for (node, verdict) in self.verdicts {
            if !verdict.should_run {
                continue;
            }
            let live = self
                .pods
                .get(node)
                .into_iter()
                .flatten()
                .filter(|pod| !pods::is_going(pod));
            let (new, old): (Vec<_>, Vec<_>) = live.partition(|pod| self.is_updated(pod));
            match (new.as_slice(), old.as_slice()) {
                ([new], []) => busy += i32::from(!self.is_available(new) && max_surge == 0),
                ([], [old]) if !self.is_available(old) => {
                    // It is missing already: to replace it costs nothing.
                    busy += i32::from(max_surge == 0);
                    due.push((node, old));
                }
                ([], [old]) => candidates.push((node, old)),
                ([new], [old]) if max_surge > 0 => {
                    if self.is_available(new) {
                        plan.delete.push(Arc::clone(old));
                    } else {
                        busy += 1;
                    }
                }
                ([], []) if max_surge > 0 => {}
                _ => busy += 1,
            }
        }
        let limit = if max_surge > 0 {
            max_surge
        } else {
            max_unavailable
        };
        let room = usize::try_from(limit - busy).unwrap_or(0);
        for (node, pod) in due.into_iter().chain(candidates.into_iter().take(room)) {
            if max_surge > 0 {
                plan.create.push(node.clone());
            } else {
                plan.delete.push(Arc::clone(pod));
            }
        }
    }

    /// What the set says about itself.
    pub(super) fn status(&self) -> DaemonSetStatus {
        let old = self.set.status.clone().unwrap_or_default();
        let mut status = DaemonSetStatus {
            observed_generation: self.set.metadata.generation,
            collision_count: old.collision_count,
            conditions: old.conditions,
            desired_number_scheduled: self.desired(),
            ..DaemonSetStatus::default()
        };
        let (mut available, mut updated) = (0, 0);
        for (node, verdict) in self.verdicts {
            let pods = self.pods.get(node);
            let first = pods.and_then(|pods| pods.iter().min_by_key(|pod| !pods::is_ready(pod)));
            let Some(pod) = first else { continue };
            if !verdict.should_run {
                status.number_misscheduled += 1;
                continue;
            }
            status.current_number_scheduled += 1;
            status.number_ready += i32::from(pods::is_ready(pod));
            available += i32::from(self.is_available(pod));
            let newest = pods.into_iter().flatten().any(|pod| self.is_updated(pod));
            updated += i32::from(newest);
        }
        status.number_available = some(available);
        status.updated_number_scheduled = some(updated);
        status.number_unavailable = some(status.desired_number_scheduled - available);
        status
    }

    /// When the next daemon will have been ready for long enough.
    pub(super) fn until_next_available(&self) -> Option<Duration> {
        let wanted = self.spec.min_ready_seconds.unwrap_or(0);
        let left = self.pods.values().flatten();
        left.filter_map(|pod| pods::until_available(pod, wanted, self.now))
            .filter(|left| !left.is_zero())
            .min()
    }

    /// The hashes that pods are of.
    pub(super) fn live_hashes(&self) -> BTreeSet<&str> {
        let pods = self.pods.values().flatten();
        pods.filter_map(|pod| pod.labels().get(REVISION))
            .map(String::as_str)
            .collect()
    }
}

fn is_bound(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    spec.and_then(|spec| spec.node_name.as_deref())
        .is_some_and(|node| !node.is_empty())
}

fn some(count: i32) -> Option<i32> {
    (count != 0).then_some(count)
}
