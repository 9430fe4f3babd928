//! The document of version 2 as a protobuf message, gnostic's `openapi.v2.Document`, which kubectl asks for.
//!
//! Entries come one by one, each in a message of its own: whoever reads puts them together, as protobuf says.

use serde_json::{Map, Value};

use crate::protobuf::wire::Writer;

/// How a member of an object stands in its message.
enum Form {
    Text,
    Texts,
    Flag,
    Integer,
    Number,
    /// Anything, as YAML, of which JSON is a part.
    Any,
    Anys,
    Message(fn(&mut Writer, &Value)),
    Messages(fn(&mut Writer, &Value)),
}

/// The name of a member, the number of its field, and its form.
type Member = (&'static str, u32, Form);

const SCHEMA: &[Member] = &[
    ("$ref", 1, Form::Text),
    ("format", 2, Form::Text),
    ("title", 3, Form::Text),
    ("description", 4, Form::Text),
    ("default", 5, Form::Any),
    ("multipleOf", 6, Form::Number),
    ("maximum", 7, Form::Number),
    ("exclusiveMaximum", 8, Form::Flag),
    ("minimum", 9, Form::Number),
    ("exclusiveMinimum", 10, Form::Flag),
    ("maxLength", 11, Form::Integer),
    ("minLength", 12, Form::Integer),
    ("pattern", 13, Form::Text),
    ("maxItems", 14, Form::Integer),
    ("minItems", 15, Form::Integer),
    ("uniqueItems", 16, Form::Flag),
    ("maxProperties", 17, Form::Integer),
    ("minProperties", 18, Form::Integer),
    ("required", 19, Form::Texts),
    ("enum", 20, Form::Anys),
    ("additionalProperties", 21, Form::Message(additional)),
    ("type", 22, Form::Message(type_item)),
    ("items", 23, Form::Message(items)),
    ("allOf", 24, Form::Messages(schema)),
    ("properties", 25, Form::Message(properties)),
    ("example", 30, Form::Any),
];
const SCHEMA_EXTENSION: u32 = 31;

const PATH: &[Member] = &[
    ("get", 2, Form::Message(operation)),
    ("put", 3, Form::Message(operation)),
    ("post", 4, Form::Message(operation)),
    ("delete", 5, Form::Message(operation)),
    ("options", 6, Form::Message(operation)),
    ("head", 7, Form::Message(operation)),
    ("patch", 8, Form::Message(operation)),
    ("parameters", 9, Form::Messages(parameter)),
];
const PATH_EXTENSION: u32 = 10;

const OPERATION: &[Member] = &[
    ("tags", 1, Form::Texts),
    ("description", 3, Form::Text),
    ("operationId", 5, Form::Text),
    ("produces", 6, Form::Texts),
    ("consumes", 7, Form::Texts),
    ("parameters", 8, Form::Messages(parameter)),
    ("responses", 9, Form::Message(responses)),
];
const OPERATION_EXTENSION: u32 = 13;

const BODY_PARAMETER: &[Member] = &[
    ("description", 1, Form::Text),
    ("name", 2, Form::Text),
    ("in", 3, Form::Text),
    ("required", 4, Form::Flag),
    ("schema", 5, Form::Message(schema)),
];
const BODY_EXTENSION: u32 = 6;

const QUERY_PARAMETER: &[Member] = &[
    ("required", 1, Form::Flag),
    ("in", 2, Form::Text),
    ("description", 3, Form::Text),
    ("name", 4, Form::Text),
    ("type", 6, Form::Text),
    ("format", 7, Form::Text),
    ("uniqueItems", 20, Form::Flag),
];
const QUERY_EXTENSION: u32 = 23;

const PATH_PARAMETER: &[Member] = &[
    ("required", 1, Form::Flag),
    ("in", 2, Form::Text),
    ("description", 3, Form::Text),
    ("name", 4, Form::Text),
    ("type", 5, Form::Text),
    ("format", 6, Form::Text),
    ("uniqueItems", 19, Form::Flag),
];
const PATH_PARAMETER_EXTENSION: u32 = 22;

const RESPONSE: &[Member] = &[
    ("description", 1, Form::Text),
    ("schema", 2, Form::Message(schema_item)),
];
const RESPONSE_EXTENSION: u32 = 5;

/// The beginning of a document: what it is, and of whom.
pub(super) fn head(title: &str, version: &str) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.bytes(1, b"2.0");
    nested(&mut writer, 2, |info| {
        info.bytes(1, title.as_bytes());
        info.bytes(2, version.as_bytes());
    });
    writer.0
}

/// One path of a document.
pub(super) fn path_entry(name: &str, path: &Value) -> Vec<u8> {
    let mut writer = Writer::default();
    nested(&mut writer, 8, |paths| {
        named(paths, 2, name, |writer| {
            members(writer, path, PATH, PATH_EXTENSION);
        });
    });
    writer.0
}

