//! Archives as sources: unpacked without the one folder that all of it lies in.

use camino::Utf8Path;
use fs_err::File;
use transom_host::files::archive::{Extraction, Limits, extract_tar, extract_zip};
use transom_host::files::{Entry, Files, Kind, Native};
use uuid::Uuid;

use super::SourceError;
use crate::archive::{Format, ahead, default_limits};

/// Unpacks `archive` to `destination`, which must be free.
pub(super) fn extract(
    archive: &Utf8Path,
    work: &Utf8Path,
    destination: &Utf8Path,
) -> Result<(), SourceError> {
    let files = Native;
    let open_error = |source| SourceError::Open {
        path: archive.to_owned(),
        source,
    };
    let mut file = File::open(archive).map_err(open_error)?;
    let format = Format::of(&mut file).map_err(|source| SourceError::Format {
        path: archive.to_owned(),
        source,
    })?;
    let whole = work.join(format!("unpacked-{}", Uuid::new_v4().simple()));
    let job = Extraction {
        destination: whole.clone(),
        // It is this machine that works with it.
        target: files.os(),
        limits: Limits {
            // Sources are chosen by those who build, and some are full of zeros.
            ratio: 100_000,
            ..default_limits()
        },
    };
    let extracted = if format == Format::Zip {
        extract_zip(&files, std::io::BufReader::new(file), &job)
    } else {
        let size = file.metadata().map_err(open_error)?.len();
        ahead(file, format, |stream| {
            extract_tar(&files, stream, Some(size), &job)
        })
    };
    extracted.map_err(|source| SourceError::Extract {
        path: archive.to_owned(),
        source,
    })?;
    let placed = top(&files.list(&whole)?, format)
        .and_then(|name| Ok(files.rename_dir(&whole.join(name), destination)?));
    files.remove_tree(&whole)?;
    placed
}

/// The one folder. Files beside it are left out of a tar file, as tar does it; in a zip file they are
/// a mistake, as they always were.
fn top(entries: &[Entry], format: Format) -> Result<String, SourceError> {
    let folders: Vec<&Entry> = entries
        .iter()
        .filter(|entry| format == Format::Zip || entry.metadata.kind == Kind::Dir)
        .collect();
    match folders.as_slice() {
        [one] if one.metadata.kind == Kind::Dir => Ok(one.name.clone()),
        [] => Err(SourceError::NotOneFolder {
            found: "none".to_owned(),
        }),
        several => {
            let names: Vec<String> = several
                .iter()
                .take(5)
                .map(|entry| format!("`{}`", entry.name))
                .collect();
            Err(SourceError::NotOneFolder {
                found: names.join(", "),
            })
        }
    }
}
