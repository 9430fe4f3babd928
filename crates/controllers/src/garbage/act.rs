//! The requests of the collector. Each names the very object and version that was decided on.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, Preconditions, PropagationPolicy},
};
use serde_json::{Value, json};

use super::graph::Node;
use crate::{
    fault::{Fault, ask, fetch, found},
    resources::Metadata,
};

fn objects(client: &Client, node: &Node) -> Api<Metadata> {
    node.resource.objects(client, Some(&node.namespace))
}

/// The object as it is now; `None` if it is gone, even if another has its name.
pub(super) async fn read(client: &Client, node: &Node) -> Result<Option<Node>, Fault> {
    let live = found(fetch(objects(client, node).get(&node.name)).await)?;
    let live = live.and_then(|live| Node::read(&node.resource, live.metadata));
    Ok(live.filter(|live| live.uid == node.uid))
}

/// Deletes an object. That it is gone already is as good.
pub(super) async fn delete(
    client: &Client,
    node: &Node,
    policy: PropagationPolicy,
) -> Result<(), Fault> {
    let parameters = DeleteParams {
        propagation_policy: Some(policy),
        preconditions: Some(Preconditions {
            uid: Some(node.uid.to_string()),
            resource_version: Some(node.version.clone()),
        }),
        ..DeleteParams::default()
    };
    found(ask(objects(client, node).delete(&node.name, &parameters)).await)?;
    Ok(())
}

/// Takes a finalizer off an object.
pub(super) async fn release(client: &Client, node: &Node, finalizer: &str) -> Result<(), Fault> {
    let rest: Vec<&String> = node
        .finalizers
        .iter()
        .filter(|each| *each != finalizer)
        .collect();
    let list = if rest.is_empty() {
        Value::Null
    } else {
        json!(rest)
    };
    patch(client, node, "finalizers", list).await.map(|_| ())
}

/// Takes owners off an object.
pub(super) async fn drop_owners(
    client: &Client,
    node: &Node,
    owners: &[String],
) -> Result<(), Fault> {
    let rest = node
        .owners
        .iter()
        .filter(|each| !owners.contains(&each.uid));
    set_owners(client, node, rest.cloned().collect())
        .await
        .map(|_| ())
}

/// Lets the owners of an object go before it. Tells the object as it is then.
pub(super) async fn unblock(client: &Client, node: &Node) -> Result<Option<Node>, Fault> {
    let mut owners = node.owners.clone();
    for owner in &mut owners {
        owner.block_owner_deletion = Some(false);
    }
    set_owners(client, node, owners).await
}

async fn set_owners(
    client: &Client,
    node: &Node,
    owners: Vec<OwnerReference>,
) -> Result<Option<Node>, Fault> {
    let list = if owners.is_empty() {
        Value::Null
    } else {
        json!(owners)
    };
    patch(client, node, "ownerReferences", list).await
}

/// Sets one field of the metadata. That the object is gone is as good.
async fn patch(
    client: &Client,
    node: &Node,
    field: &str,
    value: Value,
) -> Result<Option<Node>, Fault> {
    let mut metadata = json!({"uid": &*node.uid, "resourceVersion": node.version});
    metadata[field] = value;
    let change = Patch::Merge(json!({"metadata": metadata}));
    let parameters = PatchParams::default();
    let request = objects(client, node);
    let answer = found(ask(request.patch(&node.name, &parameters, &change)).await)?;
    Ok(answer.and_then(|object| Node::read(&node.resource, object.metadata)))
}
