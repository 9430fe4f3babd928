//! Reading fields of JSON objects the way typed code would: what is absent is empty, zero or false.
//!
//! No function here fails or panics, whatever shape the value has.

use std::sync::LazyLock;

use serde_json::{Map, Value};

static NOTHING: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// Fields of a JSON object, by name.
pub(crate) trait Read {
    /// The text of a field, or nothing.
    fn text(&self, field: &str) -> &str;
    /// The text of a field that is there, even if it is empty.
    fn maybe_text(&self, field: &str) -> Option<&str>;
    /// The number of a field, or zero.
    fn number(&self, field: &str) -> i64;
    fn maybe_number(&self, field: &str) -> Option<i64>;
    /// Whether a field is true.
    fn flag(&self, field: &str) -> bool;
    fn maybe_flag(&self, field: &str) -> Option<bool>;
    /// The items of a list, or none.
    fn items(&self, field: &str) -> &[Value];
    /// The entries of a map or object, or none.
    fn entries(&self, field: &str) -> &Map<String, Value>;
    /// Whether a field is there and not null.
    fn has(&self, field: &str) -> bool;
    /// The texts of a list.
    fn texts(&self, field: &str) -> impl Iterator<Item = &str>;
}

impl Read for Value {
    fn text(&self, field: &str) -> &str {
        self[field].as_str().unwrap_or_default()
    }

    fn maybe_text(&self, field: &str) -> Option<&str> {
        self[field].as_str()
    }

    fn number(&self, field: &str) -> i64 {
        self[field].as_i64().unwrap_or_default()
    }

    fn maybe_number(&self, field: &str) -> Option<i64> {
        self[field].as_i64()
    }

    fn flag(&self, field: &str) -> bool {
        self[field].as_bool().unwrap_or_default()
    }

    fn maybe_flag(&self, field: &str) -> Option<bool> {
        self[field].as_bool()
    }

    fn items(&self, field: &str) -> &[Value] {
        self[field].as_array().map_or(&[], Vec::as_slice)
    }

    fn entries(&self, field: &str) -> &Map<String, Value> {
        self[field].as_object().unwrap_or(&NOTHING)
    }

    fn has(&self, field: &str) -> bool {
        !self[field].is_null()
    }

    fn texts(&self, field: &str) -> impl Iterator<Item = &str> {
        self.items(field).iter().filter_map(Value::as_str)
    }
}
