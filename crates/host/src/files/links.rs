//! Links to files and folders. Some systems say yes to a link and make none, so each link is looked
//! at after it was made.

use std::io::ErrorKind;

use camino::{Utf8Path, Utf8PathBuf};
use transom_model::os::Os;

use super::error::At;
use super::steps::Steps;
use super::{FileError, Kind, durable, fault, path, removal, retry};

pub(super) fn read(steps: &dyn Steps, link: &Utf8Path) -> Result<Utf8PathBuf, FileError> {
    if steps.metadata(link).at("look at", link)?.kind != Kind::Link {
        return Err(FileError::WrongKind {
            path: link.to_owned(),
            expected: "a link",
        });
    }
    steps.read_link(link).at("read", link)
}

pub(super) fn link_file(
    steps: &dyn Steps,
    original: &Utf8Path,
    link: &Utf8Path,
) -> Result<(), FileError> {
    let wanted = steps.metadata(original).at("link to", original)?;
    if wanted.kind != Kind::File {
        return Err(FileError::WrongKind {
            path: original.to_owned(),
            expected: "a file",
        });
    }
    fault::point("files.link.make")
        .and_then(|()| steps.hard_link(original, link))
        .at("link", link)?;
    match steps.metadata(link) {
        Ok(made) if made.kind == Kind::File && made.length == wanted.length => {}
        _ => return Err(no_effect("make the hard link", link)),
    }
    sync_folder_of(steps, link)
}

pub(super) fn link_dir(
    steps: &dyn Steps,
    target: &Utf8Path,
    link: &Utf8Path,
) -> Result<(), FileError> {
    if steps.metadata(link).is_ok() {
        return Err(FileError::Exists {
            path: link.to_owned(),
        });
    }
    make_verified(steps, target, link)?;
    sync_folder_of(steps, link)
}

fn make_verified(steps: &dyn Steps, target: &Utf8Path, link: &Utf8Path) -> Result<(), FileError> {
    fault::point("files.link.make")
        .and_then(|()| steps.link_dir(target, link))
        .at("link", link)?;
    let made = matches!(steps.metadata(link), Ok(metadata) if metadata.kind == Kind::Link);
    if made && steps.read_link(link).is_ok() {
        return Ok(());
    }
    Err(no_effect("make the folder link", link))
}

fn no_effect(action: &'static str, link: &Utf8Path) -> FileError {
    FileError::NotSupported {
        action,
        path: link.to_owned(),
        reason: "it reported success, but nothing is there".to_owned(),
    }
}

pub(super) fn replace_link(
    steps: &dyn Steps,
    target: &Utf8Path,
    link: &Utf8Path,
) -> Result<(), FileError> {
    match steps.metadata(link) {
        Ok(metadata) if metadata.kind != Kind::Link => {
            return Err(FileError::WrongKind {
                path: link.to_owned(),
                expected: "a link",
            });
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return link_dir(steps, target, link),
        Err(error) => return Err(FileError::new("look at", link, error)),
    }
    let (_, temporary) = durable::temporary_beside(steps, link)?;
    make_verified(steps, target, &temporary)?;
    let moved = match steps.os() {
        Os::Linux => Ok(()),
        // A junction is a folder to Windows: it is not replaced by a rename.
        Os::Windows => removal::remove_file(steps, link),
    }
    .and_then(|()| move_link(steps, &temporary, link));
    if moved.is_err()
        && let Err(error) = removal::remove_file(steps, &temporary)
    {
        tracing::warn!(%temporary, %error, "could not remove a temporary link, a sweep will");
    }
    moved.and_then(|()| sync_folder_of(steps, link))
}

fn move_link(steps: &dyn Steps, temporary: &Utf8Path, link: &Utf8Path) -> Result<(), FileError> {
    retry::patiently(steps, || {
        fault::point("files.link.rename")?;
        match steps.os() {
            Os::Linux => steps.rename_over(temporary, link),
            Os::Windows => steps.rename_new(temporary, link),
        }
    })
    .at("replace", link)
}

fn sync_folder_of(steps: &dyn Steps, link: &Utf8Path) -> Result<(), FileError> {
    let Some(folder) = path::parent(steps.os(), link) else {
        return Ok(());
    };
    fault::point("files.link.folder")
        .and_then(|()| steps.sync_dir(&folder))
        .at("sync", &folder)
}
