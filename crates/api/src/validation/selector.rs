//! Label selectors: whether they are right, and what they select.

use serde_json::{Map, Value};

use super::{
    fault::{Faults, Report},
    formats, metadata,
    read::Read,
};
use crate::field::{FieldError, Path};

/// A selector with `matchLabels` and `matchExpressions`. An absent one is right.
pub(crate) fn validate(faults: &mut Faults, selector: &Value, path: &Path) {
    if selector.is_null() {
        return;
    }
    metadata::labels(
        faults,
        selector.entries("matchLabels"),
        &path.child("matchLabels"),
    );
    let path = path.child("matchExpressions");
    for (index, expression) in selector.items("matchExpressions").iter().enumerate() {
        requirement(faults, expression, &path.index(index));
    }
}

fn requirement(faults: &mut Faults, requirement: &Value, path: &Path) {
    let values = requirement.items("values");
    match requirement.text("operator") {
        "In" | "NotIn" if values.is_empty() => faults.required(
            &path.child("values"),
            "must be specified when `operator` is 'In' or 'NotIn'",
        ),
        "Exists" | "DoesNotExist" if !values.is_empty() => faults.forbidden(
            &path.child("values"),
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        ),
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => faults.invalid(
            &path.child("operator"),
            other,
            "not a valid selector operator",
        ),
    }
    metadata::label_name(faults, requirement.text("key"), &path.child("key"));
    for (index, value) in requirement.texts("values").enumerate() {
        faults.messages(
            &path.child("values").index(index),
            value,
            formats::label_value(value),
        );
    }
}

/// Whether a selector selects everything, as an empty one does.
pub(crate) fn is_empty(selector: &Value) -> bool {
    selector.entries("matchLabels").is_empty() && selector.items("matchExpressions").is_empty()
}

/// Whether a selector selects these labels. An absent selector selects nothing.
pub(crate) fn matches(selector: &Value, labels: &Map<String, Value>) -> bool {
    if selector.is_null() {
        return false;
    }
    let texts = |key: &str| labels.get(key).and_then(Value::as_str);
    let same = selector
        .entries("matchLabels")
        .iter()
        .all(|(key, value)| texts(key) == value.as_str());
    same && selector.items("matchExpressions").iter().all(|each| {
        let label = texts(each.text("key"));
        let listed = label.is_some_and(|label| each.texts("values").any(|value| value == label));
        match each.text("operator") {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => label.is_some(),
            "DoesNotExist" => label.is_none(),
            _ => false,
        }
    })
}

/// A selector of nodes: several terms, of which one must hold.
pub(crate) fn node_selector(faults: &mut Faults, selector: &Value, path: &Path) {
    let path = path.child("nodeSelectorTerms");
    let terms = selector.items("nodeSelectorTerms");
    if terms.is_empty() {
        faults.required(&path, "must have at least one node selector term");
    }
    for (index, term) in terms.iter().enumerate() {
        node_term(faults, term, true, &path.index(index));
    }
}

/// One term about nodes. Preferences may hold values that no label can have.
pub(crate) fn node_term(faults: &mut Faults, term: &Value, strict: bool, path: &Path) {
    for (index, each) in term.items("matchExpressions").iter().enumerate() {
        node_requirement(
            faults,
            each,
            strict,
            &path.child("matchExpressions").index(index),
        );
    }
    for (index, each) in term.items("matchFields").iter().enumerate() {
        node_field(faults, each, &path.child("matchFields").index(index));
    }
}

fn node_requirement(faults: &mut Faults, requirement: &Value, strict: bool, path: &Path) {
    let values = requirement.items("values");
    match requirement.text("operator") {
        "In" | "NotIn" if values.is_empty() => faults.required(
            &path.child("values"),
            "must be specified when `operator` is 'In' or 'NotIn'",
        ),
        "Exists" | "DoesNotExist" if !values.is_empty() => faults.forbidden(
            &path.child("values"),
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        ),
        "Gt" | "Lt" if values.len() != 1 => faults.required(
            &path.child("values"),
            "must be specified single value when `operator` is 'Lt' or 'Gt'",
        ),
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => faults.invalid(
            &path.child("operator"),
            other,
            "not a valid selector operator",
        ),
    }
    metadata::label_name(faults, requirement.text("key"), &path.child("key"));
    if strict {
        for (index, value) in requirement.texts("values").enumerate() {
            faults.messages(
                &path.child("values").index(index),
                value,
                formats::label_value(value),
            );
        }
    }
}

fn node_field(faults: &mut Faults, requirement: &Value, path: &Path) {
    match requirement.text("operator") {
        "In" | "NotIn" => {
            if requirement.items("values").len() != 1 {
                faults.required(
                    &path.child("values"),
                    "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
                );
            }
        }
        other => faults.invalid(
            &path.child("operator"),
            other,
            "not a valid selector operator",
        ),
    }
    let key = requirement.text("key");
    if key == "metadata.name" {
        for (index, value) in requirement.texts("values").enumerate() {
            faults.messages(
                &path.child("values").index(index),
                value,
                formats::subdomain(value),
            );
        }
    } else {
        faults.push(FieldError::invalid(
            &path.child("key"),
            key,
            "not a valid field selector key",
        ));
    }
}
