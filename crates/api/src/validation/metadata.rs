//! The rules for the metadata of every kind.

use serde_json::{Map, Value};

use super::{
    fault::{Faults, IMMUTABLE, NEGATIVE, Report},
    formats::{self, Messages},
    read::Read,
};
use crate::field::{FieldError, Path};

/// How long all annotations together may be.
const ANNOTATIONS_LENGTH: usize = 256 * 1024;
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// What names of a kind look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameRule {
    Subdomain,
    Label,
    /// Starts with a letter.
    OldLabel,
    PathSegment,
    /// A subdomain that leaves room for what a controller adds.
    ShortSubdomain,
}

impl NameRule {
    pub(crate) fn check(self, name: &str) -> Messages {
        match self {
            Self::Subdomain => formats::subdomain(name),
            Self::Label => formats::label(name),
            Self::OldLabel => formats::old_label(name),
            Self::PathSegment => formats::path_segment(name),
            Self::ShortSubdomain => {
                let mut messages = formats::subdomain(name);
                if name.len() > 52 {
                    messages.push("must be no more than 52 characters".to_owned());
                }
                messages
            }
        }
    }

    /// A prefix may end with a dash, since something follows.
    fn check_prefix(self, prefix: &str) -> Messages {
        if self == Self::PathSegment {
            return formats::path_segment_prefix(prefix);
        }
        let rule = if self == Self::ShortSubdomain {
            Self::Subdomain
        } else {
            self
        };
        match prefix.strip_suffix('-') {
            // Upstream looks at the prefix as if its last two characters were one letter.
            Some(start) if !start.is_empty() => {
                let kept: String = start.chars().take(start.chars().count() - 1).collect();
                rule.check(&format!("{kept}a"))
            }
            _ => rule.check(prefix),
        }
    }
}

/// Whether objects of a kind live in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Namespaced,
    Cluster,
    /// The kind is not one of ours: the router knows, this module does not.
    Unknown,
}

/// The metadata of a new object.
pub(crate) fn create(faults: &mut Faults, object: &Value, scope: Scope, rule: NameRule) {
    let path = Path::new("metadata");
    let metadata = &object["metadata"];
    let prefix = metadata.text("generateName");
    if !prefix.is_empty() {
        faults.messages(
            &path.child("generateName"),
            prefix,
            rule.check_prefix(prefix),
        );
    }
    let name = metadata.text("name");
    if name.is_empty() {
        faults.required(&path.child("name"), "name or generateName is required");
    } else {
        faults.messages(&path.child("name"), name, rule.check(name));
    }
    namespace(faults, metadata.text("namespace"), scope, &path);
    faults.not_negative(metadata, &path, &["generation"]);
    common(faults, metadata, &path);
    standard_finalizers(faults, object, &path);
}

fn namespace(faults: &mut Faults, namespace: &str, scope: Scope, path: &Path) {
    let path = path.child("namespace");
    match scope {
        Scope::Namespaced if namespace.is_empty() => faults.required(&path, ""),
        Scope::Cluster if !namespace.is_empty() => {
            faults.forbidden(&path, "not allowed on this type");
        }
        Scope::Namespaced | Scope::Unknown if !namespace.is_empty() => {
            faults.messages(&path, namespace, formats::label(namespace));
        }
        _ => {}
    }
}

fn common(faults: &mut Faults, metadata: &Value, path: &Path) {
    labels(faults, metadata.entries("labels"), &path.child("labels"));
    annotations(
        faults,
        metadata.entries("annotations"),
        &path.child("annotations"),
    );
    owners(faults, metadata, &path.child("ownerReferences"));
    finalizers(faults, metadata, &path.child("finalizers"));
}

/// What may not change, and that what did change is right.
pub(crate) fn update(faults: &mut Faults, new: &Value, old: &Value) {
    let path = Path::new("metadata");
    let object = new;
    let (new, old) = (&new["metadata"], &old["metadata"]);
    if old.has("deletionTimestamp") {
        no_new_finalizers(faults, new, old, &path.child("finalizers"));
    }
    if new.text("resourceVersion").is_empty() {
        faults.invalid(
            &path.child("resourceVersion"),
            "",
            "must be specified for an update",
        );
    }
    if new.number("generation") < old.number("generation") && new.has("generation") {
        faults.invalid(
            &path.child("generation"),
            new.number("generation"),
            "must not be decremented",
        );
    }
    for field in ["name", "namespace"] {
        if new.text(field) != old.text(field) {
            faults.invalid(&path.child(field), new.text(field), IMMUTABLE);
        }
    }
    for field in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        // What is left out is kept.
        if new.has(field) {
            faults.immutable(&path.child(field), &new[field], &old[field]);
        }
    }
    common(faults, new, &path);
    standard_finalizers(faults, object, &path);
}

