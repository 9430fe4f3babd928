//! Reading a bundle that came from anywhere. Every byte is hashed, every name is checked, and nothing is
//! written: what is wrong with a bundle is known before anything changes.

use std::collections::BTreeMap;
use std::io::{self, Read};

use tar::EntryType;
use tough::schema::RoleType;

use super::super::metadata::limit;
use super::super::names::{METADATA, TIMESTAMP};
use super::export::Hashing;
use super::{BLOBS, BundleError, FORMAT, INDEX, Index};

/// The index names every file, with 64 letters each.
const LARGEST_INDEX: u64 = 64 << 20;
/// Together, in memory.
const LARGEST_METADATA: u64 = 256 << 20;
const MOST_ENTRIES: usize = 1_000_000;

/// A bundle whose every content is what its name says. Nothing says yet that anybody signed it.
#[derive(Debug, Default)]
pub struct Bundle {
    pub(super) metadata: BTreeMap<String, Vec<u8>>,
    /// By digest: where it begins in the file, and its length.
    pub(super) blobs: BTreeMap<String, (u64, u64)>,
}

/// Only the format, to say so when a newer one has other fields.
#[derive(serde::Deserialize)]
struct FormatOnly {
    format: u32,
}

/// Reads a whole bundle.
pub fn read_bundle(source: impl Read) -> Result<Bundle, BundleError> {
    let mut archive = tar::Archive::new(source);
    // Raw: an entry is what its own header says, and no header is longer than a block.
    let entries = archive.entries().map_err(read_error)?.raw(true);
    let mut bundle = Bundle::default();
    let mut index = None;
    let mut metadata_bytes = 0;
    for entry in entries {
        let entry = entry.map_err(read_error)?;
        let name = entry.path_bytes().into_owned();
        let name = String::from_utf8(name).map_err(|_| refused("?", "its name is not text"))?;
        if entry.header().entry_type() != EntryType::Regular {
            return Err(refused(&name, "it is not a plain file"));
        }
        let size = entry.header().entry_size().map_err(read_error)?;
        let Some(index) = &index else {
            index = Some(read_index(&name, size, entry)?);
            continue;
        };
        if let Some(name) = name.strip_prefix(&format!("{METADATA}/")) {
            metadata_bytes += size;
            if metadata_bytes > LARGEST_METADATA {
                return Err(refused(name, "there is too much metadata"));
            }
            let bytes = read_metadata(index, name, size, entry)?;
            insert(&mut bundle.metadata, name, bytes)?;
        } else if let Some(sha256) = name.strip_prefix(&format!("{BLOBS}/")) {
            let at = entry.raw_file_position();
            check_blob(index, sha256, size, entry)?;
            insert(&mut bundle.blobs, sha256, (at, size))?;
        } else {
            return Err(refused(&name, "bundles have no such file"));
        }
    }
    let index = index.ok_or_else(|| damaged("it is empty"))?;
    let complete =
        index.metadata.len() == bundle.metadata.len() && index.blobs.len() == bundle.blobs.len();
    if !complete {
        return Err(damaged("some of its files are missing"));
    }
    Ok(bundle)
}

fn read_index(name: &str, size: u64, entry: impl Read) -> Result<Index, BundleError> {
    if name != INDEX {
        return Err(damaged("it does not begin with an index"));
    }
    let bytes = capped(name, size, LARGEST_INDEX, entry)?;
    let index: Index =
        serde_json::from_slice(&bytes).map_err(|error| {
            match serde_json::from_slice::<FormatOnly>(&bytes) {
                Ok(FormatOnly { format }) if format != FORMAT => {
                    BundleError::Format { found: format }
                }
                _ => damaged(&format!("its index cannot be read: {error}")),
            }
        })?;
    if index.format != FORMAT {
        return Err(BundleError::Format {
            found: index.format,
        });
    }
    if index.metadata.len() + index.blobs.len() > MOST_ENTRIES {
        return Err(damaged("it has too many files"));
    }
    Ok(index)
}

fn read_metadata(
    index: &Index,
    name: &str,
    size: u64,
    entry: impl Read,
) -> Result<Vec<u8>, BundleError> {
    if !is_metadata_name(name) {
        return Err(refused(name, "this is not how metadata is called"));
    }
    if !index.metadata.iter().any(|there| there == name) {
        return Err(refused(name, "the index does not name it"));
    }
    capped(name, size, limit(RoleType::Targets), entry)
}

/// `timestamp.json`, or a version and a role.
fn is_metadata_name(name: &str) -> bool {
    name == TIMESTAMP
        || name.split_once('.').is_some_and(|(version, role)| {
            version
                .parse::<u64>()
                .is_ok_and(|number| number.to_string() == version)
                && matches!(role, "root.json" | "snapshot.json" | "targets.json")
        })
}

fn check_blob(index: &Index, sha256: &str, size: u64, entry: impl Read) -> Result<(), BundleError> {
    if index
        .blobs
        .binary_search_by(|there| there.as_str().cmp(sha256))
        .is_err()
    {
        return Err(refused(sha256, "the index does not name it"));
    }
    let mut hashing = Hashing::new(entry);
    let count = io::copy(&mut hashing, &mut io::sink()).map_err(read_error)?;
    if count != size {
        return Err(damaged("it ends in the middle of a file"));
    }
    let found = hashing.finish();
    if found != sha256 {
        return Err(BundleError::WrongHash {
            path: format!("{BLOBS}/{sha256}"),
            expected: sha256.to_owned(),
            found,
        });
    }
    Ok(())
}

fn capped(name: &str, size: u64, limit: u64, entry: impl Read) -> Result<Vec<u8>, BundleError> {
    if size > limit {
        return Err(refused(name, "it is too large"));
    }
    let mut bytes = Vec::new();
    entry
        .take(limit)
        .read_to_end(&mut bytes)
        .map_err(read_error)?;
    if bytes.len() as u64 != size {
        return Err(damaged("it ends in the middle of a file"));
    }
    Ok(bytes)
}

fn insert<T>(map: &mut BTreeMap<String, T>, name: &str, value: T) -> Result<(), BundleError> {
    if map.insert(name.to_owned(), value).is_some() {
        return Err(refused(name, "it is there twice"));
    }
    Ok(())
}

fn damaged(reason: &str) -> BundleError {
    BundleError::Damaged {
        reason: reason.to_owned(),
    }
}

fn refused(name: &str, reason: &'static str) -> BundleError {
    BundleError::Refused {
        name: name.escape_debug().take(200).collect(),
        reason,
    }
}

fn read_error(source: io::Error) -> BundleError {
    match source.kind() {
        // What the archive itself says is wrong with it.
        io::ErrorKind::Other | io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => {
            damaged(&source.to_string())
        }
        _ => BundleError::Read { source },
    }
}
