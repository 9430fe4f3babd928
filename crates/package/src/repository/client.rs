//! What nodes and builds use of a repository. A client is made only of metadata that was checked from
//! the pinned root on; what it learnt stays on the node, so that nobody can show it an older state.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use tough::schema::{RoleType, Root};
use transom_host::files::{Access, FileError, FileLock, Files as _, Native};
use transom_model::Os;
use transom_model::package::PackageId;
use url::Url;

use super::metadata::{Held, limit};
use super::source::{Remote, Source};
use super::trust::{self, Clock, Keeper, MOST_ROOTS, Seen, Trusted, root_name};
use super::{Entry, ListEntry, PackageEntry, PackageListId, RepositoryError, names};
use crate::download::{Digest, DownloadError, Downloaded, Downloader, Listener, Request};
use crate::hash::hex;

/// Another process of this node is reading the same repository at most so long.
const LOCK_WAIT: Duration = Duration::from_mins(2);
const PIN: &str = "pinned-root.sha256";
/// So many names are suggested.
const MOST_NAMES: usize = 3;
/// From here on a name is similar.
const SIMILAR: f64 = 0.75;

/// What a node trusts from the beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustedRoot {
    /// A file that came to the node by a way that is trusted.
    File(Utf8PathBuf),
    /// The SHA-256 digest of one of the repository's roots.
    Sha256(String),
}

/// A repository, as its metadata was when it was opened.
#[derive(Debug)]
pub struct RepositoryClient {
    downloader: Downloader,
    base: Url,
    trusted: Trusted,
}

impl RepositoryClient {
    /// Reads and checks the metadata at `base`. The folder `datastore` is made if it is missing; it
    /// belongs to this repository alone.
    pub async fn open(
        downloader: &Downloader,
        base: &Url,
        root: &TrustedRoot,
        datastore: &Utf8Path,
        now: Timestamp,
    ) -> Result<Self, RepositoryError> {
        let source = Remote { downloader, base };
        let mut datastore = Datastore::open(datastore).await?;
        let (pin, root) = datastore.start(&source, root).await?;
        let seen = datastore.seen();
        datastore.pin(&pin)?;
        let trusted = trust::load(&source, root, &seen, Clock::At(now), &mut datastore).await?;
        Ok(Self {
            downloader: downloader.clone(),
            base: base.clone(),
            trusted,
        })
    }

    /// All archives, sorted by id and system.
    pub fn packages(&self) -> impl Iterator<Item = &PackageEntry> {
        self.trusted.entries.iter().filter_map(|entry| match entry {
            Entry::Package(package) => Some(package),
            Entry::List(_) => None,
        })
    }

    /// All package lists.
    pub fn lists(&self) -> impl Iterator<Item = &ListEntry> {
        self.trusted.entries.iter().filter_map(|entry| match entry {
            Entry::List(list) => Some(list),
            Entry::Package(_) => None,
        })
    }

    /// The archive of a package. One that somebody vouched for is preferred.
    pub fn find(&self, id: &PackageId, os: Os) -> Result<&PackageEntry, RepositoryError> {
        self.packages()
            .filter(|package| package.id == *id && package.os == os)
            .min_by_key(|package| (package.unsigned, package.form))
            .ok_or_else(|| RepositoryError::NotInRepository {
                id: id.clone(),
                os,
                near: self.near(id, os),
            })
    }

    /// What the repository has instead.
    fn near(&self, id: &PackageId, os: Os) -> Vec<String> {
        let mut near: Vec<(f64, String)> = self
            .packages()
            .filter_map(|package| {
                let other_system = package.os != os;
                let name = if package.id == *id && other_system {
                    format!("{} for {}", package.id, package.os)
                } else if other_system {
                    return None;
                } else {
                    package.id.to_string()
                };
                let likeness = strsim::jaro_winkler(package.id.as_str(), id.as_str());
                (likeness >= SIMILAR).then_some((-likeness, name))
            })
            .collect();
        near.sort_by(|left, right| left.0.total_cmp(&right.0).then(left.1.cmp(&right.1)));
        near.into_iter()
            .map(|(_, name)| name)
            .take(MOST_NAMES)
            .collect()
    }

    /// Fetches the archive of a package to a file.
    pub async fn fetch(
        &self,
        id: &PackageId,
        os: Os,
        destination: &Utf8Path,
        listener: Listener<'_>,
    ) -> Result<Downloaded, RepositoryError> {
        let package = self.find(id, os)?;
        let request = Request {
            url: names::join(&self.base, &package.path()),
            destination: destination.to_owned(),
            digest: Some(Digest::Sha256(package.sha256.clone())),
            length: Some(package.length),
            limit: package.length,
        };
        self.downloader
            .fetch(&request, listener)
            .await
            .map_err(|error| fetch_error(package.path(), error))
    }

    /// The packages of a list.
    pub async fn package_list(
        &self,
        id: &PackageListId,
    ) -> Result<Vec<PackageId>, RepositoryError> {
        let list = self
            .lists()
            .find(|list| list.id == *id)
            .ok_or_else(|| RepositoryError::NoSuchList { id: id.clone() })?;
        let path = names::package_list_path(id);
        let bytes = self
            .downloader
            .read(&names::join(&self.base, &path), list.length)
            .await
            .map_err(|error| fetch_error(path.clone(), error))?;
        let found = hex(&Sha256::digest(&bytes));
        if found != list.sha256 {
            return Err(RepositoryError::WrongHash {
                file: path,
                expected: list.sha256.clone(),
                found,
            });
        }
        parse_list(&path, &bytes)
    }

