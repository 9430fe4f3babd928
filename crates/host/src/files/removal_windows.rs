//! Removing on Windows: read-only attributes are cleared, entries in use are tried again, and links
//! to folders are removed as links.
#![expect(unsafe_code, reason = "calls of the Windows API")]

use std::io::{self, ErrorKind};
use std::os::windows::fs::FileTypeExt;
use std::path::Path;

use camino::Utf8Path;
use windows::Win32::Storage::FileSystem::{
    DeleteFileW, FILE_ATTRIBUTE_NORMAL, RemoveDirectoryW, SetFileAttributesW,
};
use windows::core::HSTRING;

use super::steps::{RemovalFailure, Steps};
use super::windows::{system_error, translate};
use super::{fault, retry};

/// Removes a file, or a link of any kind. `path` is verbatim.
pub(super) fn unlink(path: &Path) -> io::Result<()> {
    let file_type = std::fs::symlink_metadata(path)
        .map_err(translate)?
        .file_type();
    let wide = HSTRING::from(path.as_os_str());
    if file_type.is_symlink_dir() {
        return remove_folder(&wide);
    }
    if file_type.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    match delete(&wide) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            clear_attributes(&wide)?;
            delete(&wide)
        }
        result => result,
    }
}

/// Removes a folder that has nothing in it; nothing there is fine too. `path` is verbatim.
pub(super) fn remove_empty_folder(path: &Path) -> io::Result<()> {
    match remove_folder(&HSTRING::from(path.as_os_str())) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Removes a folder and all below it. `folder` is verbatim, `shown` is for messages.
pub(super) fn remove_dir_tree(
    steps: &dyn Steps,
    folder: &Path,
    shown: &Utf8Path,
) -> Result<(), RemovalFailure> {
    let fail = |source: io::Error| RemovalFailure {
        path: shown.to_owned(),
        source: translate(source),
    };
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let below = shown.join(entry.file_name().to_string_lossy().as_ref());
        let file_type = entry.file_type().map_err(fail)?;
        if file_type.is_dir() && !file_type.is_symlink() {
            remove_dir_tree(steps, &entry.path(), &below)?;
        } else {
            remove_patiently(steps, || unlink(&entry.path())).map_err(|source| RemovalFailure {
                path: below,
                source,
            })?;
        }
    }
    let wide = HSTRING::from(folder.as_os_str());
    remove_patiently(steps, || match remove_folder(&wide) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            clear_attributes(&wide)?;
            remove_folder(&wide)
        }
        // A file below is on its way out: somebody has it open still.
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {
            Err(io::Error::new(ErrorKind::ResourceBusy, error))
        }
        result => result,
    })
    .map_err(fail)
}

fn remove_patiently(
    steps: &dyn Steps,
    mut remove: impl FnMut() -> io::Result<()>,
) -> io::Result<()> {
    let removed = retry::patiently(steps, || {
        fault::point("files.remove.entry")?;
        remove()
    });
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn delete(path: &HSTRING) -> io::Result<()> {
    // SAFETY: the string outlives the call.
    unsafe { DeleteFileW(path) }.map_err(|error| system_error(&error))
}

fn remove_folder(path: &HSTRING) -> io::Result<()> {
    // SAFETY: the string outlives the call.
    unsafe { RemoveDirectoryW(path) }.map_err(|error| system_error(&error))
}

pub(super) fn clear_attributes(path: &HSTRING) -> io::Result<()> {
    // SAFETY: the string outlives the call.
    unsafe { SetFileAttributesW(path, FILE_ATTRIBUTE_NORMAL) }.map_err(|error| system_error(&error))
}
