//! Locks between processes. A lock is held by an open file, so the system releases it when its owner
//! dies; the file itself stays, because removing it would let two processes lock two files.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;
#[cfg(target_os = "linux")]
pub(super) use linux::try_lock;
#[cfg(windows)]
pub(super) use windows::try_lock;

use std::io::Read;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::error::At;
use super::steps::{Links, LockGuard, Steps};
use super::{FileError, fault};

const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// A process id and a newline.
const LONGEST_CONTENT: u64 = 16;

/// An exclusive lock, released when dropped or when the process dies.
#[derive(Debug)]
#[must_use = "the lock is released when this is dropped"]
pub struct FileLock {
    path: Utf8PathBuf,
    guard: Box<dyn LockGuard>,
}

impl FileLock {
    /// The lock file.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Gives the lock back, as dropping does, where a name reads better.
    pub fn release(self) {
        drop(self.guard);
    }
}

/// Neither system can wait for a lock with a time limit, so the waiting is a bounded poll.
pub(super) fn acquire(
    steps: &dyn Steps,
    path: &Utf8Path,
    wait: Duration,
) -> Result<FileLock, FileError> {
    fault::point("files.lock.take").at("lock", path)?;
    let mut waited = Duration::ZERO;
    let mut pause = FIRST_PAUSE;
    loop {
        if let Some(guard) = steps.try_lock(path).at("lock", path)? {
            return Ok(FileLock {
                path: path.to_owned(),
                guard,
            });
        }
        if waited >= wait {
            return Err(FileError::Locked {
                path: path.to_owned(),
                holder: steps.lock_holder(path),
                waited,
            });
        }
        let next = pause.min(wait.saturating_sub(waited));
        steps.pause(next);
        waited += next;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// What the holder writes into the file, so that others can name it.
fn content() -> String {
    format!("{}\n", std::process::id())
}

/// Reads back what [`content`] wrote. `None` while the holder has not written it yet.
pub(super) fn recorded_holder(steps: &dyn Steps, path: &Utf8Path) -> Option<u32> {
    let file = steps.open(path, Links::Follow).ok()?;
    let mut text = String::new();
    file.take(LONGEST_CONTENT).read_to_string(&mut text).ok()?;
    text.trim_end().parse().ok()
}
