//! Objects as JSON values: their metadata, and the form in which they are stored.
//!
//! What is stored has no `kind`, no `apiVersion` and no `resourceVersion`: the first two follow from the key,
//! the third is the store's revision. `metadata` stands first, so that the revision is put in by copying
//! bytes, not by parsing.

use jiff::Timestamp;
use serde_json::{Map, Value};

/// How every stored object begins.
const HEAD: &[u8] = br#"{"metadata":{"#;

/// The object's metadata, made if it is not there.
pub(crate) fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    let map = as_map(object);
    as_map(
        map.entry("metadata")
            .or_insert_with(|| Value::Object(Map::new())),
    )
}

/// The value as a map; anything else is replaced by an empty one.
pub(crate) fn as_map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("made an object above"),
    }
}

/// A text in the metadata; empty if it is not there.
pub(crate) fn metadata_text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

pub(crate) fn name(object: &Value) -> &str {
    metadata_text(object, "name")
}

pub(crate) fn namespace(object: &Value) -> &str {
    metadata_text(object, "namespace")
}

pub(crate) fn uid(object: &Value) -> &str {
    metadata_text(object, "uid")
}

pub(crate) fn resource_version(object: &Value) -> &str {
    metadata_text(object, "resourceVersion")
}

pub(crate) fn is_being_deleted(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    object["metadata"]["finalizers"]
        .as_array()
        .map(|list| list.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

/// Sets or removes a field of the metadata.
pub(crate) fn set_metadata(object: &mut Value, field: &str, value: Option<Value>) {
    let metadata = metadata_mut(object);
    match value {
        Some(value) => metadata.insert(field.to_owned(), value),
        None => metadata.remove(field),
    };
}

/// A time as objects have it: RFC 3339 with whole seconds.
pub(crate) fn time(now: Timestamp) -> Value {
    Value::String(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// The bytes to store.
pub(crate) fn to_stored(object: &Value) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = Vec::with_capacity(1024);
    bytes.extend_from_slice(b"{\"metadata\":");
    let empty = Value::Object(Map::new());
    let metadata = object.get("metadata").unwrap_or(&empty);
    match metadata.as_object() {
        Some(map) if map.contains_key("resourceVersion") => {
            let mut map = map.clone();
            map.remove("resourceVersion");
            serde_json::to_writer(&mut bytes, &map)?;
        }
        _ => serde_json::to_writer(&mut bytes, metadata)?,
    }
    for (field, value) in object.as_object().into_iter().flatten() {
        if matches!(field.as_str(), "metadata" | "kind" | "apiVersion") {
            continue;
        }
        bytes.push(b',');
        serde_json::to_writer(&mut bytes, field)?;
        bytes.push(b':');
        serde_json::to_writer(&mut bytes, value)?;
    }
    bytes.push(b'}');
    Ok(bytes)
}

/// Stored bytes with the revision in their metadata: the object as an item of a list.
pub(crate) fn with_revision(stored: &[u8], revision: u64) -> Option<Vec<u8>> {
    let rest = stored.strip_prefix(HEAD)?;
    let mut bytes = Vec::with_capacity(stored.len() + 40);
    bytes.extend_from_slice(HEAD);
    bytes.extend_from_slice(b"\"resourceVersion\":\"");
    bytes.extend_from_slice(revision.to_string().as_bytes());
    bytes.push(b'"');
    if rest.first() != Some(&b'}') {
        bytes.push(b',');
    }
    bytes.extend_from_slice(rest);
    Some(bytes)
}

/// The same item at another revision: how a deleted object looks to those who watched it.
pub(crate) fn at_revision(item: &[u8], revision: u64) -> Option<Vec<u8>> {
    let rest = item
        .strip_prefix(HEAD)?
        .strip_prefix(b"\"resourceVersion\":\"")?;
    let end = rest.iter().position(|byte| *byte == b'"')?;
    let mut bytes = Vec::with_capacity(item.len() + 4);
    bytes.extend_from_slice(HEAD);
    bytes.extend_from_slice(b"\"resourceVersion\":\"");
    bytes.extend_from_slice(revision.to_string().as_bytes());
    bytes.extend_from_slice(&rest[end..]);
    Some(bytes)
}

/// The beginning of an object on its own, to stand before an item without its first brace.
pub(crate) fn type_head(api_version: &str, kind: &str) -> String {
    format!("{{\"kind\":{kind:?},\"apiVersion\":{api_version:?},")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_stored_object_comes_back_with_its_revision_and_without_its_type() {
        let object = json!({
            "kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"name": "a", "resourceVersion": "7"},
            "data": {"key": "value"},
        });
        let stored = to_stored(&object).unwrap();
        let read: Value = serde_json::from_slice(&with_revision(&stored, 12).unwrap()).unwrap();
        assert_eq!(
            read,
            json!({"metadata": {"name": "a", "resourceVersion": "12"}, "data": {"key": "value"}})
        );
    }

    #[test]
    fn an_object_without_metadata_still_gets_a_revision() {
        let stored = to_stored(&json!({"spec": 1})).unwrap();
        let read: Value = serde_json::from_slice(&with_revision(&stored, 3).unwrap()).unwrap();
        assert_eq!(
            read,
            json!({"metadata": {"resourceVersion": "3"}, "spec": 1})
        );
    }

    #[test]
    fn an_item_moves_to_another_revision() {
        let stored = to_stored(&json!({"metadata": {"name": "a"}})).unwrap();
        let item = with_revision(&stored, 9).unwrap();
        let moved: Value = serde_json::from_slice(&at_revision(&item, 123).unwrap()).unwrap();
        assert_eq!(
            moved,
            json!({"metadata": {"name": "a", "resourceVersion": "123"}})
        );
    }

    #[test]
    fn bytes_that_are_not_a_stored_object_are_refused() {
        assert_eq!(with_revision(b"[]", 1), None);
    }
}
