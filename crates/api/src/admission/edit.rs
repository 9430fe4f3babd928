//! Changing fields of JSON objects from plugins, without ever panicking.

use serde_json::{Map, Value};

/// Sets a field of an object that is one.
pub(super) fn put(object: &mut Value, field: &str, value: impl Into<Value>) {
    if let Value::Object(fields) = object {
        fields.insert(field.to_owned(), value.into());
    }
}

/// An object field, made if it is absent.
pub(super) fn within<'a>(object: &'a mut Value, field: &str) -> Option<&'a mut Map<String, Value>> {
    let fields = object.as_object_mut()?;
    let entry = fields.entry(field).or_insert(Value::Null);
    if entry.is_null() {
        *entry = Map::new().into();
    }
    entry.as_object_mut()
}

/// A list field, made if it is absent.
pub(super) fn list<'a>(object: &'a mut Value, field: &str) -> Option<&'a mut Vec<Value>> {
    let fields = object.as_object_mut()?;
    let entry = fields.entry(field).or_insert(Value::Null);
    if entry.is_null() {
        *entry = Value::Array(Vec::new());
    }
    entry.as_array_mut()
}

/// The items of a list that is there.
pub(super) fn items<'a>(object: &'a mut Value, field: &str) -> &'a mut [Value] {
    match object.get_mut(field) {
        Some(Value::Array(items)) => items,
        _ => &mut [],
    }
}
