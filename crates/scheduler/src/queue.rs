//! Pods that wait for a node: the most important first, those that failed after a pause, and those that
//! nothing could help right now aside until something changes.
//!
//! A pod is in it once from when it is seen without a node until it is seen with one.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap, HashSet},
    time::{Duration, Instant},
};

use crate::{changes::Changes, pod::PodToPlace, telemetry, text::Text};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How long a pod is left aside though nothing seems to have changed.
const LONGEST_PARKING: Duration = Duration::from_mins(5);

/// Where a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Active,
    /// Tried again at a time.
    Resting(Instant),
    /// Tried again when one of these changes.
    Parked {
        helps: Changes,
        until: Instant,
    },
    /// Somebody works on it.
    Away,
}

/// A pod that waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) pod: PodToPlace,
    pub(crate) profile: usize,
    pub(crate) attempts: u32,
    /// What was last said about why it waits.
    pub(crate) message: Option<String>,
    /// When it is tried even if nobody told by then what its images are for.
    pub(crate) held_until: Option<Instant>,
    tried: Option<Instant>,
    state: State,
    number: u64,
}

/// All pods that wait.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    all: HashMap<Text, Waiting>,
    active: BTreeSet<(Reverse<i32>, u64, Text)>,
    resting: BTreeSet<(Instant, Text)>,
    parked: HashSet<Text>,
    /// Resting pods that wait for news of their images.
    held: HashSet<Text>,
    /// How many parked pods each kind of change could help.
    hopes: [usize; Changes::KINDS],
    counter: u64,
}

fn pause(attempts: u32) -> Duration {
    let doublings = attempts.saturating_sub(1).min(10);
    FIRST_PAUSE
        .saturating_mul(1 << doublings)
        .min(LONGEST_PAUSE)
}

impl Queue {
    /// Tells how many wait for what.
    pub(crate) fn tell(&self) {
        telemetry::pending(self.active.len(), self.resting.len(), self.parked.len());
    }

    pub(crate) fn get(&self, uid: &str) -> Option<&Waiting> {
        self.all.get(uid)
    }

    pub(crate) fn get_mut(&mut self, uid: &str) -> Option<&mut Waiting> {
        self.all.get_mut(uid)
    }

    pub(crate) fn is_away(&self, uid: &str) -> bool {
        self.all
            .get(uid)
            .is_some_and(|waiting| waiting.state == State::Away)
    }

    /// A pod is seen without a node. One that is known is tried again only if it wants something else now.
    pub(crate) fn put(&mut self, pod: PodToPlace, profile: usize) {
        let uid = pod.facts.uid.clone();
        if let Some(known) = self.all.get_mut(&uid) {
            let is_same = known.pod == pod && known.profile == profile;
            known.pod = pod;
            known.profile = profile;
            if !is_same && known.state != State::Away {
                self.activate(&uid);
            }
            return;
        }
        self.counter += 1;
        let waiting = Waiting {
            pod,
            profile,
            attempts: 0,
            message: None,
            held_until: None,
            tried: None,
            state: State::Away,
            number: self.counter,
        };
        self.all.insert(uid.clone(), waiting);
        self.activate(&uid);
    }

    fn leave(&mut self, uid: &Text) {
        let Some(waiting) = self.all.get(uid) else {
            return;
        };
        match waiting.state {
            State::Active => {
                let key = (
                    Reverse(waiting.pod.facts.priority),
                    waiting.number,
                    uid.clone(),
                );
                if !self.active.remove(&key) {
                    // Its priority changed while it waited.
                    self.active.retain(|(_, _, other)| other != uid);
                }
            }
            State::Resting(until) => {
                self.resting.remove(&(until, uid.clone()));
            }
            State::Parked { helps, .. } => {
                self.parked.remove(uid);
                for kind in helps.kinds() {
                    self.hopes[kind] -= 1;
                }
            }
            State::Away => {}
        }
    }

    fn enter(&mut self, uid: &Text, state: State) {
        self.leave(uid);
        let Some(waiting) = self.all.get_mut(uid) else {
            return;
        };
        waiting.state = state;
        match state {
            State::Active => {
                self.active.insert((
                    Reverse(waiting.pod.facts.priority),
                    waiting.number,
                    uid.clone(),
                ));
            }
            State::Resting(until) => {
                self.resting.insert((until, uid.clone()));
            }
            State::Parked { helps, .. } => {
                self.parked.insert(uid.clone());
                for kind in helps.kinds() {
                    self.hopes[kind] += 1;
                }
            }
            State::Away => {}
        }
    }

