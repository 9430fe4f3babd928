//! Putting archives and package lists into a repository, and taking them out. An id has one content for
//! ever: what is there under an id is never replaced by something else.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::files::{FileError, Files as _, Native};
use transom_model::package::PackageId;
use transom_model::{Arch, Os};
use url::Url;

use super::client::parse_list;
use super::editor::{Contents, Expiry};
use super::entry::LARGEST_LIST;
use super::keys::KeyRing;
use super::names::{LIST_SUFFIX, below};
use super::{
    EditError, Editor, Entry, Identity, ListEntry, PackageEntry, PackageListId, RepositoryError,
};
use crate::download::{Digest, Digests, Listener, Request, digest_file};

/// A file to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addition {
    /// An archive, or a package list.
    pub path: Utf8PathBuf,
    /// Whether it may come without a manifest of ours.
    pub unsigned: bool,
    /// For archives that do not say it themselves.
    pub os: Option<Os>,
    pub arch: Option<Arch>,
}

/// What became of an addition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    pub entry: Entry,
    /// It was there before, with the same content.
    pub already: bool,
}

impl Editor {
    /// Adds archives and package lists. All of them are seen by readers at once, or none.
    pub async fn add(
        &mut self,
        additions: &[Addition],
        keys: &KeyRing,
        expiry: Expiry,
        listener: Listener<'_>,
    ) -> Result<Vec<Added>, EditError> {
        let mut listed: BTreeMap<String, Entry> = self
            .entries()
            .iter()
            .map(|entry| (entry.path(), entry.clone()))
            .collect();
        let mut added = Vec::new();
        for addition in additions {
            let entry = describe(addition)?;
            let already = match listed.get(&entry.path()) {
                None => {
                    check_case(&listed, &entry)?;
                    listed.insert(entry.path(), entry.clone());
                    false
                }
                Some(there) if there.sha256() == entry.sha256() => true,
                Some(_) => return Err(different(entry)),
            };
            added.push(Added { entry, already });
        }
        for (addition, added) in additions.iter().zip(&added) {
            self.store(&addition.path, &added.entry, listener).await?;
        }
        if added.iter().any(|added| !added.already) {
            let contents = Contents::Replace(listed.into_values().collect());
            self.publish(keys, expiry, contents).await?;
        }
        Ok(added)
    }

    /// Copies a file to its place. Nobody looks there before the metadata says so.
    async fn store(
        &self,
        from: &Utf8Path,
        entry: &Entry,
        listener: Listener<'_>,
    ) -> Result<(), EditError> {
        let destination = below(&self.folder, &entry.path());
        if let Some(folder) = destination.parent() {
            Native.create_dir_all(folder)?;
            Native.sweep_temporaries(folder)?;
        }
        let request = Request {
            url: file_url(from)?,
            destination,
            digest: Some(Digest::Sha256(entry.sha256().to_owned())),
            length: Some(entry.length()),
            limit: entry.length(),
        };
        self.downloader.fetch(&request, listener).await?;
        Ok(())
    }

    /// Takes packages out of the metadata. Their archives stay for those who are fetching them, until
    /// they are collected. Returns what was taken out.
    pub async fn remove(
        &mut self,
        ids: &[PackageId],
        os: Option<Os>,
        force: bool,
        keys: &KeyRing,
        expiry: Expiry,
    ) -> Result<Vec<PackageEntry>, EditError> {
        let lists = self.lists()?;
        let mut removed = Vec::new();
        let mut kept = Vec::new();
        for entry in self.entries() {
            match entry {
                Entry::Package(package)
                    if ids.contains(&package.id) && os.is_none_or(|os| os == package.os) =>
                {
                    removed.push(package.clone());
                }
                entry => kept.push(entry.clone()),
            }
        }
        for id in ids {
            if !removed.iter().any(|package| package.id == *id) {
                return Err(RepositoryError::NotInRepository {
                    id: id.clone(),
                    os: os.unwrap_or(Os::Linux),
                    near: Vec::new(),
                }
                .into());
            }
            if let Some((list, _)) = lists.iter().find(|(_, packages)| packages.contains(id))
                && !force
            {
                return Err(EditError::Needed {
                    id: id.clone(),
                    list: list.clone(),
                });
            }
        }
        self.publish(keys, expiry, Contents::Replace(kept)).await?;
        Ok(removed)
    }

