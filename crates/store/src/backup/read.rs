//! Reading a backup. Nothing in it is believed before [`verify`] has seen all of it.

use std::{
    io::{self, BufReader, Read},
    time::Duration,
};

use bytes::Bytes;
use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use prost::Message;
use sha2::{Digest, Sha256};

use super::record::{
    BEGIN, Begin, DIGEST, END, ENTRY, End, EntryRecord, FORMAT, HEAD, LEASE, LeaseRecord, MARK,
};
use crate::{Entry, LeaseId, Revision, StoreError, Transaction};

const BUFFER: usize = 256 * 1024;
/// No record is longer: a value, its key, and some numbers.
const LONGEST: usize = 2 * Transaction::LARGEST;

/// What a backup holds, piece by piece.
#[derive(Debug)]
pub(crate) enum Piece {
    Lease(LeaseId, Duration),
    Entry(Entry),
}

/// The pieces of a backup.
#[derive(Debug)]
pub(crate) struct Reader {
    file: BufReader<fs::File>,
    path: Utf8PathBuf,
    digest: Sha256,
    pub(crate) revision: Revision,
    entries: u64,
}

/// Reads all of a backup and finds whatever is wrong with it.
pub(crate) fn verify(path: &Utf8Path) -> Result<Revision, StoreError> {
    let mut reader = Reader::open(path)?;
    while reader.next()?.is_some() {}
    Ok(reader.revision)
}

impl Reader {
    pub(crate) fn open(path: &Utf8Path) -> Result<Self, StoreError> {
        let file = fs::File::open(path).map_err(|source| StoreError::Files {
            action: "open",
            path: path.to_owned(),
            source,
        })?;
        let mut reader = Self {
            file: BufReader::with_capacity(BUFFER, file),
            path: path.to_owned(),
            digest: Sha256::new(),
            revision: Revision(0),
            entries: 0,
        };
        if reader.take::<8>()? != MARK {
            return Err(reader.damaged("it is no backup of a store"));
        }
        let format = u32::from_le_bytes(reader.take()?);
        if format > FORMAT {
            return Err(StoreError::NewerFormat {
                folder: path.to_owned(),
                found: format,
                known: FORMAT,
            });
        }
        match reader.record()? {
            (BEGIN, bytes) => reader.revision = Revision(reader.decode::<Begin>(bytes)?.revision),
            _ => return Err(reader.damaged("it does not begin with its revision")),
        }
        Ok(reader)
    }

    /// The next piece; `None` after the last one, if all of the file is as it was written.
    pub(crate) fn next(&mut self) -> Result<Option<Piece>, StoreError> {
        let (kind, bytes) = self.record()?;
        match kind {
            LEASE => {
                let record: LeaseRecord = self.decode(bytes)?;
                let length = Duration::from_millis(record.milliseconds);
                Ok(Some(Piece::Lease(LeaseId(record.id), length)))
            }
            ENTRY => {
                let entry = self.decode::<EntryRecord>(bytes)?.into_entry();
                if entry.modified > self.revision || entry.created > entry.modified {
                    return Err(self.damaged("an entry is younger than the backup"));
                }
                self.entries += 1;
                Ok(Some(Piece::Entry(entry)))
            }
            END => self.finish(bytes).map(|()| None),
            _ => Err(self.damaged("a record has an unknown kind")),
        }
    }

    fn finish(&mut self, bytes: Vec<u8>) -> Result<(), StoreError> {
        if self.decode::<End>(bytes)?.entries != self.entries {
            return Err(self.damaged("entries are missing"));
        }
        let expected: [u8; DIGEST] = self.digest.clone().finalize().into();
        if self.take::<DIGEST>()? != expected {
            return Err(self.damaged("its checksum is wrong"));
        }
        let more = self.file.read(&mut [0]);
        match more.map_err(|error| self.unreadable(error))? {
            0 => Ok(()),
            _ => Err(self.damaged("something follows its end")),
        }
    }

    fn record(&mut self) -> Result<(u8, Vec<u8>), StoreError> {
        let [kind, length @ ..] = self.take::<HEAD>()?;
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST {
            return Err(self.damaged("a record is too long"));
        }
        let mut bytes = vec![0; length];
        self.fill(&mut bytes)?;
        Ok((kind, bytes))
    }

    fn decode<M: Message + Default>(&self, bytes: Vec<u8>) -> Result<M, StoreError> {
        M::decode(Bytes::from(bytes)).map_err(|error| self.damaged(&error.to_string()))
    }

    fn take<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], StoreError> {
        let mut bytes = [0; LENGTH];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), StoreError> {
        let read = self.file.read_exact(bytes);
        read.map_err(|error| self.unreadable(error))?;
        self.digest.update(bytes);
        Ok(())
    }

    fn unreadable(&self, source: io::Error) -> StoreError {
        match source.kind() {
            io::ErrorKind::UnexpectedEof => self.damaged("it ends too early"),
            _ => StoreError::Files {
                action: "read",
                path: self.path.clone(),
                source,
            },
        }
    }

    fn damaged(&self, reason: &str) -> StoreError {
        StoreError::Damaged {
            place: self.path.to_string(),
            reason: reason.to_owned(),
        }
    }
}
