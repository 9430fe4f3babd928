//! Decides the next step of a deployment: which replica set is made, grows, shrinks or goes.

use std::{sync::Arc, time::Duration};

use k8s_openapi::{
    api::apps::v1::{Deployment, DeploymentSpec, DeploymentStatus, ReplicaSet},
    jiff::Timestamp,
};
use kube::ResourceExt as _;

use super::{
    conditions::{self, Rollout},
    sets::{
        REVISION, Set, Sizes, annotate, is_elder, is_recreate, new_set, sort_by_size, split,
        superfluous,
    },
};
use crate::workloads::events::News;

/// What to do for a deployment, in this order, and what it then says about itself.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) create: Option<ReplicaSet>,
    pub(super) updates: Vec<Update>,
    pub(super) deletes: Vec<Arc<ReplicaSet>>,
    /// The revision that the deployment is to carry, if it does not.
    pub(super) revision: Option<String>,
    pub(super) status: DeploymentStatus,
    /// When to look again though nothing changes.
    pub(super) again: Option<Duration>,
}

/// A replica set as it should be, on top of the version that was seen.
#[derive(Debug)]
pub(super) struct Update {
    pub(super) set: ReplicaSet,
    pub(super) news: Option<News>,
}

/// What is being decided on.
struct Sight<'a> {
    deployment: &'a Deployment,
    spec: &'a DeploymentSpec,
    sizes: Sizes,
    new: Option<Set>,
    old: Vec<Set>,
    create: Option<ReplicaSet>,
    deletes: Vec<Arc<ReplicaSet>>,
}

/// Decides the next step. `is_busy` tells whether a replica set still has a pod that is not over.
pub(super) fn plan_step(
    deployment: &Deployment,
    spec: &DeploymentSpec,
    sets: &[Arc<ReplicaSet>],
    is_busy: impl Fn(&ReplicaSet) -> bool,
    now: Timestamp,
) -> Plan {
    let (new, old) = split(&spec.template, sets);
    let mut sight = Sight {
        deployment,
        spec,
        sizes: Sizes::of(spec),
        new,
        old,
        create: None,
        deletes: Vec::new(),
    };
    let is_going = deployment.metadata.deletion_timestamp.is_some();
    let is_paused = spec.paused == Some(true);
    let mut rollout = Rollout::Unknown;
    if is_going {
        return sight.finish(rollout, now);
    }
    if is_paused || sight.is_resized() {
        sight.refresh_new();
        sight.scale();
        if is_paused {
            sight.clean();
        }
    } else {
        rollout = Rollout::Watched;
        if is_recreate(spec) {
            sight.recreate(is_busy);
        } else {
            sight.roll();
        }
        if conditions::is_complete(deployment, &sight.status(Rollout::Unknown, now)) {
            sight.clean();
        }
    }
    sight.finish(rollout, now)
}

