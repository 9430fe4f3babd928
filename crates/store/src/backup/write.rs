//! Writing a backup: beside its place first, readable by its owner only, for it holds secrets.

use std::{
    io::{self, BufWriter, Write},
    time::Duration,
};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use prost::Message;
use sha2::{Digest, Sha256};
use transom_host::files::{Access, Files, Native};

use super::record::{
    BEGIN, Begin, DIGEST, END, ENTRY, End, EntryRecord, FORMAT, LEASE, LeaseRecord, MARK,
};
use crate::{Entry, LeaseId, Revision, StoreError, absolute, blocking};

const BUFFER: usize = 256 * 1024;

/// Takes the records of a backup.
#[derive(Debug)]
pub(crate) struct Writer {
    file: BufWriter<fs::File>,
    partial: Utf8PathBuf,
    digest: Sha256,
    entries: u64,
}

/// Writes a backup with what `records` gives: first the revision, then leases and entries.
pub(crate) async fn write(
    file: &Utf8Path,
    records: impl FnOnce(&mut Writer) -> Result<(), StoreError> + Send + 'static,
) -> Result<(), StoreError> {
    let file = absolute(file)?;
    blocking(move || {
        let mut writer = Writer::create(&file)?;
        let written = records(&mut writer).and_then(|()| writer.finish(&file));
        if written.is_err() {
            remove_partial(&partial_of(&file));
        }
        written
    })
    .await
}

impl Writer {
    fn create(file: &Utf8Path) -> Result<Self, StoreError> {
        let partial = partial_of(file);
        // Made with the access it shall have, so that no moment leaves it open to others.
        Native
            .write_durable(&partial, b"", Access::Secret)
            .map_err(|error| failed("create", &partial, io::Error::other(error)))?;
        let opened = fs::OpenOptions::new().append(true).open(&partial);
        let opened = opened.map_err(|error| failed("open", &partial, error))?;
        let mut writer = Self {
            file: BufWriter::with_capacity(BUFFER, opened),
            partial,
            digest: Sha256::new(),
            entries: 0,
        };
        writer.put(&MARK)?;
        writer.put(&FORMAT.to_le_bytes())?;
        Ok(writer)
    }

    pub(crate) fn begin(&mut self, revision: Revision) -> Result<(), StoreError> {
        self.record(
            BEGIN,
            &Begin {
                revision: revision.0,
            },
        )
    }

    pub(crate) fn lease(&mut self, lease: LeaseId, length: Duration) -> Result<(), StoreError> {
        self.record(LEASE, &LeaseRecord::new(lease, length))
    }

    pub(crate) fn entry(&mut self, entry: &Entry) -> Result<(), StoreError> {
        self.entries += 1;
        self.record(ENTRY, &EntryRecord::new(entry))
    }

    fn finish(mut self, file: &Utf8Path) -> Result<(), StoreError> {
        let end = End {
            entries: self.entries,
        };
        self.record(END, &end)?;
        let digest: [u8; DIGEST] = self.digest.clone().finalize().into();
        self.put(&digest)?;
        let partial = self.partial;
        let synced = self
            .file
            .into_inner()
            .map_err(io::IntoInnerError::into_error)
            .and_then(|file| file.sync_all());
        synced.map_err(|error| failed("write", &partial, error))?;
        Native
            .replace(&partial, file)
            .map_err(|error| failed("replace", file, io::Error::other(error)))
    }

    fn record(&mut self, kind: u8, message: &impl Message) -> Result<(), StoreError> {
        let bytes = message.encode_to_vec();
        let length = u32::try_from(bytes.len()).map_err(|_| StoreError::TooLarge {
            size: bytes.len(),
            limit: u32::MAX as usize,
        })?;
        self.put(&[kind])?;
        self.put(&length.to_le_bytes())?;
        self.put(&bytes)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.digest.update(bytes);
        self.file
            .write_all(bytes)
            .map_err(|error| failed("write", &self.partial, error))
    }
}

fn partial_of(file: &Utf8Path) -> Utf8PathBuf {
    Utf8PathBuf::from(format!("{file}.partial"))
}

fn remove_partial(partial: &Utf8Path) {
    if let Err(error) = Native.remove_file(partial) {
        tracing::warn!(%partial, %error, "could not remove what a failed backup left");
    }
}

fn failed(action: &'static str, path: &Utf8Path, source: io::Error) -> StoreError {
    StoreError::Files {
        action,
        path: path.to_owned(),
        source,
    }
}
