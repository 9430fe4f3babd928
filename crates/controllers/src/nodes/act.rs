//! The requests about nodes and their pods. Each decides once more on what the API says just before.

use k8s_openapi::{
    api::{
        coordination::v1::Lease,
        core::v1::{Node, Pod},
    },
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::Timestamp,
};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::{Value, json};

use super::{
    LEASES,
    facts::{NodeFacts, PodFacts},
    health::{self, Eviction},
};
use crate::fault::{Fault, ask, fetch, found};

/// Says of a node that it is silent. Tells whether it is alive after all: a watch may be late.
pub(super) async fn give_up(
    client: &Client,
    known: &NodeFacts,
    renewed: Option<&MicroTime>,
) -> Result<bool, Fault> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASES);
    let lease = found(fetch(leases.get(&known.name)).await)?;
    let live = lease.and_then(|lease| lease.spec?.renew_time);
    if live.is_some() && live.as_ref() != renewed {
        return Ok(true);
    }
    let nodes: Api<Node> = Api::all(client.clone());
    let Some(mut node) = found(fetch(nodes.get(&known.name)).await)? else {
        return Ok(false);
    };
    if NodeFacts::read(&node).heartbeat != known.heartbeat {
        return Ok(true);
    }
    if let Some(conditions) = health::plan_conditions(&node, Timestamp::now()) {
        node.status.get_or_insert_default().conditions = Some(conditions);
        let parameters = PostParams::default();
        found(ask(nodes.replace_status(&known.name, &parameters, &node)).await)?;
        tracing::info!(node = known.name, "a node is not heard of any more");
    }
    Ok(false)
}

/// Gives a node the taints that it should have.
pub(super) async fn set_taints(
    client: &Client,
    known: &NodeFacts,
    eviction: Eviction,
) -> Result<(), Fault> {
    if health::plan_taints(known, eviction, Timestamp::now()).is_none() {
        return Ok(());
    }
    let nodes: Api<Node> = Api::all(client.clone());
    let Some(mut node) = found(fetch(nodes.get(&known.name)).await)? else {
        return Ok(());
    };
    let live = NodeFacts::read(&node);
    if let Some(taints) = health::plan_taints(&live, eviction, Timestamp::now()) {
        node.spec.get_or_insert_default().taints = Some(taints);
        let parameters = PostParams::default();
        found(ask(nodes.replace(&known.name, &parameters, &node)).await)?;
    }
    Ok(())
}

/// Adds a condition to a pod, or changes it.
async fn set_condition(client: &Client, pod: &PodFacts, mut condition: Value) -> Result<(), Fault> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace);
    condition["lastTransitionTime"] = json!(Timestamp::now());
    let patch = Patch::Strategic(json!({
        "metadata": {"uid": pod.uid},
        "status": {"conditions": [condition]},
    }));
    let parameters = PatchParams::default();
    unless_replaced(ask(pods.patch_status(&pod.name, &parameters, &patch)).await)
}

/// That a pod is gone, or another has its name, is as good.
fn unless_replaced<T>(answer: Result<T, Fault>) -> Result<(), Fault> {
    match answer {
        Err(fault) if !fault.is_absent() && !fault.is_conflict() => Err(fault),
        _ => Ok(()),
    }
}

pub(super) async fn set_not_ready(client: &Client, pod: &PodFacts) -> Result<(), Fault> {
    set_condition(client, pod, json!({"type": "Ready", "status": "False"})).await
}

/// Deletes a pod that must leave its node, and says why.
pub(super) async fn evict(client: &Client, pod: &PodFacts) -> Result<(), Fault> {
    let why = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
        "message": "Taint manager: deleting due to NoExecute taint",
    });
    set_condition(client, pod, why).await?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace);
    let parameters = DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(pod.uid.clone()),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    unless_replaced(ask(pods.delete(&pod.name, &parameters)).await)
}
