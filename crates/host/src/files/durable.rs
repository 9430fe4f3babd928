//! Writing so that a crash at any instant leaves the old content or the new, never a mixture: a
//! temporary file in the same folder, its content synced, one rename, the folder synced.

use camino::{Utf8Path, Utf8PathBuf};

use super::error::At;
use super::steps::Steps;
use super::{Access, FileError, Kind, fault, path, removal, retry};

const TEMPORARY_PREFIX: &str = ".transom-";
const TEMPORARY_SUFFIX: &str = ".tmp";

/// A name nobody can guess and [`is_temporary`] recognises.
pub(super) fn temporary_name() -> String {
    format!(
        "{TEMPORARY_PREFIX}{}{TEMPORARY_SUFFIX}",
        uuid::Uuid::new_v4().simple()
    )
}

/// Whether a name is one of those that a crash of ours may leave behind.
pub fn is_temporary(name: &str) -> bool {
    name.strip_prefix(TEMPORARY_PREFIX)
        .and_then(|rest| rest.strip_suffix(TEMPORARY_SUFFIX))
        .is_some_and(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The folder of `path` and a temporary name in it.
pub(super) fn temporary_beside(
    steps: &dyn Steps,
    path: &Utf8Path,
) -> Result<(Utf8PathBuf, Utf8PathBuf), FileError> {
    let folder = path::parent(steps.os(), path).ok_or_else(|| FileError::InvalidPath {
        path: path.to_owned(),
        reason: "it names no entry of a folder",
    })?;
    let temporary = path::join(steps.os(), &folder, &temporary_name());
    Ok((folder, temporary))
}

pub(super) fn write(
    steps: &dyn Steps,
    path: &Utf8Path,
    bytes: &[u8],
    access: Access,
) -> Result<(), FileError> {
    let (folder, temporary) = temporary_beside(steps, path)?;
    let written = write_temporary(steps, &temporary, bytes, access)
        .at("write", path)
        .and_then(|()| rename_over(steps, &temporary, path));
    if let Err(error) = written {
        discard(steps, &temporary);
        return Err(error);
    }
    fault::point("files.write.folder")
        .and_then(|()| steps.sync_dir(&folder))
        .at("sync", &folder)
}

fn write_temporary(
    steps: &dyn Steps,
    temporary: &Utf8Path,
    bytes: &[u8],
    access: Access,
) -> std::io::Result<()> {
    fault::point("files.write.create")?;
    let mut file = steps.create_new(temporary, access)?;
    fault::point("files.write.content")?;
    file.write_all(bytes)?;
    fault::point("files.write.sync")?;
    file.sync()
}

fn rename_over(steps: &dyn Steps, from: &Utf8Path, to: &Utf8Path) -> Result<(), FileError> {
    retry::patiently(steps, || {
        fault::point("files.replace.rename")?;
        steps.rename_over(from, to)
    })
    .at("replace", to)
    .map_err(|error| error.with_holders(|path| steps.holders(path)))
}

/// Removes a temporary file after a failure that is reported already.
fn discard(steps: &dyn Steps, temporary: &Utf8Path) {
    match fault::point("files.write.discard").and_then(|()| steps.unlink(temporary)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!(%temporary, %error, "could not remove a temporary file, a sweep will");
        }
        _ => {}
    }
}

pub(super) fn replace(steps: &dyn Steps, from: &Utf8Path, to: &Utf8Path) -> Result<(), FileError> {
    rename_over(steps, from, to).map_err(|error| missing_source(steps, error, from))?;
    sync_both(steps, from, to)
}

pub(super) fn rename_dir(
    steps: &dyn Steps,
    from: &Utf8Path,
    to: &Utf8Path,
) -> Result<(), FileError> {
    if steps.metadata(from).at("rename", from)?.kind != Kind::Dir {
        return Err(FileError::WrongKind {
            path: from.to_owned(),
            expected: "a folder",
        });
    }
    retry::patiently(steps, || {
        fault::point("files.rename_dir.rename")?;
        steps.rename_new(from, to)
    })
    .at("rename to", to)
    .map_err(|error| error.with_holders(|_| steps.holders(from)))?;
    sync_both(steps, from, to)
}

/// A rename reports "not found" for either end; says which one it was.
fn missing_source(steps: &dyn Steps, error: FileError, from: &Utf8Path) -> FileError {
    match error {
        FileError::NotFound { .. } if steps.metadata(from).is_err() => FileError::NotFound {
            path: from.to_owned(),
        },
        error => error,
    }
}

/// The new name first: a crash between the two then leaves both names, never none.
fn sync_both(steps: &dyn Steps, from: &Utf8Path, to: &Utf8Path) -> Result<(), FileError> {
    let old = path::parent(steps.os(), from);
    let new = path::parent(steps.os(), to);
    let same = old == new;
    for folder in new.into_iter().chain(old.filter(|_| !same)) {
        fault::point("files.replace.folder")
            .and_then(|()| steps.sync_dir(&folder))
            .at("sync", &folder)?;
    }
    Ok(())
}

pub(super) fn create_dir_all(steps: &dyn Steps, folder: &Utf8Path) -> Result<(), FileError> {
    let mut missing = Vec::new();
    let mut current = folder.to_owned();
    loop {
        match steps.is_dir(&current) {
            Ok(true) => break,
            Ok(false) => {
                return Err(FileError::WrongKind {
                    path: current,
                    expected: "a folder",
                });
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let parent = path::parent(steps.os(), &current);
                missing.push(current.clone());
                current = parent.ok_or_else(|| FileError::NotFound {
                    path: current.clone(),
                })?;
            }
            Err(error) => return Err(FileError::new("look at", &current, error)),
        }
    }
    while let Some(next) = missing.pop() {
        make_dir(steps, &next).at("create", &next)?;
        fault::point("files.create_dir.folder")
            .and_then(|()| steps.sync_dir(&current))
            .at("sync", &current)?;
        current = next;
    }
    Ok(())
}

fn make_dir(steps: &dyn Steps, folder: &Utf8Path) -> std::io::Result<()> {
    fault::point("files.create_dir.make")?;
    match steps.make_dir(folder) {
        // Somebody made the same folder at the same moment: that is what we wanted.
        Err(error)
            if error.kind() == std::io::ErrorKind::AlreadyExists
                && steps.is_dir(folder).unwrap_or(false) =>
        {
            Ok(())
        }
        result => result,
    }
}

pub(super) fn sweep(steps: &dyn Steps, folder: &Utf8Path) -> Result<Vec<Utf8PathBuf>, FileError> {
    let mut names = steps.names(folder).at("list", folder)?;
    names.retain(|name| is_temporary(name));
    names.sort();
    let mut swept = Vec::new();
    for name in names {
        let leftover = path::join(steps.os(), folder, &name);
        removal::remove_tree(steps, &leftover)?;
        swept.push(leftover);
    }
    Ok(swept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_made_here_are_temporary() {
        assert!(is_temporary(&temporary_name()));
        for name in [
            ".transom-.tmp",
            ".transom-notes.tmp",
            ".transom-0123456789abcdef0123456789abcdef",
            "transom-0123456789abcdef0123456789abcdef.tmp",
            ".transom-0123456789abcdef0123456789abcdeg.tmp",
        ] {
            assert!(!is_temporary(name), "{name}");
        }
    }
}
