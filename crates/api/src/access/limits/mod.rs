//! A gate before the work: so many requests at once, in fair turns, and so many a second for each user.
//!
//! One user cannot take the turns of another: whoever waits is let in by turns over users, not over requests.

mod bucket;
mod queue;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::oneshot,
    time::{Instant, timeout},
};

use super::{
    authentication::{User, group},
    authorization::{Resource, Target},
};
use crate::status::ApiError;
use bucket::Buckets;
use queue::Lane;

/// What sort of request it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Administrators, and the heartbeats of nodes: what keeps a cluster alive under load.
    System,
    Ordinary,
    /// Watches, logs, shells: they last, so they take no place in the gate and are counted apart.
    Lasting,
}

impl Class {
    /// The class of a request. `lasts` says whether it is a watch, a log that is followed, a shell or the like.
    pub fn of(user: &User, target: &Target, lasts: bool) -> Self {
        if lasts {
            return Self::Lasting;
        }
        let is_heartbeat = |about: &Resource| {
            let what = (about.group.as_str(), about.resource.as_str());
            matches!(what, ("coordination.k8s.io", "leases") | ("", "nodes"))
        };
        match target {
            _ if user.is_in(group::MASTERS) => Self::System,
            Target::Resource(about) if user.node_name().is_some() && is_heartbeat(about) => {
                Self::System
            }
            _ => Self::Ordinary,
        }
    }
}

/// How much there is of everything.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Requests of administrators and heartbeats at once.
    pub system: usize,
    /// Other requests at once.
    pub ordinary: usize,
    /// Requests that wait, of all users together.
    pub waiting: usize,
    pub waiting_for_each_user: usize,
    /// Whoever waits longer is sent away.
    pub longest_wait: Duration,
    pub lasting: usize,
    pub lasting_for_each_user: usize,
    /// Ordinary requests a second, on average. Turns are what is fair between users; this is for the client that
    /// asks in a loop without end, so it is more than one that works can need.
    pub rate_for_each_user: f64,
    /// So many may come at once after a pause.
    pub burst_for_each_user: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            system: 200,
            ordinary: 400,
            waiting: 4000,
            waiting_for_each_user: 500,
            longest_wait: Duration::from_secs(15),
            lasting: 100_000,
            lasting_for_each_user: 10_000,
            rate_for_each_user: 20_000.0,
            burst_for_each_user: 40_000.0,
        }
    }
}

/// Sent away; trying again makes sense after a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Too many requests, please try again later.")]
pub struct TooManyRequests {
    pub retry_after_seconds: u32,
}

impl From<TooManyRequests> for ApiError {
    fn from(error: TooManyRequests) -> Self {
        Self::too_many_requests(error.to_string(), error.retry_after_seconds)
    }
}

/// How full a class is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub running: usize,
    pub waiting: usize,
}

/// Lets requests in.
#[derive(Clone, Debug)]
pub struct Gate {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    system: Lane,
    ordinary: Lane,
    /// How many lasting requests each user has.
    lasting: HashMap<String, usize>,
    lasting_total: usize,
    buckets: Buckets,
}

impl State {
    fn lane(&mut self, class: Class) -> Option<&mut Lane> {
        match class {
            Class::System => Some(&mut self.system),
            Class::Ordinary => Some(&mut self.ordinary),
            Class::Lasting => None,
        }
    }
}

/// The right to work; it ends when this is dropped.
#[derive(Debug)]
#[must_use = "the place is given back when this is dropped"]
pub struct Permit {
    inner: Arc<Inner>,
    class: Class,
    user: String,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.inner.state();
        match state.lane(self.class) {
            Some(lane) => lane.leave(),
            None => {
                state.lasting_total -= 1;
                if let Some(count) = state.lasting.get_mut(&self.user) {
                    *count -= 1;
                    if *count == 0 {
                        state.lasting.remove(&self.user);
                    }
                }
            }
        }
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        // Counts are right after each step, so a panic elsewhere does not spoil them.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gate {
    pub fn new(limits: Limits) -> Self {
        let state = State {
            system: Lane::new(limits.system),
            ordinary: Lane::new(limits.ordinary),
            lasting: HashMap::new(),
            lasting_total: 0,
            buckets: Buckets::new(limits.rate_for_each_user, limits.burst_for_each_user),
        };
        Self {
            inner: Arc::new(Inner {
                limits,
                state: Mutex::new(state),
            }),
        }
    }

    /// Waits for a turn, for a while.
    pub async fn enter(&self, user: &str, class: Class) -> Result<Permit, TooManyRequests> {
        let permit = || Permit {
            inner: Arc::clone(&self.inner),
            class,
            user: user.to_owned(),
        };
        let Some(mut place) = self.line_up(user, class)? else {
            return Ok(permit());
        };
        let longest = self.inner.limits.longest_wait;
        match timeout(longest, &mut place.turn).await {
            Ok(Ok(())) => {
                place.taken = true;
                Ok(permit())
            }
            // Dropping the place gives it back, also if its turn came at this very moment.
            _ => Err(TooManyRequests {
                retry_after_seconds: 1,
            }),
        }
    }

    /// `None` if there is room at once.
    fn line_up(&self, user: &str, class: Class) -> Result<Option<Place>, TooManyRequests> {
        let limits = &self.inner.limits;
        let full = TooManyRequests {
            retry_after_seconds: 1,
        };
        let mut state = self.inner.state();
        if class == Class::Ordinary {
            state
                .buckets
                .take(user, Instant::now())
                .map_err(|retry_after_seconds| TooManyRequests {
                    retry_after_seconds,
                })?;
        }
        let waiting = state.system.waiting() + state.ordinary.waiting();
        let Some(lane) = state.lane(class) else {
            let own = state.lasting.get(user).copied().unwrap_or_default();
            if state.lasting_total >= limits.lasting || own >= limits.lasting_for_each_user {
                return Err(full);
            }
            state.lasting_total += 1;
            *state.lasting.entry(user.to_owned()).or_default() += 1;
            return Ok(None);
        };
        if lane.try_enter() {
            return Ok(None);
        }
        let own = lane.waiting_of(user);
        if waiting >= limits.waiting || own >= limits.waiting_for_each_user {
            return Err(full);
        }
        let (number, turn) = lane.wait(user);
        Ok(Some(Place {
            inner: Arc::clone(&self.inner),
            class,
            user: user.to_owned(),
            number,
            turn,
            taken: false,
        }))
    }

    /// How full each class is, for metrics.
    pub fn usage(&self, class: Class) -> Usage {
        let mut state = self.inner.state();
        let lasting = Usage {
            running: state.lasting_total,
            waiting: 0,
        };
        state.lane(class).map_or(lasting, |lane| Usage {
            running: lane.running(),
            waiting: lane.waiting(),
        })
    }
}

/// A place in the queue. Whoever goes away early leaves nothing behind.
struct Place {
    inner: Arc<Inner>,
    class: Class,
    user: String,
    number: u64,
    turn: oneshot::Receiver<()>,
    taken: bool,
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.taken {
            return;
        }
        let mut state = self.inner.state();
        let Some(lane) = state.lane(self.class) else {
            return;
        };
        self.turn.close();
        if self.turn.try_recv().is_ok() {
            lane.leave();
        } else {
            lane.give_up(&self.user, self.number);
        }
    }
}
