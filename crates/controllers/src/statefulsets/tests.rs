//! Sets played through on paper.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::{
    api::{apps::v1::StatefulSet, core::v1::Pod},
    jiff::Timestamp,
};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::decide::{Sight, Step, Version, by_number};

struct Paper {
    set: StatefulSet,
    pods: Vec<Pod>,
    current: &'static str,
    update: &'static str,
}

impl Paper {
    fn new(replicas: i32, more: &Value) -> Self {
        let mut set = json!({
            "metadata": {"name": "web", "namespace": "n", "uid": "u", "generation": 1},
            "spec": {
                "replicas": replicas, "selector": {}, "serviceName": "s",
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
                "template": {"spec": {"containers": []}},
            },
        });
        for (name, value) in more.as_object().unwrap() {
            set["spec"][name] = value.clone();
        }
        Self {
            set: serde_json::from_value(set).unwrap(),
            pods: Vec::new(),
            current: "one",
            update: "one",
        }
    }

    fn with<T>(&self, look: impl FnOnce(&Sight<'_>) -> T) -> T {
        let spec = self.set.spec.as_ref().unwrap();
        let pods: Vec<_> = self.pods.iter().cloned().map(Arc::new).collect();
        let version = |name: &str| Version {
            name: name.to_owned(),
            template: spec.template.clone(),
        };
        let now: Timestamp = "2026-01-01T01:00:00Z".parse().unwrap();
        look(&Sight {
            set: &self.set,
            spec,
            current: version(self.current),
            update: version(self.update),
            pods: by_number("web", &pods),
            now,
        })
    }

    /// Does what is planned, in a word for each step. New pods are as `status` says.
    fn step(&mut self, status: &Value) -> Vec<String> {
        let mut steps = Vec::new();
        self.with(|sight| steps = sight.plan());
        let mut words = Vec::new();
        let mut gone = BTreeSet::new();
        for step in steps {
            match step {
                Step::Create(mut pod, number) => {
                    pod.status = Some(serde_json::from_value(status.clone()).unwrap());
                    words.push(format!("+{number}"));
                    self.pods.push(*pod);
                }
                Step::Delete(pod) => {
                    words.push(format!("-{}", pod.name_any().trim_start_matches("web-")));
                    gone.insert(pod.name_any());
                }
                Step::Claim(..) => {}
                Step::Label(_, number) => words.push(format!("!{number}")),
            }
        }
        self.pods.retain(|pod| !gone.contains(&pod.name_any()));
        self.set.status = Some(self.with(|sight| sight.status(0)));
        words
    }

    fn ready(&mut self) {
        for pod in &mut self.pods {
            pod.status = Some(serde_json::from_value(ready()).unwrap());
        }
    }

    fn revisions(&self) -> Vec<String> {
        let mut pods: Vec<_> = self.pods.iter().collect();
        pods.sort_by_key(|pod| pod.name_any());
        pods.iter()
            .map(|pod| pod.labels()["controller-revision-hash"].clone())
            .collect()
    }

    /// Steps until nothing is done, all pods ready at once.
    fn settle(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        for _ in 0..50 {
            let words = self.step(&ready());
            if words.is_empty() {
                return all;
            }
            all.extend(words);
        }
        panic!("no end: {all:?}");
    }
}

fn ready() -> Value {
    json!({"phase": "Running", "conditions": [
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]})
}

fn pending() -> Value {
    json!({"phase": "Pending"})
}

#[test]
fn pods_come_one_after_the_other_and_go_the_other_way_round() {
    let mut paper = Paper::new(3, &json!({}));
    assert_eq!(paper.step(&pending()), ["+0"]);
    assert_eq!(paper.step(&pending()), [""; 0]);
    paper.ready();
    assert_eq!(paper.settle(), ["+1", "+2"]);
    let status = paper.set.status.clone().unwrap();
    assert_eq!(
        (
            status.replicas,
            status.ready_replicas,
            status.current_replicas
        ),
        (3, Some(3), Some(3))
    );
    paper.set.spec.as_mut().unwrap().replicas = Some(1);
    assert_eq!(paper.step(&ready()), ["-2"]);
    assert_eq!(paper.settle(), ["-1"]);
}

#[test]
fn in_parallel_they_come_and_go_at_once() {
    let mut paper = Paper::new(
        3,
        &json!({"podManagementPolicy": "Parallel", "ordinals": {"start": 5}}),
    );
    assert_eq!(paper.step(&pending()), ["+5", "+6", "+7"]);
    paper.set.spec.as_mut().unwrap().replicas = Some(0);
    assert_eq!(paper.step(&pending()), ["-7", "-6", "-5"]);
}

#[test]
fn an_update_goes_from_the_last_to_the_partition() {
    let mut paper = Paper::new(3, &json!({}));
    paper.settle();
    paper.update = "two";
    assert_eq!(paper.settle(), ["-2", "+2", "-1", "+1", "-0", "+0"]);
    let status = paper.set.status.clone().unwrap();
    assert_eq!(status.current_revision.as_deref(), Some("two"));
    assert_eq!(
        (status.updated_replicas, status.current_replicas),
        (Some(3), Some(3))
    );

    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}});
    let mut paper = Paper::new(3, &json!({"updateStrategy": strategy}));
    paper.settle();
    paper.update = "two";
    assert_eq!(paper.settle(), ["-2", "+2"]);
    let status = paper.set.status.clone().unwrap();
    assert_eq!(status.current_revision.as_deref(), Some("one"));
    // One that dies below the partition comes back as it was.
    paper.pods.retain(|pod| pod.name_any() != "web-0");
    assert_eq!(paper.settle(), ["+0"]);
    assert_eq!(paper.revisions(), ["one", "one", "two"]);
}

