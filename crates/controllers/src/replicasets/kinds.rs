//! The two kinds that keep a number of equal pods. They differ in words only.

use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus},
        core::v1::{
            PodTemplateSpec, ReplicationController, ReplicationControllerCondition,
            ReplicationControllerStatus,
        },
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, Time},
    jiff::Timestamp,
    serde::{Serialize, de::DeserializeOwned},
};
use kube::Resource;

use super::decide::Counts;
use crate::{
    queue::Queue,
    workloads::{
        World,
        index::{Index, Key},
    },
};

const FAILURE: &str = "ReplicaFailure";

/// Why the number of pods is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// A kind that keeps a number of pods.
pub(crate) trait Replicated:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + std::fmt::Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    const CONTROLLER: &'static str;
    fn index(world: &World) -> &Index<Self>;
    fn queue(world: &World) -> &Queue<Key>;
    fn selector(&self) -> Option<LabelSelector>;
    fn template(&self) -> Option<&PodTemplateSpec>;
    fn replicas(&self) -> i32;
    fn min_ready_seconds(&self) -> i32;
    /// The object with another status, if that says anything new.
    fn with_status(
        &self,
        counts: &Counts,
        failure: Option<&Failure>,
        now: Timestamp,
    ) -> Option<Self>;
}

impl Replicated for ReplicaSet {
    const CONTROLLER: &'static str = "replicaset-controller";

    fn index(world: &World) -> &Index<Self> {
        &world.replica_sets
    }

    fn queue(world: &World) -> &Queue<Key> {
        &world.queues.replica_sets
    }

    fn selector(&self) -> Option<LabelSelector> {
        Some(self.spec.as_ref()?.selector.clone())
    }

    fn template(&self) -> Option<&PodTemplateSpec> {
        self.spec.as_ref()?.template.as_ref()
    }

    fn replicas(&self) -> i32 {
        self.spec
            .as_ref()
            .and_then(|spec| spec.replicas)
            .unwrap_or(1)
    }

    fn min_ready_seconds(&self) -> i32 {
        self.spec
            .as_ref()
            .and_then(|spec| spec.min_ready_seconds)
            .unwrap_or(0)
    }

    fn with_status(
        &self,
        counts: &Counts,
        failure: Option<&Failure>,
        now: Timestamp,
    ) -> Option<Self> {
        let old = self.status.clone().unwrap_or_default();
        let mut conditions = old.conditions.clone().unwrap_or_default();
        let known = conditions.iter().any(|one| one.type_ == FAILURE);
        match failure {
            Some(failure) if !known => conditions.push(ReplicaSetCondition {
                type_: FAILURE.to_owned(),
                status: "True".to_owned(),
                reason: Some(failure.reason.to_owned()),
                message: Some(failure.message.clone()),
                last_transition_time: Some(Time(now)),
            }),
            Some(_) => {}
            None => conditions.retain(|one| one.type_ != FAILURE),
        }
        let status = ReplicaSetStatus {
            replicas: counts.replicas,
            fully_labeled_replicas: some(counts.fully_labeled),
            ready_replicas: some(counts.ready),
            available_replicas: some(counts.available),
            terminating_replicas: Some(counts.terminating),
            observed_generation: self.metadata.generation,
            conditions: (!conditions.is_empty()).then_some(conditions),
        };
        (self.status.as_ref() != Some(&status)).then(|| Self {
            status: Some(status),
            ..self.clone()
        })
    }
}

impl Replicated for ReplicationController {
    const CONTROLLER: &'static str = "replication-controller";

    fn index(world: &World) -> &Index<Self> {
        &world.replication_controllers
    }

    fn queue(world: &World) -> &Queue<Key> {
        &world.queues.replication_controllers
    }

    fn selector(&self) -> Option<LabelSelector> {
        let labels = self.spec.as_ref()?.selector.as_ref()?;
        // Nothing selected means no pod here, not every pod.
        (!labels.is_empty()).then(|| LabelSelector {
            match_labels: Some(labels.clone()),
            match_expressions: None,
        })
    }

    fn template(&self) -> Option<&PodTemplateSpec> {
        self.spec.as_ref()?.template.as_ref()
    }

    fn replicas(&self) -> i32 {
        self.spec
            .as_ref()
            .and_then(|spec| spec.replicas)
            .unwrap_or(1)
    }

    fn min_ready_seconds(&self) -> i32 {
        self.spec
            .as_ref()
            .and_then(|spec| spec.min_ready_seconds)
            .unwrap_or(0)
    }

    fn with_status(
        &self,
        counts: &Counts,
        failure: Option<&Failure>,
        now: Timestamp,
    ) -> Option<Self> {
        let old = self.status.clone().unwrap_or_default();
        let mut conditions = old.conditions.clone().unwrap_or_default();
        let known = conditions.iter().any(|one| one.type_ == FAILURE);
        match failure {
            Some(failure) if !known => conditions.push(ReplicationControllerCondition {
                type_: FAILURE.to_owned(),
                status: "True".to_owned(),
                reason: Some(failure.reason.to_owned()),
                message: Some(failure.message.clone()),
                last_transition_time: Some(Time(now)),
            }),
            Some(_) => {}
            None => conditions.retain(|one| one.type_ != FAILURE),
        }
        let status = ReplicationControllerStatus {
            replicas: counts.replicas,
            fully_labeled_replicas: some(counts.fully_labeled),
            ready_replicas: some(counts.ready),
            available_replicas: some(counts.available),
            observed_generation: self.metadata.generation,
            conditions: (!conditions.is_empty()).then_some(conditions),
        };
        (self.status.as_ref() != Some(&status)).then(|| Self {
            status: Some(status),
            ..self.clone()
        })
    }
}

/// A number as the API stores it, where none and zero are the same.
fn some(count: i32) -> Option<i32> {
    (count != 0).then_some(count)
}
