//! Rollouts played through on paper: replica sets do what they are told, some of it later.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::{
    api::apps::v1::{Deployment, ReplicaSet, ReplicaSetStatus},
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::Timestamp,
};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::decide::{Plan, plan_step};

/// A deployment and its sets, without an API.
struct Paper {
    deployment: Deployment,
    sets: BTreeMap<String, ReplicaSet>,
    now: Timestamp,
    said: Vec<String>,
}

fn deployment(replicas: i32, image: &str, more: Value) -> Deployment {
    let mut value = json!({
        "metadata": {"name": "web", "namespace": "n", "uid": "d", "generation": 1},
        "spec": {
            "replicas": replicas, "progressDeadlineSeconds": 600, "revisionHistoryLimit": 10,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": image}]},
            },
        },
    });
    if let Value::Object(more) = more {
        for (name, field) in more {
            value["spec"][name] = field;
        }
    }
    serde_json::from_value(value).unwrap()
}

impl Paper {
    fn new(deployment: Deployment) -> Self {
        Self {
            deployment,
            sets: BTreeMap::new(),
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            said: Vec::new(),
        }
    }

    fn change(&mut self, change: impl FnOnce(&mut Value)) {
        let mut value = serde_json::to_value(&self.deployment).unwrap();
        change(&mut value);
        self.deployment = serde_json::from_value(value).unwrap();
        *self.deployment.metadata.generation.get_or_insert_default() += 1;
    }

    fn look(&self) -> Plan {
        let sets: Vec<_> = self.sets.values().cloned().map(Arc::new).collect();
        let spec = self.deployment.spec.as_ref().unwrap();
        let is_busy = |set: &ReplicaSet| {
            set.status
                .as_ref()
                .is_some_and(|status| status.replicas > 0)
        };
        plan_step(&self.deployment, spec, &sets, is_busy, self.now)
    }

    /// Looks and acts once. Tells whether anything was done.
    fn step(&mut self) -> bool {
        self.now += Duration::from_secs(1);
        let plan = self.look();
        let mut acted = false;
        if let Some(mut set) = plan.create {
            set.metadata.uid = Some(set.name_any());
            set.metadata.generation = Some(1);
            set.metadata.creation_timestamp = Some(Time(self.now));
            self.sets.insert(set.name_any(), set);
            acted = true;
        }
        for update in plan.updates {
            self.said.extend(update.news.map(|news| news.text));
            self.sets.insert(update.set.name_any(), update.set);
            acted = true;
        }
        for set in plan.deletes {
            self.sets.remove(&set.name_any());
            acted = true;
        }
        if let Some(revision) = plan.revision {
            self.deployment
                .annotations_mut()
                .insert(super::sets::REVISION.to_owned(), revision);
        }
        acted |= self.deployment.status.as_ref() != Some(&plan.status);
        self.deployment.status = Some(plan.status);
        acted
    }

    /// All pods of all sets come, go and get ready as far as `works` says.
    fn pods(&mut self, works: impl Fn(&ReplicaSet) -> bool) {
        for set in self.sets.values_mut() {
            let replicas = set.spec.as_ref().unwrap().replicas.unwrap();
            let ready = if works(set) { replicas } else { 0 };
            set.status = Some(ReplicaSetStatus {
                replicas,
                ready_replicas: Some(ready),
                available_replicas: Some(ready),
                observed_generation: set.metadata.generation,
                ..ReplicaSetStatus::default()
            });
        }
    }

    /// Goes on until nothing moves, and checks the limits on the way.
    fn settle(&mut self, most: i32, fewest: i32) {
        let mut idle = 0;
        for _ in 0..100 {
            idle = if self.step() { 0 } else { idle + 1 };
            let total: i32 = self
                .sets
                .values()
                .map(|set| set.spec.as_ref().unwrap().replicas.unwrap())
                .sum();
            assert!(total <= most, "{total} pods");
            let ready: i32 = self
                .sets
                .values()
                .map(|set| {
                    let status = set.status.clone().unwrap_or_default();
                    status
                        .available_replicas
                        .unwrap_or(0)
                        .min(set.spec.as_ref().unwrap().replicas.unwrap())
                })
                .sum();
            assert!(ready >= fewest, "{ready} ready");
            self.pods(|_| true);
            // Once more, since the pods may have moved after the last step.
            if idle == 2 {
                return;
            }
        }
        panic!("no end: {:?}", self.sizes());
    }

