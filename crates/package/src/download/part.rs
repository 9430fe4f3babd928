//! The part of a file that is there already. Its bytes are appended without a sync, so after a crash
//! they may be wrong: only what was read back and found right gets the final name.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use transom_host::files::{Access, FileError, FileLock, Files as _, fault};
use transom_model::Os;
use url::Url;

use super::{Digests, DownloadError, FILES, digest};
use crate::hash::hex;

/// Above this the file about the part is not ours.
const LONGEST_STATE: u64 = 1 << 16;

/// A file being fetched.
#[derive(Debug)]
pub(super) struct Part {
    destination: Utf8PathBuf,
    path: Utf8PathBuf,
    file: File,
    length: u64,
    state: Option<State>,
    /// Whether some bytes came from an earlier process or attempt.
    resumed: bool,
}

/// What must still be true of the server's file for the part to be of use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// The digest of the address, which may hold a secret itself.
    url_sha256: String,
    /// An entity tag or a date, as `If-Range` takes it.
    pub(super) validator: String,
    pub(super) total: Option<u64>,
}

impl State {
    pub(super) fn new(url: &Url, validator: String, total: Option<u64>) -> Self {
        Self {
            url_sha256: digest_of(url),
            validator,
            total,
        }
    }
}

fn digest_of(url: &Url) -> String {
    hex(&Sha256::digest(url.as_str()))
}

fn beside(destination: &Utf8Path, ending: &str) -> Utf8PathBuf {
    Utf8PathBuf::from(format!("{destination}{ending}"))
}

/// Runs what touches the disk where it blocks nobody.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DownloadError> + Send + 'static,
) -> Result<T, DownloadError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or(Err(DownloadError::Cancelled))
}

/// Two downloads of one file would write into each other's part.
pub(super) async fn lock(
    destination: Utf8PathBuf,
    wait: Duration,
) -> Result<FileLock, DownloadError> {
    blocking(move || {
        FILES
            .lock(&beside(&destination, ".lock"), wait)
            .map_err(|error| match error {
                FileError::Locked { waited, .. } => DownloadError::Busy {
                    path: destination,
                    waited,
                },
                error => error.into(),
            })
    })
    .await
}

/// Gives the lock back and takes its file away. Where an open file can be removed, that comes first:
/// whoever waits for the old file notices that it is not the one with the name any more. Elsewhere one
/// who waits keeps the file, and takes it away in the end.
pub(super) async fn unlock(destination: Utf8PathBuf, lock: FileLock) -> Result<(), DownloadError> {
    blocking(move || {
        let path = beside(&destination, ".lock");
        if FILES.os() == Os::Windows {
            lock.release();
            if let Err(error) = FILES.remove_file(&path) {
                tracing::debug!(%path, %error, "a lock file stays for another");
            }
        } else {
            FILES.remove_file(&path)?;
            lock.release();
        }
        Ok(())
    })
    .await
}

