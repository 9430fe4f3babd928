//! The objects of one resource, in the order of their keys.

use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::{Arc, PoisonError, RwLock},
    time::Instant,
};

use super::{
    cached::{Cached, Change, ChangeKind},
    history::History,
    watcher::{Watcher, Watchers},
};
use crate::{
    registry::Kind,
    selector::{FieldName, FieldSelector, LabelSelector},
};

/// Which objects a list or a watch is about.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Empty means all namespaces.
    pub namespace: String,
    pub labels: LabelSelector,
    pub fields: FieldSelector,
}

impl Selection {
    pub fn selects(&self, object: &Cached) -> bool {
        (self.namespace.is_empty() || object.namespace() == self.namespace)
            && object.is_selected(&self.labels, &self.fields)
    }

    /// The one key that can match, if the name is given.
    pub(super) fn only_key(&self, namespaced: bool) -> Option<String> {
        let name = self.fields.exact(FieldName::Name)?;
        if !namespaced {
            return Some(name.to_owned());
        }
        (!self.namespace.is_empty()).then(|| format!("{}/{name}", self.namespace))
    }
}

/// What a list found.
#[derive(Debug)]
pub struct Listing {
    pub items: Vec<Arc<Cached>>,
    /// The revision that this is the state of.
    pub revision: u64,
    /// The key after which to go on, if the limit left something out.
    pub next: Option<Arc<str>>,
    /// How many are left, where that is known without looking at each.
    pub remaining: Option<usize>,
}

/// The history that was asked for is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooOld {
    pub requested: u64,
    pub oldest: u64,
}

/// Where a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With all objects that there are, as if they were added now.
    Everything,
    /// With the first change after a revision.
    After(u64),
}

/// All objects of one resource, with their latest changes and those who watch them.
#[derive(Debug)]
pub struct ResourceCache {
    kind: Arc<Kind>,
    state: RwLock<State>,
    /// Held by whoever reads old changes from the store.
    recalling: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct State {
    objects: BTreeMap<Arc<str>, Arc<Cached>>,
    history: History,
    watchers: Watchers,
    sequence: u64,
    /// Everything up to this revision is here.
    revision: u64,
    /// Nobody feeds this cache any more.
    is_closed: bool,
}

impl ResourceCache {
    pub(super) fn new(kind: &Arc<Kind>, revision: u64) -> Self {
        Self {
            kind: Arc::clone(kind),
            state: RwLock::new(State {
                objects: BTreeMap::new(),
                history: History::new(revision),
                watchers: Watchers::default(),
                sequence: 0,
                revision,
                is_closed: false,
            }),
            recalling: tokio::sync::Mutex::default(),
        }
    }

    pub(super) async fn recalling(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.recalling.lock().await
    }

    /// Changes after this revision are known.
    pub(super) fn complete_after(&self) -> u64 {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.history.complete_after()
    }

    /// Takes in the changes from `revision` up to `end`, if `end` is still where the known ones begin.
    pub(super) fn extend_back(
        &self,
        changes: Vec<Arc<Change>>,
        revision: u64,
        end: u64,
        now: Instant,
    ) -> bool {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let fits = state.history.complete_after() == end;
        if fits {
            state.history.extend_back(changes, revision, now);
        }
        fits
    }

    pub fn kind(&self) -> &Arc<Kind> {
        &self.kind
    }

    /// Puts in what was there before anyone could watch.
    pub(super) fn load(&self, objects: Vec<Cached>, revision: u64) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.objects = objects
            .into_iter()
            .map(|object| (Arc::clone(&object.key), Arc::new(object)))
            .collect();
        state.history = History::new(revision);
        state.revision = revision;
    }

