//! Reads JSON and notices what a strict reader must: names that come twice, and fields that the type lacks.
//!
//! Findings stand in the order in which they are met, since that is how upstream lists them.

use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{Findings, Schema, Shape, TypeId};

/// Reads one value. With a type, fields it does not have are findings too.
pub fn read(
    bytes: &[u8],
    typed: Option<(&Schema, TypeId)>,
) -> Result<(Value, Findings), serde_json::Error> {
    let mut path = String::new();
    let mut findings = Findings::default();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let seed = Seed {
        context: Context {
            path: &mut path,
            findings: &mut findings,
        },
        expected: match typed {
            Some((schema, id)) => Expected::Shape(schema, &Shape::Object(id)),
            None => Expected::Anything,
        },
    };
    let value = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok((value, findings))
}

/// What is known of the value that comes.
#[derive(Clone, Copy)]
enum Expected<'a> {
    Shape(&'a Schema, &'a Shape),
    Anything,
    /// Inside a field that will be dropped nothing is worth a finding.
    Dropped,
}

struct Context<'a> {
    path: &'a mut String,
    findings: &'a mut Findings,
}

impl Context<'_> {
    fn again(&mut self) -> Context<'_> {
        Context {
            path: self.path,
            findings: self.findings,
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

struct Seed<'a> {
    context: Context<'a>,
    expected: Expected<'a>,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        serde_json::Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        let expected = self.expected.item();
        let mut list = Vec::new();
        loop {
            let before = self.context.path.len();
            self.context.path.push('[');
            self.context.path.push_str(&list.len().to_string());
            self.context.path.push(']');
            let item = items.next_element_seed(Seed {
                context: self.context.again(),
                expected,
            })?;
            self.context.path.truncate(before);
            match item {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            let before = self.context.enter(&name);
            let expected = self.expected.field(&name);
            let already = matches!(self.expected, Expected::Dropped);
            if !already {
                if matches!(expected, Expected::Dropped) {
                    self.context.findings.unknown(self.context.path);
                } else if map.contains_key(&name) {
                    self.context.findings.duplicate(self.context.path);
                }
            }
            let value = entries.next_value_seed(Seed {
                context: self.context.again(),
                expected,
            })?;
            self.context.path.truncate(before);
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bytes<E: serde::de::Error>(self, _value: &[u8]) -> Result<Value, E> {
        Err(E::custom("bytes are not JSON"))
    }
}

impl Expected<'_> {
    fn item(self) -> Self {
        match self {
            Self::Shape(schema, Shape::List(item)) => Self::Shape(schema, item),
            Self::Dropped => Self::Dropped,
            Self::Shape(..) | Self::Anything => Self::Anything,
        }
    }

    fn field(self, name: &str) -> Self {
        match self {
            Self::Shape(schema, Shape::Map(value)) => Self::Shape(schema, value),
            Self::Shape(schema, Shape::Object(id)) => {
                let kind = schema.get(*id);
                match kind.field(name) {
                    Some(field) => Self::Shape(schema, &field.shape),
                    None if kind.open => Self::Anything,
                    None => Self::Dropped,
                }
            }
            Self::Dropped => Self::Dropped,
            Self::Shape(..) | Self::Anything => Self::Anything,
        }
    }
}
