//! One watch of etcd that survives lost connections: it goes on after the last revision it has seen.
//!
//! A watch that has not reached a revision that somebody has learnt of asks etcd for its progress. Old
//! servers answer before they have sent the changes that belong to it (mended in 3.4.25 and 3.5.8). Those
//! are not asked: the watch is on all our keys instead, so that each of our revisions comes with a change,
//! and whoever waits for a revision that others made writes a key that nobody else sees.

use std::{sync::Arc, time::Duration};

use futures::stream;
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until, timeout},
};
use tonic::Status;

use super::{
    client::{ATTEMPTS, CALL, Client, Repeat, WatchCall, is_unreachable, pause, unavailable},
    reading::{Progress, Reading},
    translate::{Complaint, complaint, other},
    wire::{Nothing, RangeRequest, RangeResponse, WatchRequest, WatchRequestKind},
};
use crate::{Batch, Revision, StoreError, Watch};

/// A change of the watch's own arrives sooner, and no question is needed.
const BEFORE_ASKING: Duration = Duration::from_millis(20);
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(100);
/// Writing is for when nothing else helps, and nothing has been heard for so long.
const BEFORE_WRITING: Duration = Duration::from_secs(3);

pub(super) struct Watcher {
    pub(super) client: Arc<Client>,
    pub(super) reading: Reading,
    /// The newest revision that anybody here has learnt of.
    pub(super) known: watch::Receiver<Revision>,
}

struct Running {
    watcher: Watcher,
    call: WatchCall,
    ask_at: Option<Instant>,
    failures: u32,
}

impl Watcher {
    /// Begins to watch; fails if no server answers, or the revision is forgotten.
    pub(super) async fn begin(mut self) -> Result<Watch, StoreError> {
        let mut attempt = 0;
        let call = loop {
            match self.open().await {
                Err(error) if error.is_transient() && attempt + 1 < ATTEMPTS => {
                    attempt += 1;
                    sleep(pause(attempt)).await;
                }
                result => break result?,
            }
        };
        let running = Running {
            watcher: self,
            call,
            ask_at: None,
            failures: 0,
        };
        Ok(Box::pin(stream::unfold(Some(running), |running| async {
            let mut running = running?;
            let next = running.next().await;
            let rest = next.is_ok().then_some(running);
            Some((next, rest))
        })))
    }

    async fn open(&mut self) -> Result<WatchCall, StoreError> {
        let request = self.reading.request();
        let mut call = self.client.watch(request).await.map_err(other)?;
        let created = async {
            loop {
                let message = call.responses.message().await.map_err(other)?;
                let message = message.ok_or_else(|| unavailable("etcd ended the watch"))?;
                let created = message.created;
                self.reading.take(message)?;
                if created {
                    return Ok(());
                }
            }
        };
        match timeout(CALL, created).await {
            Ok(created) => created?,
            Err(_) => return Err(unavailable("etcd did not answer in time")),
        }
        self.check_kept().await?;
        Ok(call)
    }

    /// etcd lets a watch begin with the very revision that it compacted to, of which old versions may
    /// have lost the deletions. Whoever can still list `after` misses nothing.
    async fn check_kept(&self) -> Result<(), StoreError> {
        let after = self.reading.after;
        if after.0 == 0 {
            return Ok(());
        }
        let request = RangeRequest {
            revision: after.0.cast_signed(),
            count_only: true,
            ..self.reading.place.one("-")
        };
        let path = "/etcdserverpb.KV/Range";
        let answer: Result<RangeResponse, Status> =
            self.client.call(path, &request, Repeat::Harmless).await;
        match answer {
            Ok(_) => Ok(()),
            Err(error) => match complaint(&error) {
                Complaint::Compacted => Err(StoreError::Compacted {
                    requested: after,
                    oldest: Revision(after.0 + 1),
                }),
                // It will be reached.
                Complaint::Future => Ok(()),
                Complaint::NoLease | Complaint::Other => Err(other(error)),
            },
        }
    }

    /// Makes a change that every watch of the store gets.
    async fn write_mark(&self) -> Result<(), StoreError> {
        let path = "/etcdserverpb.KV/Txn";
        let request = self.reading.place.mark();
        let answer: Result<Nothing, Status> =
            self.client.call(path, &request, Repeat::Harmless).await;
        match answer {
            Ok(Nothing {}) => Ok(()),
            // The watch will hear of it too.
            Err(error) if is_unreachable(&error) => Ok(()),
            Err(error) => Err(other(error)),
        }
    }
}

impl Running {
    async fn next(&mut self) -> Result<Batch, StoreError> {
        loop {
            let known = *self.watcher.known.borrow_and_update();
            if known <= self.watcher.reading.after {
                self.ask_at = None;
            } else if self.ask_at.is_none() {
                self.ask_at = Some(Instant::now() + self.patience(BEFORE_ASKING));
            }
            let ask_at = self.ask_at;
            let asking = async {
                match ask_at {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                message = self.call.responses.message() => match message {
                    Ok(Some(message)) => {
                        self.heard();
                        if let Some(batch) = self.watcher.reading.take(message)? {
                            return Ok(batch);
                        }
                    }
                    Ok(None) => self.reopen("etcd ended the watch").await?,
                    Err(error) if is_unreachable(&error) => self.reopen(error.message()).await?,
                    Err(error) => return Err(other(error)),
                },
                changed = self.watcher.known.changed() => {
                    changed.map_err(|_| StoreError::Closed)?;
                }
                () = asking => self.ask().await?,
            }
        }
    }

    fn heard(&mut self) {
        self.failures = 0;
        if self.watcher.reading.progress == Progress::Changes {
            self.ask_at = None;
        }
    }

    fn patience(&self, asking: Duration) -> Duration {
        match self.watcher.reading.progress {
            Progress::Asked => asking,
            Progress::Changes => BEFORE_WRITING,
        }
    }

    async fn ask(&mut self) -> Result<(), StoreError> {
        self.ask_at = Some(Instant::now() + self.patience(BETWEEN_QUESTIONS));
        if self.watcher.reading.progress == Progress::Changes {
            return self.watcher.write_mark().await;
        }
        let question = WatchRequest {
            kind: Some(WatchRequestKind::Progress(Nothing {})),
        };
        if self.call.requests.send(question).await.is_err() {
            self.reopen("etcd ended the watch").await?;
        }
        Ok(())
    }

    /// Goes on after what was seen, on whatever server answers, until one does.
    async fn reopen(&mut self, reason: &str) -> Result<(), StoreError> {
        let prefix = self.watcher.reading.prefix.clone();
        tracing::debug!(reason, prefix, "a watch is opened again");
        loop {
            sleep(pause(self.failures)).await;
            self.failures = self.failures.saturating_add(1);
            match self.watcher.open().await {
                Ok(call) => {
                    self.call = call;
                    return Ok(());
                }
                Err(error) if error.is_transient() => {
                    tracing::warn!(%error, prefix, "a watch waits for etcd");
                }
                Err(error) => return Err(error),
            }
        }
    }
}
