//! Whom a change concerns.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        apps::v1::{ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet},
        batch::v1::{CronJob, Job},
        core::v1::{Node, Pod, ReplicationController},
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference},
};
use kube::{Resource, ResourceExt as _};
use transom_model::images::object_name;

use super::{
    World,
    index::{Change, Index, Key},
    nodes,
    owners::{controller_of, selects},
    pods,
};
use crate::{jobs::is_tracked, queue::Queue};

/// The object itself, before or after.
fn key<K: Resource>(change: &Change<K>) -> Option<Key> {
    let object = change.new.as_ref().or(change.old.as_ref());
    object.map(|object| Key::of(&**object))
}

/// The controllers that an object has or had.
fn controllers<K: Resource>(change: &Change<K>) -> Vec<(String, OwnerReference)> {
    let of = |object: &K| {
        let owner = controller_of(object.meta())?.clone();
        Some((object.namespace().unwrap_or_default(), owner))
    };
    let old = change.old.as_deref().and_then(of);
    let new = change.new.as_deref().and_then(of);
    let old = old.filter(|old| Some(old) != new.as_ref());
    old.into_iter().chain(new).collect()
}

/// The object after the change, if nobody owns it.
fn stray<K: Resource>(change: &Change<K>) -> Option<&ObjectMeta> {
    let metadata = change.new.as_deref()?.meta();
    controller_of(metadata).is_none().then_some(metadata)
}

/// Has those looked at that could adopt a stray.
fn offer<K>(
    stray: &ObjectMeta,
    index: &Index<K>,
    queue: &Queue<Key>,
    selector: impl Fn(&K) -> Option<LabelSelector>,
) where
    K: Resource<DynamicType = ()> + Clone,
{
    let namespace = stray.namespace.as_deref().unwrap_or_default();
    for owner in index.within(namespace) {
        if selector(&owner).is_some_and(|selector| selects(&selector, stray.labels.as_ref())) {
            queue.add(Key::of(&*owner));
        }
    }
}

pub(super) fn pod(world: &World, change: &Change<Pod>) {
    let queues = &world.queues;
    for (namespace, owner) in controllers(change) {
        let key = Key::new(&namespace, &owner.name);
        match owner.kind.as_str() {
            "ReplicaSet" => {
                if change.new.is_none() {
                    recreating(world, &key);
                }
                queues.replica_sets.add(key);
            }
            "ReplicationController" => queues.replication_controllers.add(key),
            "DaemonSet" => queues.daemon_sets.add(key),
            "StatefulSet" => queues.stateful_sets.add(key),
            "Job" => queues.jobs.add(key),
            _ => {}
        }
    }
    if let Some(pod) = &change.new
        && is_tracked(pod)
        && !has_job(world, pod)
    {
        queues.job_pods.add(Key::of(&**pod));
    }
    if let Some(stray) = stray(change) {
        offer(stray, &world.replica_sets, &queues.replica_sets, |one| {
            Some(one.spec.as_ref()?.selector.clone())
        });
        offer(stray, &world.daemon_sets, &queues.daemon_sets, |one| {
            Some(one.spec.as_ref()?.selector.clone())
        });
        offer(stray, &world.stateful_sets, &queues.stateful_sets, |one| {
            Some(one.spec.as_ref()?.selector.clone())
        });
        offer(stray, &world.jobs, &queues.jobs, |one| {
            one.spec.as_ref()?.selector.clone()
        });
        offer(
            stray,
            &world.replication_controllers,
            &queues.replication_controllers,
            |one| equality(one.spec.as_ref()?.selector.as_ref()?),
        );
    }
}

/// A deployment that recreates waits for the last old pod to be gone.
fn recreating(world: &World, replica_set: &Key) {
    let owner = world.replica_sets.get(replica_set).and_then(|replica_set| {
        controller_of(&replica_set.metadata).map(|owner| owner.name.clone())
    });
    if let Some(owner) = owner {
        let key = Key::new(&replica_set.namespace, &owner);
        world.queues.deployments.add(key);
    }
}

/// A selector in the words of old; nothing selected means none.
pub(crate) fn equality(labels: &BTreeMap<String, String>) -> Option<LabelSelector> {
    (!labels.is_empty()).then(|| LabelSelector {
        match_labels: Some(labels.clone()),
        match_expressions: None,
    })
}

