//! What may change in the spec of a pod that exists: very little.

use serde_json::Value;

use super::{annotations, metadata_and_spec, scheduling};
use crate::{
    field::Path,
    validation::{
        fault::{Faults, Report, same},
        formats, metadata,
        read::Read,
    },
};

const CHANGEABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// An update of a pod by way of the pod itself.
pub(in crate::validation) fn update(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    metadata_and_spec(faults, new);
    annotations::update(
        faults,
        new,
        old,
        &Path::new("metadata").child("annotations"),
    );
    let path = Path::new("spec");
    let (new, old) = (&new["spec"], &old["spec"]);
    for list in ["containers", "initContainers"] {
        if !images(faults, new.items(list), old.items(list), &path.child(list)) {
            return;
        }
    }
    if !deadline(faults, new, old, &path.child("activeDeadlineSeconds")) {
        return;
    }
    added_tolerations(faults, new, old, &path.child("tolerations"));
    removed_gates(faults, new, old, &path.child("schedulingGates"));
    if same(new, old) {
        return;
    }
    let mut rest = with_changeable_fields_of(new, old);
    if !old.items("schedulingGates").is_empty() {
        gated(faults, &mut rest, old, &path);
    }
    if !same(&rest, old) {
        faults.forbidden(
            &path,
            format!(
                "pod updates may not change fields other than {CHANGEABLE}\n{}",
                differences(old, &rest)
            ),
        );
    }
}

/// Checks images; false if containers came or went, which ends the comparison.
fn images(faults: &mut Faults, new: &[Value], old: &[Value], path: &Path) -> bool {
    if new.len() != old.len() {
        faults.forbidden(path, "pod updates may not add or remove containers");
        return false;
    }
    for (index, container) in new.iter().enumerate() {
        let path = path.index(index);
        faults.not_empty(container, &path, &["image"]);
        super::containers::image_without_spaces(faults, container, &path);
    }
    true
}

/// A deadline may come, and may come earlier. False ends the comparison.
fn deadline(faults: &mut Faults, new: &Value, old: &Value, path: &Path) -> bool {
    let before = old.maybe_number("activeDeadlineSeconds");
    match (new.maybe_number("activeDeadlineSeconds"), before) {
        (Some(seconds), _) if !(0..=i64::from(i32::MAX)).contains(&seconds) => {
            faults.invalid(path, seconds, formats::range(0, i64::from(i32::MAX)));
            false
        }
        (Some(seconds), Some(before)) if before < seconds => {
            faults.invalid(
                path,
                seconds,
                "must be less than or equal to previous value",
            );
            false
        }
        (None, Some(_)) => {
            faults.invalid(
                path,
                Value::Null,
                "must not update from a positive integer to nil value",
            );
            true
        }
        _ => true,
    }
}

fn added_tolerations(faults: &mut Faults, new: &Value, old: &Value, path: &Path) {
    let without_seconds = |toleration: &Value| {
        let mut toleration = toleration.clone();
        if let Some(fields) = toleration.as_object_mut() {
            fields.remove("tolerationSeconds");
        }
        toleration
    };
    let kept: Vec<Value> = new
        .items("tolerations")
        .iter()
        .map(without_seconds)
        .collect();
    for toleration in old.items("tolerations") {
        let wanted = without_seconds(toleration);
        if !kept.iter().any(|each| same(each, &wanted)) {
            faults.forbidden(
                path,
                "existing toleration can not be modified except its tolerationSeconds",
            );
            return;
        }
    }
    scheduling::tolerations(faults, new.items("tolerations"), path);
}

fn removed_gates(faults: &mut Faults, new: &Value, old: &Value, path: &Path) {
    for (index, gate) in new.items("schedulingGates").iter().enumerate() {
        let name = gate.text("name");
        let known = old
            .items("schedulingGates")
            .iter()
            .any(|each| each.text("name") == name);
        if !known {
            faults.forbidden(
                &path.index(index).child("name"),
                format!("only deletion is allowed, but found new scheduling gate '{name}'"),
            );
        }
    }
}

