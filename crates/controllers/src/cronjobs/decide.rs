//! Decides which job of a schedule is due, which are forgotten, and what the schedule says about itself.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use k8s_openapi::{
    api::{
        batch::v1::{CronJob, CronJobSpec, CronJobStatus, Job},
        core::v1::ObjectReference,
    },
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use kube::ResourceExt as _;

use super::schedule::Schedule;
use crate::workloads::{events::News, owners::reference_to};

const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";
/// From so many on, missed times are worth a word.
const MANY: i64 = 100;
/// What is added to a pause, so that its time has surely come after it.
const LITTLE: Duration = Duration::from_millis(100);

/// What to do for a schedule.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Jobs that make room for the next.
    pub(super) replace: Vec<Arc<Job>>,
    pub(super) create: Option<Job>,
    /// Finished jobs that nobody keeps.
    pub(super) forget: Vec<Arc<Job>>,
    pub(super) status: CronJobStatus,
    pub(super) news: Vec<News>,
    pub(super) again: Option<Duration>,
}

/// How a job ended, if it did.
fn ending(job: &Job) -> Option<&'static str> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let holds = |kind: &str| {
        conditions
            .iter()
            .any(|one| one.type_ == kind && one.status == "True")
    };
    ["Complete", "Failed"].into_iter().find(|kind| holds(kind))
}

pub(super) fn is_running(job: &Job) -> bool {
    ending(job).is_none()
}

pub(super) fn reference(job: &Job) -> ObjectReference {
    ObjectReference {
        api_version: Some("batch/v1".to_owned()),
        kind: Some("Job".to_owned()),
        namespace: job.namespace(),
        name: job.metadata.name.clone(),
        uid: job.uid(),
        resource_version: None,
        ..ObjectReference::default()
    }
}

/// Decides what to do now.
pub(super) fn plan(cron: &CronJob, spec: &CronJobSpec, jobs: &[Arc<Job>], now: Timestamp) -> Plan {
    let mut plan = Plan {
        status: cron.status.clone().unwrap_or_default(),
        ..Plan::default()
    };
    let running = look_at(jobs, &mut plan);
    forget(spec, jobs, &mut plan);
    if cron.metadata.deletion_timestamp.is_none() {
        begin(cron, spec, &running, now, &mut plan);
    }
    plan
}

/// Takes what became of the jobs. Gives those that go on.
fn look_at(jobs: &[Arc<Job>], plan: &mut Plan) -> Vec<Arc<Job>> {
    let known: Vec<ObjectReference> = plan.status.active.take().unwrap_or_default();
    let is_known = |job: &Job| known.iter().any(|one| one.uid == job.metadata.uid);
    let mut running = Vec::new();
    for job in jobs {
        let Some(ending) = ending(job) else {
            running.push(Arc::clone(job));
            continue;
        };
        if is_known(job) {
            let text = format!("Saw completed job: {}, condition: {ending}", job.name_any());
            plan.news.push(News::normal("SawCompletedJob", text));
        }
        let end = job
            .status
            .as_ref()
            .and_then(|status| status.completion_time.clone());
        if ending == "Complete" && end > plan.status.last_successful_time {
            plan.status.last_successful_time = end;
        }
    }
    for one in &known {
        if !jobs.iter().any(|job| job.metadata.uid == one.uid) {
            let text = format!(
                "Active job went missing: {}",
                one.name.as_deref().unwrap_or_default()
            );
            plan.news.push(News::normal("MissingJob", text));
        }
    }
    let active: Vec<_> = running.iter().map(|job| reference(job)).collect();
    plan.status.active = (!active.is_empty()).then_some(active);
    running
}

/// Chooses the finished jobs that nobody keeps: the oldest of each kind.
fn forget(spec: &CronJobSpec, jobs: &[Arc<Job>], plan: &mut Plan) {
    for (kind, limit) in [
        ("Complete", spec.successful_jobs_history_limit.unwrap_or(3)),
        ("Failed", spec.failed_jobs_history_limit.unwrap_or(1)),
    ] {
        let mut ended: Vec<_> = jobs
            .iter()
            .filter(|job| ending(job) == Some(kind))
            .cloned()
            .collect();
        ended.sort_by_key(|job| {
            let start = job
                .status
                .as_ref()
                .and_then(|status| status.start_time.clone());
            (start.is_none(), start, job.name_any())
        });
        let surplus = ended
            .len()
            .saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
        ended.truncate(surplus);
        plan.forget.extend(
            ended
                .into_iter()
                .filter(|job| job.metadata.deletion_timestamp.is_none()),
        );
    }
}

