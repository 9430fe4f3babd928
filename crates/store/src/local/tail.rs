//! The newest changes, in memory, for watchers that keep up; older ones are read from the disk. Either way
//! a watcher reads for itself, and the writer never waits for one.

use std::{
    collections::VecDeque,
    sync::{Arc, PoisonError, RwLock, Weak},
};

use super::{group::Done, tables::Tables};
use crate::{
    Batch, Entry, Event, Pending, Revision, StoreError, blocking,
    follow::{EVENTS_PER_BATCH, History},
};

/// So many changes are looked at for one batch, also if none of them is wanted.
const LOOKED_AT: usize = 8 * EVENTS_PER_BATCH;
/// What an event takes besides its values.
const EVENT_BYTES: usize = 256;

#[derive(Debug)]
struct Recent {
    events: VecDeque<Event>,
    bytes: usize,
    /// Every change after this one is in `events`.
    after: Revision,
    newest: Revision,
    compacted: Revision,
}

#[derive(Debug)]
pub(super) struct Tail {
    recent: RwLock<Recent>,
    limit: usize,
}

impl Tail {
    pub(super) fn new(newest: Revision, compacted: Revision, limit: usize) -> Self {
        Self {
            recent: RwLock::new(Recent {
                events: VecDeque::new(),
                bytes: 0,
                after: newest,
                newest,
                compacted,
            }),
            limit,
        }
    }

    pub(super) fn push(&self, done: Done) {
        let mut recent = self.recent.write().unwrap_or_else(PoisonError::into_inner);
        let recent = &mut *recent;
        recent.bytes += done.events.iter().map(size).sum::<usize>();
        recent.events.extend(done.events);
        recent.newest = done.revision;
        recent.compacted = done.compacted.unwrap_or(recent.compacted);
        while recent.bytes > self.limit
            && let Some(oldest) = recent.events.pop_front()
        {
            recent.bytes -= size(&oldest);
            recent.after = oldest.revision;
        }
        // A revision that lost one of its changes is not here any more.
        while let Some(first) = recent.events.front()
            && first.revision <= recent.after
        {
            recent.bytes -= size(first);
            recent.events.pop_front();
        }
    }

    pub(super) fn check_kept(&self, requested: Revision) -> Result<(), StoreError> {
        let recent = self.recent.read().unwrap_or_else(PoisonError::into_inner);
        check_kept(requested, recent.compacted)
    }

    /// Some changes after `after`, unless they are too old to be here.
    fn read(&self, prefix: &str, after: Revision) -> Result<Option<Batch>, StoreError> {
        let recent = self.recent.read().unwrap_or_else(PoisonError::into_inner);
        check_kept(after, recent.compacted)?;
        if after < recent.after {
            return Ok(None);
        }
        let first = recent
            .events
            .partition_point(|event| event.revision <= after);
        let mut filling = Filling::new(after);
        for event in recent.events.range(first..) {
            if !filling.looks_at(event.revision) {
                return Ok(Some(filling.batch));
            }
            if event.key.starts_with(prefix) {
                filling.batch.events.push(event.clone());
            }
        }
        filling.batch.revision = recent.newest;
        Ok(Some(filling.batch))
    }
}

/// A batch that grows, one whole revision after another.
struct Filling {
    batch: Batch,
    looked_at: usize,
}

impl Filling {
    fn new(after: Revision) -> Self {
        Self {
            batch: Batch {
                events: Vec::new(),
                revision: after,
            },
            looked_at: 0,
        }
    }

    /// Whether a change of this revision still belongs here.
    fn looks_at(&mut self, revision: Revision) -> bool {
        let full = self.batch.events.len() >= EVENTS_PER_BATCH || self.looked_at >= LOOKED_AT;
        if full && revision != self.batch.revision {
            return false;
        }
        self.looked_at += 1;
        self.batch.revision = revision;
        true
    }
}

/// All changes that are kept, in memory or not.
#[derive(Debug)]
pub(super) struct Changes {
    pub(super) tail: Arc<Tail>,
    /// A watcher does not keep a store open.
    pub(super) tables: Weak<Tables>,
}

impl History for Changes {
    fn read<'a>(&'a self, prefix: &'a str, after: Revision) -> Pending<'a, Batch> {
        Box::pin(async move {
            if let Some(batch) = self.tail.read(prefix, after)? {
                return Ok(batch);
            }
            let tables = self.tables.upgrade().ok_or(StoreError::Closed)?;
            let prefix = prefix.to_owned();
            blocking(move || from_disk(&tables, &prefix, after)).await
        })
    }
}

pub(super) fn from_disk(
    tables: &Arc<Tables>,
    prefix: &str,
    after: Revision,
) -> Result<Batch, StoreError> {
    let view = tables.view();
    check_kept(after, view.compacted()?)?;
    let mut filling = Filling::new(after);
    for change in view.changes(after) {
        let (revision, _, change) = change?;
        if !filling.looks_at(revision) {
            return Ok(filling.batch);
        }
        if !change.key.starts_with(prefix) {
            continue;
        }
        let entry = |modified| view.expect_entry(&change.key, modified);
        let current = (!change.deleted).then(|| entry(revision)).transpose()?;
        let previous = change.previous.map(entry).transpose()?;
        filling.batch.events.push(Event {
            key: Arc::from(change.key.as_str()),
            revision,
            current,
            previous,
        });
    }
    filling.batch.revision = view.revision()?;
    Ok(filling.batch)
}

pub(super) fn check_kept(requested: Revision, oldest: Revision) -> Result<(), StoreError> {
    if requested < oldest {
        return Err(StoreError::Compacted { requested, oldest });
    }
    Ok(())
}

fn size(event: &Event) -> usize {
    let value = |entry: &Option<Entry>| entry.as_ref().map_or(0, |entry| entry.value.len());
    EVENT_BYTES + event.key.len() + value(&event.current) + value(&event.previous)
}
