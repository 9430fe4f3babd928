//! Filling fields of JSON objects that have no value yet.
//!
//! A value that somebody chose is never replaced, and nothing here panics on an unexpected shape.

use serde_json::{Map, Value};

/// Fills what is absent. Null counts as absent, as it does in typed code.
pub(super) trait Fill {
    /// Sets a field that is absent.
    fn fill(&mut self, field: &str, default: impl Into<Value>);
    /// Sets a text that is absent or empty.
    fn fill_text(&mut self, field: &str, default: &str);
    /// Sets a number that is absent or zero.
    fn fill_number(&mut self, field: &str, default: i64);
    /// Changes an object field, which is made when it is absent.
    fn within(&mut self, field: &str, change: impl FnOnce(&mut Value));
    /// Changes an object field that is there.
    fn when_there(&mut self, field: &str, change: impl FnOnce(&mut Value));
    /// Changes each item of a list that is there.
    fn each(&mut self, field: &str, change: impl FnMut(&mut Value));
    /// Sets a field, whatever it was.
    fn put(&mut self, field: &str, value: impl Into<Value>);
}

impl Fill for Value {
    fn fill(&mut self, field: &str, default: impl Into<Value>) {
        if self[field].is_null() {
            self.put(field, default);
        }
    }

    fn fill_text(&mut self, field: &str, default: &str) {
        if self[field].as_str().is_none_or(str::is_empty) {
            self.put(field, default);
        }
    }

    fn fill_number(&mut self, field: &str, default: i64) {
        if self[field].as_i64().unwrap_or_default() == 0 {
            self.put(field, default);
        }
    }

    fn within(&mut self, field: &str, change: impl FnOnce(&mut Value)) {
        self.fill(field, Map::new());
        self.when_there(field, change);
    }

    fn when_there(&mut self, field: &str, change: impl FnOnce(&mut Value)) {
        if let Some(inner) = self.get_mut(field).filter(|inner| inner.is_object()) {
            change(inner);
        }
    }

    fn each(&mut self, field: &str, change: impl FnMut(&mut Value)) {
        if let Some(Value::Array(items)) = self.get_mut(field) {
            items.iter_mut().for_each(change);
        }
    }

    fn put(&mut self, field: &str, value: impl Into<Value>) {
        if let Value::Object(map) = self {
            map.insert(field.to_owned(), value.into());
        }
    }
}
