//! Which of several good nodes is best.

use serde_json::{Value, json};

use super::{node, outcome, pod, resident, snapshot};
use crate::{Packing, Placement, Placer, Profile, Score, Verdict, explain};

fn best(nodes: &[(&str, Value)], others: &[(&str, Value)], wants: &Value) -> String {
    let nodes: Vec<_> = nodes
        .iter()
        .map(|(name, more)| node(name, name, more))
        .collect();
    let others: Vec<_> = others
        .iter()
        .enumerate()
        .map(|(number, (on, more))| resident(&format!("o{number}"), on, more))
        .collect();
    outcome(&mut snapshot(&nodes, &others), &pod("p", wants))
}

#[test]
fn the_node_with_most_left_is_best() {
    let nodes = [("a", json!({})), ("b", json!({}))];
    assert_eq!(best(&nodes, &[("a", json!({}))], &json!({})), "b");
    assert_eq!(best(&nodes, &[("b", json!({}))], &json!({})), "a");
}

#[test]
fn a_profile_can_fill_nodes_instead() {
    let mut snapshot = snapshot(
        &[node("a", "z", &json!({})), node("b", "z", &json!({}))],
        &[resident("other", "b", &json!({}))],
    );
    let pod = snapshot.prepare(&pod("p", &json!({})));
    let profile = Profile {
        packing: Packing::Fill,
        ..Profile::default()
    };
    let Placement::Node(place) = Placer::new(profile).place(&snapshot, &pod) else {
        panic!("there is room")
    };
    assert_eq!(place.node, "b");
}

#[test]
fn preferences_beat_what_is_left() {
    let prefers = json!({"spec": {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 10, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}}]}}}});
    let nodes = [
        ("a", json!({})),
        ("b", json!({"metadata": {"labels": {"disk": "ssd"}}})),
    ];
    assert_eq!(best(&nodes, &[("b", json!({}))], &prefers), "b");
}

#[test]
fn nodes_with_taints_that_are_not_liked_come_last() {
    let tainted =
        json!({"spec": {"taints": [{"key": "k", "value": "v", "effect": "PreferNoSchedule"}]}});
    let nodes = [("a", tainted), ("b", json!({}))];
    let busy = [("b", json!({}))];
    assert_eq!(best(&nodes, &busy, &json!({})), "b");
    let stands = json!({"spec": {"tolerations": [{"operator": "Exists"}]}});
    assert_eq!(best(&nodes, &busy, &stands), "a");
}

#[test]
fn a_node_that_has_the_image_is_better() {
    let has = json!({"status": {"images": [{"names": ["docker.io/library/app:1"], "sizeBytes": 900_000_000}]}});
    let nodes = [("a", json!({})), ("b", has)];
    let runs = json!({"spec": {"containers": [{"name": "c", "image": "app:1"}]}});
    assert_eq!(best(&nodes, &[], &runs), "b");
}

#[test]
fn pods_go_to_those_that_they_like() {
    let likes = |kind: &str| {
        json!({"spec": {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "podAffinityTerm": {"labelSelector": {"matchLabels": {"app": "db"}},
             "topologyKey": "kubernetes.io/hostname"}}]}}}})
    };
    let nodes = [("a", json!({})), ("b", json!({}))];
    let db = json!({"metadata": {"labels": {"app": "db"}}});
    assert_eq!(
        best(&nodes, &[("b", db.clone())], &likes("podAffinity")),
        "b"
    );
    let unlike = [("b", db), ("a", json!({})), ("a", json!({}))];
    assert_eq!(best(&nodes, &unlike, &likes("podAntiAffinity")), "a");
    // The other way round: who is there likes the one to come.
    let mut fan = likes("podAffinity");
    fan["metadata"] = json!({"labels": {"app": "fan"}});
    let to_come = json!({"metadata": {"labels": {"app": "db"}}});
    assert_eq!(best(&nodes, &[("b", fan)], &to_come), "b");
}

#[test]
fn replicas_spread_by_themselves() {
    let owned = json!({"metadata": {"ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "owner", "controller": true}]},
        "spec": {"containers": [{"name": "c"}]}});
    let stranger = json!({"spec": {"containers": [{"name": "c"}]}});
    let nodes = [("a", json!({})), ("b", json!({}))];
    let others = [
        ("a", owned.clone()),
        ("b", stranger.clone()),
        ("b", stranger),
    ];
    assert_eq!(best(&nodes, &others, &owned), "b");
}

#[test]
fn soft_rules_of_spread_are_kept_if_they_can_be() {
    let wants = json!({"spec": {"topologySpreadConstraints": [{
        "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}}}]}});
    let nodes = [("a", json!({})), ("b", json!({}))];
    let heavy = json!({"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [
        {"name": "c", "resources": {"requests": {"cpu": "2"}}}]}});
    let light = json!({"spec": {"containers": [{"name": "c"}]}});
    let others = [("b", heavy), ("a", light.clone()), ("a", light)];
    assert_eq!(best(&nodes, &others, &wants), "b");
}

#[test]
fn equals_take_turns() {
    let nodes: Vec<_> = (0..150)
        .map(|number| node(&format!("n{number:03}"), "z", &json!({})))
        .collect();
    let mut snapshot = snapshot(&nodes, &[]);
    let pod = snapshot.prepare(&pod("p", &json!({})));
    let mut placer = Placer::new(Profile::default());
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..3 {
        let Placement::Node(place) = placer.place(&snapshot, &pod) else {
            panic!("there is room")
        };
        seen.insert(place.node);
    }
    assert_eq!(seen.len(), 3);
}

#[test]
fn the_whole_decision_can_be_read() {
    let tainted = json!({"spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}});
    let mut snapshot = snapshot(
        &[
            node("a", "z", &json!({})),
            node("b", "z", &json!({})),
            node("c", "z", &tainted),
        ],
        &[
            resident("other", "a", &json!({})),
            resident("p", "b", &json!({})),
        ],
    );
    let verdicts = explain(&mut snapshot, &resident("p", "b", &json!({})));
    let names: Vec<&str> = verdicts.iter().map(|(name, _)| &**name).collect();
    assert_eq!(
        names,
        ["b", "a", "c"],
        "where it is does not count against it"
    );
    let Verdict::Possible(Score {
        taints, resources, ..
    }) = verdicts[0].1
    else {
        panic!("{verdicts:?}")
    };
    assert_eq!((taints, resources), (300, 86));
    let Verdict::Refused(reasons) = &verdicts[2].1 else {
        panic!("{verdicts:?}")
    };
    assert_eq!(
        reasons[0].to_string(),
        "node(s) had untolerated taint {k: v}"
    );
}
