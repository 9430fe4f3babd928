//! The database, and typed reads of it. Whatever is read through one [`View`] is as of one moment.

use std::sync::Arc;

use bytes::Bytes;
use camino::{Utf8Path, Utf8PathBuf};
use fjall::{
    Database, Guard, Iter, Keyspace, KeyspaceCreateOptions, KvPair, OwnedWriteBatch, PersistMode,
    Readable, Snapshot,
};
use transom_host::files::FileLock;

use super::{
    LocalOptions,
    layout::{
        CHANGE, COMPACTED, Change, HEAD, Head, LAST_LEASE, LEASE, LEASE_KEY, REVISION, TRIMMED,
        Version, key_of_lease, number, tagged, text_after,
    },
};
use crate::{Entry, LeaseId, Revision, StoreError};

/// fjall takes no fewer.
const OPEN_FILES: usize = 64;

/// The less there is, the less a start has to read again; fjall takes no less.
const JOURNAL_BYTES: u64 = 64 << 20;

/// An open database. The lock is the last to go.
pub(super) struct Tables {
    keyspace: Keyspace,
    database: Database,
    pub(super) folder: Utf8PathBuf,
    #[cfg(test)]
    pub(super) sabotage: std::sync::Mutex<Option<Sabotage>>,
    _lock: Arc<FileLock>,
}

/// What is to happen to the next writes in a test.
#[cfg(test)]
#[derive(Clone, Copy, Debug)]
pub(super) enum Sabotage {
    DiskFull,
    Panic,
}

impl Tables {
    pub(super) fn open(
        folder: &Utf8Path,
        options: &LocalOptions,
        lock: Arc<FileLock>,
    ) -> Result<Self, StoreError> {
        let fault = |error| failed("open", folder, error);
        let database = Database::builder(folder)
            .cache_size(options.cache_bytes)
            .max_cached_files(Some(OPEN_FILES))
            .worker_threads(1)
            .max_journaling_size(JOURNAL_BYTES)
            .open()
            .map_err(fault)?;
        let memtable_bytes = options.memtable_bytes;
        let keyspace = database
            .keyspace("store", || {
                KeyspaceCreateOptions::default().max_memtable_size(memtable_bytes)
            })
            .map_err(fault)?;
        Ok(Self {
            keyspace,
            database,
            folder: folder.to_owned(),
            #[cfg(test)]
            sabotage: std::sync::Mutex::default(),
            _lock: lock,
        })
    }

    pub(super) fn view(self: &Arc<Self>) -> View {
        View {
            snapshot: self.database.snapshot(),
            tables: Arc::clone(self),
        }
    }

    pub(super) fn batch(&self) -> Writes<'_> {
        Writes {
            batch: self.database.batch(),
            tables: self,
        }
    }
}

#[cfg(test)]
impl Tables {
    fn sabotaged(&self) -> Result<(), StoreError> {
        let sabotage = *self
            .sabotage
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        match sabotage {
            None => Ok(()),
            Some(Sabotage::DiskFull) => Err(StoreError::Files {
                action: "write",
                path: self.folder.clone(),
                source: std::io::ErrorKind::StorageFull.into(),
            }),
            Some(Sabotage::Panic) => panic!("sabotage"),
        }
    }
}

/// Writes that become durable together.
pub(super) struct Writes<'a> {
    batch: OwnedWriteBatch,
    tables: &'a Tables,
}

