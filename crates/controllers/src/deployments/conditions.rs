//! What a deployment says about itself, and whether it gets on.

use std::time::Duration;

use k8s_openapi::{
    api::apps::v1::{
        Deployment, DeploymentCondition, DeploymentSpec, DeploymentStatus, ReplicaSet,
    },
    apimachinery::pkg::apis::meta::v1::Time,
    jiff::Timestamp,
};
use kube::ResourceExt as _;

use super::sets::{Set, Sizes};
use crate::workloads::pods::elapsed;

const AVAILABLE: &str = "Available";
const PROGRESSING: &str = "Progressing";
const FAILURE: &str = "ReplicaFailure";
const DONE: &str = "NewReplicaSetAvailable";
const LATE: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";

/// Whether this look was at a rollout, so that it can tell how it gets on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rollout {
    Unknown,
    Watched,
}

/// The sets that a status is about.
pub(super) struct Sets<'a> {
    pub(super) new: Option<&'a Set>,
    pub(super) old: &'a [Set],
    pub(super) created: Option<&'a ReplicaSet>,
}

impl<'a> Sets<'a> {
    fn all(&self) -> impl Iterator<Item = &'a Set> {
        self.old.iter().chain(self.new)
    }
}

/// The status that follows from what is seen and from what is about to be done.
pub(super) fn status(
    deployment: &Deployment,
    spec: &DeploymentSpec,
    sizes: Sizes,
    sets: &Sets<'_>,
    rollout: Rollout,
    now: Timestamp,
) -> DeploymentStatus {
    let old = deployment.status.clone().unwrap_or_default();
    let statuses = || sets.all().filter_map(|set| set.seen.status.as_ref());
    let available = statuses()
        .filter_map(|status| status.available_replicas)
        .sum();
    let total: i32 = sets.all().map(|set| set.replicas).sum();
    let updated = sets.new.and_then(|new| new.seen.status.as_ref());
    let mut status = DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: some(statuses().map(|status| status.replicas).sum()),
        updated_replicas: some(updated.map_or(0, |status| status.replicas)),
        ready_replicas: some(statuses().filter_map(|status| status.ready_replicas).sum()),
        available_replicas: some(available),
        unavailable_replicas: some((total - available).max(0)),
        terminating_replicas: Some(
            statuses()
                .filter_map(|status| status.terminating_replicas)
                .sum(),
        ),
        collision_count: old.collision_count,
        conditions: old.conditions,
    };
    let is_available = available >= sizes.replicas - sizes.unavailable;
    let condition = if is_available {
        new_condition(
            AVAILABLE,
            "True",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.".to_owned(),
            now,
        )
    } else {
        new_condition(
            AVAILABLE,
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.".to_owned(),
            now,
        )
    };
    set(&mut status, condition);
    if deadline(spec).is_none() {
        remove(&mut status, PROGRESSING);
    } else {
        pause(spec, &mut status, now);
        if let Some(created) = sets.created {
            let text = format!("Created new replica set {:?}", created.name_any());
            set(
                &mut status,
                new_condition(PROGRESSING, "True", "NewReplicaSetCreated", text, now),
            );
        } else if rollout == Rollout::Watched {
            progress(deployment, spec, sets, &mut status, now);
        }
    }
    if rollout == Rollout::Watched {
        match failure(sets) {
            Some(condition) => set(&mut status, condition),
            None => remove(&mut status, FAILURE),
        }
    }
    if status.conditions.as_ref().is_some_and(Vec::is_empty) {
        status.conditions = None;
    }
    status
}

/// Says that a deployment is paused, or that it is not any more.
fn pause(spec: &DeploymentSpec, status: &mut DeploymentStatus, now: Timestamp) {
    let reason = find(status, PROGRESSING).and_then(|one| one.reason.clone());
    if reason.as_deref() == Some(LATE) {
        return;
    }
    let is_said = reason.as_deref() == Some(PAUSED);
    let is_paused = spec.paused == Some(true);
    if is_paused && !is_said {
        let text = "Deployment is paused".to_owned();
        set(
            status,
            new_condition(PROGRESSING, "Unknown", PAUSED, text, now),
        );
    } else if !is_paused && is_said {
        let text = "Deployment is resumed".to_owned();
        set(
            status,
            new_condition(PROGRESSING, "Unknown", "DeploymentResumed", text, now),
        );
    }
}

/// Says how a rollout gets on.
fn progress(
    deployment: &Deployment,
    spec: &DeploymentSpec,
    sets: &Sets<'_>,
    status: &mut DeploymentStatus,
    now: Timestamp,
) {
    let name = sets.new.map(|new| new.seen.name_any());
    if let (Some(name), None) = (&name, find(status, PROGRESSING)) {
        let text = format!("Found new replica set {name:?}");
        set(
            status,
            new_condition(PROGRESSING, "True", "FoundNewReplicaSet", text, now),
        );
    }
    let who = match &name {
        Some(name) => format!("ReplicaSet {name:?}"),
        None => format!("Deployment {:?}", deployment.name_any()),
    };
    let current = find(status, PROGRESSING).cloned();
    let was_done = current.as_ref().and_then(|one| one.reason.as_deref()) == Some(DONE);
    if was_done && status.replicas == status.updated_replicas {
        return;
    }
    if is_complete(deployment, status) {
        let text = format!("{who} has successfully progressed.");
        set(status, new_condition(PROGRESSING, "True", DONE, text, now));
    } else if is_moving(deployment, status) {
        let text = format!("{who} is progressing.");
        let mut condition = new_condition(PROGRESSING, "True", "ReplicaSetUpdated", text, now);
        if let Some(current) = current.filter(|current| current.status == "True") {
            condition.last_transition_time = current.last_transition_time;
        }
        // It is written even if it says the same: its time is when something moved last.
        remove(status, PROGRESSING);
        set(status, condition);
    } else if is_late(spec, status, now) {
        let text = format!("{who} has timed out progressing.");
        set(status, new_condition(PROGRESSING, "False", LATE, text, now));
    }
}

