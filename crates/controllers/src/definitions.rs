//! Takes the objects of a custom resource definition that is to go with it.
//!
//! A definition keeps its finalizer until none of its objects is left: otherwise they would come back with the next
//! definition of that name.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DeleteParams, ListParams, PostParams},
    core::{DynamicObject, PartialObjectMeta},
    runtime::watcher::{Config, Event},
};
use tokio_util::sync::CancellationToken;

use crate::{
    fault::{Fault, ask, found},
    follow::follow,
    queue::{Next, Queue},
};

/// What a definition has until its objects are gone; the API server puts it there.
const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";
const AT_ONCE: usize = 2;
/// How long a definition whose objects have finalizers waits for the next look.
const PAUSE: Duration = Duration::from_secs(2);

pub(crate) async fn run(client: Client, stop: CancellationToken) {
    let queue = Queue::new();
    let all: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client.clone());
    let news = follow(all, Config::default(), |event| {
        if let Event::Apply(definition) | Event::InitApply(definition) = event
            && definition.metadata.deletion_timestamp.is_some()
        {
            queue.add(definition.name_any());
        }
    });
    let work = queue.drive("definitions", AT_ONCE, &stop, |name| empty(&client, name));
    tokio::select! {
        () = work => {}
        () = news => {}
    }
}

/// Takes one step towards the end of a definition.
async fn empty(client: &Client, name: String) -> Result<Next, Fault> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let Some(mut definition) = found(ask(definitions.get(&name)).await)? else {
        return Ok(Next::Done);
    };
    if !is_ours(&definition) {
        return Ok(Next::Done);
    }
    if has_hidden_objects(&definition) {
        // Nobody can reach objects that are not served, not even to take them away.
        for version in &mut definition.spec.versions {
            version.served = version.storage;
        }
        found(ask(definitions.replace(&name, &PostParams::default(), &definition)).await)?;
        return Ok(Next::Again(Duration::ZERO));
    }
    if let Some(resource) = resource_of(&definition) {
        let objects: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let left = found(ask(objects.list_metadata(&ListParams::default())).await)?;
        let left = left.map(|list| list.items).unwrap_or_default();
        for object in &left {
            let name = object.name_any();
            let place: Api<DynamicObject> = match object.namespace() {
                Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &resource),
                None => Api::all_with(client.clone(), &resource),
            };
            if object.metadata.deletion_timestamp.is_none() {
                found(ask(place.delete(&name, &DeleteParams::background())).await)?;
            }
        }
        if !left.is_empty() {
            return Ok(Next::Again(PAUSE));
        }
    }
    definition
        .finalizers_mut()
        .retain(|finalizer| finalizer != FINALIZER);
    found(ask(definitions.replace(&name, &PostParams::default(), &definition)).await)?;
    Ok(Next::Done)
}

/// Whether a definition is on its way out and waits for us.
fn is_ours(definition: &CustomResourceDefinition) -> bool {
    definition.metadata.deletion_timestamp.is_some()
        && definition
            .finalizers()
            .iter()
            .any(|finalizer| finalizer == FINALIZER)
}

/// Whether a definition has a resource, and so perhaps objects, but no version of it is served.
fn has_hidden_objects(definition: &CustomResourceDefinition) -> bool {
    let status = definition.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let is_established = conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "Established" && condition.status == "True");
    let versions = &definition.spec.versions;
    is_established
        && versions.iter().all(|version| !version.served)
        && versions.iter().any(|version| version.storage)
}

/// The resource of a version that is served, by which all objects can be reached. A definition that was never
/// accepted has none, and so no objects.
fn resource_of(definition: &CustomResourceDefinition) -> Option<ApiResource> {
    let spec = &definition.spec;
    let version = spec.versions.iter().find(|version| version.served)?;
    Some(ApiResource {
        group: spec.group.clone(),
        version: version.name.clone(),
        api_version: format!("{}/{}", spec.group, version.name),
        kind: spec.names.kind.clone(),
        plural: spec.names.plural.clone(),
    })
}
