//! Counts the pods of a job that ended, each once whatever happens.
//!
//! A pod is written into the status before its finalizer is taken off, and counted when it is off. So a
//! controller that ends between the two finds out where it was.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::api::{
    batch::v1::{Job, JobSpec, JobStatus, UncountedTerminatedPods},
    core::v1::Pod,
};
use kube::ResourceExt as _;

use super::{
    failures::{Verdict, is_failed, judge},
    indexes::Indexes,
    template::{former_failures, index_of, is_indexed, is_tracked},
};
use crate::workloads::pods;

/// How many pods wait in the status at most.
const UNCOUNTED: usize = 500;

/// What is known of the pods that ended.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) status: JobStatus,
    pub(super) succeeded: i32,
    pub(super) failed: i32,
    pub(super) completed: Indexes,
    pub(super) failed_indexes: Indexes,
    /// Why the whole job fails, if a pod says so.
    pub(super) verdict: Option<String>,
    /// The pods whose finalizers go once the status is written.
    pub(super) release: Vec<Arc<Pod>>,
}

/// Counts. With `is_over` the job ended, and whatever pods it has are let go.
pub(super) fn tally(job: &Job, spec: &JobSpec, owned: &[Arc<Pod>], is_over: bool) -> Tally {
    let end = spec.completions.unwrap_or(0);
    let status = job.status.clone().unwrap_or_default();
    let read = |text: Option<&String>| Indexes::parse(text.map_or("", String::as_str), end);
    let mut tally = Tally {
        completed: read(status.completed_indexes.as_ref()),
        failed_indexes: read(status.failed_indexes.as_ref()),
        status,
        ..Tally::default()
    };
    let mut waiting = Waiting::read(&tally.status);
    waiting.count(&mut tally.status, owned);
    let last_failed = last_failed(spec, owned);
    for pod in owned.iter().filter(|pod| is_tracked(pod)) {
        if waiting.len() >= UNCOUNTED {
            break;
        }
        take(spec, pod, is_over, &mut waiting, &mut tally, &last_failed);
    }
    finish(spec, waiting, &mut tally);
    tally
}

/// Takes one pod that is not let go yet.
fn take(
    spec: &JobSpec,
    pod: &Arc<Pod>,
    is_over: bool,
    waiting: &mut Waiting,
    tally: &mut Tally,
    last_failed: &BTreeMap<i32, String>,
) {
    let uid = pod.uid().unwrap_or_default();
    if waiting.contains(&uid) {
        tally.release.push(Arc::clone(pod));
        return;
    }
    let index = index_of(pod).filter(|index| *index < spec.completions.unwrap_or(0));
    if pods::phase(pod) == "Succeeded" {
        match (is_indexed(spec), index) {
            (true, Some(index)) => tally.completed.insert(index),
            // A pod without an index that counts is nothing to the job.
            (true, None) => {}
            (false, _) => {
                waiting.succeeded.insert(uid);
            }
        }
        tally.release.push(Arc::clone(pod));
        return;
    }
    let failed = is_failed(spec, pod) || (is_over && pods::is_going(pod));
    if !failed {
        return;
    }
    match judge(spec, pod) {
        Verdict::FailJob(reason) => {
            tally.verdict.get_or_insert(reason);
            waiting.failed.insert(uid);
        }
        Verdict::Ignore => {}
        Verdict::FailIndex => {
            if let Some(index) = index {
                tally.failed_indexes.insert(index);
            }
            waiting.failed.insert(uid);
        }
        Verdict::Count => {
            let limit = spec.backoff_limit_per_index;
            if let (Some(limit), Some(index)) = (limit, index)
                && former_failures(pod) >= limit
                && !tally.completed.contains(index)
            {
                tally.failed_indexes.insert(index);
            }
            // The last failure of an index stays until another pod carries the count on.
            let is_needed = limit.is_some()
                && !is_over
                && index.is_some_and(|index| {
                    !tally.failed_indexes.contains(index)
                        && last_failed.get(&index) == pod.metadata.name.as_ref()
                });
            if is_needed {
                return;
            }
            waiting.failed.insert(uid);
        }
    }
    tally.release.push(Arc::clone(pod));
}

/// The pod by index that failed last, where none came after it.
fn last_failed(spec: &JobSpec, owned: &[Arc<Pod>]) -> BTreeMap<i32, String> {
    let mut latest: BTreeMap<i32, &Arc<Pod>> = BTreeMap::new();
    for pod in owned {
        let Some(index) = index_of(pod) else { continue };
        let place = |pod: &Arc<Pod>| {
            (
                former_failures(pod),
                pod.metadata.creation_timestamp.clone(),
            )
        };
        let known = latest.entry(index).or_insert(pod);
        if place(pod) > place(known) {
            *known = pod;
        }
    }
    let failed = latest.into_iter().filter(|(_, pod)| is_failed(spec, pod));
    failed.map(|(index, pod)| (index, pod.name_any())).collect()
}

fn finish(spec: &JobSpec, waiting: Waiting, tally: &mut Tally) {
    let text = |set: &Indexes| (!set.is_empty()).then(|| set.to_string());
    let status = &mut tally.status;
    let counted = |count: Option<i32>, more: &BTreeSet<String>| {
        count
            .unwrap_or(0)
            .saturating_add(i32::try_from(more.len()).unwrap_or(i32::MAX))
    };
    tally.failed = counted(status.failed, &waiting.failed);
    if is_indexed(spec) {
        tally.succeeded = tally.completed.len();
        status.succeeded = Some(tally.succeeded).filter(|count| *count != 0);
        status.completed_indexes = text(&tally.completed);
        if spec.backoff_limit_per_index.is_some() {
            status.failed_indexes = Some(tally.failed_indexes.to_string());
        }
    } else {
        tally.succeeded = counted(status.succeeded, &waiting.succeeded);
    }
    let list = |set: BTreeSet<String>| (!set.is_empty()).then(|| set.into_iter().collect());
    status.uncounted_terminated_pods = Some(UncountedTerminatedPods {
        succeeded: list(waiting.succeeded),
        failed: list(waiting.failed),
    });
}

/// The pods that are written down but not counted.
struct Waiting {
    succeeded: BTreeSet<String>,
    failed: BTreeSet<String>,
}

impl Waiting {
    fn read(status: &JobStatus) -> Self {
        let uncounted = status.uncounted_terminated_pods.clone().unwrap_or_default();
        Self {
            succeeded: uncounted
                .succeeded
                .unwrap_or_default()
                .into_iter()
                .collect(),
            failed: uncounted.failed.unwrap_or_default().into_iter().collect(),
        }
    }

    fn len(&self) -> usize {
        self.succeeded.len() + self.failed.len()
    }

    fn contains(&self, uid: &str) -> bool {
        self.succeeded.contains(uid) || self.failed.contains(uid)
    }

    /// Counts those whose finalizers are off.
    fn count(&mut self, status: &mut JobStatus, owned: &[Arc<Pod>]) {
        let held: BTreeSet<&str> = owned
            .iter()
            .filter(|pod| is_tracked(pod))
            .filter_map(|pod| pod.metadata.uid.as_deref())
            .collect();
        for (set, count) in [
            (&mut self.succeeded, &mut status.succeeded),
            (&mut self.failed, &mut status.failed),
        ] {
            let before = set.len();
            set.retain(|uid| held.contains(uid.as_str()));
            let off = i32::try_from(before - set.len()).unwrap_or(i32::MAX);
            if off > 0 {
                *count = Some(count.unwrap_or(0).saturating_add(off));
            }
        }
    }
}
