//! Objects in the protobuf form of Kubernetes: a magic prefix, an envelope with version and kind, and in it
//! the message of the object.
//!
//! Messages come from the same table as everything else. No bytes from outside can do more than fail.

mod decode;
mod encode;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod tests;
pub(crate) mod wire;

use std::convert::Infallible;

use serde_json::Value;

use crate::schema::quantity::QuantityError;
use crate::schema::{Schema, TypeId, builtin_name, json};
use crate::status::ApiError;
use wire::{Payload, Reader, Writer};

/// What every object starts with.
pub const MAGIC: &[u8] = b"k8s\0";
pub const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// For watches: events as [`watch_event`] writes them.
pub const STREAM_CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// Why bytes are not an object, or an object has no bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    NoMagic,
    #[error("proto: {0}")]
    Malformed(&'static str),
    #[error("exceeded max depth")]
    TooDeep,
    #[error("Object 'Kind' is missing in the protobuf envelope")]
    NoKind,
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    UnknownKind { api_version: String, kind: String },
    #[error(transparent)]
    Amount(QuantityError),
    #[error("{0}")]
    NotRepresentable(String),
}

impl ProtobufError {
    /// Says in which field an object cannot be written.
    fn within(self, field: &str) -> Self {
        match self {
            Self::NotRepresentable(what) => Self::NotRepresentable(format!("{field}: {what}")),
            other => other,
        }
    }
}

impl From<ProtobufError> for ApiError {
    fn from(error: ProtobufError) -> Self {
        match error {
            ProtobufError::NotRepresentable(_) => Self::internal(error.to_string()),
            _ => Self::bad_request(error.to_string()),
        }
    }
}

/// What stands around an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    pub api_version: String,
    pub kind: String,
    /// The object itself: a protobuf message, or what `content_type` says.
    pub raw: &'a [u8],
    pub content_type: String,
}

/// Opens the envelope.
pub fn envelope(bytes: &[u8]) -> Result<Envelope<'_>, ProtobufError> {
    let bytes = bytes.strip_prefix(MAGIC).ok_or(ProtobufError::NoMagic)?;
    let mut envelope = Envelope::default();
    let mut reader = Reader(bytes);
    while let Some((number, payload)) = reader.next()? {
        let Payload::Bytes(bytes) = payload else {
            continue;
        };
        match number {
            1 => {
                let mut reader = Reader(bytes);
                while let Some((number, payload)) = reader.next()? {
                    match (number, payload) {
                        (1, Payload::Bytes(bytes)) => envelope.api_version = decode::text(bytes)?,
                        (2, Payload::Bytes(bytes)) => envelope.kind = decode::text(bytes)?,
                        _ => {}
                    }
                }
            }
            2 => envelope.raw = bytes,
            4 => envelope.content_type = decode::text(bytes)?,
            _ => {}
        }
    }
    Ok(envelope)
}

impl Envelope<'_> {
    /// The type of the object, by its version and kind.
    fn find(&self, schema: &Schema) -> Result<TypeId, ProtobufError> {
        if self.kind.is_empty() {
            return Err(ProtobufError::NoKind);
        }
        let (group, version) = self
            .api_version
            .split_once('/')
            .unwrap_or(("", &self.api_version));
        schema
            .find(&builtin_name(group, version, &self.kind))
            .ok_or_else(|| ProtobufError::UnknownKind {
                api_version: self.api_version.clone(),
                kind: self.kind.clone(),
            })
    }

    /// The object with its version and kind, which are only in the envelope.
    fn named(&self, mut object: Value) -> Value {
        if let Value::Object(map) = &mut object {
            map.insert("apiVersion".to_owned(), self.api_version.clone().into());
            map.insert("kind".to_owned(), self.kind.clone().into());
        }
        object
    }
}

/// Reads an object of a built-in kind: its version, its kind, and itself.
pub fn decode(schema: &Schema, bytes: &[u8]) -> Result<(String, String, Value), ProtobufError> {
    let envelope = envelope(bytes)?;
    let object = if envelope.content_type == "application/json" {
        json::read(envelope.raw, None)
            .map_err(|_| ProtobufError::Malformed("raw data is not JSON"))?
            .0
    } else {
        decode::message(schema, envelope.find(schema)?, envelope.raw)?
    };
    let object = envelope.named(object);
    Ok((envelope.api_version, envelope.kind, object))
}

/// Writes an object with its envelope.
pub fn encode(
    schema: &Schema,
    id: TypeId,
    api_version: &str,
    kind: &str,
    value: &Value,
) -> Result<Vec<u8>, ProtobufError> {
    seal(api_version, kind, |writer| {
        encode::message(schema, id, value, writer)
    })
}

/// The message of an object alone, to be put into a list.
pub fn encode_message(
    schema: &Schema,
    id: TypeId,
    value: &Value,
) -> Result<Vec<u8>, ProtobufError> {
    let mut writer = Writer::default();
    encode::message(schema, id, value, &mut writer)?;
    Ok(writer.0)
}

/// Writes a list of objects whose messages are there already. All kinds of lists have the same form.
pub fn encode_list<'a>(
    schema: &Schema,
    api_version: &str,
    list_kind: &str,
    metadata: &Value,
    items: impl Iterator<Item = &'a [u8]>,
) -> Result<Vec<u8>, ProtobufError> {
    let list_meta = schema.find(&builtin_name("meta.k8s.io", "v1", "ListMeta"));
    seal(api_version, list_kind, |list| {
        if let Some(id) = list_meta {
            list.message(1, |writer| encode::message(schema, id, metadata, writer))?;
        }
        for item in items {
            list.bytes(2, item);
        }
        Ok(())
    })
}

/// Writes an event of a watch, with the length that tells events apart. `object` is with its envelope; the
/// event itself has none.
pub fn watch_event(kind: &str, object: &[u8]) -> Vec<u8> {
    let mut writer = Writer(vec![0; 4]);
    writer.bytes(1, kind.as_bytes());
    let Ok(()) = writer.message::<Infallible>(2, |extension| {
        extension.bytes(1, object);
        Ok(())
    });
    let length = u32::try_from(writer.0.len() - 4).unwrap_or(u32::MAX);
    writer.0[..4].copy_from_slice(&length.to_be_bytes());
    writer.0
}

fn seal(
    api_version: &str,
    kind: &str,
    message: impl FnOnce(&mut Writer) -> Result<(), ProtobufError>,
) -> Result<Vec<u8>, ProtobufError> {
    let mut writer = Writer(MAGIC.to_vec());
    writer.message::<ProtobufError>(1, |names| {
        names.bytes(1, api_version.as_bytes());
        names.bytes(2, kind.as_bytes());
        Ok(())
    })?;
    writer.message(2, message)?;
    writer.bytes(3, &[]);
    writer.bytes(4, &[]);
    Ok(writer.0)
}
