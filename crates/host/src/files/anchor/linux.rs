//! Anchored work on Linux: every name is reached from the descriptor of the anchor, one folder at a
//! time, and no step follows a link.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};

use super::super::linux::OpenFile;
use super::super::steps::{Anchor, NewFile};

#[derive(Debug)]
pub(in super::super) struct FolderAnchor {
    folder: OwnedFd,
    /// The folder entered last. Entries mostly come folder by folder, and a descriptor stays true
    /// whatever happens to names.
    last: Mutex<Option<(Utf8PathBuf, OwnedFd)>>,
}

impl FolderAnchor {
    pub(in super::super) fn create(path: &Utf8Path) -> io::Result<Self> {
        rustix::fs::mkdir(path.as_str(), Mode::from_raw_mode(0o700))?;
        let folder = open_folder(CWD, path.as_str())?;
        Ok(Self {
            folder,
            last: Mutex::new(None),
        })
    }

    /// Does a step in the folder of `below`, with the last name.
    fn at<T>(
        &self,
        below: &Utf8Path,
        step: impl FnOnce(BorrowedFd<'_>, &str) -> rustix::io::Result<T>,
    ) -> io::Result<T> {
        let (parent, name) = below
            .as_str()
            .rsplit_once('/')
            .unwrap_or(("", below.as_str()));
        if parent.is_empty() {
            return Ok(step(self.folder.as_fd(), name)?);
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = match last.take() {
            Some((path, folder)) if path == parent => folder,
            _ => self.enter(Utf8Path::new(parent))?,
        };
        let (_, folder) = last.insert((parent.into(), folder));
        Ok(step(folder.as_fd(), name)?)
    }

    fn enter(&self, below: &Utf8Path) -> io::Result<OwnedFd> {
        let mut folder = self.folder.as_fd().try_clone_to_owned()?;
        for component in below.components() {
            folder = open_folder(&folder, component.as_str())?;
        }
        Ok(folder)
    }
}

fn open_folder(at: impl AsFd, name: &str) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, name, flags, Mode::empty())
}

impl Anchor for FolderAnchor {
    fn make_dir(&self, below: &Utf8Path) -> io::Result<()> {
        self.at(below, |folder, name| {
            rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(0o700))
        })
    }

    fn create_file(&self, below: &Utf8Path, mode: u32) -> io::Result<Box<dyn NewFile>> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = self.at(below, |folder, name| {
            rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(0o600))
        })?;
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode & 0o777))?;
        Ok(Box::new(OpenFile(file.into())))
    }

    fn symlink(&self, target: &str, below: &Utf8Path) -> io::Result<()> {
        self.at(below, |folder, name| {
            rustix::fs::symlinkat(target, folder, name)
        })
    }

    fn link_within(&self, existing: &Utf8Path, below: &Utf8Path) -> io::Result<()> {
        let original = existing.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let from = self.enter(existing.parent().unwrap_or(Utf8Path::new("")))?;
        self.at(below, |folder, name| {
            rustix::fs::linkat(&from, original, folder, name, AtFlags::empty())
        })
    }

    fn link_from(&self, original: &Utf8Path, below: &Utf8Path) -> io::Result<()> {
        self.at(below, |folder, name| {
            rustix::fs::linkat(CWD, original.as_str(), folder, name, AtFlags::empty())
        })
    }

    fn set_dir_mode(&self, below: &Utf8Path, mode: u32) -> io::Result<()> {
        let folder = self.enter(below)?;
        Ok(rustix::fs::fchmod(
            folder,
            Mode::from_raw_mode(mode & 0o777),
        )?)
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(&self.folder)?)
    }
}
