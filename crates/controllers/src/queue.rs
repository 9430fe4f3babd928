//! What is to be looked at, each thing once, by several at a time and never the same thing by two.
//!
//! A key waits at most once however often it is added, so the queue is never longer than there are objects.
//! What fails or panics comes back later, and later each time; the others do not notice.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fmt::Debug,
    hash::Hash,
    panic::AssertUnwindSafe,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use futures::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{fault::Fault, telemetry::Meter};

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// What one piece of work may take, and what is left to it when all is stopped.
const WORK: Duration = Duration::from_mins(2);
const FAREWELL: Duration = Duration::from_secs(5);

/// How a piece of work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Done,
    /// All went well, but there is more to do after a while that grows up to this.
    Again(Duration),
}

#[derive(Debug)]
pub(crate) struct Queue<K> {
    state: Mutex<State<K>>,
    changed: Notify,
    /// Known once somebody works on the queue.
    meter: OnceLock<Meter>,
}

#[derive(Debug)]
struct State<K> {
    waiting: HashMap<K, Instant>,
    order: BTreeSet<(Instant, K)>,
    active: HashSet<K>,
    /// How often a key came back in a row.
    returns: HashMap<K, u32>,
}

impl<K: Clone + Debug + Hash + Ord> Queue<K> {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                waiting: HashMap::new(),
                order: BTreeSet::new(),
                active: HashSet::new(),
                returns: HashMap::new(),
            }),
            changed: Notify::new(),
            meter: OnceLock::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wants a key looked at now; once more afterwards if somebody is at it.
    pub(crate) fn add(&self, key: K) {
        self.add_after(key, Duration::ZERO);
    }

    /// Wants a key looked at after a while. The sooner of two wishes counts.
    pub(crate) fn add_after(&self, key: K, pause: Duration) {
        let mut state = self.state();
        state.add(key, Instant::now() + pause);
        if let Some(meter) = self.meter.get() {
            meter.added();
            meter.waiting(state.waiting.len());
        }
        drop(state);
        self.changed.notify_one();
    }

    /// The next key that is due. It is taken when this returns, and only then.
    async fn next(&self) -> K {
        loop {
            let due = {
                let mut state = self.state();
                match state.first() {
                    Some((due, key)) if due <= Instant::now() => {
                        state.take(&key);
                        if let Some(meter) = self.meter.get() {
                            meter.waiting(state.waiting.len());
                        }
                        return key;
                    }
                    Some((due, _)) => Some(due),
                    None => None,
                }
            };
            match due {
                Some(due) => tokio::select! {
                    () = tokio::time::sleep_until(due) => {}
                    () = self.changed.notified() => {}
                },
                None => self.changed.notified().await,
            }
        }
    }

    fn finish(&self, key: K, outcome: &Result<Next, Fault>, controller: &'static str) {
        let mut state = self.state();
        state.active.remove(&key);
        let longest = match outcome {
            Ok(Next::Done) => {
                state.returns.remove(&key);
                None
            }
            Ok(Next::Again(longest)) => Some(*longest),
            Err(_) => Some(LONGEST_PAUSE),
        };
        if let Some(longest) = longest {
            let returns = state.returns.entry(key.clone()).or_default();
            let pause = pause(*returns).min(longest);
            *returns = returns.saturating_add(1);
            if let Err(fault) = outcome {
                report(controller, &key, fault, pause);
            }
            state.add(key, Instant::now() + pause);
            if let Some(meter) = self.meter.get() {
                meter.comes_back(outcome.is_err());
                meter.waiting(state.waiting.len());
            }
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Does the work for each key, some at a time, until `stop`.
    pub(crate) async fn drive<W>(
        &self,
        controller: &'static str,
        at_once: usize,
        stop: &CancellationToken,
        work: impl Fn(K) -> W,
    ) where
        W: Future<Output = Result<Next, Fault>>,
    {
        let meter = self.meter.get_or_init(|| Meter::of(controller));
        meter.found(self.state().waiting.len());
        let mut running = FuturesUnordered::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                key = self.next(), if running.len() < at_once => {
                    let work = &work;
                    running.push(async move {
                        let begun = Instant::now();
                        // In a block of its own, so that what `work` does before its first wait is guarded, too.
                        let task = AssertUnwindSafe(async { work(key.clone()).await });
                        let outcome = tokio::time::timeout(WORK, task.catch_unwind()).await;
                        meter.worked(begun.elapsed());
                        let outcome = match outcome {
                            Ok(Ok(outcome)) => outcome,
                            Ok(Err(_)) => Err(Fault::Panic),
                            Err(_) => Err(Fault::TooLong { limit: WORK }),
                        };
                        (key, outcome)
                    });
                }
                Some((key, outcome)) = running.next() => self.finish(key, &outcome, controller),
            }
        }
        let rest = async { while running.next().await.is_some() {} };
        if tokio::time::timeout(FAREWELL, rest).await.is_err() {
            tracing::warn!(controller, "work was given up at the end");
        }
    }
}

