//! The store on this machine's disk: one writer with group commit over an ordered database.
//!
//! What was acknowledged is on the disk. Readers work on a snapshot and never wait for the writer.

mod check;
mod folder;
mod group;
mod journal;
mod layout;
mod restore;
mod tables;
mod tail;
#[cfg(test)]
mod tests;
mod writer;

use std::{
    fmt,
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
    time::Duration,
};

use camino::{Utf8Path, Utf8PathBuf};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep_until},
};

use crate::{
    Entry, Health, LeaseId, Outcome, Page, Pending, Range, Revision, Store, StoreError,
    Transaction, Watch, backup, blocking, follow::follow, lease::Leases,
};
pub use check::{Report, check};
use folder::{Folder, Found};
use layout::REVISION;
pub use restore::restore;
use tables::Tables;
use tail::{Changes, Tail, check_kept};
use writer::{QUEUE, Reply, Request, Writer, lock, refusal};

/// How much memory a [`Local`] may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalOptions {
    /// For blocks read from the disk.
    pub cache_bytes: u64,
    /// For what is written and not yet sorted into files. Taken from here when a store is made.
    pub memtable_bytes: u64,
    /// For the newest changes, so that watchers need not read the disk.
    pub recent_bytes: usize,
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self {
            cache_bytes: 4 << 20,
            memtable_bytes: 16 << 20,
            recent_bytes: 8 << 20,
        }
    }
}

/// A store in a folder of this machine.
pub struct Local {
    tables: Arc<Tables>,
    tail: Arc<Tail>,
    leases: Arc<Mutex<Leases>>,
    newest: watch::Receiver<Revision>,
    queue: Option<mpsc::Sender<Request>>,
    writer: Option<JoinHandle<()>>,
    health: Health,
    folder: Utf8PathBuf,
}

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Local")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// What a database says of itself when it is opened.
struct Opened {
    tables: Arc<Tables>,
    revision: Revision,
    compacted: Revision,
    trimmed: Revision,
    last_lease: u64,
    leases: Vec<(LeaseId, Duration)>,
}

impl Local {
    /// Opens the store in a folder; a new one if there is none. Leases begin their length again.
    pub async fn open(folder: &Utf8Path, options: LocalOptions) -> Result<Self, StoreError> {
        let path = folder.to_owned();
        let opened = blocking(move || open(&path, &options)).await?;
        let mut leases = Leases::default();
        let now = Instant::now();
        for (lease, length) in &opened.leases {
            leases.begin(*lease, *length, now);
        }
        let leases = Arc::new(Mutex::new(leases));
        let tail = Tail::new(opened.revision, opened.compacted, options.recent_bytes);
        let tail = Arc::new(tail);
        let (newest, receiver) = watch::channel(opened.revision);
        let (queue, requests) = mpsc::channel(QUEUE);
        let (latch, health) = Health::new();
        let writer = Writer {
            tables: Arc::clone(&opened.tables),
            leases: Arc::clone(&leases),
            tail: Arc::clone(&tail),
            newest,
            revision: opened.revision,
            last_lease: opened.last_lease,
            compacted: opened.compacted,
            trimmed: opened.trimmed,
            latch,
        };
        let writer = thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || writer.run(requests))
            .map_err(|error| folder::files("start the writer of", folder, error))?;
        for (lease, length) in opened.leases {
            tokio::spawn(expire_when_due(queue.downgrade(), lease, now + length));
        }
        Ok(Self {
            tables: opened.tables,
            tail,
            leases,
            newest: receiver,
            queue: Some(queue),
            writer: Some(writer),
            health,
            folder: folder.to_owned(),
        })
    }

    async fn ask<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, StoreError> {
        let queue = self.queue.as_ref().ok_or(StoreError::Closed)?;
        let (reply, answer) = oneshot::channel();
        let sent = queue.send(request(reply)).await;
        sent.map_err(|_| self.gone())?;
        answer.await.map_err(|_| self.gone())?
    }

    /// Why there is no writer.
    fn gone(&self) -> StoreError {
        let fault = self.health.fault();
        fault.map_or(StoreError::Closed, |reason| refusal(&reason))
    }
}

impl Drop for Local {
    /// Waits for what is under way, so that the folder is free afterwards.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            tracing::error!(folder = %self.folder, "the writer of the store panicked");
        }
    }
}

impl Store for Local {
    /// A point read, most often from memory: handing it to another thread would cost more than it does.
    fn get<'a>(&'a self, key: &'a str) -> Pending<'a, Option<Entry>> {
        Box::pin(async move {
            if key.len() > Transaction::LONGEST_KEY {
                return Ok(None);
            }
            self.tables.view().entry(key)
        })
    }

