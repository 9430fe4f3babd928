//! Decides how many pods of a job run at a time, and which index each has.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::{
    api::{batch::v1::JobSpec, core::v1::Pod},
    jiff::Timestamp,
};

use super::{
    decide::{NewPod, Plan, count},
    failures::{Verdict, ended, is_failed, judge, pause, waits_for_end},
    template::{former_failures, index_of, is_indexed},
    tracking::Tally,
};
use crate::{
    replicasets::sort_for_deletion,
    workloads::{pods, requests::BURST},
};

/// The pods of a job as they are now.
pub(super) struct Crowd<'a> {
    pub(super) active: Vec<Arc<Pod>>,
    pub(super) owned: &'a [Arc<Pod>],
    pub(super) terminating: i32,
    pub(super) now: Timestamp,
}

/// Brings the number of pods to what is wanted.
pub(super) fn manage(
    spec: &JobSpec,
    tally: &Tally,
    mut crowd: Crowd<'_>,
    is_suspended: bool,
    plan: &mut Plan,
) {
    if is_suspended {
        crowd.active.truncate(BURST);
        plan.dismiss = crowd.active;
        return;
    }
    let running = count(crowd.active.iter());
    let parallelism = spec.parallelism.unwrap_or(1);
    let wanted = match spec.completions {
        None if tally.succeeded > 0 => running,
        None => parallelism,
        Some(completions) => (completions - tally.succeeded).clamp(0, parallelism),
    };
    sort_for_deletion(&mut crowd.active, crowd.owned, crowd.now);
    let needless = needless(spec, tally, &crowd.active);
    let mut victims: Vec<Arc<Pod>> = Vec::new();
    let surplus = usize::try_from(running - wanted)
        .unwrap_or(0)
        .max(needless.len())
        .min(BURST);
    let (first, rest): (Vec<_>, Vec<_>) = crowd
        .active
        .iter()
        .partition(|pod| needless.contains(pod.metadata.name.as_deref().unwrap_or_default()));
    victims.extend(first.into_iter().chain(rest).take(surplus).cloned());
    if !victims.is_empty() {
        plan.dismiss = victims;
        return;
    }
    let busy = running
        + if waits_for_end(spec) {
            crowd.terminating
        } else {
            0
        };
    let missing = usize::try_from(wanted - busy).unwrap_or(0).min(BURST);
    if missing > 0 {
        fill(spec, tally, &crowd, missing, plan);
    }
}

/// The active pods whose index nobody waits for, or that another pod has too.
fn needless<'a>(spec: &JobSpec, tally: &Tally, active: &'a [Arc<Pod>]) -> BTreeSet<&'a str> {
    if !is_indexed(spec) {
        return BTreeSet::new();
    }
    let end = spec.completions.unwrap_or(0);
    let mut seen = BTreeSet::new();
    // The last in the order of deletion is the one to keep.
    let needless = active.iter().rev().filter(|pod| match index_of(pod) {
        Some(index) if index < end => {
            tally.completed.contains(index)
                || tally.failed_indexes.contains(index)
                || !seen.insert(index)
        }
        _ => true,
    });
    needless
        .filter_map(|pod| pod.metadata.name.as_deref())
        .collect()
}

/// Makes pods, unless too many failed of late.
fn fill(spec: &JobSpec, tally: &Tally, crowd: &Crowd<'_>, missing: usize, plan: &mut Plan) {
    let (owned, now) = (crowd.owned, crowd.now);
    if spec.backoff_limit_per_index.is_none() {
        let left = common_pause(spec, owned, now);
        if !left.is_zero() {
            plan.again = Some(left);
            return;
        }
    }
    if !is_indexed(spec) {
        let pod = NewPod {
            index: None,
            failures: 0,
        };
        plan.create = vec![pod; missing];
        return;
    }
    let taken: BTreeSet<i32> = crowd
        .active
        .iter()
        .filter_map(|pod| index_of(pod))
        .collect();
    let ending = owned
        .iter()
        .filter(|pod| waits_for_end(spec) && pods::is_terminating(pod));
    let ending: BTreeSet<i32> = ending.filter_map(|pod| index_of(pod)).collect();
    let former = if spec.backoff_limit_per_index.is_some() {
        former_by_index(spec, owned, now)
    } else {
        BTreeMap::new()
    };
    for index in 0..spec.completions.unwrap_or(0) {
        if plan.create.len() >= missing {
            break;
        }
        let is_settled = tally.completed.contains(index) || tally.failed_indexes.contains(index);
        if is_settled || taken.contains(&index) || ending.contains(&index) {
            continue;
        }
        let (failures, left) = former.get(&index).copied().unwrap_or_default();
        if left.is_zero() {
            plan.create.push(NewPod {
                index: Some(index),
                failures,
            });
        } else {
            plan.again = plan.again.into_iter().chain([left]).min();
        }
    }
}

/// How long to wait after the failures since the last success.
fn common_pause(spec: &JobSpec, owned: &[Arc<Pod>], now: Timestamp) -> Duration {
    let succeeded = owned.iter().filter(|pod| pods::phase(pod) == "Succeeded");
    let success = succeeded.map(|pod| ended(pod, now)).max();
    let failed = owned
        .iter()
        .filter(|pod| is_failed(spec, pod) && judge(spec, pod) != Verdict::Ignore);
    let ends: Vec<Timestamp> = failed
        .map(|pod| ended(pod, now))
        .filter(|end| success.is_none_or(|success| *end > success))
        .collect();
    ends.iter()
        .max()
        .map_or(Duration::ZERO, |last| pause(ends.len(), *last, now))
}

/// How often each index failed, and how long it must wait yet.
fn former_by_index(
    spec: &JobSpec,
    owned: &[Arc<Pod>],
    now: Timestamp,
) -> BTreeMap<i32, (i32, Duration)> {
    let mut former: BTreeMap<i32, (i32, Timestamp)> = BTreeMap::new();
    for pod in owned.iter().filter(|pod| is_failed(spec, pod)) {
        let Some(index) = index_of(pod) else { continue };
        let counts = judge(spec, pod) != Verdict::Ignore;
        let failures = former_failures(pod) + i32::from(counts);
        let end = ended(pod, now);
        let known = former.entry(index).or_insert((failures, end));
        *known = (known.0.max(failures), known.1.max(end));
    }
    let wait = |(failures, end): (i32, Timestamp)| {
        let number = usize::try_from(failures).unwrap_or(0);
        (failures, pause(number, end, now))
    };
    former
        .into_iter()
        .map(|(index, known)| (index, wait(known)))
        .collect()
}
