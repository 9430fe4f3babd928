//! Reading an object for a row. What is missing or of the wrong type reads as empty, as upstream's zero values do.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::age;

/// An object that is printed now.
pub(super) struct Row<'a> {
    pub(super) object: &'a Value,
    pub(super) now: Timestamp,
}

impl<'a> Row<'a> {
    /// What is at `/spec/nodeName`. The paths here are plain, so nothing is unescaped: lists of thousands of
    /// objects are printed this way.
    pub(super) fn get(&self, pointer: &str) -> Option<&'a Value> {
        pointer
            .split('/')
            .skip(1)
            .try_fold(self.object, |value, name| value.get(name))
            .filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, pointer: &str) -> &'a str {
        self.get(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// The text, or something in its place.
    pub(super) fn text_or(&self, pointer: &str, otherwise: &'a str) -> &'a str {
        match self.text(pointer) {
            "" => otherwise,
            text => text,
        }
    }

    pub(super) fn number(&self, pointer: &str) -> i64 {
        self.get(pointer)
            .and_then(Value::as_i64)
            .unwrap_or_default()
    }

    pub(super) fn list(&self, pointer: &str) -> &'a [Value] {
        self.get(pointer)
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }

    pub(super) fn length(&self, pointer: &str) -> usize {
        match self.get(pointer) {
            Some(Value::Array(items)) => items.len(),
            Some(Value::Object(fields)) => fields.len(),
            _ => 0,
        }
    }

    pub(super) fn flag(&self, pointer: &str, default: bool) -> bool {
        self.get(pointer)
            .and_then(Value::as_bool)
            .unwrap_or(default)
    }

    pub(super) fn name(&self) -> Value {
        self.text("/metadata/name").into()
    }

    pub(super) fn age(&self) -> Value {
        self.since("/metadata/creationTimestamp").into()
    }

    pub(super) fn since(&self, pointer: &str) -> String {
        age::since(self.text(pointer), self.now)
    }

    pub(super) fn is_deleted(&self) -> bool {
        self.get("/metadata/deletionTimestamp").is_some()
    }

    pub(super) fn annotation(&self, name: &str) -> Option<&'a str> {
        self.get("/metadata/annotations")?.get(name)?.as_str()
    }

    /// `a=1,b=2`, or `<none>`.
    pub(super) fn labels(&self, pointer: &str) -> String {
        labels(self.get(pointer).and_then(Value::as_object))
    }

    /// A label selector in one line, or `<none>` if it selects by nothing.
    pub(super) fn selector(&self, pointer: &str) -> String {
        let text = self.get(pointer).map(selector).unwrap_or_default();
        if text.is_empty() {
            "<none>".to_owned()
        } else {
            text
        }
    }

    /// The names and the images of the containers of a template.
    pub(super) fn containers(&self, pointer: &str) -> [Value; 2] {
        let all = |field: &str| -> Value {
            let texts: Vec<&str> = self
                .list(pointer)
                .iter()
                .map(|c| text_of(c, field))
                .collect();
            texts.join(",").into()
        };
        [all("name"), all("image")]
    }

    /// The status of a condition, if there is that condition.
    pub(super) fn condition(&self, kind: &str) -> Option<&'a str> {
        self.list("/status/conditions")
            .iter()
            .find(|condition| text_of(condition, "type") == kind)
            .map(|condition| text_of(condition, "status"))
    }
}

/// A field of a value, or nothing.
pub(super) fn text_of<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// A number or a text as it is printed.
pub(super) fn plain(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

fn labels(labels: Option<&Map<String, Value>>) -> String {
    let mut pairs: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(name, value)| format!("{name}={}", plain(Some(value))))
        .collect();
    if pairs.is_empty() {
        return "<none>".to_owned();
    }
    pairs.sort();
    pairs.join(",")
}

/// A label selector in one line; nothing if it has no requirement.
pub(super) fn selector(selector: &Value) -> String {
    let mut requirements: Vec<(String, String)> = Vec::new();
    if let Some(labels) = selector.get("matchLabels").and_then(Value::as_object) {
        for (key, value) in labels {
            requirements.push((key.clone(), format!("{key}={}", plain(Some(value)))));
        }
    }
    for expression in selector
        .get("matchExpressions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let key = text_of(expression, "key");
        let mut values: Vec<String> = expression
            .get("values")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|value| plain(Some(value)))
            .collect();
        values.sort();
        let values = values.join(",");
        let text = match text_of(expression, "operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return "<error>".to_owned(),
        };
        requirements.push((key.to_owned(), text));
    }
    requirements.sort_by(|a, b| a.0.cmp(&b.0));
    let texts: Vec<String> = requirements.into_iter().map(|(_, text)| text).collect();
    texts.join(",")
}

/// The first few of a list, and how many more there are.
pub(super) fn some_of(list: &[String], shown: usize, separator: &str) -> String {
    let text = list[..list.len().min(shown)].join(separator);
    if list.len() > shown {
        format!("{text} + {} more...", list.len() - shown)
    } else {
        text
    }
}
