//! Custom resource definitions: names and versions. What their schemas may say is known with the schemas.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    fault::{Faults, Report, same},
    formats,
    metadata::{self, NameRule, Scope},
    read::Read,
};
use crate::field::{FieldError, Path};

pub(super) fn create(faults: &mut Faults, definition: &Value) {
    metadata::create(faults, definition, Scope::Cluster, NameRule::Subdomain);
    let path = Path::new("spec");
    let spec = &definition["spec"];
    let name = definition["metadata"].text("name");
    if name != format!("{}.{}", spec["names"].text("plural"), spec.text("group")) {
        faults.invalid(
            &Path::new("metadata").child("name"),
            name,
            "must be spec.names.plural+\".\"+spec.group",
        );
    }
    group(faults, spec.text("group"), &path.child("group"));
    faults.required_choice(
        &path.child("scope"),
        spec.text("scope"),
        &["Cluster", "Namespaced"],
    );
    if spec.flag("preserveUnknownFields") {
        faults.invalid(&path.child("preserveUnknownFields"), true, "must be false");
    }
    versions(faults, spec, &path.child("versions"));
    names(faults, &spec["names"], &path.child("names"));
    conversion(faults, &spec["conversion"], &path.child("conversion"));
    stored_versions(faults, definition);
}

fn group(faults: &mut Faults, group: &str, path: &Path) {
    if group.is_empty() {
        faults.required(path, "");
        return;
    }
    let messages = formats::subdomain(group);
    if !messages.is_empty() {
        faults.invalid(path, group, messages.join(","));
    } else if !group.contains('.') {
        faults.invalid(path, group, "should be a domain with at least one dot");
    }
}

fn versions(faults: &mut Faults, spec: &Value, path: &Path) {
    let versions = spec.items("versions");
    let mut seen = BTreeSet::new();
    let mut unique = true;
    let mut stored = 0;
    for (index, version) in versions.iter().enumerate() {
        let path = path.index(index);
        let name = version.text("name");
        unique &= seen.insert(name);
        stored += usize::from(version.flag("storage"));
        let messages = formats::old_label(name);
        if !messages.is_empty() {
            faults.invalid(&path.child("name"), name, messages.join(","));
        }
        if version["schema"]["openAPIV3Schema"].is_null() {
            faults.required(
                &path.child("schema").child("openAPIV3Schema"),
                "schemas are required",
            );
        }
        columns(faults, version, &path.child("additionalPrinterColumns"));
        scale(
            faults,
            &version["subresources"]["scale"],
            &path.child("subresources").child("scale"),
        );
        if version.has("deprecationWarning") && !version.flag("deprecated") {
            faults.invalid(
                &path.child("deprecationWarning"),
                version["deprecationWarning"].clone(),
                "can only be set for deprecated versions",
            );
        }
    }
    if !unique {
        faults.invalid(
            path,
            spec["versions"].clone(),
            "must contain unique version names",
        );
    }
    if stored != 1 {
        faults.invalid(
            path,
            spec["versions"].clone(),
            "must have exactly one version marked as storage version",
        );
    }
}

fn columns(faults: &mut Faults, version: &Value, path: &Path) {
    for (index, column) in version.items("additionalPrinterColumns").iter().enumerate() {
        let path = path.index(index);
        faults.not_empty(column, &path, &["name"]);
        faults.required_choice(
            &path.child("type"),
            column.text("type"),
            &["boolean", "date", "integer", "number", "string"],
        );
        json_path(faults, column.text("jsonPath"), &path.child("jsonPath"), "");
    }
}

/// A path into the object, which for some uses must begin in a certain place.
fn json_path(faults: &mut Faults, text: &str, path: &Path, prefix: &str) {
    if text.is_empty() {
        faults.required(path, "");
    } else if !text.starts_with('.') {
        faults.invalid(path, text, "must be a simple json path starting with .");
    } else if !text.starts_with(prefix) {
        faults.invalid(path, text, format!("should be a json path under {prefix}"));
    }
}

