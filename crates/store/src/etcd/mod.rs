//! The store in an etcd, or a cluster of them, by its v3 API. Several API servers may use one: what they
//! write is compared and set by etcd, and revisions are etcd's own.

mod client;
mod reading;
mod translate;
mod watch;
mod wire;

use std::{collections::HashSet, sync::Arc, time::Duration};

use camino::{Utf8Path, Utf8PathBuf};
use tokio::sync::mpsc;
use tonic::Status;
use url::Url;

use crate::{
    Entry, LeaseId, Outcome, Page, Pending, Range, Revision, Store, StoreError, Transaction, Watch,
    Write, backup, follow::publish,
};
use client::{Client, Repeat};
use reading::{Progress, Reading};
use translate::{Complaint, Place, complaint, other, revision};
use watch::Watcher;
use wire::{
    Answer, CompactionRequest, LeaseGrantRequest, LeaseRequest, LeaseResponse,
    LeaseTimeToLiveResponse, Nothing, RangeRequest, RangeResponse, StatusResponse, TxnRequest,
    TxnResponse,
};

/// Entries asked for at once, so that no answer grows with the store.
const PAGE: usize = 500;

/// How to reach etcd.
#[derive(Clone, Debug)]
pub struct EtcdOptions {
    /// `http://` or `https://`, one for each server.
    pub endpoints: Vec<Url>,
    /// What every key begins with in etcd, and no key of others; not empty.
    pub prefix: String,
    pub tls: Option<EtcdTls>,
}

/// Files for TLS, as PEM.
#[derive(Clone, Debug)]
pub struct EtcdTls {
    /// Whoever signed the certificates of the servers.
    pub authority: Utf8PathBuf,
    /// What we show to the servers.
    pub own: Option<EtcdIdentity>,
}

/// A certificate and its key, as PEM files.
#[derive(Clone, Debug)]
pub struct EtcdIdentity {
    pub certificate: Utf8PathBuf,
    pub key: Utf8PathBuf,
}

/// A store in etcd.
#[derive(Debug)]
pub struct Etcd {
    client: Arc<Client>,
    place: Place,
    /// The newest revision learnt from any answer.
    known: tokio::sync::watch::Sender<Revision>,
    progress: Progress,
}

impl Etcd {
    /// Connects, and fails if no server answers.
    pub async fn connect(options: EtcdOptions) -> Result<Self, StoreError> {
        if options.prefix.is_empty() {
            return Err(StoreError::BadKey {
                length: 0,
                limit: Transaction::LONGEST_KEY,
            });
        }
        let client = Client::new(&options).await?;
        let path = "/etcdserverpb.Maintenance/Status";
        let status: StatusResponse = client
            .call(path, &Nothing {}, Repeat::Harmless)
            .await
            .map_err(other)?;
        let progress = if tells_progress_too_early(&status.version) {
            Progress::Changes
        } else {
            Progress::Asked
        };
        tracing::debug!(version = status.version, "connected to etcd");
        Ok(Self {
            client: Arc::new(client),
            place: Place::new(&options.prefix),
            known: tokio::sync::watch::Sender::new(Revision(0)),
            progress,
        })
    }

    async fn range(&self, request: &RangeRequest) -> Result<RangeResponse, Status> {
        let path = "/etcdserverpb.KV/Range";
        let answer: RangeResponse = self.client.call(path, request, Repeat::Harmless).await?;
        self.learn(&answer);
        Ok(answer)
    }

    fn learn(&self, answer: &RangeResponse) -> Revision {
        let newest = revision(answer.header.unwrap_or_default().revision);
        publish(&self.known, newest);
        newest
    }

