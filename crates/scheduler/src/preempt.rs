//! Making place for a pod by sending less important ones away: as few, as unimportant, and as little against
//! anybody's disruption budget as it can be done.

use std::{cmp::Reverse, sync::Arc};

use crate::{
    filter::Sight,
    node::NodeFacts,
    place::{Unplaceable, histogram},
    pod::{PodFacts, PodToPlace},
    snapshot::{NodeSlot, Snapshot},
    text::Text,
};

/// How many nodes are tried at least, and which share of those that could do, if there are more.
const FEWEST_CANDIDATES: usize = 100;
const SHARE_OF_CANDIDATES: usize = 10;

const NOT_HELPFUL: &str = "Preemption is not helpful for scheduling";
const NO_VICTIMS: &str = "No preemption victims found for incoming pod";

/// Who has to go for a pod, and from where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Preemption {
    pub(crate) node: Text,
    pub(crate) victims: Vec<Arc<PodFacts>>,
}

/// Why nobody goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoPreemption {
    pub(crate) message: String,
    /// Whether place is being made already, so that what is kept for the pod stays kept.
    pub(crate) waits: bool,
}

struct Candidate {
    node: usize,
    victims: Vec<Arc<PodFacts>>,
    violations: usize,
}

pub(crate) fn preempt(
    snapshot: &Snapshot,
    pod: &PodToPlace,
    why: &Unplaceable,
    start: usize,
) -> Result<Preemption, NoPreemption> {
    if let Some(message) = ineligible(snapshot, pod, why) {
        return Err(message);
    }
    let not_helpful = |reasons: Vec<(String, usize)>| NoPreemption {
        message: format!(
            "preemption: 0/{} nodes are available:{}",
            why.nodes,
            histogram(reasons.into_iter())
        ),
        waits: false,
    };
    let Ok(sight) = Sight::new(snapshot, pod) else {
        return Err(not_helpful(vec![(NOT_HELPFUL.to_owned(), why.nodes)]));
    };
    let possible = &why.resolvable;
    let enough = (possible.len() / SHARE_OF_CANDIDATES).max(FEWEST_CANDIDATES);
    let start = if possible.is_empty() {
        0
    } else {
        start % possible.len()
    };
    let mut candidates = Vec::new();
    let mut reasons = vec![(
        NOT_HELPFUL.to_owned(),
        why.nodes.saturating_sub(possible.len()),
    )];
    reasons.retain(|(_, count)| *count > 0);
    for node in possible[start..].iter().chain(&possible[..start]) {
        match candidate(snapshot, &sight, pod, *node) {
            Ok(candidate) => candidates.push(candidate),
            Err(why_not) => reasons.extend(why_not.into_iter().map(|reason| (reason, 1))),
        }
        if candidates.len() >= enough {
            break;
        }
    }
    let best = candidates.into_iter().min_by_key(cost);
    best.and_then(|best| {
        Some(Preemption {
            node: snapshot.slot(best.node)?.name.clone(),
            victims: best.victims,
        })
    })
    .ok_or_else(|| not_helpful(reasons))
}

fn ineligible(snapshot: &Snapshot, pod: &PodToPlace, why: &Unplaceable) -> Option<NoPreemption> {
    if !pod.may_preempt {
        return Some(NoPreemption {
            message: "preemption: not eligible due to preemptionPolicy=Never.".to_owned(),
            waits: false,
        });
    }
    let index = snapshot.index_of(pod.nominated.as_ref()?)?;
    let slot = snapshot.slot(index)?;
    let is_making_place =
        |other: &Arc<PodFacts>| other.is_preempted && other.priority < pod.facts.priority;
    let waits = why.resolvable.contains(&index) && slot.pods.iter().any(is_making_place);
    waits.then(|| NoPreemption {
        message: "preemption: not eligible due to a terminating pod on the nominated node."
            .to_owned(),
        waits: true,
    })
}

/// The more important first: by priority, then by how long they run.
fn importance(pod: &Arc<PodFacts>) -> (Reverse<i32>, i64) {
    (Reverse(pod.priority), pod.started.unwrap_or(i64::MAX))
}

