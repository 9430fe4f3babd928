//! The single steps a system must know for the operations of [`Files`](super::Files) to be built on
//! it. The order of steps, and so what a crash may leave, is decided once in the portable files beside
//! this one; Linux, Windows and the fake implement only the steps.

use std::fmt::Debug;
use std::io::{self, Read};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use transom_model::os::Os;

use super::{Access, Holders, Metadata, Named, Space};

/// The steps of one system. Errors carry the `io::ErrorKind` that `FileError` sorts by; a sharing
/// violation is `ResourceBusy`.
pub(crate) trait Steps: Debug + Send + Sync {
    fn os(&self) -> Os;
    /// Does not follow a link at the end of `path`.
    fn metadata(&self, path: &Utf8Path) -> io::Result<Metadata>;
    /// Whether a folder is there, or a link that leads to one.
    fn is_dir(&self, path: &Utf8Path) -> io::Result<bool>;
    /// Opens a regular file; anything else is an error, and nothing blocks.
    fn open(&self, path: &Utf8Path, links: Links) -> io::Result<Box<dyn Read>>;
    /// Unsorted, without `.` and `..`.
    fn names(&self, folder: &Utf8Path) -> io::Result<Vec<String>>;
    /// The same names, with what each is.
    fn kinds(&self, folder: &Utf8Path) -> io::Result<Vec<Named>>;
    fn read_link(&self, path: &Utf8Path) -> io::Result<Utf8PathBuf>;
    fn make_dir(&self, path: &Utf8Path) -> io::Result<()>;
    /// Creates a file that did not exist, readable by nobody it should not be at any instant.
    fn create_new(&self, path: &Utf8Path, access: Access) -> io::Result<Box<dyn NewFile>>;
    /// Puts a file or link in place of whatever file or link is at `to`, in one instant.
    fn rename_over(&self, from: &Utf8Path, to: &Utf8Path) -> io::Result<()>;
    /// Moves anything to a name that must be free.
    fn rename_new(&self, from: &Utf8Path, to: &Utf8Path) -> io::Result<()>;
    /// Makes the names in a folder survive a crash.
    fn sync_dir(&self, folder: &Utf8Path) -> io::Result<()>;
    fn hard_link(&self, original: &Utf8Path, link: &Utf8Path) -> io::Result<()>;
    /// A symbolic link on Linux, a junction on Windows.
    fn link_dir(&self, target: &Utf8Path, link: &Utf8Path) -> io::Result<()>;
    /// Removes a file or a link, also a read-only one, also a link to a folder; not a folder.
    fn unlink(&self, path: &Utf8Path) -> io::Result<()>;
    /// Removes a folder and all below it, following nothing.
    fn remove_dir_tree(&self, path: &Utf8Path) -> Result<(), RemovalFailure>;
    /// Makes a new folder only we can enter, and holds on to it.
    fn anchor(&self, path: &Utf8Path) -> io::Result<Box<dyn Anchor>>;
    fn holders(&self, path: &Utf8Path) -> Holders;
    /// Takes the lock if nobody has it, and writes our process id into the file.
    fn try_lock(&self, path: &Utf8Path) -> io::Result<Option<Box<dyn LockGuard>>>;
    /// Who wrote itself into a lock file.
    fn lock_holder(&self, path: &Utf8Path) -> Option<u32>;
    /// Puts an empty file system that is only in memory over an empty folder; one that is there stays.
    fn mount_memory(&self, folder: &Utf8Path, limit: Option<u64>) -> io::Result<()>;
    /// Makes `place`, whose folder is there, show what is at `below` in `folder`, without following links below it.
    fn bind(&self, folder: &Utf8Path, below: &Utf8Path, place: &Utf8Path) -> io::Result<()>;
    fn free_space(&self, path: &Utf8Path) -> io::Result<Space>;
    /// Lets time pass before the next attempt.
    fn pause(&self, duration: Duration);
}

/// Whether a link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    Follow,
    Refuse,
}

/// Which entry of a tree could not be removed.
#[derive(Debug)]
pub(crate) struct RemovalFailure {
    pub(crate) path: Utf8PathBuf,
    pub(crate) source: io::Error,
}

/// A file being written for the first time.
pub(crate) trait NewFile: Debug + Send {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Makes the content survive a crash, now.
    fn sync(&mut self) -> io::Result<()>;
    /// Makes the content survive a crash where `Anchor::sync_all` would not do it later.
    fn settle(&mut self) -> io::Result<()>;
}

/// Gives the lock back when dropped.
pub(crate) trait LockGuard: Debug + Send + Sync {}

/// A folder held open, so that what is made below it lands below it even when somebody renames or
/// replaces parts of its path. Paths are relative, of plain names joined by `/`.
pub(crate) trait Anchor: Debug + Send {
    fn make_dir(&self, below: &Utf8Path) -> io::Result<()>;
    fn create_file(&self, below: &Utf8Path, mode: u32) -> io::Result<Box<dyn NewFile>>;
    fn symlink(&self, target: &str, below: &Utf8Path) -> io::Result<()>;
    /// Gives a second name to a file made below this anchor.
    fn link_within(&self, existing: &Utf8Path, below: &Utf8Path) -> io::Result<()>;
    /// Gives a second name to a file from elsewhere, not following it if it is a link.
    fn link_from(&self, original: &Utf8Path, below: &Utf8Path) -> io::Result<()>;
    /// The anchor itself is the empty path.
    fn set_dir_mode(&self, below: &Utf8Path, mode: u32) -> io::Result<()>;
    /// Makes all that was made below survive a crash.
    fn sync_all(&self) -> io::Result<()>;
}
