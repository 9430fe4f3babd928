//! Keeps pods that have a name and volumes of their own, one after the other.
//!
//! A pod's name follows from its set and number, so no pod is ever there twice.

mod claims;
mod decide;
mod identity;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use k8s_openapi::api::{
    apps::v1::{ControllerRevision, StatefulSet, StatefulSetSpec},
    core::v1::{PersistentVolumeClaim, Pod},
};
use kube::{
    ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Map, Value, json};

use self::decide::{Sight, Step, Version, by_number, revision};
use crate::{
    fault::{Fault, ask, found},
    queue::Next,
    workloads::{
        World,
        events::News,
        index::Key,
        owners::{claim, plan_claims},
        requests::{create, delete, is_ending, objects, replace_status, slow_start},
        revisions::{self, Naming, Outcome, ensure, forget, plan_revision, template_of},
    },
};

const CONTROLLER: &str = "statefulset-controller";
const HASH: &str = "controller.kubernetes.io/hash";
/// How long a claim that is on its way out is waited for between two looks.
const CLAIM_PAUSE: Duration = Duration::from_secs(5);

/// Takes the next steps of one set.
pub(crate) async fn reconcile(world: Arc<World>, key: Key) -> Result<Next, Fault> {
    let Some(set) = world.stateful_sets.get(&key) else {
        return Ok(Next::Done);
    };
    let Some(spec) = &set.spec else {
        return Ok(Next::Done);
    };
    let uid = set.uid().unwrap_or_default();
    let history = plan_claims(
        &set.metadata,
        &spec.selector,
        world.revisions.owned_by(&uid),
        world.revisions.ownerless(&key.namespace),
    );
    let history = claim(&world.client, &*set, &world.revisions, history).await?;
    let owned = owned_pods(&world, &set, spec).await?;
    let collisions = set
        .status
        .as_ref()
        .and_then(|status| status.collision_count)
        .unwrap_or(0);
    let Some(update) = update_revision(&world, &set, spec, &history, collisions).await? else {
        return Err(Fault::Incomplete);
    };
    let current = set
        .status
        .as_ref()
        .and_then(|status| status.current_revision.as_ref());
    let current = history.iter().find(|one| Some(&one.name_any()) == current);
    let update_version = Version {
        name: update.name_any(),
        template: spec.template.clone(),
    };
    let current_version = current.and_then(|one| {
        Some(Version {
            name: one.name_any(),
            template: template_of(one)?,
        })
    });
    let mut sight = Sight {
        set: &set,
        spec,
        current: current_version.unwrap_or_else(|| update_version.clone()),
        update: update_version,
        pods: by_number(&key.name, &owned),
        now: world.now(),
    };
    keep_claims(&world, &sight).await?;
    let outcome = act(&world, &sight, sight.plan()).await;
    // What was just made or deleted counts already.
    let owned = world.pods.owned_by(&uid);
    sight.pods = by_number(&key.name, &owned);
    sight.now = world.now();
    let status = sight.status(collisions);
    if set.status.as_ref() != Some(&status) {
        let newer = StatefulSet {
            status: Some(status),
            ..StatefulSet::clone(&set)
        };
        replace_status(&world.client, &world.stateful_sets, &newer).await?;
    }
    if let Some(pause) = sight.until_next_available() {
        world.queues.stateful_sets.add_after(key, pause);
    }
    let next = match outcome {
        Err(fault) if is_ending(&fault) => Next::Done,
        outcome => outcome?,
    };
    if set.metadata.deletion_timestamp.is_none() {
        let mut live = BTreeSet::from([sight.current.name.clone(), sight.update.name.clone()]);
        live.extend(owned.iter().filter_map(|pod| revision(pod).cloned()));
        forget(
            &world,
            &revisions::superfluous(&history, &live, spec.revision_history_limit),
        )
        .await?;
    }
    Ok(next)
}

async fn owned_pods(
    world: &World,
    set: &StatefulSet,
    spec: &StatefulSetSpec,
) -> Result<Vec<Arc<Pod>>, Fault> {
    let (name, namespace) = (set.name_any(), set.namespace().unwrap_or_default());
    let mut strays = world.pods.ownerless(&namespace);
    strays.retain(|pod| identity::number(&name, &pod.name_any()).is_some());
    let owned = world.pods.owned_by(&set.uid().unwrap_or_default());
    let claims = plan_claims(&set.metadata, &spec.selector, owned, strays);
    claim(&world.client, set, &world.pods, claims).await
}

/// The revision of the template; `None` if its name was taken and another is to be tried.
async fn update_revision(
    world: &World,
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    history: &[Arc<ControllerRevision>],
    collisions: i32,
) -> Result<Option<Arc<ControllerRevision>>, Fault> {
    let step = plan_revision(&revisions::data_of(&spec.template), history);
    let naming = Naming {
        label: HASH,
        collisions: Some(collisions),
    };
    match ensure(world, set, &spec.template, step, &naming).await? {
        Outcome::Is(revision) => Ok(Some(revision)),
        Outcome::Collides => {
            let mut newer = set.clone();
            newer.status.get_or_insert_default().collision_count = Some(collisions + 1);
            replace_status(&world.client, &world.stateful_sets, &newer).await?;
            Ok(None)
        }
    }
}

