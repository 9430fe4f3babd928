//! What a repository lists: archives and package lists. An entry is made only from a target whose name
//! is exactly the one that its content must have, so no name can lead anywhere else.

use std::collections::HashMap;

use serde_json::{Value, json};
use tough::TargetName;
use tough::schema::{Hashes, Target, Targets};
use transom_model::package::PackageId;
use transom_model::{Arch, Os};

use super::names::{self, Form};
use super::{PackageListId, RepositoryError};
use crate::hash::hex;

/// No archive is larger.
pub(super) const LARGEST_ARCHIVE: u64 = 64 << 30;
/// No package list is larger.
pub(super) const LARGEST_LIST: u64 = 16 << 20;

const PACKAGE: &str = "package";
const LIST: &str = "package-list";

/// Something that a repository lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    Package(PackageEntry),
    List(ListEntry),
}

/// An archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageEntry {
    pub id: PackageId,
    pub os: Os,
    /// Where it matters and is known.
    pub arch: Option<Arch>,
    pub form: Form,
    /// Nobody vouched for its origin when it was added.
    pub unsigned: bool,
    pub sha256: String,
    pub length: u64,
}

/// A package list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListEntry {
    pub id: PackageListId,
    pub unsigned: bool,
    pub sha256: String,
    pub length: u64,
}

impl Entry {
    /// Where it is, below the repository.
    pub fn path(&self) -> String {
        match self {
            Self::Package(package) => package.path(),
            Self::List(list) => names::package_list_path(&list.id),
        }
    }

    pub fn sha256(&self) -> &str {
        match self {
            Self::Package(package) => &package.sha256,
            Self::List(list) => &list.sha256,
        }
    }

    pub fn length(&self) -> u64 {
        match self {
            Self::Package(package) => package.length,
            Self::List(list) => list.length,
        }
    }

    pub(super) fn to_target(&self) -> Option<(TargetName, Target)> {
        let custom = match self {
            Self::Package(package) => json!({
                "kind": PACKAGE,
                "id": package.id,
                "os": package.os,
                "arch": package.arch,
                "unsigned": package.unsigned,
            }),
            Self::List(list) => json!({
                "kind": LIST,
                "id": list.id,
                "unsigned": list.unsigned,
            }),
        };
        let Value::Object(custom) = custom else {
            return None;
        };
        let target = Target {
            length: self.length(),
            hashes: Hashes {
                sha256: self.sha256().parse().ok()?,
                _extra: HashMap::new(),
            },
            custom: custom.into_iter().collect(),
            _extra: HashMap::new(),
        };
        Some((TargetName::new(self.path()).ok()?, target))
    }

    /// Reads one target. Kinds that are not ours are nothing to us.
    fn read(name: &TargetName, target: &Target) -> Result<Option<Self>, RepositoryError> {
        let refuse = |reason: String| RepositoryError::bad_target(name.raw(), reason);
        let field = |field: &str| target.custom.get(field).cloned().unwrap_or_default();
        let sha256 = hex(&target.hashes.sha256);
        if sha256.len() != 64 {
            return Err(refuse("its digest has the wrong length".to_owned()));
        }
        let unsigned = field("unsigned").as_bool().unwrap_or_default();
        let entry = match field("kind").as_str() {
            Some(PACKAGE) => {
                let (_, form) = Form::split(name.raw())
                    .ok_or_else(|| refuse("archives end in tar.zst, zip or tar.xz".to_owned()))?;
                Self::Package(PackageEntry {
                    id: parse(field("id")).map_err(refuse)?,
                    os: parse(field("os")).map_err(refuse)?,
                    arch: parse(field("arch")).map_err(refuse)?,
                    form,
                    unsigned,
                    sha256,
                    length: target.length,
                })
            }
            Some(LIST) => Self::List(ListEntry {
                id: parse(field("id")).map_err(refuse)?,
                unsigned,
                sha256,
                length: target.length,
            }),
            _ => return Ok(None),
        };
        let limit = match entry {
            Self::Package(_) => LARGEST_ARCHIVE,
            Self::List(_) => LARGEST_LIST,
        };
        if entry.length() > limit {
            return Err(refuse(format!("it has more than {limit} bytes")));
        }
        if name.raw() != entry.path() {
            return Err(refuse(format!("its place would be `{}`", entry.path())));
        }
        Ok(Some(entry))
    }
}

impl PackageEntry {
    pub fn path(&self) -> String {
        names::package_path(&self.id, self.form)
    }
}

fn parse<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// All entries, sorted by path.
pub(super) fn read_all(targets: &Targets) -> Result<Vec<Entry>, RepositoryError> {
    if targets
        .delegations
        .as_ref()
        .is_some_and(|delegations| !delegations.roles.is_empty())
    {
        return Err(RepositoryError::invalid(
            "targets.json",
            "it hands its authority to others, which is not supported",
        ));
    }
    let mut entries = Vec::new();
    for (name, target) in &targets.targets {
        entries.extend(Entry::read(name, target)?);
    }
    entries.sort_by_key(Entry::path);
    // On Windows these would be one file.
    for pair in entries.windows(2) {
        if let [left, right] = pair
            && left.path().to_lowercase() == right.path().to_lowercase()
        {
            return Err(RepositoryError::bad_target(
                &right.path(),
                format!("on Windows it is the same as `{}`", left.path()),
            ));
        }
    }
    Ok(entries)
}
