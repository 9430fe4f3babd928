//! JSON as pkgpanda writes it: two spaces, no space after a colon, keys sorted, nothing but ASCII. The
//! same value always gives the same bytes, so files of two generations can be compared.

use serde_json::Value;

/// The text of a value, without a line end behind it.
pub(super) fn render(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value, 0);
    text
}

fn write(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Array(items) => {
            let items = items.iter().map(|item| (None, item));
            write_all(out, ('[', ']'), items, depth);
        }
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            let fields = fields.into_iter().map(|(key, value)| (Some(key), value));
            write_all(out, ('{', '}'), fields, depth);
        }
        Value::String(text) => write_text(out, text),
        other => out.push_str(&other.to_string()),
    }
}

fn write_all<'a>(
    out: &mut String,
    (open, close): (char, char),
    items: impl Iterator<Item = (Option<&'a String>, &'a Value)>,
    depth: usize,
) {
    out.push(open);
    let mut is_empty = true;
    for (key, value) in items {
        if !is_empty {
            out.push(',');
        }
        is_empty = false;
        new_line(out, depth + 1);
        if let Some(key) = key {
            write_text(out, key);
            out.push(':');
        }
        write(out, value, depth + 1);
    }
    if !is_empty {
        new_line(out, depth);
    }
    out.push(close);
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

fn write_text(out: &mut String, text: &str) {
    // Everything but ASCII is escaped here; the rest is left to the library.
    let quoted = Value::from(text).to_string();
    for character in quoted.chars() {
        if character.is_ascii() {
            out.push(character);
        } else {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                out.push_str("\\u");
                out.push_str(&crate::hash::hex(&unit.to_be_bytes()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_as_the_original_does() {
        assert_eq!(render(&json!({"sysctl": {}})), "{\n  \"sysctl\":{}\n}");
        assert_eq!(render(&json!({"a": null})), "{\n  \"a\":null\n}");
        assert_eq!(
            render(&json!({"b": [1, "x"], "a": [], "ä": "😀\n\u{1f}\""})),
            "{\n  \"a\":[],\n  \"b\":[\n    1,\n    \"x\"\n  ],\n  \
             \"\\u00e4\":\"\\ud83d\\ude00\\n\\u001f\\\"\"\n}"
        );
    }
}
