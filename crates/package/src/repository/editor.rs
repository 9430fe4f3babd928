//! Changing a repository that is a folder. One editor at a time; new metadata goes to names that nobody
//! has read yet, and `timestamp.json` comes last, so a crash leaves what was there before.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp as Time;
use sha2::{Digest as _, Sha256};
use tough::schema::decoded::{Decoded, Hex};
use tough::schema::{Hashes, Metafile, Role, RoleType, Root, Signed, Snapshot, Targets, Timestamp};
use transom_host::files::{Access, FileError, FileLock, Files as _, Native};
use url::Url;

use super::entry::Entry;
use super::keys::KeyRing;
use super::metadata::{self, Held, SPECIFICATION, next_version};
use super::names::{LOCK, METADATA, MIRROR, PACKAGE_LISTS, PACKAGES, PENDING, TIMESTAMP, below};
use super::rotation::Keyholders;
use super::source::{Remote, Source as _};
use super::trust::{self, Clock, Forget, SNAPSHOT_META, Seen, TARGETS_META, Trusted, root_name};
use super::{EditError, RepositoryError};
use crate::download::Downloader;

/// Another editor works at most so long.
const LOCK_WAIT: Duration = Duration::from_mins(1);

/// How long new metadata is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry {
    pub root: Duration,
    /// Targets, snapshot and timestamp.
    pub others: Duration,
}

impl Default for Expiry {
    fn default() -> Self {
        const DAY: Duration = Duration::from_hours(24);
        Self {
            root: DAY * 365,
            others: DAY * 30,
        }
    }
}

impl Expiry {
    /// When metadata that is made now expires. Whole seconds, as TUF writes them.
    pub(super) fn at(self, role: RoleType, now: Time) -> Result<Time, EditError> {
        let good = match role {
            RoleType::Root => self.root,
            _ => self.others,
        };
        i64::try_from(good.as_secs())
            .ok()
            .and_then(|seconds| now.as_second().checked_add(seconds))
            .and_then(|second| Time::from_second(second).ok())
            .ok_or(EditError::Expiry { role })
    }
}

/// What a publication does to the targets.
pub(super) enum Contents {
    Replace(Vec<Entry>),
    Renew,
    /// Keys of this role may be kept elsewhere.
    RenewIfPossible,
    Keep,
}

/// A repository that this process alone may change.
#[derive(Debug)]
pub struct Editor {
    pub(super) folder: Utf8PathBuf,
    pub(super) base: Url,
    pub(super) downloader: Downloader,
    pub(super) now: Time,
    pub(super) trusted: Trusted,
    lock: FileLock,
}

impl Editor {
    /// Makes a repository. What an earlier try left without a timestamp is made again.
    pub async fn create(
        folder: &Utf8Path,
        downloader: &Downloader,
        now: Time,
        holders: &Keyholders,
        keys: &KeyRing,
        expiry: Expiry,
    ) -> Result<Self, EditError> {
        let root = holders.root(next_version(0), expiry.at(RoleType::Root, now)?)?;
        Native.create_dir_all(folder)?;
        let lock = take_lock(folder)?;
        if Native
            .metadata(&below(folder, METADATA).join(TIMESTAMP))
            .is_ok()
        {
            return Err(EditError::Exists {
                path: folder.to_owned(),
            });
        }
        for name in [METADATA, PACKAGES, PACKAGE_LISTS] {
            Native.create_dir_all(&folder.join(name))?;
        }
        let root = metadata::render(metadata::sign(root.clone(), &[&root], keys)?)?;
        write(folder, &root_name(1), &root.bytes)?;
        let empty = Draft {
            roots: &[&root.signed.signed],
            keys,
            expiry,
            now,
        };
        empty.publish(folder, None, Contents::Replace(Vec::new()))?;
        Self::load(folder, downloader, now, lock).await
    }

