//! `manifest.json`: all that a generation consists of, as a value that can be compared. It is written
//! into the generation before anyone sees it, and never changed.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use transom_host::files::{FileError, Files, path};
use transom_model::os::Os;
use transom_model::package::{GroupName, PackageId, PackageName, UserName};

use super::NodeError;
use super::places::{MANIFEST, Places};

const FORMAT: u32 = 1;
/// A node with a million files has a manifest of this size.
const LONGEST: u64 = 128 << 20;

/// One generation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: u32,
    pub generation: u64,
    /// When it was made, by the clock of whoever asked for it.
    pub created: Timestamp,
    /// What was active when it was made.
    pub parent: Option<u64>,
    #[serde(flatten)]
    pub contents: Contents,
}

/// What a generation consists of: the same for the same packages in the same places.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    pub os: Os,
    pub root: Utf8PathBuf,
    pub repository: Utf8PathBuf,
    pub unit_dir: Utf8PathBuf,
    pub roles: Vec<String>,
    /// Sorted by name.
    pub packages: Vec<PackageContents>,
    /// Unit files by name.
    pub units: BTreeMap<String, Unit>,
    pub users: BTreeMap<UserName, Option<GroupName>>,
    /// Folders for state, by package, with their owner.
    pub state_directories: BTreeMap<PackageName, Option<UserName>>,
    /// Kernel settings by service.
    pub sysctl: BTreeMap<String, Map<String, Value>>,
}

/// One package of a generation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageContents {
    pub id: PackageId,
    pub environment: BTreeMap<String, String>,
    /// What the generation links to, as paths in the package, sorted.
    pub links: Vec<String>,
}

/// One unit file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    pub package: PackageId,
    /// Its path in the package.
    pub path: String,
    /// Of its content in the package.
    pub sha256: String,
}

impl Manifest {
    pub(super) fn new(
        generation: u64,
        created: Timestamp,
        parent: Option<u64>,
        contents: Contents,
    ) -> Self {
        Self {
            format: FORMAT,
            generation,
            created,
            parent,
            contents,
        }
    }

    /// The ids of all packages, sorted by name.
    pub fn ids(&self) -> Vec<PackageId> {
        self.contents.ids().cloned().collect()
    }

    pub(super) fn render(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut bytes = serde_json::to_vec(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}

impl Contents {
    pub fn ids(&self) -> impl Iterator<Item = &PackageId> {
        self.packages.iter().map(|package| &package.id)
    }

    /// Every link with its path in the generation, its package and its path there.
    pub fn links(&self) -> impl Iterator<Item = (String, &PackageId, &str)> {
        self.packages.iter().flat_map(|package| {
            package
                .links
                .iter()
                .map(|link| (place_of(link), &package.id, link.as_str()))
        })
    }
}

/// Where a file of a package goes: `bin_master/x` to `bin/x`. The first name is one of ours, so the
/// first `_` in it begins the role.
pub(super) fn place_of(link: &str) -> String {
    let (top, rest) = link.split_once('/').unwrap_or((link, ""));
    let top = top.split_once('_').map_or(top, |(top, _)| top);
    format!("{top}/{rest}")
}

/// Reads the manifest of a generation. `None`: there is no such generation.
pub(super) fn read(
    files: &dyn Files,
    places: &Places,
    generation: u64,
) -> Result<Option<Manifest>, NodeError> {
    let file = path::join(places.os, &places.generation(generation), MANIFEST);
    let bytes = match files.read(&file, LONGEST) {
        Ok(bytes) => bytes,
        Err(FileError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let damaged = |reason: String| NodeError::Damaged {
        path: file.clone(),
        reason,
    };
    let manifest: Manifest =
        serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    if manifest.format != FORMAT || manifest.generation != generation {
        return Err(damaged(format!(
            "it says format {} and generation {}",
            manifest.format, manifest.generation
        )));
    }
    Ok(Some(manifest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_role_go_where_the_others_go() {
        assert_eq!(place_of("bin/x"), "bin/x");
        assert_eq!(place_of("bin_master/a/b_c"), "bin/a/b_c");
        assert_eq!(place_of("etc_slave_public/x"), "etc/x");
    }
}