    /// Says what an error about a revision means.
    async fn about(&self, requested: Revision, error: Status) -> StoreError {
        match complaint(&error) {
            Complaint::Compacted => match self.compacted().await {
                Ok(oldest) => StoreError::Compacted { requested, oldest },
                Err(error) => error,
            },
            Complaint::Future => match self.revision().await {
                Ok(newest) => StoreError::Future { requested, newest },
                Err(error) => error,
            },
            Complaint::NoLease | Complaint::Other => other(error),
        }
    }

    /// The oldest revision that etcd keeps. It tells that only to those who watch what is forgotten.
    async fn compacted(&self) -> Result<Revision, StoreError> {
        match self.watcher("", Revision(0)).begin().await {
            Err(StoreError::Compacted { oldest, .. }) => Ok(oldest),
            Err(error) => Err(error),
            Ok(mut watch) => match futures::StreamExt::next(&mut watch).await {
                Some(Err(StoreError::Compacted { oldest, .. })) => Ok(oldest),
                Some(Err(error)) => Err(error),
                _ => Ok(Revision(0)),
            },
        }
    }

    fn watcher(&self, prefix: &str, after: Revision) -> Watcher {
        Watcher {
            client: Arc::clone(&self.client),
            reading: Reading::new(self.place.clone(), prefix, after, self.progress),
            known: self.known.subscribe(),
        }
    }

    async fn list_range(&self, range: Range) -> Result<Page, StoreError> {
        let (mut key, range_end) = self.place.range(&range.prefix);
        let mut page = Page {
            entries: Vec::new(),
            revision: Revision(0),
            more: false,
        };
        if let Some(after) = &range.after {
            let next = [self.place.key(after).as_slice(), &[0]].concat();
            key = key.max(next);
        }
        let mut at = range.at;
        let limit = range.limit.unwrap_or(usize::MAX);
        loop {
            // One at least, for its revision.
            let wanted = (limit - page.entries.len()).clamp(1, PAGE);
            let request = RangeRequest {
                key: key.clone(),
                range_end: range_end.clone(),
                limit: i64::try_from(wanted).unwrap_or(i64::MAX),
                revision: at.map_or(0, |at| at.0.cast_signed()),
                count_only: false,
            };
            let answer = match self.range(&request).await {
                Ok(answer) => answer,
                Err(error) => return Err(self.about(at.unwrap_or_default(), error).await),
            };
            page.revision = at.unwrap_or_else(|| self.learn(&answer));
            at = Some(page.revision);
            let more = answer.more;
            for found in answer.kvs {
                if page.entries.len() == limit {
                    page.more = true;
                    return Ok(page);
                }
                key = [&found.key[..], &[0]].concat();
                page.entries.push(self.place.entry(found)?);
            }
            if !more {
                return Ok(page);
            }
            if page.entries.len() == limit {
                page.more = true;
                return Ok(page);
            }
        }
    }

    async fn transact(&self, transaction: Transaction) -> Result<Outcome, StoreError> {
        transaction.check()?;
        let lease = transaction.writes.iter().find_map(|write| match write {
            Write::Put { lease, .. } => *lease,
            Write::Delete { .. } => None,
        });
        let conditions = transaction.conditions.clone();
        let request: TxnRequest = self.place.transaction(transaction);
        let path = "/etcdserverpb.KV/Txn";
        let answer = self.client.call(path, &request, Repeat::OnlyIfUnsent).await;
        let answer: TxnResponse = answer.map_err(|error| match (complaint(&error), lease) {
            (Complaint::NoLease, Some(lease)) => StoreError::NoLease(lease),
            _ => other(error),
        })?;
        let newest = revision(answer.header.unwrap_or_default().revision);
        publish(&self.known, newest);
        if answer.succeeded {
            return Ok(Outcome::Committed(newest));
        }
        let found = answer.responses.into_iter().map(found);
        for (number, (condition, found)) in conditions.iter().zip(found).enumerate() {
            let current = found.map(|found| self.place.entry(found)).transpose()?;
            if !condition.holds(current.as_ref().map(|entry| entry.modified)) {
                return Ok(Outcome::Refused {
                    condition: number,
                    current,
                });
            }
        }
        Err(StoreError::Damaged {
            place: "an answer of etcd".to_owned(),
            reason: "a transaction was refused, but all its conditions hold".to_owned(),
        })
    }

