//! The hash that package ids are made of: SHA-1 over a canonical form of JSON values, the same as
//! pkgpanda's. Invariant: equal values have equal hashes, whatever order they were written in.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::Value;
use sha1::{Digest as _, Sha1};

use crate::json::{Json, Kind};

/// A value as the hash sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    Null,
    Bool(bool),
    /// As it was written: there is no limit to its digits.
    Number(String),
    Text(String),
    List(Vec<Item>),
    Object(BTreeMap<String, Item>),
}

/// Why a value has no hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HashError {
    #[error("null cannot be part of a package's id")]
    Null,
    #[error("{number} cannot be part of a package's id: only whole numbers can")]
    Fraction { number: String },
    #[error(
        "a list can be part of a package's id only if its items have an order: all texts, or all \
         whole numbers"
    )]
    Unordered,
}

/// The lower-case hexadecimal SHA-1 of some bytes.
pub fn sha1_hex(bytes: &[u8]) -> String {
    hex(&Sha1::digest(bytes))
}

/// Bytes as lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

/// Hashes a list of texts, such as package ids.
pub fn hash_texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut texts: Vec<&str> = texts.into_iter().collect();
    texts.sort_unstable();
    let parts: Vec<String> = texts.iter().map(|text| sha1_hex(text.as_bytes())).collect();
    sha1_hex(parts.join(",").as_bytes())
}

impl Item {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Hashes the value.
    pub fn hash(&self) -> Result<String, HashError> {
        match self {
            Self::Null => Err(HashError::Null),
            Self::Bool(true) => Ok(sha1_hex(b"True")),
            Self::Bool(false) => Ok(sha1_hex(b"False")),
            Self::Number(written) => Whole::read(written)
                .map(|whole| sha1_hex(whole.to_string().as_bytes()))
                .ok_or_else(|| HashError::Fraction {
                    number: written.clone(),
                }),
            Self::Text(text) => Ok(sha1_hex(text.as_bytes())),
            Self::List(items) => {
                let parts = sorted(items)?
                    .into_iter()
                    .map(Self::hash)
                    .collect::<Result<Vec<_>, _>>()?;
                Ok(sha1_hex(parts.join(",").as_bytes()))
            }
            // The map's order is that of UTF-8 bytes, which is Python's order of code points.
            Self::Object(fields) => {
                let parts = fields
                    .iter()
                    .map(|(key, value)| Ok(format!("{key}={}", value.hash()?)))
                    .collect::<Result<Vec<_>, HashError>>()?;
                Ok(sha1_hex(parts.join(",").as_bytes()))
            }
        }
    }
}

impl From<&Json> for Item {
    fn from(json: &Json) -> Self {
        match &json.kind {
            Kind::Null => Self::Null,
            Kind::Bool(truth) => Self::Bool(*truth),
            Kind::Number(written) => Self::Number(written.clone()),
            Kind::Text(text) => Self::Text(text.clone()),
            Kind::List(items) => Self::List(items.iter().map(Self::from).collect()),
            Kind::Object(fields) => Self::Object(
                fields
                    .iter()
                    .map(|(key, value)| (key.clone(), Self::from(value)))
                    .collect(),
            ),
        }
    }
}

impl From<&Item> for Value {
    /// For people to read. A number that no machine word holds becomes a text.
    fn from(item: &Item) -> Self {
        match item {
            Item::Null => Self::Null,
            Item::Bool(truth) => Self::Bool(*truth),
            Item::Number(written) => match serde_json::from_str(written) {
                Ok(Self::Number(number)) if number.to_string() == *written => Self::Number(number),
                _ => Self::String(written.clone()),
            },
            Item::Text(text) => Self::String(text.clone()),
            Item::List(items) => Self::Array(items.iter().map(Self::from).collect()),
            Item::Object(fields) => Self::Object(
                fields
                    .iter()
                    .map(|(key, value)| (key.clone(), Self::from(value)))
                    .collect(),
            ),
        }
    }
}

/// A whole number of any length.
struct Whole<'a> {
    negative: bool,
    /// Without leading zeros; `0` for zero.
    digits: &'a str,
}

impl<'a> Whole<'a> {
    fn read(written: &'a str) -> Option<Self> {
        let digits = written.strip_prefix('-').unwrap_or(written);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Some(Self {
            negative: written.starts_with('-') && digits != "0",
            digits,
        })
    }

