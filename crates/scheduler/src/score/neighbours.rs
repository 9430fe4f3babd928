//! Near to liked pods and far from disliked ones, in both directions: what the pod says of others and what
//! others say of it.

use std::collections::HashMap;

use super::MOST;
use crate::{
    filter::means,
    pod::{PodToPlace, TermKind},
    snapshot::Snapshot,
    text::Text,
};

/// What a pod that must be near to another counts for that other.
const WEIGHT_OF_NEED: i64 = 1;

/// Weights by node, for each label that is a place.
type Sums<'a> = HashMap<&'a Text, HashMap<usize, i64>>;

pub(super) fn scores(snapshot: &Snapshot, pod: &PodToPlace, nodes: &[usize]) -> Option<Vec<i64>> {
    let mut sums = Sums::new();
    for one in &pod.facts.terms {
        let sign = match one.term.kind {
            TermKind::Likes => 1,
            TermKind::Dislikes => -1,
            TermKind::Needs | TermKind::Refuses => continue,
        };
        let by_node = sums.entry(&one.term.topology).or_default();
        for other in snapshot.neighbours.meant(&one.term, &snapshot.namespaces) {
            *by_node.entry(other.node).or_default() += sign * one.weight;
        }
    }
    for (term, holders) in snapshot.neighbours.wishes() {
        let factor = match term.kind {
            TermKind::Likes => 1,
            TermKind::Dislikes => -1,
            TermKind::Needs => WEIGHT_OF_NEED,
            TermKind::Refuses => continue,
        };
        if means(snapshot, term, &pod.facts) {
            let by_node = sums.entry(&term.topology).or_default();
            for (node, weight) in holders {
                *by_node.entry(*node).or_default() += factor * weight;
            }
        }
    }
    if sums.is_empty() {
        return None;
    }
    Some(normal(&raw(snapshot, &sums, nodes)))
}

fn raw(snapshot: &Snapshot, sums: &Sums<'_>, nodes: &[usize]) -> Vec<i64> {
    let mut raw = vec![0; nodes.len()];
    for (key, by_node) in sums {
        let topology = snapshot.topology(key);
        let mut by_domain = vec![0; topology.width()];
        for (node, weight) in by_node {
            if let Some(domain) = topology.domain(*node) {
                by_domain[domain] += weight;
            }
        }
        for (node, sum) in nodes.iter().zip(&mut raw) {
            if let Some(domain) = topology.domain(*node) {
                *sum += by_domain[domain];
            }
        }
    }
    raw
}

fn normal(raw: &[i64]) -> Vec<i64> {
    let least = raw.iter().min().copied().unwrap_or_default();
    let most = raw.iter().max().copied().unwrap_or_default();
    let range = most - least;
    let part = |one: &i64| {
        if range == 0 {
            0
        } else {
            (one - least) * MOST / range
        }
    };
    raw.iter().map(part).collect()
}