impl Sight<'_> {
    fn all(&self) -> impl Iterator<Item = &Set> {
        self.old.iter().chain(&self.new)
    }

    fn total(&self) -> i32 {
        self.all().map(|set| set.replicas).sum()
    }

    fn latest_revision(&self) -> i64 {
        self.old.iter().map(Set::revision).max().unwrap_or(0)
    }

    /// Whether somebody changed the number of replicas since the sets were given theirs.
    fn is_resized(&self) -> bool {
        let mut active = self.all().filter(|set| set.replicas > 0);
        active.any(|set| {
            set.desired()
                .is_some_and(|desired| desired != i64::from(self.sizes.replicas))
        })
    }

    /// Brings the new set up to date with what the deployment says beside its template.
    fn refresh_new(&mut self) {
        let revision = self.latest_revision() + 1;
        if let Some(new) = &mut self.new {
            annotate(&mut new.annotations, self.deployment, revision);
            new.min_ready_seconds = self.spec.min_ready_seconds;
        }
    }

    /// Sees to it that there is a new set. Tells whether there was one.
    fn ensure_new(&mut self) -> bool {
        if self.new.is_some() {
            self.refresh_new();
            return true;
        }
        let replicas = self.wanted_of_new(0);
        let revision = self.latest_revision() + 1;
        self.create = Some(new_set(self.deployment, self.spec, replicas, revision));
        false
    }

    /// How large the new set may be now.
    fn wanted_of_new(&self, current: i32) -> i32 {
        if is_recreate(self.spec) {
            return self.sizes.replicas;
        }
        let room = self.sizes.maximum() - self.total();
        if room <= 0 {
            return current;
        }
        current + room.min(self.sizes.replicas - current)
    }

    fn roll(&mut self) {
        if !self.ensure_new() || self.resize_new() {
            return;
        }
        self.shrink_old();
    }

    /// Lets the new set grow or shrink to what it may be. Tells whether it did.
    fn resize_new(&mut self) -> bool {
        let Some(current) = self.new.as_ref().map(|new| new.replicas) else {
            return false;
        };
        let wanted = if current > self.sizes.replicas {
            self.sizes.replicas
        } else {
            self.wanted_of_new(current)
        };
        if wanted == current {
            return false;
        }
        if let Some(new) = &mut self.new {
            new.resize(wanted, self.sizes);
        }
        true
    }

    /// Lets old sets shrink, those pods first that do not work anyway.
    fn shrink_old(&mut self) {
        if self.old.iter().all(|set| set.replicas == 0) {
            return;
        }
        let minimum = self.sizes.replicas - self.sizes.unavailable;
        let starting = self
            .new
            .as_ref()
            .map_or(0, |new| new.replicas - new.available());
        let mut room = self.total() - minimum - starting;
        if room <= 0 {
            return;
        }
        self.old.sort_by(is_elder);
        for set in &mut self.old {
            let broken = (set.replicas - set.available()).clamp(0, room.max(0));
            if broken > 0 {
                set.resize(set.replicas - broken, self.sizes);
                room -= broken;
            }
        }
        let available: i32 = self.all().map(Set::available).sum();
        let mut room = available - minimum;
        for set in &mut self.old {
            let fewer = set.replicas.min(room);
            if fewer > 0 {
                set.resize(set.replicas - fewer, self.sizes);
                room -= fewer;
            }
        }
    }

    fn recreate(&mut self, is_busy: impl Fn(&ReplicaSet) -> bool) {
        self.refresh_new();
        let mut shrunk = false;
        for set in self.old.iter_mut().filter(|set| set.replicas > 0) {
            set.resize(0, self.sizes);
            shrunk = true;
        }
        if shrunk || self.old.iter().any(|set| is_busy(&set.seen)) {
            return;
        }
        if self.ensure_new() {
            let wanted = self.sizes.replicas;
            if let Some(new) = self.new.as_mut().filter(|new| new.replicas != wanted) {
                new.resize(wanted, self.sizes);
            }
        }
    }

    /// Shares a new number of replicas among the sets, each as it had before.
    fn scale(&mut self) {
        let sizes = self.sizes;
        let active = self.all().filter(|set| set.replicas > 0).count();
        if active <= 1 {
            if let Some(set) = self.active_or_latest()
                && set.replicas != sizes.replicas
            {
                set.resize(sizes.replicas, sizes);
            }
            return;
        }
        if self.is_saturated() {
            for set in self.old.iter_mut().filter(|set| set.replicas > 0) {
                set.resize(0, sizes);
            }
            return;
        }
        if is_recreate(self.spec) {
            return;
        }
        let allowed = if sizes.replicas > 0 {
            sizes.maximum()
        } else {
            0
        };
        let more = allowed - self.total();
        let mut sets: Vec<&mut Set> = self
            .old
            .iter_mut()
            .chain(&mut self.new)
            .filter(|set| set.replicas > 0)
            .collect();
        sort_by_size(&mut sets, more > 0);
        let mut given = 0;
        let mut wanted: Vec<i32> = Vec::with_capacity(sets.len());
        for set in &sets {
            let share = share_of(set, sizes, more, given);
            given += share;
            wanted.push(set.replicas + share);
        }
        // What rounding left over is the largest's.
        if let Some(first) = wanted.first_mut() {
            *first = (*first + more - given).max(0);
        }
        for (set, replicas) in sets.into_iter().zip(wanted) {
            set.resize(replicas, sizes);
        }
    }

    /// The one set that has replicas, or else the one that would have them.
    fn active_or_latest(&mut self) -> Option<&mut Set> {
        if self.new.as_ref().is_some_and(|new| new.replicas > 0) {
            return self.new.as_mut();
        }
        if let Some(place) = self.old.iter().position(|set| set.replicas > 0) {
            return self.old.get_mut(place);
        }
        if self.new.is_some() {
            return self.new.as_mut();
        }
        self.old.sort_by(is_elder);
        self.old.last_mut()
    }

    fn is_saturated(&self) -> bool {
        let wanted = self.sizes.replicas;
        self.new.as_ref().is_some_and(|new| {
            new.replicas == wanted
                && new.desired() == Some(i64::from(wanted))
                && new.available() == wanted
        })
    }

    fn clean(&mut self) {
        self.deletes = superfluous(&self.old, self.spec.revision_history_limit);
    }

    fn status(&self, rollout: Rollout, now: Timestamp) -> DeploymentStatus {
        conditions::status(
            self.deployment,
            self.spec,
            self.sizes,
            &conditions::Sets {
                new: self.new.as_ref(),
                old: &self.old,
                created: self.create.as_ref(),
            },
            rollout,
            now,
        )
    }

    fn finish(self, rollout: Rollout, now: Timestamp) -> Plan {
        let status = self.status(rollout, now);
        let again = conditions::until_late(self.deployment, self.spec, &status, now);
        let revision = match (&self.create, &self.new) {
            (Some(set), _) => set.annotations().get(REVISION).cloned(),
            (None, Some(set)) => set.annotations.get(REVISION).cloned(),
            (None, None) => None,
        };
        let known = self.deployment.annotations().get(REVISION);
        let is_going = self.deployment.metadata.deletion_timestamp.is_some();
        let revision = revision.filter(|revision| !is_going && Some(revision) != known);
        Plan {
            updates: self.all().filter_map(update).collect(),
            create: self.create,
            deletes: self.deletes,
            revision,
            status,
            again,
        }
    }
}

