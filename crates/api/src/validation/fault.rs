//! Collecting the faults of an object while walking through it.

use serde_json::Value;

use super::{formats::Messages, read::Read};
use crate::field::{FieldError, Path};

/// All faults found so far, in the order in which they were found.
pub(crate) type Faults = Vec<FieldError>;

pub(crate) const IMMUTABLE: &str = "field is immutable";
pub(crate) const NEGATIVE: &str = "must be greater than or equal to 0";
pub(crate) const NOT_POSITIVE: &str = "must be greater than zero";

/// Shorthands for the faults that nearly every kind can have.
pub(crate) trait Report {
    fn required(&mut self, path: &Path, detail: &str);
    fn forbidden(&mut self, path: &Path, detail: impl Into<String>);
    fn invalid(&mut self, path: &Path, value: impl Into<Value>, detail: impl Into<String>);
    /// One fault for each sentence about a value.
    fn messages(&mut self, path: &Path, value: impl Into<Value>, messages: Messages);
    /// A text that must be there and be one of a few.
    fn required_choice(&mut self, path: &Path, value: &str, choices: &[&str]);
    /// A text that must be one of a few if it is there.
    fn choice(&mut self, path: &Path, value: &Value, choices: &[&str]);
    /// Numbers that must not be negative.
    fn not_negative(&mut self, holder: &Value, path: &Path, fields: &[&str]);
    /// A value that must not change. Absent and null are the same.
    fn immutable(&mut self, path: &Path, new: &Value, old: &Value);
    /// Fields whose texts must not be empty.
    fn not_empty(&mut self, holder: &Value, path: &Path, fields: &[&str]);
}

impl Report for Faults {
    fn required(&mut self, path: &Path, detail: &str) {
        self.push(FieldError::required(path, detail));
    }

    fn forbidden(&mut self, path: &Path, detail: impl Into<String>) {
        self.push(FieldError::forbidden(path, detail));
    }

    fn invalid(&mut self, path: &Path, value: impl Into<Value>, detail: impl Into<String>) {
        self.push(FieldError::invalid(path, value, detail));
    }

    fn messages(&mut self, path: &Path, value: impl Into<Value>, messages: Messages) {
        if messages.is_empty() {
            return;
        }
        let value = value.into();
        for message in messages {
            self.push(FieldError::invalid(path, value.clone(), message));
        }
    }

    fn required_choice(&mut self, path: &Path, value: &str, choices: &[&str]) {
        if value.is_empty() {
            self.required(path, "");
        } else if !choices.contains(&value) {
            self.push(FieldError::not_supported(path, value, choices));
        }
    }

    fn choice(&mut self, path: &Path, value: &Value, choices: &[&str]) {
        if let Some(text) = value.as_str()
            && !choices.contains(&text)
        {
            self.push(FieldError::not_supported(path, text, choices));
        }
    }

    fn not_negative(&mut self, holder: &Value, path: &Path, fields: &[&str]) {
        for field in fields {
            let number = holder.number(field);
            if number < 0 {
                self.invalid(&path.child(field), number, NEGATIVE);
            }
        }
    }

    fn immutable(&mut self, path: &Path, new: &Value, old: &Value) {
        if new != old {
            self.invalid(path, new.clone(), IMMUTABLE);
        }
    }

    fn not_empty(&mut self, holder: &Value, path: &Path, fields: &[&str]) {
        for field in fields {
            if holder.text(field).is_empty() {
                self.required(&path.child(field), "");
            }
        }
    }
}

/// Fields where a false, a zero or an empty text is a choice, other than saying nothing.
const CHOICES: [&str; 21] = [
    "activeDeadlineSeconds",
    "allowPrivilegeEscalation",
    "automountServiceAccountToken",
    "enableServiceLinks",
    "fsGroup",
    "hostProcess",
    "hostUsers",
    "immutable",
    "optional",
    "priority",
    "privileged",
    "readOnlyRootFilesystem",
    "runAsGroup",
    "runAsNonRoot",
    "runAsUser",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
    "storageClassName",
    "terminationGracePeriodSeconds",
    "tolerationSeconds",
    "volumeAttributesClassName",
];

/// Maps whose keys somebody chose: a key with an empty text is there all the same.
const MAPS: [&str; 6] = [
    "annotations",
    "data",
    "labels",
    "matchLabels",
    "nodeSelector",
    "parameters",
];

/// Whether two values mean the same: what is empty, zero or false is mostly like nothing at all.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            let names = left.keys().chain(right.keys());
            names.into_iter().all(|name| {
                let left = left.get(name).unwrap_or(&Value::Null);
                let right = right.get(name).unwrap_or(&Value::Null);
                if CHOICES.contains(&name.as_str()) {
                    left == right
                } else if MAPS.contains(&name.as_str()) {
                    left == right || (is_nothing(left) && is_nothing(right))
                } else {
                    same(left, right)
                }
            })
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| same(left, right))
        }
        (left, right) => left == right || (is_nothing(left) && is_nothing(right)),
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_i64() == Some(0),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_go_leaves_out_is_the_same_as_nothing() {
        for (left, right, alike) in [
            (
                json!({}),
                json!({"hostNetwork": false, "hostname": "", "volumes": []}),
                true,
            ),
            (json!({}), json!({"hostNetwork": true}), false),
            (json!({}), json!({"hostUsers": false}), false),
            (
                json!({"ports": [{"hostPort": 0}]}),
                json!({"ports": [{}]}),
                true,
            ),
            (json!({"nodeSelector": {}}), json!({}), true),
            (json!({"nodeSelector": {"a": ""}}), json!({}), false),
            (json!({"runAsUser": 0}), json!({}), false),
            (json!([1]), json!([1, 2]), false),
            (json!(null), json!({}), true),
        ] {
            assert_eq!(same(&left, &right), alike, "{left} {right}");
            assert_eq!(same(&right, &left), alike, "{right} {left}");
        }
    }
}
