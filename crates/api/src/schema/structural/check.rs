//! Checks the schema of a definition: that it is structural, and uses nothing that is not supported.

use serde_json::Value;

use super::{DEEPEST, compile, flag, object, text, texts};
use crate::field::{FieldError, Path};

/// All that is wrong with the `openAPIV3Schema` at `path`.
pub fn check(path: &Path, schema: &Value) -> Vec<FieldError> {
    let mut checker = Checker { errors: Vec::new() };
    checker.structure(path, schema, Level::Root, 0);
    checker.completeness(path, Some(schema), path, schema, 0);
    checker.errors.sort_by_key(ToString::to_string);
    checker.errors.dedup();
    checker.errors
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

pub(super) struct Checker {
    pub(super) errors: Vec<FieldError>,
}

impl Checker {
    pub(super) fn forbid(&mut self, path: &Path, detail: &str) {
        self.errors.push(FieldError::forbidden(path, detail));
    }

    pub(super) fn require(&mut self, path: &Path, detail: &str) {
        self.errors.push(FieldError::required(path, detail));
    }

    fn invalid(&mut self, path: &Path, value: impl Into<Value>, detail: &str) {
        self.errors.push(FieldError::invalid(path, value, detail));
    }

    /// A type that must be a certain one.
    fn expect_type(&mut self, path: &Path, schema: &Value, kind: &str, detail: &str) {
        match text(schema, "type") {
            found if found == kind => {}
            found if found.is_empty() => self.require(&path.child("type"), detail),
            found => self.invalid(&path.child("type"), found, detail),
        }
    }

    fn structure(&mut self, path: &Path, schema: &Value, level: Level, depth: usize) {
        if depth >= DEEPEST {
            return self.forbid(path, "must not be nested deeper");
        }
        self.unsupported(path, schema);
        self.extensions(path, schema);
        self.types(path, schema, level);
        self.metadata(path, schema, level);
        for (name, property) in &object(schema, "properties") {
            let path = path.child("properties").key(name);
            self.structure(&path, property, Level::Field, depth + 1);
        }
        if schema["items"].is_object() {
            self.structure(
                &path.child("items"),
                &schema["items"],
                Level::Item,
                depth + 1,
            );
        }
        if schema["additionalProperties"].is_object() {
            let path = path.child("additionalProperties");
            self.structure(
                &path,
                &schema["additionalProperties"],
                Level::Field,
                depth + 1,
            );
        }
        self.alternatives(path, schema, depth);
    }

    fn unsupported(&mut self, path: &Path, schema: &Value) {
        for name in [
            "id",
            "additionalItems",
            "patternProperties",
            "definitions",
            "dependencies",
            "$ref",
        ] {
            if schema.get(name).is_some() {
                self.forbid(&path.child(name), &format!("{name} is not supported"));
            }
        }
        if schema["items"].is_array() {
            let detail = "items must be a schema object and not an array";
            self.forbid(&path.child("items"), detail);
        }
        if flag(schema, "uniqueItems") {
            let detail =
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.forbid(&path.child("uniqueItems"), detail);
        }
        if schema["additionalProperties"] == false {
            let detail = "additionalProperties cannot be set to false";
            self.forbid(&path.child("additionalProperties"), detail);
        } else if schema.get("additionalProperties").is_some()
            && !object(schema, "properties").is_empty()
        {
            let detail = "additionalProperties and properties are mutual exclusive";
            self.forbid(&path.child("additionalProperties"), detail);
        }
        self.pattern(path, schema);
    }

    pub(super) fn pattern(&mut self, path: &Path, schema: &Value) {
        let pattern = text(schema, "pattern");
        if let Err(error) = compile(&pattern) {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            let detail = format!(
                "must be a valid regular expression, but isn't: {}",
                cause.unwrap_or_default()
            );
            self.invalid(&path.child("pattern"), pattern, &detail);
        }
    }

    fn types(&mut self, path: &Path, schema: &Value, level: Level) {
        let kind = text(schema, "type");
        let known = ["array", "boolean", "integer", "number", "object", "string"];
        if kind == "null" {
            let detail = "type cannot be set to null, use nullable as an alternative";
            self.forbid(&path.child("type"), detail);
        } else if !kind.is_empty() && !known.contains(&kind.as_str()) {
            let error = FieldError::not_supported(&path.child("type"), kind.clone(), &known);
            self.errors.push(error);
        }
        if kind == "array" && schema.get("items").is_none() {
            self.require(&path.child("items"), "must be specified");
        }
        let any_type = flag(schema, "x-kubernetes-int-or-string")
            || flag(schema, "x-kubernetes-preserve-unknown-fields");
        if flag(schema, "x-kubernetes-embedded-resource") {
            let detail = "must be object if x-kubernetes-embedded-resource is true";
            self.expect_type(path, schema, "object", detail);
        } else if kind.is_empty() && !any_type {
            let detail = match level {
                Level::Root => "must not be empty at the root",
                Level::Item => "must not be empty for specified array items",
                Level::Field => "must not be empty for specified object fields",
            };
            self.require(&path.child("type"), detail);
        }
        if level == Level::Root {
            if !kind.is_empty() && kind != "object" {
                self.invalid(&path.child("type"), kind, "must be object at the root");
            }
            if schema.get("additionalProperties").is_some() {
                let detail = "must not be used at the root";
                self.forbid(&path.child("additionalProperties"), detail);
            }
        }
    }

    fn extensions(&mut self, path: &Path, schema: &Value) {
        const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
        const EMBEDDED: &str = "x-kubernetes-embedded-resource";
        if schema[PRESERVE] == false {
            self.invalid(&path.child(PRESERVE), false, "must be true or undefined");
        }
        if flag(schema, "x-kubernetes-int-or-string") {
            for name in [PRESERVE, EMBEDDED] {
                if flag(schema, name) {
                    let detail = "must be false if x-kubernetes-int-or-string is true";
                    self.invalid(&path.child(name), true, detail);
                }
            }
        }
        if flag(schema, EMBEDDED) {
            if schema.get("additionalProperties").is_some() {
                let detail = "must not be used if x-kubernetes-embedded-resource is set";
                self.forbid(&path.child("additionalProperties"), detail);
            }
            if !flag(schema, PRESERVE) && object(schema, "properties").is_empty() {
                let detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
                self.require(&path.child("properties"), detail);
            }
        }
        if let Some(kind) = schema["x-kubernetes-map-type"].as_str() {
            let detail = "must be object if x-kubernetes-map-type is specified";
            self.expect_type(path, schema, "object", detail);
            self.one_of(
                &path.child("x-kubernetes-map-type"),
                kind,
                &["atomic", "granular"],
            );
        }
        self.lists(path, schema);
    }

    fn one_of(&mut self, path: &Path, value: &str, choices: &[&str]) {
        if !choices.contains(&value) {
            self.errors
                .push(FieldError::not_supported(path, value, choices));
        }
    }

    fn lists(&mut self, path: &Path, schema: &Value) {
        let type_path = path.child("x-kubernetes-list-type");
        let keys = texts(schema, "x-kubernetes-list-map-keys");
        let list_type = schema["x-kubernetes-list-type"].as_str();
        if let Some(kind) = list_type {
            let detail = "must be array if x-kubernetes-list-type is specified";
            self.expect_type(path, schema, "array", detail);
            self.one_of(&type_path, kind, &["atomic", "map", "set"]);
        }
        if !keys.is_empty() && list_type != Some("map") {
            let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
            match list_type {
                None => self.require(&type_path, detail),
                Some(kind) => self.invalid(&type_path, kind, detail),
            }
        }
        if list_type == Some("map") {
            self.list_map(path, schema, &keys);
        }
        if list_type == Some("set") {
            let items = &schema["items"];
            let map_type = text(items, "x-kubernetes-map-type");
            if text(items, "type") == "object" && map_type != "atomic" {
                let path = path.child("items").child("x-kubernetes-map-type");
                let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
                self.invalid(&path, map_type, detail);
            }
        }
    }

    fn list_map(&mut self, path: &Path, schema: &Value, keys: &[String]) {
        let keys_path = path.child("x-kubernetes-list-map-keys");
        let items = &schema["items"];
        let items_path = path.child("items");
        if keys.is_empty() {
            let detail = "must not be empty if x-kubernetes-list-type is map";
            self.require(&keys_path, detail);
        }
        if !items.is_object() {
            let detail = "must have a schema if x-kubernetes-list-type is map";
            return self.require(&items_path, detail);
        }
        if text(items, "type") != "object" {
            let detail = "must be object if parent array's x-kubernetes-list-type is map";
            self.invalid(&items_path.child("type"), text(items, "type"), detail);
        }
        let properties = object(items, "properties");
        let required = texts(items, "required");
        for (index, key) in keys.iter().enumerate() {
            if keys[..index].contains(key) {
                self.errors
                    .push(FieldError::duplicate(&keys_path.index(index), key.as_str()));
            }
            let Some(property) = properties.get(key) else {
                let detail = "entries must all be names of item properties";
                self.invalid(&keys_path, keys.to_vec(), detail);
                continue;
            };
            let key_path = items_path.child("properties").key(key);
            if ["array", "object"].contains(&text(property, "type").as_str()) {
                let detail =
                    "must be a scalar type if parent array's x-kubernetes-list-type is map";
                self.invalid(&key_path.child("type"), text(property, "type"), detail);
            }
            if property.get("default").is_none() && !required.contains(key) {
                let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                self.require(&key_path.child("default"), detail);
            }
        }
    }

    /// Version, kind and metadata are the same everywhere; a schema may only restrict names.
    fn metadata(&mut self, path: &Path, schema: &Value, level: Level) {
        if level != Level::Root && !flag(schema, "x-kubernetes-embedded-resource") {
            return;
        }
        let properties = object(schema, "properties");
        let path = path.child("properties");
        for (name, kind) in [
            ("kind", "string"),
            ("apiVersion", "string"),
            ("metadata", "object"),
        ] {
            if let Some(property) = properties.get(name)
                && text(property, "type") != kind
            {
                let path = path.key(name).child("type");
                self.invalid(&path, text(property, "type"), &format!("must be {kind}"));
            }
        }
        if level == Level::Root
            && let Some(metadata) = properties.get("metadata")
        {
            let only_names = object(metadata, "properties")
                .keys()
                .all(|name| name == "name" || name == "generateName");
            let nothing_else = [
                "additionalProperties",
                "items",
                "x-kubernetes-preserve-unknown-fields",
                "x-kubernetes-embedded-resource",
                "description",
                "title",
                "nullable",
            ]
            .iter()
            .all(|word| metadata.get(word).is_none());
            if !(only_names && nothing_else) {
                let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
                self.forbid(&path.key("metadata"), detail);
            }
        }
    }
}
