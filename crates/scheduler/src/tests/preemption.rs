//! Who has to go for whom.

use serde_json::{Value, json};

use super::{node, pod, resident, snapshot};
use crate::{Placement, Snapshot, filter::could_host, place, preempt::preempt};

/// A pod of a priority that asks for processors.
fn of(priority: i32, cpu: &str) -> Value {
    json!({"spec": {"priority": priority, "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}})
}

/// The node and the victims, or why there are none.
fn decide(snapshot: &mut Snapshot, wants: &Value) -> Result<(String, Vec<String>), String> {
    let pod = snapshot.prepare(&pod("p", wants));
    let Placement::Unplaceable(why) = place(snapshot, &pod) else {
        panic!("there is room")
    };
    preempt(snapshot, &pod, &why, 0)
        .map(|found| {
            let victims = found.victims.iter().map(|victim| victim.name.to_string());
            (found.node.to_string(), victims.collect())
        })
        .map_err(|no| no.message)
}

fn went(node: &str, victims: &[&str]) -> (String, Vec<String>) {
    let victims = victims.iter().map(|name| (*name).to_owned());
    (node.to_owned(), victims.collect())
}

#[test]
fn the_least_important_and_as_few_as_can_be_go() {
    let mut snapshot = snapshot(
        &[node("a", "z", &json!({})), node("b", "z", &json!({}))],
        &[
            resident("a-low", "a", &of(1, "2")),
            resident("a-mid", "a", &of(5, "2")),
            resident("b-mid", "b", &of(5, "4")),
        ],
    );
    assert_eq!(
        decide(&mut snapshot, &of(10, "2")),
        Ok(went("a", &["a-low"]))
    );
    assert_eq!(
        decide(&mut snapshot, &of(10, "4")),
        Ok(went("b", &["b-mid"])),
        "one rather than two"
    );
    assert_eq!(
        decide(&mut snapshot, &of(3, "2")),
        Ok(went("a", &["a-low"]))
    );
}

#[test]
fn nobody_goes_for_an_equal_or_for_nothing() {
    let mut snapshot = snapshot(
        &[node("a", "z", &json!({}))],
        &[resident("x", "a", &of(5, "4"))],
    );
    let none =
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.";
    assert_eq!(decide(&mut snapshot, &of(5, "1")), Err(none.to_owned()));
    let never = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";
    assert_eq!(
        decide(&mut snapshot, &of(9, "5")),
        Err(never.to_owned()),
        "the node is too small"
    );
    let mut polite = of(9, "1");
    polite["spec"]["preemptionPolicy"] = "Never".into();
    assert_eq!(
        decide(&mut snapshot, &polite),
        Err("preemption: not eligible due to preemptionPolicy=Never.".to_owned())
    );
}

#[test]
fn budgets_are_kept_if_they_can_be() {
    let mut snapshot = snapshot(
        &[node("a", "z", &json!({})), node("b", "z", &json!({}))],
        &[
            resident("guarded", "a", &{
                let mut value = of(1, "4");
                value["metadata"] = json!({"labels": {"app": "db"}});
                value
            }),
            resident("free", "b", &of(2, "4")),
        ],
    );
    let budget = |allowed: i32| {
        json!({"metadata": {"name": "b", "namespace": "default"},
               "spec": {"selector": {"matchLabels": {"app": "db"}}},
               "status": {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}})
    };
    assert_eq!(
        decide(&mut snapshot, &of(10, "1")),
        Ok(went("a", &["guarded"]))
    );
    snapshot.put_budget(&serde_json::from_value(budget(0)).unwrap());
    assert_eq!(
        decide(&mut snapshot, &of(10, "1")),
        Ok(went("b", &["free"]))
    );
    snapshot.remove_node("b");
    assert_eq!(
        decide(&mut snapshot, &of(10, "1")),
        Ok(went("a", &["guarded"])),
        "a budget is not a lock"
    );
    snapshot.put_budget(&serde_json::from_value(budget(1)).unwrap());
    assert_eq!(
        decide(&mut snapshot, &of(10, "1")),
        Ok(went("a", &["guarded"]))
    );
}

#[test]
fn the_youngest_goes_of_equals() {
    let since = |time: &str| {
        let mut value = of(1, "4");
        value["status"] = json!({"startTime": time});
        value
    };
    let mut snapshot = snapshot(
        &[node("a", "z", &json!({})), node("b", "z", &json!({}))],
        &[
            resident("old", "a", &since("2026-01-01T00:00:00Z")),
            resident("young", "b", &since("2026-02-01T00:00:00Z")),
        ],
    );
    assert_eq!(
        decide(&mut snapshot, &of(10, "1")),
        Ok(went("b", &["young"]))
    );
}

#[test]
fn who_keeps_others_away_may_have_to_go() {
    let mut guard = of(1, "1");
    guard["spec"]["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}]}});
    let mut snapshot = snapshot(
        &[node("a", "z", &json!({}))],
        &[
            resident("guard", "a", &guard),
            resident("quiet", "a", &of(0, "1")),
        ],
    );
    assert_eq!(
        decide(&mut snapshot, &of(10, "1")),
        Ok(went("a", &["guard"]))
    );
}

#[test]
fn room_that_is_kept_for_one_is_not_taken_by_another() {
    let mut snapshot = snapshot(&[node("a", "z", &json!({}))], &[]);
    let first = snapshot.prepare(&pod("first", &of(10, "3")));
    snapshot.nominate(&first, "a");
    let refused = |snapshot: &mut Snapshot, wants: &Value| {
        let pod = snapshot.prepare(&pod("second", wants));
        matches!(place(snapshot, &pod), Placement::Unplaceable(_))
    };
    assert!(refused(&mut snapshot, &of(5, "2")));
    assert!(!refused(&mut snapshot, &of(5, "1")));
    assert!(
        !refused(&mut snapshot, &of(20, "2")),
        "the more important does not wait"
    );
    assert!(
        matches!(place(&snapshot, &first), Placement::Node(_)),
        "it is its own room"
    );
    snapshot.forget_nomination("uid-first");
    assert!(!refused(&mut snapshot, &of(5, "2")));
}

#[test]
fn while_somebody_leaves_for_a_pod_nobody_else_has_to() {
    let mut leaving = of(1, "4");
    leaving["metadata"] = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    leaving["status"] = json!({"conditions": [
        {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]});
    let mut snapshot = snapshot(
        &[node("a", "z", &json!({})), node("b", "z", &json!({}))],
        &[
            resident("leaving", "a", &leaving),
            resident("other", "b", &of(1, "4")),
        ],
    );
    let mut wants = of(10, "1");
    wants["status"] = json!({"nominatedNodeName": "a"});
    assert_eq!(
        decide(&mut snapshot, &wants),
        Err("preemption: not eligible due to a terminating pod on the nominated node.".to_owned())
    );
}

#[test]
fn a_full_node_is_news_for_those_who_may_send_others_away() {
    let mut snapshot = snapshot(
        &[node("a", "z", &json!({}))],
        &[
            resident("low", "a", &of(1, "3")),
            resident("mid", "a", &of(5, "1")),
        ],
    );
    let mut could_host = |wants: &Value| {
        let pod = snapshot.prepare(&pod("p", wants));
        could_host(&snapshot, &pod, 0)
    };
    assert!(could_host(&of(5, "3")), "the least important would go");
    assert!(!could_host(&of(5, "4")), "an equal would stay");
    assert!(could_host(&of(9, "4")));
    assert!(!could_host(&of(9, "5")), "the node is too small");
    assert!(!could_host(&of(1, "1")), "nobody is less important");
    let mut polite = of(9, "1");
    polite["spec"]["preemptionPolicy"] = "Never".into();
    assert!(!could_host(&polite));
}
