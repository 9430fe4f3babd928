//! How records look on disk. One ordered space holds them all; the first byte of a key says what it is.
//!
//! A value is written once, as a version; a head says which version of a key is the newest, a change
//! which versions it went between. Numbers in keys are big-endian so that their order is that of bytes.

use crate::{LeaseId, Revision, StoreError};

pub(super) const CHANGE: u8 = b'c';
pub(super) const HEAD: u8 = b'h';
pub(super) const LEASE: u8 = b'l';
pub(super) const LEASE_KEY: u8 = b'k';
pub(super) const VERSION: u8 = b'v';

/// The newest revision.
pub(super) const REVISION: &[u8] = b"mrevision";
/// What is before this revision may not be asked for.
pub(super) const COMPACTED: &[u8] = b"mcompacted";
/// What is up to this revision is not only forgotten but removed.
pub(super) const TRIMMED: &[u8] = b"mtrimmed";
/// The newest lease that was ever granted.
pub(super) const LAST_LEASE: &[u8] = b"mlease";

const PUT: u8 = 1;
const DELETED: u8 = 2;
/// Kind, created, lease.
const VERSION_FIELDS: usize = 17;

/// Which version of a key is the newest. Deleted keys keep theirs until compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) modified: Revision,
    pub(super) deleted: bool,
}

impl Head {
    pub(super) fn key(key: &str) -> Vec<u8> {
        tagged(HEAD, key.as_bytes())
    }

    pub(super) fn encode(self) -> [u8; 9] {
        let mut bytes = [0; 9];
        bytes[0] = kind(self.deleted);
        bytes[1..].copy_from_slice(&self.modified.0.to_be_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, StoreError> {
        let (&kind, rest) = bytes.split_first().ok_or_else(|| damaged("a head"))?;
        Ok(Self {
            modified: Revision(number(rest, "a head")?),
            deleted: is_deleted(kind)?,
        })
    }
}

/// What a key was from one revision on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version<'a> {
    /// Absent if the revision deleted the key.
    pub(super) value: Option<&'a [u8]>,
    pub(super) created: Revision,
    pub(super) lease: Option<LeaseId>,
}

impl<'a> Version<'a> {
    pub(super) const DELETED: Self = Self {
        value: None,
        created: Revision(0),
        lease: None,
    };

    /// Newer versions of a key come first.
    pub(super) fn key(key: &str, revision: Revision) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(key.len() + 11);
        bytes.push(VERSION);
        for &byte in key.as_bytes() {
            bytes.push(byte);
            if byte == 0 {
                bytes.push(0xff);
            }
        }
        // Lower than whatever can follow in a longer key.
        bytes.extend([0, 0]);
        bytes.extend((!revision.0).to_be_bytes());
        bytes
    }

    /// The key and the revision in what [`Version::key`] made.
    pub(super) fn parse_key(bytes: &[u8]) -> Result<(String, Revision), StoreError> {
        let (rest, revision) = bytes
            .split_last_chunk::<8>()
            .ok_or_else(|| damaged("the key of a version"))?;
        let escaped = rest
            .strip_prefix(&[VERSION])
            .and_then(|rest| rest.strip_suffix(&[0, 0]))
            .ok_or_else(|| damaged("the key of a version"))?;
        let mut key = Vec::with_capacity(escaped.len());
        let mut bytes = escaped.iter();
        while let Some(&byte) = bytes.next() {
            key.push(byte);
            if byte == 0 && bytes.next() != Some(&0xff) {
                return Err(damaged("the key of a version"));
            }
        }
        Ok((
            text(&key)?.to_owned(),
            Revision(!u64::from_be_bytes(*revision)),
        ))
    }

    pub(super) fn encode(self) -> Vec<u8> {
        let value = self.value.unwrap_or_default();
        let mut bytes = Vec::with_capacity(VERSION_FIELDS + value.len());
        bytes.push(kind(self.value.is_none()));
        bytes.extend(self.created.0.to_be_bytes());
        bytes.extend(self.lease.map_or(0, |lease| lease.0).to_be_bytes());
        bytes.extend(value);
        bytes
    }

    pub(super) fn decode(bytes: &'a [u8]) -> Result<Self, StoreError> {
        let (fields, value) = bytes
            .split_at_checked(VERSION_FIELDS)
            .ok_or_else(|| damaged("a version"))?;
        let lease = number(&fields[9..], "a version")?;
        Ok(Self {
            value: (!is_deleted(fields[0])?).then_some(value),
            created: Revision(number(&fields[1..9], "a version")?),
            lease: (lease != 0).then_some(LeaseId(lease)),
        })
    }
}

/// One key's part in a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) key: String,
    pub(super) deleted: bool,
    /// The version that it replaced.
    pub(super) previous: Option<Revision>,
}

impl Change {
    pub(super) fn key(revision: Revision, number: u32) -> [u8; 13] {
        let mut bytes = [CHANGE; 13];
        bytes[1..9].copy_from_slice(&revision.0.to_be_bytes());
        bytes[9..].copy_from_slice(&number.to_be_bytes());
        bytes
    }

