//! Fewer pods of the same kind in a place are better. Pods that say nothing are spread by their controller.

use super::{MOST, precise};
use crate::{
    filter::spread_counts,
    pod::{PodToPlace, Spread},
    snapshot::Snapshot,
    text::Text,
};

/// How uneven replicas may be on nodes and in zones before it counts, if nobody says so.
const SKEW_OF_NODES: i64 = 3;
const SKEW_OF_ZONES: i64 = 5;

/// A part for each node, or nothing if the pod has no kind.
pub(super) fn scores(snapshot: &Snapshot, pod: &PodToPlace, nodes: &[usize]) -> Option<Vec<i64>> {
    let raw = if pod.spread.is_empty() {
        by_owner(snapshot, pod.facts.owner.as_ref()?, nodes)?
    } else {
        let soft: Vec<&Spread> = pod.spread.iter().filter(|rule| !rule.must).collect();
        if soft.is_empty() {
            return None;
        }
        by_rules(snapshot, pod, &soft, nodes)
    };
    Some(normal(raw))
}

/// The more even the better. What a node without a label gets is nothing.
fn normal(raw: Vec<Option<f64>>) -> Vec<i64> {
    let whole: Vec<Option<i64>> = raw
        .into_iter()
        .map(|one| one.map(|one| super::rounded(one.round())))
        .collect();
    let least = whole.iter().flatten().min().copied().unwrap_or_default();
    let most = whole.iter().flatten().max().copied().unwrap_or_default();
    let part = |one: i64| {
        if most == 0 {
            MOST
        } else {
            MOST * (most + least - one) / most
        }
    };
    whole.into_iter().map(|one| one.map_or(0, part)).collect()
}

fn weight(places: usize) -> f64 {
    precise(i64::try_from(places + 2).unwrap_or(i64::MAX)).ln()
}

fn by_rules(
    snapshot: &Snapshot,
    pod: &PodToPlace,
    rules: &[&Spread],
    nodes: &[usize],
) -> Vec<Option<f64>> {
    let topologies: Vec<_> = rules
        .iter()
        .map(|rule| snapshot.topology(&rule.topology))
        .collect();
    let has_all_keys = |node: usize| topologies.iter().all(|one| one.domain(node).is_some());
    let mut raw: Vec<Option<f64>> = nodes
        .iter()
        .map(|node| has_all_keys(*node).then_some(0.0))
        .collect();
    for (rule, topology) in rules.iter().zip(&topologies) {
        let counts = spread_counts(snapshot, pod, rule, topology, has_all_keys);
        let mut seen = vec![false; topology.width()];
        for domain in nodes.iter().filter_map(|node| topology.domain(*node)) {
            seen[domain] = true;
        }
        let weight = weight(seen.iter().filter(|seen| **seen).count());
        for (node, sum) in nodes.iter().zip(&mut raw) {
            if let (Some(sum), Some(domain)) = (sum, topology.domain(*node)) {
                *sum += precise(counts[domain].max(0)) * weight + precise(rule.most_skew - 1);
            }
        }
    }
    raw
}

fn by_owner(snapshot: &Snapshot, owner: &Text, nodes: &[usize]) -> Option<Vec<Option<f64>>> {
    // Replicas that are nowhere yet make no node better than another.
    let on_nodes = snapshot.neighbours.of_owner(owner)?;
    let zones = snapshot.zones();
    let mut in_zones = vec![0_i64; zones.width()];
    for (node, count) in on_nodes {
        if let Some(zone) = zones.domain(*node) {
            in_zones[zone] += count;
        }
    }
    let mut seen = vec![false; zones.width()];
    for zone in nodes.iter().filter_map(|node| zones.domain(*node)) {
        seen[zone] = true;
    }
    let zone_weight = weight(seen.iter().filter(|seen| **seen).count());
    let node_weight = weight(nodes.len());
    let score = |node: &usize| {
        let here = on_nodes.get(node).copied().unwrap_or_default();
        let mut sum = precise(here) * node_weight + precise(SKEW_OF_NODES - 1);
        if let Some(zone) = zones.domain(*node) {
            sum += precise(in_zones[zone]) * zone_weight + precise(SKEW_OF_ZONES - 1);
        }
        Some(sum)
    };
    Some(nodes.iter().map(score).collect())
}
