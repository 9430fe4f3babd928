//! What became of every pod, and when: filled by one watch, read by the phases.
//!
//! Invariant: counts follow from entries at every moment, and nothing here is looked through but when nodes fall
//! or come back.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::seen::SeenPod;
use crate::wire::{REVISION, is_upgraded};

/// How many pods are how far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Pods that are not on their way out.
    pub(crate) pods: usize,
    pub(crate) bound: usize,
    /// Running on nodes that live.
    pub(crate) running: usize,
    /// Of these, those of the new revision.
    pub(crate) upgraded: usize,
    /// On their way out.
    pub(crate) going: usize,
}

/// What a hollow node has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Errand {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) node: usize,
    pub(crate) kind: ErrandKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrandKind {
    Start,
    Stop,
}

/// How long pods took since the last time this was asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Times {
    pub(crate) to_bound: Vec<Duration>,
    pub(crate) to_running: Vec<Duration>,
    pub(crate) last_bound: Option<Instant>,
}

#[derive(Debug)]
pub(crate) struct Ledger {
    state: Mutex<State>,
    counts: watch::Sender<Counts>,
}

#[derive(Debug)]
struct State {
    pods: HashMap<String, Entry>,
    /// Whether each node lives, by index.
    lives: Vec<bool>,
    nodes: HashMap<String, usize>,
    /// Names of pods that run, to choose from.
    running: Vec<String>,
    counts: Counts,
    times: Times,
    /// Told apart, so that a list tells who is gone.
    listing: u64,
}

#[derive(Debug, Clone)]
struct Entry {
    uid: String,
    seen: Instant,
    node: Option<usize>,
    is_running: bool,
    is_upgraded: bool,
    is_going: bool,
    /// Churn has its eye on it.
    is_chosen: bool,
    /// Its place among those that run.
    place: Option<usize>,
    listing: u64,
}

