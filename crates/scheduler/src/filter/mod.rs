//! Whether a pod can go to a node.
//!
//! What is the same for all nodes is worked out once per pod, as a [`Sight`]; after that a node is checked
//! without looking at any other node. A sight can be shifted, as if a pod were or were not somewhere, so that
//! what would be is answered by the same code as what is.

mod neighbours;
mod platform;
mod spread;
mod volumes;

pub(crate) use neighbours::means;
pub(crate) use spread::counts as spread_counts;

use std::sync::Arc;

use crate::{
    node::{Effect, NodeFacts, Taint, Usage},
    pod::{PodFacts, PodToPlace, Toleration},
    reason::Reason,
    resources::{CPU, MEMORY, STORAGE},
    snapshot::{ClaimPlan, NodeSlot, Snapshot},
    text::Text,
};

/// Why a pod cannot go to one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub reasons: Vec<Reason>,
    /// Whether fewer pods on the node could help.
    pub is_resolvable: bool,
}

impl From<Reason> for Refusal {
    fn from(reason: Reason) -> Self {
        Self {
            is_resolvable: reason.is_resolvable(),
            reasons: vec![reason],
        }
    }
}

/// What a pod sees of the cluster, whichever node it looks at.
#[derive(Clone)]
pub(crate) struct Sight<'a> {
    snapshot: &'a Snapshot,
    pod: &'a PodToPlace,
    platforms: platform::PlatformSight<'a>,
    volumes: volumes::VolumeSight<'a>,
    spread: spread::SpreadSight<'a>,
    neighbours: neighbours::NeighbourSight<'a>,
}

impl<'a> Sight<'a> {
    /// Looks around; fails with a sentence when no node at all can do.
    pub(crate) fn new(snapshot: &'a Snapshot, pod: &'a PodToPlace) -> Result<Self, String> {
        Ok(Self {
            snapshot,
            pod,
            platforms: platform::PlatformSight::new(snapshot, pod),
            volumes: volumes::VolumeSight::new(snapshot, pod)?,
            spread: spread::SpreadSight::new(snapshot, pod),
            neighbours: neighbours::NeighbourSight::new(snapshot, pod),
        })
    }

    /// Whether the pod can go to a node, with those that room is kept for, and also without them: they may
    /// be what it needs to be near to, but they may also never come.
    pub(crate) fn check(&self, index: usize) -> Result<(), Refusal> {
        let Some((facts, slot)) = self.snapshot.node(index) else {
            return Err(Reason::NodeAffinity.into());
        };
        let own = &self.pod.facts;
        let is_kept =
            |other: &&Arc<PodFacts>| other.priority >= own.priority && other.uid != own.uid;
        if slot.nominated.iter().any(|other| is_kept(&other)) {
            let mut sight = self.clone();
            let mut usage = slot.usage.clone();
            for other in slot.nominated.iter().filter(is_kept) {
                usage.add(other);
                sight.shift(other, index, 1);
            }
            sight.check_as(index, facts, &usage)?;
        }
        self.check_as(index, facts, &slot.usage)
    }

    /// Whether the pod could go to a node if that were used like this.
    pub(crate) fn check_as(
        &self,
        index: usize,
        node: &NodeFacts,
        usage: &Usage,
    ) -> Result<(), Refusal> {
        let pod = self.pod;
        schedulable(pod, node, &self.snapshot.unschedulable)?;
        untainted(pod, node)?;
        if !pod.need.is_met_by(node) {
            return Err(Reason::NodeAffinity.into());
        }
        if !node.admission.admits(&pod.facts.labels) {
            return Err(Reason::Admission.into());
        }
        self.platforms.check(node)?;
        free_ports(pod, node, usage)?;
        room(&pod.facts, node, usage)?;
        self.volumes.check(node)?;
        self.spread.check(index)?;
        self.neighbours.check(index)
    }

    /// Sees a pod on a node where there is none, or none where there is one.
    pub(crate) fn shift(&mut self, other: &PodFacts, node: usize, by: i64) {
        self.spread.shift(self.pod, other, node, by);
        self.neighbours
            .shift(self.snapshot, self.pod, other, node, by);
        self.volumes.shift(self.pod, other, by);
    }

    /// The address of the pod's ports on a node that was found good, if it wants one.
    pub(crate) fn address(&self, node: usize) -> Option<Text> {
        let (facts, slot) = self
            .snapshot
            .node(node)
            .filter(|_| self.pod.wants_address)?;
        free_address(self.pod, facts, &slot.usage).cloned()
    }

    /// What becomes of the pod's claims on a node that was found good.
    pub(crate) fn claim_plans(&self, node: usize) -> Vec<ClaimPlan> {
        let facts = self.snapshot.node(node).map(|(facts, _)| facts);
        facts
            .and_then(|facts| self.volumes.plans(facts))
            .unwrap_or_default()
    }
}