    fn activate(&mut self, uid: &Text) {
        self.enter(uid, State::Active);
    }

    pub(crate) fn remove(&mut self, uid: &str) -> Option<Waiting> {
        let key = self.all.get_key_value(uid)?.0.clone();
        self.leave(&key);
        self.held.remove(uid);
        self.all.remove(uid)
    }

    /// The next pod to try. It is away until somebody says what became of it.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Text> {
        while let Some((until, uid)) = self.resting.first().cloned() {
            if until > now {
                break;
            }
            self.activate(&uid);
        }
        let (_, _, uid) = self.active.first()?.clone();
        self.enter(&uid, State::Away);
        self.held.remove(&uid);
        if let Some(waiting) = self.all.get_mut(&uid) {
            waiting.attempts = waiting.attempts.saturating_add(1);
            waiting.tried = Some(now);
        }
        Some(uid)
    }

    /// When the next pod will be due though nothing changes.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.resting.first().map(|(until, _)| *until)
    }

    /// A pod found no place; it waits for what could help.
    pub(crate) fn park(&mut self, uid: &Text, helps: Changes, now: Instant) {
        self.enter(
            uid,
            State::Parked {
                helps,
                until: now + LONGEST_PARKING,
            },
        );
    }

    /// Something else went wrong; it is tried again after a pause.
    pub(crate) fn rest(&mut self, uid: &Text, now: Instant) {
        let attempts = self.all.get(uid).map_or(1, |waiting| waiting.attempts);
        self.enter(uid, State::Resting(now + pause(attempts)));
    }

    /// A pod was not tried yet, since more may soon be known of its images.
    pub(crate) fn hold(&mut self, uid: &Text, until: Instant) {
        if let Some(waiting) = self.all.get_mut(uid) {
            waiting.held_until = Some(until);
            waiting.attempts = waiting.attempts.saturating_sub(1);
            waiting.tried = None;
            self.held.insert(uid.clone());
        }
        self.enter(uid, State::Resting(until));
    }

    /// More is known of images: who was held may be tried.
    pub(crate) fn release_held(&mut self) {
        for uid in std::mem::take(&mut self.held) {
            let state = self.all.get(&uid).map(|waiting| waiting.state);
            if matches!(state, Some(State::Resting(_))) {
                self.activate(&uid);
            }
        }
    }

    /// Something changed. Pods that it could help, and for which `may_help` holds, are tried again.
    pub(crate) fn wake(
        &mut self,
        changes: Changes,
        now: Instant,
        may_help: impl Fn(&PodToPlace, Changes) -> bool,
    ) {
        // Most changes help nobody, and there may be many who wait.
        if changes.kinds().all(|kind| self.hopes[kind] == 0) {
            return;
        }
        let is_helped = |uid: &&Text| {
            self.all
                .get(*uid)
                .is_some_and(|waiting| match waiting.state {
                    State::Parked { helps, .. } => {
                        helps.meets(changes) && may_help(&waiting.pod, helps)
                    }
                    _ => false,
                })
        };
        let helped: Vec<Text> = self.parked.iter().filter(is_helped).cloned().collect();
        for uid in helped {
            self.hurry(&uid, now);
        }
    }

    /// Tries a pod as soon as its pause is over. Nobody must be at it.
    pub(crate) fn hurry(&mut self, uid: &Text, now: Instant) {
        let Some(waiting) = self.all.get(uid) else {
            return;
        };
        let due = waiting
            .tried
            .map_or(now, |tried| tried + pause(waiting.attempts));
        if due <= now {
            self.activate(uid);
        } else {
            self.enter(uid, State::Resting(due));
        }
    }

    /// Tries again what was aside for too long, should a change have been missed.
    pub(crate) fn sweep(&mut self, now: Instant) {
        let is_over = |uid: &&Text| {
            let state = self.all.get(*uid).map(|waiting| waiting.state);
            matches!(state, Some(State::Parked { until, .. }) if until <= now)
        };
        let over: Vec<Text> = self.parked.iter().filter(is_over).cloned().collect();
        for uid in over {
            self.activate(&uid);
        }
    }
}
