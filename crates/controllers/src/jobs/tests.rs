//! Jobs played through on paper: pods end as they are told, and the status is written after each look.

use std::{sync::Arc, time::Duration};

use k8s_openapi::{
    api::{batch::v1::Job, core::v1::Pod},
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::Timestamp,
};
use serde_json::{Value, json};

use super::{
    decide::{find, is_finished, plan},
    template::{FINALIZER, index_of, is_tracked, new_pod},
};
use crate::workloads::pods;

struct Paper {
    job: Job,
    pods: Vec<Pod>,
    now: Timestamp,
    made: usize,
    said: Vec<String>,
}

impl Paper {
    fn new(spec: &Value) -> Self {
        let mut job = json!({
            "metadata": {"name": "j", "namespace": "n", "uid": "u"},
            "spec": {"template": {"spec": {"containers": [{"name": "c"}]}}},
        });
        for (name, value) in spec.as_object().unwrap() {
            job["spec"][name] = value.clone();
        }
        Self {
            job: serde_json::from_value(job).unwrap(),
            pods: Vec::new(),
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            made: 0,
            said: Vec::new(),
        }
    }

    /// Looks and acts once; if `dies`, the controller ends before finalizers are taken off.
    fn step_until(&mut self, dies: bool) {
        self.now += Duration::from_secs(1);
        // Nobody decides anything for a job that is finished.
        if self.job.status.as_ref().is_some_and(is_finished) {
            return;
        }
        let owned: Vec<_> = self.pods.iter().cloned().map(Arc::new).collect();
        let spec = self.job.spec.clone().unwrap();
        let plan = plan(&self.job, &spec, &owned, self.now);
        for wanted in &plan.create {
            let mut pod = new_pod(&self.job, &spec, wanted.index, wanted.failures);
            let name = format!("p{}", self.made);
            self.made += 1;
            pod.metadata.name = Some(name.clone());
            pod.metadata.uid = Some(name);
            pod.metadata.creation_timestamp = Some(Time(self.now));
            self.pods.push(pod);
        }
        let is_in = |list: &[Arc<Pod>], pod: &Pod| {
            list.iter().any(|one| one.metadata.uid == pod.metadata.uid)
        };
        for pod in &mut self.pods {
            if is_in(&plan.end, pod) {
                pod.metadata.deletion_timestamp = Some(Time(self.now));
            }
        }
        self.pods.retain(|pod| !is_in(&plan.dismiss, pod));
        self.said
            .extend(plan.news.iter().map(|news| news.reason.to_owned()));
        self.job.status = Some(plan.status);
        if dies {
            return;
        }
        for pod in &mut self.pods {
            if is_in(&plan.release, pod) {
                pod.metadata
                    .finalizers
                    .as_mut()
                    .unwrap()
                    .retain(|one| one != FINALIZER);
            }
        }
        // Nothing keeps those any more that were deleted.
        self.pods
            .retain(|pod| !pods::is_going(pod) || is_tracked(pod));
    }

    fn step(&mut self) {
        self.step_until(false);
    }

    fn steps(&mut self, number: usize) {
        for _ in 0..number {
            self.step();
        }
    }

    fn running(&self) -> Vec<usize> {
        let places = self.pods.iter().enumerate();
        places
            .filter(|(_, pod)| pods::is_active(pod))
            .map(|(place, _)| place)
            .collect()
    }

    fn indexes(&self) -> Vec<i32> {
        let active = self.pods.iter().filter(|pod| pods::is_active(pod));
        let mut indexes: Vec<i32> = active.filter_map(index_of).collect();
        indexes.sort_unstable();
        indexes
    }

    /// Ends a pod with a code.
    fn end(&mut self, place: usize, code: i32) {
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        self.pods[place].status = serde_json::from_value(json!({
            "phase": phase,
            "containerStatuses": [{
                "name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                "state": {"terminated": {"exitCode": code, "finishedAt": self.now.to_string()}},
            }],
        }))
        .unwrap();
    }

    /// Ends the active pod of an index.
    fn end_index(&mut self, index: i32, code: i32) {
        let place = self
            .running()
            .into_iter()
            .find(|place| index_of(&self.pods[*place]) == Some(index));
        self.end(place.unwrap(), code);
    }

    fn counts(&self) -> (i32, i32, i32) {
        let status = self.job.status.as_ref().unwrap();
        let number = |count: Option<i32>| count.unwrap_or(0);
        (
            number(status.active),
            number(status.succeeded),
            number(status.failed),
        )
    }

    fn reason(&self, kind: &str) -> Option<String> {
        find(self.job.status.as_ref().unwrap(), kind)?
            .reason
            .clone()
    }

