//! Decides what becomes of an object, from what is known of it, its owners and its dependants.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::PropagationPolicy;

use super::graph::{FOREGROUND, Graph, Node, ORPHAN, Uid};

/// What an object asks of the collector.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Duty {
    Nothing,
    /// The dependants are to be let go, then the object.
    Orphan(Vec<Node>),
    /// The dependants that are in its way have to be looked at; they go first.
    Wait(Vec<Uid>),
    /// No dependant is in its way any more.
    Release,
    /// Its owners have to be looked for.
    FindOwners,
}

/// What an object asks of the collector, as far as the graph can tell.
pub(super) fn duty(graph: &Graph, node: &Node) -> Duty {
    if node.waits_for_orphans() {
        return Duty::Orphan(graph.dependants(&node.uid).cloned().collect());
    }
    if node.waits_for_dependants() {
        let blocking: Vec<&Node> = graph
            .dependants(&node.uid)
            .filter(|each| each.blocks(&node.uid))
            .collect();
        if blocking.is_empty() {
            return Duty::Release;
        }
        let idle = blocking.iter().filter(|each| !each.waits_for_dependants());
        return Duty::Wait(idle.map(|each| Arc::clone(&each.uid)).collect());
    }
    if node.is_being_deleted || node.owners.is_empty() {
        return Duty::Nothing;
    }
    Duty::FindOwners
}

/// What was found of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Present,
    /// It goes as soon as its dependants are gone.
    Waiting,
    /// The API was asked and does not have it.
    Absent,
    /// It is in a namespace and the dependant is in none, so nobody can tell where to look.
    Unfit,
}

/// What is to be done with an object that has owners.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    Keep,
    /// Some owner is there: the others are taken off the object.
    Drop(Vec<String>),
    Delete {
        policy: PropagationPolicy,
        /// Whether it must stop to block its owners before, since it would wait for itself in the end.
        unblock: bool,
    },
}

/// Decides about an object from what was found of all its owners.
pub(super) fn judge(graph: &Graph, node: &Node, owners: &[(OwnerReference, Owner)]) -> Verdict {
    let is = |wanted: Owner| owners.iter().any(|(_, found)| *found == wanted);
    if owners.is_empty() || is(Owner::Unfit) {
        return Verdict::Keep;
    }
    if is(Owner::Present) {
        let lost: Vec<String> = owners
            .iter()
            .filter(|(_, found)| *found != Owner::Present)
            .map(|(reference, _)| reference.uid.clone())
            .collect();
        return if lost.is_empty() {
            Verdict::Keep
        } else {
            Verdict::Drop(lost)
        };
    }
    let mut dependants = graph.dependants(&node.uid).peekable();
    if is(Owner::Waiting) && dependants.peek().is_some() {
        return Verdict::Delete {
            policy: PropagationPolicy::Foreground,
            unblock: dependants.any(Node::waits_for_dependants),
        };
    }
    Verdict::Delete {
        policy: own_policy(node),
        unblock: false,
    }
}

/// What somebody said by finalizers before counts.
fn own_policy(node: &Node) -> PropagationPolicy {
    let has = |finalizer: &str| node.finalizers.iter().any(|each| each == finalizer);
    if has(ORPHAN) {
        PropagationPolicy::Orphan
    } else if has(FOREGROUND) {
        PropagationPolicy::Foreground
    } else {
        PropagationPolicy::Background
    }
}
