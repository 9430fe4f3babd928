//! Server-side apply: who owns which field, and what becomes of an object when somebody applies.
//!
//! The rules are those of upstream's structured merge, see `docs/decisions/0012-server-side-apply.md`. Nothing
//! here reads a clock or a store: an object and a request go in, an object comes out.

mod compare;
mod conflict;
mod element;
mod extract;
mod last_applied;
mod managed;
mod merge;
mod options;
mod place;
mod prune;
mod reconcile;
mod remove;
mod scope;
mod set;
mod write;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::Value;

use crate::schema::{Schema, Shape};

pub use self::{
    element::Element,
    options::{check_options, manager_name},
    scope::{ANY, Scope},
    set::FieldSet,
    write::{apply, keep_times, update},
};

/// Who writes what kind of object, and when.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub schema: &'a Schema,
    /// The type of the object.
    pub shape: &'a Shape,
    /// As the object says it, `apps/v1`.
    pub api_version: &'a str,
    pub kind: &'a str,
    /// Who writes; see [`manager_name`].
    pub manager: &'a str,
    /// `status`, `scale`, or nothing.
    pub subresource: &'a str,
    /// What this endpoint writes.
    pub scope: &'a Scope,
    pub now: Timestamp,
}

/// What nobody owns: it tells the object apart, or the server writes it.
fn untracked() -> &'static FieldSet {
    static SET: LazyLock<FieldSet> = LazyLock::new(|| {
        FieldSet::of_fields(&[
            &["apiVersion"],
            &["kind"],
            &["metadata"],
            &["metadata", "name"],
            &["metadata", "namespace"],
            &["metadata", "creationTimestamp"],
            &["metadata", "selfLink"],
            &["metadata", "uid"],
            &["metadata", "clusterName"],
            &["metadata", "generation"],
            &["metadata", "managedFields"],
            &["metadata", "resourceVersion"],
        ])
    });
    &SET
}

/// The stored entries of an object.
fn entries(object: &Value) -> Option<&Vec<Value>> {
    object.get("metadata")?.get("managedFields")?.as_array()
}

/// The object without its entries, which own no part of it.
fn without_entries(mut object: Value) -> Value {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("managedFields");
    }
    object
}

/// Writes the entries into an object that has metadata. An empty list is no list.
fn set_entries(object: &mut Value, entries: Vec<Value>) {
    if entries.is_empty() {
        return;
    }
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.insert("managedFields".to_owned(), Value::Array(entries));
    }
}
