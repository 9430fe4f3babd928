//! Tar streams: plain, GNU (long names, sparse files) and PAX. Between two entries no more than a
//! mebibyte is read, so no header, however long it claims to be, fills the memory.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use tar::{Archive, Entry, EntryType};

use super::names::Refusal;
use super::unpacker::{Unpacker, damaged, refused};
use super::watcher::{Unwatched, Watcher};
use super::{ExtractError, Extraction, Summary};
use crate::files::Files;

/// Room for the headers of one entry: long names, extensions, sparse maps, padding.
const HEADER_BYTES: u64 = 1 << 20;

/// Unpacks a tar stream that is already decompressed. `archive_bytes` is its size before that, for the
/// ratio limit; without it only the absolute limits count. Times and owners in the archive are
/// ignored, and set-user-id bits dropped.
pub fn extract_tar(
    files: &dyn Files,
    stream: &mut dyn Read,
    archive_bytes: Option<u64>,
    job: &Extraction,
) -> Result<Summary, ExtractError> {
    extract_tar_watched(files, stream, archive_bytes, job, &mut Unwatched)
}

/// The same, under the eyes of a watcher.
pub fn extract_tar_watched(
    files: &dyn Files,
    stream: &mut dyn Read,
    archive_bytes: Option<u64>,
    job: &Extraction,
    watcher: &mut dyn Watcher,
) -> Result<Summary, ExtractError> {
    let mut unpacker = Unpacker::begin(files, job, archive_bytes, watcher)?;
    let meter = Rc::new(Meter::default());
    let mut archive = Archive::new(Metered {
        stream,
        meter: Rc::clone(&meter),
    });
    let mut entries = archive.entries().map_err(damaged)?;
    loop {
        meter.allowance.set(HEADER_BYTES);
        let Some(entry) = entries.next() else { break };
        let mut entry = entry.map_err(damaged)?;
        meter.allowance.set(u64::MAX);
        unpack(&mut unpacker, &mut entry)?;
    }
    // A whole archive ends in zeros; the mere end of the stream is where somebody cut it off.
    if meter.at_end.get() {
        return Err(ExtractError::CutOff);
    }
    // To the very end, so that a decompressor below checks its sum and a hash sees all bytes.
    meter.allowance.set(HEADER_BYTES);
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(damaged)?;
    unpacker.finish()
}

fn unpack(unpacker: &mut Unpacker, entry: &mut Entry<impl Read>) -> Result<(), ExtractError> {
    let kind = entry.header().entry_type();
    if kind == EntryType::XGlobalHeader {
        return skip_global_header(entry);
    }
    let raw = entry.path_bytes().into_owned();
    let shown = String::from_utf8_lossy(&raw).into_owned();
    if is_pax_sparse(entry)? {
        return Err(refused(&shown, Refusal::SparseFormat));
    }
    let mode = entry.header().mode().map_err(damaged)?;
    let Some(path) = unpacker.admit(&raw)? else {
        return match kind {
            EntryType::Directory => Ok(()),
            _ => Err(refused(&shown, Refusal::NoName)),
        };
    };
    match kind {
        EntryType::Directory => unpacker.dir(&path, mode),
        // Old archives say "folder" by a slash at the end only.
        EntryType::Regular if raw.ends_with(b"/") => unpacker.dir(&path, mode),
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
            let size = entry.size();
            unpacker.file(&path, mode, size, entry)
        }
        EntryType::Symlink => match entry.link_name_bytes() {
            Some(target) => unpacker.symlink(&path, &target),
            None => Err(refused(&shown, Refusal::LinkToNothing)),
        },
        EntryType::Link => match entry.link_name_bytes() {
            Some(existing) => unpacker.hard_link(&path, &existing),
            None => Err(refused(&shown, Refusal::LinkToNothing)),
        },
        _ => Err(refused(&shown, Refusal::NotContent)),
    }
}

/// Defaults for later entries; git writes its commit there. Nothing in it matters here.
fn skip_global_header(entry: &mut Entry<impl Read>) -> Result<(), ExtractError> {
    let skipped = io::copy(&mut entry.take(HEADER_BYTES + 1), &mut io::sink()).map_err(damaged)?;
    if skipped > HEADER_BYTES {
        return Err(refused("global header", Refusal::TooLong));
    }
    Ok(())
}

/// PAX describes sparse files by keys of its own, and then the content is not what it seems.
fn is_pax_sparse(entry: &mut Entry<impl Read>) -> Result<bool, ExtractError> {
    let Some(extensions) = entry.pax_extensions().map_err(damaged)? else {
        return Ok(false);
    };
    for extension in extensions {
        let extension = extension.map_err(damaged)?;
        if extension.key_bytes().starts_with(b"GNU.sparse.") {
            return Ok(true);
        }
    }
    Ok(false)
}

#[derive(Debug, Default)]
struct Meter {
    /// How many more bytes may be read.
    allowance: Cell<u64>,
    /// Whether the last read found the end of the stream.
    at_end: Cell<bool>,
}

struct Metered<'a> {
    stream: &'a mut dyn Read,
    meter: Rc<Meter>,
}

impl Read for Metered<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let allowance = self.meter.allowance.get();
        let room = usize::try_from(allowance).unwrap_or(usize::MAX);
        if room == 0 && !buffer.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "more than a mebibyte that is no content",
            ));
        }
        let most = buffer.len().min(room);
        let count = self.stream.read(&mut buffer[..most])?;
        self.meter.at_end.set(count == 0 && most > 0);
        if allowance != u64::MAX {
            self.meter.allowance.set(allowance - count as u64);
        }
        Ok(count)
    }
}
