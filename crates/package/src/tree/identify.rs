//! Gives packages their ids: everything that goes into a package is put into one object, and its hash is
//! the version. Invariant: the object holds what pkgpanda puts into it, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;
use transom_model::package::{PackageId, PackageVersion};

use super::extra::{hash_file, hash_folders};
use super::folder::SourceFolder;
use super::surroundings::{Surroundings, stand_in_id};
use super::{Key, TreePackage, script};
use crate::fault::{Fault, Faults, sentence};
use crate::hash::Item;
use crate::recipe::{Recipe, Source};

/// The version of the algorithm, which is part of every id.
const ALGORITHM: &str = "0.2";

/// Identifies the packages of `order`, in which requirements stand first. None when one has no id.
pub(super) fn identify(
    folder: &SourceFolder,
    order: &[Key],
    surroundings: &Surroundings<'_>,
    faults: &mut Faults,
    warnings: &mut Faults,
) -> Option<Vec<TreePackage>> {
    let before = faults.iter().count();
    let recipes = recipes(folder, order, faults);
    if faults.iter().count() > before {
        return None;
    }
    let extras = extras(folder, &recipes, faults);
    let mut done: BTreeMap<Key, TreePackage> = BTreeMap::new();
    let mut packages = Vec::new();
    for (file, recipe) in recipes {
        let mut identifier = Identifier {
            file: &file,
            surroundings,
            faults,
            warnings,
        };
        let extra = extras.get(&recipe.folder).cloned();
        if let Some(package) = identifier.package(recipe, extra, &done) {
            let key = (package.recipe.name.clone(), package.recipe.variant.clone());
            done.insert(key, package.clone());
            packages.push(package);
        }
    }
    (faults.iter().count() == before).then_some(packages)
}

/// The recipes with their scripts found, and the file of each for messages.
fn recipes(
    folder: &SourceFolder,
    order: &[Key],
    faults: &mut Faults,
) -> Vec<(Utf8PathBuf, Recipe)> {
    let mut recipes = Vec::new();
    for (name, variant) in order {
        let Some(package) = folder.package(name.as_str()) else {
            continue;
        };
        let read = package.recipes.get(variant);
        let Some(mut recipe) = read.and_then(|reading| reading.recipe.clone()) else {
            continue;
        };
        let file = package.recipe_file(variant);
        script::choose(&mut recipe, &file, folder.path(), faults);
        recipes.push((file, recipe));
    }
    recipes
}

/// The hashes of all `extra` folders, by the package's folder.
fn extras(
    folder: &SourceFolder,
    recipes: &[(Utf8PathBuf, Recipe)],
    faults: &mut Faults,
) -> BTreeMap<Utf8PathBuf, String> {
    let packages: BTreeSet<&Utf8PathBuf> = recipes
        .iter()
        .map(|(_, recipe)| &recipe.folder)
        .filter(|path| path.join("extra").exists())
        .collect();
    let paths: Vec<Utf8PathBuf> = packages.iter().map(|path| path.join("extra")).collect();
    let mut hashes = BTreeMap::new();
    for (package, hash) in packages.into_iter().zip(hash_folders(&paths)) {
        match hash {
            Ok(hash) => {
                hashes.insert(package.clone(), hash);
            }
            Err(error) => {
                let path = package.join("extra");
                let shown = path.strip_prefix(folder.path()).unwrap_or(&path);
                faults.push(Fault::of_file(shown, sentence(&error)));
            }
        }
    }
    hashes
}

struct Identifier<'a> {
    file: &'a Utf8Path,
    surroundings: &'a Surroundings<'a>,
    faults: &'a mut Faults,
    warnings: &'a mut Faults,
}

impl Identifier<'_> {
    fn package(
        &mut self,
        recipe: Recipe,
        extra_source: Option<String>,
        done: &BTreeMap<Key, TreePackage>,
    ) -> Option<TreePackage> {
        let requires: Vec<&TreePackage> = recipe
            .requires
            .iter()
            .map(|required| done.get(&(required.name.clone(), required.variant.clone())))
            .collect::<Option<_>>()?;
        let direct: BTreeSet<PackageId> =
            requires.iter().map(|package| package.id.clone()).collect();
        let mut closure = direct.clone();
        for package in &requires {
            closure.extend(package.closure.iter().cloned());
        }
        let sources = self.sources(&recipe)?;
        let mut fields = recipe.hashed.clone();
        let mut field = |key: &str, value: Item| fields.insert(key.to_owned(), value);
        field("name", Item::text(recipe.name.as_str()));
        field("variant", Item::text(recipe.variant.as_str()));
        field("sources", sources);
        field("pkgpanda_version", Item::text(ALGORITHM));
        let ids = closure.iter().map(|id| Item::text(id.as_str())).collect();
        field("requires", Item::List(ids));
        if let Some(hash) = &extra_source {
            field("extra_source", Item::text(hash));
        }
        // Files that are only arranged do not depend on where that happens.
        if let Some(name) = &recipe.script {
            field("docker", Item::Text(self.image(&recipe)));
            match hash_file(&recipe.folder.join(name)) {
                Ok(hash) => drop(field("build", Item::Text(hash))),
                Err(error) => {
                    self.fault("build_script", sentence(&error));
                    return None;
                }
            }
        }
        let item = Item::Object(fields);
        let id = item
            .hash()
            .map_err(|error| error.to_string())
            .and_then(|hash| {
                let version: PackageVersion = hash.parse().map_err(|error| format!("{error}"))?;
                PackageId::new(&recipe.name, &version).map_err(|error| error.to_string())
            });
        let id = match id {
            Ok(id) => id,
            Err(message) => {
                self.fault("", message);
                return None;
            }
        };
        Some(TreePackage {
            id,
            requires: direct,
            closure,
            build_ids: Value::from(&item),
            extra_source,
            recipe,
        })
    }

    /// What each source is pinned to. Where it comes from and how is not part of the id.
    fn sources(&mut self, recipe: &Recipe) -> Option<Item> {
        let mut sources = BTreeMap::new();
        for (name, source) in &recipe.sources {
            let (key, value) = match source {
                Source::Git { commit, .. } => ("commit", commit.clone()),
                Source::GitLocal { path } => {
                    let repository = recipe.folder.join(path);
                    match self.surroundings.sources.commit(&repository) {
                        Ok(commit) => ("commit", commit),
                        Err(error) => {
                            let path = format!("sources.{name}.rel_path");
                            self.fault(&path, format!("{repository}: {}", sentence(&error)));
                            return None;
                        }
                    }
                }
                Source::Url { sha1, .. } | Source::UrlExtract { sha1, .. } => {
                    ("downloaded_sha1", sha1.clone())
                }
            };
            let pin = BTreeMap::from([(key.to_owned(), Item::Text(value))]);
            sources.insert(name.clone(), Item::Object(pin));
        }
        Some(Item::Object(sources))
    }

    fn image(&mut self, recipe: &Recipe) -> String {
        if let Some(id) = self.surroundings.images.id(&recipe.docker) {
            return id;
        }
        let message = format!(
            "no runtime on this machine knows the image `{}`: its name stands for its id",
            recipe.docker
        );
        let mut warning = Fault::of_file(self.file, message);
        "docker".clone_into(&mut warning.path);
        self.warnings.push(warning);
        stand_in_id(&recipe.docker)
    }

    fn fault(&mut self, path: &str, message: String) {
        let mut fault = Fault::of_file(self.file, message);
        path.clone_into(&mut fault.path);
        self.faults.push(fault);
    }
}
