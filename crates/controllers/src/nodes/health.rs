//! Decides what is said of a node: that it is not heard of, and which taints follow from its state.

use std::time::Duration;

use k8s_openapi::{
    api::core::v1::{Node, NodeCondition, Taint},
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::Timestamp,
};

use super::{
    Patience,
    facts::{NO_EXECUTE, NodeFacts},
};

pub(super) const NOT_READY: &str = "node.kubernetes.io/not-ready";
pub(super) const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
const NO_SCHEDULE: &str = "NoSchedule";

/// Conditions that nobody can vouch for when a node is silent.
const UNCERTAIN: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// Which taint forbids new pods when a condition has a state.
const BY_CONDITION: [(&str, &str, &str); 6] = [
    ("Ready", "False", NOT_READY),
    ("Ready", "Unknown", UNREACHABLE),
    (
        "MemoryPressure",
        "True",
        "node.kubernetes.io/memory-pressure",
    ),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    (
        "NetworkUnavailable",
        "True",
        "node.kubernetes.io/network-unavailable",
    ),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
];

/// Whether pods may be driven off nodes that are not well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Eviction {
    Allowed,
    /// Not now: too many nodes are in trouble, or another one had its turn just before.
    Held,
    /// Not at all, and what was begun is taken back: if no node is well, the trouble is ours.
    Lifted,
}

/// How long this node may be silent.
pub(super) fn grace(node: &NodeFacts, patience: &Patience) -> Duration {
    if node.condition("Ready").is_some() {
        patience.silence
    } else {
        patience.first_silence
    }
}

/// Whether all is said that can be said of a silent node.
pub(super) fn is_given_up(node: &NodeFacts) -> bool {
    let is_unknown = |kind: &&str| node.condition(kind) == Some("Unknown");
    UNCERTAIN.iter().all(is_unknown)
}

/// The conditions of a node that has been silent for too long; `None` if they are so already.
pub(super) fn plan_conditions(node: &Node, now: Timestamp) -> Option<Vec<NodeCondition>> {
    let status = node.status.clone().unwrap_or_default();
    let mut conditions = status.conditions.unwrap_or_default();
    let mut is_changed = false;
    for kind in UNCERTAIN {
        match conditions.iter_mut().find(|each| each.type_ == kind) {
            Some(condition) if condition.status == "Unknown" => {}
            Some(condition) => {
                "Unknown".clone_into(&mut condition.status);
                condition.reason = Some("NodeStatusUnknown".to_owned());
                condition.message = Some("Kubelet stopped posting node status.".to_owned());
                condition.last_transition_time = Some(Time(now));
                is_changed = true;
            }
            None => {
                conditions.push(NodeCondition {
                    type_: kind.to_owned(),
                    status: "Unknown".to_owned(),
                    reason: Some("NodeStatusNeverUpdated".to_owned()),
                    message: Some("Kubelet never posted node status.".to_owned()),
                    last_heartbeat_time: node.metadata.creation_timestamp.clone(),
                    last_transition_time: Some(Time(now)),
                });
                is_changed = true;
            }
        }
    }
    is_changed.then_some(conditions)
}

/// Whether it would drive pods off this node if it had the taints that it should have.
pub(super) fn wants_eviction(node: &NodeFacts) -> bool {
    let has = |key: &str| {
        let mut taints = node.taints.iter();
        taints.any(|taint| taint.key == key && taint.effect == NO_EXECUTE)
    };
    evicting_taint(node).is_some() && !has(NOT_READY) && !has(UNREACHABLE)
}

fn evicting_taint(node: &NodeFacts) -> Option<&'static str> {
    match node.condition("Ready") {
        Some("False") => Some(NOT_READY),
        Some("Unknown") => Some(UNREACHABLE),
        _ => None,
    }
}

