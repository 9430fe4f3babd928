//! The resources that the API serves now, custom ones included.

use std::collections::HashSet;

use kube::{
    Client,
    core::{DynamicObject, DynamicResourceScope, PartialObjectMeta},
    discovery::{ApiCapabilities, ApiResource, Discovery, Scope, verbs},
};

use crate::fault::{Fault, fetch};

/// An object of which only the metadata is known.
pub(crate) type Metadata = PartialObjectMeta<DynamicObject>;

/// A resource whose objects can be listed and deleted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Deletable {
    pub(crate) api: ApiResource,
    pub(crate) namespaced: bool,
    pub(crate) watchable: bool,
    /// Whether one request can delete many.
    pub(crate) collective: bool,
}

impl Deletable {
    pub(crate) fn is_event(&self) -> bool {
        self.api.plural == "events" && matches!(self.api.group.as_str(), "" | "events.k8s.io")
    }

    pub(crate) fn is_pod(&self) -> bool {
        self.api.plural == "pods" && self.api.group.is_empty()
    }

    /// All objects, or those of a namespace.
    pub(crate) fn objects<K>(&self, client: &Client, namespace: Option<&str>) -> kube::Api<K>
    where
        K: kube::Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
    {
        match namespace {
            Some(namespace) if self.namespaced => {
                kube::Api::namespaced_with(client.clone(), namespace, &self.api)
            }
            _ => kube::Api::all_with(client.clone(), &self.api),
        }
    }
}

/// Asks for everything that can be listed and deleted, each resource in its best version.
pub(crate) async fn discover(client: &Client) -> Result<Vec<Deletable>, Fault> {
    let discovery = fetch(Discovery::new(client.clone()).run_aggregated()).await?;
    let mut known = HashSet::new();
    let mut found = Vec::new();
    for group in discovery.groups_alphabetical() {
        for version in group.versions() {
            for (api, capabilities) in group.versioned_resources(version) {
                if known.insert((api.group.clone(), api.plural.clone())) {
                    found.extend(deletable(api, &capabilities));
                }
            }
        }
    }
    Ok(found)
}

fn deletable(api: ApiResource, capabilities: &ApiCapabilities) -> Option<Deletable> {
    let can = |verb| capabilities.supports_operation(verb);
    (can(verbs::LIST) && can(verbs::DELETE)).then(|| Deletable {
        api,
        namespaced: capabilities.scope == Scope::Namespaced,
        watchable: can(verbs::WATCH),
        collective: can(verbs::DELETE_COLLECTION),
    })
}
