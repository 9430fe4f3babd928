//! One step of a path: a field, an item found by its keys, an item that is its own value.
//!
//! Steps have one text each, in messages and in `fieldsV1`, and one order.

use std::{cmp::Ordering, fmt};

use serde_json::{Map, Value};

/// A step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Element {
    /// A field of an object, or a key of a map.
    Field(String),
    /// The item of a list that has these values. The names are in order.
    Key(Vec<(String, Value)>),
    /// The item of a set.
    Value(Value),
    /// The item at a position. Nothing makes such a step; it is read and kept.
    Index(i64),
}

impl Element {
    /// Reads a key of `fieldsV1`.
    pub(super) fn decode(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Self::Field(rest.to_owned())),
            "k" => {
                let fields: Map<String, Value> = serde_json::from_str(rest).ok()?;
                let mut fields: Vec<_> = fields.into_iter().collect();
                fields.sort_by(|a, b| a.0.cmp(&b.0));
                Some(Self::Key(fields))
            }
            "v" => serde_json::from_str(rest).ok().map(Self::Value),
            "i" => rest.parse().ok().map(Self::Index),
            _ => None,
        }
    }

    /// The key of `fieldsV1`.
    pub(super) fn encode(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(fields) => {
                let mut text = "k:{".to_owned();
                for (index, (name, value)) in fields.iter().enumerate() {
                    if index > 0 {
                        text.push(',');
                    }
                    text.push_str(&Value::from(name.as_str()).to_string());
                    text.push(':');
                    text.push_str(&value.to_string());
                }
                text.push('}');
                text
            }
            Self::Value(value) => format!("v:{value}"),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => compare_keys(a, b),
            (Self::Value(a), Self::Value(b)) => compare_values(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                f.write_str("[")?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    if index > 0 {
                        f.write_str(",")?;
                    }
                    write!(f, "{name}={value}")?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={value}]"),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

fn compare_keys(a: &[(String, Value)], b: &[(String, Value)]) -> Ordering {
    for ((name, value), (other_name, other_value)) in a.iter().zip(b) {
        let order = name
            .cmp(other_name)
            .then_with(|| compare_values(value, other_value));
        if order.is_ne() {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

/// Any total order that agrees with equality will do; numbers come first, as numbers.
fn compare_values(a: &Value, b: &Value) -> Ordering {
    fn rank(value: &Value) -> u8 {
        match value {
            Value::Number(_) => 0,
            Value::String(_) => 1,
            Value::Bool(_) => 2,
            Value::Array(_) => 3,
            Value::Object(_) => 4,
            Value::Null => 5,
        }
    }
    match (a, b) {
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(x), Value::Number(y)) => match (x.as_i64(), y.as_i64()) {
            (Some(x), Some(y)) => x.cmp(&y),
            _ => a.to_string().cmp(&b.to_string()),
        },
        (a, b) if rank(a) != rank(b) => rank(a).cmp(&rank(b)),
        (a, b) => a.to_string().cmp(&b.to_string()),
    }
}
