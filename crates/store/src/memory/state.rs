//! The newest entries and what led to them. An older state is the newest one with later events undone,
//! so every event since the last compaction is here with what it replaced.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    ops::Bound,
    sync::Arc,
};

use crate::{
    Batch, Entry, Event, LeaseId, Outcome, Page, Range, Revision, StoreError, Transaction, Write,
    follow::EVENTS_PER_BATCH, lease::Leases,
};

/// So many events are looked at for one batch, also if none of them is wanted.
const EVENTS_LOOKED_AT: usize = 8 * EVENTS_PER_BATCH;

#[derive(Debug)]
pub(super) struct State {
    entries: BTreeMap<Arc<str>, Entry>,
    /// Every change after `compacted`, in order.
    history: VecDeque<Event>,
    pub(super) revision: Revision,
    compacted: Revision,
    pub(super) leases: Leases,
    keys_of_leases: HashMap<LeaseId, BTreeSet<Arc<str>>>,
    last_lease: u64,
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            entries: BTreeMap::new(),
            history: VecDeque::new(),
            revision: Revision::EMPTY,
            compacted: Revision(0),
            leases: Leases::default(),
            keys_of_leases: HashMap::new(),
            last_lease: 0,
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<Entry> {
        self.entries.get(key).cloned()
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    pub(super) fn next_lease(&mut self) -> LeaseId {
        self.last_lease += 1;
        LeaseId(self.last_lease)
    }

    pub(super) fn commit(&mut self, transaction: Transaction) -> Result<Outcome, StoreError> {
        for (number, condition) in transaction.conditions.iter().enumerate() {
            let current = self.entries.get(condition.key());
            if !condition.holds(current.map(|entry| entry.modified)) {
                return Ok(Outcome::Refused {
                    condition: number,
                    current: current.cloned(),
                });
            }
        }
        for write in &transaction.writes {
            if let Write::Put {
                lease: Some(lease), ..
            } = write
                && !self.leases.contains(*lease)
            {
                return Err(StoreError::NoLease(*lease));
            }
        }
        self.apply(transaction.writes);
        Ok(Outcome::Committed(self.revision))
    }

    fn apply(&mut self, writes: Vec<Write>) {
        let revision = Revision(self.revision.0 + 1);
        for write in writes {
            let event = match write {
                Write::Put { key, value, lease } => {
                    let previous = self.entries.remove(key.as_str());
                    let (key, created) = match &previous {
                        Some(previous) => (Arc::clone(&previous.key), previous.created),
                        None => (Arc::from(key), revision),
                    };
                    let entry = Entry {
                        key: Arc::clone(&key),
                        value,
                        created,
                        modified: revision,
                        lease,
                    };
                    self.entries.insert(Arc::clone(&key), entry.clone());
                    Event {
                        key,
                        revision,
                        current: Some(entry),
                        previous,
                    }
                }
                Write::Delete { key } => {
                    let Some(previous) = self.entries.remove(key.as_str()) else {
                        continue;
                    };
                    Event {
                        key: Arc::clone(&previous.key),
                        revision,
                        current: None,
                        previous: Some(previous),
                    }
                }
            };
            self.move_to_its_lease(&event);
            self.history.push_back(event);
            self.revision = revision;
        }
    }

    fn move_to_its_lease(&mut self, event: &Event) {
        let lease_of = |entry: &Option<Entry>| entry.as_ref().and_then(|entry| entry.lease);
        let (before, after) = (lease_of(&event.previous), lease_of(&event.current));
        if before == after {
            return;
        }
        if let Some(keys) = before.and_then(|lease| self.keys_of_leases.get_mut(&lease)) {
            keys.remove(&event.key);
        }
        if let Some(lease) = after {
            let keys = self.keys_of_leases.entry(lease).or_default();
            keys.insert(Arc::clone(&event.key));
        }
    }

    /// Ends a lease and deletes its keys in one transaction.
    pub(super) fn end_lease(&mut self, lease: LeaseId) -> Result<(), StoreError> {
        if !self.leases.end(lease) {
            return Err(StoreError::NoLease(lease));
        }
        let keys = self.keys_of_leases.remove(&lease).unwrap_or_default();
        let writes = keys.iter().map(|key| Write::Delete {
            key: key.to_string(),
        });
        self.apply(writes.collect());
        Ok(())
    }

    pub(super) fn list(&self, range: &Range) -> Result<Page, StoreError> {
        let at = range.at.unwrap_or(self.revision);
        if at > self.revision {
            return Err(StoreError::Future {
                requested: at,
                newest: self.revision,
            });
        }
        self.check_kept(at)?;
        let undone = self.undo_after(at, range);
        let mut undone = undone.into_iter().peekable();
        let mut newest = self
            .entries
            .range::<str, _>((lower_bound(range), Bound::Unbounded))
            .map(|(_, entry)| entry)
            .take_while(|entry| entry.key.starts_with(&range.prefix))
            .peekable();
        let limit = range.limit.unwrap_or(usize::MAX);
        let mut page = Page {
            entries: Vec::new(),
            revision: at,
            more: false,
        };
        loop {
            // What was undone hides the newest entry of the same key.
            let next = match (undone.peek(), newest.peek()) {
                (Some((old, _)), Some(new)) if **old > *new.key => newest.next().cloned(),
                (Some((old, _)), Some(new)) => {
                    if **old == *new.key {
                        newest.next();
                    }
                    undone.next().and_then(|(_, entry)| entry.cloned())
                }
                (Some(_), None) => undone.next().and_then(|(_, entry)| entry.cloned()),
                (None, Some(_)) => newest.next().cloned(),
                (None, None) => return Ok(page),
            };
            let Some(entry) = next else { continue };
            if page.entries.len() == limit {
                page.more = true;
                return Ok(page);
            }
            page.entries.push(entry);
        }
    }

    /// What each key that changed after `at` was then.
    fn undo_after(&self, at: Revision, range: &Range) -> BTreeMap<&str, Option<&Entry>> {
        let mut undone = BTreeMap::new();
        let wanted = |key: &str| {
            key.starts_with(&range.prefix) && range.after.as_deref().is_none_or(|after| key > after)
        };
        for event in self.history.range(self.first_after(at)..) {
            if wanted(&event.key) {
                undone
                    .entry(&*event.key)
                    .or_insert_with(|| event.previous.as_ref());
            }
        }
        undone
    }

    fn first_after(&self, revision: Revision) -> usize {
        self.history
            .partition_point(|event| event.revision <= revision)
    }

    pub(super) fn check_kept(&self, requested: Revision) -> Result<(), StoreError> {
        if requested < self.compacted {
            return Err(StoreError::Compacted {
                requested,
                oldest: self.compacted,
            });
        }
        Ok(())
    }

    pub(super) fn read(&self, prefix: &str, after: Revision) -> Result<Batch, StoreError> {
        self.check_kept(after)?;
        let mut batch = Batch {
            events: Vec::new(),
            revision: self.revision,
        };
        let mut last = after;
        let following = self.history.range(self.first_after(after)..);
        for (looked_at, event) in following.enumerate() {
            let full = batch.events.len() >= EVENTS_PER_BATCH || looked_at >= EVENTS_LOOKED_AT;
            if full && event.revision != last {
                batch.revision = last;
                break;
            }
            last = event.revision;
            if event.key.starts_with(prefix) {
                batch.events.push(event.clone());
            }
        }
        Ok(batch)
    }

    pub(super) fn compact(&mut self, revision: Revision) -> Result<(), StoreError> {
        if revision > self.revision {
            return Err(StoreError::Future {
                requested: revision,
                newest: self.revision,
            });
        }
        if revision > self.compacted {
            let forgotten = self.first_after(revision);
            self.history.drain(..forgotten);
            self.history.shrink_to(2 * self.history.len());
            self.compacted = revision;
        }
        Ok(())
    }
}

fn lower_bound(range: &Range) -> Bound<&str> {
    match &range.after {
        Some(after) if *after >= range.prefix => Bound::Excluded(after),
        _ => Bound::Included(&range.prefix),
    }
}
