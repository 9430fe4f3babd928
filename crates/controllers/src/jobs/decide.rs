//! Decides which pods of a job begin and end, and whether the job is done.

use std::{sync::Arc, time::Duration};

use k8s_openapi::{
    api::{
        batch::v1::{Job, JobCondition, JobSpec, JobStatus},
        core::v1::Pod,
    },
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::Timestamp,
};

use super::{
    failures::restarts,
    indexes::Indexes,
    manage::{Crowd, manage},
    tracking::{Tally, tally},
};
use crate::workloads::{events::News, pods};

pub(super) const COMPLETE: &str = "Complete";
pub(super) const FAILED: &str = "Failed";
const FAILURE_TARGET: &str = "FailureTarget";
const SUCCESS_MET: &str = "SuccessCriteriaMet";
const SUSPENDED: &str = "Suspended";

/// A pod to be made: its index, and how often that failed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NewPod {
    pub(super) index: Option<i32>,
    pub(super) failures: i32,
}

/// What to do for a job.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) create: Vec<NewPod>,
    /// Pods that end with the job and count.
    pub(super) end: Vec<Arc<Pod>>,
    /// Pods that are not needed any more and do not count.
    pub(super) dismiss: Vec<Arc<Pod>>,
    /// Pods whose finalizers go once the status is written.
    pub(super) release: Vec<Arc<Pod>>,
    pub(super) status: JobStatus,
    pub(super) news: Vec<News>,
    pub(super) again: Option<Duration>,
}

/// Why a job ends, well or not.
struct Ending {
    is_success: bool,
    reason: String,
    message: String,
}

impl Ending {
    fn failure(reason: &str, message: &str) -> Self {
        Self {
            is_success: false,
            reason: reason.to_owned(),
            message: message.to_owned(),
        }
    }

    fn success(reason: &str, message: &str) -> Self {
        Self {
            is_success: true,
            ..Self::failure(reason, message)
        }
    }
}

pub(super) fn find<'a>(status: &'a JobStatus, kind: &str) -> Option<&'a JobCondition> {
    status
        .conditions
        .iter()
        .flatten()
        .find(|one| one.type_ == kind)
}

fn is_true(status: &JobStatus, kind: &str) -> bool {
    find(status, kind).is_some_and(|one| one.status == "True")
}

pub(super) fn is_finished(status: &JobStatus) -> bool {
    is_true(status, COMPLETE) || is_true(status, FAILED)
}

/// Decides what to do for a job that is not finished.
pub(super) fn plan(job: &Job, spec: &JobSpec, owned: &[Arc<Pod>], now: Timestamp) -> Plan {
    let before = job.status.clone().unwrap_or_default();
    let was_over = is_true(&before, FAILURE_TARGET) || is_true(&before, SUCCESS_MET);
    let is_going = job.metadata.deletion_timestamp.is_some();
    let mut tally = tally(job, spec, owned, was_over || is_going);
    let active: Vec<Arc<Pod>> = owned
        .iter()
        .filter(|pod| pods::is_active(pod))
        .cloned()
        .collect();
    let terminating = count(owned.iter().filter(|pod| pods::is_terminating(pod)));
    let mut plan = Plan {
        status: std::mem::take(&mut tally.status),
        release: std::mem::take(&mut tally.release),
        ..Plan::default()
    };
    let is_suspended = spec.suspend == Some(true);
    if !is_suspended && plan.status.start_time.is_none() {
        plan.status.start_time = Some(Time(now));
    }
    let ending = known_ending(&before).or_else(|| {
        new_ending(
            spec,
            &plan.status,
            &tally,
            &active,
            owned,
            is_suspended,
            now,
        )
    });
    if let Some(ending) = ending {
        plan.end.clone_from(&active);
        enact(&ending, &active, terminating, &mut plan, now);
    } else if !is_going {
        suspend(is_suspended, &mut plan, now);
        let crowd = Crowd {
            active: active.clone(),
            owned,
            terminating,
            now,
        };
        manage(spec, &tally, crowd, is_suspended, &mut plan);
        let left = until_deadline(spec, &plan.status, now).filter(|_| !is_suspended);
        plan.again = plan.again.into_iter().chain(left).min();
    }
    let ready = count(active.iter().filter(|pod| pods::is_ready(pod)));
    plan.status.active = Some(count(active.iter())).filter(|count| *count != 0);
    plan.status.ready = Some(ready);
    plan.status.terminating = Some(terminating);
    plan
}

