//! The latest changes of one resource: what watches catch up from, and lists go back with.
//!
//! Whoever asks for changes gets all of them or is told that some are forgotten, and what only the history
//! holds never takes more memory than it may.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use super::cached::{Cached, Change, ChangeKind};

/// So many changes are kept however old they are, if there is room for them.
const AT_LEAST: usize = 1_000;
const AT_MOST: usize = 100_000;
/// Changes are worth keeping for someone who was cut off for so long.
const LONG_ENOUGH: Duration = Duration::from_mins(3);
/// What only the history still holds may take this much memory.
const BYTES: usize = 64 << 20;

#[derive(Debug)]
pub(super) struct History {
    changes: VecDeque<(Instant, Arc<Change>)>,
    /// Changes after this revision are all here.
    complete_after: u64,
    /// The last counted change that was forgotten. What is recalled in its place has no number, so nobody
    /// can go on by numbers from before it.
    forgotten: u64,
    bytes: usize,
    /// How many bytes there may be.
    room: usize,
}

impl History {
    pub(super) fn new(revision: u64) -> Self {
        Self::with_room(revision, BYTES)
    }

    fn with_room(revision: u64, room: usize) -> Self {
        Self {
            changes: VecDeque::new(),
            complete_after: revision,
            forgotten: 0,
            bytes: 0,
            room,
        }
    }

    pub(super) fn complete_after(&self) -> u64 {
        self.complete_after
    }

