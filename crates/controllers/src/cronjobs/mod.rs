//! Begins jobs when their time comes, in the time zone that they say.
//!
//! A job is named by its time, so a controller that starts again begins none twice.

mod decide;
mod schedule;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::batch::v1::{CronJob, Job};
use kube::{ResourceExt as _, api::DeleteParams};

use self::decide::{Plan, is_running, plan, reference};
use crate::{
    fault::{Fault, fetch, found},
    queue::Next,
    workloads::{
        World,
        events::News,
        index::Key,
        owners::is_controlled_by,
        requests::{create, delete, is_ending, objects, replace_status},
    },
};

const CONTROLLER: &str = "cronjob-controller";

/// Begins what is due for one schedule, and forgets what is old.
pub(crate) async fn reconcile(world: Arc<World>, key: Key) -> Result<Next, Fault> {
    let Some(cron) = world.cron_jobs.get(&key) else {
        return Ok(Next::Done);
    };
    let jobs = world.jobs.owned_by(&cron.uid().unwrap_or_default());
    let plan = plan(&cron, &cron.spec, &jobs, world.now());
    if let Some(pause) = plan.again {
        world.queues.cron_jobs.add_after(key, pause);
    }
    match act(&world, &cron, plan).await {
        Err(fault) if is_ending(&fault) => Ok(Next::Done),
        outcome => outcome.map(|()| Next::Done),
    }
}

async fn act(world: &World, cron: &CronJob, plan: Plan) -> Result<(), Fault> {
    let mut status = plan.status;
    for news in plan.news {
        world.events.tell(CONTROLLER, cron, news);
    }
    for job in plan.replace.iter().chain(&plan.forget) {
        remove(world, cron, job).await?;
    }
    if let Some(job) = &plan.create {
        let made = begin(world, cron, job).await?;
        // One that a former self began may have ended since.
        if is_running(&made) {
            status.active.get_or_insert_default().push(reference(&made));
        }
    }
    if cron.status.as_ref() != Some(&status) {
        let newer = CronJob {
            status: Some(status),
            ..cron.clone()
        };
        replace_status(&world.client, &world.cron_jobs, &newer).await?;
    }
    Ok(())
}

/// Creates a job, unless a former self of ours did.
async fn begin(world: &World, cron: &CronJob, job: &Job) -> Result<Arc<Job>, Fault> {
    let name = job.name_any();
    match create(&world.client, &world.jobs, job).await {
        Ok(made) => {
            let news = News::normal("SuccessfulCreate", format!("Created job {name}"));
            world.events.tell(CONTROLLER, cron, news);
            Ok(made)
        }
        Err(fault) if fault.is_conflict() => {
            let api = objects::<Job>(&world.client, &cron.namespace().unwrap_or_default());
            let other = found(fetch(api.get(&name)).await)?.ok_or(Fault::Incomplete)?;
            if is_controlled_by(&other.metadata, cron.metadata.uid.as_deref()) {
                return Ok(world.jobs.note(other));
            }
            let text = format!("Error creating job: {}", fault.text());
            world
                .events
                .tell(CONTROLLER, cron, News::warning("FailedCreate", text));
            Err(fault)
        }
        Err(fault) => {
            if !is_ending(&fault) {
                let text = format!("Error creating job: {}", fault.text());
                world
                    .events
                    .tell(CONTROLLER, cron, News::warning("FailedCreate", text));
            }
            Err(fault)
        }
    }
}

async fn remove(world: &World, cron: &CronJob, job: &Job) -> Result<(), Fault> {
    match delete(world, &world.jobs, job, DeleteParams::background()).await {
        Ok(()) => {
            let news = News::normal(
                "SuccessfulDelete",
                format!("Deleted job {}", job.name_any()),
            );
            world.events.tell(CONTROLLER, cron, news);
            Ok(())
        }
        Err(fault) => {
            let text = format!("Deleted job: {}", fault.text());
            world
                .events
                .tell(CONTROLLER, cron, News::warning("FailedDelete", text));
            Err(fault)
        }
    }
}
