//! Anchored work on Windows: the folder is held open without sharing deletion, so neither it nor a
//! folder above it can be renamed or replaced while the anchor lives.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::sync::{Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use transom_model::os::Os;
use windows::Win32::Storage::FileSystem::{
    FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT, FILE_SHARE_READ, FILE_SHARE_WRITE,
};

use super::super::Access;
use super::super::path;
use super::super::steps::{Anchor, NewFile, Steps};
use super::super::windows::{WindowsFiles, literal, translate};

#[derive(Debug)]
pub(in super::super) struct FolderAnchor {
    path: Utf8PathBuf,
    /// Whose names are flushed in the end.
    made: Mutex<Vec<Utf8PathBuf>>,
    _held: File,
}

impl FolderAnchor {
    pub(in super::super) fn create(path: &Utf8Path) -> io::Result<Self> {
        WindowsFiles.make_dir(path)?;
        let held = OpenOptions::new()
            .read(true)
            .share_mode(FILE_SHARE_READ.0 | FILE_SHARE_WRITE.0)
            .custom_flags(FILE_FLAG_BACKUP_SEMANTICS.0 | FILE_FLAG_OPEN_REPARSE_POINT.0)
            .open(literal(path)?)
            .map_err(translate)?;
        Ok(Self {
            path: path.to_owned(),
            made: Mutex::new(Vec::new()),
            _held: held,
        })
    }

    fn place(&self, below: &Utf8Path) -> Utf8PathBuf {
        path::join(Os::Windows, &self.path, below.as_str())
    }
}

impl Anchor for FolderAnchor {
    fn make_dir(&self, below: &Utf8Path) -> io::Result<()> {
        let folder = self.place(below);
        WindowsFiles.make_dir(&folder)?;
        self.made
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(folder);
        Ok(())
    }

    fn create_file(&self, below: &Utf8Path, _mode: u32) -> io::Result<Box<dyn NewFile>> {
        WindowsFiles.create_new(&self.place(below), Access::Public)
    }

    /// A file link needs a privilege most accounts lack, and Wine pretends: not offered.
    fn symlink(&self, _target: &str, _below: &Utf8Path) -> io::Result<()> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "symbolic links are not made on Windows",
        ))
    }

    fn link_within(&self, existing: &Utf8Path, below: &Utf8Path) -> io::Result<()> {
        WindowsFiles.hard_link(&self.place(existing), &self.place(below))
    }

    fn link_from(&self, original: &Utf8Path, below: &Utf8Path) -> io::Result<()> {
        WindowsFiles.hard_link(original, &self.place(below))
    }

    fn set_dir_mode(&self, _below: &Utf8Path, _mode: u32) -> io::Result<()> {
        Ok(())
    }

    /// Files were flushed when they were complete; what is left is the names.
    fn sync_all(&self) -> io::Result<()> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.iter()
            .chain([&self.path])
            .try_for_each(|folder| WindowsFiles.sync_dir(folder))
    }
}