fn scale(faults: &mut Faults, scale: &Value, path: &Path) {
    if scale.is_null() {
        return;
    }
    for (field, prefix) in [
        ("specReplicasPath", ".spec."),
        ("statusReplicasPath", ".status."),
    ] {
        json_path(faults, scale.text(field), &path.child(field), prefix);
    }
    let selector = scale.text("labelSelectorPath");
    if !selector.is_empty() && !selector.starts_with(".spec.") && !selector.starts_with(".status.")
    {
        faults.invalid(
            &path.child("labelSelectorPath"),
            selector,
            "should be a json path under either .spec or .status",
        );
    }
}

fn names(faults: &mut Faults, names: &Value, path: &Path) {
    let mut label = |field: &str, text: &str, at: &Path| {
        let messages = formats::old_label(&text.to_lowercase());
        if messages.is_empty() && (text == text.to_lowercase() || is_mixed(field)) {
            return;
        }
        let reason = if messages.is_empty() {
            formats::old_label(text).join(",")
        } else {
            messages.join(",")
        };
        let reason = if is_mixed(field) {
            format!("may have mixed case, but should otherwise match: {reason}")
        } else {
            reason
        };
        faults.push(FieldError::invalid(at, text, reason));
    };
    for field in ["plural", "singular", "kind", "listKind"] {
        let text = names.text(field);
        if !text.is_empty() {
            label(field, text, &path.child(field));
        }
    }
    for field in ["shortNames", "categories"] {
        for (index, text) in names.texts(field).enumerate() {
            label(field, text, &path.child(field).index(index));
        }
    }
    faults.not_empty(names, path, &["plural", "singular", "kind", "listKind"]);
    let kind = names.text("kind");
    if !kind.is_empty() && kind == names.text("listKind") {
        faults.invalid(
            &path.child("listKind"),
            kind,
            "kind and listKind may not be the same",
        );
    }
}

fn is_mixed(field: &str) -> bool {
    matches!(field, "kind" | "listKind")
}

fn conversion(faults: &mut Faults, conversion: &Value, path: &Path) {
    if conversion.is_null() {
        return;
    }
    let strategy = conversion.text("strategy");
    faults.required_choice(&path.child("strategy"), strategy, &["None", "Webhook"]);
    let client = &conversion["webhook"]["clientConfig"];
    if strategy == "Webhook" && client.is_null() {
        faults.required(
            &path.child("webhookClientConfig"),
            "required when strategy is set to Webhook",
        );
    } else if strategy == "None" && !client.is_null() {
        faults.forbidden(
            &path.child("webhookClientConfig"),
            "should not be set when strategy is not set to Webhook",
        );
    }
}

fn stored_versions(faults: &mut Faults, definition: &Value) {
    let path = Path::new("status").child("storedVersions");
    let known: Vec<&str> = definition["spec"]
        .items("versions")
        .iter()
        .map(|version| version.text("name"))
        .collect();
    for (index, name) in definition["status"].texts("storedVersions").enumerate() {
        if !known.contains(&name) {
            faults.invalid(
                &path.index(index),
                name,
                format!(
                    "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
                ),
            );
        }
    }
}

pub(super) fn update(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    create(faults, new);
    let path = Path::new("spec");
    let established = old["status"]
        .items("conditions")
        .iter()
        .any(|each| each.text("type") == "Established" && each.text("status") == "True");
    let mut keep = |pointer: &str, at: Path| {
        let value = |object: &Value| object.pointer(pointer).cloned().unwrap_or_default();
        if !same(&value(new), &value(old)) {
            faults.invalid(&at, value(new), super::fault::IMMUTABLE);
        }
    };
    keep("/spec/group", path.child("group"));
    keep("/spec/names/plural", path.child("names").child("plural"));
    if established {
        keep("/spec/scope", path.child("scope"));
        keep("/spec/names/kind", path.child("names").child("kind"));
    }
}

pub(super) fn status(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    stored_versions(faults, new);
    if new["status"].items("storedVersions").is_empty() {
        faults.invalid(
            &Path::new("status").child("storedVersions"),
            new["status"]["storedVersions"].clone(),
            "must have at least one stored version",
        );
    }
}