    /// Opens a repository for changes. Expired metadata is no obstacle, bad signatures are.
    pub async fn open(
        folder: &Utf8Path,
        downloader: &Downloader,
        now: Time,
    ) -> Result<Self, EditError> {
        if let Err(error @ FileError::NotFound { .. }) = Native.metadata(&folder.join(METADATA)) {
            tracing::debug!(%error, "not a repository");
            let missing = root_name(1);
            let url = folder.to_string();
            return Err(RepositoryError::NoRepository { url, missing }.into());
        }
        let lock = take_lock(folder)?;
        for name in [METADATA, PENDING, PACKAGE_LISTS] {
            match Native.sweep_temporaries(&folder.join(name)) {
                Ok(_) | Err(FileError::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Self::load(folder, downloader, now, lock).await
    }

    async fn load(
        folder: &Utf8Path,
        downloader: &Downloader,
        now: Time,
        lock: FileLock,
    ) -> Result<Self, EditError> {
        let base = folder_url(folder)?;
        let trusted = read(downloader, &base).await?;
        Ok(Self {
            folder: folder.to_owned(),
            base,
            downloader: downloader.clone(),
            now,
            trusted,
            lock,
        })
    }

    /// Reads again what was just written, which also checks it.
    pub(super) async fn reload(&mut self) -> Result<(), EditError> {
        self.trusted = read(&self.downloader, &self.base).await?;
        Ok(())
    }

    /// What the repository lists.
    pub fn entries(&self) -> &[Entry] {
        &self.trusted.entries
    }

    pub fn folder(&self) -> &Utf8Path {
        &self.folder
    }

    /// Whether this is a mirror, which need not have all that it lists.
    pub fn is_mirror(&self) -> bool {
        Native.metadata(&self.folder.join(MIRROR)).is_ok()
    }

    /// Renews snapshot and timestamp, and the targets when their keys are at hand.
    pub async fn renew(&mut self, keys: &KeyRing, expiry: Expiry) -> Result<(), EditError> {
        self.publish(keys, expiry, Contents::RenewIfPossible).await
    }

    /// Publishes under the current root.
    pub(super) async fn publish(
        &mut self,
        keys: &KeyRing,
        expiry: Expiry,
        contents: Contents,
    ) -> Result<(), EditError> {
        let root = self.trusted.root.signed.signed.clone();
        let draft = Draft {
            roots: &[&root],
            keys,
            expiry,
            now: self.now,
        };
        draft.publish(&self.folder, Some(&self.trusted), contents)?;
        self.reload().await
    }

    /// Ends the work, so that another can begin.
    pub fn close(self) {
        self.lock.release();
    }
}

pub(super) fn take_lock(folder: &Utf8Path) -> Result<FileLock, FileError> {
    Native.lock(&folder.join(LOCK), LOCK_WAIT)
}

pub(super) fn folder_url(folder: &Utf8Path) -> Result<Url, RepositoryError> {
    super::names::location(folder.as_str()).ok_or_else(|| RepositoryError::Location {
        text: folder.to_string(),
    })
}

/// Reads all metadata of a folder, whenever it expires.
pub(super) async fn read(downloader: &Downloader, base: &Url) -> Result<Trusted, RepositoryError> {
    let source = Remote { downloader, base };
    let first = root_name(1);
    let bytes = source
        .read(&first, metadata::limit(RoleType::Root))
        .await?
        .ok_or_else(|| RepositoryError::NoRepository {
            url: source.shown(),
            missing: first.clone(),
        })?;
    let start = Held::parse(&first, bytes)?;
    trust::load(
        &source,
        start,
        &Seen::default(),
        Clock::Ignored,
        &mut Forget,
    )
    .await
}

pub(super) fn write(folder: &Utf8Path, name: &str, bytes: &[u8]) -> Result<(), FileError> {
    let path = folder.join(METADATA).join(name);
    Native.write_durable(&path, bytes, Access::Public)
}

/// A new state of the repository's metadata.
pub(super) struct Draft<'a> {
    /// The roots that must be content with the signatures.
    pub(super) roots: &'a [&'a Root],
    pub(super) keys: &'a KeyRing,
    pub(super) expiry: Expiry,
    pub(super) now: Time,
}

impl Draft<'_> {
    /// Signs everything, and only then writes the first file.
    pub(super) fn publish(
        &self,
        folder: &Utf8Path,
        before: Option<&Trusted>,
        contents: Contents,
    ) -> Result<(), EditError> {
        let targets = self.targets(before, contents)?;
        let targets_meta = match (&targets, before) {
            (Some(targets), _) => metafile(targets),
            (None, Some(before)) => metafile(&before.targets),
            (None, None) => {
                return Err(EditError::Render {
                    role: RoleType::Snapshot,
                    reason: "there are no targets".to_owned(),
                });
            }
        };
        let snapshot = self.sign(Snapshot {
            spec_version: SPECIFICATION.to_owned(),
            version: next_version(before.map_or(0, |before| before.snapshot.version())),
            expires: self.expiry.at(RoleType::Snapshot, self.now)?,
            meta: HashMap::from([(TARGETS_META.to_owned(), targets_meta)]),
            _extra: HashMap::new(),
        })?;
        let timestamp = self.sign(Timestamp {
            spec_version: SPECIFICATION.to_owned(),
            version: next_version(before.map_or(0, |before| before.timestamp.version())),
            expires: self.expiry.at(RoleType::Timestamp, self.now)?,
            meta: HashMap::from([(SNAPSHOT_META.to_owned(), metafile(&snapshot))]),
            _extra: HashMap::new(),
        })?;
        if let Some(targets) = &targets {
            write(
                folder,
                &targets.signed.signed.filename(true),
                &targets.bytes,
            )?;
        }
        let name = snapshot.signed.signed.filename(true);
        write(folder, &name, &snapshot.bytes)?;
        write(folder, TIMESTAMP, &timestamp.bytes)?;
        Ok(())
    }

