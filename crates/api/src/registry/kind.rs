//! One kind: everything that the server knows about it.

use std::sync::Arc;

use serde_json::Value;

use super::{
    custom::CustomResource,
    support::{self, Support},
};
use crate::schema::{Schema, TypeId};

/// What can be done with a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    Create,
    Delete,
    DeleteCollection,
    Get,
    List,
    Patch,
    Update,
    Watch,
}

impl Verb {
    /// The word in discovery and in roles.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Get => "get",
            Self::List => "list",
            Self::Patch => "patch",
            Self::Update => "update",
            Self::Watch => "watch",
        }
    }
}

/// Verbs in the order of discovery.
pub type Verbs = &'static [Verb];

/// A part of a resource with a path of its own.
#[derive(Clone, Debug)]
pub struct Subresource {
    pub name: &'static str,
    /// Group, version and kind of what goes over the wire, where it is not the resource itself.
    pub wire: Option<(&'static str, &'static str, &'static str)>,
    pub verbs: Verbs,
}

/// A field that field selectors may name, beside `metadata.name` and `metadata.namespace`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectableField {
    /// As it stands in a selector.
    pub name: String,
    /// Where the value is in the object, if not at the same path.
    pub path: Vec<String>,
    /// What it is if it is not there.
    pub default: String,
    /// Whether selectors of this version may name it. All versions of a custom kind have the same fields in the
    /// same order, because they share a cache; each offers its own.
    pub offered: bool,
}

/// How objects become those of another version that has the same storage.
pub type Conversion = fn(&mut Value);

/// A resource and the kind of its objects.
#[derive(Debug)]
pub struct Kind {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub list_kind: String,
    pub plural: String,
    pub singular: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub namespaced: bool,
    pub verbs: Verbs,
    pub subresources: Vec<Subresource>,
    pub fields: Vec<SelectableField>,
    /// Whether `metadata.generation` counts the changes of what is wanted.
    pub counts_generations: bool,
    /// Whether a delete leaves dependants alone unless the client says otherwise.
    pub orphans_by_default: bool,
    /// Whether an update may leave open which version it replaces.
    pub unconditional_updates: bool,
    /// Whether an update of what is not there makes it.
    pub created_by_updates: bool,
    pub schema: Arc<Schema>,
    pub type_id: Option<TypeId>,
    /// Group and plural under which objects are stored; versions of one kind share it.
    pub storage: (String, String),
    /// From and to the stored version, where this one is not it.
    pub conversion: Option<(Conversion, Conversion)>,
    /// Objects are never stored: a request is answered and forgotten.
    pub ephemeral: bool,
    /// Values are encrypted at rest.
    pub secret: bool,
    pub custom: Option<CustomResource>,
}

impl Kind {
    /// `v1`, or `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `pods`, or `deployments.apps`: the resource in messages.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources
            .iter()
            .find(|subresource| subresource.name == name)
    }

    /// How much of upstream's behaviour there is, of the objects or of a path below them.
    pub fn support(&self, subresource: &str) -> Support {
        support::of(&self.group, &self.kind, subresource)
    }

    /// Whether `status` is written through a path of its own, and ignored elsewhere.
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// Whether a write of the status leaves the metadata alone; most built-in kinds take both.
    pub fn status_keeps_metadata(&self) -> bool {
        self.custom.is_some() || (self.group == "storage.k8s.io" && self.kind == "VolumeAttachment")
    }

    /// The beginning of the store's keys of these objects.
    pub fn prefix(&self) -> String {
        storage_prefix(&self.storage.0, &self.storage.1)
    }

    pub fn key(&self, namespace: &str, name: &str) -> String {
        let prefix = self.prefix();
        if self.namespaced {
            format!("{prefix}{namespace}/{name}")
        } else {
            format!("{prefix}{name}")
        }
    }
}

/// The beginning of the store's keys of a resource.
pub(crate) fn storage_prefix(group: &str, plural: &str) -> String {
    let group = if group.is_empty() { "core" } else { group };
    format!("/registry/{group}/{plural}/")
}
