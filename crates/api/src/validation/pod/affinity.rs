//! Where a pod wants to be, and near which other pods.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    field::Path,
    validation::{
        fault::{Faults, Report},
        formats, metadata,
        read::Read,
        selector,
    },
};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const WITHOUT_SELECTOR: &str = "must not be specified when labelSelector is not set";

pub(super) fn validate(faults: &mut Faults, affinity: &Value, path: &Path) {
    let nodes = &affinity["nodeAffinity"];
    let node_path = path.child("nodeAffinity");
    if nodes.has(REQUIRED) {
        selector::node_selector(faults, &nodes[REQUIRED], &node_path.child(REQUIRED));
    }
    for (index, term) in nodes.items(PREFERRED).iter().enumerate() {
        let path = node_path.child(PREFERRED).index(index);
        preference(faults, term, &path);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let path = path.child(kind);
        for (index, term) in affinity[kind].items(REQUIRED).iter().enumerate() {
            pod_term(faults, term, &path.child(REQUIRED).index(index));
        }
        for (index, term) in affinity[kind].items(PREFERRED).iter().enumerate() {
            let path = path.child(PREFERRED).index(index);
            weight(faults, term, &path);
            pod_term(
                faults,
                &term["podAffinityTerm"],
                &path.child("podAffinityTerm"),
            );
        }
    }
}

/// A weighted term about nodes, whose values need not be possible labels.
fn preference(faults: &mut Faults, term: &Value, path: &Path) {
    weight(faults, term, path);
    selector::node_term(
        faults,
        &term["preference"],
        false,
        &path.child("preference"),
    );
}

fn weight(faults: &mut Faults, term: &Value, path: &Path) {
    let weight = term.number("weight");
    if !(1..=100).contains(&weight) {
        faults.invalid(&path.child("weight"), weight, "must be in the range 1-100");
    }
}

fn pod_term(faults: &mut Faults, term: &Value, path: &Path) {
    for field in ["labelSelector", "namespaceSelector"] {
        selector::validate(faults, &term[field], &path.child(field));
    }
    for namespace in term.texts("namespaces") {
        faults.messages(
            &path.child("namespace"),
            namespace,
            formats::label(namespace),
        );
    }
    label_keys(faults, term, path);
    let key = term.text("topologyKey");
    if key.is_empty() {
        faults.required(&path.child("topologyKey"), "can not be empty");
    }
    metadata::label_name(faults, key, &path.child("topologyKey"));
}

fn label_keys(faults: &mut Faults, term: &Value, path: &Path) {
    for field in ["matchLabelKeys", "mismatchLabelKeys"] {
        let path = path.child(field);
        if term.items(field).is_empty() {
            continue;
        }
        if !term.has("labelSelector") {
            faults.forbidden(&path, WITHOUT_SELECTOR);
            continue;
        }
        for (index, key) in term.texts(field).enumerate() {
            metadata::label_name(faults, key, &path.index(index));
        }
    }
    let keys: Vec<&str> = term.texts("matchLabelKeys").collect();
    let mut selected: BTreeSet<&str> = term["labelSelector"]
        .entries("matchLabels")
        .keys()
        .map(String::as_str)
        .collect();
    for expression in term["labelSelector"].items("matchExpressions") {
        let key = expression.text("key");
        // The key that the server itself added is there once; a second time somebody else chose it.
        if let Some(index) = keys.iter().position(|each| *each == key)
            && selected.contains(key)
        {
            faults.invalid(
                &path.index(index),
                key,
                "exists in both matchLabelKeys and labelSelector",
            );
        }
        selected.insert(key);
    }
    for (index, key) in keys.iter().enumerate() {
        if term.texts("mismatchLabelKeys").any(|each| each == *key) {
            faults.invalid(
                &path.child("matchLabelKeys").index(index),
                *key,
                "exists in both matchLabelKeys and mismatchLabelKeys",
            );
        }
    }
}