impl Writes<'_> {
    pub(super) fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.batch
            .insert(&self.tables.keyspace, key.as_ref(), value.as_ref());
    }

    pub(super) fn put_number(&mut self, key: &[u8], number: u64) {
        self.put(key, number.to_be_bytes());
    }

    pub(super) fn remove(&mut self, key: impl AsRef<[u8]>) {
        self.batch.remove(&self.tables.keyspace, key.as_ref());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Returns when the disk has all of it.
    pub(super) fn commit(self) -> Result<(), StoreError> {
        #[cfg(test)]
        self.tables.sabotaged()?;
        self.batch
            .durability(Some(PersistMode::SyncData))
            .commit()
            .map_err(|error| failed("write", &self.tables.folder, error))
    }

    /// What follows and is durable makes this durable too. Only for a database that counts once it is complete:
    /// a power loss may leave any part of what was not synced, and only one torn group can be told from damage.
    pub(super) fn commit_later(self) -> Result<(), StoreError> {
        self.batch
            .commit()
            .map_err(|error| failed("write", &self.tables.folder, error))
    }
}

/// The store at one moment.
pub(super) struct View {
    snapshot: Snapshot,
    tables: Arc<Tables>,
}

impl View {
    pub(super) fn revision(&self) -> Result<Revision, StoreError> {
        self.number(REVISION).map(Revision)
    }

    pub(super) fn compacted(&self) -> Result<Revision, StoreError> {
        self.number(COMPACTED).map(Revision)
    }

    pub(super) fn trimmed(&self) -> Result<Revision, StoreError> {
        self.number(TRIMMED).map(Revision)
    }

    pub(super) fn last_lease(&self) -> Result<u64, StoreError> {
        self.number(LAST_LEASE)
    }

    fn number(&self, key: &[u8]) -> Result<u64, StoreError> {
        match self.get(key)? {
            Some(bytes) => number(&bytes, "a number about the store"),
            None => Ok(0),
        }
    }

    pub(super) fn head(&self, key: &str) -> Result<Option<Head>, StoreError> {
        self.get(&Head::key(key))?
            .map(|bytes| Head::decode(&bytes))
            .transpose()
    }

    /// The newest entry of a key.
    pub(super) fn entry(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        match self.head(key)? {
            Some(head) if !head.deleted => self.expect_entry(key, head.modified).map(Some),
            _ => Ok(None),
        }
    }

    /// What a key was from `modified` on, which something else says is there.
    pub(super) fn expect_entry(&self, key: &str, modified: Revision) -> Result<Entry, StoreError> {
        let missing = || StoreError::Damaged {
            place: key.to_owned(),
            reason: format!("its value of revision {modified} is missing"),
        };
        let bytes = self.get(&Version::key(key, modified))?;
        let bytes = bytes.ok_or_else(missing)?;
        entry_of(key, modified, &bytes)?.ok_or_else(missing)
    }

    /// What a key was at a revision, by its newest version that is not younger.
    pub(super) fn entry_at(&self, key: &str, at: Revision) -> Result<Option<Entry>, StoreError> {
        let versions = Version::key(key, at)..=Version::key(key, Revision(0));
        let Some(found) = self.range(versions).next() else {
            return Ok(None);
        };
        let (found, bytes) = self.pair(found)?;
        let (_, modified) = Version::parse_key(&found)?;
        entry_of(key, modified, &bytes)
    }

    /// Heads of keys that begin with `prefix` and come after `after`.
    pub(super) fn heads(
        &self,
        prefix: &str,
        after: Option<&str>,
    ) -> impl Iterator<Item = Result<(String, Head), StoreError>> {
        let prefix = tagged(HEAD, prefix.as_bytes());
        // No key lies between one and the same with a zero byte.
        let first = after.map(|after| tagged(HEAD, after.as_bytes()));
        let first = first
            .map(|mut first| {
                first.push(0);
                first
            })
            .filter(|first| *first > prefix)
            .unwrap_or_else(|| prefix.clone());
        self.range(first..vec![HEAD + 1])
            .map(|guard| self.pair(guard))
            .take_while(move |pair| match pair {
                Ok((key, _)) => key.starts_with(&prefix),
                Err(_) => true,
            })
            .map(|pair| {
                let (key, value) = pair?;
                Ok((text_after(&key, 1)?.to_owned(), Head::decode(&value)?))
            })
    }

