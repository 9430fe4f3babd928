//! Files: atomic, durable, lockable, and safe to unpack into. The operations are written once, over
//! the steps of a system; `Native` does the steps on this machine, `fake::FakeFiles` in memory.
//! Whatever returned `Ok` survives a crash; whatever failed left the old content or all of the new.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod memory_linux;
#[cfg(target_os = "linux")]
mod mounts_linux;
#[cfg(windows)]
mod removal_windows;
#[cfg(windows)]
mod rename_windows;
#[cfg(windows)]
mod windows;
#[cfg(target_os = "linux")]
pub use linux::LinuxFiles as Native;
#[cfg(target_os = "linux")]
use linux::die_abruptly;
#[cfg(windows)]
pub use windows::WindowsFiles as Native;
#[cfg(windows)]
use windows::die_abruptly;

mod anchor;
pub mod archive;
pub mod crash_walk;
mod durable;
mod error;
pub mod fake;
pub mod fault;
mod holders;
mod links;
mod lock;
mod metadata;
mod operations;
pub mod path;
mod removal;
mod retry;
mod staging;
mod steps;
mod tree;

use std::fmt::Debug;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use transom_model::os::Os;

pub use durable::is_temporary;
pub use error::FileError;
pub use holders::{Holder, Holders};
pub use lock::FileLock;
pub use metadata::{Access, Entry, Inodes, Kind, Metadata, Named, Space};
pub use removal::Discarded;
pub use staging::{StagedFile, Staging};
pub use tree::How;

/// The files of one machine. Paths are absolute, in the spelling of that machine's system.
pub trait Files: Debug + Send + Sync {
    /// The system whose rules the paths follow.
    fn os(&self) -> Os;

    /// Reads a whole file, following links. A file above `limit` bytes is an error, never cut off.
    fn read(&self, path: &Utf8Path, limit: u64) -> Result<Vec<u8>, FileError>;
    /// Describes what is at `path` itself: a link is described, not followed.
    fn metadata(&self, path: &Utf8Path) -> Result<Metadata, FileError>;
    /// The entries of a folder, sorted by name.
    fn list(&self, folder: &Utf8Path) -> Result<Vec<Entry>, FileError>;
    /// The names in a folder and what each is, sorted by name: cheaper than [`Files::list`] by one
    /// question to the system for every entry.
    fn names(&self, folder: &Utf8Path) -> Result<Vec<Named>, FileError>;
    /// Where a link points, as it was given when the link was made.
    fn read_link(&self, link: &Utf8Path) -> Result<Utf8PathBuf, FileError>;

    /// Makes a folder and the missing ones above it, durably. Succeeds if it is there already.
    fn create_dir_all(&self, folder: &Utf8Path) -> Result<(), FileError>;
    /// Puts `bytes` at `path` in one instant: at every moment, also across a crash, a reader finds
    /// all of the old content or all of the new. A link at `path` is replaced, not followed. A failure
    /// leaves the old content, but for one to sync the folder: then the new is there and may be lost.
    fn write_durable(&self, path: &Utf8Path, bytes: &[u8], access: Access)
    -> Result<(), FileError>;
    /// Moves a file or link onto another name in the same file system, in one instant and durably.
    /// What was there is gone.
    fn replace(&self, from: &Utf8Path, to: &Utf8Path) -> Result<(), FileError>;
    /// Moves a folder to a name that must be free, in one instant and durably.
    fn rename_dir(&self, from: &Utf8Path, to: &Utf8Path) -> Result<(), FileError>;
    /// Makes the names in a folder survive a crash.
    fn sync_dir(&self, folder: &Utf8Path) -> Result<(), FileError>;
    /// Removes what a crash of ours left in `folder` and returns what that was. Only names made by us
    /// match. Call it while no other process of ours writes there: at start, or under its lock.
    fn sweep_temporaries(&self, folder: &Utf8Path) -> Result<Vec<Utf8PathBuf>, FileError>;