pub(super) fn replica_set(world: &World, change: &Change<ReplicaSet>) {
    let queues = &world.queues;
    if let Some(key) = key(change) {
        queues.replica_sets.add(key);
    }
    for (namespace, owner) in controllers(change) {
        if owner.kind == "Deployment" {
            queues.deployments.add(Key::new(&namespace, &owner.name));
        }
    }
    if let Some(stray) = stray(change) {
        offer(stray, &world.deployments, &queues.deployments, |one| {
            Some(one.spec.as_ref()?.selector.clone())
        });
    }
}

pub(super) fn replication_controller(world: &World, change: &Change<ReplicationController>) {
    if let Some(key) = key(change) {
        world.queues.replication_controllers.add(key);
    }
}

pub(super) fn deployment(world: &World, change: &Change<Deployment>) {
    if let Some(key) = key(change) {
        world.queues.deployments.add(key);
    }
}

pub(super) fn daemon_set(world: &World, change: &Change<DaemonSet>) {
    if let Some(key) = key(change) {
        world.queues.daemon_sets.add(key);
    }
}

pub(super) fn revision(world: &World, change: &Change<ControllerRevision>) {
    for (namespace, owner) in controllers(change) {
        let key = Key::new(&namespace, &owner.name);
        match owner.kind.as_str() {
            "DaemonSet" => world.queues.daemon_sets.add(key),
            "StatefulSet" => world.queues.stateful_sets.add(key),
            _ => {}
        }
    }
}

/// A node that comes, goes, or says something else about who may run on it concerns all daemons; an image that it
/// gets or loses concerns those that use it.
pub(super) fn node(world: &World, change: &Change<Node>) {
    if let (Some(old), Some(new)) = (&change.old, &change.new)
        && old.metadata.labels == new.metadata.labels
        && old.spec == new.spec
        && nodes::info(old) == nodes::info(new)
    {
        let (old, new) = (nodes::images(old), nodes::images(new));
        if old != new {
            let has = |images: &[String], image: &String| images.binary_search(image).is_ok();
            daemons(world, |image| has(old, image) != has(new, image));
        }
        return;
    }
    for set in world.daemon_sets.all() {
        world.queues.daemon_sets.add(Key::of(&*set));
    }
}

/// What an image is for concerns the daemons that use it.
pub(super) fn image(world: &World, object: &str) {
    daemons(world, |image| object_name(image) == object);
}

/// Has those daemon sets looked at that use an image of some kind.
fn daemons(world: &World, is_meant: impl Fn(&String) -> bool) {
    for set in world.daemon_sets.all() {
        let template = set.spec.as_ref().map(|spec| &spec.template);
        let pod = template.and_then(|template| template.spec.as_ref());
        if pod.is_some_and(|pod| pods::images(pod).any(|image| is_meant(&image))) {
            world.queues.daemon_sets.add(Key::of(&*set));
        }
    }
}

pub(super) fn stateful_set(world: &World, change: &Change<StatefulSet>) {
    if let Some(key) = key(change) {
        world.queues.stateful_sets.add(key);
    }
}

/// Whether the job that a pod is of is known.
fn has_job(world: &World, pod: &Pod) -> bool {
    let Some(owner) = controller_of(&pod.metadata) else {
        return false;
    };
    let key = Key::new(
        pod.metadata.namespace.as_deref().unwrap_or_default(),
        &owner.name,
    );
    let job = world.jobs.get(&key);
    job.is_some_and(|job| job.metadata.uid.as_ref() == Some(&owner.uid))
}

pub(super) fn job(world: &World, change: &Change<Job>) {
    if let Some(key) = key(change) {
        world.queues.jobs.add(key);
    }
    for (namespace, owner) in controllers(change) {
        if owner.kind == "CronJob" {
            world
                .queues
                .cron_jobs
                .add(Key::new(&namespace, &owner.name));
        }
    }
    let Some(old) = &change.old else { return };
    let is_gone = change
        .new
        .as_ref()
        .is_none_or(|new| new.metadata.uid != old.metadata.uid);
    if is_gone {
        for pod in world
            .pods
            .owned_by(old.metadata.uid.as_deref().unwrap_or_default())
        {
            world.queues.job_pods.add(Key::of(&*pod));
        }
    }
}

pub(super) fn cron_job(world: &World, change: &Change<CronJob>) {
    if let Some(key) = key(change) {
        world.queues.cron_jobs.add(key);
    }
}
