//! History from before the server started: read from the store when somebody asks for it, then kept for all.
//!
//! What is recalled joins what is known without a gap, or not at all; it never takes more than so much.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::StreamExt as _;
use transom_store::{Entry, Event, Range, Revision, Store, StoreError};

use super::{
    cached::{Cached, Change, ChangeKind},
    resource::ResourceCache,
};
use crate::storage::Codec;

/// So many changes are recalled at most.
const AT_MOST: usize = 20_000;
/// And so many bytes.
const BYTES: usize = 64 << 20;
/// A store that takes longer is of no help.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where history comes from.
#[derive(Debug)]
pub(crate) struct Recall<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) codec: &'a Codec,
}

impl Recall<'_> {
    /// Makes the changes after `revision` known to a cache. Whether they are afterwards.
    pub(crate) async fn fill(&self, cache: &ResourceCache, revision: u64) -> bool {
        // Whoever waits here most likely finds what it wants when its turn comes.
        let _alone = cache.recalling().await;
        let end = cache.complete_after();
        if end <= revision {
            return true;
        }
        match tokio::time::timeout(PATIENCE, self.read(cache, revision, end)).await {
            Ok(Ok(Some(changes))) => cache.extend_back(changes, revision, end, Instant::now()),
            Ok(Ok(None) | Err(StoreError::Compacted { .. })) => false,
            Ok(Err(error)) => {
                tracing::warn!(%error, revision, "could not read old changes from the store");
                false
            }
            Err(_) => {
                tracing::warn!(revision, "the store took too long to give old changes");
                false
            }
        }
    }

    /// The changes after one revision, up to another; `None` if there are too many.
    async fn read(
        &self,
        cache: &ResourceCache,
        after: u64,
        end: u64,
    ) -> Result<Option<Vec<Arc<Change>>>, StoreError> {
        let prefix = cache.kind().prefix();
        let mut batches = self.store.watch(&prefix, Revision(after)).await?;
        let mut changes = Vec::new();
        let mut bytes = 0;
        while let Some(batch) = batches.next().await {
            let batch = batch?;
            for event in batch.events {
                if event.revision.0 > end {
                    break;
                }
                if let Some(change) = self.change(cache, &prefix, event).await? {
                    bytes += change.object.json.len();
                    changes.push(Arc::new(change));
                }
                if changes.len() > AT_MOST || bytes > BYTES {
                    return Ok(None);
                }
            }
            if batch.revision.0 >= end {
                return Ok(Some(changes));
            }
        }
        Ok(None)
    }

    /// An event of the store as a change of objects. One that cannot be read was never shown to anybody.
    async fn change(
        &self,
        cache: &ResourceCache,
        prefix: &str,
        event: Event,
    ) -> Result<Option<Change>, StoreError> {
        let is_new = event
            .current
            .as_ref()
            .is_some_and(|entry| entry.created == entry.modified);
        let previous = match event.previous {
            Some(entry) => Some(entry),
            None if is_new => None,
            None => self.before(&event.key, event.revision).await?,
        };
        let read = |entry: &Entry| self.object(cache, prefix, entry).map(Arc::new);
        let previous = previous.as_ref().and_then(read);
        let (kind, object) = match (&event.current, &previous) {
            (Some(entry), None) => (ChangeKind::Added, read(entry)),
            (Some(entry), Some(_)) => (ChangeKind::Modified, read(entry)),
            (None, Some(previous)) => {
                let object = Arc::new(previous.moved_to(event.revision.0));
                (ChangeKind::Deleted, Some(object))
            }
            (None, None) => return Ok(None),
        };
        // The cache did not count them, or has forgotten their numbers.
        Ok(object.map(|object| Change::new(0, kind, object, previous)))
    }

    /// What a key held before a revision.
    async fn before(&self, key: &str, revision: Revision) -> Result<Option<Entry>, StoreError> {
        let range = Range {
            prefix: key.to_owned(),
            limit: Some(1),
            at: Some(Revision(revision.0.saturating_sub(1))),
            ..Range::default()
        };
        let page = self.store.list(range).await?;
        Ok(page
            .entries
            .into_iter()
            .find(|entry| entry.key.as_ref() == key))
    }

    fn object(&self, cache: &ResourceCache, prefix: &str, entry: &Entry) -> Option<Cached> {
        let key = entry.key.strip_prefix(prefix)?;
        let plain = self.codec.open(&entry.key, &entry.value).ok()?;
        Cached::read(cache.kind(), key, &plain, entry.modified.0).ok()
    }
}
