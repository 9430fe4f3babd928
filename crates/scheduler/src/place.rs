//! The decision itself: a snapshot and a pod in, a node or the reasons why none out.

use std::collections::BTreeMap;

use crate::{
    filter::{Refusal, Sight},
    images,
    pod::PodToPlace,
    profile::Profile,
    reason::Reason,
    score::scores,
    snapshot::{ClaimPlan, Snapshot, Topology},
    text::Text,
};

/// Where a pod goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    Node(Place),
    Unplaceable(Unplaceable),
}

/// The node of a pod, and what becomes of its claims there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub node: Text,
    pub claims: Vec<ClaimPlan>,
    /// Where its ports are, if it asked for an address.
    pub address: Option<Text>,
}

/// Why a pod can go nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unplaceable {
    pub nodes: usize,
    /// Why no node was even looked at.
    pub whole: Option<String>,
    /// Reasons, and how many nodes each is for.
    pub reasons: Vec<(Reason, usize)>,
    /// What image needs which machines, if that is why.
    pub need: Option<String>,
    /// Nodes where fewer pods could help.
    pub(crate) resolvable: Vec<usize>,
}

impl Unplaceable {
    fn of(snapshot: &Snapshot, pod: &PodToPlace, refusals: Vec<(usize, Refusal)>) -> Self {
        let mut resolvable = Vec::new();
        let mut reasons: Vec<(Reason, usize)> = Vec::new();
        for (index, refusal) in refusals {
            if refusal.is_resolvable {
                resolvable.push(index);
            }
            for reason in refusal.reasons {
                // There are never more than a handful of different ones.
                match reasons.iter_mut().find(|(known, _)| *known == reason) {
                    Some((_, count)) => *count += 1,
                    None => reasons.push((reason, 1)),
                }
            }
        }
        Self {
            nodes: snapshot.node_count(),
            whole: None,
            need: need(snapshot, pod, &reasons),
            reasons,
            resolvable,
        }
    }

    /// The sentence that people know.
    pub fn message(&self) -> String {
        if self.nodes == 0 && self.whole.is_none() {
            return "no nodes available to schedule pods".to_owned();
        }
        let counts = self.reasons.iter();
        let counts = counts.map(|(reason, count)| (reason.to_string(), *count));
        let why = match &self.whole {
            Some(whole) => format!(" {whole}."),
            None => histogram(counts),
        };
        let need = self.need.as_ref().map(|need| format!(" {need}."));
        let need = need.unwrap_or_default();
        format!("0/{} nodes are available:{why}{need}", self.nodes)
    }
}

/// Reasons with counts, sorted as the text that they are.
pub(crate) fn histogram(reasons: impl Iterator<Item = (String, usize)>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (reason, count) in reasons {
        *counts.entry(reason).or_default() += count;
    }
    let mut texts: Vec<String> = counts
        .into_iter()
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    texts.sort();
    if texts.is_empty() {
        String::new()
    } else {
        format!(" {}.", texts.join(", "))
    }
}

/// What people must do when the machines are of the wrong kind: which kind is needed, and which there are.
fn need(snapshot: &Snapshot, pod: &PodToPlace, reasons: &[(Reason, usize)]) -> Option<String> {
    let image = reasons.iter().find_map(|(reason, _)| match reason {
        Reason::Platform { image } => Some(image),
        _ => None,
    })?;
    let platforms = snapshot.images.platforms(image)?;
    let can_run = |index: &usize| {
        let node = snapshot.node(*index);
        node.is_none_or(|(node, _)| images::can_run(node, image, platforms, pod.is_host_process))
    };
    if snapshot.order().iter().any(can_run) {
        return None;
    }
    let there = snapshot.platforms();
    let there: Vec<String> = there
        .into_iter()
        .map(|(platform, count)| format!("{platform} ({count})"))
        .collect();
    Some(format!(
        "No node can ever run image {image}: it {}; there are {}",
        images::need(platforms),
        there.join(", ")
    ))
}

/// Decides with the usual opinions, beginning at the first node.
pub fn place(snapshot: &Snapshot, pod: &PodToPlace) -> Placement {
    Placer::new(Profile::default()).place(snapshot, pod)
}

/// Decides for many pods, and begins to look where it ended the last time.
#[derive(Clone, Debug)]
pub struct Placer {
    pub(crate) profile: Profile,
    start: usize,
}

