//! Zip files. What the central directory says is checked against what the content is; an archive that
//! names a file twice is refused, because two readers would see two archives.

use std::io::{self, Read, Seek, SeekFrom};

use zip::ZipArchive;
use zip::read::ZipFile;
use zip::result::ZipError;

use super::names::Refusal;
use super::unpacker::{Unpacker, damaged, refused};
use super::watcher::{Unwatched, Watcher};
use super::{ExtractError, Extraction, Summary};
use crate::files::Files;

const FILE_MODE: u32 = 0o644;
const FOLDER_MODE: u32 = 0o755;
const KIND_MASK: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;
const LINK: u32 = 0o120_000;

/// Unpacks a zip file. Its directory is held in memory, so cap the size of the archive itself.
/// Times in the archive are ignored, and set-user-id bits dropped.
pub fn extract_zip<R: Read + Seek>(
    files: &dyn Files,
    archive: R,
    job: &Extraction,
) -> Result<Summary, ExtractError> {
    extract_zip_watched(files, archive, job, &mut Unwatched)
}

/// The same, under the eyes of a watcher.
pub fn extract_zip_watched<R: Read + Seek>(
    files: &dyn Files,
    mut archive: R,
    job: &Extraction,
    watcher: &mut dyn Watcher,
) -> Result<Summary, ExtractError> {
    let archive_bytes = archive.seek(SeekFrom::End(0)).map_err(damaged)?;
    let mut archive = ZipArchive::new(archive).map_err(unreadable)?;
    if archive.has_duplicate_names() {
        return Err(refused("central directory", Refusal::Duplicate));
    }
    let mut unpacker = Unpacker::begin(files, job, Some(archive_bytes), watcher)?;
    for index in 0..archive.len() {
        let entry = archive.by_index_data(index).map_err(unreadable)?;
        if entry.encrypted() {
            let shown = String::from_utf8_lossy(entry.name_raw()).into_owned();
            return Err(refused(&shown, Refusal::Encrypted));
        }
        let mut entry = archive.by_index(index).map_err(unreadable)?;
        unpack(&mut unpacker, &mut entry, job.limits.path_bytes)?;
    }
    unpacker.finish()
}

fn unpack<R: Read>(
    unpacker: &mut Unpacker,
    entry: &mut ZipFile<'_, R>,
    longest_target: usize,
) -> Result<(), ExtractError> {
    let raw = entry.name_raw().to_vec();
    let shown = String::from_utf8_lossy(&raw).into_owned();
    let is_dir = raw.ends_with(b"/") || raw.ends_with(b"\\");
    let mode = entry.unix_mode().unwrap_or(0);
    let permissions = |default: u32| match mode & 0o777 {
        0 => default,
        permissions => permissions,
    };
    let Some(path) = unpacker.admit(&raw)? else {
        return if is_dir {
            Ok(())
        } else {
            Err(refused(&shown, Refusal::NoName))
        };
    };
    match mode & KIND_MASK {
        _ if is_dir => unpacker.dir(&path, permissions(FOLDER_MODE)),
        FOLDER => unpacker.dir(&path, permissions(FOLDER_MODE)),
        0 | REGULAR => {
            let size = entry.size();
            unpacker.file(&path, permissions(FILE_MODE), size, entry)
        }
        LINK => {
            let mut target = Vec::new();
            let most = longest_target as u64 + 1;
            entry.take(most).read_to_end(&mut target).map_err(damaged)?;
            unpacker.symlink(&path, &target)
        }
        _ => Err(refused(&shown, Refusal::NotContent)),
    }
}

fn unreadable(error: ZipError) -> ExtractError {
    match error {
        ZipError::Io(source) => damaged(source),
        other => ExtractError::Damaged {
            source: io::Error::new(io::ErrorKind::InvalidData, other),
        },
    }
}