/// Begins the job that is due, if one is.
fn begin(
    cron: &CronJob,
    spec: &CronJobSpec,
    running: &[Arc<Job>],
    now: Timestamp,
    plan: &mut Plan,
) {
    let zone = match spec.time_zone.as_deref() {
        None | Some("") => TimeZone::UTC,
        Some(name) => match TimeZone::get(name) {
            Ok(zone) => zone,
            Err(error) => {
                let text = format!("invalid timeZone: {name:?}: {error}");
                plan.news.push(News::warning("UnknownTimeZone", text));
                return;
            }
        },
    };
    if spec.suspend == Some(true) {
        return;
    }
    let schedule = match Schedule::parse(&spec.schedule) {
        Ok(schedule) => schedule,
        Err(error) => {
            let text = format!("unparseable schedule: {:?} : {error}", spec.schedule);
            plan.news.push(News::warning("UnparseableSchedule", text));
            return;
        }
    };
    plan.again = schedule.next(now, &zone).map(|next| {
        let left = Duration::try_from(next.duration_since(now)).unwrap_or_default();
        left + LITTLE
    });
    let Some(due) = most_recent(cron, spec, &schedule, &zone, now, plan) else {
        return;
    };
    let deadline = spec.starting_deadline_seconds;
    if deadline.is_some_and(|deadline| due + SignedDuration::from_secs(deadline) < now) {
        let time = due
            .to_zoned(zone)
            .strftime("%a, %d %b %Y %H:%M:%S %z")
            .to_string();
        let text = format!("Missed scheduled time to start a job: {time}");
        plan.news.push(News::warning("MissSchedule", text));
        return;
    }
    let name = job_name(cron, due);
    let is_begun = running.iter().any(|job| job.name_any() == name)
        || cron
            .status
            .as_ref()
            .and_then(|status| status.last_schedule_time.as_ref())
            == Some(&Time(due));
    if is_begun {
        return;
    }
    let policy = spec.concurrency_policy.as_deref().unwrap_or("Allow");
    if policy == "Forbid" && !running.is_empty() {
        let text =
            "Not starting job because prior execution is running and concurrency policy is Forbid";
        plan.news
            .push(News::normal("JobAlreadyActive", text.to_owned()));
        return;
    }
    if policy == "Replace" {
        plan.replace = running.to_vec();
        plan.status.active = None;
    }
    plan.create = Some(new_job(cron, spec, name, due, &zone));
    plan.status.last_schedule_time = Some(Time(due));
}

/// The last time that passed without a job, however many did.
fn most_recent(
    cron: &CronJob,
    spec: &CronJobSpec,
    schedule: &Schedule,
    zone: &TimeZone,
    now: Timestamp,
    plan: &mut Plan,
) -> Option<Timestamp> {
    let last = cron
        .status
        .as_ref()
        .and_then(|status| status.last_schedule_time.as_ref());
    let born = cron.metadata.creation_timestamp.as_ref();
    let mut earliest = last.or(born).map_or(now, |time| time.0);
    if let Some(deadline) = spec.starting_deadline_seconds {
        let limit = now.checked_sub(SignedDuration::from_secs(deadline)).ok()?;
        earliest = earliest.max(limit);
    }
    let first = schedule
        .next(earliest, zone)
        .filter(|first| *first <= now)?;
    let Some(second) = schedule.next(first, zone).filter(|second| *second <= now) else {
        return Some(first);
    };
    let between = second.duration_since(first).as_secs().max(1);
    let missed = now.duration_since(first).as_secs() / between + 1;
    if missed > MANY {
        let text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
        plan.news
            .push(News::warning("TooManyMissedTimes", text.to_owned()));
    }
    // Times may be uneven: the search begins a little before where the last one should be.
    let mut recent = first;
    let jump = SignedDuration::from_secs(between.saturating_mul((missed - 2).max(0)));
    let mut time = schedule.next(first.checked_add(jump).ok()?, zone);
    while let Some(next) = time.filter(|next| *next <= now) {
        recent = next;
        time = schedule.next(next, zone);
    }
    Some(recent)
}

/// The name of a job follows from its time, so one time has one job.
fn job_name(cron: &CronJob, due: Timestamp) -> String {
    format!("{}-{}", cron.name_any(), due.as_second().div_euclid(60))
}

fn new_job(
    cron: &CronJob,
    spec: &CronJobSpec,
    name: String,
    due: Timestamp,
    zone: &TimeZone,
) -> Job {
    let template = &spec.job_template;
    let metadata = template.metadata.clone().unwrap_or_default();
    let mut annotations = metadata.annotations.unwrap_or_default();
    let time = due
        .to_zoned(zone.clone())
        .strftime("%Y-%m-%dT%H:%M:%S%:z")
        .to_string();
    let time = time
        .strip_suffix("+00:00")
        .map_or(time.clone(), |time| format!("{time}Z"));
    annotations.insert(SCHEDULED.to_owned(), time);
    Job {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: cron.namespace(),
            labels: metadata.labels,
            annotations: Some(annotations),
            owner_references: Some(vec![reference_to(cron)]),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}