    /// When the first of its metadata expires, and which.
    pub fn expires(&self) -> (RoleType, Timestamp) {
        let Trusted {
            root,
            timestamp,
            snapshot,
            targets,
            ..
        } = &self.trusted;
        let mut first = (RoleType::Root, root.signed.signed.expires);
        for (role, expires) in [
            (RoleType::Timestamp, timestamp.signed.signed.expires),
            (RoleType::Snapshot, snapshot.signed.signed.expires),
            (RoleType::Targets, targets.signed.signed.expires),
        ] {
            if expires < first.1 {
                first = (role, expires);
            }
        }
        first
    }
}

/// Reads the content of a package list.
pub(super) fn parse_list(path: &str, bytes: &[u8]) -> Result<Vec<PackageId>, RepositoryError> {
    serde_json::from_slice(bytes).map_err(|source| RepositoryError::Malformed {
        file: path.to_owned(),
        source,
    })
}

/// Sorts why an archive or a list could not be fetched.
pub(super) fn fetch_error(path: String, error: DownloadError) -> RepositoryError {
    match error {
        DownloadError::NotFound { .. } => RepositoryError::Absent { path },
        DownloadError::Digest {
            expected, found, ..
        } => RepositoryError::WrongHash {
            file: path,
            expected,
            found,
        },
        error @ DownloadError::Unreachable { .. } => RepositoryError::Unreachable {
            url: path,
            source: Box::new(error),
        },
        error => RepositoryError::Fetch {
            path,
            source: Box::new(error),
        },
    }
}

/// What this node has seen of a repository.
#[derive(Debug)]
struct Datastore {
    folder: Utf8PathBuf,
    _lock: FileLock,
}

impl Datastore {
    async fn open(folder: &Utf8Path) -> Result<Self, RepositoryError> {
        let folder = folder.to_owned();
        let opened = tokio::task::spawn_blocking(move || -> Result<Self, FileError> {
            Native.create_dir_all(&folder)?;
            let lock = Native.lock(&folder.join(names::LOCK), LOCK_WAIT)?;
            Native.sweep_temporaries(&folder)?;
            Ok(Self {
                folder,
                _lock: lock,
            })
        });
        match opened.await {
            Ok(opened) => Ok(opened?),
            Err(_) => Err(RepositoryError::invalid(
                "datastore",
                "the program is ending",
            )),
        }
    }

    /// The root to begin with: the newest that was reached from the same pin, or the pinned one. Also
    /// the digest of the pinned one.
    async fn start(
        &self,
        source: &impl Source,
        root: &TrustedRoot,
    ) -> Result<(String, Held<Root>), RepositoryError> {
        let given = match root {
            TrustedRoot::Sha256(_) => None,
            TrustedRoot::File(path) => {
                let bytes = Native.read(path, limit(RoleType::Root)).map_err(|source| {
                    RepositoryError::TrustedRoot {
                        path: path.clone(),
                        source,
                    }
                })?;
                Some(bytes)
            }
        };
        let pin = match (root, &given) {
            (TrustedRoot::Sha256(pin), _) => pin.to_ascii_lowercase(),
            (TrustedRoot::File(_), bytes) => {
                hex(&Sha256::digest(bytes.as_deref().unwrap_or_default()))
            }
        };
        if self.read(PIN) == Some(pin.clone().into_bytes())
            && let Some(bytes) = self.read(&file_of(RoleType::Root))
            && let Ok(root) = Held::parse("root.json", bytes)
        {
            return Ok((pin, root));
        }
        let bytes = match given {
            Some(bytes) => bytes,
            None => pinned_root(source, &pin).await?,
        };
        Ok((pin, Held::parse("root.json", bytes)?))
    }

    fn pin(&self, pin: &str) -> Result<(), RepositoryError> {
        if self.read(PIN).as_deref() != Some(pin.as_bytes()) {
            // A root of another pin must not be taken for one of this.
            Native.remove_file(&self.folder.join(file_of(RoleType::Root)))?;
            self.write(PIN, pin.as_bytes())?;
        }
        Ok(())
    }

    /// What cannot be read was not seen: whoever can damage these files owns the node.
    fn seen(&self) -> Seen {
        let parse = |role| self.read(&file_of(role));
        Seen {
            timestamp: parse(RoleType::Timestamp)
                .and_then(|bytes| Held::parse(names::TIMESTAMP, bytes).ok()),
            snapshot: parse(RoleType::Snapshot)
                .and_then(|bytes| Held::parse(trust::SNAPSHOT_META, bytes).ok()),
        }
    }

    fn read(&self, name: &str) -> Option<Vec<u8>> {
        let most = limit(RoleType::Targets);
        Native.read(&self.folder.join(name), most).ok()
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), RepositoryError> {
        let path = self.folder.join(name);
        Ok(Native.write_durable(&path, bytes, Access::Public)?)
    }
}

impl Keeper for Datastore {
    fn keep(&mut self, role: RoleType, bytes: &[u8]) -> Result<(), RepositoryError> {
        let name = file_of(role);
        if self.read(&name).as_deref() == Some(bytes) {
            return Ok(());
        }
        self.write(&name, bytes)
    }
}

fn file_of(role: RoleType) -> String {
    format!("{role}.json")
}

/// Looks through the roots for the one that was pinned. Until it is found none of them is trusted.
async fn pinned_root(source: &impl Source, pin: &str) -> Result<Vec<u8>, RepositoryError> {
    for version in 1..=MOST_ROOTS {
        let name = root_name(version);
        match source.read(&name, limit(RoleType::Root)).await? {
            Some(bytes) if hex(&Sha256::digest(&bytes)) == pin => return Ok(bytes),
            Some(_) => {}
            None if version == 1 => {
                return Err(RepositoryError::NoRepository {
                    url: source.shown(),
                    missing: name,
                });
            }
            None => break,
        }
    }
    Err(RepositoryError::WrongPin {
        sha256: pin.to_owned(),
    })
}