pub(super) fn count<'a>(pods: impl Iterator<Item = &'a Arc<Pod>>) -> i32 {
    i32::try_from(pods.count()).unwrap_or(i32::MAX)
}

/// The ending that was decided on before and is not enacted yet.
fn known_ending(status: &JobStatus) -> Option<Ending> {
    let kinds = [(FAILURE_TARGET, false), (SUCCESS_MET, true)];
    let (condition, is_success) = kinds
        .into_iter()
        .find_map(|(kind, is_success)| Some((find(status, kind)?, is_success)))
        .filter(|(condition, _)| condition.status == "True")?;
    Some(Ending {
        is_success,
        reason: condition.reason.clone().unwrap_or_default(),
        message: condition.message.clone().unwrap_or_default(),
    })
}

/// Whether a job ends now, and why.
fn new_ending(
    spec: &JobSpec,
    status: &JobStatus,
    tally: &Tally,
    active: &[Arc<Pod>],
    owned: &[Arc<Pod>],
    is_suspended: bool,
    now: Timestamp,
) -> Option<Ending> {
    if let Some(message) = &tally.verdict {
        return Some(Ending::failure("PodFailurePolicy", message));
    }
    let limit = spec.backoff_limit.unwrap_or(6);
    if tally.failed > limit || restarts_too_often(spec, owned, limit) {
        let text = "Job has reached the specified backoff limit";
        return Some(Ending::failure("BackoffLimitExceeded", text));
    }
    if !is_suspended && until_deadline(spec, status, now) == Some(Duration::ZERO) {
        let text = "Job was active longer than specified deadline";
        return Some(Ending::failure("DeadlineExceeded", text));
    }
    if spec
        .max_failed_indexes
        .is_some_and(|limit| tally.failed_indexes.len() > limit)
    {
        let text = "Job has exceeded the specified maximal number of failed indexes";
        return Some(Ending::failure("MaxFailedIndexesExceeded", text));
    }
    if let Some(rule) = met_rule(spec, tally) {
        return Some(Ending::success(
            "SuccessPolicy",
            &format!("Matched rules at index {rule}"),
        ));
    }
    let is_complete = match spec.completions {
        None => tally.succeeded > 0 && active.is_empty(),
        Some(wanted) => {
            let is_spent = tally.succeeded + tally.failed_indexes.len() >= wanted;
            if !tally.failed_indexes.is_empty() && is_spent && active.is_empty() {
                return Some(Ending::failure("FailedIndexes", "Job has failed indexes"));
            }
            tally.succeeded >= wanted && active.is_empty()
        }
    };
    is_complete.then(|| {
        Ending::success(
            "CompletionsReached",
            "Reached expected number of succeeded pods",
        )
    })
}

/// Whether containers that are started again in their pods were so too often.
fn restarts_too_often(spec: &JobSpec, owned: &[Arc<Pod>], limit: i32) -> bool {
    let body = spec.template.spec.as_ref();
    if body.and_then(|body| body.restart_policy.as_deref()) != Some("OnFailure") {
        return false;
    }
    let live = owned
        .iter()
        .filter(|pod| matches!(pods::phase(pod), "Running" | "Pending"));
    let total: i32 = live.map(|pod| restarts(pod)).sum();
    if limit == 0 {
        total > 0
    } else {
        total >= limit
    }
}

