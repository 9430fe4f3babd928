//! The hash that package ids are made of: SHA-1 over a canonical form of JSON values, the same as
//! pkgpanda's. Invariant: equal values have equal hashes, whatever order they were written in.

use serde_json::{Number, Value};
use sha1::{Digest as _, Sha1};

/// Why a value has no hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HashError {
    #[error("null cannot be part of a package's id")]
    Null,
    #[error("{number} cannot be part of a package's id: only whole numbers can")]
    Fraction { number: String },
    #[error(
        "a list can be part of a package's id only if all its items are texts, or all are whole numbers"
    )]
    MixedList,
}

/// A list's items, sorted by what they are and not by how they are written.
enum Sorted<'a> {
    Texts(Vec<&'a str>),
    /// Truth values count as 0 and 1 among numbers, and are hashed as words all the same.
    Numbers(Vec<(i128, &'a Value)>),
    /// Nothing to sort.
    One(&'a Value),
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

/// Hashes a value.
pub fn hash_value(value: &Value) -> Result<String, HashError> {
    match value {
        Value::Null => Err(HashError::Null),
        Value::Bool(true) => Ok(sha1_hex(b"True")),
        Value::Bool(false) => Ok(sha1_hex(b"False")),
        Value::Number(number) => whole(number).map(|text| sha1_hex(text.as_bytes())),
        Value::String(text) => Ok(sha1_hex(text.as_bytes())),
        Value::Array(items) => hash_list(items),
        Value::Object(fields) => {
            let mut keys: Vec<&String> = fields.keys().collect();
            // Python sorts by code points, which is the order of UTF-8 bytes.
            keys.sort();
            let parts = keys
                .into_iter()
                .map(|key| Ok(format!("{key}={}", hash_value(&fields[key])?)))
                .collect::<Result<Vec<_>, HashError>>()?;
            Ok(sha1_hex(parts.join(",").as_bytes()))
        }
    }
}

/// Hashes a list of texts, such as package ids.
pub fn hash_texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut texts: Vec<&str> = texts.into_iter().collect();
    texts.sort_unstable();
    let parts: Vec<String> = texts.iter().map(|text| sha1_hex(text.as_bytes())).collect();
    sha1_hex(parts.join(",").as_bytes())
}

fn hash_list(items: &[Value]) -> Result<String, HashError> {
    let parts = match sort(items)? {
        Sorted::Texts(texts) => return Ok(hash_texts(texts)),
        Sorted::Numbers(numbers) => numbers
            .into_iter()
            .map(|(_, value)| hash_value(value))
            .collect::<Result<Vec<_>, _>>()?,
        Sorted::One(value) => vec![hash_value(value)?],
    };
    Ok(sha1_hex(parts.join(",").as_bytes()))
}

fn sort(items: &[Value]) -> Result<Sorted<'_>, HashError> {
    if let [one] = items {
        return Ok(Sorted::One(one));
    }
    if let Some(texts) = items.iter().map(Value::as_str).collect::<Option<Vec<_>>>() {
        return Ok(Sorted::Texts(texts));
    }
    let mut numbers = items
        .iter()
        .map(|item| Some((rank(item)?, item)))
        .collect::<Option<Vec<_>>>()
        .ok_or(HashError::MixedList)?;
    numbers.sort_by_key(|(rank, _)| *rank);
    Ok(Sorted::Numbers(numbers))
}

fn rank(value: &Value) -> Option<i128> {
    match value {
        Value::Bool(truth) => Some(i128::from(*truth)),
        Value::Number(number) => whole(number).ok()?.parse().ok(),
        _ => None,
    }
}

/// A whole number in decimal, as Python writes it.
fn whole(number: &Number) -> Result<String, HashError> {
    if number.is_f64() {
        return Err(HashError::Fraction {
            number: number.to_string(),
        });
    }
    Ok(number.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_open_examples_have_the_hashes_they_say() {
        let examples: Value =
            serde_json::from_str(include_str!("../tests/vectors/hash.json")).unwrap();
        let vectors = examples["vectors"].as_array().unwrap();
        assert!(vectors.len() > 20);
        for vector in vectors {
            assert_eq!(
                hash_value(&vector["value"]).unwrap(),
                vector["sha1"].as_str().unwrap(),
                "{}",
                vector["value"]
            );
        }
    }

    #[test]
    fn what_the_original_cannot_hash_is_refused() {
        for (value, error) in [
            (json!(null), "null"),
            (json!(1.5), "whole numbers"),
            (json!(1.0), "whole numbers"),
            (json!([{}, {}]), "list"),
            (json!(["a", 1]), "list"),
            (json!([[], []]), "list"),
            (json!({"a": null}), "null"),
            (json!([1, 2.5]), "list"),
        ] {
            let message = hash_value(&value).unwrap_err().to_string();
            assert!(message.contains(error), "{value}: {message}");
        }
    }

    #[test]
    fn a_list_of_one_needs_no_order() {
        assert!(hash_value(&json!([{"a": "b"}])).is_ok());
        assert!(hash_value(&json!([null])).is_err());
    }

    #[test]
    fn texts_are_hashed_the_same_as_values_and_as_texts() {
        assert_eq!(
            hash_value(&json!(["b", "a"])).unwrap(),
            hash_texts(["a", "b"])
        );
    }
}