    fn list(&self, range: Range) -> Pending<'_, Page> {
        let tables = Arc::clone(&self.tables);
        Box::pin(blocking(move || list(&tables, &range)))
    }

    fn commit(&self, transaction: Transaction) -> Pending<'_, Outcome> {
        Box::pin(async move {
            transaction.check()?;
            self.ask(|reply| Request::Commit(transaction, reply)).await
        })
    }

    fn watch(&self, prefix: &str, after: Revision) -> Pending<'_, Watch> {
        let prefix = prefix.to_owned();
        Box::pin(async move {
            self.tail.check_kept(after)?;
            let changes = Changes {
                tail: Arc::clone(&self.tail),
                tables: Arc::downgrade(&self.tables),
            };
            let newest = self.newest.clone();
            Ok(follow(Arc::new(changes), prefix, after, newest))
        })
    }

    fn revision(&self) -> Pending<'_, Revision> {
        Box::pin(async move { Ok(*self.newest.borrow()) })
    }

    fn compact(&self, revision: Revision) -> Pending<'_, ()> {
        Box::pin(self.ask(move |reply| Request::Compact(revision, reply)))
    }

    fn grant(&self, length: Duration) -> Pending<'_, LeaseId> {
        Box::pin(async move {
            let lease = self.ask(|reply| Request::Grant(length, reply)).await?;
            if let (Some(queue), Some(deadline)) = (&self.queue, lock(&self.leases).deadline(lease))
            {
                tokio::spawn(expire_when_due(queue.downgrade(), lease, deadline));
            }
            Ok(lease)
        })
    }

    fn renew(&self, lease: LeaseId) -> Pending<'_, ()> {
        Box::pin(async move { lock(&self.leases).renew(lease, Instant::now()) })
    }

    fn revoke(&self, lease: LeaseId) -> Pending<'_, ()> {
        Box::pin(self.ask(move |reply| Request::Revoke(lease, reply)))
    }

    fn health(&self) -> Health {
        self.health.clone()
    }

    fn backup<'a>(&'a self, file: &'a Utf8Path) -> Pending<'a, Revision> {
        let view = self.tables.view();
        Box::pin(async move {
            let revision = view.revision()?;
            backup::write(file, move |writer| {
                writer.begin(revision)?;
                for lease in view.leases() {
                    let (lease, milliseconds) = lease?;
                    writer.lease(lease, Duration::from_millis(milliseconds))?;
                }
                for head in view.heads("", None) {
                    let (key, head) = head?;
                    if !head.deleted {
                        writer.entry(&view.expect_entry(&key, head.modified)?)?;
                    }
                }
                Ok(())
            })
            .await?;
            Ok(revision)
        })
    }
}

fn open(path: &Utf8Path, options: &LocalOptions) -> Result<Opened, StoreError> {
    let folder = Folder::take(path)?;
    if folder.look()? != Found::Store {
        make(&folder, options, |writes| {
            writes.put_number(REVISION, Revision::EMPTY.0);
            Ok(())
        })?;
    }
    let tables = Arc::new(open_tables(&folder, options)?);
    let view = tables.view();
    let opened = Opened {
        revision: view.revision()?,
        compacted: view.compacted()?,
        trimmed: view.trimmed()?,
        last_lease: view.last_lease()?,
        leases: view
            .leases()
            .map(|lease| lease.map(|(id, length)| (id, Duration::from_millis(length))))
            .collect::<Result<_, _>>()?,
        tables,
    };
    let newest = view.changes(Revision(0)).next_back().transpose()?;
    let newest = newest.map_or(opened.compacted.max(Revision::EMPTY), |(revision, ..)| {
        revision
    });
    if newest != opened.revision {
        return Err(folder.damaged(&format!(
            "it is at revision {}, but its newest change is of {newest}",
            opened.revision
        )));
    }
    Ok(opened)
}

/// Opens what is there, without a group that a power loss tore.
fn open_tables(folder: &Folder, options: &LocalOptions) -> Result<Tables, StoreError> {
    let database = folder.database();
    let open = || Tables::open(&database, options, Arc::clone(&folder.lock));
    match open() {
        Err(StoreError::Damaged { .. }) if journal::remove_torn_end(&database)? => open(),
        result => result,
    }
}

/// Makes a database in a folder, with what `fill` puts in. It counts only once all of it is there.
fn make(
    folder: &Folder,
    options: &LocalOptions,
    fill: impl FnOnce(&mut restore::Filling<'_>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    folder.begin()?;
    let tables = Tables::open(&folder.database(), options, Arc::clone(&folder.lock))?;
    let mut filling = restore::Filling::new(&tables);
    fill(&mut filling)?;
    filling.finish()?;
    drop(tables);
    folder.complete()
}

fn list(tables: &Arc<Tables>, range: &Range) -> Result<Page, StoreError> {
    let view = tables.view();
    let newest = view.revision()?;
    let at = range.at.unwrap_or(newest);
    if at > newest {
        return Err(StoreError::Future {
            requested: at,
            newest,
        });
    }
    check_kept(at, view.compacted()?)?;
    let mut page = Page {
        entries: Vec::new(),
        revision: at,
        more: false,
    };
    if range.prefix.len() > Transaction::LONGEST_KEY {
        return Ok(page);
    }
    for head in view.heads(&range.prefix, range.after.as_deref()) {
        let (key, head) = head?;
        let entry = if head.modified > at {
            view.entry_at(&key, at)?
        } else if head.deleted {
            None
        } else {
            Some(view.expect_entry(&key, head.modified)?)
        };
        let Some(entry) = entry else { continue };
        if Some(page.entries.len()) == range.limit {
            page.more = true;
            break;
        }
        page.entries.push(entry);
    }
    Ok(page)
}

async fn expire_when_due(queue: mpsc::WeakSender<Request>, lease: LeaseId, mut deadline: Instant) {
    loop {
        sleep_until(deadline).await;
        let Some(queue) = queue.upgrade() else { return };
        let (reply, answer) = oneshot::channel();
        if queue.send(Request::Expire(lease, reply)).await.is_err() {
            return;
        }
        drop(queue);
        match answer.await {
            Ok(Ok(Some(later))) => deadline = later,
            Ok(Ok(None)) | Err(_) => return,
            Ok(Err(error)) => {
                tracing::warn!(lease = lease.0, %error, "could not end a lease");
                return;
            }
        }
    }
}