/// How much of the time that a job has is left.
fn until_deadline(spec: &JobSpec, status: &JobStatus, now: Timestamp) -> Option<Duration> {
    let limit = u64::try_from(spec.active_deadline_seconds?).unwrap_or(0);
    let start = status.start_time.as_ref()?.0;
    Some(Duration::from_secs(limit).saturating_sub(pods::elapsed(start, now)))
}

/// The first rule by which a job is done though not all indexes are.
fn met_rule(spec: &JobSpec, tally: &Tally) -> Option<usize> {
    let policy = spec.success_policy.as_ref()?;
    policy.rules.iter().position(|rule| {
        let end = spec.completions.unwrap_or(0);
        let wanted = rule
            .succeeded_indexes
            .as_deref()
            .map(|text| Indexes::parse(text, end));
        let done = wanted.as_ref().map_or(tally.completed.len(), |wanted| {
            tally.completed.shared_with(wanted)
        });
        let all = wanted.as_ref().map_or(end, Indexes::len);
        done >= rule.succeeded_count.unwrap_or(all) && done > 0
    })
}

/// Says that a job ends, and that it has ended once nothing of it is left to wait for.
fn enact(ending: &Ending, active: &[Arc<Pod>], terminating: i32, plan: &mut Plan, now: Timestamp) {
    let (target, last) = if ending.is_success {
        (SUCCESS_MET, COMPLETE)
    } else {
        (FAILURE_TARGET, FAILED)
    };
    if find(&plan.status, target).is_none() {
        set(
            &mut plan.status,
            target,
            "True",
            &ending.reason,
            &ending.message,
            now,
        );
    }
    let uncounted = plan.status.uncounted_terminated_pods.as_ref();
    let is_counted = uncounted.is_none_or(|all| all.succeeded.is_none() && all.failed.is_none());
    if !active.is_empty() || terminating > 0 || !is_counted || !plan.release.is_empty() {
        return;
    }
    set(
        &mut plan.status,
        last,
        "True",
        &ending.reason,
        &ending.message,
        now,
    );
    if ending.is_success {
        plan.status.completion_time = Some(Time(now));
        plan.news
            .push(News::normal("Completed", "Job completed".to_owned()));
    } else {
        let reason = known_reason(&ending.reason);
        plan.news
            .push(News::warning(reason, ending.message.clone()));
    }
}

/// The reasons that events have are few.
fn known_reason(reason: &str) -> &'static str {
    let known = [
        "PodFailurePolicy",
        "DeadlineExceeded",
        "MaxFailedIndexesExceeded",
        "FailedIndexes",
    ];
    known
        .into_iter()
        .find(|one| *one == reason)
        .unwrap_or("BackoffLimitExceeded")
}

/// Says that a job is suspended, or that it is not any more.
fn suspend(is_suspended: bool, plan: &mut Plan, now: Timestamp) {
    let was_suspended = is_true(&plan.status, SUSPENDED);
    if is_suspended && !was_suspended {
        set(
            &mut plan.status,
            SUSPENDED,
            "True",
            "JobSuspended",
            "Job suspended",
            now,
        );
        plan.status.start_time = None;
        plan.news
            .push(News::normal("Suspended", "Job suspended".to_owned()));
    } else if !is_suspended && was_suspended {
        set(
            &mut plan.status,
            SUSPENDED,
            "False",
            "JobResumed",
            "Job resumed",
            now,
        );
        plan.status.start_time = Some(Time(now));
        plan.news
            .push(News::normal("Resumed", "Job resumed".to_owned()));
    }
}

fn set(
    status: &mut JobStatus,
    kind: &str,
    value: &str,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    let conditions = status.conditions.get_or_insert_default();
    let condition = JobCondition {
        type_: kind.to_owned(),
        status: value.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    };
    match conditions.iter_mut().find(|one| one.type_ == kind) {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}