#[test]
fn an_update_waits_for_the_pod_that_it_replaced() {
    let mut paper = Paper::new(3, &json!({}));
    paper.settle();
    paper.update = "two";
    assert_eq!(paper.step(&pending()), ["-2"]);
    assert_eq!(paper.step(&pending()), ["+2"]);
    assert_eq!(paper.step(&pending()), [""; 0]);
    assert_eq!(paper.revisions(), ["one", "one", "two"]);
}

#[test]
fn several_may_be_missing_if_the_set_says_so() {
    let strategy =
        json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 2}});
    let mut paper = Paper::new(
        4,
        &json!({"updateStrategy": strategy, "podManagementPolicy": "Parallel"}),
    );
    paper.settle();
    paper.update = "two";
    assert_eq!(paper.step(&ready()), ["-3", "-2"]);
    assert_eq!(paper.step(&pending()), ["+2", "+3"]);
    assert_eq!(paper.step(&pending()), [""; 0]);
    paper.ready();
    assert_eq!(paper.settle(), ["-1", "-0", "+0", "+1"]);
}

#[test]
fn a_broken_update_can_be_taken_back_in_parallel() {
    let mut paper = Paper::new(2, &json!({"podManagementPolicy": "Parallel"}));
    paper.settle();
    paper.update = "bad";
    paper.step(&pending());
    paper.step(&pending());
    paper.update = "one";
    assert_eq!(paper.step(&pending()), ["-1"]);
    assert_eq!(paper.settle(), ["+1"]);
    assert_eq!(paper.revisions(), ["one", "one"]);
}

#[test]
fn on_delete_nothing_is_replaced_until_somebody_deletes_it() {
    let mut paper = Paper::new(2, &json!({"updateStrategy": {"type": "OnDelete"}}));
    paper.settle();
    paper.update = "two";
    assert_eq!(paper.settle(), [""; 0]);
    paper.pods.remove(0);
    assert_eq!(paper.settle(), ["+0"]);
    assert_eq!(paper.revisions(), ["two", "one"]);
}

#[test]
fn pods_that_are_over_are_made_again() {
    let mut paper = Paper::new(2, &json!({}));
    paper.settle();
    paper.pods[0].status = serde_json::from_value(json!({"phase": "Failed"})).unwrap();
    assert_eq!(paper.settle(), ["-0", "+0"]);
}

#[test]
fn a_pod_that_does_not_say_who_it_is_is_told() {
    let mut paper = Paper::new(1, &json!({}));
    paper.settle();
    paper.pods[0]
        .labels_mut()
        .remove("apps.kubernetes.io/pod-index");
    assert_eq!(paper.step(&ready()), ["!0"]);
}

#[test]
fn a_set_on_its_way_out_does_nothing() {
    let mut paper = Paper::new(1, &json!({}));
    paper.set.metadata.deletion_timestamp = Some(
        k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH),
    );
    assert_eq!(paper.settle(), [""; 0]);
}
