//! The one writer. It takes whatever waits, makes it durable with one sync, tells watchers, and only then
//! answers. Between groups it removes a little of what compaction has forgotten. After the first write that
//! failed it writes nothing more.

use std::{
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};

use super::{
    group::Group,
    layout::{Change, Head, TRIMMED, Version},
    tables::{Tables, Writes},
    tail::Tail,
};
use crate::{
    Latch, LeaseId, Outcome, Revision, StoreError, Transaction, follow::publish, lease::Leases,
};

/// So many requests may wait; whoever comes later waits to be let in.
pub(super) const QUEUE: usize = 1024;
/// A group is closed when it has so many requests.
const GROUP: usize = 512;
/// How often to look whether as many wait as were answered last.
const GATHERINGS: usize = 6;
const BETWEEN_GATHERINGS: Duration = Duration::from_micros(50);
/// Forgotten changes removed at a time: few enough that nobody waits for long.
const TRIMMED_AT_ONCE: usize = 1024;

pub(super) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

#[derive(Debug)]
pub(super) enum Request {
    Commit(Transaction, Reply<Outcome>),
    Grant(Duration, Reply<LeaseId>),
    /// Ends a lease if it is due; else says when it will be.
    Expire(LeaseId, Reply<Option<Instant>>),
    Revoke(LeaseId, Reply<()>),
    Compact(Revision, Reply<()>),
}

impl Request {
    /// Answers without doing anything.
    fn refuse(self, error: StoreError) {
        match self {
            Self::Commit(_, reply) => later(reply, Err(error))(None),
            Self::Grant(_, reply) => later(reply, Err(error))(None),
            Self::Expire(_, reply) => later(reply, Err(error))(None),
            Self::Revoke(_, reply) | Self::Compact(_, reply) => later(reply, Err(error))(None),
        }
    }
}

/// What is left to do for a request when its group is durable, or why it is not.
type Answer = Box<dyn FnOnce(Option<&StoreError>)>;

pub(super) struct Writer {
    pub(super) tables: Arc<Tables>,
    pub(super) leases: Arc<Mutex<Leases>>,
    pub(super) tail: Arc<Tail>,
    pub(super) newest: watch::Sender<Revision>,
    pub(super) revision: Revision,
    pub(super) last_lease: u64,
    pub(super) compacted: Revision,
    pub(super) trimmed: Revision,
    pub(super) latch: Latch,
}

impl Writer {
    /// Runs until every sender of the queue is gone.
    pub(super) fn run(mut self, mut queue: mpsc::Receiver<Request>) {
        self.write(&mut queue);
        while let Some(request) = queue.blocking_recv() {
            request.refuse(refusal(&self.latch.fault().unwrap_or_default()));
        }
    }

    /// Writes until every sender of the queue is gone or a write fails.
    fn write(&mut self, queue: &mut mpsc::Receiver<Request>) {
        let mut requests = Vec::with_capacity(GROUP);
        let mut expected = 0;
        while self.latch.fault().is_none() {
            if self.trimmed < self.compacted {
                if let Err(error) = self.trim() {
                    self.fail(&error);
                    return;
                }
                match queue.try_recv() {
                    Ok(request) => requests.push(request),
                    Err(mpsc::error::TryRecvError::Empty) => continue,
                    Err(mpsc::error::TryRecvError::Disconnected) => return,
                }
            } else {
                match queue.blocking_recv() {
                    Some(request) => requests.push(request),
                    None => return,
                }
            }
            gather(queue, &mut requests, expected);
            expected = requests.len();
            self.group(requests.drain(..));
        }
    }

    fn group(&mut self, requests: impl Iterator<Item = Request>) {
        let tables = Arc::clone(&self.tables);
        let leases = Arc::clone(&self.leases);
        let mut group = Group::new(&tables, &leases, self.revision);
        let mut answers: Vec<Answer> = Vec::with_capacity(requests.size_hint().0);
        for request in requests {
            answers.push(self.evaluate(&mut group, request));
        }
        let failure = match group.commit() {
            Ok(done) => {
                self.revision = done.revision;
                self.compacted = done.compacted.unwrap_or(self.compacted);
                self.tail.push(done);
                publish(&self.newest, self.revision);
                None
            }
            Err(error) => {
                self.fail(&error);
                Some(error)
            }
        };
        for answer in answers {
            answer(failure.as_ref());
        }
    }

