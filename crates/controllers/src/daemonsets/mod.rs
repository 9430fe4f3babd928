//! Keeps one daemon on every node that should have one.
//!
//! The scheduler binds the pods; which node each is for is written into its affinity when it is made.

mod decide;
mod nodes;
mod platforms;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use kube::ResourceExt as _;

use self::{
    decide::{GENERATION, Plan, Sight},
    nodes::{complete, judge_all, pin, target},
    platforms::Needs,
};
use crate::{
    fault::Fault,
    queue::Next,
    workloads::{
        World,
        index::Key,
        owners::{claim, plan_claims, reference_to},
        pods,
        requests::{create_pod, delete_pod, is_ending, replace_status, slow_start},
        revisions::{self, Naming, Outcome, REVISION, ensure, forget, plan_revision},
    },
};

const CONTROLLER: &str = "daemonset-controller";
/// How many pods one look makes or deletes at most.
const BURST: usize = 250;

/// Brings the daemons of one set closer to what it wants.
pub(crate) async fn reconcile(world: Arc<World>, key: Key) -> Result<Next, Fault> {
    world.images.settled().await;
    let Some(set) = world.daemon_sets.get(&key) else {
        return Ok(Next::Done);
    };
    let Some(spec) = &set.spec else {
        return Ok(Next::Done);
    };
    let uid = set.uid().unwrap_or_default();
    let selector = &spec.selector;
    // One that selects everything is a mistake, and costly.
    if selector.match_labels.is_none() && selector.match_expressions.is_none() {
        return Ok(Next::Done);
    }
    let history = plan_claims(
        &set.metadata,
        selector,
        world.revisions.owned_by(&uid),
        world.revisions.ownerless(&key.namespace),
    );
    let history = claim(&world.client, &*set, &world.revisions, history).await?;
    let Some((current, hash)) = current_revision(&world, &set, &history).await? else {
        return Err(Fault::Incomplete);
    };
    let claims = plan_claims(
        &set.metadata,
        selector,
        world.pods.owned_by(&uid),
        world.pods.ownerless(&key.namespace),
    );
    let owned = claim(&world.client, &*set, &world.pods, claims).await?;
    let generation = set.annotations().get(GENERATION).map(String::as_str);
    let template = complete(&spec.template, &hash, generation);
    let nodes = world.nodes.within("");
    let needs = Needs::of(&template, |image| world.images.platforms(image));
    let verdicts = judge_all(&template, &needs, &nodes);
    let sight = Sight::new(&set, spec, &hash, &verdicts, &owned, world.now());
    let plan = sight.plan(|node| world.backoff.left(&place(&uid, node)).is_zero());
    let outcome = act(&world, &set, &template, plan).await;
    // What was just made or deleted counts already.
    let owned = world.pods.owned_by(&uid);
    let sight = Sight::new(&set, spec, &hash, &verdicts, &owned, world.now());
    let status = sight.status();
    if set.status.as_ref() != Some(&status) {
        let newer = DaemonSet {
            status: Some(status),
            ..DaemonSet::clone(&set)
        };
        replace_status(&world.client, &world.daemon_sets, &newer).await?;
    }
    outcome?;
    let waits = owned
        .iter()
        .filter(|pod| pods::phase(pod) == "Failed")
        .filter_map(|pod| target(pod))
        .map(|node| world.backoff.left(&place(&uid, node)));
    if let Some(pause) = waits
        .chain(sight.until_next_available())
        .filter(|pause| !pause.is_zero())
        .min()
    {
        world.queues.daemon_sets.add_after(key, pause);
    }
    let live = sight.live_hashes();
    let is_live = |revision: &&Arc<ControllerRevision>| {
        revision.name_any() == current.name_any()
            || revision
                .labels()
                .get(REVISION)
                .is_some_and(|hash| live.contains(hash.as_str()))
    };
    let live: BTreeSet<String> = history
        .iter()
        .filter(is_live)
        .map(|one| one.name_any())
        .collect();
    if set.metadata.deletion_timestamp.is_none() {
        forget(
            &world,
            &revisions::superfluous(&history, &live, spec.revision_history_limit),
        )
        .await?;
    }
    Ok(Next::Done)
}

fn place(uid: &str, node: &str) -> String {
    format!("{uid}/{node}")
}

/// The revision of the template and its hash; `None` if its name was taken and another is to be tried.
async fn current_revision(
    world: &World,
    set: &DaemonSet,
    history: &[Arc<ControllerRevision>],
) -> Result<Option<(Arc<ControllerRevision>, String)>, Fault> {
    let Some(spec) = &set.spec else {
        return Ok(None);
    };
    let step = plan_revision(&revisions::data_of(&spec.template), history);
    let collisions = set
        .status
        .as_ref()
        .and_then(|status| status.collision_count);
    let naming = Naming {
        label: REVISION,
        collisions,
    };
    match ensure(world, set, &spec.template, step, &naming).await? {
        Outcome::Is(revision) => {
            let hash = revision.labels().get(REVISION).cloned();
            let hash = hash.unwrap_or_else(|| revision.name_any());
            Ok(Some((revision, hash)))
        }
        Outcome::Collides => {
            let mut newer = set.clone();
            let status = newer.status.get_or_insert_default();
            status.collision_count = Some(collisions.unwrap_or(0) + 1);
            replace_status(&world.client, &world.daemon_sets, &newer).await?;
            Ok(None)
        }
    }
}

async fn act(
    world: &World,
    set: &DaemonSet,
    template: &k8s_openapi::api::core::v1::PodTemplateSpec,
    plan: Plan,
) -> Result<(), Fault> {
    for news in plan.news {
        world.events.tell(CONTROLLER, set, news);
    }
    let uid = set.uid().unwrap_or_default();
    let victims = &plan.delete;
    for pod in victims.iter().filter(|pod| pods::phase(pod) == "Failed") {
        if let Some(node) = target(pod) {
            world.backoff.failed(&place(&uid, node));
        }
    }
    let (name, namespace) = (set.name_any(), set.namespace().unwrap_or_default());
    let create = |number: usize| {
        let template = pin(template, &plan.create[number]);
        let pod = pods::from_template(&template, &namespace, &name, reference_to(set));
        async move { create_pod(world, CONTROLLER, set, &pod).await.map(|_| ()) }
    };
    let (_, created) = slow_start(plan.create.len().min(BURST), create).await;
    let delete = |number: usize| delete_pod(world, CONTROLLER, set, &victims[number]);
    let (_, deleted) = slow_start(victims.len().min(BURST), delete).await;
    match created.or(deleted) {
        Some(fault) if !is_ending(&fault) => Err(fault),
        _ => Ok(()),
    }
}
