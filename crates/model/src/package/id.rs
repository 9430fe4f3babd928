//! Package names, versions, and the id `name--version` that they make. Ids are compared as texts: a
//! version has no order that means newer or older.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{IdentifierError, is_made_of};

/// What separates name and version in an id.
const SEPARATOR: &str = "--";

/// A package's name, which is also the name of its folder in a source tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PackageName(String);

/// A package's version: the hash of all that went into it, or what its maker chose.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PackageVersion(String);

/// Names one package with one content, such as `etcd--0c15143d32850b279197a08ac3f306cb97fb83f4`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PackageId {
    text: String,
    /// Where the separator begins.
    split: usize,
}

impl PackageName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PackageVersion {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PackageId {
    pub fn new(name: &PackageName, version: &PackageVersion) -> Result<Self, IdentifierError> {
        // A name may hold `--` by itself, an id may not.
        format!("{name}{SEPARATOR}{version}").parse()
    }

    /// Whether `text` claims to be an id. It need not be a valid one.
    pub fn is_shape_of(text: &str) -> bool {
        text.matches(SEPARATOR).count() == 1
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn name(&self) -> PackageName {
        PackageName(self.text[..self.split].to_owned())
    }

    pub fn name_str(&self) -> &str {
        &self.text[..self.split]
    }

    pub fn version(&self) -> PackageVersion {
        PackageVersion(self.version_str().to_owned())
    }

    pub fn version_str(&self) -> &str {
        &self.text[self.split + SEPARATOR.len()..]
    }
}

impl PartialOrd for PackageId {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PackageId {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'@' | b'_' | b'+')
}

impl FromStr for PackageName {
    type Err = IdentifierError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if is_made_of(text, is_word, |byte| {
            is_word(byte) || matches!(byte, b'.' | b'-')
        }) {
            Ok(Self(text.to_owned()))
        } else {
            Err(IdentifierError::Name {
                text: text.to_owned(),
            })
        }
    }
}

impl FromStr for PackageVersion {
    type Err = IdentifierError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let good = |byte: u8| is_word(byte) || matches!(byte, b':' | b'.');
        if is_made_of(text, good, good) {
            Ok(Self(text.to_owned()))
        } else {
            Err(IdentifierError::Version {
                text: text.to_owned(),
            })
        }
    }
}

impl FromStr for PackageId {
    type Err = IdentifierError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split(SEPARATOR);
        let (Some(name), Some(version), None) = (parts.next(), parts.next(), parts.next()) else {
            return Err(IdentifierError::Id {
                text: text.to_owned(),
            });
        };
        name.parse::<PackageName>()?;
        version.parse::<PackageVersion>()?;
        Ok(Self {
            text: text.to_owned(),
            split: name.len(),
        })
    }
}

/// The conversions that every identifier has.
macro_rules! identifier {
    ($type:ident, $text:ident => $as_str:expr) => {
        impl fmt::Display for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(self.as_str())
            }
        }

        impl TryFrom<String> for $type {
            type Error = IdentifierError;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from($text: $type) -> Self {
                $as_str
            }
        }
    };
}

identifier!(PackageName, name => name.0);
identifier!(PackageVersion, version => version.0);
identifier!(PackageId, id => id.text);