    fn change(&mut self, change: impl FnOnce(&mut Value)) {
        let mut value = json!(self.job.spec);
        change(&mut value);
        self.job.spec = serde_json::from_value(value).unwrap();
    }
}

#[test]
fn a_job_runs_as_many_as_it_may_until_it_has_as_many_as_it_wants() {
    let mut paper = Paper::new(&json!({"completions": 3, "parallelism": 2}));
    paper.steps(2);
    assert_eq!(paper.counts(), (2, 0, 0));
    paper.end(0, 0);
    paper.steps(3);
    assert_eq!((paper.counts(), paper.running().len()), ((2, 1, 0), 2));
    paper.end(1, 0);
    paper.end(2, 0);
    paper.steps(4);
    assert_eq!(paper.counts(), (0, 3, 0));
    assert_eq!(
        paper.reason("Complete").as_deref(),
        Some("CompletionsReached")
    );
    assert_eq!(paper.said, ["Completed"]);
    assert!(!paper.pods.iter().any(is_tracked));
}

#[test]
fn each_pod_counts_once_though_the_controller_dies_at_the_worst_moment() {
    let mut paper = Paper::new(&json!({"completions": 2, "parallelism": 2, "backoffLimit": 9}));
    paper.step();
    paper.end(0, 0);
    paper.end(1, 1);
    for _ in 0..3 {
        paper.step_until(true);
    }
    assert_eq!(paper.counts().1, 0);
    paper.steps(3);
    // The pod is deleted by somebody: it was counted.
    paper
        .pods
        .retain(|pod| pod.metadata.name.as_deref() != Some("p0"));
    paper.steps(3);
    assert_eq!((paper.counts().1, paper.counts().2), (1, 1));
}

#[test]
fn after_a_failure_there_is_a_pause_that_grows_and_after_too_many_an_end() {
    let mut paper = Paper::new(&json!({"completions": 1, "parallelism": 1, "backoffLimit": 2}));
    paper.step();
    for (number, pause) in [(1, 10), (2, 20)] {
        let place = paper.running()[0];
        paper.end(place, 1);
        paper.steps(3);
        assert_eq!((paper.running().len(), paper.counts().2), (0, number));
        paper.now += Duration::from_secs(pause);
        paper.step();
        assert_eq!(paper.running().len(), 1, "after {number}");
    }
    let place = paper.running()[0];
    paper.end(place, 1);
    paper.steps(4);
    assert_eq!(
        paper.reason("Failed").as_deref(),
        Some("BackoffLimitExceeded")
    );
    assert_eq!(paper.said, ["BackoffLimitExceeded"]);
    assert_eq!(paper.counts(), (0, 0, 3));
}

#[test]
fn indexes_are_done_each_once() {
    let spec = json!({"completions": 4, "parallelism": 2, "completionMode": "Indexed"});
    let mut paper = Paper::new(&spec);
    paper.step();
    assert_eq!(paper.indexes(), [0, 1]);
    paper.end_index(1, 0);
    paper.steps(2);
    assert_eq!(paper.indexes(), [0, 2]);
    paper.end_index(0, 0);
    paper.end_index(2, 0);
    paper.steps(2);
    assert_eq!(
        paper
            .job
            .status
            .as_ref()
            .unwrap()
            .completed_indexes
            .as_deref(),
        Some("0-2")
    );
    assert_eq!(paper.indexes(), [3]);
    paper.end_index(3, 0);
    paper.steps(3);
    assert_eq!(paper.counts(), (0, 4, 0));
    assert_eq!(
        paper.reason("Complete").as_deref(),
        Some("CompletionsReached")
    );
}

#[test]
fn an_index_that_fails_too_often_fails_alone_and_the_job_with_it_at_the_end() {
    let spec = json!({
        "completions": 2, "parallelism": 2, "completionMode": "Indexed",
        "backoffLimitPerIndex": 1, "backoffLimit": 2_147_483_647,
    });
    let mut paper = Paper::new(&spec);
    paper.step();
    paper.end_index(0, 1);
    paper.steps(2);
    assert_eq!(paper.indexes(), [1]);
    paper.now += Duration::from_secs(10);
    paper.steps(2);
    assert_eq!(paper.indexes(), [0, 1]);
    paper.end_index(0, 1);
    paper.steps(3);
    assert_eq!(
        paper.job.status.as_ref().unwrap().failed_indexes.as_deref(),
        Some("0")
    );
    paper.now += Duration::from_mins(10);
    paper.step();
    assert_eq!(paper.indexes(), [1]);
    paper.end_index(1, 0);
    paper.steps(4);
    assert_eq!(paper.reason("Failed").as_deref(), Some("FailedIndexes"));
    assert_eq!(paper.counts(), (0, 1, 2));
}

