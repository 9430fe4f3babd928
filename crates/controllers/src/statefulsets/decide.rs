//! Decides which pod of a set is made, replaced or ended next, and what the set says about itself.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::{
    api::{
        apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetStatus},
        core::v1::{Pod, PodTemplateSpec},
    },
    apimachinery::pkg::util::intstr::IntOrString,
    jiff::Timestamp,
};
use kube::ResourceExt as _;

use super::identity::{first, is_labelled, is_wanted, new_pod, number, replicas};
use crate::workloads::{pods, requests::BURST, revisions::REVISION, shares::scaled};

/// A template and the name of its revision.
#[derive(Clone, Debug)]
pub(super) struct Version {
    pub(super) name: String,
    pub(super) template: PodTemplateSpec,
}

/// What is seen of a set.
pub(super) struct Sight<'a> {
    pub(super) set: &'a StatefulSet,
    pub(super) spec: &'a StatefulSetSpec,
    /// What pods were before the update, and what they become.
    pub(super) current: Version,
    pub(super) update: Version,
    /// The pods that have a number, by it.
    pub(super) pods: BTreeMap<i32, Arc<Pod>>,
    pub(super) now: Timestamp,
}

/// What to do about one pod.
#[derive(Debug)]
pub(super) enum Step {
    Create(Box<Pod>, i32),
    Delete(Arc<Pod>),
    /// Sees to it that a pod which waits has all its claims.
    Claim(Arc<Pod>, i32),
    /// Tells a pod who it is.
    Label(Arc<Pod>, i32),
}

pub(super) fn by_number(set: &str, owned: &[Arc<Pod>]) -> BTreeMap<i32, Arc<Pod>> {
    let pair = |pod: &Arc<Pod>| Some((number(set, &pod.name_any())?, Arc::clone(pod)));
    owned.iter().filter_map(pair).collect()
}

