//! Hashes `extra/` folders: the content of every file under its path with `/`, on every system. Modes and
//! linked folders are not covered, as in pkgpanda. Files of all folders are hashed side by side.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use sha1::{Digest as _, Sha1};

use crate::hash::{HashError, Item, hex};

/// How much of a file is read at once.
const CHUNK: usize = 128 << 10;

/// A folder deeper than this is a circle.
const DEPTH: usize = 128;

/// Why a folder has no hash.
#[derive(Debug, thiserror::Error)]
pub enum ExtraError {
    #[error("could not read {path}")]
    Read {
        path: Utf8PathBuf,
        source: io::Error,
    },
    #[error("{path} is not a file, a folder or a link to one")]
    Special { path: Utf8PathBuf },
    #[error("{folder} holds a name that is not UTF-8 text: {name}")]
    NotText { folder: Utf8PathBuf, name: String },
    #[error("{path} is nested too deeply")]
    TooDeep { path: Utf8PathBuf },
    #[error("{path} is not a folder")]
    NotAFolder { path: Utf8PathBuf },
    #[error("could not be hashed")]
    Hash(#[from] HashError),
}

/// What a folder holds: files by path, and the paths of empty folders.
#[derive(Debug, Default)]
struct Listing {
    files: Vec<(String, Utf8PathBuf)>,
    empty: Vec<String>,
}

/// Hashes several folders at once.
pub fn hash_folders(folders: &[Utf8PathBuf]) -> Vec<Result<String, ExtraError>> {
    let listings: Vec<Result<Listing, ExtraError>> =
        folders.iter().map(|folder| list(folder)).collect();
    let files: Vec<&Utf8Path> = listings
        .iter()
        .flatten()
        .flat_map(|listing| &listing.files)
        .map(|(_, path)| path.as_path())
        .collect();
    let mut digests = hash_files(&files).into_iter();
    listings
        .into_iter()
        .map(|listing| {
            let listing = listing?;
            let mut entries = BTreeMap::new();
            // All digests of this folder are taken, also after one that failed.
            let own: Vec<_> = digests.by_ref().take(listing.files.len()).collect();
            for ((name, _), digest) in listing.files.into_iter().zip(own) {
                entries.insert(name, Item::Text(digest?));
            }
            for name in listing.empty {
                entries.insert(name, Item::text(""));
            }
            Ok(Item::Object(entries).hash()?)
        })
        .collect()
}

/// The SHA-1 of a file.
pub(super) fn hash_file(path: &Utf8Path) -> Result<String, ExtraError> {
    let read = || -> io::Result<String> {
        let mut file = fs::File::open(path)?;
        let mut hasher = Sha1::new();
        let mut buffer = vec![0; CHUNK];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(hex(&hasher.finalize())),
                count => hasher.update(&buffer[..count]),
            }
        }
    };
    read().map_err(|source| ExtraError::Read {
        path: path.to_owned(),
        source,
    })
}

/// The digests of `files`, in their order.
fn hash_files(files: &[&Utf8Path]) -> Vec<Result<String, ExtraError>> {
    let threads = std::thread::available_parallelism()
        .map_or(1, std::num::NonZero::get)
        .min(files.len());
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(files.len()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut own = Vec::new();
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)).copied() {
                    own.push((file, hash_file(file)));
                }
                done.lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner)
                    .extend(own);
            });
        }
    });
    let mut done = done
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .into_iter()
        .collect::<BTreeMap<_, _>>();
    files
        .iter()
        .map(|file| {
            done.remove(file).unwrap_or_else(|| {
                // The same file may stand in several lists only if it is named twice.
                hash_file(file)
            })
        })
        .collect()
}

fn list(folder: &Utf8Path) -> Result<Listing, ExtraError> {
    let mut listing = Listing::default();
    if !folder.is_dir() {
        return Err(ExtraError::NotAFolder {
            path: folder.to_owned(),
        });
    }
    walk(folder, "", 0, &mut listing)?;
    Ok(listing)
}

fn walk(
    folder: &Utf8Path,
    prefix: &str,
    depth: usize,
    listing: &mut Listing,
) -> Result<(), ExtraError> {
    if depth > DEPTH {
        return Err(ExtraError::TooDeep {
            path: folder.to_owned(),
        });
    }
    let unreadable = |source| ExtraError::Read {
        path: folder.to_owned(),
        source,
    };
    let mut is_empty = true;
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        is_empty = false;
        let name = entry
            .file_name()
            .into_string()
            .map_err(|name| ExtraError::NotText {
                folder: folder.to_owned(),
                name: name.to_string_lossy().into_owned(),
            })?;
        let path = folder.join(&name);
        let name = format!("{prefix}{name}");
        let kind = entry.file_type().map_err(unreadable)?;
        if kind.is_dir() {
            walk(&path, &format!("{name}/"), depth + 1, listing)?;
        } else if kind.is_file() {
            listing.files.push((name, path));
        } else if kind.is_symlink() {
            // A linked folder counts for nothing but for its parent being not empty.
            let target = fs::metadata(&path).map_err(|source| ExtraError::Read {
                path: path.clone(),
                source,
            })?;
            if target.is_file() {
                listing.files.push((name, path));
            } else if !target.is_dir() {
                return Err(ExtraError::Special { path });
            }
        } else {
            return Err(ExtraError::Special { path });
        }
    }
    if is_empty && !prefix.is_empty() {
        listing.empty.push(prefix.trim_end_matches('/').to_owned());
    }
    Ok(())
}
