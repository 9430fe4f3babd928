//! A store without a disk: for tests, for tries, and as the plainest reading of the contract. All is gone
//! when it is dropped.

mod state;

use std::{
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak},
    time::Duration,
};

use camino::Utf8Path;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::{
    Batch, Entry, LeaseId, Outcome, Page, Pending, Range, Revision, Store, Transaction, Watch,
    backup,
    follow::{History, follow, publish},
};
use state::State;

/// A store in memory.
#[derive(Debug)]
pub struct Memory {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    newest: watch::Sender<Revision>,
}

/// What watchers keep; without the sender, whose end tells them that the store is gone.
#[derive(Debug)]
struct Shared(RwLock<State>);

impl Shared {
    // Nothing panics while it holds the lock, so a poisoned one is no reason to give up.
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl History for Shared {
    fn read<'a>(&'a self, prefix: &'a str, after: Revision) -> Pending<'a, Batch> {
        Box::pin(async move { self.read().read(prefix, after) })
    }
}

impl Inner {
    /// Changes the state, then tells watchers.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let (result, revision) = {
            let mut state = self.shared.write();
            let result = change(&mut state);
            (result, state.revision)
        };
        publish(&self.newest, revision);
        result
    }

    /// Ends the lease if it is due; else says when it will be.
    fn expire(&self, lease: LeaseId) -> Option<Instant> {
        self.change(|state| {
            let deadline = state.leases.deadline(lease)?;
            if deadline > Instant::now() {
                return Some(deadline);
            }
            if let Err(error) = state.end_lease(lease) {
                tracing::warn!(lease = lease.0, %error, "could not end a lease");
            }
            None
        })
    }
}

impl Memory {
    pub fn new() -> Self {
        let shared = Arc::new(Shared(RwLock::new(State::new())));
        let newest = watch::Sender::new(Revision::EMPTY);
        Self {
            inner: Arc::new(Inner { shared, newest }),
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.inner.shared.read()
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl Store for Memory {
    fn get<'a>(&'a self, key: &'a str) -> Pending<'a, Option<Entry>> {
        Box::pin(async move { Ok(self.read().get(key)) })
    }

    fn list(&self, range: Range) -> Pending<'_, Page> {
        Box::pin(async move { self.read().list(&range) })
    }

    fn commit(&self, transaction: Transaction) -> Pending<'_, Outcome> {
        Box::pin(async move {
            transaction.check()?;
            self.inner.change(|state| state.commit(transaction))
        })
    }

    fn watch(&self, prefix: &str, after: Revision) -> Pending<'_, Watch> {
        let prefix = prefix.to_owned();
        Box::pin(async move {
            self.read().check_kept(after)?;
            let newest = self.inner.newest.subscribe();
            let history = Arc::clone(&self.inner.shared);
            Ok(follow(history, prefix, after, newest))
        })
    }

    fn revision(&self) -> Pending<'_, Revision> {
        Box::pin(async move { Ok(self.read().revision) })
    }

    fn compact(&self, revision: Revision) -> Pending<'_, ()> {
        Box::pin(async move { self.inner.change(|state| state.compact(revision)) })
    }

    fn grant(&self, length: Duration) -> Pending<'_, LeaseId> {
        Box::pin(async move {
            let (lease, deadline) = self.inner.change(|state| {
                let lease = state.next_lease();
                (lease, state.leases.begin(lease, length, Instant::now()))
            });
            let inner = Arc::downgrade(&self.inner);
            tokio::spawn(expire_when_due(inner, lease, deadline));
            Ok(lease)
        })
    }

    fn renew(&self, lease: LeaseId) -> Pending<'_, ()> {
        Box::pin(async move {
            let now = Instant::now();
            self.inner.change(|state| state.leases.renew(lease, now))
        })
    }

    fn revoke(&self, lease: LeaseId) -> Pending<'_, ()> {
        Box::pin(async move { self.inner.change(|state| state.end_lease(lease)) })
    }

    fn backup<'a>(&'a self, file: &'a Utf8Path) -> Pending<'a, Revision> {
        Box::pin(async move {
            let (revision, entries, leases) = {
                let state = self.read();
                let entries: Vec<Entry> = state.entries().cloned().collect();
                (state.revision, entries, state.leases.lengths())
            };
            backup::write(file, move |writer| {
                writer.begin(revision)?;
                for (lease, length) in leases {
                    writer.lease(lease, length)?;
                }
                entries.iter().try_for_each(|entry| writer.entry(entry))
            })
            .await?;
            Ok(revision)
        })
    }
}

async fn expire_when_due(store: Weak<Inner>, lease: LeaseId, mut deadline: Instant) {
    loop {
        sleep_until(deadline).await;
        let Some(store) = store.upgrade() else { return };
        let Some(later) = store.expire(lease) else {
            return;
        };
        deadline = later;
    }
}
