//! The replica sets of a deployment: which is the new one, which revision each is, how large each may be.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec, ReplicaSet, ReplicaSetSpec},
        core::v1::PodTemplateSpec,
    },
    apimachinery::pkg::{apis::meta::v1::ObjectMeta, util::intstr::IntOrString},
    jiff::Timestamp,
};
use kube::ResourceExt as _;

use crate::workloads::{names::hash_of, owners::reference_to, shares::scaled};

pub(super) const HASH: &str = "pod-template-hash";
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MAXIMUM: &str = "deployment.kubernetes.io/max-replicas";
/// What a replica set does not take over from its deployment.
const OWN_ANNOTATIONS: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MAXIMUM,
    "deprecated.deployment.rollback.to",
];
/// How long the list of former revisions may become, in characters.
const HISTORY_LENGTH: usize = 2_000;

/// What a deployment says about sizes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) replicas: i32,
    pub(super) surge: i32,
    pub(super) unavailable: i32,
}

impl Sizes {
    pub(super) fn of(spec: &DeploymentSpec) -> Self {
        let replicas = spec.replicas.unwrap_or(1);
        let strategy = spec.strategy.as_ref();
        if is_recreate(spec) {
            return Self {
                replicas,
                surge: 0,
                unavailable: 0,
            };
        }
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let quarter = IntOrString::String("25%".to_owned());
        let surge = rolling
            .and_then(|rolling| rolling.max_surge.as_ref())
            .unwrap_or(&quarter);
        let unavailable = rolling
            .and_then(|rolling| rolling.max_unavailable.as_ref())
            .unwrap_or(&quarter);
        let surge = scaled(surge, replicas, true);
        let mut unavailable = scaled(unavailable, replicas, false);
        // With neither, nothing could ever move.
        if surge == 0 && unavailable == 0 {
            unavailable = 1;
        }
        Self {
            replicas,
            surge,
            unavailable: unavailable.min(replicas),
        }
    }

    pub(super) fn maximum(self) -> i32 {
        self.replicas.saturating_add(self.surge)
    }
}

pub(super) fn is_recreate(spec: &DeploymentSpec) -> bool {
    let strategy = spec.strategy.as_ref();
    strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("Recreate")
}

/// A replica set as it is and as it is going to be.
#[derive(Clone, Debug)]
pub(super) struct Set {
    pub(super) seen: Arc<ReplicaSet>,
    pub(super) replicas: i32,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) min_ready_seconds: Option<i32>,
}

impl Set {
    pub(super) fn new(seen: &Arc<ReplicaSet>) -> Self {
        let spec = seen.spec.as_ref();
        Self {
            seen: Arc::clone(seen),
            replicas: spec.and_then(|spec| spec.replicas).unwrap_or(1),
            annotations: seen.metadata.annotations.clone().unwrap_or_default(),
            min_ready_seconds: spec.and_then(|spec| spec.min_ready_seconds),
        }
    }

    pub(super) fn available(&self) -> i32 {
        let status = self.seen.status.as_ref();
        status
            .and_then(|status| status.available_replicas)
            .unwrap_or(0)
    }

    pub(super) fn born(&self) -> Option<Timestamp> {
        self.seen
            .metadata
            .creation_timestamp
            .as_ref()
            .map(|time| time.0)
    }

    pub(super) fn revision(&self) -> i64 {
        number(&self.annotations, REVISION).unwrap_or(0)
    }

    pub(super) fn desired(&self) -> Option<i64> {
        number(&self.annotations, DESIRED)
    }

    pub(super) fn maximum(&self) -> Option<i64> {
        number(&self.annotations, MAXIMUM)
    }

    /// Gives a set another size, and writes down what that size was decided on.
    pub(super) fn resize(&mut self, replicas: i32, sizes: Sizes) {
        self.replicas = replicas;
        set_sizes(&mut self.annotations, sizes);
    }
}

fn number(annotations: &BTreeMap<String, String>, name: &str) -> Option<i64> {
    annotations.get(name)?.parse().ok()
}

fn set_sizes(annotations: &mut BTreeMap<String, String>, sizes: Sizes) {
    annotations.insert(DESIRED.to_owned(), sizes.replicas.to_string());
    annotations.insert(MAXIMUM.to_owned(), sizes.maximum().to_string());
}

/// The sets of a deployment, the new one apart. The eldest of equals is the new one.
pub(super) fn split(
    template: &PodTemplateSpec,
    sets: &[Arc<ReplicaSet>],
) -> (Option<Set>, Vec<Set>) {
    let mut sets: Vec<Set> = sets.iter().map(Set::new).collect();
    sets.sort_by_key(|set| (set.born(), set.seen.metadata.name.clone()));
    let is_new = |set: &Set| {
        let other = set
            .seen
            .spec
            .as_ref()
            .and_then(|spec| spec.template.as_ref());
        other.is_some_and(|other| is_same(template, other))
    };
    match sets.iter().position(is_new) {
        Some(place) => (Some(sets.remove(place)), sets),
        None => (None, sets),
    }
}

