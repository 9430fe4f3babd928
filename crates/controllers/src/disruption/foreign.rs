//! The sizes of controllers that somebody else defined, by their subresource `scale`. Invariant: nothing is
//! remembered but where a kind is served.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{
    Api, Client,
    core::{DynamicObject, GroupVersionKind},
    discovery::ApiResource,
};

use crate::fault::{Fault, fetch, found};

pub(super) struct Foreign {
    client: Client,
    resources: Mutex<HashMap<GroupVersionKind, ApiResource>>,
}

impl Foreign {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            resources: Mutex::default(),
        }
    }

    fn resources(&self) -> MutexGuard<'_, HashMap<GroupVersionKind, ApiResource>> {
        let resources = self.resources.lock();
        resources.unwrap_or_else(PoisonError::into_inner)
    }

    /// How many pods a controller wants; nothing if it is not there, or why its kind cannot tell.
    pub(super) async fn replicas(
        &self,
        namespace: &str,
        owner: &OwnerReference,
    ) -> Result<Result<Option<i32>, String>, Fault> {
        let Some(resource) = self.find(owner).await? else {
            let OwnerReference {
                kind, api_version, ..
            } = owner;
            return Ok(Err(format!(
                "no matches for kind {kind:?} in version {api_version:?}"
            )));
        };
        let objects: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), namespace, &resource);
        if let Some(scale) = found(fetch(objects.get_scale(&owner.name)).await)? {
            let is_owner = scale.metadata.uid.as_ref() == Some(&owner.uid);
            let replicas = scale.spec.and_then(|spec| spec.replicas);
            return Ok(Ok(is_owner.then(|| replicas.unwrap_or_default())));
        }
        // Either the object is not there, or its kind has no size.
        if found(fetch(objects.get_metadata(&owner.name)).await)?.is_none() {
            return Ok(Ok(None));
        }
        let (plural, group) = (&resource.plural, &resource.group);
        let dot = if group.is_empty() { "" } else { "." };
        Ok(Err(format!(
            "{plural}{dot}{group} does not implement the scale subresource"
        )))
    }

    /// Where the kind of a controller is served.
    async fn find(&self, owner: &OwnerReference) -> Result<Option<ApiResource>, Fault> {
        let version = owner.api_version.as_str();
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let kind = GroupVersionKind::gvk(group, version, &owner.kind);
        let known = self.resources().get(&kind).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let pinned = kube::discovery::pinned_kind(&self.client, &kind);
        let resource = match found(fetch(pinned).await) {
            Ok(Some((resource, _))) => resource,
            Ok(None) => return Ok(None),
            Err(Fault::Request(error)) if matches!(*error, kube::Error::Discovery(_)) => {
                return Ok(None);
            }
            Err(fault) => return Err(fault),
        };
        self.resources().insert(kind, resource.clone());
        Ok(Some(resource))
    }
}
