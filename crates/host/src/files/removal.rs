//! Removing, with patience and without following links. A removal that finds nothing succeeds, so
//! that repeating one after a crash is safe.

use std::io::ErrorKind;

use camino::{Utf8Path, Utf8PathBuf};

use super::error::At;
use super::steps::Steps;
use super::{FileError, Kind, durable, fault, path, retry};

pub(super) fn remove_file(steps: &dyn Steps, path: &Utf8Path) -> Result<(), FileError> {
    match steps.metadata(path) {
        Ok(metadata) if metadata.kind == Kind::Dir => {
            return Err(FileError::WrongKind {
                path: path.to_owned(),
                expected: "a file",
            });
        }
        Ok(_) => {}
        Err(error) if is_absent(error.kind()) => return Ok(()),
        Err(error) => return Err(FileError::new("remove", path, error)),
    }
    let removed = retry::patiently(steps, || {
        fault::point("files.remove.entry")?;
        steps.unlink(path)
    });
    match removed {
        Err(error) if is_absent(error.kind()) => Ok(()),
        result => result
            .at("remove", path)
            .map_err(|error| error.with_holders(|path| steps.holders(path)))
            .and_then(|()| sync_folder_of(steps, path)),
    }
}

/// What was removed must not come back with a crash.
fn sync_folder_of(steps: &dyn Steps, path: &Utf8Path) -> Result<(), FileError> {
    let Some(folder) = path::parent(steps.os(), path) else {
        return Ok(());
    };
    fault::point("files.remove.folder")
        .and_then(|()| steps.sync_dir(&folder))
        .at("sync", &folder)
}

pub(super) fn remove_tree(steps: &dyn Steps, path: &Utf8Path) -> Result<(), FileError> {
    match steps.metadata(path) {
        Ok(metadata) if metadata.kind == Kind::Dir => {}
        Ok(_) => return remove_file(steps, path),
        Err(error) if is_absent(error.kind()) => return Ok(()),
        Err(error) => return Err(FileError::new("remove", path, error)),
    }
    match steps.remove_dir_tree(path) {
        Ok(()) => sync_folder_of(steps, path),
        Err(failure) if is_absent(failure.source.kind()) && failure.path == path => Ok(()),
        Err(failure) => Err(FileError::new("remove", &failure.path, failure.source)
            .with_holders(|path| steps.holders(path))),
    }
}

/// What became of something that was to disappear.
#[derive(Debug)]
#[must_use = "what is left behind must be reported"]
pub enum Discarded {
    /// All of it is gone, or nothing was there.
    Gone,
    /// It has no name of its own any more, but a part of it could not be removed yet: a sweep of its
    /// folder will.
    Left {
        path: Utf8PathBuf,
        reason: FileError,
    },
}

pub(super) fn discard(steps: &dyn Steps, path: &Utf8Path) -> Result<Discarded, FileError> {
    match steps.metadata(path) {
        Ok(metadata) if metadata.kind == Kind::Dir => {}
        Ok(_) => return remove_file(steps, path).map(|()| Discarded::Gone),
        Err(error) if is_absent(error.kind()) => return Ok(Discarded::Gone),
        Err(error) => return Err(FileError::new("remove", path, error)),
    }
    let (_, temporary) = durable::temporary_beside(steps, path)?;
    durable::rename_dir(steps, path, &temporary)?;
    match remove_tree(steps, &temporary) {
        Ok(()) => Ok(Discarded::Gone),
        Err(reason @ FileError::InUse { .. }) => Ok(Discarded::Left {
            path: temporary,
            reason,
        }),
        Err(error) => Err(error),
    }
}

/// Nothing is there; a file in place of a parent folder says so too.
fn is_absent(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory)
}