/// One definition of a document.
pub(super) fn definition_entry(name: &str, definition: &Value) -> Vec<u8> {
    let mut writer = Writer::default();
    nested(&mut writer, 9, |definitions| {
        named(definitions, 1, name, |writer| schema(writer, definition));
    });
    writer.0
}

fn nested(writer: &mut Writer, number: u32, write: impl FnOnce(&mut Writer)) {
    let Ok(()) = writer.message::<std::convert::Infallible>(number, |inner| {
        write(inner);
        Ok(())
    });
}

/// An entry of a map: its name, and its value as a message.
fn named(writer: &mut Writer, number: u32, name: &str, write: impl FnOnce(&mut Writer)) {
    nested(writer, number, |entry| {
        entry.bytes(1, name.as_bytes());
        nested(entry, 2, write);
    });
}

fn any(writer: &mut Writer, number: u32, value: &Value) {
    nested(writer, number, |any| {
        any.bytes(2, value.to_string().as_bytes());
    });
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// An object as a message. What the message has no field for was never written by us.
fn members(writer: &mut Writer, value: &Value, known: &[Member], extension: u32) {
    for (name, item) in entries(value) {
        if name.starts_with("x-") {
            nested(writer, extension, |entry| {
                entry.bytes(1, name.as_bytes());
                any(entry, 2, item);
            });
        } else if let Some((_, number, form)) = known.iter().find(|(own, ..)| own == name) {
            member(writer, *number, form, item);
        }
    }
}

fn member(writer: &mut Writer, number: u32, form: &Form, item: &Value) {
    match form {
        Form::Text => {
            if let Some(text) = item.as_str() {
                writer.bytes(number, text.as_bytes());
            }
        }
        Form::Texts => {
            for text in list(item).iter().filter_map(Value::as_str) {
                writer.bytes(number, text.as_bytes());
            }
        }
        Form::Flag => writer.integer(number, i64::from(item == true)),
        Form::Integer => {
            if let Some(value) = item.as_i64() {
                writer.integer(number, value);
            }
        }
        Form::Number => {
            if let Some(value) = item.as_f64() {
                writer.double(number, value);
            }
        }
        Form::Any => any(writer, number, item),
        Form::Anys => list(item).iter().for_each(|item| any(writer, number, item)),
        Form::Message(write) => nested(writer, number, |inner| write(inner, item)),
        Form::Messages(write) => {
            for item in list(item) {
                nested(writer, number, |inner| write(inner, item));
            }
        }
    }
}

fn schema(writer: &mut Writer, value: &Value) {
    members(writer, value, SCHEMA, SCHEMA_EXTENSION);
}

fn schema_item(writer: &mut Writer, value: &Value) {
    nested(writer, 1, |inner| schema(inner, value));
}

fn additional(writer: &mut Writer, value: &Value) {
    match value {
        Value::Bool(allowed) => writer.integer(2, i64::from(*allowed)),
        value => schema_item(writer, value),
    }
}

fn type_item(writer: &mut Writer, value: &Value) {
    let form = if value.is_array() {
        Form::Texts
    } else {
        Form::Text
    };
    member(writer, 1, &form, value);
}

fn items(writer: &mut Writer, value: &Value) {
    let several = std::slice::from_ref(value);
    for item in value.as_array().map_or(several, Vec::as_slice) {
        schema_item(writer, item);
    }
}

fn properties(writer: &mut Writer, value: &Value) {
    for (name, property) in entries(value) {
        named(writer, 1, name, |inner| schema(inner, property));
    }
}

fn operation(writer: &mut Writer, value: &Value) {
    members(writer, value, OPERATION, OPERATION_EXTENSION);
}

/// A parameter is one of several messages, which says where it stands.
fn parameter(writer: &mut Writer, value: &Value) {
    nested(writer, 1, |parameter| match value["in"].as_str() {
        Some("body") => nested(parameter, 1, |inner| {
            members(inner, value, BODY_PARAMETER, BODY_EXTENSION);
        }),
        Some("path") => nested(parameter, 2, |plain| {
            nested(plain, 4, |inner| {
                members(inner, value, PATH_PARAMETER, PATH_PARAMETER_EXTENSION);
            });
        }),
        _ => nested(parameter, 2, |plain| {
            nested(plain, 3, |inner| {
                members(inner, value, QUERY_PARAMETER, QUERY_EXTENSION);
            });
        }),
    });
}

fn responses(writer: &mut Writer, value: &Value) {
    for (code, response) in entries(value) {
        named(writer, 1, code, |inner| {
            nested(inner, 1, |inner| {
                members(inner, response, RESPONSE, RESPONSE_EXTENSION);
            });
        });
    }
}
