//! Building a tree where nobody sees it and making it visible in one instant. Until `commit` there is
//! only a folder with a temporary name beside the destination; dropping a staging removes it.

use std::io::{ErrorKind, Read};

use camino::{Utf8Path, Utf8PathBuf};
use transom_model::os::Os;

use super::error::At;
use super::steps::{Anchor, Links, NewFile, Steps};
use super::{FileError, durable, fault, path, removal, retry};

const FOLDER_MODE: u32 = 0o755;
const CHUNK: usize = 64 * 1024;

/// A folder under construction. Paths are relative to it: plain names joined by `/`, whose folders
/// were made before. Nothing can be made twice, and no link is ever followed.
#[derive(Debug)]
pub struct Staging<'a> {
    steps: &'a dyn Steps,
    /// Gone once the folder is to be renamed: on Windows an open folder cannot be.
    anchor: Option<Box<dyn Anchor>>,
    folder: Utf8PathBuf,
    temporary: Utf8PathBuf,
    destination: Utf8PathBuf,
    /// Modes are set last, or a read-only folder could not be filled.
    modes: Vec<(Utf8PathBuf, u32)>,
}

pub(super) fn begin<'a>(
    steps: &'a dyn Steps,
    destination: &Utf8Path,
) -> Result<Staging<'a>, FileError> {
    if steps.metadata(destination).is_ok() {
        return Err(FileError::Exists {
            path: destination.to_owned(),
        });
    }
    let (folder, temporary) = durable::temporary_beside(steps, destination)?;
    let anchor = fault::point("files.stage.begin")
        .and_then(|()| steps.anchor(&temporary))
        .at("create", destination)?;
    Ok(Staging {
        steps,
        anchor: Some(anchor),
        folder,
        temporary,
        destination: destination.to_owned(),
        modes: vec![(Utf8PathBuf::new(), FOLDER_MODE)],
    })
}

