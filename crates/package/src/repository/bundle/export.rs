//! Writing a bundle. Each archive is checked while it is copied, so a damaged repository makes no
//! bundle; the file appears under its name when all of it is there.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write as _};

use camino::{Utf8Path, Utf8PathBuf};
use sha2::{Digest as _, Sha256};
use transom_host::files::{Files as _, Native};
use transom_model::package::PackageId;

use super::super::names::{METADATA, TIMESTAMP, below};
use super::super::trust::root_name;
use super::super::{Editor, Entry, PackageListId, RepositoryError};
use super::{BLOBS, BundleError, FORMAT, INDEX, Index, Selection};
use crate::hash::hex;

/// What went into a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    pub packages: usize,
    pub lists: usize,
    /// The size of the bundle.
    pub bytes: u64,
}

/// Writes a bundle of an open repository. `copied` is called before each archive.
pub fn export(
    editor: &Editor,
    selection: &Selection,
    output: &Utf8Path,
    copied: &(dyn Fn(&Entry) + Send + Sync),
) -> Result<Exported, BundleError> {
    let entries = select(editor, selection)?;
    let temporary = Utf8PathBuf::from(format!("{output}.part"));
    let written = write(editor, &entries, &temporary, copied);
    let bytes = match written {
        Ok(bytes) => bytes,
        Err(error) => {
            Native.remove_file(&temporary)?;
            return Err(error);
        }
    };
    Native.replace(&temporary, output)?;
    let lists = entries
        .values()
        .filter(|entry| matches!(entry, Entry::List(_)))
        .count();
    Ok(Exported {
        packages: entries.len() - lists,
        lists,
        bytes,
    })
}

/// The entries that were asked for, by path.
fn select(editor: &Editor, selection: &Selection) -> Result<BTreeMap<String, Entry>, BundleError> {
    let lists: BTreeMap<PackageListId, Vec<PackageId>> = editor.lists()?.into_iter().collect();
    let mut wanted: BTreeSet<&PackageId> = BTreeSet::new();
    for id in &selection.lists {
        let packages = lists
            .get(id)
            .ok_or_else(|| RepositoryError::NoSuchList { id: id.clone() })?;
        wanted.extend(packages);
    }
    // A mirror hands on what it has.
    let partial = editor.is_mirror();
    let is_wanted = |entry: &Entry| match entry {
        Entry::Package(package) => {
            (selection.systems.is_empty() || selection.systems.contains(&package.os))
                && (selection.lists.is_empty() || wanted.contains(&package.id))
        }
        Entry::List(list) => selection.lists.is_empty() || selection.lists.contains(&list.id),
    };
    Ok(editor
        .entries()
        .iter()
        .filter(|entry| is_wanted(entry))
        .filter(|entry| {
            !partial
                || Native
                    .metadata(&below(editor.folder(), &entry.path()))
                    .is_ok()
        })
        .map(|entry| (entry.path(), entry.clone()))
        .collect())
}

fn write(
    editor: &Editor,
    entries: &BTreeMap<String, Entry>,
    temporary: &Utf8Path,
    copied: &(dyn Fn(&Entry) + Send + Sync),
) -> Result<u64, BundleError> {
    let failed = |source: io::Error| BundleError::Write {
        path: temporary.to_owned(),
        source,
    };
    let metadata = metadata(editor)?;
    // The same content is in it once, under whatever names.
    let mut blobs: BTreeMap<&str, (&str, &Entry)> = BTreeMap::new();
    for (path, entry) in entries {
        blobs.entry(entry.sha256()).or_insert((path, entry));
    }
    let index = Index {
        format: FORMAT,
        metadata: metadata.iter().map(|(name, _)| name.clone()).collect(),
        blobs: blobs.keys().map(|&sha256| sha256.to_owned()).collect(),
    };
    let index = serde_json::to_vec(&index).map_err(|error| failed(error.into()))?;
    let file = fs_err::File::create(temporary).map_err(failed)?;
    let mut tar = tar::Builder::new(io::BufWriter::new(file));
    let mut append = |name: &str, length: u64, content: &mut dyn Read| {
        let mut header = tar::Header::new_ustar();
        header.set_path(name)?;
        header.set_size(length);
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_cksum();
        tar.append(&header, content)
    };
    append(INDEX, index.len() as u64, &mut index.as_slice()).map_err(failed)?;
    for (name, bytes) in &metadata {
        let name = format!("{METADATA}/{name}");
        append(&name, bytes.len() as u64, &mut bytes.as_slice()).map_err(failed)?;
    }
    for (sha256, (path, entry)) in &blobs {
        copied(entry);
        let source = fs_err::File::open(below(editor.folder(), path))
            .map_err(|source| BundleError::Read { source })?;
        let mut hashing = Hashing::new(source.take(entry.length()));
        append(&format!("{BLOBS}/{sha256}"), entry.length(), &mut hashing).map_err(failed)?;
        let found = hashing.finish();
        if found != **sha256 {
            return Err(BundleError::WrongHash {
                path: (*path).to_owned(),
                expected: (*sha256).to_owned(),
                found,
            });
        }
    }
    let mut file = tar.into_inner().map_err(failed)?;
    file.flush().map_err(failed)?;
    let file = file
        .into_inner()
        .map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(failed)?;
    Ok(file.metadata().map_err(failed)?.len())
}

/// All roots, and the current rest, in the order in which they are checked.
fn metadata(editor: &Editor) -> Result<Vec<(String, Vec<u8>)>, BundleError> {
    let trusted = &editor.trusted;
    let mut names: Vec<String> = (1..=trusted.root.version()).map(root_name).collect();
    names.push(TIMESTAMP.to_owned());
    names.push(format!("{}.snapshot.json", trusted.snapshot.version()));
    names.push(format!("{}.targets.json", trusted.targets.version()));
    let folder = editor.folder().join(METADATA);
    let mut files = Vec::new();
    for name in names {
        let limit = super::super::metadata::limit(tough::schema::RoleType::Targets);
        let bytes = Native.read(&folder.join(&name), limit)?;
        files.push((name, bytes));
    }
    Ok(files)
}

/// Hashes what passes through.
pub(super) struct Hashing<R> {
    inner: R,
    hash: Sha256,
}

impl<R: Read> Hashing<R> {
    pub(super) fn new(inner: R) -> Self {
        Self {
            inner,
            hash: Sha256::new(),
        }
    }

    pub(super) fn finish(self) -> String {
        hex(&self.hash.finalize())
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hash.update(&buffer[..count]);
        Ok(count)
    }
}
