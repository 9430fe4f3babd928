//! Answers in protobuf: which type an object has, and lists of it.

use serde_json::Value;

use crate::{
    protobuf,
    schema::{self, builtin_name},
    status::ApiError,
};

fn split(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// An object or a list of objects, with its envelope.
pub(super) fn encode(value: &Value) -> Result<Vec<u8>, ApiError> {
    let schema = schema::builtin();
    let api_version = value["apiVersion"].as_str().unwrap_or_default();
    let kind = value["kind"].as_str().unwrap_or_default();
    let (group, version) = split(api_version);
    let item_kind = kind.strip_suffix("List").unwrap_or(kind);
    let id = schema
        .find(&builtin_name(group, version, item_kind))
        .ok_or_else(|| {
            ApiError::new(
                406,
                "NotAcceptable",
                format!("{kind} of {api_version} has no protobuf form"),
            )
        })?;
    let Some(items) = value.get("items").and_then(Value::as_array) else {
        return Ok(protobuf::encode(schema, id, api_version, kind, value)?);
    };
    let messages = items
        .iter()
        .map(|item| protobuf::encode_message(schema, id, item))
        .collect::<Result<Vec<_>, _>>()?;
    let messages = messages.iter().map(Vec::as_slice);
    Ok(protobuf::encode_list(
        schema,
        api_version,
        kind,
        &value["metadata"],
        messages,
    )?)
}

/// An event of a watch.
pub(super) fn event(kind: &str, value: &Value) -> Result<Vec<u8>, ApiError> {
    Ok(protobuf::watch_event(kind, &encode(value)?))
}
