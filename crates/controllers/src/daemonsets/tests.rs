//! Daemons on nodes that exist on paper.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::{
    api::{
        apps::v1::{DaemonSet, DaemonSetStatus},
        core::v1::{Node, Pod},
    },
    jiff::Timestamp,
};
use kube::ResourceExt;
use serde_json::{Value, json};
use transom_model::Platform;

use super::{
    decide::{Plan, Sight},
    nodes::{complete, judge_all, pin},
    platforms::Needs,
};
use crate::workloads::{owners::reference_to, pods};

const NOW: &str = "2026-01-01T01:00:00Z";

struct Paper {
    set: DaemonSet,
    nodes: Vec<Arc<Node>>,
    pods: Vec<Pod>,
    hash: String,
    /// What the image of all containers is for, if that is known.
    platforms: Option<Arc<Vec<Platform>>>,
}

impl Paper {
    fn new(nodes: &[&str], strategy: &Value) -> Self {
        let set = json!({
            "metadata": {"name": "d", "namespace": "n", "uid": "u", "generation": 1},
            "spec": {
                "selector": {"matchLabels": {"a": "1"}}, "updateStrategy": strategy,
                "template": {"metadata": {"labels": {"a": "1"}}, "spec": {"containers": [{"name": "c", "image": "app"}]}},
            },
        });
        let node = |name: &&str| {
            Arc::new(serde_json::from_value(json!({"metadata": {"name": name}})).unwrap())
        };
        Self {
            set: serde_json::from_value(set).unwrap(),
            nodes: nodes.iter().map(node).collect(),
            pods: Vec::new(),
            hash: "one".to_owned(),
            platforms: None,
        }
    }

