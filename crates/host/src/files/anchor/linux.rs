//! Anchored work on Linux: every name is reached from the descriptor of the anchor, one folder at a
//! time, and no step follows a link.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};

use super::super::linux::OpenFile;
use super::super::steps::{Anchor, NewFile};

#[derive(Debug)]
pub(in super::super) struct FolderAnchor {
    folder: OwnedFd,
    /// The folder entered last: most entries stand in the same one as the entry before.
    last: RefCell<Option<(Utf8PathBuf, Arc<OwnedFd>)>>,
}

impl FolderAnchor {
    pub(in super::super) fn create(path: &Utf8Path) -> io::Result<Self> {
        rustix::fs::mkdir(path.as_str(), Mode::from_raw_mode(0o700))?;
        let folder = open_folder(CWD, path.as_str())?;
        Ok(Self {
            folder,
            last: RefCell::new(None),
        })
    }

    /// Opens the folder of `below` and says the last name.
    fn reach<'a>(&self, below: &'a Utf8Path) -> io::Result<(Arc<OwnedFd>, &'a str)> {
        let name = below.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = below.parent().unwrap_or(Utf8Path::new(""));
        if let Some((path, folder)) = &*self.last.borrow()
            && path == parent
        {
            return Ok((Arc::clone(folder), name));
        }
        let folder = Arc::new(self.enter(parent)?);
        self.last
            .replace(Some((parent.to_owned(), Arc::clone(&folder))));
        Ok((folder, name))
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
        let (folder, name) = self.reach(below)?;
        Ok(rustix::fs::mkdirat(
            folder,
            name,
            Mode::from_raw_mode(0o700),
        )?)
    }

    fn create_file(&self, below: &Utf8Path, mode: u32) -> io::Result<Box<dyn NewFile>> {
        let (folder, name) = self.reach(below)?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(0o600))?;
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode & 0o777))?;
        Ok(Box::new(OpenFile(file.into())))
    }

    fn symlink(&self, target: &str, below: &Utf8Path) -> io::Result<()> {
        let (folder, name) = self.reach(below)?;
        Ok(rustix::fs::symlinkat(target, folder, name)?)
    }

    fn link_within(&self, existing: &Utf8Path, below: &Utf8Path) -> io::Result<()> {
        let (from, original) = self.reach(existing)?;
        let (to, name) = self.reach(below)?;
        Ok(rustix::fs::linkat(
            from,
            original,
            to,
            name,
            AtFlags::empty(),
        )?)
    }

    fn link_from(&self, original: &Utf8Path, below: &Utf8Path) -> io::Result<()> {
        let (folder, name) = self.reach(below)?;
        Ok(rustix::fs::linkat(
            CWD,
            original.as_str(),
            folder,
            name,
            AtFlags::empty(),
        )?)
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
