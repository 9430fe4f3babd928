//! The steps on Linux. Nothing follows a link it was not asked to follow.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use transom_model::os::Os;

use super::anchor::FolderAnchor;
use super::steps::{Anchor, Links, LockGuard, NewFile, RemovalFailure, Steps};
use super::{
    Access, Holders, Inodes, Kind, Metadata, Named, Space, fault, holders, lock, memory_linux,
    mounts_linux,
};

/// The files of this Linux machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct LinuxFiles;

impl Steps for LinuxFiles {
    fn os(&self) -> Os {
        Os::Linux
    }

    fn metadata(&self, path: &Utf8Path) -> io::Result<Metadata> {
        std::fs::symlink_metadata(path).map(|metadata| describe(&metadata))
    }

    fn is_dir(&self, path: &Utf8Path) -> io::Result<bool> {
        std::fs::metadata(path).map(|metadata| metadata.is_dir())
    }

    fn open(&self, path: &Utf8Path, links: Links) -> io::Result<Box<dyn Read>> {
        let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        if links == Links::Refuse {
            flags |= OFlags::NOFOLLOW;
        }
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path)?;
        let kind = file.metadata()?.file_type();
        if kind.is_file() {
            Ok(Box::new(file))
        } else {
            Err(ErrorKind::IsADirectory.into())
        }
    }

    fn names(&self, folder: &Utf8Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let name = entry?.file_name().into_string().map_err(|name| {
                let reason = format!("the name {} is not Unicode", name.display());
                io::Error::new(ErrorKind::InvalidData, reason)
            })?;
            names.push(name);
        }
        Ok(names)
    }

    fn kinds(&self, folder: &Utf8Path) -> io::Result<Vec<Named>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(folder.as_str(), flags, Mode::empty())?;
        let mut found = Vec::new();
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                        Ok(found) => FileType::from_raw_mode(found.st_mode),
                        // Removed since its name was read.
                        Err(Errno::NOENT) => continue,
                        Err(error) => return Err(error.into()),
                    }
                }
                known => known,
            };
            found.push(Named {
                name: name.to_str().map_err(not_unicode)?.to_owned(),
                kind: match kind {
                    FileType::RegularFile => Kind::File,
                    FileType::Directory => Kind::Dir,
                    FileType::Symlink => Kind::Link,
                    _ => Kind::Other,
                },
            });
        }
        Ok(found)
    }

    fn read_link(&self, path: &Utf8Path) -> io::Result<Utf8PathBuf> {
        path.read_link_utf8()
    }

    fn make_dir(&self, path: &Utf8Path) -> io::Result<()> {
        Ok(rustix::fs::mkdir(
            path.as_str(),
            Mode::from_raw_mode(0o755),
        )?)
    }

    fn create_new(&self, path: &Utf8Path, access: Access) -> io::Result<Box<dyn NewFile>> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        // The umask has no say in what was asked for.
        rustix::fs::fchmod(&file, Mode::from_raw_mode(access.mode()))?;
        Ok(Box::new(OpenFile(file)))
    }

    fn rename_over(&self, from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
        Ok(rustix::fs::rename(from.as_str(), to.as_str())?)
    }

    fn rename_new(&self, from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
        let (from, to) = (from.as_str(), to.as_str());
        match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            // Some network file systems lack the flag. A plain rename then replaces nothing but an
            // empty folder, and the look before keeps it from that but for a race.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                if std::fs::symlink_metadata(to).is_ok() {
                    return Err(ErrorKind::AlreadyExists.into());
                }
                Ok(rustix::fs::rename(from, to)?)
            }
            result => Ok(result?),
        }
    }

    fn sync_dir(&self, folder: &Utf8Path) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(folder.as_str(), flags, Mode::empty())?;
        Ok(rustix::fs::fsync(folder)?)
    }

    fn hard_link(&self, original: &Utf8Path, link: &Utf8Path) -> io::Result<()> {
        let (original, link) = (original.as_str(), link.as_str());
        Ok(rustix::fs::linkat(
            CWD,
            original,
            CWD,
            link,
            AtFlags::empty(),
        )?)
    }

    fn link_dir(&self, target: &Utf8Path, link: &Utf8Path) -> io::Result<()> {
        Ok(rustix::fs::symlink(target.as_str(), link.as_str())?)
    }

    fn unlink(&self, path: &Utf8Path) -> io::Result<()> {
        Ok(rustix::fs::unlink(path.as_str())?)
    }

    fn remove_dir_tree(&self, path: &Utf8Path) -> Result<(), RemovalFailure> {
        let fail = |source: io::Error| RemovalFailure {
            path: path.to_owned(),
            source,
        };
        let folder = open_folder(CWD, path.as_str()).map_err(|error| fail(error.into()))?;
        empty_folder(&folder, path)?;
        fault::point("files.remove.entry").map_err(fail)?;
        match rustix::fs::rmdir(path.as_str()) {
            Err(Errno::BUSY) if memory_linux::unmount(&folder, path.as_std_path()) => {
                rustix::fs::rmdir(path.as_str())
            }
            result => result,
        }
        .map_err(|error| fail(error.into()))
    }

    fn anchor(&self, path: &Utf8Path) -> io::Result<Box<dyn Anchor>> {
        Ok(Box::new(FolderAnchor::create(path)?))
    }

    fn holders(&self, path: &Utf8Path) -> Holders {
        holders::holders(path)
    }

    fn try_lock(&self, path: &Utf8Path) -> io::Result<Option<Box<dyn LockGuard>>> {
        lock::try_lock(path)
    }

    fn lock_holder(&self, path: &Utf8Path) -> Option<u32> {
        lock::recorded_holder(self, path)
    }

    fn mount_memory(&self, folder: &Utf8Path, limit: Option<u64>) -> io::Result<()> {
        memory_linux::mount(folder, limit)
    }

    fn bind(&self, folder: &Utf8Path, below: &Utf8Path, place: &Utf8Path) -> io::Result<()> {
        mounts_linux::pin(folder, below, place)
    }

    fn free_space(&self, path: &Utf8Path) -> io::Result<Space> {
        let found = rustix::fs::statvfs(path.as_str())?;
        Ok(Space {
            total: found.f_blocks.saturating_mul(found.f_frsize),
            available: found.f_bavail.saturating_mul(found.f_frsize),
            // A file system that makes them as it goes tells none.
            inodes: (found.f_files > 0).then_some(Inodes {
                total: found.f_files,
                available: found.f_favail,
            }),
        })
    }

    fn pause(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

fn not_unicode(_: std::str::Utf8Error) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "it has a name that is not Unicode")
}