/// Gives the claims of all pods the owners that the policy wants.
async fn keep_claims(world: &World, sight: &Sight<'_>) -> Result<(), Fault> {
    if sight.set.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let namespace = sight.set.namespace().unwrap_or_default();
    let api = objects::<PersistentVolumeClaim>(&world.client, &namespace);
    for (number, pod) in &sight.pods {
        for claim in claims::claims_of(sight.set, sight.spec, *number) {
            let Some(has) = world.claims.get(&Key::of(&claim)) else {
                continue;
            };
            let Some(owners) = claims::plan_owners(sight.set, sight.spec, pod, *number, &has)
            else {
                continue;
            };
            let list = if owners.is_empty() {
                Value::Null
            } else {
                json!(owners)
            };
            let change = json!({"metadata": {
                "uid": has.uid(), "resourceVersion": has.resource_version(), "ownerReferences": list,
            }});
            let (name, parameters) = (has.name_any(), PatchParams::default());
            if let Some(newer) =
                found(ask(api.patch(&name, &parameters, &Patch::Merge(change))).await)?
            {
                world.claims.note(newer);
            }
        }
    }
    Ok(())
}

/// Takes the steps. Each is about another pod, so they may go at once.
async fn act(world: &World, sight: &Sight<'_>, steps: Vec<Step>) -> Result<Next, Fault> {
    let waits = std::sync::atomic::AtomicBool::new(false);
    let take = |place: usize| {
        let step = &steps[place];
        let waits = &waits;
        async move {
            if !take(world, sight, step).await? {
                waits.store(true, std::sync::atomic::Ordering::Relaxed);
            }
            Ok(())
        }
    };
    match slow_start(steps.len(), take).await {
        (_, Some(fault)) => Err(fault),
        _ if waits.into_inner() => Ok(Next::Again(CLAIM_PAUSE)),
        _ => Ok(Next::Done),
    }
}

/// Takes one step. Tells whether it could be taken already.
async fn take(world: &World, sight: &Sight<'_>, step: &Step) -> Result<bool, Fault> {
    let set = sight.set;
    match step {
        Step::Create(pod, number) => {
            let name = pod.name_any();
            for claim in claims::claims_of(set, sight.spec, *number) {
                let has = world.claims.get(&Key::of(&claim));
                if has.is_some_and(|has| claims::is_stale(sight.spec, &has, &name)) {
                    return Ok(false);
                }
            }
            let outcome = match ensure_claims(world, sight, &name, *number).await {
                Ok(()) => create(&world.client, &world.pods, pod).await.map(|_| ()),
                Err(fault) => Err(fault),
            };
            tell(world, set, "create", &name, outcome.as_ref());
            outcome?;
        }
        Step::Delete(pod) => {
            let outcome = delete(world, &world.pods, &**pod, DeleteParams::default()).await;
            tell(world, set, "delete", &pod.name_any(), outcome.as_ref());
            outcome?;
        }
        Step::Claim(pod, number) => ensure_claims(world, sight, &pod.name_any(), *number).await?,
        Step::Label(pod, number) => {
            let labels: Map<String, Value> = identity::labels_of(&pod.name_any(), *number)
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value.into()))
                .collect();
            let change = json!({"metadata": {"uid": pod.uid(), "labels": labels}});
            let api = objects::<Pod>(&world.client, &pod.namespace().unwrap_or_default());
            let (name, parameters) = (pod.name_any(), PatchParams::default());
            if let Some(newer) =
                found(ask(api.patch(&name, &parameters, &Patch::Merge(change))).await)?
            {
                world.pods.note(newer);
            }
        }
    }
    Ok(true)
}

fn tell(world: &World, set: &StatefulSet, verb: &str, pod: &str, outcome: Result<&(), &Fault>) {
    let name = set.name_any();
    let news = match (outcome, verb) {
        (Ok(()), "create") => News::normal(
            "SuccessfulCreate",
            format!("create Pod {pod} in StatefulSet {name} successful"),
        ),
        (Ok(()), _) => News::normal(
            "SuccessfulDelete",
            format!("delete Pod {pod} in StatefulSet {name} successful"),
        ),
        (Err(fault), _) if is_ending(fault) => return,
        (Err(fault), "create") => News::warning(
            "FailedCreate",
            format!(
                "create Pod {pod} in StatefulSet {name} failed error: {}",
                fault.text()
            ),
        ),
        (Err(fault), _) => News::warning(
            "FailedDelete",
            format!(
                "delete Pod {pod} in StatefulSet {name} failed error: {}",
                fault.text()
            ),
        ),
    };
    world.events.tell(CONTROLLER, set, news);
}

/// Makes the claims of a pod that are missing.
async fn ensure_claims(
    world: &World,
    sight: &Sight<'_>,
    pod: &str,
    number: i32,
) -> Result<(), Fault> {
    for claim in claims::claims_of(sight.set, sight.spec, number) {
        let name = claim.name_any();
        if let Some(has) = world.claims.get(&Key::of(&claim)) {
            if has.metadata.deletion_timestamp.is_some() {
                return Err(Fault::Going {
                    what: format!("pvc {name}"),
                });
            }
            continue;
        }
        match create(&world.client, &world.claims, &claim).await {
            // Somebody made it a moment ago; its news are on the way.
            Err(fault) if fault.is_conflict() => continue,
            outcome => {
                outcome?;
            }
        }
        let text = format!(
            "create Claim {name} Pod {pod} in StatefulSet {} success",
            sight.set.name_any()
        );
        world.events.tell(
            CONTROLLER,
            sight.set,
            News::normal("SuccessfulCreate", text),
        );
    }
    Ok(())
}
