//! Rows as kubectl prints them.

mod custom;
mod kinds;
mod pods;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{cells, columns};

fn now() -> Timestamp {
    "2026-11-16T12:00:00Z".parse().unwrap()
}

/// The cells of a kind in one line, with the heads of the columns checked to be as many.
fn line(group: &str, kind: &str, mut object: Value) -> String {
    object["metadata"]["creationTimestamp"] = json!("2026-11-16T11:50:00Z");
    if object["metadata"]["name"].is_null() {
        object["metadata"]["name"] = json!("x");
    }
    let cells = cells(group, kind, &object, now());
    assert_eq!(cells.len(), columns(group, kind).len(), "{group}/{kind}");
    let texts: Vec<String> = cells
        .iter()
        .map(|cell| match cell {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
        .collect();
    texts.join(" | ")
}

fn heads(group: &str, kind: &str) -> String {
    let heads: Vec<String> = columns(group, kind)
        .iter()
        .map(|column| {
            format!(
                "{}{}",
                column.name,
                if column.priority > 0 { "*" } else { "" }
            )
        })
        .collect();
    heads.join(" | ")
}