    /// Image and size of each set that has any replicas.
    fn sizes(&self) -> Vec<(String, i32)> {
        let mut sets: Vec<_> = self.sets.values().collect();
        sets.sort_by_key(|set| set.metadata.creation_timestamp.clone());
        let size = |set: &&ReplicaSet| {
            let spec = set.spec.as_ref().unwrap();
            let template = spec.template.as_ref().unwrap().spec.as_ref().unwrap();
            (
                template.containers[0].image.clone().unwrap(),
                spec.replicas.unwrap(),
            )
        };
        sets.iter().map(size).collect()
    }

    fn condition(&self, kind: &str) -> (String, String) {
        let status = self.deployment.status.as_ref().unwrap();
        let mut conditions = status.conditions.iter().flatten();
        let one = conditions.find(|one| one.type_ == kind).unwrap();
        (one.status.clone(), one.reason.clone().unwrap())
    }
}

fn sizes(list: &[(&str, i32)]) -> Vec<(String, i32)> {
    list.iter()
        .map(|(image, size)| ((*image).to_owned(), *size))
        .collect()
}

fn pair(left: &str, right: &str) -> (String, String) {
    (left.to_owned(), right.to_owned())
}

fn set_image(value: &mut Value, image: &str) {
    value["spec"]["template"]["spec"]["containers"][0]["image"] = image.into();
}

#[test]
fn a_rollout_keeps_its_limits_and_ends_with_the_new_set_only() {
    for (surge, unavailable, most, fewest) in [
        (json!(1), json!(0), 11, 10),
        (json!(0), json!(1), 10, 9),
        (json!("25%"), json!("25%"), 13, 8),
        (json!("100%"), json!("100%"), 20, 0),
        (json!(0), json!(0), 10, 9),
    ] {
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}});
        let mut paper = Paper::new(deployment(10, "a", json!({"strategy": strategy})));
        paper.settle(most, 0);
        assert_eq!(paper.sizes(), sizes(&[("a", 10)]));
        assert_eq!(
            paper.condition("Progressing"),
            pair("True", "NewReplicaSetAvailable")
        );
        paper.change(|value| set_image(value, "b"));
        paper.settle(most, fewest);
        assert_eq!(
            paper.sizes(),
            sizes(&[("a", 0), ("b", 10)]),
            "{surge} {unavailable}"
        );
        assert_eq!(
            paper.deployment.annotations()["deployment.kubernetes.io/revision"],
            "2"
        );
        assert_eq!(
            paper.condition("Available"),
            pair("True", "MinimumReplicasAvailable")
        );
    }
}

#[test]
fn going_back_takes_the_old_set_with_a_new_revision() {
    let mut paper = Paper::new(deployment(2, "a", json!({})));
    paper.settle(3, 0);
    paper.change(|value| set_image(value, "b"));
    paper.settle(3, 2);
    paper.change(|value| set_image(value, "a"));
    paper.settle(3, 2);
    assert_eq!(paper.sizes(), sizes(&[("a", 2), ("b", 0)]));
    assert_eq!(
        paper.deployment.annotations()["deployment.kubernetes.io/revision"],
        "3"
    );
    let first = paper
        .sets
        .values()
        .find(|set| set.spec.as_ref().unwrap().replicas == Some(2))
        .unwrap();
    assert_eq!(
        first.annotations()["deployment.kubernetes.io/revision-history"],
        "1"
    );
}

#[test]
fn the_hash_is_in_the_name_the_labels_and_the_selector() {
    let mut paper = Paper::new(deployment(1, "a", json!({})));
    paper.step();
    let (name, set) = paper.sets.first_key_value().unwrap();
    let hash = &set.labels()["pod-template-hash"];
    assert_eq!(*name, format!("web-{hash}"));
    let spec = set.spec.as_ref().unwrap();
    assert_eq!(
        &spec.selector.match_labels.as_ref().unwrap()["pod-template-hash"],
        hash
    );
    let labels = spec
        .template
        .as_ref()
        .unwrap()
        .metadata
        .as_ref()
        .unwrap()
        .labels
        .as_ref()
        .unwrap();
    assert_eq!(&labels["pod-template-hash"], hash);
}

#[test]
fn to_recreate_is_to_end_all_before_anything_begins() {
    let recreate = json!({"strategy": {"type": "Recreate"}});
    let mut paper = Paper::new(deployment(3, "a", recreate));
    paper.settle(3, 0);
    paper.change(|value| set_image(value, "b"));
    paper.step();
    assert_eq!(paper.sizes(), sizes(&[("a", 0)]));
    paper.step();
    // Its pods are still there.
    assert_eq!(paper.sizes(), sizes(&[("a", 0)]));
    paper.settle(3, 0);
    assert_eq!(paper.sizes(), sizes(&[("a", 0), ("b", 3)]));
}

