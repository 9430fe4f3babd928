//! Writes an object as a protobuf message.
//!
//! What the message has no number for is left out, as a Go server would leave it out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::ProtobufError;
use super::wire::Writer;
use crate::schema::{Field, Form, Schema, Shape, TypeId, time};

/// Deeper objects than this are refused.
const DEEPEST: usize = 200;

/// The message of an object.
pub(super) fn message(
    schema: &Schema,
    id: TypeId,
    value: &Value,
    writer: &mut Writer,
) -> Result<(), ProtobufError> {
    Encoder { schema, depth: 0 }.object(id, value, writer)
}

struct Encoder<'a> {
    schema: &'a Schema,
    depth: usize,
}

type Written = Result<(), ProtobufError>;

impl Encoder<'_> {
    fn object(&mut self, id: TypeId, value: &Value, writer: &mut Writer) -> Written {
        if self.depth >= DEEPEST {
            return Err(ProtobufError::TooDeep);
        }
        let kind = self.schema.get(id);
        let map = value.as_object().ok_or_else(|| mismatch(&kind.name))?;
        // In the order of the numbers, and fields of one embedded message together.
        let mut fields: Vec<(&Field, &Value)> = map
            .iter()
            .filter(|(_, value)| !value.is_null())
            .filter_map(|(name, value)| Some((kind.field(name)?, value)))
            .filter(|(field, _)| field.number > 0)
            .collect();
        let place = |field: &Field| match field.wire.embedded {
            0 => (field.number, 0),
            outer => (outer, field.number),
        };
        fields.sort_by_key(|(field, _)| place(field));
        self.depth += 1;
        for group in fields
            .chunk_by(|(a, _), (b, _)| a.wire.embedded > 0 && a.wire.embedded == b.wire.embedded)
        {
            match group[0].0.wire.embedded {
                0 => self.fields(id, group, writer)?,
                outer => writer.message(outer, |writer| self.fields(id, group, writer))?,
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn fields(
        &mut self,
        owner: TypeId,
        fields: &[(&Field, &Value)],
        writer: &mut Writer,
    ) -> Written {
        for (field, value) in fields {
            self.field(owner, field, value, writer)
                .map_err(|error| error.within(&field.name))?;
        }
        Ok(())
    }

    fn field(
        &mut self,
        owner: TypeId,
        field: &Field,
        value: &Value,
        writer: &mut Writer,
    ) -> Written {
        let form = field.wire.form;
        match (&field.shape, value) {
            (Shape::List(_), value) if form == Form::Wrapped => {
                self.one(owner, &field.shape, form, field.number, value, writer)
            }
            (Shape::List(item), Value::Array(items)) => {
                for value in items {
                    self.one(owner, item, form, field.number, value, writer)?;
                }
                Ok(())
            }
            (Shape::Map(item), Value::Object(map)) => self.map(owner, item, field, map, writer),
            (shape, value) => self.one(owner, shape, form, field.number, value, writer),
        }
    }

    fn map(
        &mut self,
        owner: TypeId,
        item: &Shape,
        field: &Field,
        map: &Map<String, Value>,
        writer: &mut Writer,
    ) -> Written {
        for (key, value) in map {
            writer.message(field.number, |entry| {
                entry.bytes(1, key.as_bytes());
                self.one(owner, item, field.wire.form, 2, value, entry)
            })?;
        }
        Ok(())
    }

    fn one(
        &mut self,
        owner: TypeId,
        shape: &Shape,
        form: Form,
        number: u32,
        value: &Value,
        writer: &mut Writer,
    ) -> Written {
        match (shape, value) {
            (Shape::Boolean, Value::Bool(value)) => writer.integer(number, i64::from(*value)),
            (Shape::Int32 | Shape::Int64, value) => {
                writer.integer(
                    number,
                    value.as_i64().ok_or_else(|| mismatch("an integer"))?,
                );
            }
            (Shape::Double, value) => {
                writer.double(number, value.as_f64().ok_or_else(|| mismatch("a number"))?);
            }
            (Shape::String, Value::String(text)) => writer.bytes(number, text.as_bytes()),
            (Shape::Bytes, Value::String(text)) => {
                let bytes = STANDARD.decode(text).map_err(|_| mismatch("base64"))?;
                writer.bytes(number, &bytes);
            }
            (Shape::Time, Value::String(text)) => instant(number, text, 1_000_000_000, writer)?,
            (Shape::MicroTime, Value::String(text)) => instant(number, text, 1000, writer)?,
            (Shape::Quantity, Value::String(text)) => writer.message(number, |quantity| {
                quantity.bytes(1, text.as_bytes());
                Ok(())
            })?,
            (Shape::IntOrString, value) => int_or_string(number, value, writer)?,
            (Shape::Object(id), value) => {
                writer.message(number, |writer| self.object(*id, value, writer))?;
            }
            (Shape::Any, value) => self.any(owner, form, number, value, writer)?,
            (Shape::List(item), Value::Array(items)) if form == Form::Wrapped => {
                writer.message(number, |wrapper| {
                    items
                        .iter()
                        .try_for_each(|value| self.one(owner, item, Form::Plain, 1, value, wrapper))
                })?;
            }
            (shape, _) => return Err(mismatch(&format!("{shape:?}"))),
        }
        Ok(())
    }

    /// Raw JSON, or a schema or something simpler inside a custom resource definition.
    fn any(
        &mut self,
        owner: TypeId,
        form: Form,
        number: u32,
        value: &Value,
        writer: &mut Writer,
    ) -> Written {
        let (schema_number, other_number) = match form {
            Form::Plain | Form::Wrapped => {
                return writer.message(number, |raw| {
                    raw.bytes(1, value.to_string().as_bytes());
                    Ok(())
                });
            }
            Form::SchemaOrBool => (2, 1),
            Form::SchemaOrList | Form::SchemaOrStrings => (1, 2),
        };
        writer.message(number, |writer| match (form, value) {
            (Form::SchemaOrBool, Value::Bool(allows)) => {
                writer.integer(other_number, i64::from(*allows));
                Ok(())
            }
            (Form::SchemaOrList, Value::Array(schemas)) => schemas.iter().try_for_each(|schema| {
                writer.message(other_number, |writer| self.object(owner, schema, writer))
            }),
            (Form::SchemaOrStrings, Value::Array(texts)) => texts.iter().try_for_each(|text| {
                self.one(
                    owner,
                    &Shape::String,
                    Form::Plain,
                    other_number,
                    text,
                    writer,
                )
            }),
            (form, schema) => {
                if form == Form::SchemaOrBool {
                    writer.integer(other_number, 1);
                }
                writer.message(schema_number, |writer| self.object(owner, schema, writer))
            }
        })
    }
}

fn mismatch(what: &str) -> ProtobufError {
    ProtobufError::NotRepresentable(format!("not {what}"))
}

/// Seconds and nanoseconds, without what is finer than `unit` nanoseconds.
fn instant(number: u32, text: &str, unit: i32, writer: &mut Writer) -> Written {
    let time = time::parse(text).map_err(ProtobufError::NotRepresentable)?;
    let nanos = time.subsec_nanosecond();
    // Before 1970 the parts count backwards in one form and forwards in the other.
    let (seconds, nanos) = if nanos < 0 {
        (time.as_second() - 1, nanos + 1_000_000_000)
    } else {
        (time.as_second(), nanos)
    };
    writer.message(number, |writer| {
        writer.integer(1, seconds);
        writer.integer(2, i64::from(nanos / unit * unit));
        Ok(())
    })
}

fn int_or_string(number: u32, value: &Value, writer: &mut Writer) -> Written {
    let (kind, integer, text) = match value {
        Value::String(text) => (1, 0, text.as_str()),
        value => (
            0,
            value
                .as_i64()
                .ok_or_else(|| mismatch("an integer or a text"))?,
            "",
        ),
    };
    writer.message(number, |writer| {
        writer.integer(1, kind);
        writer.integer(2, integer);
        writer.bytes(3, text.as_bytes());
        Ok(())
    })
}