/// Whether two templates are the same but for the hash that sets them apart.
pub(super) fn is_same(left: &PodTemplateSpec, right: &PodTemplateSpec) -> bool {
    let bare = |template: &PodTemplateSpec| {
        let mut template = template.clone();
        let metadata = template.metadata.get_or_insert_default();
        if let Some(labels) = &mut metadata.labels {
            labels.remove(HASH);
        }
        if metadata.labels.as_ref().is_some_and(BTreeMap::is_empty) {
            metadata.labels = None;
        }
        template
    };
    bare(left) == bare(right)
}

pub(super) fn is_elder(left: &Set, right: &Set) -> std::cmp::Ordering {
    (left.born(), left.seen.metadata.name.as_ref())
        .cmp(&(right.born(), right.seen.metadata.name.as_ref()))
}

/// Brings the annotations of the new set up to date with its deployment.
pub(super) fn annotate(
    annotations: &mut BTreeMap<String, String>,
    deployment: &Deployment,
    revision: i64,
) {
    for (name, value) in deployment.annotations() {
        if !OWN_ANNOTATIONS.contains(&name.as_str()) {
            annotations.insert(name.clone(), value.clone());
        }
    }
    let old = annotations.get(REVISION).cloned();
    let old_number = old.as_deref().map_or(Some(0), |text| text.parse().ok());
    if old_number.is_none_or(|old| old >= revision) {
        return;
    }
    annotations.insert(REVISION.to_owned(), revision.to_string());
    if let Some(old) = old {
        let history = annotations.entry(HISTORY.to_owned()).or_default();
        *history = append(history, &old);
    }
}

/// Adds a revision to a list, which forgets its oldest for that if it must.
fn append(history: &str, revision: &str) -> String {
    let mut revisions: Vec<&str> = history.split(',').filter(|one| !one.is_empty()).collect();
    revisions.push(revision);
    while revisions.len() > 1 && revisions.join(",").len() > HISTORY_LENGTH {
        revisions.remove(0);
    }
    revisions.join(",")
}

/// The replica set for the template of a deployment.
pub(super) fn new_set(
    deployment: &Deployment,
    spec: &DeploymentSpec,
    replicas: i32,
    revision: i64,
) -> ReplicaSet {
    let collisions = deployment
        .status
        .as_ref()
        .and_then(|status| status.collision_count);
    let hash = hash_of(&serde_json::json!(spec.template), collisions);
    let mut template = spec.template.clone();
    let labels = template
        .metadata
        .get_or_insert_default()
        .labels
        .get_or_insert_default();
    labels.insert(HASH.to_owned(), hash.clone());
    let labels = labels.clone();
    let mut selector = spec.selector.clone();
    let pairs = selector.match_labels.get_or_insert_default();
    pairs.insert(HASH.to_owned(), hash.clone());
    let mut annotations = BTreeMap::new();
    annotate(&mut annotations, deployment, revision);
    set_sizes(&mut annotations, Sizes::of(spec));
    ReplicaSet {
        metadata: ObjectMeta {
            name: Some(format!("{}-{hash}", deployment.name_any())),
            namespace: deployment.namespace(),
            labels: Some(labels),
            annotations: Some(annotations),
            owner_references: Some(vec![reference_to(deployment)]),
            ..ObjectMeta::default()
        },
        spec: Some(ReplicaSetSpec {
            replicas: Some(replicas),
            min_ready_seconds: spec.min_ready_seconds,
            selector,
            template: Some(template),
        }),
        status: None,
    }
}

/// The old sets that history has no room for: the oldest that are empty.
pub(super) fn superfluous(old: &[Set], limit: Option<i32>) -> Vec<Arc<ReplicaSet>> {
    let Some(limit) = limit.filter(|limit| *limit != i32::MAX) else {
        return Vec::new();
    };
    let limit = usize::try_from(limit).unwrap_or(0);
    let mut old: Vec<&Set> = old
        .iter()
        .filter(|set| set.seen.metadata.deletion_timestamp.is_none())
        .collect();
    let surplus = old.len().saturating_sub(limit);
    old.sort_by_key(|set| set.revision());
    let oldest = old.into_iter().take(surplus);
    oldest
        .filter(|set| is_empty(set))
        .map(|set| Arc::clone(&set.seen))
        .collect()
}

fn is_empty(set: &Set) -> bool {
    let status = set.seen.status.as_ref();
    set.replicas == 0
        && status.is_none_or(|status| status.replicas == 0)
        && set.seen.metadata.generation <= status.and_then(|status| status.observed_generation)
}

/// Sorts sets by size, the largest first; among equals the newer or the older first.
pub(super) fn sort_by_size(sets: &mut [&mut Set], newer_first: bool) {
    if newer_first {
        sets.sort_by(|left, right| {
            (Reverse(left.replicas), Reverse(left.born()))
                .cmp(&(Reverse(right.replicas), Reverse(right.born())))
        });
    } else {
        sets.sort_by(|left, right| {
            (Reverse(left.replicas), left.born()).cmp(&(Reverse(right.replicas), right.born()))
        });
    }
}
