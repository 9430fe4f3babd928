//! Taking away what no reader can ask for: archives that neither the metadata nor a package list names,
//! what a crash left, and metadata that is older than the one before the current.

use std::collections::HashSet;

use transom_host::files::{FileError, Files as _, Native};

use super::check::{names, orphans};
use super::names::{METADATA, PACKAGES, below};
use super::{EditError, Editor, Form};

/// Something that was taken away, or would be.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Collected {
    /// Where it was, below the repository.
    pub path: String,
    pub bytes: u64,
}

/// Takes away what nobody needs, or only says what that is.
pub fn collect(editor: &Editor, dry_run: bool) -> Result<Vec<Collected>, EditError> {
    let folder = &editor.folder;
    // Even an archive that the metadata does not name any more may be wanted back by its list.
    let wanted: HashSet<String> = editor
        .lists()?
        .into_iter()
        .flat_map(|(_, packages)| packages)
        .flat_map(|id| Form::ALL.map(|form| super::names::package_path(&id, form)))
        .collect();
    let mut paths = orphans(folder, &editor.trusted)?;
    paths.retain(|path| !wanted.contains(path));
    paths.extend(old_metadata(editor)?);
    let mut collected = Vec::new();
    for path in paths {
        let file = below(folder, &path);
        let bytes = match Native.metadata(&file) {
            Ok(metadata) => metadata.length,
            Err(FileError::NotFound { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        if !dry_run {
            Native.remove_tree(&file)?;
        }
        collected.push(Collected { path, bytes });
    }
    if !dry_run {
        for name in names(folder, PACKAGES)? {
            let inner = format!("{PACKAGES}/{name}");
            if names(folder, &inner)?.is_empty() {
                Native.remove_tree(&below(folder, &inner))?;
            }
        }
    }
    Ok(collected)
}

/// Snapshots and targets that are older than the one before the current: a reader who began just before
/// the last change still needs that one. Roots stay, as every client follows all of them.
fn old_metadata(editor: &Editor) -> Result<Vec<String>, EditError> {
    let trusted = &editor.trusted;
    let is_old = |name: &str| {
        let (version, role) = name.split_once('.')?;
        let newest = match role {
            "snapshot.json" => trusted.snapshot.version(),
            "targets.json" => trusted.targets.version(),
            _ => return None,
        };
        Some(version.parse::<u64>().ok()? + 1 < newest)
    };
    Ok(names(&editor.folder, METADATA)?
        .into_iter()
        .filter(|name| is_old(name).unwrap_or_default())
        .map(|name| format!("{METADATA}/{name}"))
        .collect())
}