    pub(super) fn push(&mut self, change: Arc<Change>, now: Instant) {
        self.bytes += weight(&change);
        self.changes.push_back((now, change));
        while self.is_too_much(now)
            && let Some(oldest) = self.forget_oldest()
        {
            self.complete_after = oldest.revision;
        }
        // A revision is forgotten as a whole: what is recalled of it later is all of it.
        while let Some((_, oldest)) = self.changes.front()
            && oldest.revision <= self.complete_after
        {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) -> Option<Arc<Change>> {
        let (_, oldest) = self.changes.pop_front()?;
        self.bytes -= weight(&oldest);
        self.forgotten = self.forgotten.max(oldest.sequence);
        Some(oldest)
    }

    /// Puts changes in front that happened before all that are here, back to a revision.
    pub(super) fn extend_back(&mut self, changes: Vec<Arc<Change>>, revision: u64, now: Instant) {
        for change in changes.into_iter().rev() {
            self.bytes += weight(&change);
            self.changes.push_front((now, change));
        }
        self.complete_after = revision;
    }

    /// Forgets everything: what happened up to a revision is not known one by one.
    pub(super) fn restart(&mut self, revision: u64) {
        if let Some((_, newest)) = self.changes.back() {
            self.forgotten = self.forgotten.max(newest.sequence);
        }
        self.changes.clear();
        self.bytes = 0;
        self.complete_after = revision;
    }

    fn is_too_much(&self, now: Instant) -> bool {
        self.changes.len() > AT_MOST
            || self.bytes > self.room
            || self.changes.len() > AT_LEAST
                && self
                    .changes
                    .front()
                    .is_some_and(|(then, _)| now.duration_since(*then) > LONG_ENOUGH)
    }

    /// Changes after a revision, oldest first; `None` if some of them are forgotten.
    pub(super) fn since(&self, revision: u64) -> Option<impl Iterator<Item = &Arc<Change>>> {
        if revision < self.complete_after {
            return None;
        }
        let start = self
            .changes
            .partition_point(|(_, change)| change.revision <= revision);
        Some(self.changes.range(start..).map(|(_, change)| change))
    }

    /// Changes after a sequence number; `None` if some of them are forgotten.
    pub(super) fn after_sequence(
        &self,
        sequence: u64,
    ) -> Option<impl Iterator<Item = &Arc<Change>>> {
        if sequence < self.forgotten {
            return None;
        }
        let start = self
            .changes
            .partition_point(|(_, change)| change.sequence <= sequence);
        Some(self.changes.range(start..).map(|(_, change)| change))
    }

    /// What differed at a revision from now: keys with what they held then.
    pub(super) fn undo_to(&self, revision: u64) -> Option<HashMap<Arc<str>, Option<Arc<Cached>>>> {
        let mut then = HashMap::new();
        for change in self.since(revision)? {
            then.entry(Arc::clone(&change.object.key))
                .or_insert_with(|| match change.kind {
                    ChangeKind::Added => None,
                    ChangeKind::Modified | ChangeKind::Deleted => change.previous.clone(),
                });
        }
        Some(then)
    }
}

/// What the change keeps in memory: the object before it, and the event that is made of the one after it.
fn weight(change: &Change) -> usize {
    let previous = change.previous.as_ref();
    previous.map_or(0, |previous| previous.json.len()) + change.object.json.len() + 200
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use serde_json::json;

    use super::*;
    use crate::registry::{Kind, Registry};

    const ROOM: usize = 64 << 10;

    static KIND: LazyLock<Arc<Kind>> = LazyLock::new(|| {
        let kinds = Registry::builtin().kinds();
        Arc::clone(kinds.resource("", "v1", "configmaps").unwrap())
    });

    fn change(sequence: u64, revision: u64, bytes: usize) -> Arc<Change> {
        let filler = json!({"filler": "x".repeat(bytes)});
        let stored = json!({"metadata": {"annotations": filler, "name": "a"}});
        let object = Cached::read(&KIND, "default/a", stored.to_string().as_bytes(), revision);
        let object = Arc::new(object.unwrap());
        Arc::new(Change::new(sequence, ChangeKind::Modified, object, None))
    }

    fn sequences(history: &History, after: u64) -> Option<Vec<u64>> {
        let changes = history.after_sequence(after)?;
        Some(changes.map(|change| change.sequence).collect())
    }

    #[test]
    fn what_was_recalled_does_not_hide_that_counted_changes_are_forgotten() {
        let mut history = History::with_room(100, ROOM);
        let now = Instant::now();
        let large = ROOM / 4;
        for sequence in 1..=8 {
            history.push(change(sequence, 100 + sequence, large), now);
        }
        let kept = sequences(&history, 8 - 3);
        assert_eq!(kept, Some(vec![6, 7, 8]));
        assert_eq!(sequences(&history, 4), None);

        let recalled = (1..=5).map(|revision| change(0, 100 + revision, 1));
        history.extend_back(recalled.collect(), 100, now);
        assert_eq!(sequences(&history, 4), None);
        assert_eq!(sequences(&history, 5), Some(vec![6, 7, 8]));
        let since: Vec<u64> = history
            .since(100)
            .unwrap()
            .map(|one| one.revision)
            .collect();
        assert_eq!(since, (101..=108).collect::<Vec<_>>());
    }

    #[test]
    fn a_revision_with_several_changes_is_forgotten_as_a_whole() {
        let mut history = History::with_room(0, ROOM);
        let now = Instant::now();
        let large = ROOM / 3;
        for (sequence, revision) in [(1, 1), (2, 1), (3, 2)] {
            history.push(change(sequence, revision, large), now);
        }
        assert_eq!(history.complete_after(), 1);
        assert_eq!(sequences(&history, 2), Some(vec![3]));
        assert_eq!(sequences(&history, 1), None);
        let recalled = vec![change(0, 1, 1), change(0, 1, 1)];
        history.extend_back(recalled, 0, now);
        assert_eq!(history.since(0).unwrap().count(), 3);
    }

    #[test]
    fn few_large_changes_take_no_more_memory_than_many_small_ones() {
        let mut history = History::with_room(0, ROOM);
        let now = Instant::now();
        for sequence in 1..=200 {
            history.push(change(sequence, sequence, ROOM / 50), now);
            assert!(history.bytes <= ROOM, "{}", history.bytes);
        }
        assert!(history.changes.len() < AT_LEAST);
        assert_eq!(sequences(&history, 199), Some(vec![200]));
        assert!(history.since(199).is_some());
        assert!(history.since(1).is_none());
    }

    #[test]
    fn old_changes_are_forgotten_but_for_the_last_thousand() {
        let mut history = History::new(0);
        let then = Instant::now();
        let count = u64::try_from(AT_LEAST).unwrap();
        for sequence in 1..=count + 10 {
            history.push(change(sequence, sequence, 1), then);
        }
        assert!(history.since(0).is_some());
        let later = then + LONG_ENOUGH + Duration::from_secs(1);
        history.push(change(count + 11, count + 11, 1), later);
        assert_eq!(history.changes.len(), AT_LEAST);
        assert_eq!(history.complete_after(), 11);
    }
}
