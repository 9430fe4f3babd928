//! A store from a backup. The file is read twice: once to see that all of it is right, once to load it. A
//! restore that dies leaves a folder that is known to be unfinished, not half a store.

use std::collections::HashSet;

use camino::Utf8Path;

use super::{
    LocalOptions,
    folder::{Folder, is_empty},
    layout::{COMPACTED, Head, LAST_LEASE, REVISION, TRIMMED, Version, key_of_lease, lease_key},
    make,
    tables::{Tables, Writes},
};
use crate::{
    Entry, LeaseId, Revision, StoreError,
    backup::{Piece, Reader, verify},
    blocking,
};

/// So many bytes are written at once.
const CHUNK: usize = 4 << 20;

/// How far a restored store is ahead of its backup: further than the store that was lost can have come since.
/// Whoever knows a revision of that one is then told to begin anew, and does not go on in another history.
const AHEAD: u64 = 1_000_000_000;

/// Makes a store in a new or empty folder from a backup, at a revision that no client can have seen.
///
/// Revisions of entries stay what they were; the history before the restored revision is forgotten.
pub async fn restore(file: &Utf8Path, folder: &Utf8Path) -> Result<Revision, StoreError> {
    let (file, folder) = (file.to_owned(), folder.to_owned());
    blocking(move || {
        let saved = verify(&file)?;
        if !is_empty(&folder)? {
            return Err(StoreError::NotEmpty { folder });
        }
        let mut reader = Reader::open(&file)?;
        let taken = Folder::take(&folder)?;
        let revision = Revision(saved.max(Revision::EMPTY).0.saturating_add(AHEAD));
        make(&taken, &LocalOptions::default(), |filling| {
            load(&mut reader, revision, filling)
        })?;
        Ok(revision)
    })
    .await
}

fn load(
    reader: &mut Reader,
    revision: Revision,
    filling: &mut Filling<'_>,
) -> Result<(), StoreError> {
    for number in [REVISION, COMPACTED, TRIMMED] {
        filling.put_number(number, revision.0);
    }
    let mut leases = HashSet::new();
    let mut last_lease = 0;
    while let Some(piece) = reader.next()? {
        match piece {
            Piece::Lease(lease, length) => {
                leases.insert(lease);
                last_lease = last_lease.max(lease.0);
                let milliseconds = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
                filling.put_number(&lease_key(lease), milliseconds);
            }
            Piece::Entry(entry) => filling.entry(&entry, &leases)?,
        }
    }
    filling.put_number(LAST_LEASE, last_lease);
    Ok(())
}

/// A database that is being made.
pub(super) struct Filling<'a> {
    tables: &'a Tables,
    writes: Writes<'a>,
    bytes: usize,
}

impl<'a> Filling<'a> {
    pub(super) fn new(tables: &'a Tables) -> Self {
        Self {
            tables,
            writes: tables.batch(),
            bytes: 0,
        }
    }

    pub(super) fn put_number(&mut self, key: &[u8], number: u64) {
        self.writes.put_number(key, number);
    }

    fn entry(&mut self, entry: &Entry, leases: &HashSet<LeaseId>) -> Result<(), StoreError> {
        let version = Version {
            value: Some(&entry.value),
            created: entry.created,
            lease: entry.lease,
        };
        let head = Head {
            modified: entry.modified,
            deleted: false,
        };
        self.writes
            .put(Version::key(&entry.key, entry.modified), version.encode());
        self.writes.put(Head::key(&entry.key), head.encode());
        if let Some(lease) = entry.lease {
            if !leases.contains(&lease) {
                return Err(StoreError::Damaged {
                    place: entry.key.to_string(),
                    reason: format!("its lease {} is not in the backup", lease.0),
                });
            }
            self.writes.put(key_of_lease(lease, &entry.key), b"");
        }
        self.bytes += entry.key.len() + entry.value.len();
        if self.bytes > CHUNK {
            let full = std::mem::replace(&mut self.writes, self.tables.batch());
            full.commit_later()?;
            self.bytes = 0;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<(), StoreError> {
        self.writes.commit()
    }
}