/// The new spec as if nothing had changed in the fields that may change.
fn with_changeable_fields_of(new: &Value, old: &Value) -> Value {
    let mut rest = new.clone();
    for list in ["containers", "initContainers"] {
        for (index, container) in old.items(list).iter().enumerate() {
            if let Some(fields) = rest
                .get_mut(list)
                .and_then(|containers| containers.get_mut(index))
                .and_then(Value::as_object_mut)
            {
                copy(fields, container, "image");
            }
        }
    }
    let relaxed = old
        .maybe_number("terminationGracePeriodSeconds")
        .is_some_and(|seconds| seconds < 0)
        && new.number("terminationGracePeriodSeconds") == 1;
    if let Some(fields) = rest.as_object_mut() {
        for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
            copy(fields, old, field);
        }
        if relaxed {
            copy(fields, old, "terminationGracePeriodSeconds");
        }
    }
    rest
}

fn copy(fields: &mut serde_json::Map<String, Value>, from: &Value, field: &str) {
    if from.has(field) {
        fields.insert(field.to_owned(), from[field].clone());
    } else {
        fields.remove(field);
    }
}

/// A pod that waits for its gates may still become choosier about nodes.
fn gated(faults: &mut Faults, rest: &mut Value, old: &Value, path: &Path) {
    let selector = rest.entries("nodeSelector").clone();
    let kept = old
        .entries("nodeSelector")
        .iter()
        .all(|(key, value)| selector.get(key) == Some(value));
    if !kept {
        faults.invalid(
            &path.child("nodeSelector"),
            selector,
            "only additions to spec.nodeSelector are allowed (no mutations or deletions)",
        );
    }
    let (new_nodes, old_nodes) = (
        rest["affinity"]["nodeAffinity"].clone(),
        &old["affinity"]["nodeAffinity"],
    );
    if !same(&new_nodes, old_nodes) {
        let path = path.child("affinity").child("nodeAffinity");
        narrower_terms(faults, &new_nodes[REQUIRED], &old_nodes[REQUIRED], &path);
    }
    let Some(fields) = rest.as_object_mut() else {
        return;
    };
    copy(fields, old, "nodeSelector");
    let mut affinity = fields
        .remove("affinity")
        .and_then(|affinity| affinity.as_object().cloned())
        .unwrap_or_default();
    copy(&mut affinity, &old["affinity"], "nodeAffinity");
    fields.insert("affinity".to_owned(), affinity.into());
}

fn narrower_terms(faults: &mut Faults, new: &Value, old: &Value, path: &Path) {
    let path = path.child(REQUIRED).child("nodeSelectorTerms");
    let (new_terms, old_terms) = (
        new.items("nodeSelectorTerms"),
        old.items("nodeSelectorTerms"),
    );
    if old_terms.is_empty() {
        return;
    }
    if old_terms.len() != new_terms.len() {
        faults.invalid(
            &path,
            new_terms.to_vec(),
            "no additions/deletions to non-empty NodeSelectorTerms list are allowed",
        );
        return;
    }
    for (index, (new, old)) in new_terms.iter().zip(old_terms).enumerate() {
        let fields = ["matchExpressions", "matchFields"];
        let was_empty = fields.iter().all(|field| old.items(field).is_empty());
        let is_empty = fields.iter().all(|field| new.items(field).is_empty());
        let starts_with = fields
            .iter()
            .all(|field| new.items(field).starts_with(old.items(field)));
        if (was_empty && !is_empty) || !starts_with {
            faults.invalid(
                &path.index(index),
                new.clone(),
                "only additions are allowed (no mutations or deletions)",
            );
        }
    }
}

/// The fields that differ, one in a line, so that people see what they may not change.
pub(super) fn differences(old: &Value, new: &Value) -> String {
    let mut lines = Vec::new();
    collect(old, new, &Path::default(), &mut lines);
    lines.join("\n")
}

fn collect(old: &Value, new: &Value, path: &Path, lines: &mut Vec<String>) {
    if same(old, new) {
        return;
    }
    match (old, new) {
        (Value::Object(old_fields), Value::Object(new_fields)) => {
            for name in old_fields.keys() {
                collect(&old[name], &new[name], &path.child(name), lines);
            }
            for name in new_fields
                .keys()
                .filter(|name| !old_fields.contains_key(*name))
            {
                collect(&Value::Null, &new[name], &path.child(name), lines);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                collect(old, new, &path.index(index), lines);
            }
        }
        _ => lines.push(format!("- {path}: {old}\n+ {path}: {new}")),
    }
}