/// Whether a node has what a pod wants of it, whoever else is around. Quick, and wrong only by saying yes.
pub(crate) fn could_host(snapshot: &Snapshot, pod: &PodToPlace, index: usize) -> bool {
    snapshot.node(index).is_some_and(|(node, slot)| {
        schedulable(pod, node, &snapshot.unschedulable).is_ok()
            && untainted(pod, node).is_ok()
            && pod.need.is_met_by(node)
            && node.admission.admits(&pod.facts.labels)
            && (fits(pod, node, &slot.usage) || could_clear(pod, node, slot))
    })
}

fn fits(pod: &PodToPlace, node: &NodeFacts, usage: &Usage) -> bool {
    free_ports(pod, node, usage).is_ok() && room(&pod.facts, node, usage).is_ok()
}

/// Whether a pod would fit if those went who are less important.
fn could_clear(pod: &PodToPlace, node: &NodeFacts, slot: &NodeSlot) -> bool {
    let less_important = |other: &&Arc<PodFacts>| other.priority < pod.facts.priority;
    let mut others = slot.pods.iter().filter(less_important).peekable();
    if !pod.may_preempt || others.peek().is_none() {
        return false;
    }
    let mut usage = slot.usage.clone();
    for other in others {
        usage.remove(other);
    }
    fits(pod, node, &usage)
}

fn tolerates(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|one| one.tolerates(taint))
}

fn schedulable(pod: &PodToPlace, node: &NodeFacts, taint: &Taint) -> Result<(), Refusal> {
    if node.is_unschedulable && !tolerates(&pod.tolerations, taint) {
        return Err(Reason::Unschedulable.into());
    }
    Ok(())
}

/// The first taint that keeps a pod away from a node.
pub(crate) fn untolerated<'a>(pod: &PodToPlace, node: &'a NodeFacts) -> Option<&'a Taint> {
    node.taints.iter().find(|taint| {
        matches!(taint.effect, Effect::NoSchedule | Effect::NoExecute)
            && !tolerates(&pod.tolerations, taint)
    })
}

fn untainted(pod: &PodToPlace, node: &NodeFacts) -> Result<(), Refusal> {
    match untolerated(pod, node) {
        Some(taint) => Err(Reason::Taint {
            key: taint.key.clone(),
            value: taint.value.clone(),
        }
        .into()),
        None => Ok(()),
    }
}

fn free_ports(pod: &PodToPlace, node: &NodeFacts, usage: &Usage) -> Result<(), Refusal> {
    if pod.facts.ports.is_empty() {
        return Ok(());
    }
    if pod.wants_address {
        return match free_address(pod, node, usage) {
            Some(_) => Ok(()),
            None => Err(Reason::PortPool.into()),
        };
    }
    let collides = |port| usage.ports.iter().any(|used| used.collides(port));
    if pod.facts.ports.iter().any(collides) {
        return Err(Reason::Ports.into());
    }
    Ok(())
}

/// The first address of a node at which all ports of a pod are free.
fn free_address<'a>(pod: &PodToPlace, node: &'a NodeFacts, usage: &Usage) -> Option<&'a Text> {
    node.addresses.iter().find(|address| {
        pod.facts.ports.iter().all(|port| {
            let port = port.at(address);
            !usage.ports.iter().any(|used| used.collides(&port))
        })
    })
}

fn room(pod: &PodFacts, node: &NodeFacts, usage: &Usage) -> Result<(), Refusal> {
    let (wants, has, used) = (&pod.requests, &node.allocatable, &usage.requested);
    let fits = |wants: i64, has: i64, used: i64| wants == 0 || wants <= has.saturating_sub(used);
    // Almost every node that is looked at has room, so that is found out first.
    if usage.pods < node.most_pods
        && fits(wants.cpu, has.cpu, used.cpu)
        && fits(wants.memory, has.memory, used.memory)
        && fits(wants.storage, has.storage, used.storage)
        && wants
            .others
            .iter()
            .all(|(name, amount)| fits(*amount, has.other(name), used.other(name)))
    {
        return Ok(());
    }
    let mut refusal = Refusal {
        reasons: Vec::new(),
        is_resolvable: true,
    };
    if usage.pods >= node.most_pods {
        refusal.reasons.push(Reason::TooManyPods);
        refusal.is_resolvable &= node.most_pods > 0;
    }
    let mut look = |name: &str, wants: i64, has: i64, used: i64| {
        if !fits(wants, has, used) {
            refusal.reasons.push(Reason::Insufficient(Text::from(name)));
            refusal.is_resolvable &= wants <= has;
        }
    };
    look(CPU, wants.cpu, has.cpu, used.cpu);
    look(MEMORY, wants.memory, has.memory, used.memory);
    look(STORAGE, wants.storage, has.storage, used.storage);
    for (name, amount) in &wants.others {
        look(name, *amount, has.other(name), used.other(name));
    }
    Err(refusal)
}
