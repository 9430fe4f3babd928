//! Revisioned keys, transactions and watches: where the API server keeps its objects.
//!
//! One contract, several backends. A store is an ordered map of keys to bytes. Every transaction that
//! changes something gets the next [`Revision`], one for the whole store. An acknowledged transaction
//! survives `kill -9` and power loss on every backend that has a disk, and every watch sees it, once, in
//! order.

mod backup;
mod change;
mod error;
mod etcd;
mod follow;
mod health;
mod lease;
mod local;
mod memory;
mod transaction;

use std::{fmt, future::Future, pin::Pin, time::Duration};

use camino::{Utf8Path, Utf8PathBuf};
use futures::stream::BoxStream;

pub use change::{Batch, Entry, Event};
pub use error::StoreError;
pub use etcd::{Etcd, EtcdIdentity, EtcdOptions, EtcdTls};
pub use health::{Health, Latch};
pub use local::{Local, LocalOptions, Report, check, restore};
pub use memory::Memory;
pub use transaction::{Condition, Outcome, Transaction, Write};

/// A point in the history of a store. Grows by one with every transaction that changes something; by
/// more if others use the same etcd.
///
/// Zero is before everything: no store is at it. A new store is at [`Revision::EMPTY`], which no entry
/// has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

impl Revision {
    /// Where a new store begins, as etcd does: whoever lists an empty store gets a revision to watch
    /// from that is not zero.
    pub const EMPTY: Self = Self(1);
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A promise of someone to come back: what was written under it goes when its time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseId(pub u64);

/// Which entries to read.
#[derive(Clone, Debug, Default)]
pub struct Range {
    /// Keys that begin with this; empty means every key.
    pub prefix: String,
    /// Only keys after this one: where the previous page ended.
    pub after: Option<String>,
    /// At most so many entries.
    pub limit: Option<usize>,
    /// As the store was at this revision; the newest state if absent.
    pub at: Option<Revision>,
}

/// What a [`Range`] held.
#[derive(Clone, Debug)]
pub struct Page {
    /// In the order of their keys, compared as bytes.
    pub entries: Vec<Entry>,
    /// The revision that this is the state of.
    pub revision: Revision,
    /// Whether the limit left something out.
    pub more: bool,
}

/// What a store answers, later.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Changes from a revision on, without a gap. Ends after the first error.
pub type Watch = BoxStream<'static, Result<Batch, StoreError>>;

/// Keys with revisions. Cheap to share behind an `Arc`; every method may be called concurrently.
pub trait Store: Send + Sync + fmt::Debug {
    /// The newest entry of a key.
    fn get<'a>(&'a self, key: &'a str) -> Pending<'a, Option<Entry>>;

    /// A page of entries, all as of one revision.
    ///
    /// Fails with [`StoreError::Compacted`] if `range.at` is forgotten, and with
    /// [`StoreError::Future`] if it has not happened yet.
    fn list(&self, range: Range) -> Pending<'_, Page>;

    /// Makes all writes if all conditions hold, else none. All writes get the same revision.
    ///
    /// When this returns [`Outcome::Committed`] the writes are durable. An error means that nobody knows
    /// whether they happened.
    fn commit(&self, transaction: Transaction) -> Pending<'_, Outcome>;

    /// Every change after `after` to a key that begins with `prefix`. One that has not happened yet is
    /// waited for. Fails with [`StoreError::Compacted`] if changes after `after` are forgotten.
    ///
    /// A revision is never split over two batches. The stream tells its progress
    /// ([`Batch::revision`]) also when nothing under the prefix changed. A reader that is slow delays
    /// nobody; one that is slower than compaction gets [`StoreError::Compacted`].
    fn watch(&self, prefix: &str, after: Revision) -> Pending<'_, Watch>;

    /// The newest revision. Whatever was acknowledged before the call, by any server, is in it.
    fn revision(&self) -> Pending<'_, Revision>;

    /// Forgets the history before `revision`: the state at `revision` and later ones can be listed, and
    /// watches can begin after it. What is forgotten already is no error; a revision that has not
    /// happened is.
    fn compact(&self, revision: Revision) -> Pending<'_, ()>;

    /// Begins a lease of this length. It ends by itself unless [`Store::renew`] is called in time; then
    /// its keys are deleted in one transaction.
    fn grant(&self, length: Duration) -> Pending<'_, LeaseId>;

    /// Begins the length of a lease again. Fails with [`StoreError::NoLease`] if it has ended.
    fn renew(&self, lease: LeaseId) -> Pending<'_, ()>;

    /// Ends a lease now, and deletes its keys.
    fn revoke(&self, lease: LeaseId) -> Pending<'_, ()>;

    /// Where to hear that the store has failed and must be opened anew. One that is only out of reach comes
    /// back, and has not.
    fn health(&self) -> Health {
        Health::unfailing()
    }

    /// Writes the state at one revision to a new file, while others go on reading and writing.
    fn backup<'a>(&'a self, file: &'a Utf8Path) -> Pending<'a, Revision>;
}

/// The files of a machine are named by absolute paths.
pub(crate) fn absolute(path: &Utf8Path) -> Result<Utf8PathBuf, StoreError> {
    camino::absolute_utf8(path).map_err(|source| StoreError::Files {
        action: "look at",
        path: path.to_owned(),
        source,
    })
}

/// Runs what waits for a disk where it may wait.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(StoreError::Unavailable {
            source: error.into(),
        }),
    }
}