impl Sight<'_> {
    fn min_ready(&self) -> i32 {
        self.spec.min_ready_seconds.unwrap_or(0)
    }

    fn is_ready(pod: &Pod) -> bool {
        pods::phase(pod) == "Running" && pods::is_ready(pod)
    }

    fn is_available(&self, pod: &Pod) -> bool {
        Self::is_ready(pod) && pods::is_available(pod, self.min_ready(), self.now)
    }

    fn is_healthy(&self, pod: &Pod) -> bool {
        self.is_available(pod) && !pods::is_going(pod)
    }

    fn is_ordered(&self) -> bool {
        self.spec.pod_management_policy.as_deref() != Some("Parallel")
    }

    fn partition(&self) -> i32 {
        let strategy = self.spec.update_strategy.as_ref();
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        rolling.and_then(|rolling| rolling.partition).unwrap_or(0)
    }

    fn is_rolling(&self) -> bool {
        let strategy = self.spec.update_strategy.as_ref();
        strategy.and_then(|strategy| strategy.type_.as_deref()) != Some("OnDelete")
    }

    fn numbers(&self) -> impl DoubleEndedIterator<Item = i32> + use<> {
        let first = first(self.spec);
        first..first.saturating_add(replicas(self.spec))
    }

    /// What a new pod with a number is of.
    fn version(&self, number: i32) -> &Version {
        let offset = number - first(self.spec);
        let strategy = self.spec.update_strategy.as_ref();
        let is_partitioned = strategy.is_some_and(|strategy| strategy.rolling_update.is_some());
        let kept = if is_partitioned {
            self.partition()
        } else {
            let status = self.set.status.as_ref();
            status
                .and_then(|status| status.current_replicas)
                .unwrap_or(0)
        };
        if self.is_rolling() && offset < kept {
            &self.current
        } else {
            &self.update
        }
    }

    /// What to do now.
    pub(super) fn plan(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.set.metadata.deletion_timestamp.is_some() {
            return steps;
        }
        let may_go_on = self.fill(&mut steps) && self.shrink(&mut steps);
        if may_go_on && self.is_rolling() {
            self.roll(&mut steps);
        }
        steps
    }

    /// Makes what is missing and ends what is over. Tells whether anything else may be done.
    fn fill(&self, steps: &mut Vec<Step>) -> bool {
        let is_ordered = self.is_ordered();
        for number in self.numbers() {
            if steps.len() >= BURST {
                return false;
            }
            let Some(pod) = self.pods.get(&number) else {
                let version = self.version(number);
                let pod = new_pod(
                    self.set,
                    self.spec,
                    &version.template,
                    &version.name,
                    number,
                );
                steps.push(Step::Create(Box::new(pod), number));
                if is_ordered {
                    return false;
                }
                continue;
            };
            if pods::is_over(pod) {
                if !pods::is_going(pod) {
                    steps.push(Step::Delete(Arc::clone(pod)));
                }
                if is_ordered {
                    return false;
                }
                continue;
            }
            if pods::phase(pod) == "Pending" && !pods::is_going(pod) {
                steps.push(Step::Claim(Arc::clone(pod), number));
            }
            if is_ordered && !self.is_healthy(pod) {
                return false;
            }
            if !is_labelled(pod, number) && !pods::is_going(pod) {
                steps.push(Step::Label(Arc::clone(pod), number));
            }
        }
        true
    }

    /// Ends what is not wanted any more, from the highest number down.
    fn shrink(&self, steps: &mut Vec<Step>) -> bool {
        let condemned = || {
            self.pods
                .iter()
                .filter(|(number, _)| !is_wanted(self.spec, **number))
        };
        if !self.is_ordered() {
            let victims = condemned().rev().filter(|(_, pod)| !pods::is_going(pod));
            steps.extend(victims.map(|(_, pod)| Step::Delete(Arc::clone(pod))));
            return true;
        }
        let Some((number, pod)) = condemned().next_back() else {
            return true;
        };
        // Of several that are ill, the lowest may go: it holds up all others.
        let first_ill = condemned()
            .find(|(_, pod)| !self.is_healthy(pod))
            .map(|(number, _)| number);
        let may_go = !pods::is_going(pod) && (self.is_available(pod) || first_ill == Some(number));
        if may_go {
            steps.push(Step::Delete(Arc::clone(pod)));
        }
        false
    }

    /// Ends pods of older revisions, from the highest number down to the partition.
    fn roll(&self, steps: &mut Vec<Step>) {
        let ill = self.numbers().filter(|number| {
            self.pods
                .get(number)
                .is_none_or(|pod| !self.is_healthy(pod))
        });
        let strategy = self.spec.update_strategy.as_ref();
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let limit = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
        let limit = limit.unwrap_or(&IntOrString::Int(1));
        let limit = scaled(limit, replicas(self.spec), false).max(1);
        let mut room = limit - i32::try_from(ill.count()).unwrap_or(i32::MAX);
        let lowest = first(self.spec).saturating_add(self.partition());
        for number in self.numbers().rev().filter(|number| *number >= lowest) {
            let Some(pod) = self.pods.get(&number) else {
                continue;
            };
            if pods::is_going(pod) || pods::is_over(pod) || revision(pod) == Some(&self.update.name)
            {
                continue;
            }
            // One that is ill is missing already: to replace it costs nothing.
            if self.is_healthy(pod) {
                if room <= 0 {
                    continue;
                }
                room -= 1;
            }
            steps.push(Step::Delete(Arc::clone(pod)));
        }
    }

    /// What the set says about itself.
    pub(super) fn status(&self, collisions: i32) -> StatefulSetStatus {
        let mut counts = [0_i32; 5];
        let [all, ready, available, current, updated] = &mut counts;
        for pod in self.pods.values() {
            *all += 1;
            *ready += i32::from(Self::is_ready(pod));
            *available += i32::from(self.is_available(pod));
            if !pods::is_going(pod) {
                *current += i32::from(revision(pod) == Some(&self.current.name));
                *updated += i32::from(revision(pod) == Some(&self.update.name));
            }
        }
        let [all, ready, available, current, updated] = counts;
        let wanted = replicas(self.spec);
        let is_done = self.is_rolling() && updated == wanted && ready == wanted && all == wanted;
        let (current, name) = if is_done {
            (updated, &self.update.name)
        } else {
            (current, &self.current.name)
        };
        StatefulSetStatus {
            observed_generation: self.set.metadata.generation,
            replicas: all,
            ready_replicas: some(ready),
            available_replicas: Some(available),
            current_replicas: some(current),
            updated_replicas: some(updated),
            current_revision: Some(name.clone()),
            update_revision: Some(self.update.name.clone()),
            collision_count: Some(collisions),
            conditions: self
                .set
                .status
                .as_ref()
                .and_then(|status| status.conditions.clone()),
        }
    }

    /// When the next pod will have been ready for long enough.
    pub(super) fn until_next_available(&self) -> Option<Duration> {
        let left = self.pods.values();
        left.filter_map(|pod| pods::until_available(pod, self.min_ready(), self.now))
            .filter(|left| !left.is_zero())
            .min()
    }
}

pub(super) fn revision(pod: &Pod) -> Option<&String> {
    pod.labels().get(REVISION)
}

fn some(count: i32) -> Option<i32> {
    (count != 0).then_some(count)
}
