//! Rolls deployments out: one replica set for each template, of which one grows while others shrink.
//!
//! A replica set is named by the hash of its template, so making it twice makes it once.

mod conditions;
mod decide;
mod sets;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube::{
    ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

use self::decide::{Plan, Update, plan_step, scaled_news};
use crate::{
    fault::{Fault, ask, fetch, found},
    queue::Next,
    workloads::{
        World,
        events::News,
        index::Key,
        owners::{claim, is_controlled_by, plan_claims},
        pods,
        requests::{create, delete, is_ending, objects, replace_status},
    },
};

const CONTROLLER: &str = "deployment-controller";

/// Takes the next step of one deployment.
pub(crate) async fn reconcile(world: Arc<World>, key: Key) -> Result<Next, Fault> {
    let Some(deployment) = world.deployments.get(&key) else {
        return Ok(Next::Done);
    };
    let Some(spec) = &deployment.spec else {
        return Ok(Next::Done);
    };
    let uid = deployment.uid().unwrap_or_default();
    let claims = plan_claims(
        &deployment.metadata,
        &spec.selector,
        world.replica_sets.owned_by(&uid),
        world.replica_sets.ownerless(&key.namespace),
    );
    let sets = claim(&world.client, &*deployment, &world.replica_sets, claims).await?;
    let is_busy = |set: &ReplicaSet| {
        let pods = world
            .pods
            .owned_by(set.metadata.uid.as_deref().unwrap_or_default());
        pods.iter().any(|pod| !pods::is_over(pod))
    };
    let plan = plan_step(&deployment, spec, &sets, is_busy, world.now());
    let again = plan.again;
    Box::pin(act(&world, &deployment, plan)).await?;
    if let Some(pause) = again {
        world.queues.deployments.add_after(key, pause);
    }
    Ok(Next::Done)
}

async fn act(world: &World, deployment: &Deployment, plan: Plan) -> Result<(), Fault> {
    if let Some(set) = &plan.create
        && !make(world, deployment, set).await?
    {
        return Ok(());
    }
    for update in plan.updates {
        resize(world, deployment, update).await?;
    }
    for set in plan.deletes {
        delete(
            world,
            &world.replica_sets,
            &*set,
            DeleteParams::background(),
        )
        .await?;
    }
    let mut newer = match plan.revision {
        Some(revision) => {
            let change = json!({"metadata": {
                "uid": deployment.uid(),
                "annotations": {sets::REVISION: revision},
            }});
            let deployments =
                objects::<Deployment>(&world.client, &deployment.namespace().unwrap_or_default());
            let (parameters, name) = (PatchParams::default(), deployment.name_any());
            let answer = ask(deployments.patch(&name, &parameters, &Patch::Merge(change))).await?;
            if answer.metadata.generation != deployment.metadata.generation {
                // Somebody wants something else by now.
                return Err(Fault::Incomplete);
            }
            answer
        }
        None => deployment.clone(),
    };
    if newer.status.as_ref() != Some(&plan.status) {
        newer.status = Some(plan.status);
        replace_status(&world.client, &world.deployments, &newer).await?;
    }
    Ok(())
}

/// Makes the new replica set. Tells whether it is there.
async fn make(world: &World, deployment: &Deployment, set: &ReplicaSet) -> Result<bool, Fault> {
    let name = set.name_any();
    match create(&world.client, &world.replica_sets, set).await {
        Ok(_) => {
            let replicas = set
                .spec
                .as_ref()
                .and_then(|spec| spec.replicas)
                .unwrap_or(0);
            if replicas > 0 {
                let news = scaled_news("up", &name, 0, replicas);
                world.events.tell(CONTROLLER, deployment, news);
            }
            Ok(true)
        }
        Err(fault) if fault.is_conflict() => taken(world, deployment, set).await,
        Err(fault) if is_ending(&fault) => Ok(false),
        Err(fault) => {
            let text = fault.text();
            let status = conditions::not_created(deployment, &name, &text, world.now());
            let news = News::warning(
                "ReplicaSetCreateError",
                format!("Failed to create new replica set {name:?}: {text}"),
            );
            world.events.tell(CONTROLLER, deployment, news);
            write_status(world, deployment, status).await?;
            Err(fault)
        }
    }
}

/// The name is taken: by ourselves a moment ago, or by another template with the same hash.
async fn taken(world: &World, deployment: &Deployment, set: &ReplicaSet) -> Result<bool, Fault> {
    let objects = objects::<ReplicaSet>(&world.client, &deployment.namespace().unwrap_or_default());
    let Some(other) = found(fetch(objects.get(&set.name_any())).await)? else {
        return Err(Fault::Incomplete);
    };
    let template = |set: &ReplicaSet| set.spec.as_ref().and_then(|spec| spec.template.clone());
    let is_ours = is_controlled_by(&other.metadata, deployment.metadata.uid.as_deref());
    if let (Some(wanted), Some(has)) = (template(set), template(&other))
        && is_ours
        && sets::is_same(&wanted, &has)
    {
        world.replica_sets.note(other);
        return Ok(true);
    }
    let mut status = deployment.status.clone().unwrap_or_default();
    status.collision_count = Some(status.collision_count.unwrap_or(0) + 1);
    write_status(world, deployment, status).await?;
    // The next look takes another name.
    Err(Fault::Incomplete)
}

async fn write_status(
    world: &World,
    deployment: &Deployment,
    status: k8s_openapi::api::apps::v1::DeploymentStatus,
) -> Result<(), Fault> {
    let newer = Deployment {
        status: Some(status),
        ..deployment.clone()
    };
    if newer.status == deployment.status {
        return Ok(());
    }
    replace_status(&world.client, &world.deployments, &newer).await?;
    Ok(())
}

/// Writes a replica set on the version that was seen.
async fn resize(world: &World, deployment: &Deployment, update: Update) -> Result<(), Fault> {
    let objects = objects::<ReplicaSet>(&world.client, &deployment.namespace().unwrap_or_default());
    let name = update.set.name_any();
    let answer = ask(objects.replace(&name, &PostParams::default(), &update.set)).await?;
    world.replica_sets.note(answer);
    if let Some(news) = update.news {
        world.events.tell(CONTROLLER, deployment, news);
    }
    Ok(())
}
