//! The set of fields an object has, which is what its applier owns.
//!
//! What does not fit the schema is refused here: an owner of something unknown cannot be recorded.

use serde_json::{Map, Value};

use super::{
    element::Element,
    place::{Parts, Place, item_step},
    set::{FieldSet, Node},
};
use crate::schema::Shape;

/// Everything `value` says, or what is wrong with it.
pub(super) fn extract(place: Place, value: &Value) -> Result<FieldSet, Vec<String>> {
    let mut walk = Walk::default();
    let node = walk.node(place, value);
    if walk.faults.is_empty() {
        Ok(node.below)
    } else {
        Err(walk.faults)
    }
}

/// Everything an object says that was accepted before. Items that are there twice are owned as one.
pub(super) fn extract_known(place: Place, value: &Value) -> FieldSet {
    Walk::default().node(place, value).below
}

#[derive(Default)]
struct Walk {
    path: String,
    faults: Vec<String>,
}

impl Walk {
    fn fault(&mut self, sentence: &str) {
        self.faults.push(format!("{}: {sentence}", self.path));
    }

    fn node(&mut self, place: Place, value: &Value) -> Node {
        let parts = place.parts();
        match (&parts, value) {
            (Parts::Whole, value) => {
                self.check_whole(place, value);
                Node::member()
            }
            (_, Value::Null) => Node::default(),
            (Parts::Fields(_) | Parts::Values | Parts::Free, Value::Object(fields)) => Node {
                member: false,
                below: self.fields(place, &parts, fields),
            },
            (Parts::Set | Parts::Items(..), Value::Array(items)) => Node {
                member: false,
                below: self.items(place, &parts, items),
            },
            (Parts::Free, _) => Node::member(),
            (Parts::Fields(_) | Parts::Values, other) => {
                self.fault(&format!("expected map, got {}", unstructured(other)));
                Node::default()
            }
            (Parts::Set | Parts::Items(..), other) => {
                self.fault(&format!("expected list, got {}", unstructured(other)));
                Node::default()
            }
        }
    }

    fn fields(&mut self, place: Place, parts: &Parts, fields: &Map<String, Value>) -> FieldSet {
        let mut steps = Vec::with_capacity(fields.len());
        for (name, value) in fields {
            let (inner, named) = place.field(name);
            let length = self.path.len();
            self.path.push('.');
            self.path.push_str(name);
            if matches!(parts, Parts::Fields(kind) if !named && !kind.open) {
                self.fault("field not declared in schema");
            }
            let mut node = self.node(inner, value);
            self.path.truncate(length);
            // A named field is owned through its parts; a key of a map is there because somebody put it there.
            let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
            node.member |= empty || !named;
            steps.push((Element::Field(name.clone()), node));
        }
        FieldSet::of_steps(steps)
    }

    fn items(&mut self, place: Place, parts: &Parts, items: &[Value]) -> FieldSet {
        let mut steps = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            match item_step(parts, place, item) {
                Ok((element, inner)) => steps.push((element, inner, item)),
                Err(fault) => self.fault(&format!("element {index}: {fault}")),
            }
        }
        steps.sort_by(|a, b| a.0.cmp(&b.0));
        let mut owned = Vec::with_capacity(steps.len());
        for same in steps.chunk_by(|a, b| a.0 == b.0) {
            let (element, inner, item) = &same[0];
            if same.len() > 1 {
                self.fault(&format!("duplicate entries for key {element}"));
                owned.push((element.clone(), Node::member()));
                continue;
            }
            let length = self.path.len();
            self.path.push_str(&element.to_string());
            let mut node = self.node(*inner, item);
            node.member = true;
            self.path.truncate(length);
            owned.push((element.clone(), node));
        }
        FieldSet::of_steps(owned)
    }

    /// Checks the type of a value without parts.
    fn check_whole(&mut self, place: Place, value: &Value) {
        let fault = match (place.shape(), value) {
            (_, Value::Null) => return,
            (Shape::Boolean, other) if !other.is_boolean() => {
                format!("expected boolean, got {}", unstructured(other))
            }
            (Shape::Int32 | Shape::Int64 | Shape::Double, other) if !other.is_number() => {
                format!("expected numeric (int or float), got {}", type_name(other))
            }
            (Shape::String | Shape::Bytes, other) if !other.is_string() => {
                format!("expected string, got {}", unstructured(other))
            }
            (Shape::List(_), other) if !other.is_array() => {
                format!("expected list, got {}", unstructured(other))
            }
            (Shape::Map(_) | Shape::Object(_), other) if !other.is_object() => {
                format!("expected map, got {}", unstructured(other))
            }
            _ => return,
        };
        self.fault(&fault);
    }
}

fn unstructured(value: &Value) -> String {
    format!("&{{{value}}}")
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