    /// Starts to build a folder that nobody sees until it is complete. `destination` must be free.
    fn stage<'a>(&'a self, destination: &Utf8Path) -> Result<Staging<'a>, FileError>;
    /// Copies the folder `from` with all below it to the free name `to`. Modes are kept, links are
    /// copied as links and never followed; `to` is there completely and durably, or not at all.
    ///
    /// # Platform behavior
    /// A tree that contains links is refused on Windows with `NotSupported`.
    fn copy_tree(&self, from: &Utf8Path, to: &Utf8Path, how: How) -> Result<(), FileError>;

    /// Gives a file a second name. `link` must be free.
    fn link_file(&self, original: &Utf8Path, link: &Utf8Path) -> Result<(), FileError>;
    /// Makes `link` lead to the folder `target`. `link` must be free.
    ///
    /// # Platform behavior
    /// A symbolic link on Linux, a junction on Windows. The effect is verified: where the system
    /// refuses, or says yes and does nothing, the error is `NotSupported`.
    fn link_dir(&self, target: &Utf8Path, link: &Utf8Path) -> Result<(), FileError>;
    /// Makes `link` lead to `target`, whatever folder it led to before. Only a link is replaced.
    ///
    /// # Platform behavior
    /// One instant on Linux. On Windows the old junction is removed first, so a crash may leave no
    /// link: keep the truth elsewhere and derive the link from it.
    fn replace_link(&self, target: &Utf8Path, link: &Utf8Path) -> Result<(), FileError>;

    /// Removes a file or a link. Succeeds if nothing is there.
    fn remove_file(&self, path: &Utf8Path) -> Result<(), FileError>;
    /// Removes whatever is at `path` with all below it, following no link. Succeeds if nothing is
    /// there. Entries in use are retried for about a second; the error names who holds them. Not one
    /// instant: a crash may leave a part, so rename what others look at before removing it. What is mounted
    /// inside of it is taken off and stays where it came from.
    fn remove_tree(&self, path: &Utf8Path) -> Result<(), FileError>;
    /// Removes a file, a link or a folder so that at every moment, also across a crash, all of it is
    /// there under its name or nothing is: it gets a temporary name first, which a sweep knows. What
    /// cannot be renamed stays untouched, with an error that names who holds it. Succeeds if nothing
    /// is there.
    fn discard(&self, path: &Utf8Path) -> Result<Discarded, FileError>;
    /// Who has `path` open, runs from it or works in it.
    fn holders(&self, path: &Utf8Path) -> Holders;

    /// Takes an exclusive lock, waiting at most `wait`. The lock file is made if needed and stays; the
    /// lock ends when the value is dropped or its process dies.
    fn lock(&self, path: &Utf8Path, wait: Duration) -> Result<FileLock, FileError>;
    /// Makes a folder whose content, at most `limit` bytes, is only in memory and gone with the machine's power.
    /// A folder that has content already is left as it is. [`Files::remove_tree`] ends it.
    ///
    /// # Platform behavior
    /// A `tmpfs` on Linux, for which one has to be root: `Denied`. Windows has none: `NotSupported`.
    fn ensure_memory_folder(&self, folder: &Utf8Path, limit: Option<u64>) -> Result<(), FileError>;
    /// Makes `place`, which is ours, show what is at `below` in `folder`, where others may write: they cannot make it
    /// show anything else afterwards. No link on the way is followed; folders that are missing there are made.
    /// [`Files::remove_tree`] of a folder around `place` ends it and leaves `folder` as it is.
    ///
    /// # Platform behavior
    /// A bind mount on Linux, for which one has to be root: `Denied`. Windows has none: `NotSupported`.
    fn pin(&self, folder: &Utf8Path, below: &Utf8Path, place: &Utf8Path) -> Result<(), FileError>;
    /// The space of the file system that holds `path`.
    fn free_space(&self, path: &Utf8Path) -> Result<Space, FileError>;
}