impl Placer {
    pub fn new(profile: Profile) -> Self {
        Self { profile, start: 0 }
    }

    pub fn place(&mut self, snapshot: &Snapshot, pod: &PodToPlace) -> Placement {
        let sight = match Sight::new(snapshot, pod) {
            Ok(sight) => sight,
            Err(whole) => {
                return Placement::Unplaceable(Unplaceable {
                    nodes: snapshot.node_count(),
                    whole: Some(whole),
                    reasons: Vec::new(),
                    need: None,
                    resolvable: Vec::new(),
                });
            }
        };
        if let Some(place) = nominated(snapshot, pod, &sight) {
            return Placement::Node(place);
        }
        let (good, refusals) = self.look(snapshot, pod, &sight);
        let best = match good[..] {
            [] => return Placement::Unplaceable(Unplaceable::of(snapshot, pod, refusals)),
            [only] => only,
            _ => best(snapshot, &self.profile, pod, &good),
        };
        Placement::Node(Place {
            node: snapshot
                .slot(best)
                .map_or_else(|| Text::from(""), |slot| slot.name.clone()),
            claims: sight.claim_plans(best),
            address: sight.address(best),
        })
    }

    /// Looks at nodes until there are enough good ones. Why others are not is told only if none is good.
    fn look(
        &mut self,
        snapshot: &Snapshot,
        pod: &PodToPlace,
        sight: &Sight<'_>,
    ) -> (Vec<usize>, Vec<(usize, Refusal)>) {
        let order = snapshot.order();
        let enough = self.profile.enough(order.len());
        let start = if order.is_empty() {
            0
        } else {
            self.start % order.len()
        };
        let mut good = Vec::with_capacity(enough);
        let mut refusals = Vec::new();
        let mut looked_at = 0;
        let chosen = Chosen::new(snapshot, pod);
        for index in order[start..].iter().chain(&order[..start]) {
            looked_at += 1;
            if !chosen.may_be(*index) {
                continue;
            }
            match sight.check(*index) {
                Ok(()) => good.push(*index),
                Err(refusal) => refusals.push((*index, refusal)),
            }
            if good.len() >= enough {
                break;
            }
        }
        self.start = start + looked_at;
        if good.is_empty() {
            let others = order.iter().filter(|index| !chosen.may_be(**index));
            let refused = others.filter_map(|index| Some((*index, sight.check(*index).err()?)));
            refusals.extend(refused);
        }
        (good, refusals)
    }
}

/// What a node selector leaves, found by comparing numbers: most nodes are refused for their labels, and texts
/// would be most of the work.
struct Chosen<'a> {
    /// Where a node must be, as far as a label is remembered as places.
    places: Vec<(&'a Topology, Option<usize>)>,
}

impl<'a> Chosen<'a> {
    fn new(snapshot: &'a Snapshot, pod: &PodToPlace) -> Self {
        let places = pod.need.pairs().filter_map(|(key, value)| {
            let topology = snapshot.remembered_topology(key)?;
            Some((topology, topology.named(value)))
        });
        Self {
            places: places.collect(),
        }
    }

    /// Wrong only by saying yes.
    fn may_be(&self, index: usize) -> bool {
        let mut places = self.places.iter();
        places.all(|(topology, place)| place.is_some() && topology.domain(index) == *place)
    }
}

/// A pod for which others made place goes there, if it can.
fn nominated(snapshot: &Snapshot, pod: &PodToPlace, sight: &Sight<'_>) -> Option<Place> {
    let name = pod.nominated.as_ref()?;
    let index = snapshot.index_of(name)?;
    sight.check(index).ok()?;
    Some(Place {
        node: name.clone(),
        claims: sight.claim_plans(index),
        address: sight.address(index),
    })
}

/// The first of those with the highest score. Where the look began changes each time, so equals take turns.
fn best(snapshot: &Snapshot, profile: &Profile, pod: &PodToPlace, good: &[usize]) -> usize {
    let scores = scores(snapshot, profile, pod, good);
    let mut best = (i64::MIN, good[0]);
    for (index, score) in good.iter().zip(scores) {
        let total = score.total();
        if total > best.0 {
            best = (total, *index);
        }
    }
    best.1
}
