//! What the records of a backup look like. Numbers are never given a new meaning.

use std::time::Duration;

use bytes::Bytes;

use crate::{Entry, LeaseId, Revision};

pub(super) const MARK: [u8; 8] = *b"TRANSOM\n";
pub(super) const FORMAT: u32 = 1;
pub(super) const DIGEST: usize = 32;
/// Kind and length.
pub(super) const HEAD: usize = 5;

pub(super) const BEGIN: u8 = 1;
pub(super) const LEASE: u8 = 2;
pub(super) const ENTRY: u8 = 3;
pub(super) const END: u8 = 4;

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Begin {
    #[prost(uint64, tag = "1")]
    pub(super) revision: u64,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct LeaseRecord {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(uint64, tag = "2")]
    pub(super) milliseconds: u64,
}

impl LeaseRecord {
    pub(super) fn new(lease: LeaseId, length: Duration) -> Self {
        Self {
            id: lease.0,
            milliseconds: u64::try_from(length.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct EntryRecord {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) value: Bytes,
    #[prost(uint64, tag = "3")]
    pub(super) created: u64,
    #[prost(uint64, tag = "4")]
    pub(super) modified: u64,
    #[prost(uint64, tag = "5")]
    pub(super) lease: u64,
}

impl EntryRecord {
    pub(super) fn new(entry: &Entry) -> Self {
        Self {
            key: entry.key.to_string(),
            value: entry.value.clone(),
            created: entry.created.0,
            modified: entry.modified.0,
            lease: entry.lease.map_or(0, |lease| lease.0),
        }
    }

    pub(super) fn into_entry(self) -> Entry {
        Entry {
            key: self.key.into(),
            value: self.value,
            created: Revision(self.created),
            modified: Revision(self.modified),
            lease: (self.lease != 0).then_some(LeaseId(self.lease)),
        }
    }
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct End {
    #[prost(uint64, tag = "1")]
    pub(super) entries: u64,
}