pub(super) fn is_complete(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let wanted = deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1);
    status.updated_replicas.unwrap_or(0) == wanted
        && status.replicas.unwrap_or(0) == wanted
        && status.available_replicas.unwrap_or(0) == wanted
        && status.observed_generation >= deployment.metadata.generation
}

/// Whether there is more of what is wanted than before, or less of what is not.
fn is_moving(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let before = deployment.status.clone().unwrap_or_default();
    let number = |count: Option<i32>| count.unwrap_or(0);
    let old = |status: &DeploymentStatus| number(status.replicas) - number(status.updated_replicas);
    number(status.updated_replicas) > number(before.updated_replicas)
        || old(status) < old(&before)
        || number(status.ready_replicas) > number(before.ready_replicas)
        || number(status.available_replicas) > number(before.available_replicas)
}

/// How long a rollout may stand still.
fn deadline(spec: &DeploymentSpec) -> Option<Duration> {
    let seconds = spec
        .progress_deadline_seconds
        .filter(|seconds| *seconds != i32::MAX)?;
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

fn is_late(spec: &DeploymentSpec, status: &DeploymentStatus, now: Timestamp) -> bool {
    let (Some(deadline), Some(condition)) = (deadline(spec), find(status, PROGRESSING)) else {
        return false;
    };
    match condition.reason.as_deref() {
        Some(DONE) => false,
        Some(LATE) => true,
        _ => moved(condition).is_some_and(|moved| elapsed(moved, now) > deadline),
    }
}

/// When to look whether a rollout that stands still is late by then.
pub(super) fn until_late(
    deployment: &Deployment,
    spec: &DeploymentSpec,
    status: &DeploymentStatus,
    now: Timestamp,
) -> Option<Duration> {
    let condition = find(status, PROGRESSING)?;
    let is_over = matches!(condition.reason.as_deref(), Some(DONE | LATE | PAUSED));
    if is_over || is_complete(deployment, status) {
        return None;
    }
    let left = deadline(spec)?.saturating_sub(elapsed(moved(condition)?, now));
    Some(left + Duration::from_secs(1))
}

fn moved(condition: &DeploymentCondition) -> Option<Timestamp> {
    condition.last_update_time.as_ref().map(|time| time.0)
}

/// The failure of a set, of the new one first.
fn failure(sets: &Sets<'_>) -> Option<DeploymentCondition> {
    let of = |set: &Set| {
        let conditions = set.seen.status.as_ref()?.conditions.as_ref()?;
        let one = conditions
            .iter()
            .find(|one| one.type_ == FAILURE && one.status == "True")?;
        Some(DeploymentCondition {
            type_: one.type_.clone(),
            status: one.status.clone(),
            reason: one.reason.clone(),
            message: one.message.clone(),
            last_transition_time: one.last_transition_time.clone(),
            last_update_time: one.last_transition_time.clone(),
        })
    };
    sets.new.and_then(of).or_else(|| sets.all().find_map(of))
}

/// The status after a replica set could not be made.
pub(super) fn not_created(
    deployment: &Deployment,
    name: &str,
    text: &str,
    now: Timestamp,
) -> DeploymentStatus {
    let mut status = deployment.status.clone().unwrap_or_default();
    let text = format!("Failed to create new replica set {name:?}: {text}");
    set(
        &mut status,
        new_condition(PROGRESSING, "False", "ReplicaSetCreateError", text, now),
    );
    status
}

fn new_condition(
    kind: &str,
    value: &str,
    reason: &str,
    message: String,
    now: Timestamp,
) -> DeploymentCondition {
    DeploymentCondition {
        type_: kind.to_owned(),
        status: value.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message),
        last_transition_time: Some(Time(now)),
        last_update_time: Some(Time(now)),
    }
}

fn find<'a>(status: &'a DeploymentStatus, kind: &str) -> Option<&'a DeploymentCondition> {
    status
        .conditions
        .iter()
        .flatten()
        .find(|one| one.type_ == kind)
}

fn remove(status: &mut DeploymentStatus, kind: &str) {
    if let Some(conditions) = &mut status.conditions {
        conditions.retain(|one| one.type_ != kind);
    }
}

/// Says something, unless it is said already.
fn set(status: &mut DeploymentStatus, mut condition: DeploymentCondition) {
    if let Some(current) = find(status, &condition.type_) {
        if current.status == condition.status && current.reason == condition.reason {
            return;
        }
        if current.status == condition.status {
            condition
                .last_transition_time
                .clone_from(&current.last_transition_time);
        }
    }
    remove(status, &condition.type_);
    status.conditions.get_or_insert_default().push(condition);
}

fn some(count: i32) -> Option<i32> {
    (count != 0).then_some(count)
}
