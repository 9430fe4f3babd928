//! What pods want of pods around them, compiled so that equal wishes of many pods are one.

use k8s_openapi::api::core::v1::{Affinity, PodAffinityTerm, TopologySpreadConstraint};

use crate::{
    labels::{Labels, Requirement, Selector},
    text::{Text, Texts},
};

/// What a term is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum TermKind {
    /// Must be where such pods are.
    Needs,
    /// Must not be where such pods are.
    Refuses,
    /// Is better where such pods are.
    Likes,
    /// Is better where they are not.
    Dislikes,
}

/// Which pods are meant, and what counts as the same place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PodTerm {
    pub(crate) kind: TermKind,
    pub(crate) topology: Text,
    pub(crate) namespaces: Box<[Text]>,
    pub(crate) namespace_selector: Option<Selector>,
    pub(crate) selector: Selector,
}

/// A term and how much it counts; 1 for those that must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Weighted {
    pub(crate) weight: i64,
    pub(crate) term: PodTerm,
}

impl PodTerm {
    fn of(
        kind: TermKind,
        term: &PodAffinityTerm,
        namespace: &Text,
        labels: &Labels,
        texts: &mut Texts,
    ) -> Self {
        let mut namespaces: Vec<Text> = term
            .namespaces
            .iter()
            .flatten()
            .map(|name| texts.keep(name))
            .collect();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.push(namespace.clone());
        }
        let selector = Selector::of(term.label_selector.as_ref(), texts);
        let same = alike(term.match_label_keys.as_deref(), "In", labels, texts);
        let other = alike(term.mismatch_label_keys.as_deref(), "NotIn", labels, texts);
        Self {
            kind,
            topology: texts.keep(&term.topology_key),
            namespaces: namespaces.into(),
            namespace_selector: term
                .namespace_selector
                .as_ref()
                .map(|selector| Selector::of(Some(selector), texts)),
            selector: selector.and(same).and(other),
        }
    }

    /// Whether a pod is meant; `namespace_labels` are those of its namespace.
    pub(crate) fn means(
        &self,
        namespace: &Text,
        namespace_labels: Option<&Labels>,
        labels: &Labels,
    ) -> bool {
        self.means_namespace(namespace, namespace_labels) && self.selector.matches(labels)
    }

    pub(crate) fn means_namespace(&self, name: &Text, labels: Option<&Labels>) -> bool {
        self.namespaces.contains(name)
            || self.namespace_selector.as_ref().is_some_and(|selector| {
                selector.is_everything() || labels.is_some_and(|labels| selector.matches(labels))
            })
    }
}

/// Requirements that labels named by `keys` are like the pod's own, or unlike them.
fn alike(
    keys: Option<&[String]>,
    operator: &str,
    labels: &Labels,
    texts: &mut Texts,
) -> Vec<Requirement> {
    let keys = keys.unwrap_or_default().iter();
    keys.filter_map(|key| {
        let value = labels.get(key)?.to_string();
        Some(Requirement::of(key, operator, &[value], texts))
    })
    .collect()
}

/// All terms of a pod.
pub(super) fn terms(
    affinity: Option<&Affinity>,
    namespace: &Text,
    labels: &Labels,
    texts: &mut Texts,
) -> Box<[Weighted]> {
    let mut all = Vec::new();
    let Some(affinity) = affinity else {
        return all.into();
    };
    let mut add = |kind, weight: i32, term| {
        let term = PodTerm::of(kind, term, namespace, labels, texts);
        let weight = i64::from(weight);
        all.push(Weighted { weight, term });
    };
    if let Some(near) = &affinity.pod_affinity {
        for term in near
            .required_during_scheduling_ignored_during_execution
            .iter()
            .flatten()
        {
            add(TermKind::Needs, 1, term);
        }
        for one in near
            .preferred_during_scheduling_ignored_during_execution
            .iter()
            .flatten()
        {
            add(TermKind::Likes, one.weight, &one.pod_affinity_term);
        }
    }
    if let Some(far) = &affinity.pod_anti_affinity {
        for term in far
            .required_during_scheduling_ignored_during_execution
            .iter()
            .flatten()
        {
            add(TermKind::Refuses, 1, term);
        }
        for one in far
            .preferred_during_scheduling_ignored_during_execution
            .iter()
            .flatten()
        {
            add(TermKind::Dislikes, one.weight, &one.pod_affinity_term);
        }
    }
    all.into()
}

/// How evenly pods are to be spread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spread {
    pub(crate) topology: Text,
    pub(crate) most_skew: i64,
    pub(crate) least_domains: Option<usize>,
    pub(crate) must: bool,
    pub(crate) selector: Selector,
    /// Whether only nodes count that the pod's own selector allows.
    pub(crate) honours_affinity: bool,
    /// Whether only nodes count whose taints the pod tolerates.
    pub(crate) honours_taints: bool,
}

impl Spread {
    pub(super) fn of(
        constraint: &TopologySpreadConstraint,
        labels: &Labels,
        texts: &mut Texts,
    ) -> Self {
        let selector = Selector::of(constraint.label_selector.as_ref(), texts);
        let same = alike(constraint.match_label_keys.as_deref(), "In", labels, texts);
        Self {
            topology: texts.keep(&constraint.topology_key),
            most_skew: i64::from(constraint.max_skew),
            least_domains: constraint
                .min_domains
                .and_then(|number| usize::try_from(number).ok()),
            must: constraint.when_unsatisfiable != "ScheduleAnyway",
            selector: selector.and(same),
            honours_affinity: constraint.node_affinity_policy.as_deref() != Some("Ignore"),
            honours_taints: constraint.node_taints_policy.as_deref() == Some("Honor"),
        }
    }
}
