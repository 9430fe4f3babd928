//! Trees: all packages of a source tree that belong together, with their ids, in build order.

use std::collections::BTreeSet;

use camino::Utf8PathBuf;
use serde_json::Value;
use transom_model::package::{PackageId, Variant};

use crate::recipe::Recipe;

/// One variant of a source tree, resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    /// The folder that holds the packages' folders.
    pub folder: Utf8PathBuf,
    pub variant: Variant,
    /// In build order: whatever a package requires stands before it.
    pub packages: Vec<TreePackage>,
    /// The ids of the packages that a node needs to fetch the others.
    pub bootstrap_packages: BTreeSet<PackageId>,
    /// The hash of `bootstrap_packages`.
    pub bootstrap: String,
}

/// A recipe with its id, and all that the id was made of.
#[derive(Debug, Clone, PartialEq)]
pub struct TreePackage {
    pub recipe: Recipe,
    pub id: PackageId,
    /// The required packages themselves.
    pub requires: BTreeSet<PackageId>,
    /// All that they require in turn, too.
    pub closure: BTreeSet<PackageId>,
    /// The object whose hash is the version: `build_ids` in `buildinfo.full.json`.
    pub build_ids: Value,
    /// The hash of `extra/`, when there is one.
    pub extra_source: Option<String>,
}