    fn evaluate(&mut self, group: &mut Group<'_>, request: Request) -> Answer {
        match request {
            Request::Commit(transaction, reply) => later(reply, group.transact(transaction)),
            Request::Grant(length, reply) => {
                let milliseconds = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
                let lease = group.grant(self.last_lease, milliseconds);
                self.last_lease = lease.0;
                group.leases().begin(lease, length, Instant::now());
                later(reply, Ok(lease))
            }
            Request::Expire(lease, reply) => {
                let deadline = group.leases().deadline(lease);
                later(
                    reply,
                    match deadline {
                        Some(deadline) if deadline <= Instant::now() => {
                            group.end_lease(lease).map(|()| None)
                        }
                        other => Ok(other),
                    },
                )
            }
            Request::Revoke(lease, reply) => {
                let known = group.leases().contains(lease);
                later(
                    reply,
                    if known {
                        group.end_lease(lease)
                    } else {
                        Err(StoreError::NoLease(lease))
                    },
                )
            }
            Request::Compact(revision, reply) => later(reply, group.compact(revision)),
        }
    }

    /// What the disk has of the failed write is not known, so nothing may be built on it.
    fn fail(&self, error: &StoreError) {
        let reason = match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        tracing::error!(reason, "the store has failed and takes no more writes");
        self.latch.fail(&reason);
    }

    /// Removes some of what is forgotten, and returns when the disk has it: a power loss may tear one group and
    /// not several.
    fn trim(&mut self) -> Result<(), StoreError> {
        let tables = Arc::clone(&self.tables);
        self.trimmed = match self.forgotten(&tables) {
            Ok((writes, done)) => {
                writes.commit()?;
                done
            }
            Err(error) => {
                tracing::warn!(%error, "could not remove old revisions; they take space until the next start");
                self.compacted
            }
        };
        Ok(())
    }

    /// Some of what is forgotten: versions that were replaced, and changes themselves. Up to which revision.
    fn forgotten<'a>(&self, tables: &'a Arc<Tables>) -> Result<(Writes<'a>, Revision), StoreError> {
        let view = tables.view();
        let mut writes = tables.batch();
        let mut done = self.compacted;
        for (removed, change) in view.changes(self.trimmed).enumerate() {
            let (revision, number, change) = change?;
            if revision > self.compacted {
                break;
            }
            if removed >= TRIMMED_AT_ONCE && number == 0 {
                done = Revision(revision.0 - 1);
                break;
            }
            if let Some(previous) = change.previous {
                writes.remove(Version::key(&change.key, previous));
            }
            if change.deleted {
                writes.remove(Version::key(&change.key, revision));
                let deleted = Head {
                    modified: revision,
                    deleted: true,
                };
                if view.head(&change.key)? == Some(deleted) {
                    writes.remove(Head::key(&change.key));
                }
            }
            writes.remove(Change::key(revision, number));
        }
        writes.put_number(TRIMMED, done.0);
        Ok((writes, done))
    }
}

/// Takes what waits, and a little later what those come back with whom the last group answered: a sync
/// takes longer than they do, and the more share it the better.
fn gather(queue: &mut mpsc::Receiver<Request>, requests: &mut Vec<Request>, expected: usize) {
    for _ in 0..GATHERINGS {
        while requests.len() < GROUP
            && let Ok(request) = queue.try_recv()
        {
            requests.push(request);
        }
        if requests.len() >= expected.min(GROUP) {
            return;
        }
        thread::sleep(BETWEEN_GATHERINGS);
    }
}

/// Answers when the group is durable. Nobody may be waiting any more, and that is no fault.
fn later<T: 'static>(reply: Reply<T>, result: Result<T, StoreError>) -> Answer {
    Box::new(move |failure| {
        let result = match failure {
            Some(failure) => Err(failed(failure)),
            None => result,
        };
        reply.send(result).ok();
    })
}

/// What everybody is told after a failure.
pub(super) fn refusal(reason: &str) -> StoreError {
    StoreError::Failed {
        reason: reason.to_owned(),
    }
}

/// The failure of a group, once more for each of its requests.
fn failed(failure: &StoreError) -> StoreError {
    match failure {
        StoreError::Files {
            action,
            path,
            source,
        } => StoreError::Files {
            action,
            path: path.clone(),
            source: std::io::Error::new(source.kind(), source.to_string()),
        },
        other => StoreError::Damaged {
            place: "its newest revision".to_owned(),
            reason: other.to_string(),
        },
    }
}

pub(super) fn lock(leases: &Mutex<Leases>) -> std::sync::MutexGuard<'_, Leases> {
    leases.lock().unwrap_or_else(PoisonError::into_inner)
}
