//! Brings an object into the shape of its schema: what is not in the schema goes, what is missing comes.

use serde_json::{Map, Value};

use super::{Additional, Structural};
use crate::schema::{Findings, builtin, builtin_name, decode};

impl Structural {
    /// Takes away fields that the schema does not have. Version, kind and metadata of the object itself are not
    /// looked at: every object has them.
    pub fn prune(&self, object: &mut Value) -> Findings {
        let mut pruning = Pruning {
            path: String::new(),
            findings: Findings::default(),
        };
        pruning.fields(self, object, true);
        pruning.findings
    }

    /// Puts defaults where nothing is, and takes away null where it may not be and has no default.
    pub fn apply_defaults(&self, object: &mut Value) {
        match object {
            Value::Object(map) => {
                for (name, property) in &self.properties {
                    let missing = map
                        .get(name)
                        .is_none_or(|value| property.refuses_null(value));
                    if let Some(default) = &property.default
                        && missing
                    {
                        map.insert(name.clone(), default.clone());
                    }
                }
                self.default_fields(map);
            }
            Value::Array(items) => {
                if let Some(schema) = &self.items {
                    for item in items {
                        schema.replace_null(item);
                        schema.apply_defaults(item);
                    }
                }
            }
            _ => {}
        }
    }

    fn default_fields(&self, map: &mut Map<String, Value>) {
        for (name, value) in map.iter_mut() {
            if let Some(schema) = self.field(name) {
                schema.replace_null(value);
                schema.apply_defaults(value);
            }
        }
        map.retain(|name, value| {
            !self
                .field(name)
                .is_some_and(|schema| schema.refuses_null(value))
        });
    }

    /// The schema of a field: its own, or that of fields with any name.
    fn field(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(match &self.additional {
            Some(Additional::Schema(schema)) => Some(schema),
            _ => None,
        })
    }

    fn refuses_null(&self, value: &Value) -> bool {
        value.is_null() && !self.nullable && !self.preserve_unknown_fields
    }

    fn replace_null(&self, value: &mut Value) {
        if let Some(default) = &self.default
            && self.refuses_null(value)
        {
            *value = default.clone();
        }
    }
}

struct Pruning {
    path: String,
    findings: Findings,
}

impl Pruning {
    fn value(&mut self, schema: &Structural, value: &mut Value) {
        match value {
            Value::Object(_) => self.fields(schema, value, schema.embedded_resource),
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let before = self.path.len();
                    self.path.push('[');
                    self.path.push_str(&index.to_string());
                    self.path.push(']');
                    match &schema.items {
                        Some(inner) => self.value(inner, item),
                        None if schema.preserve_unknown_fields => {}
                        None => self.everything(item),
                    }
                    self.path.truncate(before);
                }
            }
            _ => {}
        }
    }

    fn fields(&mut self, schema: &Structural, value: &mut Value, is_resource: bool) {
        let Value::Object(map) = value else {
            return;
        };
        let is_root = self.path.is_empty();
        map.retain(|name, value| {
            let before = self.enter(name);
            let kept = match name.as_str() {
                "apiVersion" | "kind" if is_resource => true,
                "metadata" if is_resource => {
                    if !is_root {
                        self.metadata(value);
                    }
                    true
                }
                _ => self.field(schema, name, value),
            };
            self.path.truncate(before);
            kept
        });
    }

    /// Whether the schema has the field; what is in it is pruned.
    fn field(&mut self, schema: &Structural, name: &str, value: &mut Value) -> bool {
        match (schema.properties.get(name), &schema.additional) {
            (Some(property), _) => self.value(property, value),
            (None, Some(Additional::Schema(inner))) => self.value(inner, value),
            (None, Some(Additional::Anything)) if schema.preserve_unknown_fields => {}
            (None, Some(Additional::Anything)) => self.everything(value),
            (None, None) if schema.preserve_unknown_fields => {}
            (None, None) => {
                self.findings.unknown(&self.path);
                return false;
            }
        }
        true
    }

    /// Nothing is known of a value, so that no field in it is.
    fn everything(&mut self, value: &mut Value) {
        self.value(&Structural::default(), value);
    }

    /// The metadata of an object inside the object are like all metadata.
    fn metadata(&mut self, value: &mut Value) {
        let Some(id) = builtin().find(&builtin_name("meta.k8s.io", "v1", "ObjectMeta")) else {
            return;
        };
        // Metadata of the wrong types stay, for validation to refuse.
        if let Ok((converted, findings)) = decode::convert(builtin(), id, value.clone()) {
            *value = converted;
            self.findings.extend(findings.below(&self.path));
        }
    }

    fn enter(&mut self, name: &str) -> usize {
        let before = self.path.len();
        if before > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        before
    }
}
