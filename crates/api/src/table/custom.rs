//! Columns of custom resources, which their definition tells.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    NAME,
    age::since,
    path::{JsonPath, PathError},
};

/// All columns of one version of a custom resource, after the name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CustomColumns {
    columns: Vec<CustomColumn>,
}

/// One of `additionalPrinterColumns`.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomColumn {
    pub name: String,
    pub kind: String,
    pub format: String,
    pub description: String,
    pub priority: i64,
    pub path: JsonPath,
}

impl CustomColumns {
    /// Reads `additionalPrinterColumns`; without any there is the age. The error names the column.
    pub fn new(definitions: &[Value]) -> Result<Self, (usize, PathError)> {
        let age = [json!({
            "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp",
            "description": "How long ago the object was created.",
        })];
        let definitions = if definitions.is_empty() {
            &age
        } else {
            definitions
        };
        let columns = definitions
            .iter()
            .enumerate()
            .map(|(index, definition)| {
                CustomColumn::new(definition).map_err(|error| (index, error))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { columns })
    }

    /// The heads of all columns, in the form on the wire.
    pub fn heads(&self) -> Vec<Value> {
        let name = std::iter::once(NAME.to_value());
        let others = self.columns.iter().map(|column| {
            json!({
                "name": column.name,
                "type": column.kind,
                "format": column.format,
                "description": column.description,
                "priority": column.priority,
            })
        });
        name.chain(others).collect()
    }

    /// One cell for each column. What is not there, or of another type, is null.
    pub fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let name = object
            .pointer("/metadata/name")
            .cloned()
            .unwrap_or_default();
        let others = self.columns.iter().map(|column| column.cell(object, now));
        std::iter::once(name).chain(others).collect()
    }
}

impl CustomColumn {
    fn new(definition: &Value) -> Result<Self, PathError> {
        let text = |name: &str| {
            definition
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        Ok(Self {
            name: text("name").to_owned(),
            kind: text("type").to_owned(),
            format: text("format").to_owned(),
            description: text("description").to_owned(),
            priority: definition
                .get("priority")
                .and_then(Value::as_i64)
                .unwrap_or_default(),
            path: JsonPath::parse(text("jsonPath"))?,
        })
    }

    fn cell(&self, object: &Value, now: Timestamp) -> Value {
        let Some(value) = self.path.first(object).filter(|value| !value.is_null()) else {
            return Value::Null;
        };
        match (self.kind.as_str(), value) {
            ("string", Value::String(_)) => value.clone(),
            // Whatever it is, as a text.
            ("string", other) => other.to_string().into(),
            ("integer", Value::Number(number)) => whole(number),
            ("number", Value::Number(number)) => number.as_f64().map_or(Value::Null, Value::from),
            ("boolean", Value::Bool(_)) => value.clone(),
            ("date", Value::String(time)) => since(time, now).into(),
            _ => Value::Null,
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a fraction is cut off, as upstream does"
)]
fn whole(number: &serde_json::Number) -> Value {
    match (number.as_i64(), number.as_f64()) {
        (Some(number), _) => number.into(),
        (None, Some(number)) => (number as i64).into(),
        (None, None) => Value::Null,
    }
}
