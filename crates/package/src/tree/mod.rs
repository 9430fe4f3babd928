//! Trees: all packages of a source tree that belong together, with their ids, in build order. A folder is
//! read, a tree's members are found, their order, their ids: each step finds all that is wrong with it.
//! Invariant: the ids are those that pkgpanda gives, on every system.

mod extra;
mod folder;
mod graph;
mod identify;
mod members;
mod script;
mod surroundings;
mod treeinfo;

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8PathBuf;
use serde_json::Value;
use transom_model::package::{PackageId, PackageName, Variant};

use crate::fault::{Fault, Faults};
use crate::recipe::Recipe;

pub use extra::{ExtraError, hash_folders};
pub use folder::SourceFolder;
pub use graph::{Edge, Graph};
pub use surroundings::{Images, LocalImages, LocalSources, SourceFailure, Sources, Surroundings};

/// A package in one of its variants: what a recipe is found by.
pub type Key = (PackageName, Variant);

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

/// What came of resolving: the answer, and what is doubtful.
#[derive(Debug)]
pub struct Resolved<T> {
    pub outcome: Result<T, Vec<Fault>>,
    pub warnings: Vec<Fault>,
}

impl SourceFolder {
    /// Finds the members of the tree `variant`, and their ids.
    pub fn resolve(&self, variant: &Variant, surroundings: &Surroundings<'_>) -> Resolved<Tree> {
        let mut faults = self.faults().clone();
        let mut warnings = Faults::default();
        let members = treeinfo::read(self, variant, &mut faults)
            .and_then(|info| members::of_tree(self, &info, &mut faults, &mut warnings));
        let outcome = members
            .and_then(|members| {
                let packages = identify::identify(
                    self,
                    &members.order,
                    surroundings,
                    &mut faults,
                    &mut warnings,
                )?;
                Some((members, packages))
            })
            .map(|(members, packages)| self.tree(variant, &members, packages));
        Resolved {
            outcome: match outcome {
                Some(tree) if faults.is_empty() => Ok(tree),
                _ => Err(faults.into_sorted()),
            },
            warnings: warnings.into_sorted(),
        }
    }

    /// Identifies some packages, with all that they require, whether or not a tree has them.
    pub fn resolve_packages(
        &self,
        wanted: &[Key],
        surroundings: &Surroundings<'_>,
    ) -> Resolved<Vec<TreePackage>> {
        let mut faults = self.faults().clone();
        let mut warnings = Faults::default();
        let packages =
            members::of_packages(self, wanted, &mut faults, &mut warnings).and_then(|order| {
                identify::identify(self, &order, surroundings, &mut faults, &mut warnings)
            });
        Resolved {
            outcome: match packages {
                Some(packages) if faults.is_empty() => Ok(packages),
                _ => Err(faults.into_sorted()),
            },
            warnings: warnings.into_sorted(),
        }
    }

    /// What is wrong with any tree of this folder, this one left out.
    pub fn faults_of_other_trees(&self, variant: &Variant) -> Vec<Fault> {
        let mut faults = Faults::default();
        for other in self.trees().filter(|other| *other != variant) {
            if let Some(info) = treeinfo::read(self, other, &mut faults) {
                members::of_tree(self, &info, &mut faults, &mut Faults::default());
            }
        }
        faults.into_sorted()
    }

    fn tree(
        &self,
        variant: &Variant,
        members: &members::Members,
        packages: Vec<TreePackage>,
    ) -> Tree {
        let ids: BTreeMap<(&PackageName, &Variant), &PackageId> = packages
            .iter()
            .map(|package| {
                let recipe = &package.recipe;
                ((&recipe.name, &recipe.variant), &package.id)
            })
            .collect();
        let bootstrap_packages: BTreeSet<PackageId> = members
            .bootstrap
            .iter()
            .filter_map(|(name, variant)| ids.get(&(name, variant)).map(|id| (*id).clone()))
            .collect();
        Tree {
            folder: self.path().to_owned(),
            variant: variant.clone(),
            bootstrap: crate::hash::hash_texts(bootstrap_packages.iter().map(PackageId::as_str)),
            bootstrap_packages,
            packages,
        }
    }
}

#[cfg(test)]
mod tests;
