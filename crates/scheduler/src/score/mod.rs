//! Which of the nodes that a pod can go to is best.
//!
//! Each part is a number from 0 to 100 times its weight; parts that would be the same for all nodes are left
//! out when nobody asked for them.

mod neighbours;
mod spread;

use crate::{
    node::{Effect, NodeFacts, Usage},
    pod::PodToPlace,
    profile::{Packing, Profile},
    snapshot::Snapshot,
};

/// The most that a part can be before it is weighed.
pub(crate) const MOST: i64 = 100;

/// What each part gives a node, weighed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    pub taints: i64,
    pub affinity: i64,
    pub resources: i64,
    pub balance: i64,
    pub images: i64,
    pub spread: i64,
    pub neighbours: i64,
}

impl Score {
    pub fn total(&self) -> i64 {
        self.taints
            + self.affinity
            + self.resources
            + self.balance
            + self.images
            + self.spread
            + self.neighbours
    }
}

/// The score of each of some nodes, in their order.
pub(crate) fn scores(
    snapshot: &Snapshot,
    profile: &Profile,
    pod: &PodToPlace,
    nodes: &[usize],
) -> Vec<Score> {
    let mut scores = vec![Score::default(); nodes.len()];
    let weights = &profile.weights;
    let images = known_images(snapshot, pod);
    for (index, score) in nodes.iter().zip(&mut scores) {
        if let Some((node, slot)) = snapshot.node(*index) {
            let usage = &slot.usage;
            score.resources = weights.resources * resources(profile.packing, pod, node, usage);
            score.balance = weights.balance * balance(pod, node, usage);
            score.images = weights.images * locality(snapshot, &images, pod, node);
            score.taints = disliked_taints(pod, node);
            score.affinity = preferred(pod, node);
        }
    }
    // The fewer taints the better: the most that any node has makes it 0.
    let worst = scores
        .iter()
        .map(|score| score.taints)
        .max()
        .unwrap_or_default();
    let best = scores
        .iter()
        .map(|score| score.affinity)
        .max()
        .unwrap_or_default();
    for score in &mut scores {
        score.taints = weights.taints * MOST.saturating_sub(share(score.taints, worst));
        score.affinity = weights.affinity * share(score.affinity, best);
    }
    if let Some(parts) = spread::scores(snapshot, pod, nodes) {
        for (score, part) in scores.iter_mut().zip(parts) {
            score.spread = weights.spread * part;
        }
    }
    if let Some(parts) = neighbours::scores(snapshot, pod, nodes) {
        for (score, part) in scores.iter_mut().zip(parts) {
            score.neighbours = weights.neighbours * part;
        }
    }
    scores
}

/// What a value is of the most there is, from 0 to 100.
fn share(value: i64, most: i64) -> i64 {
    if most == 0 { 0 } else { value * MOST / most }
}

fn disliked_taints(pod: &PodToPlace, node: &NodeFacts) -> i64 {
    let disliked = node.taints.iter().filter(|taint| {
        taint.effect == Effect::PreferNoSchedule
            && !pod
                .tolerations
                .iter()
                .any(|one| one.is_for_preference() && one.tolerates(taint))
    });
    i64::try_from(disliked.count()).unwrap_or(i64::MAX / MOST)
}

fn preferred(pod: &PodToPlace, node: &NodeFacts) -> i64 {
    let met = pod
        .preferences
        .iter()
        .filter(|(_, term)| term.matches(node));
    met.map(|(weight, _)| weight).sum()
}

fn resources(packing: Packing, pod: &PodToPlace, node: &NodeFacts, usage: &Usage) -> i64 {
    let has = &node.allocatable;
    let part = |has: i64, used: i64, wants: i64| {
        let used = used + wants;
        if has == 0 || used > has {
            return 0;
        }
        let counted = match packing {
            Packing::Spread => has - used,
            Packing::Fill => used,
        };
        wide_share(counted, has)
    };
    let wants = pod.facts.padded;
    let parts = [
        (has.cpu, part(has.cpu, usage.padded.0, wants.0)),
        (has.memory, part(has.memory, usage.padded.1, wants.1)),
    ];
    // What a node does not have at all says nothing about it.
    let counted = parts.iter().filter(|(has, _)| *has > 0);
    let number = i64::try_from(counted.clone().count()).unwrap_or(1).max(1);
    counted.map(|(_, part)| part).sum::<i64>() / number
}

/// Bytes times a hundred may be more than fits.
fn wide_share(value: i64, most: i64) -> i64 {
    i64::try_from(i128::from(value) * i128::from(MOST) / i128::from(most)).unwrap_or(MOST)
}

/// How alike the shares of processor and memory would be that are in use.
fn balance(pod: &PodToPlace, node: &NodeFacts, usage: &Usage) -> i64 {
    let wants = &pod.facts.requests;
    if wants.cpu == 0 && wants.memory == 0 {
        return 0;
    }
    let (has, used) = (&node.allocatable, &usage.requested);
    let fraction = |has: i64, used: i64| {
        if has == 0 {
            1.0
        } else {
            (precise(used) / precise(has)).min(1.0)
        }
    };
    let cpu = fraction(has.cpu, used.cpu + wants.cpu);
    let memory = fraction(has.memory, used.memory + wants.memory);
    let deviation = (cpu - memory).abs() / 2.0;
    rounded((1.0 - deviation) * precise(MOST))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a score needs no more than three digits"
)]
pub(crate) fn precise(value: i64) -> f64 {
    value as f64
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "scores are far smaller than what fits"
)]
pub(crate) fn rounded(value: f64) -> i64 {
    value.trunc() as i64
}

/// Images of the pod that any node has, with how widely they are known.
fn known_images<'a>(
    snapshot: &Snapshot,
    pod: &'a PodToPlace,
) -> Vec<(&'a crate::text::Text, usize)> {
    let images = pod.images.iter();
    images
        .filter_map(|image| Some((image, *snapshot.image_nodes.get(image)?)))
        .collect()
}

fn locality(
    snapshot: &Snapshot,
    images: &[(&crate::text::Text, usize)],
    pod: &PodToPlace,
    node: &NodeFacts,
) -> i64 {
    const LEAST: i64 = 23 * 1024 * 1024;
    const MOST_EACH: i64 = 1000 * 1024 * 1024;
    if images.is_empty() {
        return 0;
    }
    let nodes = i64::try_from(snapshot.node_count()).unwrap_or(1).max(1);
    let most = MOST_EACH * i64::try_from(pod.images.len()).unwrap_or(1);
    let here: i64 = images
        .iter()
        .map(|(name, known)| {
            // An image that few nodes have counts less, or all its pods would go to those few.
            let known = i64::try_from(*known).unwrap_or(nodes);
            i64::try_from(i128::from(node.image_size(name)) * i128::from(known) / i128::from(nodes))
                .unwrap_or(most)
        })
        .sum();
    MOST * (here.clamp(LEAST, most) - LEAST) / (most - LEAST)
}
