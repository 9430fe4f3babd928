//! The pods of hollow nodes: bound ones are said to run, those that must go are let go.

use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Config, Event};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{AT_ONCE, Hollow};
use crate::ledger::{Errand, ErrandKind};
use crate::seen::SeenPod;
use crate::wire::{NAMESPACE, running};

/// Errands that may wait. A watch that brings more waits, too.
const WAITING: usize = 4096;
/// How often an errand is tried.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);

/// Errands that are due a certain time after they came, in the order in which they came.
pub(super) struct Line {
    errands: mpsc::Receiver<(Instant, Errand)>,
}

/// Where errands are handed in.
pub(super) struct Counter {
    delay: Duration,
    errands: mpsc::Sender<(Instant, Errand)>,
}

pub(super) fn line(delay: Duration) -> (Counter, Line) {
    let (sender, errands) = mpsc::channel(WAITING);
    let counter = Counter {
        delay,
        errands: sender,
    };
    (counter, Line { errands })
}

impl Counter {
    async fn hand_in(&self, errand: Errand) {
        let due = Instant::now() + self.delay;
        if self.errands.send((due, errand)).await.is_err() {
            tracing::debug!("an errand came after the end");
        }
    }
}

impl Line {
    pub(super) async fn serve(mut self, hollow: &Hollow) {
        // All wait equally long, so the first to come is the first to be due, and waiting for it blocks nobody.
        let due = async |errands: &mut mpsc::Receiver<(Instant, Errand)>| {
            let (due, errand) = errands.recv().await?;
            tokio::time::sleep_until(due).await;
            Some(errand)
        };
        let errands = stream::unfold(&mut self.errands, async |errands| {
            let errand = due(errands).await?;
            Some((errand, errands))
        });
        errands
            .for_each_concurrent(AT_ONCE, |errand| hollow.run_errand(errand))
            .await;
    }
}

impl Hollow {
    pub(super) async fn follow_pods(&self, starts: &Counter, ends: &Counter) {
        let pods: Api<SeenPod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let mut events = pin!(watcher::watcher(pods, Config::default()).default_backoff());
        while let Some(event) = events.next().await {
            let errand = match event {
                Ok(Event::Apply(pod) | Event::InitApply(pod)) => {
                    self.ledger.see(&pod, Instant::now())
                }
                Ok(Event::Delete(pod)) => {
                    self.ledger.forget(&pod);
                    None
                }
                Ok(Event::Init) => {
                    self.ledger.begin_list();
                    None
                }
                Ok(Event::InitDone) => {
                    self.ledger.end_list();
                    None
                }
                Err(error) => {
                    tracing::debug!(%error, "the watch of pods begins anew");
                    None
                }
            };
            match errand {
                Some(errand) if errand.kind == ErrandKind::Start => starts.hand_in(errand).await,
                Some(errand) => ends.hand_in(errand).await,
                None => {}
            }
        }
    }

    pub(super) async fn run_errands(&self, errands: Vec<Errand>) {
        stream::iter(errands)
            .for_each_concurrent(AT_ONCE, |errand| self.run_errand(errand))
            .await;
    }

    /// Tries a few times; a node that fell in the meantime does nothing any more.
    async fn run_errand(&self, errand: Errand) {
        for attempt in 1..=TRIES {
            if !self.ledger.lives(errand.node) {
                return;
            }
            let done = match errand.kind {
                ErrandKind::Start => self.start(&errand).await,
                ErrandKind::Stop => self.end(&errand).await,
            };
            match done {
                Ok(()) => return,
                // Gone, or another one of that name.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => return,
                Err(error) => {
                    tracing::debug!(%error, pod = errand.name, attempt, "an errand is tried again");
                }
            }
            tokio::time::sleep(PAUSE * attempt).await;
        }
        tracing::warn!(pod = errand.name, "a hollow node gave up on a pod");
    }

    async fn start(&self, errand: &Errand) -> Result<(), kube::Error> {
        let pods: Api<SeenPod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let number = self.addresses.fetch_add(1, Ordering::Relaxed);
        let status = running(errand, number, Timestamp::now());
        let patch = Patch::Strategic(status);
        let parameters = PatchParams::default();
        pods.patch_status(&errand.name, &parameters, &patch).await?;
        Ok(())
    }

    async fn end(&self, errand: &Errand) -> Result<(), kube::Error> {
        let pods: Api<SeenPod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let parameters = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions {
                uid: Some(errand.uid.clone()),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        pods.delete(&errand.name, &parameters).await?;
        Ok(())
    }
}
