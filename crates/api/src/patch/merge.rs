//! JSON merge patch, RFC 7386.
//!
//! The patched object is never deeper than the deeper of its two sources, so recursion ends where the parser's did.

use serde_json::{Map, Value};

/// Lays `patch` over `target`: `null` removes, objects merge, everything else replaces.
pub fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else {
        return;
    };
    for (name, value) in patch {
        if value.is_null() {
            fields.remove(&name);
        } else {
            merge(fields.entry(name).or_insert(Value::Null), value);
        }
    }
}
