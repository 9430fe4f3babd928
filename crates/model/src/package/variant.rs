//! Variants: one package, built in several ways. The default variant has no name in files and is
//! called `default` by people.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{IdentifierError, is_made_of};

/// What people call the default variant.
const DEFAULT: &str = "default";

/// Which way a package or a tree is built.
///
/// The order puts named variants before the default, as the build order of trees needs it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Variant(Option<String>);

impl Variant {
    pub const DEFAULT: Self = Self(None);

    /// Reads what stands before the file name, without its dot: empty for the default.
    pub fn from_prefix(prefix: &str) -> Result<Self, IdentifierError> {
        if prefix.is_empty() {
            Ok(Self::DEFAULT)
        } else {
            check(prefix).map(|()| Self(Some(prefix.to_owned())))
        }
    }

    pub fn is_default(&self) -> bool {
        self.0.is_none()
    }

    /// The name in files and hashes: empty for the default.
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// What stands before a file's name: nothing, or the variant and a dot.
    pub fn file_prefix(&self) -> String {
        match &self.0 {
            None => String::new(),
            Some(name) => format!("{name}."),
        }
    }
}

fn check(text: &str) -> Result<(), IdentifierError> {
    let first = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'@' | b'_' | b'+');
    if is_made_of(text, first, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'@' | b'_' | b'+' | b'.' | b'-')
    }) {
        Ok(())
    } else {
        Err(IdentifierError::Variant {
            text: text.to_owned(),
        })
    }
}

impl PartialOrd for Variant {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Variant {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |variant: &Self| (variant.is_default(), variant.0.clone());
        key(self).cmp(&key(other))
    }
}

impl FromStr for Variant {
    type Err = IdentifierError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == DEFAULT {
            Ok(Self::DEFAULT)
        } else {
            Self::from_prefix(text)
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.0.as_deref().unwrap_or(DEFAULT))
    }
}

impl TryFrom<String> for Variant {
    type Error = IdentifierError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Variant> for String {
    fn from(variant: Variant) -> Self {
        variant.to_string()
    }
}