    /// Changes after a revision, in order.
    pub(super) fn changes(
        &self,
        after: Revision,
    ) -> impl DoubleEndedIterator<Item = Result<(Revision, u32, Change), StoreError>> {
        let first = Change::key(Revision(after.0.saturating_add(1)), 0);
        self.range(first.to_vec()..vec![CHANGE + 1]).map(|guard| {
            let (key, value) = self.pair(guard)?;
            let (revision, number) = Change::parse_key(&key)?;
            Ok((revision, number, Change::decode(&value)?))
        })
    }

    /// Leases and their lengths in milliseconds.
    pub(super) fn leases(&self) -> impl Iterator<Item = Result<(LeaseId, u64), StoreError>> {
        self.range(vec![LEASE]..vec![LEASE + 1]).map(|guard| {
            let (key, value) = self.pair(guard)?;
            let lease = number(key.get(1..).unwrap_or_default(), "a lease")?;
            Ok((LeaseId(lease), number(&value, "a lease")?))
        })
    }

    pub(super) fn keys_of_lease(
        &self,
        lease: LeaseId,
    ) -> impl Iterator<Item = Result<String, StoreError>> {
        let prefix = key_of_lease(lease, "");
        let skipped = prefix.len();
        let iter = self.snapshot.prefix(&self.tables.keyspace, prefix);
        iter.map(move |guard| Ok(text_after(&self.pair(guard)?.0, skipped)?.to_owned()))
    }

    /// Leases and keys, as their own records have them.
    pub(super) fn lease_keys(&self) -> impl Iterator<Item = Result<(LeaseId, String), StoreError>> {
        self.range(vec![LEASE_KEY]..vec![LEASE_KEY + 1])
            .map(|guard| {
                let (key, _) = self.pair(guard)?;
                let lease = number(key.get(1..9).unwrap_or_default(), "the key of a lease")?;
                Ok((LeaseId(lease), text_after(&key, 9)?.to_owned()))
            })
    }

    /// Every version there is.
    pub(super) fn versions(&self) -> impl Iterator<Item = Result<KvPair, StoreError>> {
        let tag = super::layout::VERSION;
        self.range(vec![tag]..vec![tag + 1])
            .map(|guard| self.pair(guard))
    }

    fn range(&self, keys: impl std::ops::RangeBounds<Vec<u8>>) -> Iter {
        self.snapshot.range(&self.tables.keyspace, keys)
    }

    fn get(&self, key: &[u8]) -> Result<Option<fjall::UserValue>, StoreError> {
        self.snapshot
            .get(&self.tables.keyspace, key)
            .map_err(|error| failed("read", &self.tables.folder, error))
    }

    fn pair(&self, guard: Guard) -> Result<KvPair, StoreError> {
        guard
            .into_inner()
            .map_err(|error| failed("read", &self.tables.folder, error))
    }
}

/// Copies the value: a part of a block would keep all of it in memory.
fn entry_of(key: &str, modified: Revision, bytes: &[u8]) -> Result<Option<Entry>, StoreError> {
    let version = Version::decode(bytes)?;
    Ok(version.value.map(|value| Entry {
        key: Arc::from(key),
        value: Bytes::copy_from_slice(value),
        created: version.created,
        modified,
        lease: version.lease,
    }))
}

fn failed(action: &'static str, folder: &Utf8Path, error: fjall::Error) -> StoreError {
    let path = folder.to_owned();
    match error {
        fjall::Error::Locked => StoreError::InUse { folder: path },
        fjall::Error::Io(source) | fjall::Error::Storage(fjall::LsmError::Io(source)) => {
            StoreError::Files {
                action,
                path,
                source,
            }
        }
        fjall::Error::Poisoned => StoreError::Files {
            action,
            path,
            source: std::io::Error::other("an earlier write failed; the store must be opened anew"),
        },
        error => StoreError::Damaged {
            place: path.into_string(),
            reason: error.to_string(),
        },
    }
}
