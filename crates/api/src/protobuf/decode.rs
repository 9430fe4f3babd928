//! Reads a protobuf message as the object that it would be in JSON.
//!
//! A Go client writes every field that is not a pointer, even if it holds nothing; such fields are left out
//! here just where Go leaves them out of its JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Number, Value};

use super::wire::{Payload, Reader};
use super::{MAGIC, ProtobufError, envelope};
use crate::schema::decode::is_left_out;
use crate::schema::quantity::Quantity;
use crate::schema::{Field, Form, Schema, Shape, TypeId, json, time};

/// Deeper messages than this are refused.
const DEEPEST: usize = 100;

/// The object of a message.
pub(super) fn message(schema: &Schema, id: TypeId, bytes: &[u8]) -> Result<Value, ProtobufError> {
    Decoder { schema, depth: 0 }.object(id, bytes)
}

struct Decoder<'a> {
    schema: &'a Schema,
    depth: usize,
}

impl Decoder<'_> {
    fn object(&mut self, id: TypeId, bytes: &[u8]) -> Result<Value, ProtobufError> {
        if self.depth >= DEEPEST {
            return Err(ProtobufError::TooDeep);
        }
        self.depth += 1;
        let mut map = Map::new();
        self.fields(id, 0, bytes, &mut map)?;
        let kind = self.schema.get(id);
        map.retain(|name, value| {
            !value.is_null()
                && kind
                    .field(name)
                    .is_none_or(|field| !is_left_out(field, value))
        });
        self.depth -= 1;
        Ok(Value::Object(map))
    }

    /// The fields of a message, or of the part of it that is embedded under a number.
    fn fields(
        &mut self,
        id: TypeId,
        embedded: u32,
        bytes: &[u8],
        map: &mut Map<String, Value>,
    ) -> Result<(), ProtobufError> {
        let schema = self.schema;
        let kind = schema.get(id);
        let mut reader = Reader(bytes);
        while let Some((number, payload)) = reader.next()? {
            let field = kind
                .fields
                .iter()
                .find(|field| field.number == number && field.wire.embedded == embedded);
            if let Some(field) = field {
                self.field(id, field, payload, map)
                    .map_err(|error| error.within(&field.name))?;
            } else if embedded == 0
                && kind
                    .fields
                    .iter()
                    .any(|field| field.wire.embedded == number)
            {
                self.fields(id, number, bytes_of(payload)?, map)?;
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        owner: TypeId,
        field: &Field,
        payload: Payload<'_>,
        map: &mut Map<String, Value>,
    ) -> Result<(), ProtobufError> {
        let form = field.wire.form;
        match (&field.shape, payload) {
            (Shape::List(item), Payload::Bytes(packed))
                if matches!(**item, Shape::Int32 | Shape::Int64) =>
            {
                let mut reader = Reader(packed);
                let list = entry(map, &field.name, Value::Array(Vec::new()));
                while !reader.0.is_empty() {
                    let number = Payload::Varint(reader.varint()?);
                    push(list, self.one(owner, item, form, number)?);
                }
            }
            (Shape::List(item), payload) if form != Form::Wrapped => {
                let value = self.one(owner, item, form, payload)?;
                push(entry(map, &field.name, Value::Array(Vec::new())), value);
            }
            (Shape::Map(item), payload) => {
                let (key, value) = self.entry(owner, item, form, bytes_of(payload)?)?;
                if let Value::Object(map) = entry(map, &field.name, Value::Object(Map::new())) {
                    map.insert(key, value);
                }
            }
            (shape, payload) => {
                let value = self.one(owner, shape, form, payload)?;
                map.insert(field.name.clone(), value);
            }
        }
        Ok(())
    }

    /// One entry of a map.
    fn entry(
        &mut self,
        owner: TypeId,
        item: &Shape,
        form: Form,
        bytes: &[u8],
    ) -> Result<(String, Value), ProtobufError> {
        let mut key = String::new();
        let mut value = None;
        let mut reader = Reader(bytes);
        while let Some((number, payload)) = reader.next()? {
            match number {
                1 => key = text(bytes_of(payload)?)?,
                2 => value = Some(self.one(owner, item, form, payload)?),
                _ => {}
            }
        }
        let value = match value {
            Some(value) => value,
            // Nothing was sent for an empty value.
            None => self.one(owner, item, form, Payload::Bytes(&[]))?,
        };
        // Amounts of resources have one form, as in JSON.
        let value = match (item, value.as_str().map(Quantity::parse)) {
            (Shape::Quantity, Some(Ok(amount))) => amount.rounded_to_milli().to_string().into(),
            _ => value,
        };
        Ok((key, value))
    }

    fn one(
        &mut self,
        owner: TypeId,
        shape: &Shape,
        form: Form,
        payload: Payload<'_>,
    ) -> Result<Value, ProtobufError> {
        Ok(match shape {
            Shape::Boolean => (varint(payload)? != 0).into(),
            // Ten bytes for a negative number; the low half is the number.
            #[expect(
                clippy::cast_possible_truncation,
                reason = "as every reader of protobuf does"
            )]
            Shape::Int32 => (varint(payload)? as u32).cast_signed().into(),
            Shape::Int64 => varint(payload)?.cast_signed().into(),
            Shape::Double => match payload {
                Payload::Fixed64(bits) => {
                    Number::from_f64(f64::from_bits(bits)).map_or(Value::Null, Value::Number)
                }
                _ => return Err(WIRE_TYPE),
            },
            Shape::String => text(bytes_of(payload)?)?.into(),
            Shape::Bytes => STANDARD.encode(bytes_of(payload)?).into(),
            Shape::Time => {
                instant(bytes_of(payload)?)?.map_or(Value::Null, |at| time::seconds(at).into())
            }
            Shape::MicroTime => {
                instant(bytes_of(payload)?)?.map_or(Value::Null, |at| time::micros(at).into())
            }
            Shape::Quantity => quantity(bytes_of(payload)?)?,
            Shape::IntOrString => int_or_string(bytes_of(payload)?)?,
            Shape::Object(id) => self.object(*id, bytes_of(payload)?)?,
            Shape::Any => self.any(owner, form, bytes_of(payload)?)?,
            Shape::List(item) => {
                let mut items = Vec::new();
                let mut reader = Reader(bytes_of(payload)?);
                while let Some((number, payload)) = reader.next()? {
                    if number == 1 {
                        items.push(self.one(owner, item, Form::Plain, payload)?);
                    }
                }
                items.into()
            }
            Shape::Map(_) => return Err(WIRE_TYPE),
        })
    }

    /// Raw JSON or a whole object, or a schema or something simpler inside a custom resource definition.
    fn any(&mut self, owner: TypeId, form: Form, bytes: &[u8]) -> Result<Value, ProtobufError> {
        let schema = match form {
            Form::Plain | Form::Wrapped => return self.raw(bytes),
            Form::SchemaOrBool => 2,
            Form::SchemaOrList | Form::SchemaOrStrings => 1,
        };
        let mut object = None;
        let mut allows = false;
        let mut items = Vec::new();
        let mut reader = Reader(bytes);
        while let Some((number, payload)) = reader.next()? {
            match (number, form) {
                (number, _) if number == schema => {
                    object = Some(self.object(owner, bytes_of(payload)?)?);
                }
                (1, Form::SchemaOrBool) => allows = varint(payload)? != 0,
                (2, Form::SchemaOrList) => items.push(self.object(owner, bytes_of(payload)?)?),
                (2, Form::SchemaOrStrings) => items.push(text(bytes_of(payload)?)?.into()),
                _ => {}
            }
        }
        Ok(match (object, form) {
            (Some(object), _) if items.is_empty() => object,
            (_, Form::SchemaOrBool) => allows.into(),
            _ => items.into(),
        })
    }

    fn raw(&mut self, bytes: &[u8]) -> Result<Value, ProtobufError> {
        let mut raw: &[u8] = &[];
        let mut reader = Reader(bytes);
        while let Some((number, payload)) = reader.next()? {
            if number == 1 {
                raw = bytes_of(payload)?;
            }
        }
        if raw.is_empty() {
            return Ok(Value::Null);
        }
        if raw.starts_with(MAGIC) {
            if self.depth >= DEEPEST {
                return Err(ProtobufError::TooDeep);
            }
            let envelope = envelope(raw)?;
            let id = envelope.find(self.schema)?;
            let object = self.object(id, envelope.raw)?;
            return Ok(envelope.named(object));
        }
        match json::read(raw, None) {
            Ok((value, _)) => Ok(value),
            Err(_) => Err(ProtobufError::Malformed("raw data is not JSON")),
        }
    }
}