impl Staging<'_> {
    /// Makes a folder. Its folder must be there already.
    pub fn make_dir(&mut self, below: &Utf8Path, mode: u32) -> Result<(), FileError> {
        self.step(below, "create", "files.stage.make_dir", |anchor| {
            anchor.make_dir(below)
        })?;
        self.modes.push((below.to_owned(), mode));
        Ok(())
    }

    /// Sets the mode that a folder made before gets in the end; the empty path is the tree itself.
    pub fn set_dir_mode(&mut self, below: &Utf8Path, mode: u32) {
        if let Some(entry) = self.modes.iter_mut().find(|(path, _)| path == below) {
            entry.1 = mode;
        }
    }

    /// Starts a file; the caller writes and finishes it.
    pub fn create_file(&self, below: &Utf8Path, mode: u32) -> Result<StagedFile, FileError> {
        let file = self.step(below, "create", "files.stage.create_file", |anchor| {
            anchor.create_file(below, mode)
        })?;
        Ok(StagedFile {
            path: self.shown(below),
            file,
        })
    }

    /// Makes a symbolic link. The target is not looked at.
    pub fn symlink(&self, target: &str, below: &Utf8Path) -> Result<(), FileError> {
        self.step(below, "link", "files.stage.link", |anchor| {
            anchor.symlink(target, below)
        })
    }

    /// Gives a second name to a file of this tree.
    pub fn link_within(&self, existing: &Utf8Path, below: &Utf8Path) -> Result<(), FileError> {
        self.check(existing)?;
        self.step(below, "link", "files.stage.link", |anchor| {
            anchor.link_within(existing, below)
        })
    }

    /// Gives a second name to a file from elsewhere on the same file system.
    pub fn link_from(&self, original: &Utf8Path, below: &Utf8Path) -> Result<(), FileError> {
        self.step(below, "link", "files.stage.link", |anchor| {
            anchor.link_from(original, below)
        })
    }

    /// Gives a second name to a file from elsewhere; one that cannot have another name (too many
    /// already, or on another file system) is copied.
    pub fn link_or_copy(
        &self,
        original: &Utf8Path,
        below: &Utf8Path,
        mode: u32,
    ) -> Result<(), FileError> {
        match self.link_from(original, below) {
            Err(FileError::Io { source, .. })
                if matches!(
                    source.kind(),
                    ErrorKind::CrossesDevices | ErrorKind::TooManyLinks
                ) =>
            {
                self.copy_from(original, below, mode)
            }
            result => result,
        }
    }

    /// Copies a file from elsewhere, which must not be a link.
    pub fn copy_from(
        &self,
        original: &Utf8Path,
        below: &Utf8Path,
        mode: u32,
    ) -> Result<(), FileError> {
        let mut source = self
            .steps
            .open(original, Links::Refuse)
            .at("read", original)?;
        let mut target = self.create_file(below, mode)?;
        let mut chunk = vec![0; CHUNK];
        loop {
            match source.read(&mut chunk).at("read", original)? {
                0 => return target.finish(),
                count => target.write_all(&chunk[..count])?,
            }
        }
    }

    /// Makes all of it durable, then visible under its final name, which must still be free.
    pub fn commit(mut self) -> Result<(), FileError> {
        let destination = self.destination.clone();
        let Some(anchor) = self.anchor.take() else {
            return Ok(());
        };
        // Inner folders first: an outer one may forbid to enter.
        for (below, mode) in self.modes.iter().rev() {
            fault::point("files.stage.mode")
                .and_then(|()| anchor.set_dir_mode(below, *mode))
                .at("set the mode of", &self.shown(below))?;
        }
        fault::point("files.stage.sync")
            .and_then(|()| anchor.sync_all())
            .at("sync", &destination)?;
        drop(anchor);
        retry::patiently(self.steps, || {
            fault::point("files.stage.rename")?;
            self.steps.rename_new(&self.temporary, &destination)
        })
        .at("rename to", &destination)?;
        fault::point("files.stage.folder")
            .and_then(|()| self.steps.sync_dir(&self.folder))
            .at("sync", &self.folder)
    }

    fn step<T>(
        &self,
        below: &Utf8Path,
        action: &'static str,
        point: &'static str,
        step: impl FnOnce(&dyn Anchor) -> std::io::Result<T>,
    ) -> Result<T, FileError> {
        self.check(below)?;
        let path = self.shown(below);
        let Some(anchor) = self.anchor.as_deref() else {
            return Err(FileError::NotFound { path });
        };
        fault::point(point)
            .and_then(|()| step(anchor))
            .at(action, &path)
    }

    /// What is being made, as it will be called.
    fn shown(&self, below: &Utf8Path) -> Utf8PathBuf {
        path::join(self.steps.os(), &self.destination, below.as_str())
    }

    /// Only plain names: the anchor keeps us inside only if no name means "up" or "elsewhere".
    fn check(&self, below: &Utf8Path) -> Result<(), FileError> {
        let on_windows = self.steps.os() == Os::Windows;
        let is_special = |name: &str| {
            matches!(name, "" | "." | "..")
                || name.contains('\0')
                || on_windows && name.contains(['\\', ':'])
        };
        if below.as_str().split('/').any(is_special) {
            return Err(FileError::InvalidPath {
                path: below.to_owned(),
                reason: "it must be plain names joined by `/`",
            });
        }
        Ok(())
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        drop(self.anchor.take());
        // After a commit there is nothing under this name.
        if let Err(error) = removal::remove_tree(self.steps, &self.temporary) {
            let temporary = &self.temporary;
            tracing::warn!(%temporary, %error, "could not remove a temporary folder, a sweep will");
        }
    }
}

/// A file of a staging, being written.
#[derive(Debug)]
#[must_use = "a file that is not finished may not survive a crash"]
pub struct StagedFile {
    path: Utf8PathBuf,
    file: Box<dyn NewFile>,
}

impl StagedFile {
    pub fn write_all(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        fault::point("files.stage.content")
            .and_then(|()| self.file.write_all(bytes))
            .at("write", &self.path)
    }

    pub fn finish(mut self) -> Result<(), FileError> {
        fault::point("files.stage.settle")
            .and_then(|()| self.file.settle())
            .at("sync", &self.path)
    }
}