    async fn forget(&self, revision: Revision) -> Result<(), StoreError> {
        let request = CompactionRequest {
            revision: revision.0.cast_signed(),
        };
        let path = "/etcdserverpb.KV/Compact";
        let answer: Result<Nothing, Status> =
            self.client.call(path, &request, Repeat::Harmless).await;
        match answer {
            Ok(Nothing {}) => Ok(()),
            // Forgotten already.
            Err(error) if complaint(&error) == Complaint::Compacted => Ok(()),
            Err(error) => Err(self.about(revision, error).await),
        }
    }

    async fn lease_length(&self, lease: LeaseId) -> Result<Option<Duration>, StoreError> {
        let request = LeaseRequest {
            id: lease.0.cast_signed(),
        };
        let path = "/etcdserverpb.Lease/LeaseTimeToLive";
        let answer: LeaseTimeToLiveResponse = self
            .client
            .call(path, &request, Repeat::Harmless)
            .await
            .map_err(other)?;
        let seconds = u64::try_from(answer.granted_ttl).unwrap_or(0);
        Ok((answer.ttl > 0).then(|| Duration::from_secs(seconds)))
    }

    /// Sends all entries at one revision, each lease before its first entry.
    async fn send_all(
        &self,
        at: Revision,
        parts: &mpsc::Sender<Result<Part, StoreError>>,
    ) -> Result<(), StoreError> {
        let mut leases = HashSet::new();
        let mut after = None;
        loop {
            let range = Range {
                prefix: String::new(),
                after: after.take(),
                limit: Some(PAGE),
                at: Some(at),
            };
            let page = self.list_range(range).await?;
            after = page.entries.last().map(|entry| entry.key.to_string());
            for entry in page.entries {
                if let Some(lease) = entry.lease
                    && leases.insert(lease)
                {
                    // One that has just ended is about to end again.
                    let length = self.lease_length(lease).await?.unwrap_or_default();
                    send(parts, Part::Lease(lease, length)).await?;
                }
                send(parts, Part::Entry(entry)).await?;
            }
            if !page.more {
                return Ok(());
            }
        }
    }
}

enum Part {
    Lease(LeaseId, Duration),
    Entry(Entry),
}

async fn send(
    parts: &mpsc::Sender<Result<Part, StoreError>>,
    part: Part,
) -> Result<(), StoreError> {
    let sent = parts.send(Ok(part)).await;
    sent.map_err(|_| StoreError::Closed)
}

fn found(answer: Answer) -> Option<wire::KeyValue> {
    answer.range.unwrap_or_default().kvs.into_iter().next()
}

impl Store for Etcd {
    fn get<'a>(&'a self, key: &'a str) -> Pending<'a, Option<Entry>> {
        Box::pin(async move {
            if key.is_empty() || key.len() > Transaction::LONGEST_KEY {
                return Ok(None);
            }
            let answer = self.range(&self.place.one(key)).await.map_err(other)?;
            let found = answer.kvs.into_iter().next();
            found.map(|found| self.place.entry(found)).transpose()
        })
    }

