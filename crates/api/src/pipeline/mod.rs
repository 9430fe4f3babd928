//! From what a client sent to what is stored: the steps that every write takes, in upstream's order.
//!
//! Decode → default → ownership of fields → admission changes it → the server's own fields → validate →
//! admission agrees → one transaction. Nothing here waits; what must be atomic with the object rides in the
//! same transaction.

mod admit;
mod create;
mod definition;
pub(crate) mod leftovers;
mod names;
mod part;
mod services;
mod update;

use std::{borrow::Cow, sync::Arc, time::Duration};

use serde_json::Value;
use transom_store::{LeaseId, Transaction};

pub(crate) use admit::{delete as admit_delete, request as admit_request};
pub(crate) use create::prepare_create;
pub(crate) use names::{generated_name, place};
pub(crate) use part::Part;
pub(crate) use update::prepare_update;

use crate::{
    cache::store_fault,
    field::{FieldError, Path},
    object,
    registry::Kind,
    schema::structural,
    state::Api,
    status::ApiError,
};

/// An object to store, with what must be stored or be true together with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Write {
    pub(crate) value: Value,
    pub(crate) also: Transaction,
}

/// The object in the form of its stored version.
pub(crate) fn to_storage<'a>(kind: &Kind, value: &'a Value) -> Cow<'a, Value> {
    let Some((_, to_stored)) = kind.conversion else {
        return Cow::Borrowed(value);
    };
    let mut stored = value.clone();
    to_stored(&mut stored);
    Cow::Owned(stored)
}

/// A stored object in the form that was asked for.
pub(crate) fn from_storage(kind: &Kind, value: &mut Value) {
    if let Some((from_stored, _)) = kind.conversion {
        from_stored(value);
    }
    let map = object::as_map(value);
    map.insert("apiVersion".to_owned(), kind.api_version().into());
    map.insert("kind".to_owned(), kind.kind.clone().into());
}

/// Events go by themselves after a while; everything else stays.
pub(crate) async fn lease(api: &Api, kind: &Arc<Kind>) -> Result<Option<LeaseId>, ApiError> {
    if kind.storage.1 != "events" || !kind.storage.0.is_empty() {
        return Ok(None);
    }
    // Many events share a lease, which lasts a little longer than the last of them needs.
    let window = Duration::from_mins(1);
    let lease = api.event_leases.get(api.now(), window);
    if let Some(lease) = lease {
        return Ok(Some(lease));
    }
    let granted = api
        .store
        .grant(api.settings.event_life + window)
        .await
        .map_err(|error| store_fault(&error))?;
    api.event_leases.set(api.now(), granted);
    Ok(Some(granted))
}

/// What is wrong with an object of a custom kind, and with the definition of one.
fn custom_faults(kind: &Kind, value: &Value) -> Vec<FieldError> {
    if let Some(custom) = &kind.custom {
        return custom.structural.validate(value);
    }
    if kind.kind != "CustomResourceDefinition" {
        return Vec::new();
    }
    let versions = value["spec"]["versions"].as_array().into_iter().flatten();
    versions
        .enumerate()
        .flat_map(|(index, version)| {
            let path = Path::new("spec.versions")
                .index(index)
                .child("schema.openAPIV3Schema");
            structural::check(&path, &version["schema"]["openAPIV3Schema"])
        })
        .collect()
}

/// What becomes free when an object goes.
pub(crate) fn released(kind: &Kind, value: &Value) -> Vec<transom_store::Write> {
    if kind.group.is_empty() && kind.kind == "Service" {
        services::released(value)
    } else {
        Vec::new()
    }
}
