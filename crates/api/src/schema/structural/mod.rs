//! The schema of a custom resource: what its definition says about fields, read once and used for pruning,
//! defaults, validation and merging.
//!
//! Reading follows the definition and never the object, so an object cannot make it go deeper.

mod alternatives;
mod check;
mod formats;
mod merge;
mod shaping;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

pub use check::check;

/// Deeper schemas than this are refused.
const DEEPEST: usize = 100;
/// What one compiled pattern may take; patterns come from outside.
const LARGEST_PATTERN: usize = 1 << 20;

/// What one value may be.
#[derive(Clone, Debug, Default)]
pub struct Structural {
    /// Empty where any type may stand.
    kind: String,
    properties: BTreeMap<String, Structural>,
    /// For every field that is not among the properties; without it there is none.
    additional: Option<Additional>,
    items: Option<Box<Structural>>,
    nullable: bool,
    default: Option<Value>,
    preserve_unknown_fields: bool,
    embedded_resource: bool,
    int_or_string: bool,
    list_type: Option<String>,
    list_map_keys: Vec<String>,
    atomic_map: bool,
    rules: Rules,
}

/// The schema of fields with any name.
#[derive(Clone, Debug)]
enum Additional {
    Anything,
    Schema(Box<Structural>),
}

/// What a value must fulfil beyond its type.
#[derive(Clone, Debug, Default)]
struct Rules {
    required: Vec<String>,
    choices: Vec<Value>,
    format: String,
    pattern: Option<Regex>,
    maximum: Option<f64>,
    exclusive_maximum: bool,
    minimum: Option<f64>,
    exclusive_minimum: bool,
    multiple_of: Option<f64>,
    max_length: Option<u64>,
    min_length: Option<u64>,
    max_items: Option<u64>,
    min_items: Option<u64>,
    max_properties: Option<u64>,
    min_properties: Option<u64>,
    unique_items: bool,
    all_of: Vec<Structural>,
    any_of: Vec<Structural>,
    one_of: Vec<Structural>,
    not: Option<Box<Structural>>,
}

/// Why a schema cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StructuralError {
    #[error("the schema is nested too deeply")]
    TooDeep,
    #[error("the schema has a pattern that is not a regular expression")]
    Pattern(#[source] Box<regex::Error>),
}

impl Structural {
    /// Reads the `openAPIV3Schema` of a definition.
    pub fn parse(schema: &Value) -> Result<Self, StructuralError> {
        Self::at(schema, 0)
    }

    fn at(schema: &Value, depth: usize) -> Result<Self, StructuralError> {
        if depth >= DEEPEST {
            return Err(StructuralError::TooDeep);
        }
        let inner = |schema: &Value| Self::at(schema, depth + 1);
        let mut properties = BTreeMap::new();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            properties.insert(name.clone(), inner(property)?);
        }
        let additional = match &schema["additionalProperties"] {
            Value::Bool(true) => Some(Additional::Anything),
            object @ Value::Object(_) => Some(Additional::Schema(Box::new(inner(object)?))),
            _ => None,
        };
        let items = match &schema["items"] {
            object @ Value::Object(_) => Some(Box::new(inner(object)?)),
            _ => None,
        };
        Ok(Self {
            kind: text(schema, "type"),
            properties,
            additional,
            items,
            nullable: flag(schema, "nullable"),
            default: schema.get("default").cloned(),
            preserve_unknown_fields: flag(schema, "x-kubernetes-preserve-unknown-fields"),
            embedded_resource: flag(schema, "x-kubernetes-embedded-resource"),
            int_or_string: flag(schema, "x-kubernetes-int-or-string"),
            list_type: schema["x-kubernetes-list-type"].as_str().map(str::to_owned),
            list_map_keys: texts(schema, "x-kubernetes-list-map-keys"),
            atomic_map: schema["x-kubernetes-map-type"] == "atomic",
            rules: Rules::read(schema, &inner)?,
        })
    }
}

impl Rules {
    fn read(
        schema: &Value,
        inner: &impl Fn(&Value) -> Result<Structural, StructuralError>,
    ) -> Result<Self, StructuralError> {
        let all = |name: &str| -> Result<Vec<Structural>, StructuralError> {
            schema[name]
                .as_array()
                .into_iter()
                .flatten()
                .map(inner)
                .collect()
        };
        let pattern = match schema["pattern"].as_str() {
            None | Some("") => None,
            Some(pattern) => Some(compile(pattern)?),
        };
        Ok(Self {
            required: texts(schema, "required"),
            choices: schema["enum"].as_array().cloned().unwrap_or_default(),
            format: text(schema, "format"),
            pattern,
            maximum: schema["maximum"].as_f64(),
            exclusive_maximum: flag(schema, "exclusiveMaximum"),
            minimum: schema["minimum"].as_f64(),
            exclusive_minimum: flag(schema, "exclusiveMinimum"),
            multiple_of: schema["multipleOf"].as_f64(),
            max_length: schema["maxLength"].as_u64(),
            min_length: schema["minLength"].as_u64(),
            max_items: schema["maxItems"].as_u64(),
            min_items: schema["minItems"].as_u64(),
            max_properties: schema["maxProperties"].as_u64(),
            min_properties: schema["minProperties"].as_u64(),
            unique_items: flag(schema, "uniqueItems"),
            all_of: all("allOf")?,
            any_of: all("anyOf")?,
            one_of: all("oneOf")?,
            not: match schema.get("not") {
                Some(not) => Some(Box::new(inner(not)?)),
                None => None,
            },
        })
    }
}

fn compile(pattern: &str) -> Result<Regex, StructuralError> {
    RegexBuilder::new(pattern)
        .size_limit(LARGEST_PATTERN)
        .build()
        .map_err(|error| StructuralError::Pattern(Box::new(error)))
}

fn text(schema: &Value, name: &str) -> String {
    schema[name].as_str().unwrap_or_default().to_owned()
}

fn flag(schema: &Value, name: &str) -> bool {
    schema[name] == true
}

fn texts(schema: &Value, name: &str) -> Vec<String> {
    let items = schema[name].as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn object(schema: &Value, name: &str) -> Map<String, Value> {
    schema[name].as_object().cloned().unwrap_or_default()
}