impl<K: Clone + Hash + Ord> State<K> {
    fn add(&mut self, key: K, due: Instant) {
        if let Some(earlier) = self.waiting.get(&key) {
            if *earlier <= due {
                return;
            }
            self.order.remove(&(*earlier, key.clone()));
        }
        self.waiting.insert(key.clone(), due);
        self.order.insert((due, key));
    }

    /// The key that is due first and that nobody works on: few are worked on, so the search is short.
    fn first(&self) -> Option<(Instant, K)> {
        self.order
            .iter()
            .find(|(_, key)| !self.active.contains(key))
            .cloned()
    }

    fn take(&mut self, key: &K) {
        if let Some(due) = self.waiting.remove(key) {
            self.order.remove(&(due, key.clone()));
        }
        self.active.insert(key.clone());
    }
}

fn pause(returns: u32) -> Duration {
    FIRST_PAUSE
        .saturating_mul(1 << returns.min(16))
        .min(LONGEST_PAUSE)
}

fn report(controller: &'static str, key: &impl Debug, fault: &Fault, pause: Duration) {
    // Old news are part of the game, and so are kinds that come late or that somebody made up.
    if fault.is_conflict() || matches!(fault, Fault::Incomplete | Fault::UnknownKind { .. }) {
        tracing::debug!(controller, ?key, %fault, ?pause, "will be tried again");
        return;
    }
    let source = std::error::Error::source(fault).map(ToString::to_string);
    tracing::warn!(controller, ?key, %fault, source, ?pause, "will be tried again");
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const CONFLICT: Fault = Fault::Answer {
        code: 409,
        message: String::new(),
    };

    #[tokio::test(start_paused = true)]
    async fn a_key_that_is_added_often_is_given_once() {
        let queue = Queue::new();
        queue.add("a");
        queue.add_after("a", Duration::from_secs(9));
        queue.add("b");
        queue.add("a");
        let mut keys = vec![queue.next().await, queue.next().await];
        keys.sort_unstable();
        assert_eq!(keys, ["a", "b"]);
        assert!(futures::poll!(std::pin::pin!(queue.next())).is_pending());
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_is_added_while_somebody_is_at_it_comes_afterwards() {
        let queue = Queue::new();
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        queue.add("a");
        assert!(futures::poll!(std::pin::pin!(queue.next())).is_pending());
        queue.finish("a", &Ok(Next::Done), "tests");
        assert_eq!(queue.next().await, "a");
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_comes_back_later_each_time_until_it_goes_well() {
        let queue = Queue::new();
        let mut pauses = Vec::new();
        queue.add("a");
        for _ in 0..3 {
            let begun = Instant::now();
            let key = queue.next().await;
            pauses.push(begun.elapsed().as_millis());
            queue.finish(key, &Err(CONFLICT), "tests");
        }
        queue.next().await;
        queue.finish("a", &Ok(Next::Done), "tests");
        queue.add("a");
        queue.next().await;
        let begun = Instant::now();
        queue.finish("a", &Err(CONFLICT), "tests");
        queue.next().await;
        pauses.push(begun.elapsed().as_millis());
        assert_eq!(pauses, [0, 20, 40, 20]);
        assert_eq!(pause(u32::MAX), LONGEST_PAUSE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_over_one_key_is_a_failure_of_that_key_only() {
        let queue = Queue::new();
        let stop = CancellationToken::new();
        let log = RefCell::new(Vec::new());
        for key in ["poison", "a", "b"] {
            queue.add(key);
        }
        queue
            .drive("tests", 1, &stop, |key| {
                let (stop, log) = (&stop, &log);
                log.borrow_mut().push(key);
                // Once before the first wait, once after it.
                assert!(key != "poison" || log.borrow().len() > 3, "on purpose");
                async move {
                    tokio::task::yield_now().await;
                    let times = log
                        .borrow()
                        .iter()
                        .filter(|each| **each == "poison")
                        .count();
                    assert!(key != "poison" || times > 2, "on purpose");
                    if times > 2 {
                        stop.cancel();
                    }
                    Ok(Next::Done)
                }
            })
            .await;
        let mut log = log.into_inner();
        log.sort_unstable();
        assert_eq!(log, ["a", "b", "poison", "poison", "poison"]);
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_has_begun_ends_before_a_stop_does() {
        let queue = Queue::new();
        let stop = CancellationToken::new();
        let log = RefCell::new(Vec::new());
        queue.add("a");
        queue
            .drive("tests", 2, &stop, |key| {
                let (stop, log) = (&stop, &log);
                async move {
                    stop.cancel();
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    log.borrow_mut().push(key);
                    Ok(Next::Done)
                }
            })
            .await;
        assert_eq!(log.into_inner(), ["a"]);
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_never_ends_does_not_hold_up_a_stop_for_ever() {
        let queue = Queue::new();
        let stop = CancellationToken::new();
        let begun = Instant::now();
        queue.add("a");
        queue
            .drive("tests", 1, &stop, |_| {
                stop.cancel();
                std::future::pending()
            })
            .await;
        assert_eq!(begun.elapsed(), FAREWELL);
    }
}
