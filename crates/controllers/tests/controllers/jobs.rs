//! Jobs and schedules against a real API, with pods that exist on paper.

use std::collections::BTreeMap;

use k8s_openapi::api::{
    batch::v1::{CronJob, Job},
    core::v1::Pod,
};
use kube::{
    ResourceExt as _,
    api::{DeleteParams, ListParams},
};
use serde_json::{Value, json};

use crate::{
    cluster::{create, gone, merge, when, when_all},
    deployments::{cluster, of},
    node::{Fate, Node},
};

fn template() -> Value {
    json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}})
}

fn job(more: &Value) -> Value {
    let mut value = json!({"metadata": {"name": "j"}, "spec": {"template": template()}});
    for (name, field) in more.as_object().unwrap() {
        value["spec"][name] = field.clone();
    }
    value
}

fn has(job: &Job, kind: &str) -> bool {
    let conditions = job
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .any(|one| one.type_ == kind && one.status == "True")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_completes_through_a_restart_and_its_pods_are_let_go() {
    let mut cluster = cluster().await;
    let mut node = Node::new(&cluster.client, |_| Fate::Pending);
    let (jobs, pods) = (of::<Job>(&cluster), of::<Pod>(&cluster));
    create(&jobs, job(&json!({"completions": 5, "parallelism": 2}))).await;
    when(&jobs, "j", |job| {
        job.status
            .as_ref()
            .is_some_and(|status| status.active == Some(2))
    })
    .await;
    cluster.restart_controllers().await;
    node.script(|_| Fate::Succeeded);
    let done = when(&jobs, "j", |job| has(job, "Complete")).await;
    let status = done.status.unwrap();
    assert_eq!(
        (status.succeeded, status.failed, status.active),
        (Some(5), None, None)
    );
    assert!(status.completion_time.is_some());
    let list = pods.list(&ListParams::default()).await.unwrap();
    assert_eq!(list.items.len(), 5);
    assert!(list.iter().all(|pod| pod.finalizers().is_empty()));
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_indexed_job_does_each_index_once() {
    let cluster = cluster().await;
    let _node = Node::new(&cluster.client, |_| Fate::Succeeded);
    let (jobs, pods) = (of::<Job>(&cluster), of::<Pod>(&cluster));
    let spec = json!({"completions": 4, "parallelism": 3, "completionMode": "Indexed"});
    create(&jobs, job(&spec)).await;
    let done = when(&jobs, "j", |job| has(job, "Complete")).await;
    assert_eq!(
        done.status.unwrap().completed_indexes.as_deref(),
        Some("0-3")
    );
    let list = pods.list(&ListParams::default()).await.unwrap();
    let label = "batch.kubernetes.io/job-completion-index";
    let mut indexes: Vec<_> = list.iter().map(|pod| pod.labels()[label].clone()).collect();
    indexes.sort();
    assert_eq!(indexes, ["0", "1", "2", "3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_fails_says_why_and_goes_when_its_time_has_come() {
    let cluster = cluster().await;
    let _node = Node::new(&cluster.client, |_| Fate::Failed(7));
    let (jobs, pods) = (of::<Job>(&cluster), of::<Pod>(&cluster));
    let made = create(&jobs, job(&json!({"backoffLimit": 0}))).await;
    let failed = when(&jobs, "j", |job| has(job, "Failed")).await;
    assert_eq!(failed.status.as_ref().unwrap().failed, Some(1));
    merge(&jobs, "j", json!({"spec": {"ttlSecondsAfterFinished": 0}})).await;
    gone(&jobs, &made).await;
    // The collector hears of the pod by another watch than of its job, and may take it away after that.
    when_all(&pods, BTreeMap::is_empty).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_deleted_leaves_no_pod_that_waits_to_be_counted() {
    let cluster = cluster().await;
    let _node = Node::new(&cluster.client, |_| Fate::Unready);
    let (jobs, pods) = (of::<Job>(&cluster), of::<Pod>(&cluster));
    for policy in [DeleteParams::background(), DeleteParams::foreground()] {
        let made = create(&jobs, job(&json!({"completions": 2, "parallelism": 2}))).await;
        when(&jobs, "j", |job| {
            job.status
                .as_ref()
                .is_some_and(|status| status.active == Some(2))
        })
        .await;
        let list = pods.list(&ListParams::default()).await.unwrap();
        jobs.delete("j", &policy).await.unwrap();
        gone(&jobs, &made).await;
        for pod in list {
            gone(&pods, &pod).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_job_ends_its_pods_and_goes_on_later() {
    let cluster = cluster().await;
    let mut node = Node::new(&cluster.client, |_| Fate::Ready);
    let jobs = of::<Job>(&cluster);
    create(&jobs, job(&json!({"completions": 2, "parallelism": 2}))).await;
    when(&jobs, "j", |job| {
        job.status
            .as_ref()
            .is_some_and(|status| status.ready == Some(2))
    })
    .await;
    merge(&jobs, "j", json!({"spec": {"suspend": true}})).await;
    let held = when(&jobs, "j", |job| {
        has(job, "Suspended") && job.status.as_ref().unwrap().active.is_none()
    })
    .await;
    assert_eq!(held.status.unwrap().failed, None);
    node.script(|_| Fate::Succeeded);
    merge(&jobs, "j", json!({"spec": {"suspend": false}})).await;
    when(&jobs, "j", |job| has(job, "Complete")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_begins_jobs_and_keeps_as_many_as_it_says() {
    let cluster = cluster().await;
    let _node = Node::new(&cluster.client, |_| Fate::Succeeded);
    let (crons, jobs) = (of::<CronJob>(&cluster), of::<Job>(&cluster));
    let value = json!({
        "metadata": {"name": "c"},
        "spec": {
            "schedule": "@every 1s", "successfulJobsHistoryLimit": 1,
            "jobTemplate": {"spec": {"template": template()}},
        },
    });
    let made = create(&crons, value).await;
    let first = when(&crons, "c", |cron| {
        cron.status
            .as_ref()
            .is_some_and(|status| status.last_successful_time.is_some())
    })
    .await;
    let begun = first.status.unwrap().last_schedule_time;
    when(&crons, "c", |cron| {
        cron.status.as_ref().unwrap().last_schedule_time > begun
    })
    .await;
    crons
        .delete("c", &DeleteParams::foreground())
        .await
        .unwrap();
    gone(&crons, &made).await;
    // A look that began before the schedule was deleted may begin one more job, which goes later.
    when_all(&jobs, BTreeMap::is_empty).await;
    cluster.stop().await;
}
