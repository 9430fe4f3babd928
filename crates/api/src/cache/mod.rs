//! All objects in memory: the only place that lists and watches read.
//!
//! One feed follows the store and hands each change to the cache of its resource. A cache holds objects as the
//! bytes that clients get, so that a list copies bytes and a change is encoded once for all who watch. No lock
//! is held across I/O, and a reader that is slow only falls behind itself.

mod cached;
mod feed;
mod history;
mod recall;
mod resource;
mod watcher;

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;
use transom_store::StoreError;

pub use cached::{Cached, Change, ChangeKind, encode_event};
pub use feed::{Feed, Observer};
pub(crate) use recall::Recall;
pub use resource::{Listing, ResourceCache, Selection, Start, TooOld};
pub use watcher::{Sight, Watcher};

use crate::{registry::Kind, status::ApiError};

/// How long a read waits for the cache to have what it asks for.
const PATIENCE: Duration = Duration::from_secs(3);

/// The caches of all resources.
#[derive(Debug)]
pub struct Cache {
    resources: RwLock<HashMap<String, Arc<ResourceCache>>>,
    /// Everything up to this revision is in the caches.
    applied: watch::Sender<u64>,
    /// Nothing comes into the caches any more.
    is_starved: AtomicBool,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            resources: RwLock::default(),
            applied: watch::Sender::new(0),
            is_starved: AtomicBool::new(false),
        }
    }
}

impl Cache {
    /// The cache of a resource; it is made when it is first asked for.
    pub fn of(&self, kind: &Arc<Kind>) -> Arc<ResourceCache> {
        let prefix = kind.prefix();
        if let Some(found) = self.at(&prefix) {
            return found;
        }
        let mut resources = self
            .resources
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let revision = *self.applied.borrow();
        let cache = resources
            .entry(prefix)
            .or_insert_with(|| Arc::new(ResourceCache::new(kind, revision)));
        Arc::clone(cache)
    }

    fn at(&self, prefix: &str) -> Option<Arc<ResourceCache>> {
        self.resources
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(prefix)
            .cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<ResourceCache>> {
        self.resources
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .cloned()
            .collect()
    }

    /// Puts another cache in the place of one whose resource changed, or none if it is not served any more.
    /// Whoever watched is sent away and asks again.
    fn replace(&self, prefix: &str, cache: Option<Arc<ResourceCache>>) {
        let mut resources = self
            .resources
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let old = match cache {
            Some(cache) => resources.insert(prefix.to_owned(), cache),
            None => resources.remove(prefix),
        };
        drop(resources);
        if let Some(old) = old {
            old.close();
        }
    }

    /// Whether the feed has ended: what is here grows old, and nobody who reads it can tell.
    pub fn is_starved(&self) -> bool {
        self.is_starved.load(Ordering::Acquire)
    }

    pub fn revision(&self) -> u64 {
        *self.applied.borrow()
    }

    /// Told whenever the caches move on.
    pub fn progress(&self) -> watch::Receiver<u64> {
        self.applied.subscribe()
    }

    /// Returns once everything up to `revision` is in the caches.
    pub async fn wait_for(&self, revision: u64) -> Result<(), ApiError> {
        if self.revision() >= revision {
            return Ok(());
        }
        let mut applied = self.applied.subscribe();
        let reached = applied.wait_for(|applied| *applied >= revision);
        match tokio::time::timeout(PATIENCE, reached).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(ApiError::unavailable("the server is stopping")),
            Err(_) => Err(ApiError::too_large_version(revision, self.revision())),
        }
    }
}

/// What a client is told when the store cannot answer.
pub fn store_fault(error: &StoreError) -> ApiError {
    match error {
        StoreError::Compacted { requested, oldest } => {
            ApiError::expired(format!("too old resource version: {requested} ({oldest})"))
        }
        StoreError::TooLarge { size, limit } => ApiError::new(
            413,
            "RequestEntityTooLarge",
            format!("the object is too large: {size} bytes, at most {limit}"),
        ),
        error if error.is_transient() => ApiError::unavailable(error.to_string()),
        error => ApiError::internal(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_revision_that_does_not_come_is_told_in_the_words_that_clients_look_for() {
        let error = Cache::default().wait_for(7).await.unwrap_err();
        let status = error.to_status();
        assert_eq!(status["code"], 504);
        assert_eq!(status["details"]["retryAfterSeconds"], 1);
        let cause = &status["details"]["causes"][0];
        assert_eq!(cause["reason"], "ResourceVersionTooLarge");
        assert_eq!(cause["message"], "Too large resource version");
    }
}
