//! The loop: takes what watches tell, decides for one pod after the other, and lets others do the asking.
//!
//! One task owns all that is known, so nothing is ever locked. A pod counts as placed from the moment of the
//! decision; if the API says no, it is taken back. After a restart everything is read anew.

mod attempt;
mod learn;
mod news;
mod record;
mod requests;

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use kube::Client;
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;

use self::{
    news::{KINDS, Listing, News, watch_all},
    record::Recorder,
    requests::Fault,
};
use crate::{
    place::Placer, pod::PodFacts, profile::Profile, queue::Queue, snapshot::Snapshot, text::Text,
};

/// How many pieces of news are taken before the next pods are tried.
const NEWS_AT_ONCE: usize = 256;
/// How many pods are tried before others get the processor.
const PODS_AT_ONCE: usize = 16;
/// How often it is looked whether somebody waits for too long.
const SWEEP: Duration = Duration::from_secs(30);
const PAUSE_AFTER_END: Duration = Duration::from_secs(1);
/// What is left to requests that are under way when all is stopped.
const FAREWELL: Duration = Duration::from_secs(5);

/// How the scheduler works.
#[derive(Clone, Debug)]
pub struct Options {
    /// The schedulers that pods can name; others are somebody else's.
    pub profiles: Vec<Profile>,
    /// How many requests may be under way at once.
    pub requests_at_once: usize,
    /// What this instance is called in events, usually the name of its machine.
    pub instance: String,
    /// How long a pod waits to learn what its images are for, where nodes differ in what they can run. Without
    /// anybody who looks, there is nothing to wait for.
    pub image_patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            profiles: vec![Profile::default()],
            requests_at_once: 64,
            instance: "transom".to_owned(),
            image_patience: Duration::ZERO,
        }
    }
}

/// Gives pods their nodes until `stop`.
pub async fn run(client: Client, options: Options, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let (news, watches) = watch_all(&client);
        let (recorder, writing) = Recorder::new(client.clone(), options.instance.clone());
        let driver = Driver::new(client.clone(), &options, recorder);
        let work = async {
            tokio::select! {
                () = driver.drive(news, &stop) => {}
                () = watches => tracing::error!("a watch ended; the scheduler begins anew"),
            }
        };
        // Events that wait are written before this ends, but not for ever.
        let ((), ()) = tokio::join!(work, async {
            tokio::pin!(writing);
            tokio::select! {
                () = &mut writing => {}
                () = async { stop.cancelled().await; tokio::time::sleep(FAREWELL).await; } => {}
            }
        });
        if stop
            .run_until_cancelled(tokio::time::sleep(PAUSE_AFTER_END))
            .await
            .is_none()
        {
            return;
        }
    }
}

/// What became of a piece of work.
struct Done {
    uid: Text,
    outcome: Outcome,
}

enum Outcome {
    Bound {
        /// The pod and its profile, since its watch may be faster than the answer and take it off the queue.
        facts: Arc<PodFacts>,
        profile: usize,
        node: Text,
        answer: Result<(), Fault>,
    },
    Claims {
        answer: Result<(), Fault>,
    },
    Told {
        answer: Result<(), Fault>,
    },
}

/// A pod that has its node but not yet its volumes.
struct Delayed {
    node: Text,
    address: Option<Text>,
    until: Instant,
}

struct Driver {
    client: Client,
    snapshot: Snapshot,
    queue: Queue,
    placers: Vec<Placer>,
    listings: [Listing; KINDS],
    work: JoinSet<Done>,
    at_once: usize,
    image_patience: Duration,
    recorder: Recorder,
    delayed: HashMap<Text, Delayed>,
    /// Counts events, so that no two have the same name.
    events: u64,
}

impl Driver {
    fn new(client: Client, options: &Options, recorder: Recorder) -> Self {
        Self {
            client,
            snapshot: Snapshot::default(),
            queue: Queue::default(),
            placers: options.profiles.iter().cloned().map(Placer::new).collect(),
            listings: Default::default(),
            work: JoinSet::new(),
            at_once: options.requests_at_once.max(1),
            image_patience: options.image_patience,
            recorder,
            delayed: HashMap::new(),
            events: 0,
        }
    }

    async fn drive(mut self, mut news: mpsc::Receiver<Box<News>>, stop: &CancellationToken) {
        let mut swept = Instant::now();
        while !stop.is_cancelled() {
            for _ in 0..NEWS_AT_ONCE {
                let Ok(one) = news.try_recv() else { break };
                self.learn(*one, Instant::now());
            }
            while let Some(done) = self.work.try_join_next() {
                self.finish(done, Instant::now());
            }
            let now = Instant::now();
            if now.duration_since(swept) > SWEEP {
                swept = now;
                self.queue.sweep(now);
                self.give_up_delayed(now);
            }
            if self.try_some(now) {
                tokio::task::yield_now().await;
                continue;
            }
            self.queue.tell();
            self.wait(&mut news, stop, swept + SWEEP).await;
        }
        let rest = async { while self.work.join_next().await.is_some() {} };
        if tokio::time::timeout(FAREWELL, rest).await.is_err() {
            tracing::warn!("requests were given up at the end");
        }
    }

    /// Tries some pods. Tells whether there may be more to try at once.
    fn try_some(&mut self, now: Instant) -> bool {
        if !self.listings.iter().all(|listing| listing.is_complete) {
            return false;
        }
        for _ in 0..PODS_AT_ONCE {
            if self.work.len() >= self.at_once {
                return false;
            }
            let Some(uid) = self.queue.pop(now) else {
                return false;
            };
            self.attempt(&uid, now);
        }
        true
    }

    /// Waits until there is something to do.
    async fn wait(
        &mut self,
        news: &mut mpsc::Receiver<Box<News>>,
        stop: &CancellationToken,
        sweep: Instant,
    ) {
        let is_full = self.work.len() >= self.at_once;
        let due = self
            .queue
            .next_due()
            .filter(|_| !is_full)
            .map_or(sweep, |due| due.min(sweep));
        tokio::select! {
            () = stop.cancelled() => {}
            one = news.recv() => match one {
                Some(one) => self.learn(*one, Instant::now()),
                None => tokio::task::yield_now().await,
            },
            Some(done) = self.work.join_next() => self.finish(done, Instant::now()),
            () = tokio::time::sleep_until(due.into()) => {}
        }
    }
}
