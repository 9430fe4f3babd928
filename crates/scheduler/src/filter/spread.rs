//! Spreading pods evenly over places.

use std::borrow::Cow;

use super::{Refusal, untolerated};
use crate::{
    node::NodeFacts,
    pod::{PodFacts, PodToPlace, Spread},
    reason::Reason,
    snapshot::{Snapshot, Topology},
};

/// A place that does not count.
const OUT: i64 = -1;

/// How the pods that one rule is about are spread now.
#[derive(Clone)]
struct RuleSight<'a> {
    rule: &'a Spread,
    topology: Cow<'a, Topology>,
    /// Pods in each place, or [`OUT`].
    counts: Vec<i64>,
    /// Whether the pod itself is one of those that the rule is about.
    counts_itself: i64,
}

/// All rules that must hold.
#[derive(Clone)]
pub(super) struct SpreadSight<'a> {
    rules: Vec<RuleSight<'a>>,
    least: Vec<i64>,
}

/// Whether a node takes part in a rule.
fn takes_part(rule: &Spread, pod: &PodToPlace, node: &NodeFacts) -> bool {
    (!rule.honours_affinity || pod.need.is_met_by(node))
        && (!rule.honours_taints || untolerated(pod, node).is_none())
}

/// Pods in each place that a rule is about; places are those of nodes that `is_in` and that have all keys.
pub(crate) fn counts(
    snapshot: &Snapshot,
    pod: &PodToPlace,
    rule: &Spread,
    topology: &Topology,
    has_all_keys: impl Fn(usize) -> bool,
) -> Vec<i64> {
    let mut counts = vec![OUT; topology.width()];
    let is_plain = !rule.honours_taints && (!rule.honours_affinity || pod.need.is_nothing());
    let is_in = |index: usize| {
        has_all_keys(index)
            && (is_plain
                || snapshot
                    .node(index)
                    .is_some_and(|(node, _)| takes_part(rule, pod, node)))
    };
    for index in snapshot.order() {
        if let Some(domain) = topology.domain(*index)
            && counts[domain] == OUT
            && is_in(*index)
        {
            counts[domain] = 0;
        }
    }
    let others = snapshot
        .neighbours
        .selected(&pod.facts.namespace, &rule.selector);
    for other in others.filter(|other| !other.facts.is_leaving) {
        if let Some(domain) = topology.domain(other.node)
            && counts[domain] != OUT
            && is_in(other.node)
        {
            counts[domain] += 1;
        }
    }
    counts
}

impl<'a> SpreadSight<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, pod: &'a PodToPlace) -> Self {
        let hard = pod.spread.iter().filter(|rule| rule.must);
        let topologies: Vec<_> = hard
            .clone()
            .map(|rule| snapshot.topology(&rule.topology))
            .collect();
        let has_all_keys = |node: usize| {
            topologies
                .iter()
                .all(|topology| topology.domain(node).is_some())
        };
        let rules: Vec<_> = hard
            .zip(&topologies)
            .map(|(rule, topology)| RuleSight {
                rule,
                counts: counts(snapshot, pod, rule, topology, has_all_keys),
                topology: topology.clone(),
                counts_itself: i64::from(rule.selector.matches(&pod.facts.labels)),
            })
            .collect();
        let mut sight = Self {
            least: Vec::new(),
            rules,
        };
        sight.measure();
        sight
    }

    fn measure(&mut self) {
        self.least = self.rules.iter().map(RuleSight::least).collect();
    }

    pub(super) fn check(&self, index: usize) -> Result<(), Refusal> {
        for (rule, least) in self.rules.iter().zip(&self.least) {
            let Some(domain) = rule.topology.domain(index) else {
                return Err(Reason::SpreadWithoutLabel.into());
            };
            let here = rule.counts[domain].max(0);
            if here + rule.counts_itself - least > rule.rule.most_skew {
                return Err(Reason::Spread.into());
            }
        }
        Ok(())
    }

    pub(super) fn shift(&mut self, pod: &PodToPlace, other: &PodFacts, node: usize, by: i64) {
        if self.rules.is_empty() || other.is_leaving || other.namespace != pod.facts.namespace {
            return;
        }
        for rule in &mut self.rules {
            if let Some(domain) = rule.topology.domain(node)
                && rule.counts[domain] != OUT
                && rule.rule.selector.matches(&other.labels)
            {
                rule.counts[domain] += by;
            }
        }
        self.measure();
    }
}

impl RuleSight<'_> {
    /// The fewest pods that any place has.
    fn least(&self) -> i64 {
        let taking_part = self.counts.iter().filter(|count| **count != OUT);
        let domains = taking_part.clone().count();
        if self.rule.least_domains.is_some_and(|least| domains < least) {
            return 0;
        }
        taking_part.min().copied().unwrap_or_default()
    }
}
