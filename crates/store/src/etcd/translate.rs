//! Between our words and etcd's. Every key of ours lies below one prefix in etcd.

use std::sync::Arc;

use tonic::{Code, Status};

use super::{
    client::unavailable,
    wire::{
        Compare, DeleteRequest, KeyValue, Operation, OperationKind, PutRequest, RangeRequest,
        TxnRequest, WatchEvent,
    },
};
use crate::{Condition, Entry, Event, LeaseId, Revision, StoreError, Transaction, Write};

/// What etcd calls all keys from one on.
const TO_THE_END: [u8; 1] = [0];

/// Where our keys are: below a prefix that is not empty.
#[derive(Clone, Debug)]
pub(super) struct Place {
    prefix: String,
}

impl Place {
    pub(super) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
        }
    }

    pub(super) fn key(&self, key: &str) -> Vec<u8> {
        [self.prefix.as_bytes(), key.as_bytes()].concat()
    }

    /// The first key and the first one beyond those that begin with `prefix`.
    pub(super) fn range(&self, prefix: &str) -> (Vec<u8>, Vec<u8>) {
        let mut first = self.key(prefix);
        let end = end_of(&first);
        if prefix.is_empty() {
            // After the mark, which is no key of ours.
            first.push(0);
        }
        (first, end)
    }

    /// All our keys, and the mark.
    pub(super) fn all(&self) -> (Vec<u8>, Vec<u8>) {
        let first = self.key("");
        let end = end_of(&first);
        (first, end)
    }

    /// Writes what only watches of everything see: our prefix itself, which is the key of nothing.
    pub(super) fn mark(&self) -> TxnRequest {
        let put = OperationKind::Put(PutRequest {
            key: self.key(""),
            ..PutRequest::default()
        });
        TxnRequest {
            success: vec![operation(put)],
            ..TxnRequest::default()
        }
    }

    fn our_key(&self, key: &[u8]) -> Result<Arc<str>, StoreError> {
        let text = key.strip_prefix(self.prefix.as_bytes());
        let text = text.and_then(|key| std::str::from_utf8(key).ok());
        text.map(Arc::from).ok_or_else(|| StoreError::Damaged {
            place: String::from_utf8_lossy(key).into_owned(),
            reason: "it is no key of ours".to_owned(),
        })
    }

    pub(super) fn entry(&self, found: KeyValue) -> Result<Entry, StoreError> {
        Ok(Entry {
            key: self.our_key(&found.key)?,
            value: found.value,
            created: revision(found.create_revision),
            modified: revision(found.mod_revision),
            lease: (found.lease != 0).then_some(LeaseId(found.lease.cast_unsigned())),
        })
    }

    pub(super) fn event(&self, event: WatchEvent) -> Result<Event, StoreError> {
        let found = event.kv.unwrap_or_default();
        let previous = event.prev_kv.map(|found| self.entry(found)).transpose()?;
        let revision = revision(found.mod_revision);
        let key = self.our_key(&found.key)?;
        let deleted = event.kind == WatchEvent::DELETE;
        let current = (!deleted).then(|| self.entry(found)).transpose()?;
        Ok(Event {
            key,
            revision,
            current,
            previous,
        })
    }

    pub(super) fn transaction(&self, transaction: Transaction) -> TxnRequest {
        let conditions = &transaction.conditions;
        TxnRequest {
            compare: conditions.iter().map(|one| self.compare(one)).collect(),
            success: transaction
                .writes
                .into_iter()
                .map(|write| operation(self.write(write)))
                .collect(),
            failure: conditions
                .iter()
                .map(|condition| operation(OperationKind::Range(self.one(condition.key()))))
                .collect(),
        }
    }

    pub(super) fn one(&self, key: &str) -> RangeRequest {
        RangeRequest {
            key: self.key(key),
            ..RangeRequest::default()
        }
    }

    fn compare(&self, condition: &Condition) -> Compare {
        let modified = match condition {
            Condition::Absent { .. } => 0,
            // Zero would mean absence, and no key has it.
            Condition::Unchanged { modified, .. } if modified.0 == 0 => -1,
            Condition::Unchanged { modified, .. } => modified.0.cast_signed(),
        };
        Compare {
            target: Compare::MOD_REVISION,
            key: self.key(condition.key()),
            mod_revision: Some(modified),
        }
    }

    fn write(&self, write: Write) -> OperationKind {
        match write {
            Write::Put { key, value, lease } => OperationKind::Put(PutRequest {
                key: self.key(&key),
                value,
                lease: lease.map_or(0, |lease| lease.0.cast_signed()),
            }),
            Write::Delete { key } => OperationKind::Delete(DeleteRequest {
                key: self.key(&key),
            }),
        }
    }
}

fn operation(kind: OperationKind) -> Operation {
    Operation { kind: Some(kind) }
}

pub(super) fn revision(number: i64) -> Revision {
    Revision(u64::try_from(number).unwrap_or(0))
}

/// The first key that is greater than all that begin with `prefix`.
fn end_of(prefix: &[u8]) -> Vec<u8> {
    let kept = prefix.iter().rposition(|byte| *byte != u8::MAX);
    match kept {
        Some(last) => {
            let mut end = prefix[..=last].to_vec();
            end[last] += 1;
            end
        }
        None => TO_THE_END.to_vec(),
    }
}

/// What an error of etcd is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Complaint {
    Compacted,
    Future,
    NoLease,
    Other,
}

/// etcd tells its errors apart by their texts.
pub(super) fn complaint(error: &Status) -> Complaint {
    let text = error.message();
    match error.code() {
        Code::OutOfRange if text.contains("has been compacted") => Complaint::Compacted,
        Code::OutOfRange if text.contains("future revision") => Complaint::Future,
        Code::NotFound if text.contains("lease not found") => Complaint::NoLease,
        _ => Complaint::Other,
    }
}

pub(super) fn other(error: Status) -> StoreError {
    unavailable(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_after_all_keys_with_the_prefix() {
        let place = Place::new("/registry/");
        let (first, end) = place.range("pods/");
        assert_eq!(first, b"/registry/pods/");
        assert_eq!(end, b"/registry/pods0");
        assert_eq!(place.range("").0, b"/registry/\0");
        assert_eq!(place.all().0, b"/registry/");
        assert_eq!(end_of(b"a\xff\xff"), b"b");
        assert_eq!(end_of(b"\xff"), [0]);
    }

    #[test]
    fn keys_of_others_are_not_ours() {
        let place = Place::new("/registry/");
        assert_eq!(&*place.our_key(b"/registry/a").unwrap(), "a");
        assert!(place.our_key(b"/other/a").is_err());
        assert!(place.our_key(b"/registry/\xff").is_err());
    }
}