fn no_new_finalizers(faults: &mut Faults, new: &Value, old: &Value, path: &Path) {
    let known: Vec<&str> = old.texts("finalizers").collect();
    let mut added: Vec<&str> = new
        .texts("finalizers")
        .filter(|finalizer| !known.contains(finalizer))
        .collect();
    added.sort_unstable();
    added.dedup();
    if !added.is_empty() {
        let list: Vec<String> = added.iter().map(|name| format!("{name:?}")).collect();
        faults.forbidden(
            path,
            format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                list.join(", ")
            ),
        );
    }
}

/// A map of labels, also where it selects.
pub(crate) fn labels(faults: &mut Faults, labels: &Map<String, Value>, path: &Path) {
    for (key, value) in labels {
        label_name(faults, key, path);
        let value = value.as_str().unwrap_or_default();
        faults.messages(&path.key(key), value, formats::label_value(value));
    }
}

/// The key of a label.
pub(crate) fn label_name(faults: &mut Faults, name: &str, path: &Path) {
    faults.messages(path, name, formats::qualified_name(name));
}

pub(crate) fn annotations(faults: &mut Faults, annotations: &Map<String, Value>, path: &Path) {
    let mut length = 0;
    for (key, value) in annotations {
        // The case of the key does not matter.
        faults.messages(
            path,
            key.as_str(),
            formats::qualified_name(&key.to_ascii_lowercase()),
        );
        length += key.len() + value.as_str().unwrap_or_default().len();
    }
    if length > ANNOTATIONS_LENGTH {
        faults.push(FieldError::too_long(path, ANNOTATIONS_LENGTH));
    }
}

fn owners(faults: &mut Faults, metadata: &Value, path: &Path) {
    let mut controller: Option<String> = None;
    for owner in metadata.items("ownerReferences") {
        let version = owner.text("apiVersion");
        let kind = owner.text("kind");
        if version.is_empty() || version.ends_with('/') {
            faults.invalid(
                &path.child("apiVersion"),
                version,
                "version must not be empty",
            );
        }
        for field in ["kind", "name", "uid"] {
            if owner.text(field).is_empty() {
                faults.invalid(&path.child(field), "", "must not be empty");
            }
        }
        if version == "v1" && kind == "Event" {
            faults.invalid(
                path,
                owner.clone(),
                "/v1, Kind=Event is disallowed from being an owner",
            );
        }
        if owner.flag("controller") {
            let name = format!("{kind}/{}", owner.text("name"));
            match &controller {
                Some(first) => faults.invalid(
                    path,
                    metadata["ownerReferences"].clone(),
                    format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                    ),
                ),
                None => controller = Some(name),
            }
        }
    }
}

fn finalizers(faults: &mut Faults, metadata: &Value, path: &Path) {
    for finalizer in metadata.texts("finalizers") {
        faults.messages(path, finalizer, formats::qualified_name(finalizer));
    }
    let has = |name: &str| metadata.texts("finalizers").any(|each| each == name);
    if has(ORPHAN) && has(FOREGROUND) {
        faults.invalid(
            path,
            metadata["finalizers"].clone(),
            format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set"),
        );
    }
}

/// Finalizers without a domain are only those that Kubernetes itself has. Definitions of custom resources, whose own
/// one has no slash, and custom resources are not bound by that.
fn standard_finalizers(faults: &mut Faults, object: &Value, path: &Path) {
    let (group, _) = object
        .text("apiVersion")
        .split_once('/')
        .unwrap_or_default();
    if group.contains('.') && (group == "apiextensions.k8s.io" || !group.ends_with(".k8s.io")) {
        return;
    }
    let path = path.child("finalizers");
    for (index, finalizer) in object["metadata"].texts("finalizers").enumerate() {
        standard_finalizer(faults, finalizer, &path.index(index));
    }
}

pub(crate) fn standard_finalizer(faults: &mut Faults, finalizer: &str, path: &Path) {
    let standard = matches!(finalizer, "kubernetes" | ORPHAN | FOREGROUND);
    if !standard && !finalizer.contains('/') {
        faults.invalid(
            path,
            finalizer,
            "name is neither a standard finalizer name nor is it fully qualified",
        );
    }
}

/// Where a reference to another object has only a name.
pub(crate) fn reference_name(faults: &mut Faults, name: &str, path: &Path) {
    if name.is_empty() {
        faults.required(path, "");
    } else {
        faults.messages(path, name, formats::subdomain(name));
    }
}

/// A number that must not be negative, where it is not a field of an object.
pub(crate) fn number(faults: &mut Faults, number: i64, path: &Path) {
    if number < 0 {
        faults.invalid(path, number, NEGATIVE);
    }
}
