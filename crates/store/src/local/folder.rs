//! The folder of a store: its lock, its format, and whether it was ever complete.
//!
//! A file says which format the database has. While the database is being made it says that too, so a
//! start that died is told from a store that lost its file, and only the former is begun again.

use std::{io, sync::Arc, time::Duration};

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::files::{Access, FileError, FileLock, Files, Native};

use crate::{StoreError, absolute};

const KNOWN: u32 = 1;
const MAKING: &str = "making";
const LONGEST_FORMAT: u64 = 64;
/// A store that was closed a moment ago may still be letting go.
const PATIENCE: Duration = Duration::from_secs(1);

/// A folder that belongs to this process.
pub(super) struct Folder {
    path: Utf8PathBuf,
    pub(super) lock: Arc<FileLock>,
}

/// What a folder has in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// No store yet.
    Nothing,
    /// One that was never complete, so that nobody can have relied on it.
    Unfinished,
    Store,
}

impl Folder {
    /// Takes the folder, which is made if needed.
    pub(super) fn take(path: &Utf8Path) -> Result<Self, StoreError> {
        let path = absolute(path)?;
        Native
            .create_dir_all(&path)
            .map_err(|error| files("create", &path, io::Error::other(error)))?;
        let place = path.join("lock");
        let lock = Native.lock(&place, PATIENCE).map_err(|error| match error {
            FileError::Locked { .. } => StoreError::InUse {
                folder: path.clone(),
            },
            error => files("lock", &place, io::Error::other(error)),
        })?;
        Ok(Self {
            path,
            lock: Arc::new(lock),
        })
    }

    pub(super) fn database(&self) -> Utf8PathBuf {
        self.path.join("data")
    }

    fn format(&self) -> Utf8PathBuf {
        self.path.join("format")
    }

    pub(super) fn look(&self) -> Result<Found, StoreError> {
        let format = self.format();
        let text = match Native.read(&format, LONGEST_FORMAT) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(FileError::NotFound { .. }) => {
                return match Native.metadata(&self.database()) {
                    Err(FileError::NotFound { .. }) => Ok(Found::Nothing),
                    _ => Err(self.damaged("it has no format file")),
                };
            }
            Err(error) => return Err(files("read", &format, io::Error::other(error))),
        };
        let mut words = text.split_whitespace();
        let found = words.next().and_then(|word| word.parse().ok());
        let found: u32 = found.ok_or_else(|| self.damaged("its format file cannot be read"))?;
        if found > KNOWN {
            return Err(StoreError::NewerFormat {
                folder: self.path.clone(),
                found,
                known: KNOWN,
            });
        }
        match words.next() {
            Some(MAKING) => Ok(Found::Unfinished),
            Some(_) => Err(self.damaged("its format file cannot be read")),
            None => Ok(Found::Store),
        }
    }

    /// Says that a store is being made here, and removes what an earlier try left.
    pub(super) fn begin(&self) -> Result<(), StoreError> {
        self.write(&format!("{KNOWN} {MAKING}\n"))?;
        let database = self.database();
        Native
            .remove_tree(&database)
            .map_err(|error| files("remove", &database, io::Error::other(error)))
    }

    /// Says that the store is complete.
    pub(super) fn complete(&self) -> Result<(), StoreError> {
        self.write(&format!("{KNOWN}\n"))
    }

    fn write(&self, text: &str) -> Result<(), StoreError> {
        let format = self.format();
        Native
            .write_durable(&format, text.as_bytes(), Access::Public)
            .map_err(|error| files("write", &format, io::Error::other(error)))
    }

    pub(super) fn damaged(&self, reason: &str) -> StoreError {
        StoreError::Damaged {
            place: self.path.to_string(),
            reason: reason.to_owned(),
        }
    }
}

/// Whether nothing is in a folder, or it does not exist.
pub(super) fn is_empty(path: &Utf8Path) -> Result<bool, StoreError> {
    match Native.names(&absolute(path)?) {
        Ok(names) => Ok(names.is_empty()),
        Err(FileError::NotFound { .. }) => Ok(true),
        Err(error) => Err(files("list", path, io::Error::other(error))),
    }
}

pub(super) fn files(action: &'static str, path: &Utf8Path, source: io::Error) -> StoreError {
    StoreError::Files {
        action,
        path: path.to_owned(),
        source,
    }
}