    /// The package lists with their packages. A mirror may lack some.
    pub fn lists(&self) -> Result<Vec<(PackageListId, Vec<PackageId>)>, EditError> {
        let mut lists = Vec::new();
        for entry in self.entries() {
            if let Entry::List(list) = entry {
                let path = entry.path();
                let bytes = match Native.read(&below(&self.folder, &path), LARGEST_LIST) {
                    Ok(bytes) => bytes,
                    Err(FileError::NotFound { .. }) if self.is_mirror() => continue,
                    Err(error) => return Err(error.into()),
                };
                lists.push((list.id.clone(), parse_list(&path, &bytes)?));
            }
        }
        Ok(lists)
    }
}

/// Finds out what a file is.
fn describe(addition: &Addition) -> Result<Entry, EditError> {
    let path = &addition.path;
    let name = path.file_name().unwrap_or_default();
    match name.strip_suffix(LIST_SUFFIX) {
        Some(named) => describe_list(addition, named),
        None => describe_package(addition),
    }
}

fn describe_package(addition: &Addition) -> Result<Entry, EditError> {
    let path = &addition.path;
    let identity = Identity::of(path).map_err(|source| EditError::Identity {
        path: path.clone(),
        source,
    })?;
    if !identity.has_manifest && !addition.unsigned {
        return Err(EditError::Unsigned { path: path.clone() });
    }
    let Digests { sha256, length, .. } = digest_file(path)?;
    let package = PackageEntry {
        id: identity.id,
        os: match addition.os {
            Some(os) if !identity.has_manifest => os,
            _ => identity.os,
        },
        arch: addition.arch,
        form: identity.form,
        unsigned: !identity.has_manifest,
        sha256,
        length,
    };
    // A file that is called like another package was mixed up by somebody.
    let ending = format!(".{}", package.form.extension());
    let named = path.file_name().unwrap_or_default();
    let named = named.strip_suffix(&ending).unwrap_or_default();
    let stored = package.path();
    let stored = stored.rsplit('/').next().unwrap_or_default();
    if PackageId::is_shape_of(named)
        && named != package.id.as_str()
        && Some(named) != stored.strip_suffix(&ending)
    {
        return Err(EditError::OtherName {
            path: path.clone(),
            named: named.to_owned(),
            id: package.id,
        });
    }
    Ok(Entry::Package(package))
}

fn describe_list(addition: &Addition, named: &str) -> Result<Entry, EditError> {
    let path = &addition.path;
    let unknown = |reason: String| EditError::Unknown {
        path: path.clone(),
        reason,
    };
    let bytes = Native.read(path, LARGEST_LIST)?;
    let packages = parse_list(path.as_str(), &bytes)?;
    let id = PackageListId::of(&packages);
    let named: PackageListId = named
        .parse()
        .map_err(|error| unknown(format!("{error}, and these packages make `{id}`")))?;
    if named != id && !addition.unsigned {
        return Err(EditError::WrongListId {
            path: path.clone(),
            named: named.to_string(),
            id,
        });
    }
    let Digests { sha256, length, .. } = digest_file(path)?;
    Ok(Entry::List(ListEntry {
        unsigned: named != id,
        id: named,
        sha256,
        length,
    }))
}

/// On Windows `Tool` and `tool` are one folder.
fn check_case(listed: &BTreeMap<String, Entry>, entry: &Entry) -> Result<(), EditError> {
    let Entry::Package(package) = entry else {
        return Ok(());
    };
    let folded = package.id.as_str().to_lowercase();
    let name = package.id.name_str().to_lowercase();
    for there in listed.values() {
        if let Entry::Package(there) = there {
            let same_folder = there.id.name_str().to_lowercase() == name
                && there.id.name_str() != package.id.name_str();
            let same_file = there.id.as_str().to_lowercase() == folded && there.id != package.id;
            if same_folder || same_file {
                return Err(EditError::SameButForCase {
                    id: package.id.clone(),
                    other: there.id.clone(),
                });
            }
        }
    }
    Ok(())
}

fn different(entry: Entry) -> EditError {
    match entry {
        Entry::Package(package) => EditError::Different {
            id: package.id,
            os: package.os,
        },
        Entry::List(list) => EditError::Unknown {
            path: names_of(&list).into(),
            reason: "the repository has another list of this id".to_owned(),
        },
    }
}

fn names_of(list: &ListEntry) -> String {
    super::names::package_list_path(&list.id)
}

fn file_url(path: &Utf8Path) -> Result<Url, EditError> {
    std::path::absolute(path)
        .ok()
        .and_then(|path| Url::from_file_path(path).ok())
        .ok_or_else(|| EditError::Unknown {
            path: path.to_owned(),
            reason: "it is no path of this machine".to_owned(),
        })
}