const WIRE_TYPE: ProtobufError = ProtobufError::Malformed("wrong wire type");

fn entry<'a>(map: &'a mut Map<String, Value>, name: &str, empty: Value) -> &'a mut Value {
    map.entry(name).or_insert(empty)
}

fn push(list: &mut Value, value: Value) {
    if let Value::Array(items) = list {
        items.push(value);
    }
}

fn bytes_of(payload: Payload<'_>) -> Result<&[u8], ProtobufError> {
    match payload {
        Payload::Bytes(bytes) => Ok(bytes),
        _ => Err(WIRE_TYPE),
    }
}

/// A number; an empty value in a map is the zero that was not sent.
fn varint(payload: Payload<'_>) -> Result<u64, ProtobufError> {
    match payload {
        Payload::Varint(value) => Ok(value),
        Payload::Bytes([]) => Ok(0),
        _ => Err(WIRE_TYPE),
    }
}

pub(super) fn text(bytes: &[u8]) -> Result<String, ProtobufError> {
    String::from_utf8(bytes.to_vec())
        .map_err(|_| ProtobufError::Malformed("string field contains invalid UTF-8"))
}

/// Seconds and nanoseconds; nothing at all is no time.
fn instant(bytes: &[u8]) -> Result<Option<Timestamp>, ProtobufError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader(bytes);
    while let Some((number, payload)) = reader.next()? {
        match number {
            1 => seconds = varint(payload)?.cast_signed(),
            2 => nanos = varint(payload)?.cast_signed(),
            _ => {}
        }
    }
    let nanos = i32::try_from(nanos).map_err(|_| ProtobufError::Malformed("time out of range"))?;
    Timestamp::new(seconds, nanos)
        .map(Some)
        .map_err(|_| ProtobufError::Malformed("time out of range"))
}

fn quantity(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let mut amount = String::new();
    let mut reader = Reader(bytes);
    while let Some((number, payload)) = reader.next()? {
        if number == 1 {
            amount = text(bytes_of(payload)?)?;
        }
    }
    if amount.is_empty() {
        return Ok("0".into());
    }
    match Quantity::parse(&amount) {
        Ok(_) => Ok(amount.into()),
        Err(error) => Err(ProtobufError::Amount(error)),
    }
}

fn int_or_string(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let (mut is_text, mut integer, mut words) = (false, 0, String::new());
    let mut reader = Reader(bytes);
    while let Some((number, payload)) = reader.next()? {
        match number {
            1 => is_text = varint(payload)? == 1,
            2 => integer = varint(payload)?.cast_signed(),
            3 => words = text(bytes_of(payload)?)?,
            _ => {}
        }
    }
    Ok(if is_text {
        words.into()
    } else {
        integer.into()
    })
}
