//! Which pods are where, found by namespace and labels, and what they want of pods to come.
//!
//! Equal wishes of many pods are one entry with the nodes of those who have it, so the wishes of a thousand
//! replicas cost as much as those of one.

use std::collections::{HashMap, HashSet};

use super::Resident;
use crate::{
    labels::{Labels, Selector},
    pod::{PodFacts, PodTerm},
    text::Text,
};

type Slot = u32;

/// Nodes whose pods have a wish, with the sum of its weights.
pub(crate) type Holders = HashMap<usize, i64>;

#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    slots: Vec<Option<Resident>>,
    free: Vec<Slot>,
    slot_of: HashMap<Text, Slot>,
    by_namespace: HashMap<Text, HashSet<Slot>>,
    by_pair: HashMap<(Text, Text, Text), HashSet<Slot>>,
    wishes: HashMap<PodTerm, Holders>,
    /// How many pods of a controller a node has.
    by_owner: HashMap<Text, HashMap<usize, i64>>,
}

impl Neighbours {
    pub(crate) fn get(&self, uid: &str) -> Option<&Resident> {
        let slot = *self.slot_of.get(uid)?;
        self.slots.get(slot as usize)?.as_ref()
    }

    pub(crate) fn len(&self) -> usize {
        self.slot_of.len()
    }

    pub(crate) fn insert(&mut self, resident: Resident) {
        let facts = resident.facts.clone();
        let node = resident.node;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            Slot::try_from(self.slots.len() - 1).unwrap_or(Slot::MAX)
        });
        self.slots[slot as usize] = Some(resident);
        self.slot_of.insert(facts.uid.clone(), slot);
        let namespace = &facts.namespace;
        self.by_namespace
            .entry(namespace.clone())
            .or_default()
            .insert(slot);
        for (key, value) in facts.labels.iter() {
            let pair = (namespace.clone(), key.clone(), value.clone());
            self.by_pair.entry(pair).or_default().insert(slot);
        }
        self.change_wishes(&facts, node, 1);
        self.change_owner(&facts, node, 1);
    }

    pub(crate) fn remove(&mut self, uid: &str) -> Option<Resident> {
        let slot = self.slot_of.remove(uid)?;
        let resident = self.slots.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        let facts = &resident.facts;
        let namespace = &facts.namespace;
        drop_from(&mut self.by_namespace, namespace.clone(), slot);
        for (key, value) in facts.labels.iter() {
            let pair = (namespace.clone(), key.clone(), value.clone());
            drop_from(&mut self.by_pair, pair, slot);
        }
        self.change_wishes(facts, resident.node, -1);
        self.change_owner(facts, resident.node, -1);
        Some(resident)
    }

    fn change_wishes(&mut self, facts: &PodFacts, node: usize, by: i64) {
        for one in &facts.terms {
            let holders = self.wishes.entry(one.term.clone()).or_default();
            let sum = holders.entry(node).or_default();
            *sum += one.weight * by;
            if *sum == 0 {
                holders.remove(&node);
            }
            if holders.is_empty() {
                self.wishes.remove(&one.term);
            }
        }
    }

    fn change_owner(&mut self, facts: &PodFacts, node: usize, by: i64) {
        let Some(owner) = &facts.owner else { return };
        let nodes = self.by_owner.entry(owner.clone()).or_default();
        let count = nodes.entry(node).or_default();
        *count += by;
        if *count == 0 {
            nodes.remove(&node);
        }
        if nodes.is_empty() {
            self.by_owner.remove(owner);
        }
    }

    pub(crate) fn of_owner(&self, owner: &Text) -> Option<&HashMap<usize, i64>> {
        self.by_owner.get(owner)
    }

    /// What pods that are somewhere want of pods around them.
    pub(crate) fn wishes(&self) -> impl Iterator<Item = (&PodTerm, &Holders)> {
        self.wishes.iter()
    }

    /// All pods of a namespace that a selector means.
    pub(crate) fn selected<'a>(
        &'a self,
        namespace: &'a Text,
        selector: &'a Selector,
    ) -> impl Iterator<Item = &'a Resident> {
        let slots: Box<dyn Iterator<Item = &Slot>> = match (selector, selector.any_pair()) {
            (Selector::Nothing, _) => Box::new(std::iter::empty()),
            (_, Some(pairs)) => Box::new(pairs.flat_map(|(key, value)| {
                let pair = (namespace.clone(), key.clone(), value.clone());
                self.by_pair.get(&pair).into_iter().flatten()
            })),
            (_, None) => Box::new(self.by_namespace.get(namespace).into_iter().flatten()),
        };
        slots
            .filter_map(|slot| self.slots.get(*slot as usize)?.as_ref())
            .filter(|resident| selector.matches(&resident.facts.labels))
    }

    /// All pods that a term means.
    pub(crate) fn meant<'a>(
        &'a self,
        term: &'a PodTerm,
        namespaces: &'a HashMap<Text, Labels>,
    ) -> Box<dyn Iterator<Item = &'a Resident> + 'a> {
        if term.namespace_selector.is_none() {
            let all = term.namespaces.iter();
            return Box::new(all.flat_map(|name| self.selected(name, &term.selector)));
        }
        let all = self.by_namespace.keys();
        Box::new(
            all.filter(|name| term.means_namespace(name, namespaces.get(*name)))
                .flat_map(|name| self.selected(name, &term.selector)),
        )
    }
}

fn drop_from<K: std::hash::Hash + Eq>(index: &mut HashMap<K, HashSet<Slot>>, key: K, slot: Slot) {
    if let std::collections::hash_map::Entry::Occupied(mut entry) = index.entry(key) {
        entry.get_mut().remove(&slot);
        if entry.get().is_empty() {
            entry.remove();
        }
    }
}
