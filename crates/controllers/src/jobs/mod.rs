//! Runs pods to their end, as many as a job wants, and counts each of them once.

mod decide;
mod failures;
mod indexes;
mod manage;
mod template;
#[cfg(test)]
mod tests;
mod tracking;

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use k8s_openapi::{
    api::{
        batch::v1::{Job, JobSpec},
        core::v1::Pod,
    },
    jiff::Timestamp,
};
use kube::{
    ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use self::decide::{Plan, is_finished, plan};
pub(crate) use self::template::is_tracked;
use self::template::{FINALIZER, new_pod};
use crate::{
    fault::{Fault, ask, fetch, found},
    queue::Next,
    workloads::{
        World,
        index::Key,
        owners::{claim, controller_of, plan_claims},
        pods::{elapsed, is_active},
        requests::{
            create_pod, delete, delete_pod, is_ending, objects, replace_status, slow_start,
        },
    },
};

const CONTROLLER: &str = "job-controller";
/// The job controller of this cluster, in the field that may name another.
const OURS: &str = "kubernetes.io/job-controller";
/// How many finalizers are taken off at once.
const AT_ONCE: usize = 100;

/// Brings one job closer to its end.
pub(crate) async fn reconcile(world: Arc<World>, key: Key) -> Result<Next, Fault> {
    let Some(job) = world.jobs.get(&key) else {
        return Ok(Next::Done);
    };
    let Some(spec) = &job.spec else {
        return Ok(Next::Done);
    };
    if spec
        .managed_by
        .as_deref()
        .is_some_and(|other| other != OURS)
    {
        return Ok(Next::Done);
    }
    if job.status.as_ref().is_some_and(is_finished) {
        return clean(&world, &key, &job, spec).await;
    }
    let Some(selector) = &spec.selector else {
        return Ok(Next::Done);
    };
    let uid = job.uid().unwrap_or_default();
    let claims = plan_claims(
        &job.metadata,
        selector,
        world.pods.owned_by(&uid),
        world.pods.ownerless(&key.namespace),
    );
    for pod in &claims.released {
        release(&world, pod).await?;
    }
    let owned = claim(&world.client, &*job, &world.pods, claims).await?;
    for pod in owned
        .iter()
        .filter(|pod| is_active(pod) && !is_tracked(pod))
    {
        hold(&world, pod).await?;
    }
    let owned = world.pods.owned_by(&uid);
    let plan = plan(&job, spec, &owned, world.now());
    if let Some(pause) = plan.again {
        world.queues.jobs.add_after(key, pause);
    }
    act(&world, &job, spec, plan).await?;
    Ok(Next::Done)
}

async fn act(world: &World, job: &Job, spec: &JobSpec, plan: Plan) -> Result<(), Fault> {
    let victims = &plan.dismiss;
    let dismiss = |number: usize| async move {
        let pod = &victims[number];
        // It does not count, so nothing may keep it.
        release(world, pod).await?;
        delete_pod(world, CONTROLLER, job, pod).await
    };
    let (_, dismissed) = slow_start(victims.len(), dismiss).await;
    let ends = &plan.end;
    let (_, ended) = slow_start(ends.len(), |number| {
        delete_pod(world, CONTROLLER, job, &ends[number])
    })
    .await;
    let create = |number: usize| {
        let wanted = plan.create[number];
        let pod = new_pod(job, spec, wanted.index, wanted.failures);
        async move { create_pod(world, CONTROLLER, job, &pod).await.map(|_| ()) }
    };
    let (_, created) = slow_start(plan.create.len(), create).await;
    let known = job.status.clone().unwrap_or_default();
    if known != plan.status {
        let newer = Job {
            status: Some(plan.status),
            ..job.clone()
        };
        replace_status(&world.client, &world.jobs, &newer).await?;
    }
    for news in plan.news {
        world.events.tell(CONTROLLER, job, news);
    }
    release_all(world, &plan.release).await?;
    match dismissed.or(ended).or(created) {
        Some(fault) if !is_ending(&fault) => Err(fault),
        _ => Ok(()),
    }
}

/// Lets the pods of a finished job go, and the job itself when its time has come.
async fn clean(world: &World, key: &Key, job: &Job, spec: &JobSpec) -> Result<Next, Fault> {
    let owned = world.pods.owned_by(&job.uid().unwrap_or_default());
    let held: Vec<Arc<Pod>> = owned.into_iter().filter(|pod| is_tracked(pod)).collect();
    release_all(world, &held).await?;
    let (Some(keep), Some(end)) = (spec.ttl_seconds_after_finished, finished_at(job)) else {
        return Ok(Next::Done);
    };
    if job.metadata.deletion_timestamp.is_some() {
        return Ok(Next::Done);
    }
    let keep = Duration::from_secs(u64::try_from(keep).unwrap_or(0));
    let left = keep.saturating_sub(elapsed(end, world.now()));
    if left.is_zero() {
        delete(world, &world.jobs, job, DeleteParams::foreground()).await?;
    } else {
        world.queues.jobs.add_after(key.clone(), left);
    }
    Ok(Next::Done)
}

/// When a job finished.
fn finished_at(job: &Job) -> Option<Timestamp> {
    let status = job.status.as_ref()?;
    let last = [decide::COMPLETE, decide::FAILED];
    let condition = last
        .into_iter()
        .find_map(|kind| decide::find(status, kind))?;
    condition.last_transition_time.as_ref().map(|time| time.0)
}

async fn release_all(world: &World, pods: &[Arc<Pod>]) -> Result<(), Fault> {
    for some in pods.chunks(AT_ONCE) {
        let outcomes = join_all(some.iter().map(|pod| release(world, pod))).await;
        outcomes.into_iter().collect::<Result<(), Fault>>()?;
    }
    Ok(())
}

/// Takes our finalizer off a pod. That it is gone is as good.
async fn release(world: &World, pod: &Pod) -> Result<(), Fault> {
    let Some(pod) = world
        .pods
        .get(&Key::of(pod))
        .filter(|known| known.uid() == pod.uid())
    else {
        return Ok(());
    };
    if !is_tracked(&pod) {
        return Ok(());
    }
    let rest: Vec<&String> = pod
        .finalizers()
        .iter()
        .filter(|one| *one != FINALIZER)
        .collect();
    set_finalizers(world, &pod, &rest).await
}

/// Puts our finalizer on a pod that has none, which only one that was adopted can lack.
async fn hold(world: &World, pod: &Pod) -> Result<(), Fault> {
    let finalizer = FINALIZER.to_owned();
    let all: Vec<&String> = pod.finalizers().iter().chain([&finalizer]).collect();
    set_finalizers(world, pod, &all).await
}

/// Writes the list of finalizers whole, on the version that was seen.
async fn set_finalizers(world: &World, pod: &Pod, finalizers: &[&String]) -> Result<(), Fault> {
    let list = if finalizers.is_empty() {
        Value::Null
    } else {
        json!(finalizers)
    };
    let metadata = json!({
        "uid": pod.uid(), "resourceVersion": pod.resource_version(), "finalizers": list,
    });
    let change = Patch::Merge(json!({"metadata": metadata}));
    let api = objects::<Pod>(&world.client, &pod.namespace().unwrap_or_default());
    let (name, parameters) = (pod.name_any(), PatchParams::default());
    if let Some(newer) = found(ask(api.patch(&name, &parameters, &change)).await)? {
        world.pods.note(newer);
    }
    Ok(())
}

/// Lets a pod go whose job is no more.
pub(crate) async fn let_go(world: Arc<World>, key: Key) -> Result<Next, Fault> {
    let Some(pod) = world.pods.get(&key).filter(|pod| is_tracked(pod)) else {
        return Ok(Next::Done);
    };
    if let Some(owner) = controller_of(&pod.metadata).filter(|owner| owner.kind == "Job") {
        let job = Key::new(&key.namespace, &owner.name);
        if world
            .jobs
            .get(&job)
            .is_some_and(|job| job.uid().as_ref() == Some(&owner.uid))
        {
            return Ok(Next::Done);
        }
        // What we know may be old: the job may be younger than our last news.
        let live =
            found(fetch(objects::<Job>(&world.client, &key.namespace).get(&owner.name)).await)?;
        if live.is_some_and(|live| live.uid().as_ref() == Some(&owner.uid)) {
            return Ok(Next::Done);
        }
    }
    release(&world, &pod).await?;
    Ok(Next::Done)
}