fn describe(metadata: &std::fs::Metadata) -> Metadata {
    let file_type = metadata.file_type();
    let kind = if file_type.is_symlink() {
        Kind::Link
    } else if file_type.is_dir() {
        Kind::Dir
    } else if file_type.is_file() {
        Kind::File
    } else {
        Kind::Other
    };
    Metadata {
        kind,
        length: if kind == Kind::File {
            metadata.len()
        } else {
            0
        },
        mode: Some(metadata.mode() & 0o7777),
        read_only: kind != Kind::Link && metadata.mode() & 0o222 == 0,
    }
}

/// A file being written.
#[derive(Debug)]
pub(super) struct OpenFile(pub(super) File);

impl NewFile for OpenFile {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_all()
    }

    /// One `syncfs` for the whole tree costs less than one `fsync` for each of its files.
    fn settle(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Opens a folder that must not be a link.
fn open_folder(
    at: impl std::os::fd::AsFd,
    name: impl rustix::path::Arg,
) -> rustix::io::Result<std::os::fd::OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, name, flags, Mode::empty())
}

/// Removes all below an open folder. Each level is entered through its parent's descriptor, so a
/// folder swapped for a link meanwhile is not followed. `path` is for messages only.
fn empty_folder(folder: &std::os::fd::OwnedFd, path: &Utf8Path) -> Result<(), RemovalFailure> {
    let here = |source: Errno| RemovalFailure {
        path: path.to_owned(),
        source: source.into(),
    };
    let entries = Dir::read_from(folder).map_err(here)?;
    for entry in entries {
        let entry = entry.map_err(here)?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let below = path.join(name.to_string_lossy().as_ref());
        let fail = |source: io::Error| RemovalFailure {
            path: below.clone(),
            source,
        };
        let is_folder = match entry.file_type() {
            FileType::Directory => true,
            FileType::Unknown => rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
                .map(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory)
                .map_err(|error| fail(error.into()))?,
            _ => false,
        };
        let flags = if is_folder {
            let open = || match open_folder(folder, name) {
                // What is mounted there belongs to others: it is taken off, not emptied.
                Ok(inner) if mounts_linux::is_top(&inner) => {
                    drop(inner);
                    if !mounts_linux::detach_below(folder, name) {
                        return Err(Errno::BUSY);
                    }
                    open_folder(folder, name)
                }
                result => result,
            };
            let inner = match open() {
                Ok(inner) => inner,
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(fail(error.into())),
            };
            empty_folder(&inner, &below)?;
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        };
        fault::point("files.remove.entry").map_err(fail)?;
        let removed = match rustix::fs::unlinkat(folder, name, flags) {
            // A read-only folder of our own must not keep us from removing what we made.
            Err(Errno::ACCESS) => rustix::fs::fchmod(folder, Mode::from_raw_mode(0o700))
                .and_then(|()| rustix::fs::unlinkat(folder, name, flags)),
            // A single file is shown there.
            Err(Errno::BUSY) if mounts_linux::detach_below(folder, name) => {
                rustix::fs::unlinkat(folder, name, flags)
            }
            result => result,
        };
        match removed {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(fail(error.into())),
        }
    }
    Ok(())
}

/// Ends this process so that no destructor runs and nothing is flushed.
pub(super) fn die_abruptly() -> ! {
    use rustix::process::{Signal, getpid, kill_process};
    loop {
        // A process may always signal itself; the signal cannot be caught.
        if kill_process(getpid(), Signal::KILL).is_err() {
            std::process::abort();
        }
    }
}
