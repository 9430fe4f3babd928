//! The accounts that packages may ask for. User names have a prefix of their own, so that no package
//! can take over an account of the system or of a person.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{IdentifierError, is_made_of};

/// Every user name of a package begins so.
const USER_PREFIX: &str = "dcos_";

/// The account that a package's services run as.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UserName(String);

/// The group of that account.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GroupName(String);

impl UserName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl GroupName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for UserName {
    type Err = IdentifierError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        match text.strip_prefix(USER_PREFIX) {
            Some(rest) if is_made_of(rest, good, good) => Ok(Self(text.to_owned())),
            _ => Err(IdentifierError::User {
                text: text.to_owned(),
            }),
        }
    }
}

impl FromStr for GroupName {
    type Err = IdentifierError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let first = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        if is_made_of(text, first, |byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-')
        }) {
            Ok(Self(text.to_owned()))
        } else {
            Err(IdentifierError::Group {
                text: text.to_owned(),
            })
        }
    }
}

/// The conversions that both have.
macro_rules! account {
    ($type:ident) => {
        impl fmt::Display for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(&self.0)
            }
        }

        impl TryFrom<String> for $type {
            type Error = IdentifierError;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(account: $type) -> Self {
                account.0
            }
        }
    };
}

account!(UserName);
account!(GroupName);