/// The taints of a node as they should be; `None` if they are so already. Those of others stay.
pub(super) fn plan_taints(
    node: &NodeFacts,
    eviction: Eviction,
    now: Timestamp,
) -> Option<Vec<Taint>> {
    let mut wanted: Vec<(&str, &str)> = BY_CONDITION
        .iter()
        .filter(|(kind, state, _)| node.condition(kind) == Some(*state))
        .map(|(_, _, key)| (*key, NO_SCHEDULE))
        .collect();
    if node.is_unschedulable {
        wanted.push((UNSCHEDULABLE, NO_SCHEDULE));
    }
    // Before a node says anything, nothing is known that would speak against it.
    let may_begin = eviction == Eviction::Allowed || !wants_eviction(node);
    if let Some(key) = evicting_taint(node)
        && eviction != Eviction::Lifted
        && may_begin
    {
        wanted.push((key, NO_EXECUTE));
    }
    let is_ours = |taint: &Taint| match taint.effect.as_str() {
        NO_EXECUTE => [NOT_READY, UNREACHABLE].contains(&taint.key.as_str()),
        NO_SCHEDULE => {
            let mut keys = BY_CONDITION.iter().map(|(_, _, key)| *key);
            // The API gives it to new nodes; it stays until the node says how it is.
            let is_new = node.condition("Ready").is_none() && taint.key == NOT_READY;
            !is_new && (taint.key == UNSCHEDULABLE || keys.any(|key| key == taint.key))
        }
        _ => false,
    };
    let is_wanted = |taint: &Taint| {
        let mut wanted = wanted.iter();
        wanted.any(|(key, effect)| taint.key == *key && taint.effect == *effect)
    };
    let mut taints = node.taints.clone();
    taints.retain(|taint| !is_ours(taint) || is_wanted(taint));
    for (key, effect) in wanted {
        let is_there = |taint: &Taint| taint.key == key && taint.effect == effect;
        if !taints.iter().any(is_there) {
            taints.push(Taint {
                key: key.to_owned(),
                effect: effect.to_owned(),
                value: None,
                time_added: Some(Time(now)),
            });
        }
    }
    (taints != node.taints).then_some(taints)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn node(conditions: &[(&str, &str)], taints: &[(&str, &str)]) -> Node {
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(kind, state)| json!({"type": kind, "status": state}))
            .collect();
        let taints: Vec<Value> = taints
            .iter()
            .map(|(key, effect)| json!({"key": key, "effect": effect}))
            .collect();
        serde_json::from_value(json!({
            "metadata": {"name": "n", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"taints": taints},
            "status": {"conditions": conditions},
        }))
        .unwrap()
    }

    fn taints(
        conditions: &[(&str, &str)],
        taints: &[(&str, &str)],
        eviction: Eviction,
    ) -> Option<Vec<(String, String)>> {
        let facts = NodeFacts::read(&node(conditions, taints));
        let planned = plan_taints(&facts, eviction, NOW)?;
        let mut short: Vec<_> = planned
            .into_iter()
            .map(|taint| {
                let key = taint.key.rsplit('/').next().unwrap_or_default().to_owned();
                (key, taint.effect)
            })
            .collect();
        short.sort();
        Some(short)
    }

    fn list(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let own = |(key, effect): &(&str, &str)| ((*key).to_owned(), (*effect).to_owned());
        pairs.iter().map(own).collect()
    }

    #[test]
    fn what_a_silent_node_said_is_not_known_any_more() {
        let said = node(&[("Ready", "True"), ("Other", "True")], &[]);
        let conditions = plan_conditions(&said, NOW).unwrap();
        let found: Vec<(&str, &str, &str)> = conditions
            .iter()
            .map(|each| {
                let reason = each.reason.as_deref().unwrap_or_default();
                (each.type_.as_str(), each.status.as_str(), reason)
            })
            .collect();
        assert_eq!(
            found,
            [
                ("Ready", "Unknown", "NodeStatusUnknown"),
                ("Other", "True", ""),
                ("MemoryPressure", "Unknown", "NodeStatusNeverUpdated"),
                ("DiskPressure", "Unknown", "NodeStatusNeverUpdated"),
                ("PIDPressure", "Unknown", "NodeStatusNeverUpdated"),
            ]
        );
        let mut after = said;
        after.status.as_mut().unwrap().conditions = Some(conditions);
        assert_eq!(plan_conditions(&after, NOW), None);
        assert!(is_given_up(&NodeFacts::read(&after)));
    }

    #[test]
    fn a_node_that_never_spoke_is_given_more_time() {
        let patience = Patience::default();
        let grace = |node: &Node| grace(&NodeFacts::read(node), &patience).as_secs();
        assert_eq!(grace(&node(&[], &[])), 60);
        assert_eq!(grace(&node(&[("Ready", "False")], &[])), 50);
    }

    #[test]
    fn taints_follow_conditions() {
        use Eviction::Allowed;
        let both = [("not-ready", "NoExecute"), ("not-ready", "NoSchedule")];
        assert_eq!(
            taints(&[("Ready", "False")], &[], Allowed),
            Some(list(&both))
        );
        let both = [("unreachable", "NoExecute"), ("unreachable", "NoSchedule")];
        assert_eq!(
            taints(&[("Ready", "Unknown")], &[], Allowed),
            Some(list(&both))
        );
        let well = [("Ready", "True"), ("MemoryPressure", "True")];
        let has = [(NOT_READY, NO_SCHEDULE), (UNREACHABLE, NO_EXECUTE)];
        let left = [("memory-pressure", "NoSchedule")];
        assert_eq!(taints(&well, &has, Allowed), Some(list(&left)));
        assert_eq!(taints(&[("Ready", "True")], &[], Allowed), None);
    }

    #[test]
    fn taints_of_others_and_of_new_nodes_stay() {
        let others = [
            ("example.org/own", NO_EXECUTE),
            (NOT_READY, "PreferNoSchedule"),
        ];
        assert_eq!(
            taints(&[("Ready", "True")], &others, Eviction::Allowed),
            None
        );
        let new = [(NOT_READY, NO_SCHEDULE)];
        assert_eq!(taints(&[], &new, Eviction::Allowed), None);
    }

    #[test]
    fn eviction_that_is_held_begins_nowhere_but_changes_its_name() {
        let down = [("Ready", "Unknown")];
        let only = [("unreachable", "NoSchedule")];
        assert_eq!(taints(&down, &[], Eviction::Held), Some(list(&only)));
        let begun = [(NOT_READY, NO_EXECUTE), (NOT_READY, NO_SCHEDULE)];
        let both = [("unreachable", "NoExecute"), ("unreachable", "NoSchedule")];
        assert_eq!(taints(&down, &begun, Eviction::Held), Some(list(&both)));
        assert_eq!(taints(&down, &begun, Eviction::Lifted), Some(list(&only)));
    }

    #[test]
    fn a_node_that_is_cordoned_has_the_taint() {
        let mut cordoned = node(&[("Ready", "True")], &[]);
        cordoned.spec.as_mut().unwrap().unschedulable = Some(true);
        let facts = NodeFacts::read(&cordoned);
        let planned = plan_taints(&facts, Eviction::Allowed, NOW).unwrap();
        assert_eq!(planned[0].key, UNSCHEDULABLE);
    }
}