#[test]
fn rules_end_a_job_or_let_a_failure_pass() {
    let rules = json!([
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [3]}},
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
    ]);
    let spec = json!({
        "completions": 1, "parallelism": 2, "backoffLimit": 0, "podFailurePolicy": {"rules": rules},
    });
    let mut paper = Paper::new(&spec);
    paper.job.spec.as_mut().unwrap().completions = Some(2);
    paper.step();
    paper.end(0, 3);
    paper.steps(3);
    assert_eq!((paper.counts().2, paper.running().len()), (0, 2));
    let place = paper.running()[0];
    paper.end(place, 42);
    paper.steps(5);
    assert_eq!(paper.reason("Failed").as_deref(), Some("PodFailurePolicy"));
    assert!(paper.running().is_empty());
}

#[test]
fn a_job_that_takes_too_long_fails_and_its_pods_end_first() {
    let mut paper = Paper::new(&json!({"completions": 1, "activeDeadlineSeconds": 100}));
    paper.step();
    paper.now += Duration::from_secs(100);
    paper.step();
    assert_eq!(
        paper.reason("FailureTarget").as_deref(),
        Some("DeadlineExceeded")
    );
    assert_eq!(paper.reason("Failed"), None);
    paper.steps(4);
    assert_eq!(paper.reason("Failed").as_deref(), Some("DeadlineExceeded"));
    assert!(paper.pods.is_empty());
}

#[test]
fn a_suspended_job_has_no_pods_and_its_time_begins_anew() {
    let mut paper =
        Paper::new(&json!({"completions": 2, "parallelism": 2, "activeDeadlineSeconds": 50}));
    paper.step();
    paper.change(|spec| spec["suspend"] = true.into());
    paper.steps(2);
    assert_eq!((paper.counts(), paper.pods.len()), ((0, 0, 0), 0));
    assert_eq!(paper.reason("Suspended").as_deref(), Some("JobSuspended"));
    paper.now += Duration::from_mins(10);
    paper.change(|spec| spec["suspend"] = false.into());
    paper.steps(2);
    assert_eq!(paper.reason("Suspended").as_deref(), Some("JobResumed"));
    assert_eq!(paper.running().len(), 2);
    assert_eq!(paper.said, ["Suspended", "Resumed"]);
}

#[test]
fn a_rule_may_say_that_enough_is_done() {
    let rules = json!([{"succeededIndexes": "0,2-3", "succeededCount": 2}]);
    let spec = json!({
        "completions": 4, "parallelism": 4, "completionMode": "Indexed", "successPolicy": {"rules": rules},
    });
    let mut paper = Paper::new(&spec);
    paper.step();
    paper.end_index(1, 0);
    paper.end_index(0, 0);
    paper.steps(2);
    assert_eq!(paper.reason("SuccessCriteriaMet"), None);
    paper.end_index(3, 0);
    paper.steps(5);
    assert_eq!(paper.reason("Complete").as_deref(), Some("SuccessPolicy"));
    assert!(paper.running().is_empty());
}

#[test]
fn with_no_number_of_completions_one_success_is_enough() {
    let mut paper = Paper::new(&json!({"parallelism": 3}));
    paper.step();
    assert_eq!(paper.running().len(), 3);
    paper.end(0, 0);
    paper.steps(2);
    assert_eq!(paper.running().len(), 2);
    paper.end(1, 0);
    paper.end(2, 0);
    paper.steps(3);
    assert!(is_finished(paper.job.status.as_ref().unwrap()));
}

#[test]
fn a_pod_that_is_deleted_is_replaced_at_once_or_when_it_is_over() {
    for (policy, at_once) in [("TerminatingOrFailed", 1), ("Failed", 0)] {
        let mut paper = Paper::new(&json!({"completions": 1, "podReplacementPolicy": policy}));
        paper.step();
        paper.pods[0].metadata.deletion_timestamp = Some(Time(paper.now));
        paper.now += Duration::from_mins(1);
        paper.step();
        assert_eq!(paper.running().len(), at_once, "{policy}");
    }
}

#[test]
fn fewer_at_a_time_are_dismissed_and_do_not_count() {
    let mut paper = Paper::new(&json!({"completions": 9, "parallelism": 4}));
    paper.step();
    paper.change(|spec| spec["parallelism"] = 1.into());
    paper.steps(2);
    assert_eq!(paper.counts(), (1, 0, 0));
}
