//! Those who watch: who is told of which change, and how one of them reads.
//!
//! A watcher gets each change that concerns it once and in order, however slowly it reads, or is told that it
//! is too late.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::sync::mpsc;

use super::{
    cached::{Cached, Change, ChangeKind},
    resource::{ResourceCache, Selection, TooOld},
};
use crate::selector::FieldName;

/// So many changes wait for one watcher before it is left to catch up by itself.
const QUEUE: usize = 256;

/// The group of watchers that a change may concern. With thousands of nodes that each watch their own pods, a
/// pod's change is told to one of them and not to all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Bucket {
    All,
    Namespace(Box<str>),
    Object(Box<str>),
    /// The kind's first selectable field has this value.
    Field(Box<str>),
}

#[derive(Clone, Debug)]
pub(super) struct Seat {
    id: u64,
    sender: mpsc::Sender<Arc<Change>>,
    missed: Missed,
}

impl Seat {
    fn tell(&self, change: &Arc<Change>) {
        // Once something was left out, all later changes are read from the history, in order.
        if self.missed.first().is_none() && self.sender.try_send(Arc::clone(change)).is_err() {
            self.missed.begin(change.sequence);
        }
    }
}

/// The sequence number of the first change for which a watcher had no room; zero if there was always room.
#[derive(Clone, Debug, Default)]
struct Missed(Arc<AtomicU64>);

impl Missed {
    fn first(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Acquire)).filter(|sequence| *sequence > 0)
    }

    fn begin(&self, sequence: u64) {
        self.0.store(sequence, Ordering::Release);
    }

    fn clear(&self) {
        self.0.store(0, Ordering::Release);
    }
}

/// A place among the watchers of a resource.
#[derive(Debug)]
pub(super) struct Ticket {
    bucket: Bucket,
    id: u64,
    receiver: mpsc::Receiver<Arc<Change>>,
    missed: Missed,
}

#[derive(Debug, Default)]
pub(super) struct Watchers {
    seats: HashMap<Bucket, Vec<Seat>>,
    next: u64,
    count: usize,
}

impl Watchers {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The smallest group that has all changes of a selection.
    pub(super) fn bucket(selection: &Selection, namespaced: bool) -> Bucket {
        if let Some(key) = selection.only_key(namespaced) {
            Bucket::Object(key.into())
        } else if let Some(value) = selection.fields.exact(FieldName::Selectable(0)) {
            Bucket::Field(value.into())
        } else if selection.namespace.is_empty() {
            Bucket::All
        } else {
            Bucket::Namespace(selection.namespace.as_str().into())
        }
    }

    pub(super) fn join(&mut self, bucket: Bucket) -> Ticket {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let missed = Missed::default();
        self.next += 1;
        self.count += 1;
        let seat = Seat {
            id: self.next,
            sender,
            missed: missed.clone(),
        };
        self.seats.entry(bucket.clone()).or_default().push(seat);
        Ticket {
            bucket,
            id: self.next,
            receiver,
            missed,
        }
    }

    pub(super) fn leave(&mut self, ticket: &Ticket) {
        let Some(seats) = self.seats.get_mut(&ticket.bucket) else {
            return;
        };
        let before = seats.len();
        seats.retain(|seat| seat.id != ticket.id);
        self.count -= before - seats.len();
        if seats.is_empty() {
            self.seats.remove(&ticket.bucket);
        }
    }

    /// Ends the watch of everybody. Tickets are never given twice, so those who leave later leave alone.
    pub(super) fn send_away(&mut self) {
        self.seats.clear();
        self.count = 0;
    }

    pub(super) fn tell(&self, change: &Arc<Change>) {
        if self.count == 0 {
            return;
        }
        let object = &change.object;
        let field = object.field(FieldName::Selectable(0));
        let mut buckets = vec![
            Bucket::All,
            Bucket::Object(object.key.as_ref().into()),
            Bucket::Namespace(object.namespace().into()),
            Bucket::Field(field.into()),
        ];
        // Who watched the old value has to learn that the object left.
        if let Some(previous) = &change.previous {
            let before = previous.field(FieldName::Selectable(0));
            if before != field {
                buckets.push(Bucket::Field(before.into()));
            }
        }
        for bucket in buckets {
            for seat in self.seats.get(&bucket).into_iter().flatten() {
                seat.tell(change);
            }
        }
    }
}

