//! Checks what a definition says under `allOf`, `anyOf`, `oneOf` and `not`: conditions on values that have their
//! shape elsewhere.

use serde_json::{Map, Value, json};

use super::check::Checker;
use super::{DEEPEST, flag, object};
use crate::field::Path;

impl Checker {
    pub(super) fn alternatives(&mut self, path: &Path, schema: &Value, depth: usize) {
        for (path, nested) in nested(path, schema) {
            if !is_int_or_string_pattern(schema, &path, nested) {
                self.nested(&path, nested, schema, depth + 1);
            }
        }
    }

    /// Under an alternative there may be conditions on values, but nothing that gives them a shape.
    fn nested(&mut self, path: &Path, schema: &Value, outer: &Value, depth: usize) {
        if depth >= DEEPEST {
            return self.forbid(path, "must not be nested deeper");
        }
        self.pattern(path, schema);
        for (name, detail) in [
            ("type", "must be empty to be structural"),
            ("additionalProperties", "must be undefined to be structural"),
            ("default", "must be undefined to be structural"),
            ("title", "must be empty to be structural"),
            ("description", "must be empty to be structural"),
            ("nullable", "must be false to be structural"),
            ("externalDocs", "must be undefined to be structural"),
            (
                "x-kubernetes-preserve-unknown-fields",
                "must be false to be structural",
            ),
            (
                "x-kubernetes-embedded-resource",
                "must be false to be structural",
            ),
            (
                "x-kubernetes-int-or-string",
                "must be false to be structural",
            ),
            (
                "x-kubernetes-list-map-keys",
                "must be empty to be structural",
            ),
            (
                "x-kubernetes-list-type",
                "must be undefined to be structural",
            ),
            (
                "x-kubernetes-map-type",
                "must be undefined to be structural",
            ),
            ("x-kubernetes-validations", "must be empty to be structural"),
        ] {
            if schema
                .get(name)
                .is_some_and(|value| *value != false && *value != "")
            {
                self.forbid(&path.child(name), detail);
            }
        }
        for (name, property) in &object(schema, "properties") {
            let path = path.child("properties").key(name);
            if name == "metadata" {
                self.forbid(&path, "must not be specified in a nested context");
            }
            self.nested(&path, property, &Value::Null, depth + 1);
        }
        if schema["items"].is_object() {
            self.nested(
                &path.child("items"),
                &schema["items"],
                &Value::Null,
                depth + 1,
            );
        }
        let first_of_all = path.as_str().ends_with("allOf[0]");
        for (inner_path, inner) in nested(path, schema) {
            let pattern = first_of_all && is_int_or_string_pattern(outer, &inner_path, inner);
            if !pattern {
                self.nested(&inner_path, inner, &Value::Null, depth + 1);
            }
        }
    }

    /// What an alternative speaks of must be there outside of it, too.
    pub(super) fn completeness(
        &mut self,
        path: &Path,
        schema: Option<&Value>,
        rule_path: &Path,
        rules: &Value,
        depth: usize,
    ) {
        if depth >= DEEPEST {
            return;
        }
        for (rule_path, rules) in nested(rule_path, rules) {
            self.nested_completeness(path, schema, &rule_path, rules, depth + 1);
        }
    }

    fn nested_completeness(
        &mut self,
        path: &Path,
        schema: Option<&Value>,
        rule_path: &Path,
        rules: &Value,
        depth: usize,
    ) {
        let Some(schema) = schema else {
            return self.require(path, &format!("because it is defined in {rule_path}"));
        };
        self.completeness(path, Some(schema), rule_path, rules, depth);
        if let Some(items) = rules.get("items") {
            let (path, rule_path) = (path.child("items"), rule_path.child("items"));
            self.nested_completeness(&path, schema.get("items"), &rule_path, items, depth + 1);
        }
        let properties: Map<String, Value> = object(schema, "properties");
        for (name, rules) in &object(rules, "properties") {
            let path = path.child("properties").key(name);
            let rule_path = rule_path.child("properties").key(name);
            self.nested_completeness(&path, properties.get(name), &rule_path, rules, depth + 1);
        }
    }
}

/// All alternatives of a schema, with their paths.
fn nested<'a>(path: &Path, schema: &'a Value) -> Vec<(Path, &'a Value)> {
    let mut found = Vec::new();
    for name in ["allOf", "anyOf", "oneOf"] {
        for (index, inner) in schema[name].as_array().into_iter().flatten().enumerate() {
            found.push((path.child(name).index(index), inner));
        }
    }
    if let Some(inner) = schema.get("not") {
        found.push((path.child("not"), inner));
    }
    found
}

/// The two types that an integer or a text may have are the one exception.
fn is_int_or_string_pattern(schema: &Value, path: &Path, nested: &Value) -> bool {
    if !flag(schema, "x-kubernetes-int-or-string") {
        return false;
    }
    let expected = match path.as_str() {
        path if path.ends_with("anyOf[0]") => "integer",
        path if path.ends_with("anyOf[1]") => "string",
        _ => return false,
    };
    *nested == json!({"type": expected})
}
