//! Transactions that become durable together. Each one sees what those before it in the group did;
//! nobody else sees any of it before all of it is on the disk.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{
    layout::{COMPACTED, Change, Head, LAST_LEASE, REVISION, Version, key_of_lease, lease_key},
    tables::{Tables, View, Writes},
};
use crate::{
    Condition, Entry, Event, LeaseId, Outcome, Revision, StoreError, Transaction, Write,
    lease::Leases,
};

/// What the group made of a key.
struct Pending {
    entry: Option<Entry>,
    modified: Revision,
}

/// What a group did, once it is durable.
pub(super) struct Done {
    pub(super) events: Vec<Event>,
    pub(super) revision: Revision,
    pub(super) compacted: Option<Revision>,
}

pub(super) struct Group<'a> {
    view: View,
    writes: Writes<'a>,
    leases: &'a Mutex<Leases>,
    pending: HashMap<Arc<str>, Pending>,
    /// Whether a key belongs to a lease now, where that changed.
    attached: HashMap<(LeaseId, Arc<str>), bool>,
    events: Vec<Event>,
    revision: Revision,
    before: Revision,
    compacted: Option<Revision>,
}

impl<'a> Group<'a> {
    pub(super) fn new(tables: &'a Arc<Tables>, leases: &'a Mutex<Leases>, at: Revision) -> Self {
        Self {
            view: tables.view(),
            writes: tables.batch(),
            leases,
            pending: HashMap::new(),
            attached: HashMap::new(),
            events: Vec::new(),
            revision: at,
            before: at,
            compacted: None,
        }
    }