/// What a watcher sees of a change.
#[derive(Clone, Debug)]
pub struct Sight {
    pub kind: ChangeKind,
    pub object: Arc<Cached>,
    /// The change itself, if it is seen as it is: its encoded form is shared.
    pub change: Option<Arc<Change>>,
}

/// One reader of a resource's changes.
#[derive(Debug)]
pub struct Watcher {
    cache: Arc<ResourceCache>,
    selection: Selection,
    ticket: Ticket,
    initial: VecDeque<Arc<Cached>>,
    backlog: VecDeque<Arc<Change>>,
    /// The revision from which this watcher began.
    pub started_at: u64,
}

impl Watcher {
    pub(super) fn new(
        cache: Arc<ResourceCache>,
        selection: Selection,
        ticket: Ticket,
        initial: Vec<Arc<Cached>>,
        backlog: Vec<Arc<Change>>,
        started_at: u64,
    ) -> Self {
        Self {
            cache,
            selection,
            ticket,
            initial: initial.into(),
            backlog: backlog.into(),
            started_at,
        }
    }

    /// An object that was there at the start, until there is none left.
    pub fn next_initial(&mut self) -> Option<Arc<Cached>> {
        self.initial.pop_front()
    }

    /// The next change that concerns this watcher; `None` if the resource is not served any more. Safe to drop
    /// while it waits.
    pub async fn next(&mut self) -> Result<Option<Sight>, TooOld> {
        loop {
            if let Some(sight) = self.ready()? {
                return Ok(Some(sight));
            }
            match self.ticket.receiver.recv().await {
                Some(change) => self.backlog.push_back(change),
                None => return Ok(None),
            }
        }
    }

    /// The next change if it is there already.
    pub fn ready(&mut self) -> Result<Option<Sight>, TooOld> {
        loop {
            while let Some(change) = self.backlog.pop_front() {
                if let Some(sight) = see(&self.selection, change) {
                    return Ok(Some(sight));
                }
            }
            // Looked at before the queue: what is in the queue came before what there was no room for.
            let missed = self.ticket.missed.first();
            if !self.take(missed)? {
                return Ok(None);
            }
        }
    }

    /// Takes what comes next from the queue, and what was missed once the queue is empty. Whether there was
    /// anything.
    fn take(&mut self, missed: Option<u64>) -> Result<bool, TooOld> {
        if let Ok(change) = self.ticket.receiver.try_recv() {
            self.backlog.push_back(change);
            return Ok(true);
        }
        let Some(first) = missed else {
            return Ok(false);
        };
        let mark = &self.ticket.missed;
        let changes = self.cache.catch_up(first - 1, || mark.clear())?;
        self.backlog.extend(changes);
        Ok(true)
    }

    /// A revision up to which this watcher has seen everything, if it has nothing to read now.
    pub fn progress(&mut self) -> Option<u64> {
        let revision = self.cache.revision();
        let idle = self.initial.is_empty()
            && self.backlog.is_empty()
            && self.ticket.receiver.is_empty()
            && self.ticket.missed.first().is_none();
        idle.then_some(revision)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.cache.leave(&self.ticket);
    }
}

/// How a change looks through a selection: an object may enter or leave it without being made or deleted.
fn see(selection: &Selection, change: Arc<Change>) -> Option<Sight> {
    let was = change
        .previous
        .as_ref()
        .is_some_and(|previous| selection.selects(previous));
    let is = change.kind != ChangeKind::Deleted && selection.selects(&change.object);
    let kind = match (was, is) {
        (false, false) => return None,
        (false, true) => ChangeKind::Added,
        (true, true) => ChangeKind::Modified,
        (true, false) => ChangeKind::Deleted,
    };
    if kind == ChangeKind::Deleted && change.kind != ChangeKind::Deleted {
        let previous = change.previous.as_ref()?;
        let object = Arc::new(previous.moved_to(change.revision));
        return Some(Sight {
            kind,
            object,
            change: None,
        });
    }
    Some(Sight {
        kind,
        object: Arc::clone(&change.object),
        change: Some(change),
    })
}

#[cfg(test)]
mod tests {
    use std::{
        sync::LazyLock,
        time::{Duration, Instant},
    };

    use serde_json::json;

    use super::{super::resource::Start, *};
    use crate::registry::{Kind, Registry};