impl Ledger {
    /// A ledger for nodes of these names, all of which live.
    pub(crate) fn new(names: impl Iterator<Item = String>) -> Self {
        let nodes: HashMap<String, usize> = names.zip(0..).collect();
        Self {
            state: Mutex::new(State {
                pods: HashMap::new(),
                lives: vec![true; nodes.len()],
                nodes,
                running: Vec::new(),
                counts: Counts::default(),
                times: Times::default(),
                listing: 0,
            }),
            counts: watch::Sender::new(Counts::default()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state();
        let result = change(&mut state);
        // Told before anybody else can change them, so that the last to be told are the newest.
        self.counts.send_if_modified(|known| {
            let is_new = *known != state.counts;
            *known = state.counts;
            is_new
        });
        result
    }

    /// Takes a pod as it is now. Tells what its node has to do about it.
    pub(crate) fn see(&self, pod: &SeenPod, now: Instant) -> Option<Errand> {
        self.change(|state| state.see(pod, now))
    }

    pub(crate) fn forget(&self, pod: &SeenPod) {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        self.change(|state| state.forget(name));
    }

    /// A list of all pods begins.
    pub(crate) fn begin_list(&self) {
        self.state().listing += 1;
    }

    /// Everyone was on the list; who was not is gone.
    pub(crate) fn end_list(&self) {
        self.change(|state| {
            let listing = state.listing;
            let gone = state.pods.iter();
            let gone = gone.filter(|(_, entry)| entry.listing != listing);
            let gone: Vec<String> = gone.map(|(name, _)| name.clone()).collect();
            for name in gone {
                state.forget(&name);
            }
        });
    }

    pub(crate) fn counts(&self) -> Counts {
        *self.counts.borrow()
    }

    /// Tells of every change of the counts.
    pub(crate) fn follow(&self) -> watch::Receiver<Counts> {
        self.counts.subscribe()
    }

    pub(crate) fn lives(&self, node: usize) -> bool {
        self.state().lives.get(node).copied().unwrap_or_default()
    }

    /// Nodes fall: what ran on them does not count any more.
    pub(crate) fn lose(&self, nodes: &[usize]) {
        self.change(|state| {
            state.set_lives(nodes, false);
        });
    }

    /// Nodes are back. Tells what they have to do about the pods that they find.
    pub(crate) fn revive(&self, nodes: &[usize]) -> Vec<Errand> {
        self.change(|state| state.set_lives(nodes, true))
    }

    /// The name of one of those that run, which is not chosen again. It counts as going from now on: whoever waits
    /// until all is whole must not find it so before the watch tells of the deletion.
    pub(crate) fn choose(&self, number: u64) -> Option<String> {
        self.change(|state| state.choose(number))
    }

    /// Names of pods on a node that are not on their way out.
    pub(crate) fn on_nodes(&self, nodes: &[usize]) -> Vec<String> {
        let state = self.state();
        let nodes: HashSet<usize> = nodes.iter().copied().collect();
        let is_there = |entry: &Entry| entry.node.is_some_and(|node| nodes.contains(&node));
        let pods = state.pods.iter();
        let pods = pods.filter(|(_, entry)| !entry.is_going && is_there(entry));
        pods.map(|(name, _)| name.clone()).collect()
    }

    /// How long pods took since the last time somebody asked.
    pub(crate) fn take_times(&self) -> Times {
        std::mem::take(&mut self.state().times)
    }
}

impl State {
    fn see(&mut self, pod: &SeenPod, now: Instant) -> Option<Errand> {
        let name = pod.metadata.name.as_deref()?;
        let uid = pod.metadata.uid.as_deref()?;
        if self.pods.get(name).is_some_and(|entry| entry.uid != uid) {
            self.forget(name);
        }
        let known = self.pods.remove(name);
        let before = known.clone();
        let mut entry = known.unwrap_or_else(|| Entry {
            uid: uid.to_owned(),
            seen: now,
            node: None,
            is_running: false,
            is_upgraded: {
                let labels = pod.metadata.labels.as_ref();
                labels.is_some_and(|labels| is_upgraded(labels.get(REVISION)))
            },
            is_going: false,
            is_chosen: false,
            place: None,
            listing: 0,
        });
        entry.listing = self.listing;
        let mut errand = None;
        if entry.node.is_none()
            && let Some(node) = &pod.spec.node_name
        {
            entry.node = self.nodes.get(node).copied();
            errand = Some(ErrandKind::Start);
            self.times.to_bound.push(now - entry.seen);
            self.times.last_bound = Some(now);
        }
        if !entry.is_running && pod.status.phase.as_deref() == Some("Running") {
            entry.is_running = true;
            errand = None;
            self.times.to_running.push(now - entry.seen);
        }
        if !entry.is_going && pod.metadata.deletion_timestamp.is_some() {
            entry.is_going = true;
            errand = Some(ErrandKind::Stop);
        }
        self.count(before.as_ref(), &entry);
        self.choose_from(name, &mut entry);
        let lives = entry.node.filter(|node| self.lives[*node]);
        let errand = errand.zip(lives).map(|(kind, node)| Errand {
            name: name.to_owned(),
            uid: uid.to_owned(),
            node,
            kind,
        });
        self.pods.insert(name.to_owned(), entry);
        errand
    }

    fn choose(&mut self, number: u64) -> Option<String> {
        let count = u64::try_from(self.running.len()).ok()?;
        let place = usize::try_from(number.checked_rem(count)?).ok()?;
        let name = self.running.get(place).cloned()?;
        let before = self.pods.remove(&name)?;
        let mut entry = Entry {
            is_chosen: true,
            ..before.clone()
        };
        self.count(Some(&before), &entry);
        self.choose_from(&name, &mut entry);
        self.pods.insert(name.clone(), entry);
        Some(name)
    }

    fn forget(&mut self, name: &str) {
        let Some(mut entry) = self.pods.remove(name) else {
            return;
        };
        let counts = self.counts_of(&entry);
        self.counts.subtract(counts);
        entry.is_going = true;
        self.choose_from(name, &mut entry);
    }

    fn counts_of(&self, entry: &Entry) -> Counts {
        let is_bound = entry.node.is_some();
        let lives = entry.node.is_some_and(|node| self.lives[node]);
        let is_here = !entry.is_going && !entry.is_chosen;
        Counts {
            pods: usize::from(is_here),
            bound: usize::from(is_here && is_bound),
            running: usize::from(is_here && lives && entry.is_running),
            upgraded: usize::from(is_here && lives && entry.is_running && entry.is_upgraded),
            going: usize::from(!is_here),
        }
    }

    fn count(&mut self, before: Option<&Entry>, after: &Entry) {
        if let Some(before) = before {
            let counts = self.counts_of(before);
            self.counts.subtract(counts);
        }
        let counts = self.counts_of(after);
        self.counts.add(counts);
    }

    /// Keeps the list of those that run, from which churn chooses.
    fn choose_from(&mut self, name: &str, entry: &mut Entry) {
        let is_wanted = entry.is_running && !entry.is_going && !entry.is_chosen;
        match entry.place {
            None if is_wanted => {
                entry.place = Some(self.running.len());
                self.running.push(name.to_owned());
            }
            Some(place) if !is_wanted => {
                self.running.swap_remove(place);
                entry.place = None;
                if let Some(moved) = self.running.get(place)
                    && let Some(moved) = self.pods.get_mut(moved)
                {
                    moved.place = Some(place);
                }
            }
            _ => {}
        }
    }

    fn set_lives(&mut self, nodes: &[usize], lives: bool) -> Vec<Errand> {
        for node in nodes {
            self.lives[*node] = lives;
        }
        let mut counts = Counts::default();
        for entry in self.pods.values() {
            counts.add(self.counts_of(entry));
        }
        self.counts = counts;
        if !lives {
            return Vec::new();
        }
        let nodes: HashSet<usize> = nodes.iter().copied().collect();
        let errand = |(name, entry): (&String, &Entry)| {
            let node = entry.node.filter(|node| nodes.contains(node))?;
            Some(Errand {
                name: name.clone(),
                uid: entry.uid.clone(),
                node,
                kind: if entry.is_going {
                    ErrandKind::Stop
                } else {
                    ErrandKind::Start
                },
            })
        };
        self.pods.iter().filter_map(errand).collect()
    }
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.pods += other.pods;
        self.bound += other.bound;
        self.running += other.running;
        self.upgraded += other.upgraded;
        self.going += other.going;
    }

    fn subtract(&mut self, other: Self) {
        self.pods -= other.pods;
        self.bound -= other.bound;
        self.running -= other.running;
        self.upgraded -= other.upgraded;
        self.going -= other.going;
    }
}

#[cfg(test)]
mod tests;