    /// Makes changes, in order: a key with its new object, or with the revision that deleted it.
    pub(super) fn apply(&self, changes: Vec<(Arc<str>, Result<Cached, u64>)>, now: Instant) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        for (key, change) in changes {
            let (kind, object, previous) = match change {
                Ok(object) => {
                    let object = Arc::new(object);
                    let previous = state
                        .objects
                        .insert(Arc::clone(&object.key), Arc::clone(&object));
                    let kind = if previous.is_some() {
                        ChangeKind::Modified
                    } else {
                        ChangeKind::Added
                    };
                    (kind, object, previous)
                }
                Err(revision) => {
                    let Some(previous) = state.objects.remove(&key) else {
                        continue;
                    };
                    (
                        ChangeKind::Deleted,
                        Arc::new(previous.moved_to(revision)),
                        Some(previous),
                    )
                }
            };
            state.sequence += 1;
            state.revision = state.revision.max(object.revision);
            let change = Arc::new(Change::new(state.sequence, kind, object, previous));
            state.watchers.tell(&change);
            state.history.push(change, now);
        }
    }

    /// Says that nothing more happened up to a revision.
    pub(super) fn advance(&self, revision: u64) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.revision = state.revision.max(revision);
    }

    /// Makes changes of which only the outcome is known, up to a revision. Those who watch see what differs from
    /// what they saw; who comes with a revision from before has to begin anew.
    pub(super) fn leap(
        &self,
        changes: Vec<(Arc<str>, Result<Cached, u64>)>,
        revision: u64,
        now: Instant,
    ) {
        self.apply(changes, now);
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.revision = state.revision.max(revision);
        state.history.restart(revision);
    }

    pub fn get(&self, key: &str) -> Option<Arc<Cached>> {
        self.state
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .objects
            .get(key)
            .cloned()
    }

    /// Keys and revisions of everything, to compare with what the store has.
    pub(super) fn revisions(&self) -> Vec<(Arc<str>, u64)> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state
            .objects
            .iter()
            .map(|(key, object)| (Arc::clone(key), object.revision))
            .collect()
    }

    pub fn len(&self) -> usize {
        self.state
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .objects
            .len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all objects as clients get them.
    pub fn bytes(&self) -> usize {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.objects.values().map(|object| object.json.len()).sum()
    }

    pub fn watchers(&self) -> usize {
        self.state
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .watchers
            .len()
    }

    /// Objects in the order of their keys, as they are or as they were at a revision.
    pub fn list(
        &self,
        selection: &Selection,
        after: Option<&str>,
        limit: Option<usize>,
        at: Option<u64>,
    ) -> Result<Listing, TooOld> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let revision = at.unwrap_or(state.revision);
        let mut objects = state.candidates(selection, self.kind.namespaced, after);
        if revision < state.revision {
            let then = state.history.undo_to(revision).ok_or(TooOld {
                requested: revision,
                oldest: state.history.complete_after(),
            })?;
            if !then.is_empty() {
                objects.retain(|object| !then.contains_key(&object.key));
                objects.extend(
                    then.into_values()
                        .flatten()
                        .filter(|object| after.is_none_or(|after| &*object.key > after)),
                );
                objects.sort_by(|left, right| left.key.cmp(&right.key));
            }
        }
        drop(state);
        Ok(page(objects, selection, limit, revision))
    }

    /// Begins to watch. No change is missed or seen twice between the start and the first event.
    pub fn watch(self: &Arc<Self>, selection: Selection, start: Start) -> Result<Watcher, TooOld> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let (initial, backlog, revision) = match start {
            Start::Everything => {
                let mut objects = state.candidates(&selection, self.kind.namespaced, None);
                objects.retain(|object| selection.selects(object));
                (objects, Vec::new(), state.revision)
            }
            Start::After(revision) => {
                let changes = state.history.since(revision).ok_or(TooOld {
                    requested: revision,
                    oldest: state.history.complete_after(),
                })?;
                (Vec::new(), changes.cloned().collect(), revision)
            }
        };
        let bucket = Watchers::bucket(&selection, self.kind.namespaced);
        let ticket = state.watchers.join(bucket);
        if state.is_closed {
            // A request that held this cache while it was replaced: its watch ends at once.
            state.watchers.send_away();
        }
        drop(state);
        Ok(Watcher::new(
            Arc::clone(self),
            selection,
            ticket,
            initial,
            backlog,
            revision,
        ))
    }

    /// For a watcher that fell behind: what happened after a sequence number. Clears its mark in the same breath.
    pub(super) fn catch_up(
        &self,
        sequence: u64,
        clear: impl FnOnce(),
    ) -> Result<Vec<Arc<Change>>, TooOld> {
        // The feed needs this lock to tell watchers, so nothing comes between reading and clearing.
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let missed = state
            .history
            .after_sequence(sequence)
            .map(|changes| changes.cloned().collect())
            .ok_or(TooOld {
                requested: 0,
                oldest: state.history.complete_after(),
            });
        clear();
        missed
    }

    /// Sends all watchers away for good: their resource is gone, or has another form.
    pub(super) fn close(&self) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.is_closed = true;
        state.watchers.send_away();
    }

    /// Sends all watchers away: their resource is not served for now.
    pub(super) fn send_away(&self) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.watchers.send_away();
    }

    /// Everything that is here, for a cache of the same objects with other selectable fields.
    pub(super) fn items(&self) -> Vec<Arc<Cached>> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.objects.values().cloned().collect()
    }

    pub(super) fn leave(&self, ticket: &super::watcher::Ticket) {
        self.state
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .watchers
            .leave(ticket);
    }

    /// The revision up to which this cache is complete.
    pub fn revision(&self) -> u64 {
        self.state
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .revision
    }
}

impl State {
    /// The objects that the keys allow: a range of them for a namespace, one for a name.
    fn candidates(
        &self,
        selection: &Selection,
        namespaced: bool,
        after: Option<&str>,
    ) -> Vec<Arc<Cached>> {
        if let Some(key) = selection.only_key(namespaced) {
            let is_after = after.is_none_or(|after| key.as_str() > after);
            return self
                .objects
                .get(key.as_str())
                .filter(|_| is_after)
                .cloned()
                .into_iter()
                .collect();
        }
        let prefix = if selection.namespace.is_empty() {
            String::new()
        } else {
            format!("{}/", selection.namespace)
        };
        let from = match after {
            Some(after) if after >= prefix.as_str() => Bound::Excluded(after),
            _ => Bound::Included(prefix.as_str()),
        };
        self.objects
            .range::<str, _>((from, Bound::Unbounded))
            .take_while(|(key, _)| key.starts_with(&prefix))
            .map(|(_, object)| Arc::clone(object))
            .collect()
    }
}

/// Keeps what is selected, up to the limit.
fn page(
    objects: Vec<Arc<Cached>>,
    selection: &Selection,
    limit: Option<usize>,
    revision: u64,
) -> Listing {
    let plain = selection.labels.is_empty() && selection.fields.is_empty();
    let limit = limit.unwrap_or(usize::MAX);
    let total = objects.len();
    let mut items = Vec::with_capacity(total.min(limit));
    let mut rest = objects
        .into_iter()
        .filter(|object| selection.selects(object));
    items.extend(rest.by_ref().take(limit));
    let next = if rest.next().is_some() {
        items.last().map(|item| Arc::clone(&item.key))
    } else {
        None
    };
    // One was taken to see that there are more. Of the past there are objects of other namespaces, too.
    let remaining = next.as_ref().filter(|_| plain).map(|_| rest.count() + 1);
    Listing {
        items,
        revision,
        next,
        remaining,
    }
}
