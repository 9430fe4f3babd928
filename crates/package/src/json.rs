//! JSON that people write, read with the line of each value, so that every fault can say where it is.
//! Invariant: what is read here is strict JSON, and whole numbers keep all their digits.

use std::collections::BTreeMap;

use jsonc_parser::ast;
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

/// A value and the line on which it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Json {
    pub line: usize,
    pub kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Null,
    Bool(bool),
    /// As it was written.
    Number(String),
    Text(String),
    List(Vec<Json>),
    /// Where a key is given twice, the last value counts.
    Object(BTreeMap<String, Json>),
}

/// Why a text is not JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    pub line: usize,
    pub message: String,
}

impl Json {
    /// Reads a text. An empty one is an empty object, as pkgpanda has it.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        if text.trim().is_empty() {
            return Ok(Self {
                line: 1,
                kind: Kind::Object(BTreeMap::new()),
            });
        }
        // The strict reader decides what is JSON, and bounds how deep it may be nested.
        serde_json::from_str::<serde_json::Value>(text).map_err(|error| SyntaxError {
            line: error.line(),
            message: without_position(&error.to_string()),
        })?;
        let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default())
            .map_err(|error| SyntaxError {
                line: error.line_display(),
                message: error.kind().to_string(),
            })?;
        let lines = Lines::of(text);
        let Some(value) = parsed.value else {
            return Err(SyntaxError {
                line: 1,
                message: "there is no value".to_owned(),
            });
        };
        Ok(convert(&value, &lines))
    }

    pub fn as_text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_list(&self) -> Option<&[Self]> {
        match &self.kind {
            Kind::List(items) => Some(items),
            _ => None,
        }
    }

    pub fn as_object(&self) -> Option<&BTreeMap<String, Self>> {
        match &self.kind {
            Kind::Object(fields) => Some(fields),
            _ => None,
        }
    }

    /// What it is, for messages.
    pub fn describe(&self) -> &'static str {
        match &self.kind {
            Kind::Null => "null",
            Kind::Bool(_) => "a truth value",
            Kind::Number(_) => "a number",
            Kind::Text(_) => "a text",
            Kind::List(_) => "a list",
            Kind::Object(_) => "an object",
        }
    }
}

/// The offsets at which lines begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        Self(std::iter::once(0).chain(starts).collect())
    }

    /// Counted from one.
    fn at(&self, offset: usize) -> usize {
        self.0.partition_point(|start| *start <= offset)
    }
}

fn convert(value: &ast::Value<'_>, lines: &Lines) -> Json {
    let kind = match value {
        ast::Value::NullKeyword(_) => Kind::Null,
        ast::Value::BooleanLit(literal) => Kind::Bool(literal.value),
        ast::Value::NumberLit(literal) => Kind::Number(literal.value.to_owned()),
        ast::Value::StringLit(literal) => Kind::Text(literal.value.clone().into_owned()),
        ast::Value::Array(array) => Kind::List(
            array
                .elements
                .iter()
                .map(|element| convert(element, lines))
                .collect(),
        ),
        ast::Value::Object(object) => Kind::Object(
            object
                .properties
                .iter()
                .map(|property| {
                    let mut value = convert(&property.value, lines);
                    // Where the key stands is where people look.
                    value.line = lines.at(property.range().start);
                    (property.name.as_str().to_owned(), value)
                })
                .collect(),
        ),
    };
    Json {
        line: lines.at(value.range().start),
        kind,
    }
}

/// `expected value at line 1 column 5` → `expected value`: the line has its own field.
fn without_position(message: &str) -> String {
    match message.rsplit_once(" at line ") {
        Some((what, _)) => what.to_owned(),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_know_their_lines() {
        let json = Json::parse("{\n  \"a\": 1,\n  \"b\":\n    [true,\n\"x\"]\n}").unwrap();
        let fields = json.as_object().unwrap();
        assert_eq!(fields["a"].line, 2);
        assert_eq!(fields["b"].line, 3);
        assert_eq!(fields["b"].as_list().unwrap()[0].line, 4);
        assert_eq!(fields["b"].as_list().unwrap()[1].line, 5);
    }

    #[test]
    fn what_is_not_json_is_refused_with_its_line() {
        for (text, line) in [
            ("{\n\"a\": }", 2),
            ("{\"a\": 1,}", 1),
            ("{'a': 1}", 1),
            ("{a: 1}", 1),
            ("// note\n{}", 1),
            ("[1, 0x10]", 1),
            ("{\"a\": +1}", 1),
            ("{\"a\": NaN}", 1),
            ("{} {}", 1),
            ("{\"a\" 1}", 1),
            ("\"\u{1}\"", 1),
            ("\u{feff}{}", 1),
        ] {
            let error = Json::parse(text).unwrap_err();
            assert_eq!(error.line, line, "{text}: {error}");
            assert!(!error.message.contains("line"), "{error}");
        }
    }

    #[test]
    fn a_nest_without_end_is_refused() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(Json::parse(&deep).is_err());
    }

    #[test]
    fn an_empty_text_is_an_empty_object() {
        for text in ["", " \n\t"] {
            assert_eq!(Json::parse(text).unwrap().as_object().unwrap().len(), 0);
        }
    }

    #[test]
    fn the_last_of_two_equal_keys_counts() {
        let json = Json::parse(r#"{"a": 1, "a": "two"}"#).unwrap();
        assert_eq!(json.as_object().unwrap()["a"].as_text(), Some("two"));
    }

    #[test]
    fn big_numbers_keep_their_digits() {
        let json = Json::parse("123456789012345678901234567890").unwrap();
        assert_eq!(
            json.kind,
            Kind::Number("123456789012345678901234567890".to_owned())
        );
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in ".{0,200}") {
            let _ = Json::parse(&text);
        }

        #[test]
        fn json_of_any_shape_is_read(text in r#"[\[\]{}:,"a0-9. \n-]{0,60}"#) {
            let strict = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            let ours = Json::parse(&text).is_ok();
            proptest::prop_assert!(ours == strict || text.trim().is_empty());
        }
    }
}
