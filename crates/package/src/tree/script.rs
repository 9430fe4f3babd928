//! Which script builds a package, and for which system. The script that is there decides: a folder is
//! read the same way on Linux and on Windows.

use camino::{Utf8Path, Utf8PathBuf};
use transom_model::Os;
use transom_model::package::Variant;

use crate::fault::{Fault, Faults};
use crate::recipe::Recipe;

/// The script's default name; the variant stands before it.
const SCRIPT: &str = "build";

/// What a script for PowerShell ends with.
const POWERSHELL: &str = ".ps1";

/// Sets the recipe's script and system. Refuses a script that is not there or not in the tree.
pub(super) fn choose(recipe: &mut Recipe, file: &Utf8Path, tree: &Utf8Path, faults: &mut Faults) {
    let named = recipe.script.is_some();
    let found = candidates(recipe)
        .into_iter()
        .find(|(name, _)| recipe.folder.join(name).is_file());
    match found {
        Some((name, os)) => {
            if !stays_below(&recipe.folder.join(&name), tree) {
                let mut fault =
                    Fault::of_file(file, format!("the script {name} is not in the tree"));
                "build_script".clone_into(&mut fault.path);
                faults.push(fault);
            }
            recipe.os = os;
            recipe.script = Some(name);
        }
        None if !recipe.install.is_empty() && !named => {
            recipe.os = meant_for(&recipe.variant);
            recipe.script = None;
        }
        None => {
            let looked_for: Vec<String> = candidates(recipe)
                .into_iter()
                .map(|(name, _)| format!("`{name}`"))
                .collect();
            let message = format!(
                "there is no build script: no file {}",
                looked_for.join(" or ")
            );
            let mut fault = Fault::of_file(file, message);
            if named {
                "build_script".clone_into(&mut fault.path);
            }
            faults.push(fault.hint("write the script, or an `install` section in the recipe"));
        }
    }
}

fn candidates(recipe: &Recipe) -> Vec<(String, Os)> {
    if let Some(name) = &recipe.script {
        let os = if name.to_ascii_lowercase().ends_with(POWERSHELL) {
            Os::Windows
        } else {
            Os::Linux
        };
        return vec![(name.clone(), os)];
    }
    let plain = format!("{}{SCRIPT}", recipe.variant.file_prefix());
    let mut candidates = vec![
        (plain.clone(), Os::Linux),
        (format!("{plain}{POWERSHELL}"), Os::Windows),
    ];
    if meant_for(&recipe.variant) == Os::Windows {
        candidates.reverse();
    }
    candidates
}

/// The system that a variant's name tells: `windows`, `windows.installer`.
fn meant_for(variant: &Variant) -> Os {
    match variant.as_str().split('.').next() {
        Some("windows") => Os::Windows,
        _ => Os::Linux,
    }
}

/// Whether a path, with its `..` counted, is below `folder`.
fn stays_below(path: &Utf8Path, folder: &Utf8Path) -> bool {
    let mut plain = Utf8PathBuf::new();
    for part in path.components() {
        match part {
            camino::Utf8Component::ParentDir => {
                plain.pop();
            }
            camino::Utf8Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain.starts_with(folder)
}
