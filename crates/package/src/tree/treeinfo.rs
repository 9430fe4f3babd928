//! Reads `[<variant>.]treeinfo.json`: which packages a tree has, and in which variants.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8PathBuf;
use transom_model::package::{PackageName, Variant};

use super::folder::{SourceFolder, TREE_FILE};
use crate::fault::{Fault, Faults, Place, nearest};
use crate::info::read_variant;
use crate::json::Json;

const EXCLUDE: &str = "exclude";
const CORE: &str = "core_package_list";
const BOOTSTRAP: &str = "bootstrap_package_list";
const VARIANTS: &str = "variants";
const KEYS: [&str; 4] = [EXCLUDE, VARIANTS, CORE, BOOTSTRAP];

/// What a tree's file says.
#[derive(Debug)]
pub(super) struct TreeInfo {
    /// The file, for messages.
    pub(super) file: Utf8PathBuf,
    pub(super) exclude: BTreeSet<PackageName>,
    pub(super) variants: BTreeMap<String, Variant>,
    /// Empty for all that are not excluded.
    pub(super) core: Vec<Listed>,
    /// Empty for all.
    pub(super) bootstrap: Vec<Listed>,
}

/// A package's name in one of the lists, and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    pub(super) name: PackageName,
    pub(super) fault: Fault,
}

impl TreeInfo {
    /// The variant that the tree has of a package.
    pub(super) fn variant_of(&self, name: &PackageName) -> Variant {
        self.variants
            .get(name.as_str())
            .cloned()
            .unwrap_or_default()
    }
}

/// Reads the file of the tree `variant`. None when there is none, or it says nothing that can be used.
pub(super) fn read(
    folder: &SourceFolder,
    variant: &Variant,
    faults: &mut Faults,
) -> Option<TreeInfo> {
    let file = Utf8PathBuf::from(format!("{}{TREE_FILE}", variant.file_prefix()));
    let Some(json) = folder.tree_file(variant) else {
        // A file that is there and could not be read has its fault already.
        if !folder.path().join(&file).exists() {
            faults.push(missing(folder, variant, file));
        }
        return None;
    };
    let place = Place::file(&file);
    let Some(fields) = json.as_object() else {
        faults.push(place.wrong_type("an object", json));
        return None;
    };
    for (key, value) in fields {
        if !KEYS.contains(&key.as_str()) {
            let fault = place.key(key, value).fault("is no field of a tree");
            let hint = match nearest(key, KEYS) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the fields are {}", KEYS.join(", ")),
            };
            faults.push(fault.hint(hint));
        }
    }
    let list = |key: &str, faults: &mut Faults| match fields.get(key) {
        None => Vec::new(),
        Some(value) => names(&place.key(key, value), value, faults),
    };
    let exclude: BTreeSet<PackageName> = list(EXCLUDE, faults)
        .into_iter()
        .map(|listed| listed.name)
        .collect();
    let core = list(CORE, faults);
    let bootstrap = list(BOOTSTRAP, faults);
    for listed in core.iter().chain(&bootstrap) {
        if exclude.contains(&listed.name) {
            let message = format!("`{}` is listed here and in `{EXCLUDE}`", listed.name);
            faults.push(Fault {
                message,
                ..listed.fault.clone()
            });
        }
    }
    let variants = match fields.get(VARIANTS) {
        None => BTreeMap::new(),
        Some(value) => variants(&place.key(VARIANTS, value), value, faults),
    };
    Some(TreeInfo {
        file,
        exclude,
        variants,
        core,
        bootstrap,
    })
}

fn missing(folder: &SourceFolder, variant: &Variant, file: Utf8PathBuf) -> Fault {
    let fault = Fault::of_file(file, format!("there is no tree of the variant `{variant}`"));
    let known: Vec<String> = folder.trees().map(ToString::to_string).collect();
    if known.is_empty() {
        fault.hint(format!(
            "an empty file `{TREE_FILE}` makes a tree of all packages"
        ))
    } else {
        fault.hint(format!("choose with `--variant`: {}", known.join(", ")))
    }
}

fn names(place: &Place<'_>, value: &Json, faults: &mut Faults) -> Vec<Listed> {
    let Some(items) = value.as_list() else {
        faults.push(place.wrong_type("a list of package names", value));
        return Vec::new();
    };
    let mut names = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let place = place.item(at, item);
        match item.as_text().map(str::parse::<PackageName>) {
            None => faults.push(place.wrong_type("a package name", item)),
            Some(Err(error)) => faults.push(place.fault(error.to_string())),
            Some(Ok(name)) => names.push(Listed {
                name,
                fault: place.fault(""),
            }),
        }
    }
    names
}

fn variants(place: &Place<'_>, value: &Json, faults: &mut Faults) -> BTreeMap<String, Variant> {
    let Some(entries) = value.as_object() else {
        faults.push(place.wrong_type("an object of variants by package", value));
        return BTreeMap::new();
    };
    let mut variants = BTreeMap::new();
    for (name, value) in entries {
        match read_variant(value) {
            Ok(variant) => {
                variants.insert(name.clone(), variant);
            }
            Err(_) => faults.push(
                place
                    .key(name, value)
                    .fault("must name a variant, or be null"),
            ),
        }
    }
    variants
}