/// Takes away what a failed download left: all of it, or only what holds nothing.
pub(super) async fn clear(destination: Utf8PathBuf, all: bool) -> Result<(), DownloadError> {
    blocking(move || {
        let path = beside(&destination, ".part");
        let length = match FILES.metadata(&path) {
            Ok(metadata) => metadata.length,
            Err(FileError::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if all || length == 0 {
            FILES.remove_file(&path)?;
            FILES.remove_file(&beside(&path, ".json"))?;
        }
        Ok(())
    })
    .await
}

impl Part {
    /// Opens what is there, or begins.
    pub(super) async fn open(destination: Utf8PathBuf) -> Result<Self, DownloadError> {
        blocking(move || {
            let path = beside(&destination, ".part");
            let mut file = fault::point("download.part.open")
                .and_then(|()| open_plain(&path))
                .map_err(|source| write_error(&path, source))?;
            let length = file
                .seek(SeekFrom::End(0))
                .map_err(|source| write_error(&path, source))?;
            let state = read_state(&beside(&path, ".json"));
            Ok(Self {
                destination,
                path,
                file,
                length,
                state,
                resumed: length > 0,
            })
        })
        .await
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    pub(super) fn was_resumed(&self) -> bool {
        self.resumed
    }

    pub(super) fn folder(&self) -> &Utf8Path {
        self.destination
            .parent()
            .filter(|folder| !folder.as_str().is_empty())
            .unwrap_or(Utf8Path::new("."))
    }

    /// Where the server could go on, if its file is still the same.
    pub(super) fn resumable(&self, url: &Url) -> Option<&State> {
        self.state
            .as_ref()
            .filter(|state| self.length > 0 && state.url_sha256 == digest_of(url))
    }

    /// Forgets all bytes.
    pub(super) async fn restart(mut self) -> Result<Self, DownloadError> {
        blocking(move || {
            fault::point("download.part.truncate")
                .and_then(|()| self.file.set_len(0))
                .and_then(|()| self.file.rewind())
                .map_err(|source| write_error(&self.path, source))?;
            self.length = 0;
            self.resumed = false;
            Ok(self)
        })
        .await
    }

    /// Notes what the coming bytes belong to, before the first of them is written.
    pub(super) async fn remember(mut self, state: Option<State>) -> Result<Self, DownloadError> {
        blocking(move || {
            let path = beside(&self.path, ".json");
            match &state {
                None => FILES.remove_file(&path)?,
                Some(state) => {
                    let text = serde_json::to_vec(state).map_err(|error| {
                        write_error(&path, std::io::Error::other(error.to_string()))
                    })?;
                    FILES.write_durable(&path, &text, Access::Public)?;
                }
            }
            self.state = state;
            Ok(self)
        })
        .await
    }

    pub(super) async fn append(mut self, bytes: Vec<u8>) -> Result<Self, DownloadError> {
        blocking(move || {
            fault::point("download.part.append")
                .and_then(|()| self.file.write_all(&bytes))
                .map_err(|source| write_error(&self.path, source))?;
            self.length += bytes.len() as u64;
            Ok(self)
        })
        .await
    }

    /// The next attempt goes on with bytes of this one.
    pub(super) fn mark_resumed(&mut self) {
        self.resumed = true;
    }

    /// Makes the bytes durable and reads them back.
    pub(super) async fn settle(self) -> Result<(Self, Digests), DownloadError> {
        blocking(move || {
            fault::point("download.part.sync")
                .and_then(|()| self.file.sync_all())
                .map_err(|source| write_error(&self.path, source))?;
            let digests = digest::digest_file(&self.path)?;
            Ok((self, digests))
        })
        .await
    }

    /// Gives the file its name.
    pub(super) async fn publish(self) -> Result<(), DownloadError> {
        blocking(move || {
            let (path, destination) = self.close();
            FILES.replace(&path, &destination)?;
            FILES.remove_file(&beside(&path, ".json"))?;
            Ok(())
        })
        .await
    }

    /// Puts the content aside and says where.
    pub(super) async fn keep_as_corrupt(self) -> Result<Utf8PathBuf, DownloadError> {
        blocking(move || {
            let (path, destination) = self.close();
            let corrupt = beside(&destination, ".corrupt");
            FILES.replace(&path, &corrupt)?;
            FILES.remove_file(&beside(&path, ".json"))?;
            Ok(corrupt)
        })
        .await
    }

    /// An open file cannot be renamed everywhere.
    fn close(self) -> (Utf8PathBuf, Utf8PathBuf) {
        drop(self.file);
        (self.path, self.destination)
    }
}

fn open_plain(path: &Utf8Path) -> std::io::Result<File> {
    fs_err::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map(fs_err::File::into_file)
}

/// A file about the part that cannot be read means only that we start again.
fn read_state(path: &Utf8Path) -> Option<State> {
    let bytes = FILES.read(path, LONGEST_STATE).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn write_error(path: &Utf8Path, source: std::io::Error) -> DownloadError {
    DownloadError::Write {
        path: path.to_owned(),
        source,
    }
}
