//! Reads a source tree's folder: which packages there are, in which variants, and the trees they form.
//! Recipes are all read, because a file that is no JSON is a mistake even in a package that no tree has.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use transom_model::package::{PackageName, Variant};

use super::surroundings::Sources;
use crate::fault::{Fault, Faults, Place};
use crate::json::Json;
use crate::recipe::{self, Origin, Reading, read_source};

/// A recipe or a tree is written by hand: more than this is a mistake.
const LIMIT: u64 = 4 << 20;

/// The end of the file name of a tree's description.
pub(super) const TREE_FILE: &str = "treeinfo.json";

/// Names the tree that lies below this one.
const UPSTREAM_FILE: &str = "upstream.json";

/// Where builds keep what can be made again.
const CACHE: &str = "cache";

/// A source tree, read.
#[derive(Debug)]
pub struct SourceFolder {
    path: Utf8PathBuf,
    packages: BTreeMap<String, PackageFolder>,
    trees: BTreeMap<Variant, Json>,
    faults: Faults,
}

/// One package's folder.
#[derive(Debug)]
pub(super) struct PackageFolder {
    /// Below the tree's folder.
    pub(super) path: Utf8PathBuf,
    pub(super) name: Result<PackageName, String>,
    pub(super) recipes: BTreeMap<Variant, Reading>,
}

impl SourceFolder {
    /// Reads the folder at `path`, and the upstream tree where it names one.
    pub fn read(path: &Utf8Path, sources: &dyn Sources) -> Self {
        let mut folder = Self {
            path: path.to_owned(),
            packages: BTreeMap::new(),
            trees: BTreeMap::new(),
            faults: Faults::default(),
        };
        folder.read_trees();
        folder.read_packages(Utf8Path::new(""));
        if let Some(upstream) = folder.upstream(sources) {
            folder.read_packages(&upstream);
        }
        folder
    }

    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// The variants for which there is a tree.
    pub fn trees(&self) -> impl Iterator<Item = &Variant> {
        self.trees.keys()
    }

    /// The packages, and the variants of each.
    pub fn packages(&self) -> impl Iterator<Item = (&str, Vec<&Variant>)> {
        self.packages
            .iter()
            .map(|(name, package)| (name.as_str(), package.recipes.keys().collect()))
    }

    pub(super) fn faults(&self) -> &Faults {
        &self.faults
    }

    pub(super) fn package(&self, name: &str) -> Option<&PackageFolder> {
        self.packages.get(name)
    }

    pub(super) fn tree_file(&self, variant: &Variant) -> Option<&Json> {
        self.trees.get(variant)
    }

    fn read_trees(&mut self) {
        let entries = match names(&self.path) {
            Ok(entries) => entries,
            Err(error) => {
                let fault = Fault::of_file(&self.path, error.to_string());
                self.faults.push(
                    fault.hint("`--packages` names the folder that holds the packages' folders"),
                );
                return;
            }
        };
        for (variant, file) in self.variants(Utf8Path::new(""), &entries, TREE_FILE) {
            if let Some(json) = self.json(&file) {
                self.trees.insert(variant, json);
            }
        }
    }

    fn read_packages(&mut self, below: &Utf8Path) {
        let Ok(entries) = names(&self.path.join(below)) else {
            if !below.as_str().is_empty() {
                let fault = Fault::of_file(below, "the upstream tree has no folder `packages`");
                self.faults.push(fault);
            }
            return;
        };
        for name in entries {
            let relative = join(below, &name);
            let path = self.path.join(&relative);
            // What is here already shadows the tree below.
            if self.packages.contains_key(&name) || !path.is_dir() {
                continue;
            }
            match names(&path) {
                Ok(entries) => self.read_package(name, &relative, &entries),
                Err(error) => self
                    .faults
                    .push(Fault::of_file(relative, error.to_string())),
            }
        }
    }

    fn read_package(&mut self, name: String, relative: &Utf8Path, entries: &[String]) {
        let parsed = name.parse::<PackageName>();
        let mut recipes = BTreeMap::new();
        for (variant, file) in self.variants(relative, entries, recipe::FILE_NAME) {
            let Some(json) = self.json(&file) else {
                continue;
            };
            if json.as_object().is_none() {
                self.faults
                    .push(Place::file(&file).wrong_type("an object", &json));
            }
            if let Ok(parsed) = &parsed {
                let reading = recipe::read_fields(
                    &json,
                    Origin {
                        file: &file,
                        folder: &self.path.join(relative),
                        name: parsed,
                        variant: &variant,
                    },
                );
                recipes.insert(variant, reading);
            } else {
                recipes.insert(variant, Reading::empty());
            }
        }
        if !recipes.is_empty() {
            let package = PackageFolder {
                path: relative.to_owned(),
                name: parsed.map_err(|error| error.to_string()),
                recipes,
            };
            self.packages.insert(name, package);
        }
    }

