//! Layers: archives that are laid over each other. Invariant: what reaches a [`Tree`] has a relative path
//! of plain names, and a layer is committed only if its content has the digest that its image names.

use std::fmt;
use std::io::{self, BufReader, Read};

use camino::Utf8Path;

use super::blobs::LARGEST_BLOB;
use super::digest::{Counted, Digest};

/// A layer with more entries than this is refused.
const MOST_ENTRIES: u64 = 4_000_000;
const LONGEST_PATH: usize = 4096;
const LARGEST_ATTRIBUTE: usize = 64 * 1024;

/// How layers are put on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A layer alone, with marks for what it removes from those below it.
    Overlay,
    /// On top of what is in the folder already.
    Flat,
}

/// Puts layers on disk in the way of a system.
pub trait Unpacker: Send + Sync + fmt::Debug {
    /// Begins in a folder that is there.
    fn begin(&self, folder: &Utf8Path, style: Style) -> io::Result<Box<dyn Tree>>;
    /// Removes a folder with unpacked layers, whatever its modes are.
    fn remove(&self, folder: &Utf8Path) -> io::Result<()>;
}

/// A folder that is being filled.
pub trait Tree {
    /// Adds an entry. A later entry of the same path takes the place of an earlier one.
    fn add(&mut self, entry: &Entry, content: &mut dyn Read) -> io::Result<()>;
    /// Makes all of it survive a crash.
    fn commit(self: Box<Self>) -> io::Result<()>;
}

/// One entry of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Relative, of plain names joined by `/`; empty for the root itself.
    pub path: Vec<u8>,
    pub kind: EntryKind,
    pub mode: u32,
    pub user: u32,
    pub group: u32,
    /// Seconds since 1970.
    pub modified: i64,
    pub attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    Folder,
    File,
    /// Where it leads: any text.
    Link(Vec<u8>),
    /// A second name for the file at this path, which is as clean as [`Entry::path`].
    HardLink(Vec<u8>),
    Character {
        major: u32,
        minor: u32,
    },
    Block {
        major: u32,
        minor: u32,
    },
    Pipe,
    /// Nothing is at this path any more.
    Removed,
    /// Nothing from below is in this folder any more.
    Opaque,
}

/// How a layer is packed, told by its first bytes: registries often name the wrong type.
fn decompressed<'a>(blob: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let mut blob = BufReader::with_capacity(256 * 1024, blob);
    let magic = io::BufRead::fill_buf(&mut blob)?;
    Ok(match magic {
        [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(blob)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(zstd::Decoder::with_buffer(blob)?),
        _ => Box::new(blob),
    })
}

/// Reads all of a packed layer into a tree, and checks that it is the one that was meant.
pub(super) fn unpack(blob: impl Read, diff_id: &Digest, tree: &mut dyn Tree) -> io::Result<()> {
    let mut content = Counted::new(decompressed(blob)?, LARGEST_BLOB);
    read_entries(&mut content, tree)?;
    io::copy(&mut content, &mut io::sink())?;
    let (actual, _) = content.finish();
    if actual == *diff_id {
        Ok(())
    } else {
        Err(invalid(format!("the layer {diff_id} unpacks to {actual}")))
    }
}

fn read_entries(content: impl Read, tree: &mut dyn Tree) -> io::Result<()> {
    let mut archive = tar::Archive::new(content);
    let mut count = 0;
    for entry in archive.entries()? {
        let mut entry = entry?;
        count += 1;
        if count > MOST_ENTRIES {
            return Err(invalid(format!(
                "a layer has more than {MOST_ENTRIES} entries"
            )));
        }
        if let Some(described) = describe(&mut entry)? {
            let path = String::from_utf8_lossy(&described.path).into_owned();
            tree.add(&described, &mut entry).map_err(|error| {
                io::Error::new(error.kind(), format!("unpack {path:?}: {error}"))
            })?;
        }
    }
    Ok(())
}

fn describe<R: Read>(entry: &mut tar::Entry<'_, R>) -> io::Result<Option<Entry>> {
    use tar::EntryType as T;
    let attributes = extended_attributes(entry)?;
    let path = clean(&entry.path_bytes())?;
    let header = entry.header();
    let device = || -> io::Result<(u32, u32)> {
        let (major, minor) = (header.device_major()?, header.device_minor()?);
        Ok((major.unwrap_or(0), minor.unwrap_or(0)))
    };
    let target = || {
        entry
            .link_name_bytes()
            .ok_or_else(|| invalid("a link leads nowhere"))
    };
    let kind = match header.entry_type() {
        T::Directory => EntryKind::Folder,
        T::Regular | T::Continuous | T::GNUSparse => EntryKind::File,
        T::Symlink => EntryKind::Link(target()?.into_owned()),
        T::Link => EntryKind::HardLink(clean(&target()?)?),
        T::Char => device().map(|(major, minor)| EntryKind::Character { major, minor })?,
        T::Block => device().map(|(major, minor)| EntryKind::Block { major, minor })?,
        T::Fifo => EntryKind::Pipe,
        T::XGlobalHeader => return Ok(None),
        other => {
            return Err(invalid(format!(
                "an entry has the unknown type {:?}",
                other.as_byte()
            )));
        }
    };
    let described = Entry {
        path,
        kind,
        mode: header.mode()? & 0o7777,
        user: number(header.uid()?)?,
        group: number(header.gid()?)?,
        modified: i64::try_from(header.mtime()?).unwrap_or(0),
        attributes,
    };
    Ok(Some(with_removals(described)))
}

/// Names that begin with `.wh.` stand for what is not there any more.
fn with_removals(mut entry: Entry) -> Entry {
    let (folder, name) = match entry.path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (entry.path[..=slash].to_vec(), &entry.path[slash + 1..]),
        None => (Vec::new(), &entry.path[..]),
    };
    if name == b".wh..wh..opq" {
        entry.path = folder.strip_suffix(b"/").unwrap_or(&folder).to_vec();
        entry.kind = EntryKind::Opaque;
    } else if let Some(hidden) = name.strip_prefix(b".wh.") {
        entry.path = [&folder, hidden].concat();
        entry.kind = EntryKind::Removed;
    }
    entry
}

/// A path inside a layer as plain names: no way up, no way out.
fn clean(path: &[u8]) -> io::Result<Vec<u8>> {
    if path.len() > LONGEST_PATH || path.contains(&0) {
        return Err(invalid("a path is too long or has a zero in it"));
    }
    let mut names = Vec::new();
    for name in path.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." => {
                let path = String::from_utf8_lossy(path);
                return Err(invalid(format!("the path {path:?} leads upwards")));
            }
            name => names.push(name),
        }
    }
    Ok(names.join(&b'/'))
}

/// Only what programs need: capabilities of files and attributes of users.
fn extended_attributes<R: Read>(
    entry: &mut tar::Entry<'_, R>,
) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut found = Vec::new();
    let Some(extensions) = entry.pax_extensions()? else {
        return Ok(found);
    };
    for extension in extensions {
        let extension = extension?;
        let Some(name) = extension.key_bytes().strip_prefix(b"SCHILY.xattr.") else {
            continue;
        };
        let value = extension.value_bytes();
        let is_wanted = name == b"security.capability" || name.starts_with(b"user.");
        if is_wanted && value.len() <= LARGEST_ATTRIBUTE {
            found.push((name.to_vec(), value.to_vec()));
        }
    }
    Ok(found)
}

fn number(value: u64) -> io::Result<u32> {
    u32::try_from(value).map_err(|_| invalid(format!("{value} is no number of a user or group")))
}

fn invalid(text: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.into())
}

#[cfg(test)]
mod tests;