    fn targets(
        &self,
        before: Option<&Trusted>,
        contents: Contents,
    ) -> Result<Option<Held<Targets>>, EditError> {
        let current = || {
            before
                .map(|before| before.targets.signed.signed.targets.clone())
                .unwrap_or_default()
        };
        let if_possible = matches!(contents, Contents::RenewIfPossible);
        let listed = match contents {
            Contents::Keep => return Ok(None),
            Contents::Renew | Contents::RenewIfPossible => current(),
            Contents::Replace(entries) => {
                let mut listed: HashMap<_, _> =
                    entries.iter().filter_map(Entry::to_target).collect();
                // What others put there is theirs.
                let ours: HashSet<String> = before
                    .map(|before| before.entries.iter().map(Entry::path).collect())
                    .unwrap_or_default();
                let foreign = current();
                let foreign = foreign
                    .into_iter()
                    .filter(|(name, _)| !ours.contains(name.raw()));
                listed.extend(foreign);
                listed
            }
        };
        let signed = self.sign(Targets {
            spec_version: SPECIFICATION.to_owned(),
            version: next_version(before.map_or(0, |before| before.targets.version())),
            expires: self.expiry.at(RoleType::Targets, self.now)?,
            targets: listed,
            delegations: None,
            _extra: HashMap::new(),
        });
        match signed {
            Err(EditError::TooFewKeys { .. }) if if_possible => Ok(None),
            signed => signed.map(Some),
        }
    }

    fn sign<T: Role>(&self, role: T) -> Result<Held<T>, EditError>
    where
        Signed<T>: serde::Serialize,
    {
        metadata::render(metadata::sign(role, self.roots, self.keys)?)
    }
}

/// How one file of metadata names another.
fn metafile<T: Role>(held: &Held<T>) -> Metafile {
    let sha256: Decoded<Hex> = Sha256::digest(&held.bytes).to_vec().into();
    Metafile {
        length: Some(held.bytes.len() as u64),
        hashes: Some(Hashes {
            sha256,
            _extra: HashMap::new(),
        }),
        version: held.signed.signed.version(),
        _extra: HashMap::new(),
    }
}
