//! Finding a host's file from the outside. Links are followed inside of the host's own tree, so an
//! absolute link in it never leads to a file of the machine.

use std::collections::VecDeque;
use std::path::{Component, Path, PathBuf};

use anyhow::{Result, bail};
use fs_err as fs;

/// More links than this in one path are a circle.
const MOST_LINKS: usize = 40;

/// Whether names that differ only in case are the same file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    Distinct,
    Same,
}

/// Returns where `inside`, an absolute path of the tree at `root`, is. It need not exist.
pub(crate) fn locate(root: &Path, inside: &Path, case: Case) -> Result<PathBuf> {
    let mut pending: VecDeque<PathBuf> = parts(inside);
    let mut found = PathBuf::new();
    let mut links = 0;
    while let Some(part) = pending.pop_front() {
        if part.as_os_str() == ".." {
            found.pop();
            continue;
        }
        let name = spelling(&root.join(&found), &part, case);
        let Ok(target) = fs::read_link(root.join(&found).join(&name)) else {
            found.push(name);
            continue;
        };
        links += 1;
        if links > MOST_LINKS {
            bail!(
                "`{}` leads through more than {MOST_LINKS} links",
                inside.display()
            );
        }
        if target.is_absolute() {
            found.clear();
        }
        for part in parts(&target).into_iter().rev() {
            pending.push_front(part);
        }
    }
    Ok(root.join(found))
}

/// Splits a path into names and `..`.
fn parts(path: &Path) -> VecDeque<PathBuf> {
    path.components()
        .filter(|component| matches!(component, Component::Normal(_) | Component::ParentDir))
        .map(|component| PathBuf::from(component.as_os_str()))
        .collect()
}

/// Returns `name` as it is spelled in `folder`.
fn spelling(folder: &Path, name: &Path, case: Case) -> PathBuf {
    if case == Case::Distinct || folder.join(name).symlink_metadata().is_ok() {
        return name.to_path_buf();
    }
    let wanted = name.to_string_lossy().to_lowercase();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name())
        .find(|entry| entry.to_string_lossy().to_lowercase() == wanted)
        .map_or_else(|| name.to_path_buf(), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use fs_err::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn an_absolute_link_stays_inside_of_the_tree() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("var")).unwrap();
        symlink("/run", root.path().join("var/run")).unwrap();
        let located = locate(root.path(), Path::new("/var/run/lock"), Case::Distinct).unwrap();
        assert_eq!(located, root.path().join("run/lock"));
    }

    #[test]
    fn no_number_of_parent_folders_leads_out() {
        let root = tempfile::tempdir().unwrap();
        symlink("../../../../etc", root.path().join("way")).unwrap();
        let located = locate(root.path(), Path::new("/../way/../../x"), Case::Distinct).unwrap();
        assert_eq!(located, root.path().join("x"));
    }

    #[test]
    fn a_circle_of_links_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        symlink("two", root.path().join("one")).unwrap();
        symlink("one", root.path().join("two")).unwrap();
        let error = locate(root.path(), Path::new("/one"), Case::Distinct).unwrap_err();
        assert!(error.to_string().contains("40 links"), "{error}");
    }

    #[test]
    fn windows_names_are_found_in_any_case_and_new_ones_keep_theirs() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("windows/system32")).unwrap();
        let inside = Path::new("/Windows/System32/New.exe");
        let located = locate(root.path(), inside, Case::Same).unwrap();
        assert_eq!(located, root.path().join("windows/system32/New.exe"));
        let located = locate(root.path(), inside, Case::Distinct).unwrap();
        assert_eq!(located, root.path().join("Windows/System32/New.exe"));
    }
}