/// Who would have to leave a node, or why that would not help.
fn candidate(
    snapshot: &Snapshot,
    sight: &Sight<'_>,
    pod: &PodToPlace,
    node: usize,
) -> Result<Candidate, Vec<String>> {
    let Some((facts, slot)) = snapshot.node(node) else {
        return Err(vec![NOT_HELPFUL.to_owned()]);
    };
    let less_important = |other: &&Arc<PodFacts>| other.priority < pod.facts.priority;
    let mut possible: Vec<Arc<PodFacts>> =
        slot.pods.iter().filter(less_important).cloned().collect();
    if possible.is_empty() {
        return Err(vec![NO_VICTIMS.to_owned()]);
    }
    possible.sort_by_key(importance);
    let mut trial = Trial::new(sight, facts, slot, pod, node);
    for other in &possible {
        trial.remove(other);
    }
    if let Err(refusal) = trial.check() {
        return Err(refusal.reasons.iter().map(ToString::to_string).collect());
    }
    let (violating, others) = split_by_budget(snapshot, possible);
    let mut victims = Vec::new();
    let mut violations = 0;
    for other in violating {
        if !trial.keeps(&other) {
            violations += 1;
            victims.push(other);
        }
    }
    victims.extend(others.into_iter().filter(|other| !trial.keeps(other)));
    victims.sort_by_key(importance);
    Ok(Candidate {
        node,
        victims,
        violations,
    })
}

/// A node as it would be with some pods gone.
struct Trial<'a> {
    sight: Sight<'a>,
    facts: &'a NodeFacts,
    usage: crate::node::Usage,
    node: usize,
}

impl<'a> Trial<'a> {
    fn new(
        sight: &Sight<'a>,
        facts: &'a NodeFacts,
        slot: &NodeSlot,
        pod: &PodToPlace,
        node: usize,
    ) -> Self {
        let mut trial = Self {
            sight: sight.clone(),
            facts,
            usage: slot.usage.clone(),
            node,
        };
        // Room that is kept for others of the same importance is not there to be taken.
        let is_kept = |other: &&Arc<PodFacts>| {
            other.priority >= pod.facts.priority && other.uid != pod.facts.uid
        };
        for other in slot.nominated.iter().filter(is_kept) {
            trial.add(other);
        }
        trial
    }

    fn add(&mut self, other: &PodFacts) {
        self.usage.add(other);
        self.sight.shift(other, self.node, 1);
    }

    fn remove(&mut self, other: &PodFacts) {
        self.usage.remove(other);
        self.sight.shift(other, self.node, -1);
    }

    fn check(&self) -> Result<(), crate::filter::Refusal> {
        self.sight.check_as(self.node, self.facts, &self.usage)
    }

    /// Takes a pod back, if the other still fits then.
    fn keeps(&mut self, other: &PodFacts) -> bool {
        self.add(other);
        let fits = self.check().is_ok();
        if !fits {
            self.remove(other);
        }
        fits
    }
}

type Pods = Vec<Arc<PodFacts>>;

/// Those whose budget would be overdrawn, and those who may go.
fn split_by_budget(snapshot: &Snapshot, pods: Pods) -> (Pods, Pods) {
    let mut allowed: Vec<_> = snapshot
        .budgets
        .iter()
        .filter(|(_, budget)| !budget.selector.is_empty())
        .map(|((namespace, _), budget)| (namespace, budget, budget.allowed))
        .collect();
    pods.into_iter().partition(|pod| {
        let mut is_violated = false;
        for (namespace, budget, left) in &mut allowed {
            if **namespace == pod.namespace
                && !pod.labels.is_empty()
                && budget.selector.matches(&pod.labels)
                && !budget.disrupted.contains(&pod.name)
            {
                *left -= 1;
                is_violated |= *left < 0;
            }
        }
        is_violated
    })
}

/// The lower the better: budgets, the highest priority, all priorities, the number, and how young they are.
fn cost(candidate: &Candidate) -> (usize, i32, i64, usize, Reverse<i64>) {
    let victims = &candidate.victims;
    let highest = victims
        .iter()
        .map(|pod| pod.priority)
        .max()
        .unwrap_or(i32::MIN);
    // Counted from the lowest priority there is, so that many unimportant ones weigh more than one.
    let sum = victims
        .iter()
        .map(|pod| i64::from(pod.priority) - i64::from(i32::MIN))
        .sum();
    let important = victims.iter().filter(|pod| pod.priority == highest);
    let earliest = important
        .map(|pod| pod.started.unwrap_or(i64::MAX))
        .min()
        .unwrap_or(i64::MAX);
    (
        candidate.violations,
        highest,
        sum,
        victims.len(),
        Reverse(earliest),
    )
}