    /// The files whose names end with `ending`, by the variant that stands before it.
    fn variants(
        &mut self,
        relative: &Utf8Path,
        entries: &[String],
        ending: &str,
    ) -> Vec<(Variant, Utf8PathBuf)> {
        let mut found = Vec::new();
        for entry in entries {
            let Some(prefix) = entry.strip_suffix(ending) else {
                continue;
            };
            let file = join(relative, entry);
            let variant = match prefix.strip_suffix('.') {
                Some("") => Err(format!("the default variant's file is just `{ending}`")),
                Some("default") => Err(format!(
                    "`default` is what people call the variant without a name: its file is `{ending}`"
                )),
                Some(name) => Variant::from_prefix(name).map_err(|error| error.to_string()),
                None if prefix.is_empty() => Ok(Variant::DEFAULT),
                None => Err(format!(
                    "a `.` must stand between the variant and `{ending}`"
                )),
            };
            match variant {
                Ok(variant) => found.push((variant, file)),
                Err(message) => self
                    .faults
                    .push(Fault::of_file(file, message).hint("rename the file")),
            }
        }
        found
    }

    fn json(&mut self, file: &Utf8Path) -> Option<Json> {
        let text = match self.text(file) {
            Ok(text) => text,
            Err(message) => {
                self.faults.push(Fault::of_file(file, message));
                return None;
            }
        };
        match Json::parse(&text) {
            Ok(json) => Some(json),
            Err(error) => {
                self.faults.push(Fault::of_syntax(file, &error));
                None
            }
        }
    }

    fn text(&self, file: &Utf8Path) -> Result<String, String> {
        let path = self.path.join(file);
        let size = fs::metadata(&path)
            .map_err(|error| error.to_string())?
            .len();
        if size > LIMIT {
            return Err(format!("has {size} bytes; no more than {LIMIT} are read"));
        }
        let bytes = fs::read(&path).map_err(|error| error.to_string())?;
        String::from_utf8(bytes).map_err(|_| "is not UTF-8 text".to_owned())
    }

    /// Checks the upstream tree out and returns where its packages are, below our folder.
    fn upstream(&mut self, sources: &dyn Sources) -> Option<Utf8PathBuf> {
        let file = Utf8Path::new(UPSTREAM_FILE);
        if !self.path.join(file).exists() {
            return None;
        }
        let json = self.json(file)?;
        let mut ignored = Faults::default();
        let source = read_source(&Place::file(file), &json, &mut self.faults, &mut ignored)?;
        let cache = join(Utf8Path::new(CACHE), "upstream");
        let checkout = join(&cache, "checkout");
        let outcome = sources.check_out(
            &source,
            &self.path,
            &self.path.join(&cache),
            &self.path.join(&checkout),
        );
        if let Err(error) = outcome {
            let message = format!("the upstream tree could not be fetched: {error}");
            self.faults.push(Fault::of_file(file, message));
            return None;
        }
        let packages = join(&checkout, "packages");
        if self.path.join(&packages).join(UPSTREAM_FILE).exists() {
            let message = "the upstream tree has an upstream itself, which is not supported";
            self.faults.push(Fault::of_file(file, message));
            return None;
        }
        Some(packages)
    }
}

impl PackageFolder {
    /// The file of a variant's recipe, for messages.
    pub(super) fn recipe_file(&self, variant: &Variant) -> Utf8PathBuf {
        let name = format!("{}{}", variant.file_prefix(), recipe::FILE_NAME);
        join(&self.path, &name)
    }
}

/// A path below the tree's folder is written with `/` on every system, so that messages are the same.
fn join(folder: &Utf8Path, name: &str) -> Utf8PathBuf {
    if folder.as_str().is_empty() {
        name.into()
    } else {
        format!("{folder}/{name}").into()
    }
}

/// The names in a folder, sorted. Those that are not text cannot be ours.
fn names(folder: &Utf8Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        if let Ok(name) = entry?.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}
