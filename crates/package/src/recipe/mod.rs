//! Recipes: `[<variant>.]buildinfo.json` and what stands beside it, read into values that are known to
//! be good.

mod source;

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use transom_model::Os;
use transom_model::package::{GroupName, PackageName, UserName, Variant};

use crate::info::Requirement;

pub use source::Source;

/// How one variant of a package is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    pub name: PackageName,
    pub variant: Variant,
    /// The system that the package is for.
    pub os: Os,
    /// The package's folder in the source tree; relative paths in sources start here.
    pub folder: Utf8PathBuf,
    /// By the name of their folder below `/pkg/src`.
    pub sources: BTreeMap<String, Source>,
    pub requires: Vec<Requirement>,
    /// The image whose file system the build sees.
    pub docker: String,
    /// The script's file name in `folder`. None when `install` says all there is to do.
    pub script: Option<String>,
    /// The declarative way to build: rules in the order they are applied.
    pub install: Vec<InstallRule>,
    pub environment: BTreeMap<String, String>,
    pub state_directory: bool,
    pub username: Option<UserName>,
    pub group: Option<GroupName>,
    pub sysctl: BTreeMap<String, BTreeMap<String, String>>,
}

/// One rule of the `install` section: what is copied where.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstallRule {
    /// What to copy: a path or a glob below `/pkg` (`src/<source>/…`, `extra/…`), with `/` between names.
    pub copy: String,
    /// Where to, below the package. Ends with `/` for a folder; else the one file gets this very name.
    pub to: String,
    /// The mode of the files, in octal such as `"0755"`. What is not given stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// How many leading folders of a globbed path are dropped: what is left stands below `to`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub strip: u32,
    /// Paths or globs that are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}