    fn with<T>(&self, look: impl FnOnce(&Sight<'_>) -> T) -> T {
        let spec = self.set.spec.as_ref().unwrap();
        let template = complete(&spec.template, &self.hash, None);
        let pods: Vec<_> = self.pods.iter().cloned().map(Arc::new).collect();
        let now: Timestamp = NOW.parse().unwrap();
        let needs = Needs::of(&template, |_| self.platforms.clone());
        let verdicts = judge_all(&template, &needs, &self.nodes);
        look(&Sight::new(
            &self.set, spec, &self.hash, &verdicts, &pods, now,
        ))
    }

    fn status(&self) -> DaemonSetStatus {
        let mut status = DaemonSetStatus::default();
        self.with(|sight| status = sight.status());
        status
    }

    fn plan(&self) -> Plan {
        self.with(|sight| sight.plan(|_| true))
    }

    fn add(&mut self, node: &str, status: &Value) {
        let spec = self.set.spec.as_ref().unwrap();
        let template = pin(&complete(&spec.template, &self.hash, None), node);
        let mut pod = pods::from_template(&template, "n", "d", reference_to(&self.set));
        let number = self.pods.len();
        pod.metadata.name = Some(format!("{node}-{}-{number}", self.hash));
        pod.status = Some(serde_json::from_value(status.clone()).unwrap());
        self.pods.push(pod);
    }

    /// Acts as planned. Pods get ready if they should, and those that are deleted are gone.
    fn step(&mut self, status: &Value) -> bool {
        let plan = self.plan();
        let gone: BTreeSet<_> = plan.delete.iter().map(|pod| pod.name_any()).collect();
        self.pods.retain(|pod| !gone.contains(&pod.name_any()));
        for node in &plan.create {
            self.add(node, status);
        }
        !plan.create.is_empty() || !gone.is_empty()
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.pods.iter().map(ResourceExt::name_any).collect();
        names.sort();
        names
    }

    fn ready(&self) -> usize {
        self.pods.iter().filter(|pod| pods::is_ready(pod)).count()
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

fn rolling(unavailable: &Value, surge: &Value) -> Value {
    json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": surge}})
}

#[test]
fn each_node_gets_one_and_the_status_counts_them() {
    let mut paper = Paper::new(&["a", "b", "c"], &json!({"type": "RollingUpdate"}));
    assert_eq!(paper.plan().create, ["a", "b", "c"]);
    paper.step(&ready());
    assert!(!paper.step(&ready()));
    let status = paper.status();
    assert_eq!(status.desired_number_scheduled, 3);
    assert_eq!(status.current_number_scheduled, 3);
    assert_eq!((status.number_ready, status.number_available), (3, Some(3)));
    assert_eq!(
        (status.updated_number_scheduled, status.number_unavailable),
        (Some(3), None)
    );
}

#[test]
fn an_update_takes_as_many_away_as_may_be_missing() {
    for (unavailable, fewest) in [
        (json!(1), 3),
        (json!("50%"), 2),
        (json!(4), 0),
        (json!(0), 3),
    ] {
        let mut paper = Paper::new(&["a", "b", "c", "d"], &rolling(&unavailable, &json!(0)));
        paper.step(&ready());
        paper.hash = "two".to_owned();
        for _ in 0..12 {
            paper.step(&ready());
            assert!(paper.ready() >= fewest, "{unavailable}");
            assert!(paper.pods.len() <= 4);
        }
        assert!(
            paper.names().iter().all(|name| name.contains("two")),
            "{:?}",
            paper.names()
        );
        assert_eq!(paper.pods.len(), 4);
    }
}

#[test]
fn an_update_stops_when_the_new_ones_do_not_get_ready() {
    let mut paper = Paper::new(&["a", "b", "c"], &rolling(&json!(1), &json!(0)));
    paper.step(&ready());
    paper.hash = "two".to_owned();
    for _ in 0..6 {
        paper.step(&pending());
    }
    assert_eq!(paper.ready(), 2);
    assert_eq!(paper.pods.len(), 3);
}

#[test]
fn with_a_surge_the_old_one_stays_until_the_new_one_is_ready() {
    let mut paper = Paper::new(&["a", "b", "c"], &rolling(&json!(0), &json!(1)));
    paper.step(&ready());
    paper.hash = "two".to_owned();
    paper.step(&pending());
    assert!(!paper.step(&pending()));
    assert_eq!((paper.pods.len(), paper.ready()), (4, 3));
    paper.pods.last_mut().unwrap().status = serde_json::from_value(ready()).unwrap();
    for _ in 0..12 {
        paper.step(&ready());
        assert!(paper.pods.len() <= 4 && paper.ready() >= 3);
    }
    assert!(
        paper.names().iter().all(|name| name.contains("two")),
        "{:?}",
        paper.names()
    );
}

#[test]
fn on_delete_nothing_is_replaced_until_somebody_deletes_it() {
    let mut paper = Paper::new(&["a", "b"], &json!({"type": "OnDelete"}));
    paper.step(&ready());
    paper.hash = "two".to_owned();
    assert!(!paper.step(&ready()));
    paper.pods.remove(0);
    paper.step(&ready());
    assert_eq!(paper.names(), ["a-two-1", "b-one-1"]);
}

#[test]
fn nodes_that_should_have_none_lose_theirs_or_count_them() {
    let mut paper = Paper::new(&["a", "b"], &json!({}));
    paper.step(&ready());
    let taint = |effect: &str| -> Arc<Node> {
        let taints = json!([{"key": "k", "effect": effect}]);
        Arc::new(
            serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": {"taints": taints}}))
                .unwrap(),
        )
    };
    paper.nodes[0] = taint("NoSchedule");
    assert!(paper.plan().delete.is_empty());
    assert_eq!(paper.status().number_misscheduled, 1);
    paper.nodes[0] = taint("NoExecute");
    assert_eq!(paper.plan().delete[0].name_any(), "a-one-0");
    // The node is gone, and the pod never came to it.
    paper.nodes.remove(0);
    assert_eq!(paper.plan().delete[0].name_any(), "a-one-0");
}

#[test]
fn where_the_image_cannot_run_daemons_go_that_do_not_run_and_those_that_do_stay() {
    let mut paper = Paper::new(&["a", "b", "c", "d"], &json!({}));
    let of = |name: &str, os: &str| -> Arc<Node> {
        let labels = json!({"kubernetes.io/os": os, "kubernetes.io/arch": "amd64"});
        let node = json!({"metadata": {"name": name, "labels": labels}});
        Arc::new(serde_json::from_value(node).unwrap())
    };
    paper.nodes = ["a", "b", "c", "d"].map(|name| of(name, "windows")).into();
    paper.nodes.push(of("e", "linux"));
    assert_eq!(paper.plan().create, ["a", "b", "c", "d", "e"]);
    paper.add("a", &pending());
    paper.add("b", &ready());
    paper.add("c", &json!({"phase": "Failed"}));
    paper.platforms = Some(Arc::new(vec!["linux/amd64".parse().unwrap()]));
    let plan = paper.plan();
    assert_eq!(plan.create, ["e"]);
    let gone: Vec<_> = plan.delete.iter().map(|pod| pod.name_any()).collect();
    assert_eq!(gone, ["a-one-0", "c-one-2"]);
    let status = paper.status();
    assert_eq!(status.desired_number_scheduled, 1);
    // What runs is not what the set wants any more.
    paper.hash = "two".to_owned();
    let gone = paper.plan().delete;
    assert!(
        gone.iter().any(|pod| pod.name_any() == "b-one-1"),
        "{gone:?}"
    );
}

#[test]
fn failed_daemons_are_killed_when_they_may_be_and_doubles_go() {
    let mut paper = Paper::new(&["a"], &json!({}));
    paper.add("a", &json!({"phase": "Failed"}));
    let plan = paper.plan();
    assert_eq!(plan.delete.len(), 1);
    assert_eq!(
        plan.news[0].text,
        "Found failed daemon pod n/a-one-0 on node a, will try to kill it"
    );
    assert!(paper.with(|sight| sight.plan(|_| false)).delete.is_empty());
    paper.pods.clear();
    paper.add("a", &ready());
    paper.add("a", &ready());
    assert_eq!(paper.plan().delete[0].name_any(), "a-one-1");
}