#[test]
fn a_rollout_that_stands_still_is_said_to_be_late_and_goes_on_when_it_can() {
    let mut paper = Paper::new(deployment(3, "a", json!({})));
    paper.settle(4, 0);
    paper.change(|value| set_image(value, "bad"));
    for _ in 0..5 {
        paper.step();
        paper.pods(works);
    }
    paper.step();
    let again = paper.look().again.unwrap();
    assert!(
        again > Duration::from_mins(9) && again <= Duration::from_secs(601),
        "{again:?}"
    );
    paper.now += Duration::from_secs(601);
    paper.step();
    assert_eq!(
        paper.condition("Progressing"),
        pair("False", "ProgressDeadlineExceeded")
    );
    assert_eq!(paper.look().again, None);
    paper.settle(4, 3);
    assert_eq!(
        paper.condition("Progressing"),
        pair("True", "NewReplicaSetAvailable")
    );
}

/// Whether pods of a set ever get ready.
fn works(set: &ReplicaSet) -> bool {
    let template = set.spec.as_ref().unwrap().template.as_ref().unwrap();
    template.spec.as_ref().unwrap().containers[0]
        .image
        .as_deref()
        != Some("bad")
}

#[test]
fn a_paused_deployment_scales_but_does_not_roll() {
    let mut paper = Paper::new(deployment(2, "a", json!({})));
    paper.settle(3, 0);
    paper.change(|value| {
        set_image(value, "b");
        value["spec"]["paused"] = true.into();
        value["spec"]["replicas"] = 4.into();
    });
    paper.settle(5, 0);
    assert_eq!(paper.sizes(), sizes(&[("a", 4)]));
    assert_eq!(
        paper.condition("Progressing"),
        pair("Unknown", "DeploymentPaused")
    );
    paper.change(|value| value["spec"]["paused"] = false.into());
    paper.settle(5, 4);
    assert_eq!(paper.sizes(), sizes(&[("a", 0), ("b", 4)]));
    assert_eq!(
        paper.condition("Progressing"),
        pair("True", "NewReplicaSetAvailable")
    );
}

#[test]
fn sizes_change_in_proportion_in_the_middle_of_a_rollout() {
    let strategy =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}});
    let mut paper = Paper::new(deployment(10, "a", json!({"strategy": strategy})));
    paper.settle(13, 0);
    paper.change(|value| set_image(value, "bad"));
    for _ in 0..6 {
        paper.step();
        paper.pods(works);
    }
    assert_eq!(paper.sizes(), sizes(&[("a", 8), ("bad", 5)]));
    // As the documentation of Kubernetes has it: 5 more go 3 to the larger and 2 to the smaller.
    paper.change(|value| value["spec"]["replicas"] = 15.into());
    paper.step();
    assert_eq!(paper.sizes(), sizes(&[("a", 11), ("bad", 7)]));
    paper.change(|value| value["spec"]["replicas"] = 0.into());
    paper.step();
    assert_eq!(paper.sizes(), sizes(&[("a", 0), ("bad", 0)]));
}

#[test]
fn history_keeps_the_newest_that_it_has_room_for() {
    let mut paper = Paper::new(deployment(1, "a", json!({"revisionHistoryLimit": 1})));
    for image in ["a", "b", "c", "d"] {
        paper.change(|value| set_image(value, image));
        paper.settle(2, 0);
    }
    assert_eq!(paper.sizes(), sizes(&[("c", 0), ("d", 1)]));
}

#[test]
fn what_is_said_is_what_people_know() {
    let mut paper = Paper::new(deployment(1, "a", json!({})));
    paper.settle(2, 0);
    let name = paper.sets.keys().next().unwrap().clone();
    paper.change(|value| value["spec"]["replicas"] = 3.into());
    paper.settle(4, 1);
    assert_eq!(
        paper.said,
        [format!("Scaled up replica set {name} from 1 to 3")]
    );
}

#[test]
fn a_deployment_on_its_way_out_only_tells_its_status() {
    let mut paper = Paper::new(deployment(1, "a", json!({})));
    paper.change(|value| value["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into());
    let plan = paper.look();
    assert!(plan.create.is_none() && plan.updates.is_empty() && plan.revision.is_none());
    assert_eq!(plan.status.observed_generation, Some(2));
}
