//! Being near to some pods and far from others.

use std::{borrow::Cow, collections::HashMap};

use super::Refusal;
use crate::{
    pod::{PodFacts, PodTerm, PodToPlace, TermKind},
    reason::Reason,
    snapshot::{Snapshot, Topology},
    text::Text,
};

/// Pods in each place.
#[derive(Clone)]
struct Counts<'a> {
    topology: Cow<'a, Topology>,
    counts: Vec<i64>,
}

impl<'a> Counts<'a> {
    fn none(snapshot: &'a Snapshot, key: &Text) -> Self {
        let topology = snapshot.topology(key);
        Self {
            counts: vec![0; topology.width()],
            topology,
        }
    }

    fn add(&mut self, node: usize, by: i64) {
        if let Some(domain) = self.topology.domain(node) {
            self.counts[domain] += by;
        }
    }

    fn at(&self, node: usize) -> Option<i64> {
        self.topology.domain(node).map(|domain| self.counts[domain])
    }
}

/// Who is where, as far as it matters for one pod.
#[derive(Clone)]
pub(crate) struct NeighbourSight<'a> {
    /// For each thing that the pod must be near to: pods that are all of them.
    needs: Vec<(&'a PodTerm, Counts<'a>)>,
    /// Whether the pod is itself what it must be near to, so that it may be the first.
    is_its_own_need: bool,
    refuses: Vec<(&'a PodTerm, Counts<'a>)>,
    /// Places where somebody does not want the pod.
    unwelcome: HashMap<Text, Counts<'a>>,
}

/// Whether a term means a pod.
pub(crate) fn means(snapshot: &Snapshot, term: &PodTerm, pod: &PodFacts) -> bool {
    term.means(
        &pod.namespace,
        snapshot.namespaces.get(&pod.namespace),
        &pod.labels,
    )
}

impl<'a> NeighbourSight<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, pod: &'a PodToPlace) -> Self {
        let of_kind = |kind| {
            let terms = pod.facts.terms.iter().map(|one| &one.term);
            terms.filter(move |term| term.kind == kind)
        };
        let mut sight = Self {
            needs: of_kind(TermKind::Needs)
                .map(|term| (term, Counts::none(snapshot, &term.topology)))
                .collect(),
            is_its_own_need: of_kind(TermKind::Needs).all(|term| means(snapshot, term, &pod.facts)),
            refuses: of_kind(TermKind::Refuses)
                .map(|term| (term, Counts::none(snapshot, &term.topology)))
                .collect(),
            unwelcome: HashMap::new(),
        };
        if let Some(first) = of_kind(TermKind::Needs).next() {
            for other in snapshot.neighbours.meant(first, &snapshot.namespaces) {
                sight.shift_needs(snapshot, &other.facts, other.node, 1);
            }
        }
        for (term, counts) in &mut sight.refuses {
            for other in snapshot.neighbours.meant(term, &snapshot.namespaces) {
                counts.add(other.node, 1);
            }
        }
        for (term, holders) in snapshot.neighbours.wishes() {
            if term.kind == TermKind::Refuses && means(snapshot, term, &pod.facts) {
                let counts = sight
                    .unwelcome
                    .entry(term.topology.clone())
                    .or_insert_with(|| Counts::none(snapshot, &term.topology));
                for (node, number) in holders {
                    counts.add(*node, *number);
                }
            }
        }
        sight
    }

    pub(super) fn check(&self, node: usize) -> Result<(), Refusal> {
        if !self.needs.is_empty() && !self.is_near_enough(node) {
            return Err(Reason::PodAffinity.into());
        }
        if self
            .refuses
            .iter()
            .any(|(_, counts)| counts.at(node).is_some_and(|count| count > 0))
        {
            return Err(Reason::PodAntiAffinity.into());
        }
        if self
            .unwelcome
            .values()
            .any(|counts| counts.at(node).is_some_and(|count| count > 0))
        {
            return Err(Reason::ExistingAntiAffinity.into());
        }
        Ok(())
    }

    fn is_near_enough(&self, node: usize) -> bool {
        let has_keys = self
            .needs
            .iter()
            .all(|(_, counts)| counts.at(node).is_some());
        if !has_keys {
            return false;
        }
        if self
            .needs
            .iter()
            .all(|(_, counts)| counts.at(node).is_some_and(|count| count > 0))
        {
            return true;
        }
        // The first of a group that wants to be together may be anywhere.
        self.is_its_own_need
            && self
                .needs
                .iter()
                .all(|(_, counts)| counts.counts.iter().all(|count| *count == 0))
    }

    fn shift_needs(&mut self, snapshot: &Snapshot, other: &PodFacts, node: usize, by: i64) {
        if self
            .needs
            .iter()
            .all(|(term, _)| means(snapshot, term, other))
        {
            for (_, counts) in &mut self.needs {
                counts.add(node, by);
            }
        }
    }

    pub(super) fn shift(
        &mut self,
        snapshot: &'a Snapshot,
        pod: &PodToPlace,
        other: &PodFacts,
        node: usize,
        by: i64,
    ) {
        if !self.needs.is_empty() {
            self.shift_needs(snapshot, other, node, by);
        }
        for (term, counts) in &mut self.refuses {
            if means(snapshot, term, other) {
                counts.add(node, by);
            }
        }
        for one in &other.terms {
            if one.term.kind == TermKind::Refuses && means(snapshot, &one.term, &pod.facts) {
                let topology = &one.term.topology;
                self.unwelcome
                    .entry(topology.clone())
                    .or_insert_with(|| Counts::none(snapshot, topology))
                    .add(node, by);
            }
        }
    }
}
