//! One installer at a time: a lock file that the system releases when its holder dies, however it dies.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::console;

/// Longer than any install takes on two slow cores.
const PATIENCE: Duration = Duration::from_mins(45);

/// Held until dropped.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "held, not read")] File);

impl Lock {
    /// Waits for its turn, and says so.
    pub(crate) fn take(folder: &Path) -> Result<Self> {
        Self::take_within(folder, PATIENCE)
    }

    fn take_within(folder: &Path, patience: Duration) -> Result<Self> {
        fs_err::create_dir_all(folder)?;
        let path = folder.join("installing.lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .with_context(|| format!("could not open {}", path.display()))?;
        let end = Instant::now() + patience;
        let mut told = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::WouldBlock) if Instant::now() < end => {}
                Err(TryLockError::WouldBlock) => {
                    bail!(
                        "another `cargo xtask` holds {} for too long",
                        path.display()
                    )
                }
                Err(TryLockError::Error(error)) => {
                    return Err(error)
                        .with_context(|| format!("could not lock {}", path.display()));
                }
            }
            if !told {
                console::line("  waiting for another `cargo xtask` to finish its installs");
                told = true;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_waits_for_the_first_and_not_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let first = Lock::take(folder.path()).unwrap();
        let short = Duration::from_millis(50);
        assert!(Lock::take_within(folder.path(), short).is_err());
        drop(first);
        assert!(Lock::take_within(folder.path(), short).is_ok());
    }
}
