//! What a pod wants of its node, compiled.

use k8s_openapi::api::core::v1::{NodeSelectorTerm, PodSpec};

use crate::{
    labels::Requirement,
    node::{Effect, NodeFacts, Taint},
    text::{Text, Texts},
};

/// A taint that a pod stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Toleration {
    /// No key means any.
    key: Option<Text>,
    /// No value means any.
    value: Option<Text>,
    /// No effect means all.
    effect: Option<Effect>,
    /// Whether the operator is one that is known.
    is_known: bool,
}

impl Toleration {
    pub(super) fn all(spec: &PodSpec, texts: &mut Texts) -> Box<[Self]> {
        let tolerations = spec.tolerations.iter().flatten();
        tolerations
            .map(|one| {
                let operator = one.operator.as_deref().unwrap_or_default();
                let value = one.value.as_deref().unwrap_or_default();
                let key = one.key.as_deref().filter(|key| !key.is_empty());
                let effect = one.effect.as_deref().filter(|effect| !effect.is_empty());
                Self {
                    key: key.map(|key| texts.keep(key)),
                    value: (operator != "Exists").then(|| texts.keep(value)),
                    effect: effect.map(Effect::of),
                    is_known: matches!(operator, "" | "Equal" | "Exists"),
                }
            })
            .collect()
    }

    pub(crate) fn tolerates(&self, taint: &Taint) -> bool {
        self.is_known
            && self.effect.is_none_or(|effect| effect == taint.effect)
            && self.key.as_ref().is_none_or(|key| *key == taint.key)
            && self
                .value
                .as_ref()
                .is_none_or(|value| *value == taint.value)
    }

    /// Whether it could matter for a taint that only makes a node worse.
    pub(crate) fn is_for_preference(&self) -> bool {
        self.effect
            .is_none_or(|effect| effect == Effect::PreferNoSchedule)
    }
}

/// One alternative of what a node must be: all of it must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeTerm {
    labels: Box<[Requirement]>,
    fields: Box<[Requirement]>,
}

impl NodeTerm {
    pub(crate) fn of(term: &NodeSelectorTerm, texts: &mut Texts) -> Self {
        let mut read = |list: Option<&Vec<k8s_openapi::api::core::v1::NodeSelectorRequirement>>| {
            let all = list.into_iter().flatten();
            all.map(|one| {
                let values = one.values.as_deref().unwrap_or_default();
                Requirement::of(&one.key, &one.operator, values, texts)
            })
            .collect()
        };
        Self {
            labels: read(term.match_expressions.as_ref()),
            fields: read(term.match_fields.as_ref()),
        }
    }

    /// A term that asks for nothing means no node at all.
    pub(crate) fn matches(&self, node: &NodeFacts) -> bool {
        let name = |key: &Text| (*key == "metadata.name").then_some(&node.name);
        !(self.labels.is_empty() && self.fields.is_empty())
            && self
                .labels
                .iter()
                .all(|one| one.matches(|key| node.labels.get(key)))
            && self.fields.iter().all(|one| one.matches(name))
    }
}

/// What a node must be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeNeed {
    selector: Box<[Requirement]>,
    terms: Option<Box<[NodeTerm]>>,
}

impl NodeNeed {
    pub(super) fn of(spec: &PodSpec, texts: &mut Texts) -> Self {
        let selector = spec.node_selector.iter().flatten();
        let required = spec
            .affinity
            .as_ref()
            .and_then(|affinity| affinity.node_affinity.as_ref())
            .and_then(|node| {
                node.required_during_scheduling_ignored_during_execution
                    .as_ref()
            });
        Self {
            selector: selector
                .map(|(key, value)| Requirement::equals(key, value, texts))
                .collect(),
            terms: required.map(|required| terms(&required.node_selector_terms, texts)),
        }
    }

    pub(crate) fn is_met_by(&self, node: &NodeFacts) -> bool {
        self.selector
            .iter()
            .all(|one| one.matches(|key| node.labels.get(key)))
            && self
                .terms
                .as_ref()
                .is_none_or(|terms| terms.iter().any(|term| term.matches(node)))
    }

    /// Labels that a node must have, each with its only value. There may be more that it must be.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&Text, &Text)> {
        self.selector.iter().filter_map(Requirement::as_pair)
    }

    pub(crate) fn is_nothing(&self) -> bool {
        self.selector.is_empty() && self.terms.is_none()
    }
}

pub(crate) fn terms(terms: &[NodeSelectorTerm], texts: &mut Texts) -> Box<[NodeTerm]> {
    terms.iter().map(|term| NodeTerm::of(term, texts)).collect()
}

/// What would be better in a node, with how much it counts.
pub(super) fn preferences(spec: &PodSpec, texts: &mut Texts) -> Box<[(i64, NodeTerm)]> {
    let preferred = spec
        .affinity
        .as_ref()
        .and_then(|affinity| affinity.node_affinity.as_ref())
        .and_then(|node| {
            node.preferred_during_scheduling_ignored_during_execution
                .as_ref()
        });
    let all = preferred.into_iter().flatten();
    all.map(|one| (i64::from(one.weight), NodeTerm::of(&one.preference, texts)))
        .collect()
}
