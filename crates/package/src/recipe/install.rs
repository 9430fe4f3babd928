//! The `install` section of a recipe: a package that only arranges files needs no script, and so can be
//! built on any system for any system.

use serde::{Deserialize, Serialize};

/// One rule: what is copied where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstallRule {
    /// What to copy, below `/pkg` (`src/<source>/…`, `extra/…`), with `/` between names: a file, a folder
    /// with all below it, or a glob. A glob matches files; `*` stays within a folder, `**` does not. Of a
    /// match, what comes before the first wildcard's folder is not kept.
    pub copy: String,
    /// Where to, below the package. Ends with `/` for a folder; else the one file gets this very name.
    pub to: String,
    /// The mode of the files, in octal such as `"0755"`. What is not given stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// How many more leading folders are dropped: what is left of a match stands below `to`.
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
