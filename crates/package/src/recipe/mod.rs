//! Recipes: `[<variant>.]buildinfo.json` and what stands beside it, read into values that are known to
//! be good. Invariant: a recipe that was read without a fault has an id and can be built.

mod install;
mod read;
mod source;

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use transom_model::Os;
use transom_model::package::{GroupName, PackageName, UserName, Variant};

use crate::hash::Item;
use crate::info::Requirement;

pub use install::InstallRule;
pub(crate) use read::{Origin, read_fields};
pub use read::{Reading, Required, read_recipe};
pub use source::Source;
pub(crate) use source::read_source;

/// The image that packages are built in when they name none.
pub const DEFAULT_IMAGE: &str = "dcos/dcos-builder:dcos-builder_dockerdir-latest";

/// The end of a recipe's file name; the variant stands before it.
pub const FILE_NAME: &str = "buildinfo.json";

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
    /// The fields that enter the id as they were written.
    pub(crate) hashed: BTreeMap<String, Item>,
}
