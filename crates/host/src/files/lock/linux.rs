//! Locks by `flock`: they belong to the open file, so threads of one process exclude each other too.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use camino::Utf8Path;
use rustix::fs::{FlockOperation, OFlags, flock};

use super::super::steps::LockGuard;

#[derive(Debug)]
struct Flock {
    /// Closing it releases the lock.
    _file: File,
}

impl LockGuard for Flock {}

pub(in super::super) fn try_lock(path: &Utf8Path) -> io::Result<Option<Box<dyn LockGuard>>> {
    let mut file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o644)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    if !is_still_there(&file, path)? {
        return Ok(None);
    }
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(super::content().as_bytes())?;
    Ok(Some(Box::new(Flock { _file: file })))
}

/// Whoever removed the file in between would let a second process lock a new one of the same name.
fn is_still_there(file: &File, path: &Utf8Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match std::fs::symlink_metadata(path) {
        Ok(there) => Ok(there.dev() == ours.dev() && there.ino() == ours.ino()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
