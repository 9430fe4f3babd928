//! Taking a bundle into a folder, which becomes a mirror of the repository that made it. The whole
//! bundle is checked first. Then archives are written, then metadata, `timestamp.json` last: whoever is
//! interrupted begins again and skips what is there.

use std::io::{Read, Seek as _, SeekFrom, Write as _};

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use tough::schema::{RoleType, Root};
use transom_host::files::{Access, Files as _, Native, fault};

use super::super::editor::{folder_url, read, take_lock, write};
use super::super::metadata::{Held, limit};
use super::super::names::{METADATA, MIRROR, PACKAGE_LISTS, PACKAGES, TIMESTAMP, below};
use super::super::source::Memory;
use super::super::trust::{self, Clock, Forget, Seen, Trusted, root_name, succeed};
use super::super::{Entry, RepositoryError, TrustedRoot};
use super::export::Hashing;
use super::read::Bundle;
use super::{BundleError, read_bundle};
use crate::download::{DigestError, Downloader, digest_file};
use crate::hash::hex;

const MIRROR_NOTE: &[u8] = b"{\"format\": 1}\n";

/// What came of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// What the bundle held.
    pub entries: Vec<Entry>,
    /// How much of that was there before.
    pub already: usize,
}

/// Takes a bundle into a folder. `root` is whom to trust; without it, the repository that the folder is
/// already. `copied` is called before each archive.
pub async fn import(
    bundle: &Utf8Path,
    folder: &Utf8Path,
    downloader: &Downloader,
    root: Option<&TrustedRoot>,
    now: Timestamp,
    copied: &(dyn Fn(&Entry) + Send + Sync),
) -> Result<Imported, BundleError> {
    let mut file = fs_err::File::open(bundle).map_err(|source| BundleError::Read { source })?;
    let content = read_bundle(std::io::BufReader::new(&mut file))?;
    // Looked at twice: before anything is made, and again when nobody else can change it.
    let before = existing(folder, downloader).await?;
    judge(&content, folder, root, before, now).await?;
    Native.create_dir_all(folder)?;
    let lock = take_lock(folder)?;
    let before = existing(folder, downloader).await?;
    let (trusted, entries) = judge(&content, folder, root, before, now).await?;
    let already = store_all(&mut file, &content, folder, &entries, copied)?;
    publish(folder, &content, &trusted)?;
    lock.release();
    Ok(Imported { entries, already })
}

/// What the folder is already, if it is a repository.
async fn existing(
    folder: &Utf8Path,
    downloader: &Downloader,
) -> Result<Option<Trusted>, BundleError> {
    if Native
        .metadata(&folder.join(METADATA).join(TIMESTAMP))
        .is_err()
    {
        return Ok(None);
    }
    let base = folder_url(folder)?;
    Ok(Some(read(downloader, &base).await?))
}

/// Whether the bundle is signed by whom we trust, not older than what is there, and holds nothing that
/// was not signed. Returns what it holds.
async fn judge(
    bundle: &Bundle,
    folder: &Utf8Path,
    root: Option<&TrustedRoot>,
    before: Option<Trusted>,
    now: Timestamp,
) -> Result<(Trusted, Vec<Entry>), BundleError> {
    let (known, seen) = match before {
        None => (None, Seen::default()),
        Some(before) => (
            Some(before.root),
            Seen {
                timestamp: Some(before.timestamp),
                snapshot: Some(before.snapshot),
            },
        ),
    };
    let start = match (root, known) {
        (Some(root), _) => given_root(bundle, root)?,
        (None, Some(known)) => known,
        (None, None) => {
            return Err(BundleError::NoRoot {
                folder: folder.to_owned(),
            });
        }
    };
    let source = Memory {
        files: bundle.metadata.clone(),
        shown: "the bundle".to_owned(),
    };
    let trusted = trust::load(&source, start, &seen, Clock::At(now), &mut Forget).await?;
    check_roots(bundle, &trusted)?;
    let entries: Vec<Entry> = trusted
        .entries
        .iter()
        .filter(|entry| {
            let blob = bundle.blobs.get(entry.sha256());
            blob.is_some_and(|(_, length)| *length == entry.length())
        })
        .cloned()
        .collect();
    for sha256 in bundle.blobs.keys() {
        if !entries.iter().any(|entry| entry.sha256() == sha256) {
            return Err(BundleError::Unnamed {
                sha256: sha256.clone(),
            });
        }
    }
    Ok((trusted, entries))
}

fn given_root(bundle: &Bundle, root: &TrustedRoot) -> Result<Held<Root>, BundleError> {
    let bytes = match root {
        TrustedRoot::File(path) => Native.read(path, limit(RoleType::Root)).map_err(|source| {
            RepositoryError::TrustedRoot {
                path: path.clone(),
                source,
            }
        })?,
        TrustedRoot::Sha256(pin) => bundle
            .metadata
            .iter()
            .filter(|(name, _)| name.ends_with(".root.json"))
            .map(|(_, bytes)| bytes)
            .find(|bytes| hex(&Sha256::digest(bytes)) == pin.to_ascii_lowercase())
            .ok_or_else(|| RepositoryError::WrongPin {
                sha256: pin.clone(),
            })?
            .clone(),
    };
    Ok(Held::parse("root.json", bytes)?)
}