/// What a set gets of a number of replicas that come or go, as large as it is among all.
fn share_of(set: &Set, sizes: Sizes, more: i32, given: i32) -> i32 {
    if set.replicas == 0 || more == 0 || more == given {
        return 0;
    }
    let fraction = if sizes.replicas == 0 {
        -set.replicas
    } else {
        let before = set.maximum().filter(|before| *before > 0);
        let before = before.unwrap_or(i64::from(sizes.maximum())).max(1);
        let product = i64::from(set.replicas) * i64::from(sizes.maximum());
        // Rounds halves up; all of it is positive.
        let size = (2 * product + before) / (2 * before);
        i32::try_from(size).unwrap_or(i32::MAX) - set.replicas
    };
    let left = more - given;
    if more > 0 {
        fraction.min(left)
    } else {
        fraction.max(left)
    }
}

/// The set as it should be, if it is not.
fn update(set: &Set) -> Option<Update> {
    let before = Set::new(&set.seen);
    if set.replicas == before.replicas
        && set.annotations == before.annotations
        && set.min_ready_seconds == before.min_ready_seconds
    {
        return None;
    }
    let name = set.seen.name_any();
    let news = match set.replicas.cmp(&before.replicas) {
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Greater => {
            Some(scaled_news("up", &name, before.replicas, set.replicas))
        }
        std::cmp::Ordering::Less => Some(scaled_news("down", &name, before.replicas, set.replicas)),
    };
    let mut wanted = ReplicaSet::clone(&set.seen);
    wanted.metadata.annotations = Some(set.annotations.clone());
    let spec = wanted.spec.get_or_insert_default();
    spec.replicas = Some(set.replicas);
    spec.min_ready_seconds = set.min_ready_seconds;
    Some(Update { set: wanted, news })
}

pub(super) fn scaled_news(direction: &str, name: &str, from: i32, to: i32) -> News {
    News::normal(
        "ScalingReplicaSet",
        format!("Scaled {direction} replica set {name} from {from} to {to}"),
    )
}
