//! Schedules played through on paper.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::decide::{Plan, plan, reference};

fn cron(more: &Value) -> CronJob {
    let mut value = json!({
        "metadata": {"name": "c", "namespace": "n", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "schedule": "*/10 * * * *",
            "jobTemplate": {"metadata": {"labels": {"l": "1"}}, "spec": {"template": {}}},
        },
    });
    for (name, field) in more.as_object().unwrap() {
        value["spec"][name] = field.clone();
    }
    serde_json::from_value(value).unwrap()
}

fn job(name: &str, ending: Option<&str>, start: &str) -> Arc<Job> {
    let conditions = ending.map(|kind| json!([{"type": kind, "status": "True"}]));
    Arc::new(
        serde_json::from_value(json!({
            "metadata": {"name": name, "uid": name},
            "status": {"conditions": conditions, "startTime": start, "completionTime": start},
        }))
        .unwrap(),
    )
}

fn look(cron: &CronJob, jobs: &[Arc<Job>], now: &str) -> Plan {
    plan(cron, &cron.spec, jobs, now.parse().unwrap())
}

fn reasons(plan: &Plan) -> Vec<&str> {
    plan.news.iter().map(|news| news.reason).collect()
}

#[test]
fn a_job_begins_when_its_time_comes_and_is_named_by_it() {
    let cron = cron(&json!({}));
    let plan = look(&cron, &[], "2026-01-01T00:09:00Z");
    assert!(plan.create.is_none());
    assert_eq!(plan.again, Some(Duration::from_millis(60_100)));
    let plan = look(&cron, &[], "2026-01-01T00:10:00.1Z");
    let job = plan.create.unwrap();
    let due: Timestamp = "2026-01-01T00:10:00Z".parse().unwrap();
    assert_eq!(job.name_any(), format!("c-{}", due.as_second() / 60));
    assert_eq!(job.labels()["l"], "1");
    let stamp = &job.annotations()["batch.kubernetes.io/cronjob-scheduled-timestamp"];
    assert_eq!(stamp, "2026-01-01T00:10:00Z");
    assert_eq!(plan.status.last_schedule_time.unwrap().0, due);
}

#[test]
fn a_time_that_had_its_job_has_none_again() {
    let mut cron = cron(&json!({}));
    let first = look(&cron, &[], "2026-01-01T00:10:30Z");
    cron.status = Some(first.status);
    assert!(look(&cron, &[], "2026-01-01T00:11:00Z").create.is_none());
    assert!(look(&cron, &[], "2026-01-01T00:20:00Z").create.is_some());
}

#[test]
fn of_many_missed_times_the_last_counts() {
    let cron = cron(&json!({}));
    let plan = look(&cron, &[], "2026-01-03T00:05:00Z");
    let due: Timestamp = "2026-01-03T00:00:00Z".parse().unwrap();
    assert_eq!(plan.status.last_schedule_time.as_ref().unwrap().0, due);
    assert_eq!(reasons(&plan), ["TooManyMissedTimes"]);
}

#[test]
fn a_job_does_not_begin_too_late() {
    let cron = cron(&json!({"startingDeadlineSeconds": 60}));
    assert!(look(&cron, &[], "2026-01-01T00:10:59Z").create.is_some());
    let plan = look(&cron, &[], "2026-01-01T00:12:00Z");
    assert!(plan.create.is_none());
}

#[test]
fn one_that_still_runs_lets_the_next_begin_or_not_or_makes_room() {
    let running = [job("old", None, "2026-01-01T00:00:00Z")];
    let now = "2026-01-01T00:10:00Z";
    let plan = look(&cron(&json!({"concurrencyPolicy": "Allow"})), &running, now);
    assert!(plan.create.is_some() && plan.replace.is_empty());
    assert_eq!(plan.status.active.unwrap(), [reference(&running[0])]);
    let plan = look(
        &cron(&json!({"concurrencyPolicy": "Forbid"})),
        &running,
        now,
    );
    assert!(plan.create.is_none() && plan.status.last_schedule_time.is_none());
    assert_eq!(reasons(&plan), ["JobAlreadyActive"]);
    let plan = look(
        &cron(&json!({"concurrencyPolicy": "Replace"})),
        &running,
        now,
    );
    assert!(plan.create.is_some());
    assert_eq!(plan.replace[0].name_any(), "old");
}

#[test]
fn the_oldest_of_those_that_ended_are_forgotten() {
    let jobs = [
        job("a", Some("Complete"), "2026-01-01T00:01:00Z"),
        job("b", Some("Complete"), "2026-01-01T00:03:00Z"),
        job("c", Some("Complete"), "2026-01-01T00:02:00Z"),
        job("d", Some("Failed"), "2026-01-01T00:01:00Z"),
        job("e", Some("Failed"), "2026-01-01T00:02:00Z"),
    ];
    let mut cron = cron(&json!({"successfulJobsHistoryLimit": 1, "failedJobsHistoryLimit": 0}));
    cron.status = serde_json::from_value(
        json!({"active": [reference(&jobs[0]), {"name": "lost", "uid": "x"}]}),
    )
    .unwrap();
    let plan = look(&cron, &jobs, "2026-01-01T00:04:00Z");
    let names: Vec<_> = plan.forget.iter().map(|job| job.name_any()).collect();
    assert_eq!(names, ["a", "c", "d", "e"]);
    assert_eq!(reasons(&plan), ["SawCompletedJob", "MissingJob"]);
    assert_eq!(
        plan.news[0].text,
        "Saw completed job: a, condition: Complete"
    );
    assert_eq!(
        plan.status.last_successful_time.unwrap().0,
        "2026-01-01T00:03:00Z".parse().unwrap()
    );
    assert_eq!(plan.status.active, None);
}

#[test]
fn what_cannot_be_understood_is_told_and_what_is_suspended_waits() {
    let now = "2026-01-01T00:10:00Z";
    let plan = look(&cron(&json!({"schedule": "whenever"})), &[], now);
    assert_eq!(reasons(&plan), ["UnparseableSchedule"]);
    let plan = look(&cron(&json!({"timeZone": "Nowhere/Land"})), &[], now);
    assert_eq!(reasons(&plan), ["UnknownTimeZone"]);
    let plan = look(&cron(&json!({"suspend": true})), &[], now);
    assert!(plan.create.is_none() && plan.again.is_none() && plan.news.is_empty());
}

#[test]
fn times_are_those_of_the_zone() {
    let cron = cron(&json!({"schedule": "0 9 * * *", "timeZone": "America/New_York"}));
    assert!(look(&cron, &[], "2026-01-01T13:59:00Z").create.is_none());
    let job = look(&cron, &[], "2026-01-01T14:00:00Z").create.unwrap();
    let stamp = &job.annotations()["batch.kubernetes.io/cronjob-scheduled-timestamp"];
    assert_eq!(stamp, "2026-01-01T09:00:00-05:00");
}