    fn compare(&self, other: &Self) -> Ordering {
        let size = |whole: &Self| (whole.digits.len(), whole.digits.to_owned());
        match (self.negative, other.negative) {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => size(self).cmp(&size(other)),
            (true, true) => size(other).cmp(&size(self)),
        }
    }
}

impl std::fmt::Display for Whole<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        write!(formatter, "{sign}{}", self.digits)
    }
}

/// The items of a list by their own order, as Python's `sorted` has it.
fn sorted(items: &[Item]) -> Result<Vec<&Item>, HashError> {
    let mut refused = None;
    let mut sorted: Vec<&Item> = items.iter().collect();
    sorted.sort_by(|left, right| {
        compare(left, right).unwrap_or_else(|error| {
            refused = Some(error);
            Ordering::Equal
        })
    });
    match refused {
        None => Ok(sorted),
        Some(error) => Err(error),
    }
}

fn compare(left: &Item, right: &Item) -> Result<Ordering, HashError> {
    match (left, right) {
        (Item::Text(left), Item::Text(right)) => Ok(left.cmp(right)),
        (Item::List(left), Item::List(right)) => {
            for (left, right) in left.iter().zip(right) {
                // Equal items need no order.
                if left != right {
                    let order = compare(left, right)?;
                    if order != Ordering::Equal {
                        return Ok(order);
                    }
                }
            }
            Ok(left.len().cmp(&right.len()))
        }
        _ => match (rank(left), rank(right)) {
            (Some(left), Some(right)) => Ok(left.compare(&right)),
            _ => Err(HashError::Unordered),
        },
    }
}

/// Truth values count as 0 and 1 among numbers, and are hashed as words all the same.
fn rank(item: &Item) -> Option<Whole<'_>> {
    match item {
        Item::Bool(false) => Whole::read("0"),
        Item::Bool(true) => Whole::read("1"),
        Item::Number(written) => Whole::read(written),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(text: &str) -> Result<String, HashError> {
        Item::from(&Json::parse(text).unwrap()).hash()
    }

    #[test]
    fn the_open_examples_have_the_hashes_they_say() {
        let examples: Value =
            serde_json::from_str(include_str!("../tests/vectors/hash.json")).unwrap();
        let vectors = examples["vectors"].as_array().unwrap();
        assert!(vectors.len() > 20);
        for vector in vectors {
            let text = vector["value"].to_string();
            assert_eq!(
                hash(&text).unwrap(),
                vector["sha1"].as_str().unwrap(),
                "{text}"
            );
        }
    }

    #[test]
    fn what_the_original_cannot_hash_is_refused() {
        for (text, error) in [
            ("null", "null"),
            ("1.5", "whole numbers"),
            ("1.0", "whole numbers"),
            ("1e3", "whole numbers"),
            ("[{}, {}]", "order"),
            (r#"["a", 1]"#, "order"),
            (r#"[1, "a", 2]"#, "order"),
            (r#"{"a": null}"#, "null"),
            ("[1, 2.5]", "order"),
            ("[null]", "null"),
            ("[[1], [\"a\"]]", "order"),
        ] {
            let message = hash(text).unwrap_err().to_string();
            assert!(message.contains(error), "{text}: {message}");
        }
    }

    #[test]
    fn one_item_and_equal_items_need_no_order() {
        assert!(hash(r#"[{"a": "b"}]"#).is_ok());
        assert!(hash("[[{}], [{}]]").is_ok());
        assert_eq!(
            hash("[[2], [1, 5]]").unwrap(),
            hash("[[1, 5], [2]]").unwrap()
        );
    }

    #[test]
    fn numbers_have_no_limit_and_are_sorted_by_value() {
        assert_eq!(
            hash("123456789012345678901234567890").unwrap(),
            sha1_hex(b"123456789012345678901234567890")
        );
        assert_eq!(hash("-0").unwrap(), sha1_hex(b"0"));
        let parts = ["-20", "-3", "False", "1", "100000000000000000000"];
        let parts = parts.map(|part| sha1_hex(part.as_bytes())).join(",");
        assert_eq!(
            hash("[100000000000000000000, 1, -3, false, -20]").unwrap(),
            sha1_hex(parts.as_bytes())
        );
    }

    #[test]
    fn texts_are_hashed_the_same_as_values_and_as_texts() {
        assert_eq!(hash(r#"["b", "a"]"#).unwrap(), hash_texts(["a", "b"]));
    }
}
