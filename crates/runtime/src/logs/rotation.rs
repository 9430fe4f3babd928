//! Keeps logs small: a file that has grown is renamed, its writer begins a new one, the oldest go.
//!
//! Invariant: whoever dies in the middle, the next call ends what was begun, and no entry is lost.

use std::io;

use camino::Utf8Path;
use jiff::{SignedDuration, Timestamp};
use transom_host::files::{FileError, Files, Native};

use super::{LogError, files};
use crate::RuntimeError;

/// How much of a log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// A file that has reached this is renamed.
    pub largest_file: u64,
    /// With the one that is written to. At least two: a rotated file is the only copy.
    pub most_files: usize,
}

impl Default for Rotation {
    fn default() -> Self {
        Self {
            largest_file: 10 << 20,
            most_files: 5,
        }
    }
}

/// Rotates the log at `path` if it is time, and says whether it did. `reopen` has its writer begin a new file.
pub async fn rotate(
    path: &Utf8Path,
    rotation: Rotation,
    now: Timestamp,
    reopen: impl AsyncFnOnce() -> Result<(), RuntimeError>,
) -> Result<bool, LogError> {
    let failed = |action, source| LogError::Io {
        action,
        path: path.to_owned(),
        source,
    };
    let mut rotated = files::rotated(path).await?;
    match fs_err::tokio::metadata(path).await {
        Ok(metadata) if metadata.len() < rotation.largest_file => return Ok(false),
        Ok(_) => {
            // Two rotations never share a name, whatever the clock says.
            let latest = rotated.last().map(|last| last.time);
            let time = latest.map_or(now, |last| now.max(last + SignedDuration::from_millis(1)));
            let to = files::rotated_name(path, time);
            let (old, new) = (path.to_owned(), to.clone());
            change("rotate", path, move || Native.replace(&old, &new)).await?;
            rotated.push(files::Rotated { time, path: to });
        }
        // Renamed before, by one of us who died before the writer was told.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !rotated.is_empty() => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(source) => return Err(failed("look at", source)),
    }
    reopen().await.map_err(|error| LogError::Reopen {
        path: path.to_owned(),
        cause: error.to_string(),
    })?;
    let keep = rotation.most_files.max(2) - 1;
    let surplus = rotated.len().saturating_sub(keep);
    for old in rotated.drain(..surplus) {
        let path = old.path.clone();
        change("remove", &old.path, move || Native.remove_file(&path)).await?;
    }
    Ok(true)
}

/// Changes files where waiting for a disk holds nobody up.
async fn change(
    action: &'static str,
    path: &Utf8Path,
    change: impl FnOnce() -> Result<(), FileError> + Send + 'static,
) -> Result<(), LogError> {
    let source = match tokio::task::spawn_blocking(change).await {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => io::Error::other(error),
        Err(error) => io::Error::other(error),
    };
    Err(LogError::Io {
        action,
        path: path.to_owned(),
        source,
    })
}