    pub(super) fn leases(&self) -> MutexGuard<'a, Leases> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn transact(&mut self, transaction: Transaction) -> Result<Outcome, StoreError> {
        for (number, condition) in transaction.conditions.iter().enumerate() {
            if !self.holds(condition)? {
                return Ok(Outcome::Refused {
                    condition: number,
                    current: self.entry(condition.key())?,
                });
            }
        }
        for write in &transaction.writes {
            if let Write::Put {
                lease: Some(lease), ..
            } = write
                && !self.leases().contains(*lease)
            {
                return Err(StoreError::NoLease(*lease));
            }
        }
        self.write(transaction.writes)?;
        Ok(Outcome::Committed(self.revision))
    }

    fn holds(&self, condition: &Condition) -> Result<bool, StoreError> {
        let newest = match self.pending.get(condition.key()) {
            Some(pending) => pending.entry.as_ref().map(|entry| entry.modified),
            None => self
                .view
                .head(condition.key())?
                .filter(|head| !head.deleted)
                .map(|head| head.modified),
        };
        Ok(condition.holds(newest))
    }

    fn entry(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        match self.pending.get(key) {
            Some(pending) => Ok(pending.entry.clone()),
            None => self.view.entry(key),
        }
    }

    /// All that can fail comes first, so that a transaction is in the group completely or not at all.
    fn write(&mut self, writes: Vec<Write>) -> Result<(), StoreError> {
        let mut changes = Vec::with_capacity(writes.len());
        for write in writes {
            let previous = self.entry(write.key())?;
            if previous.is_some() || matches!(write, Write::Put { .. }) {
                changes.push((write, previous));
            }
        }
        if changes.is_empty() {
            return Ok(());
        }
        let revision = Revision(self.revision.0 + 1);
        for (number, (write, previous)) in (0..).zip(changes) {
            let event = event_of(write, previous, revision);
            self.record(number, event);
        }
        self.revision = revision;
        Ok(())
    }

    fn record(&mut self, number: u32, event: Event) {
        let version = event
            .current
            .as_ref()
            .map_or(Version::DELETED, |entry| Version {
                value: Some(&entry.value),
                created: entry.created,
                lease: entry.lease,
            });
        self.writes
            .put(Version::key(&event.key, event.revision), version.encode());
        let replaced = event.previous.as_ref().map(|entry| entry.modified);
        self.writes.put(
            Change::key(event.revision, number),
            Change::encode(&event.key, event.current.is_none(), replaced),
        );
        self.move_to_its_lease(&event);
        let pending = Pending {
            entry: event.current.clone(),
            modified: event.revision,
        };
        self.pending.insert(Arc::clone(&event.key), pending);
        self.events.push(event);
    }

    fn move_to_its_lease(&mut self, event: &Event) {
        let lease_of = |entry: &Option<Entry>| entry.as_ref().and_then(|entry| entry.lease);
        let (before, after) = (lease_of(&event.previous), lease_of(&event.current));
        if before == after {
            return;
        }
        for (lease, attached) in [(before, false), (after, true)] {
            if let Some(lease) = lease {
                let place = (lease, Arc::clone(&event.key));
                self.attached.insert(place, attached);
            }
        }
    }

    pub(super) fn grant(&mut self, last: u64, milliseconds: u64) -> LeaseId {
        let lease = LeaseId(last + 1);
        self.writes.put_number(LAST_LEASE, lease.0);
        self.writes.put_number(&lease_key(lease), milliseconds);
        lease
    }

    /// Ends a lease and deletes its keys.
    pub(super) fn end_lease(&mut self, lease: LeaseId) -> Result<(), StoreError> {
        let mut keys = Vec::new();
        for key in self.view.keys_of_lease(lease) {
            let key = key?;
            if self.attached.get(&(lease, Arc::from(key.as_str()))) != Some(&false) {
                keys.push(key);
            }
        }
        for ((of, key), attached) in &self.attached {
            if *of == lease && *attached && !keys.iter().any(|known| **known == **key) {
                keys.push(key.to_string());
            }
        }
        keys.sort();
        let deletes = keys.into_iter().map(|key| Write::Delete { key });
        self.write(deletes.collect())?;
        self.writes.remove(lease_key(lease));
        self.leases().end(lease);
        Ok(())
    }

    pub(super) fn compact(&mut self, revision: Revision) -> Result<(), StoreError> {
        if revision > self.revision {
            return Err(StoreError::Future {
                requested: revision,
                newest: self.revision,
            });
        }
        let before = match self.compacted {
            Some(compacted) => compacted,
            None => self.view.compacted()?,
        };
        if revision > before {
            self.compacted = Some(revision);
        }
        Ok(())
    }

    /// Makes all of it durable.
    pub(super) fn commit(mut self) -> Result<Done, StoreError> {
        for (key, pending) in &self.pending {
            let head = Head {
                modified: pending.modified,
                deleted: pending.entry.is_none(),
            };
            self.writes.put(Head::key(key), head.encode());
        }
        for ((lease, key), attached) in &self.attached {
            let place = key_of_lease(*lease, key);
            if *attached {
                self.writes.put(place, b"");
            } else {
                self.writes.remove(place);
            }
        }
        if self.revision > self.before {
            self.writes.put_number(REVISION, self.revision.0);
        }
        if let Some(compacted) = self.compacted {
            self.writes.put_number(COMPACTED, compacted.0);
        }
        if !self.writes.is_empty() {
            self.writes.commit()?;
        }
        Ok(Done {
            events: self.events,
            revision: self.revision,
            compacted: self.compacted,
        })
    }
}

fn event_of(write: Write, previous: Option<Entry>, revision: Revision) -> Event {
    match write {
        Write::Put { key, value, lease } => {
            let (key, created) = match &previous {
                Some(previous) => (Arc::clone(&previous.key), previous.created),
                None => (Arc::from(key), revision),
            };
            Event {
                key: Arc::clone(&key),
                revision,
                current: Some(Entry {
                    key,
                    value,
                    created,
                    modified: revision,
                    lease,
                }),
                previous,
            }
        }
        Write::Delete { key } => Event {
            key: previous
                .as_ref()
                .map_or_else(|| Arc::from(key), |previous| Arc::clone(&previous.key)),
            revision,
            current: None,
            previous,
        },
    }
}