    fn list(&self, range: Range) -> Pending<'_, Page> {
        Box::pin(self.list_range(range))
    }

    fn commit(&self, transaction: Transaction) -> Pending<'_, Outcome> {
        Box::pin(self.transact(transaction))
    }

    fn watch(&self, prefix: &str, after: Revision) -> Pending<'_, Watch> {
        Box::pin(self.watcher(prefix, after).begin())
    }

    fn revision(&self) -> Pending<'_, Revision> {
        Box::pin(async move {
            let mut request = self.place.one("-");
            request.count_only = true;
            let answer = self.range(&request).await.map_err(other)?;
            Ok(self.learn(&answer))
        })
    }

    fn compact(&self, revision: Revision) -> Pending<'_, ()> {
        Box::pin(self.forget(revision))
    }

    fn grant(&self, length: Duration) -> Pending<'_, LeaseId> {
        Box::pin(async move {
            let seconds = length.as_secs() + u64::from(length.subsec_nanos() > 0);
            let request = LeaseGrantRequest {
                ttl: i64::try_from(seconds.max(1)).unwrap_or(i64::MAX),
            };
            let path = "/etcdserverpb.Lease/LeaseGrant";
            // Granted twice, one of them ends unused.
            let answer = self.client.call(path, &request, Repeat::Harmless).await;
            let answer: LeaseResponse = answer.map_err(other)?;
            Ok(LeaseId(answer.id.cast_unsigned()))
        })
    }

    fn renew(&self, lease: LeaseId) -> Pending<'_, ()> {
        Box::pin(async move {
            let request = LeaseRequest {
                id: lease.0.cast_signed(),
            };
            let path = "/etcdserverpb.Lease/LeaseKeepAlive";
            let answer = self.client.call_stream(path, request).await;
            let answer: LeaseResponse = answer.map_err(other)?;
            if answer.ttl > 0 {
                Ok(())
            } else {
                Err(StoreError::NoLease(lease))
            }
        })
    }

    fn revoke(&self, lease: LeaseId) -> Pending<'_, ()> {
        Box::pin(async move {
            let request = LeaseRequest {
                id: lease.0.cast_signed(),
            };
            let path = "/etcdserverpb.Lease/LeaseRevoke";
            let answer = self.client.call(path, &request, Repeat::OnlyIfUnsent).await;
            let answer: Result<Nothing, Status> = answer;
            match answer {
                Ok(Nothing {}) => Ok(()),
                Err(error) if complaint(&error) == Complaint::NoLease => {
                    Err(StoreError::NoLease(lease))
                }
                Err(error) => Err(other(error)),
            }
        })
    }

    fn backup<'a>(&'a self, file: &'a Utf8Path) -> Pending<'a, Revision> {
        Box::pin(async move {
            let at = self.revision().await?;
            let (sender, mut receiver) = mpsc::channel(PAGE);
            let writing = backup::write(file, move |writer| {
                writer.begin(at)?;
                while let Some(part) = receiver.blocking_recv() {
                    match part? {
                        Part::Lease(lease, length) => writer.lease(lease, length)?,
                        Part::Entry(entry) => writer.entry(&entry)?,
                    }
                }
                Ok(())
            });
            let sending = async move {
                if let Err(error) = self.send_all(at, &sender).await {
                    // Whoever writes has failed already if nobody takes this.
                    sender.send(Err(error)).await.ok();
                }
            };
            let (written, ()) = tokio::join!(writing, sending);
            written?;
            Ok(at)
        })
    }
}

/// Whether a version of etcd has the fault that 3.4.25 and 3.5.8 mended. What cannot be read may have it.
fn tells_progress_too_early(version: &str) -> bool {
    let mut numbers = version.split(['.', '-']).map(str::parse::<u32>);
    let mut next = || numbers.next().and_then(Result::ok);
    match (next(), next(), next()) {
        (Some(3), Some(4), Some(patch)) => patch < 25,
        (Some(3), Some(5), Some(patch)) => patch < 8,
        (Some(major), Some(minor), Some(_)) => (major, minor) < (3, 4),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mended_versions_are_believed() {
        for version in ["3.4.23", "3.5.0", "3.5.7", "3.3.27", "", "unknown"] {
            assert!(tells_progress_too_early(version), "{version}");
        }
        for version in ["3.4.25", "3.5.8", "3.5.16-rc.1", "3.6.0", "4.0.0"] {
            assert!(!tells_progress_too_early(version), "{version}");
        }
    }
}
