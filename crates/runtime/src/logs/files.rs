//! Which files make up a log: the one at its path, and those that rotation put beside it.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::LogError;

/// A file that was renamed by a rotation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rotated {
    /// When. First, because files are sorted by it.
    pub(super) time: Timestamp,
    pub(super) path: Utf8PathBuf,
}

const FORMAT: &str = "%Y%m%d-%H%M%S.%3f";

/// What the log at `path` is called once it is rotated.
pub(super) fn rotated_name(path: &Utf8Path, time: Timestamp) -> Utf8PathBuf {
    let time = time.to_zoned(TimeZone::UTC).strftime(FORMAT);
    Utf8PathBuf::from(format!("{path}.{time}"))
}

/// The rotated files of a log, oldest first.
pub(super) async fn rotated(path: &Utf8Path) -> Result<Vec<Rotated>, LogError> {
    let failed = |source| LogError::Io {
        action: "list the folder of",
        path: path.to_owned(),
        source,
    };
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(Vec::new());
    };
    let mut entries = match fs_err::tokio::read_dir(folder).await {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut found = Vec::new();
    while let Some(entry) = entries.next_entry().await.map_err(failed)? {
        let Ok(entry) = entry.file_name().into_string() else {
            continue;
        };
        let time = entry
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('.'))
            .and_then(parse_time);
        if let Some(time) = time {
            let path = folder.join(entry);
            found.push(Rotated { time, path });
        }
    }
    found.sort();
    Ok(found)
}

fn parse_time(text: &str) -> Option<Timestamp> {
    let civil = jiff::civil::DateTime::strptime("%Y%m%d-%H%M%S.%f", text).ok()?;
    Some(civil.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// Opens a file of a log; `None` if it is not there (any more).
pub(super) async fn open(path: &Utf8Path) -> Result<Option<fs_err::tokio::File>, LogError> {
    match fs_err::tokio::File::open(path).await {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(LogError::Io {
            action: "open",
            path: path.to_owned(),
            source,
        }),
    }
}
