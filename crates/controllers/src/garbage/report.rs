//! Tells the owner of an object that it names owners which cannot be.

use k8s_openapi::{
    api::core::v1::ObjectReference, apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Client,
    runtime::events::{Event, EventType, Recorder, Reporter},
};

use super::graph::Node;

const CONTROLLER: &str = "garbage-collector-controller";

pub(super) fn recorder(client: Client) -> Recorder {
    let reporter = Reporter {
        controller: CONTROLLER.to_owned(),
        instance: None,
    };
    Recorder::new(client, reporter)
}

/// Says so in an event and, since events may fail, in the log.
pub(super) async fn wrong_namespace(recorder: &Recorder, node: &Node, reference: &OwnerReference) {
    let text = note(node, reference);
    tracing::info!(
        kind = node.resource.api.kind,
        namespace = node.namespace,
        name = node.name,
        text,
        "an owner cannot be in another namespace"
    );
    let event = Event {
        type_: EventType::Warning,
        reason: "OwnerRefInvalidNamespace".to_owned(),
        note: Some(text),
        action: "GarbageCollect".to_owned(),
        secondary: None,
    };
    let about = ObjectReference {
        api_version: Some(node.resource.api.api_version.clone()),
        kind: Some(node.resource.api.kind.clone()),
        namespace: Some(node.namespace.clone()).filter(|namespace| !namespace.is_empty()),
        name: Some(node.name.clone()),
        uid: Some(node.uid.to_string()),
        ..ObjectReference::default()
    };
    let published = crate::fault::ask(recorder.publish(&event, &about)).await;
    if let Err(fault) = published {
        tracing::debug!(%fault, "an event could not be published");
    }
}

fn note(node: &Node, reference: &OwnerReference) -> String {
    let OwnerReference {
        api_version,
        kind,
        name,
        uid,
        ..
    } = reference;
    let namespace = &node.namespace;
    format!(
        "ownerRef [{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}] does not exist in namespace {namespace:?}"
    )
}