/// All roots of the bundle make one chain, which ends in the one we trust.
fn check_roots(bundle: &Bundle, trusted: &Trusted) -> Result<(), BundleError> {
    let mut before: Option<Held<Root>> = None;
    for version in 1..=trusted.root.version() {
        let name = root_name(version);
        let Some(bytes) = bundle.metadata.get(&name) else {
            return Err(BundleError::Damaged {
                reason: format!("it has no `{name}`"),
            });
        };
        let root = Held::<Root>::parse(&name, bytes.clone())?;
        if let Some(before) = &before {
            succeed(before, &root)?;
        }
        before = Some(root);
    }
    if before.is_some_and(|last| last.bytes == trusted.root.bytes) {
        return Ok(());
    }
    Err(RepositoryError::invalid("root.json", "there are two of the same version").into())
}

/// Writes what is missing and returns how much was there.
fn store_all(
    file: &mut fs_err::File,
    bundle: &Bundle,
    folder: &Utf8Path,
    entries: &[Entry],
    copied: &(dyn Fn(&Entry) + Send + Sync),
) -> Result<usize, BundleError> {
    let mut missing = Vec::new();
    for entry in entries {
        let path = below(folder, &entry.path());
        match digest_file(&path) {
            Ok(found) if found.sha256 == entry.sha256() => {}
            Ok(_) | Err(DigestError::Missing { .. }) => missing.push((path, entry)),
            Err(error) => return Err(error.into()),
        }
    }
    let needed = missing.iter().map(|(_, entry)| entry.length()).sum();
    let available = Native.free_space(folder)?.available;
    if needed > available {
        return Err(BundleError::Space {
            path: folder.to_owned(),
            needed,
            available,
        });
    }
    let already = entries.len() - missing.len();
    for (path, entry) in missing {
        copied(entry);
        if let Some((at, length)) = bundle.blobs.get(entry.sha256()) {
            store(file, *at, *length, &path, entry)?;
        }
    }
    Ok(already)
}

/// Copies one content out of the bundle and gives it its name when it is right, still.
fn store(
    bundle: &mut fs_err::File,
    at: u64,
    length: u64,
    path: &Utf8Path,
    entry: &Entry,
) -> Result<(), BundleError> {
    let temporary = Utf8PathBuf::from(format!("{path}.part"));
    let failed = |source| BundleError::Write {
        path: temporary.clone(),
        source,
    };
    if let Some(folder) = path.parent() {
        Native.create_dir_all(folder)?;
    }
    bundle
        .seek(SeekFrom::Start(at))
        .map_err(|source| BundleError::Read { source })?;
    let mut content = Hashing::new(bundle.take(length));
    fault::point("import.blob.create").map_err(failed)?;
    let mut part = fs_err::File::create(&temporary).map_err(failed)?;
    fault::point("import.blob.content").map_err(failed)?;
    std::io::copy(&mut content, &mut part).map_err(failed)?;
    part.flush().map_err(failed)?;
    fault::point("import.blob.sync").map_err(failed)?;
    part.sync_all().map_err(failed)?;
    drop(part);
    let found = content.finish();
    if found != entry.sha256() {
        Native.remove_file(&temporary)?;
        return Err(BundleError::WrongHash {
            path: entry.path(),
            expected: entry.sha256().to_owned(),
            found,
        });
    }
    Native.replace(&temporary, path)?;
    Ok(())
}

/// Writes the metadata. Until the timestamp is there, readers see what was there before.
fn publish(folder: &Utf8Path, bundle: &Bundle, trusted: &Trusted) -> Result<(), BundleError> {
    for name in [METADATA, PACKAGES, PACKAGE_LISTS] {
        Native.create_dir_all(&folder.join(name))?;
    }
    Native.sweep_temporaries(&folder.join(METADATA))?;
    if Native.metadata(&folder.join(MIRROR)).is_err() {
        Native.write_durable(&folder.join(MIRROR), MIRROR_NOTE, Access::Public)?;
    }
    let versioned = bundle
        .metadata
        .iter()
        .filter(|(name, _)| name.as_str() != TIMESTAMP);
    for (name, bytes) in versioned {
        let path = folder.join(METADATA).join(name);
        let there = Native.read(&path, limit(RoleType::Targets));
        if !there.is_ok_and(|there| there == *bytes) {
            write(folder, name, bytes)?;
        }
    }
    write(folder, TIMESTAMP, &trusted.timestamp.bytes)?;
    Ok(())
}