    static KIND: LazyLock<Arc<Kind>> = LazyLock::new(|| {
        let kinds = Registry::builtin().kinds();
        Arc::clone(kinds.resource("", "v1", "configmaps").unwrap())
    });

    fn cache() -> Arc<ResourceCache> {
        Arc::new(ResourceCache::new(&KIND, 1))
    }

    fn object(namespace: &str, revision: u64) -> Cached {
        let stored = json!({"metadata": {"name": "a", "namespace": namespace}}).to_string();
        let key = format!("{namespace}/a");
        Cached::read(&KIND, &key, stored.as_bytes(), revision).unwrap()
    }

    /// Changes the object of a namespace at each of the revisions.
    fn change_in(
        namespace: &str,
        cache: &ResourceCache,
        revisions: impl IntoIterator<Item = u64>,
        now: Instant,
    ) {
        for revision in revisions {
            let object = object(namespace, revision);
            cache.apply(vec![(Arc::clone(&object.key), Ok(object))], now);
        }
    }

    fn change(cache: &ResourceCache, revisions: impl IntoIterator<Item = u64>) {
        change_in("default", cache, revisions, Instant::now());
    }

    /// When whatever is older than the last thousand changes is forgotten.
    fn much_later() -> Instant {
        Instant::now() + Duration::from_hours(1)
    }

    fn watch(cache: &Arc<ResourceCache>) -> Watcher {
        let all = Selection::default();
        cache.watch(all, Start::After(cache.revision())).unwrap()
    }

    fn read(watcher: &mut Watcher) -> Vec<u64> {
        std::iter::from_fn(|| watcher.ready().unwrap())
            .map(|sight| sight.object.revision)
            .collect()
    }

    fn last_in_queue() -> u64 {
        1 + u64::try_from(QUEUE).unwrap()
    }

    #[test]
    fn a_watcher_that_falls_behind_while_it_looks_sees_each_change_once_and_in_order() {
        let cache = cache();
        let mut watcher = watch(&cache);
        // The feed comes between the look at the mark and the look at the queue, and the other way round.
        let before = watcher.ticket.missed.first();
        change(&cache, 2..=last_in_queue() + 50);
        assert!(watcher.take(before).unwrap());
        let seen = read(&mut watcher);
        assert_eq!(seen, (2..=last_in_queue() + 50).collect::<Vec<_>>());

        change(&cache, [1_000]);
        assert_eq!(read(&mut watcher), [1_000]);
        assert_eq!(watcher.progress(), Some(1_000));
    }

    #[test]
    fn a_watcher_that_reads_while_changes_come_sees_each_once_and_in_order() {
        const LAST: u64 = 20_000;
        let cache = cache();
        let mut watcher = watch(&cache);
        std::thread::scope(|scope| {
            scope.spawn(|| change(&cache, 2..=LAST));
            let mut newest = 1;
            while newest < LAST {
                for revision in read(&mut watcher) {
                    assert_eq!(revision, newest + 1);
                    newest = revision;
                }
            }
        });
    }

    #[test]
    fn a_watcher_that_missed_what_is_forgotten_is_told_so_although_it_was_recalled() {
        let cache = cache();
        let mut watcher = watch(&cache);
        let last = last_in_queue();
        change(&cache, 2..=last + 1);
        let later = much_later();
        change_in("default", &cache, last + 2..=last + 1_100, later);
        let end = cache.complete_after();
        assert_eq!(end, last + 1);
        let recalled = Arc::new(object("default", last + 1));
        let recalled = Change::new(0, ChangeKind::Modified, recalled, None);
        assert!(cache.extend_back(vec![Arc::new(recalled)], last, end, later));

        for revision in 2..=last {
            let sight = watcher.ready().unwrap().unwrap();
            assert_eq!(sight.object.revision, revision);
        }
        assert!(watcher.ready().is_err());
    }

    #[test]
    fn a_quiet_watcher_is_not_too_late_for_what_does_not_concern_it() {
        let cache = cache();
        let selection = Selection {
            namespace: "elsewhere".to_owned(),
            ..Selection::default()
        };
        let mut watcher = cache.watch(selection, Start::After(1)).unwrap();
        change(&cache, 2..=1_500);
        let last = 1_501 + last_in_queue();
        change_in("elsewhere", &cache, 1_501..=last, much_later());
        assert_eq!(read(&mut watcher), (1_501..=last).collect::<Vec<_>>());
    }
}
