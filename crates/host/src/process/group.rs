//! The name of a group of processes. It is chosen before the first process starts, so that it can be
//! written down first: a crash between the two loses nothing.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The environment variable that every process of a group carries.
pub const MARKER: &str = "TRANSOM_GROUP";

const LONGEST: usize = 64;

/// Letters, digits and hyphens, at most 64: fit for a variable, a cgroup and a job object's name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GroupId(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a process group: use 1 to {LONGEST} ASCII letters, digits and hyphens")]
pub struct InvalidGroupId {
    pub text: String,
}

impl GroupId {
    /// A name that no other group has or will have.
    pub fn unique() -> Self {
        Self(uuid::Uuid::new_v4().simple().to_string())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for GroupId {
    type Err = InvalidGroupId;

    fn from_str(text: &str) -> Result<Self, InvalidGroupId> {
        let fits = (1..=LONGEST).contains(&text.len());
        if fits && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidGroupId {
                text: text.to_owned(),
            })
        }
    }
}

impl TryFrom<String> for GroupId {
    type Error = InvalidGroupId;

    fn try_from(text: String) -> Result<Self, InvalidGroupId> {
        text.parse()
    }
}

impl From<GroupId> for String {
    fn from(group: GroupId) -> Self {
        group.0
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_name_cannot_leave_its_folder_or_its_namespace() {
        for bad in ["", "..", "a/b", "a\\b", "a b", "ä", &"x".repeat(65)] {
            assert!(bad.parse::<GroupId>().is_err(), "{bad:?} was accepted");
        }
        assert!(serde_json::from_str::<GroupId>("\"../x\"").is_err());
    }

    #[test]
    fn unique_groups_differ_and_survive_serialization() {
        let (first, second) = (GroupId::unique(), GroupId::unique());
        assert_ne!(first, second);
        let json = serde_json::to_string(&first).unwrap();
        assert_eq!(serde_json::from_str::<GroupId>(&json).unwrap(), first);
    }
}
