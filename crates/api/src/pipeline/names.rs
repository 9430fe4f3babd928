//! Names and places of objects.

use serde_json::Value;

use crate::{http::path::ResourcePath, object, registry::Kind, status::ApiError};

/// Letters and digits that cannot make words.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX: usize = 5;
/// Longer prefixes are cut, so that the suffix has room.
const LONGEST_PREFIX: usize = 63 - SUFFIX;

/// A name that begins with `prefix`.
pub(crate) fn generated_name(prefix: &str) -> String {
    let start: String = prefix.chars().take(LONGEST_PREFIX).collect();
    start + &suffix()
}

/// The random end of a name.
pub(crate) fn suffix() -> String {
    let size = ALPHABET.len() as u128;
    let mut random = uuid::Uuid::new_v4().as_u128();
    let mut text = String::with_capacity(SUFFIX);
    for _ in 0..SUFFIX {
        let index = usize::try_from(random % size).unwrap_or_default();
        random /= size;
        text.push(char::from(ALPHABET[index]));
    }
    text
}

/// Puts an object into the namespace of its path, and checks that both agree.
pub(crate) fn place(kind: &Kind, path: &ResourcePath, value: &mut Value) -> Result<(), ApiError> {
    let given = object::namespace(value).to_owned();
    if kind.namespaced {
        if path.namespace.is_empty() {
            return Err(ApiError::bad_request(
                "the server could not find the requested resource",
            ));
        }
        if !given.is_empty() && given != path.namespace {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        object::set_metadata(value, "namespace", Some(path.namespace.clone().into()));
    } else if given.is_empty() {
        object::set_metadata(value, "namespace", None);
    }
    let name = object::name(value);
    if !path.name.is_empty() && !name.is_empty() && name != path.name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            path.name
        )));
    }
    if !path.name.is_empty() {
        object::set_metadata(value, "name", Some(path.name.clone().into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_name_keeps_its_prefix_and_fits() {
        let name = generated_name("web-");
        assert!(name.starts_with("web-") && name.len() == 9, "{name}");
        assert_eq!(generated_name(&"a".repeat(100)).len(), 63);
        assert_ne!(generated_name("a"), generated_name("a"));
    }
}
