//! Keeps the number of pods that a `ReplicaSet` or a `ReplicationController` wants.

mod decide;
mod kinds;
mod order;

use std::sync::Arc;

use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::LabelSelector};

pub(crate) use self::order::sort_for_deletion;
use self::{
    decide::{Step, Wanted, count, plan_step, until_next_available},
    kinds::{Failure, Replicated},
};
use crate::{
    fault::Fault,
    queue::Next,
    workloads::{
        World,
        index::Key,
        owners::{claim, controller_of, plan_claims, reference_to},
        pods,
        requests::{create_pod, delete_pod, is_ending, replace_status, slow_start},
    },
};

/// Brings one set closer to what it wants.
pub(crate) async fn reconcile<K: Replicated>(world: Arc<World>, key: Key) -> Result<Next, Fault> {
    let Some(set) = K::index(&world).get(&key) else {
        return Ok(Next::Done);
    };
    let Some(selector) = set.selector() else {
        return Ok(Next::Done);
    };
    let owned = owned_pods(&world, &*set, &selector).await?;
    let template = set.template();
    let wanted = Wanted {
        replicas: set.replicas(),
        min_ready_seconds: set.min_ready_seconds(),
        template_labels: template.and_then(|template| template.metadata.as_ref()?.labels.as_ref()),
        is_going: set.meta().deletion_timestamp.is_some(),
    };
    let related = || related_pods(&world, &*set);
    let step = plan_step(&wanted, &owned, related, world.now());
    let (failure, fault) = act(&world, &*set, step).await;
    let now = world.now();
    // What was just made or deleted counts already.
    let owned = world
        .pods
        .owned_by(set.meta().uid.as_deref().unwrap_or_default());
    let counts = count(&wanted, &owned, now);
    if let Some(newer) = set.with_status(&counts, failure.as_ref(), now) {
        replace_status(&world.client, K::index(&world), &newer).await?;
    }
    if let Some(pause) = until_next_available(&wanted, &owned, now) {
        K::queue(&world).add_after(key, pause);
    }
    // Events of the pods bring the next look, and so does a failure.
    match fault {
        Some(fault) if !is_ending(&fault) => Err(fault),
        _ => Ok(Next::Done),
    }
}

async fn owned_pods<K: Replicated>(
    world: &World,
    set: &K,
    selector: &LabelSelector,
) -> Result<Vec<Arc<Pod>>, Fault> {
    let uid = set.meta().uid.as_deref().unwrap_or_default();
    let namespace = set.meta().namespace.as_deref().unwrap_or_default();
    let mut ownerless = world.pods.ownerless(namespace);
    ownerless.retain(|pod| pods::is_active(pod));
    let claims = plan_claims(set.meta(), selector, world.pods.owned_by(uid), ownerless);
    claim(&world.client, set, &world.pods, claims).await
}

/// The active pods of all sets that have the same owner as this one.
fn related_pods<K: Replicated>(world: &World, set: &K) -> Vec<Arc<Pod>> {
    let own = set.meta().uid.clone().unwrap_or_default();
    let uids = match controller_of(set.meta()) {
        Some(owner) => {
            let sets = K::index(world).owned_by(&owner.uid);
            sets.iter()
                .filter_map(|set| set.meta().uid.clone())
                .collect()
        }
        None => vec![own],
    };
    let pods = uids.iter().flat_map(|uid| world.pods.owned_by(uid));
    pods.filter(|pod| pods::is_active(pod)).collect()
}

/// Makes or deletes pods. What failed is told with the words of the API.
async fn act<K: Replicated>(
    world: &World,
    set: &K,
    step: Step,
) -> (Option<Failure>, Option<Fault>) {
    let (reason, outcome) = match step {
        Step::Nothing => return (None, None),
        Step::Create(number) => {
            let Some(template) = set.template() else {
                return (None, None);
            };
            let namespace = set.meta().namespace.clone().unwrap_or_default();
            let name = set.meta().name.clone().unwrap_or_default();
            let pod = pods::from_template(template, &namespace, &name, reference_to(set));
            let create = |_| async {
                let made = create_pod(world, K::CONTROLLER, set, &pod).await;
                made.map(|_| ())
            };
            ("FailedCreate", slow_start(number, create).await)
        }
        Step::Delete(victims) => {
            let delete = |number: usize| delete_pod(world, K::CONTROLLER, set, &victims[number]);
            ("FailedDelete", slow_start(victims.len(), delete).await)
        }
    };
    let (_, fault) = outcome;
    let failure = fault.as_ref().map(|fault| Failure {
        reason,
        message: fault.text(),
    });
    (failure, fault)
}