    pub(super) fn parse_key(bytes: &[u8]) -> Result<(Revision, u32), StoreError> {
        let fault = || damaged("the key of a change");
        let (revision, rest) = bytes
            .get(1..)
            .and_then(<[u8]>::split_first_chunk::<8>)
            .ok_or_else(fault)?;
        let number = <[u8; 4]>::try_from(rest).map_err(|_| fault())?;
        Ok((
            Revision(u64::from_be_bytes(*revision)),
            u32::from_be_bytes(number),
        ))
    }

    pub(super) fn encode(key: &str, deleted: bool, previous: Option<Revision>) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(key.len() + 9);
        bytes.push(kind(deleted));
        bytes.extend(previous.unwrap_or_default().0.to_be_bytes());
        bytes.extend(key.as_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, StoreError> {
        let (fields, key) = bytes
            .split_at_checked(9)
            .ok_or_else(|| damaged("a change"))?;
        let previous = number(&fields[1..], "a change")?;
        Ok(Self {
            key: text(key)?.to_owned(),
            deleted: is_deleted(fields[0])?,
            previous: (previous != 0).then_some(Revision(previous)),
        })
    }
}

pub(super) fn lease_key(lease: LeaseId) -> [u8; 9] {
    let mut bytes = [LEASE; 9];
    bytes[1..].copy_from_slice(&lease.0.to_be_bytes());
    bytes
}

pub(super) fn key_of_lease(lease: LeaseId, key: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(key.len() + 9);
    bytes.push(LEASE_KEY);
    bytes.extend(lease.0.to_be_bytes());
    bytes.extend(key.as_bytes());
    bytes
}

pub(super) fn tagged(tag: u8, rest: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(rest.len() + 1);
    bytes.push(tag);
    bytes.extend(rest);
    bytes
}

/// The text of a key after `skipped` bytes that are not part of it.
pub(super) fn text_after(bytes: &[u8], skipped: usize) -> Result<&str, StoreError> {
    text(bytes.get(skipped..).ok_or_else(|| damaged("a key"))?)
}

pub(super) fn number(bytes: &[u8], place: &str) -> Result<u64, StoreError> {
    let bytes = <[u8; 8]>::try_from(bytes).map_err(|_| damaged(place))?;
    Ok(u64::from_be_bytes(bytes))
}

fn kind(deleted: bool) -> u8 {
    if deleted { DELETED } else { PUT }
}

fn is_deleted(kind: u8) -> Result<bool, StoreError> {
    match kind {
        PUT => Ok(false),
        DELETED => Ok(true),
        _ => Err(damaged("a record of unknown kind")),
    }
}

fn text(bytes: &[u8]) -> Result<&str, StoreError> {
    std::str::from_utf8(bytes).map_err(|_| damaged("a key"))
}

fn damaged(place: &str) -> StoreError {
    StoreError::Damaged {
        place: place.to_owned(),
        reason: "it cannot be read".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_sort_by_key_and_then_from_new_to_old() {
        let keys = ["a", "a\0", "a\0\0", "a\0\u{1}", "a\u{1}", "a/", "aé", "b"];
        let mut expected = Vec::new();
        for key in keys {
            for revision in [300, 2, 1] {
                expected.push((key.to_owned(), Revision(revision)));
            }
        }
        let mut encoded: Vec<_> = expected
            .iter()
            .map(|(key, revision)| Version::key(key, *revision))
            .collect();
        encoded.sort();
        let sorted: Vec<_> = encoded
            .iter()
            .map(|bytes| Version::parse_key(bytes).unwrap())
            .collect();
        assert_eq!(sorted, expected);
    }

    #[test]
    fn records_read_back_as_they_were_written() {
        let head = Head {
            modified: Revision(7),
            deleted: true,
        };
        assert_eq!(Head::decode(&head.encode()).unwrap(), head);
        let version = Version {
            value: Some(b"value"),
            created: Revision(3),
            lease: Some(LeaseId(9)),
        };
        assert_eq!(Version::decode(&version.encode()).unwrap(), version);
        let deleted = Version::DELETED.encode();
        assert_eq!(Version::decode(&deleted).unwrap(), Version::DELETED);
        let change = Change::decode(&Change::encode("k", true, Some(Revision(2)))).unwrap();
        assert_eq!(change.key, "k");
        assert!(change.deleted);
        assert_eq!(change.previous, Some(Revision(2)));
        let key = Change::key(Revision(5), 1);
        assert_eq!(Change::parse_key(&key).unwrap(), (Revision(5), 1));
    }

    #[test]
    fn short_and_strange_records_are_damage() {
        for bytes in [&b""[..], b"\x01", b"\x09\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"] {
            assert!(Head::decode(bytes).is_err());
            assert!(Version::decode(bytes).is_err());
            assert!(Change::decode(bytes).is_err());
            assert!(Version::parse_key(bytes).is_err());
        }
        assert!(Change::parse_key(b"c123").is_err());
        assert!(Version::parse_key(b"va\0b\0\0\xff\xff\xff\xff\xff\xff\xff\xff").is_err());
    }
}
