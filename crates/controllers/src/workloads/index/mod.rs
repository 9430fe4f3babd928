//! What is known of a kind, from its watch and from the answers to our own requests.
//!
//! An answer counts until the watch is as far, so a controller never decides on less than it did itself.
//! That takes the place of counting what is still expected, and a restart has nothing to lose.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::PoisonError,
    sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::Duration,
};

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::{Resource, ResourceExt as _, runtime::watcher::Event};
use tokio::{sync::watch, time::Instant};

use super::owners::controller_of;

/// How long an answer counts that the watch never confirms.
const UNCONFIRMED: Duration = Duration::from_mins(5);

/// Where an object is. Objects in no namespace have an empty one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    pub(crate) fn of(object: &impl Resource) -> Self {
        Self {
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
        }
    }
}

/// One object before and after something happened to it.
#[derive(Debug)]
pub(crate) struct Change<K> {
    pub(crate) old: Option<Arc<K>>,
    pub(crate) new: Option<Arc<K>>,
}

#[derive(Debug)]
pub(crate) struct Index<K> {
    /// Takes off what nobody here asks for.
    trim: fn(&mut K),
    state: RwLock<State<K>>,
    complete: watch::Sender<bool>,
}

#[derive(Debug)]
struct State<K> {
    objects: HashMap<String, BTreeMap<String, Entry<K>>>,
    /// By the uid of the controller that owns them.
    owned: HashMap<String, BTreeSet<Key>>,
    /// Those that no controller owns, by namespace.
    ownerless: HashMap<String, BTreeSet<String>>,
    /// How far the watch is.
    newest: u64,
    /// What the list that is being read has had so far.
    listed: Option<HashSet<Key>>,
}

#[derive(Debug)]
struct Entry<K> {
    object: Arc<K>,
    version: u64,
    /// When we wrote it, if the watch did not tell of it yet.
    written: Option<Instant>,
    /// When we deleted it, if the watch did not tell of that yet.
    deleted: Option<(Instant, Time)>,
}

impl<K> Index<K>
where
    K: Resource<DynamicType = ()> + Clone,
{
    pub(crate) fn new() -> Self {
        Self::trimmed(|_| {})
    }

    /// An index that keeps of each object only what `trim` leaves.
    pub(crate) fn trimmed(trim: fn(&mut K)) -> Self {
        Self {
            trim,
            state: RwLock::new(State {
                objects: HashMap::new(),
                owned: HashMap::new(),
                ownerless: HashMap::new(),
                newest: 0,
                listed: None,
            }),
            complete: watch::Sender::new(false),
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, State<K>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State<K>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when a whole list was read.
    pub(crate) async fn complete(&self) {
        let mut complete = self.complete.subscribe();
        // The sender lives as long as we do.
        let _ = complete.wait_for(|complete| *complete).await;
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.read().get(key)
    }

    /// The objects that a controller owns, in the order of their names.
    pub(crate) fn owned_by(&self, uid: &str) -> Vec<Arc<K>> {
        let state = self.read();
        let keys = state.owned.get(uid).into_iter().flatten();
        keys.filter_map(|key| state.get(key)).collect()
    }

    /// The objects of a namespace that no controller owns.
    pub(crate) fn ownerless(&self, namespace: &str) -> Vec<Arc<K>> {
        let state = self.read();
        let names = state.ownerless.get(namespace).into_iter().flatten();
        names
            .filter_map(|name| state.get(&Key::new(namespace, name)))
            .collect()
    }

    /// All objects of a namespace.
    pub(crate) fn within(&self, namespace: &str) -> Vec<Arc<K>> {
        let state = self.read();
        let entries = state.objects.get(namespace).into_iter().flatten();
        entries.filter_map(|(_, entry)| entry.view()).collect()
    }

    fn trim(&self, mut object: K) -> K {
        (self.trim)(&mut object);
        object
    }

    /// All objects.
    pub(crate) fn all(&self) -> Vec<Arc<K>> {
        let state = self.read();
        let entries = state.objects.values().flat_map(BTreeMap::values);
        entries.filter_map(Entry::view).collect()
    }

    /// Takes the answer to a request of ours that made or changed an object.
    pub(crate) fn note(&self, object: K) -> Arc<K> {
        let mut state = self.write();
        let entry = Entry::new(self.trim(object), Some(Instant::now()));
        let object = Arc::clone(&entry.object);
        if entry.version > state.newest {
            state.insert(entry);
        }
        object
    }

    /// Takes that we deleted an object: it counts as terminating from now on.
    pub(crate) fn note_deletion(&self, key: &Key, uid: Option<&str>, now: Timestamp) {
        let mut state = self.write();
        let entry = state
            .objects
            .get_mut(&key.namespace)
            .and_then(|names| names.get_mut(&key.name));
        if let Some(entry) = entry
            && entry.object.meta().uid.as_deref() == uid
        {
            entry.deleted = Some((Instant::now(), Time(now)));
            entry.terminate();
        }
    }

    /// Takes what the watch tells, and tells what that changed.
    pub(crate) fn take(&self, event: Event<K>) -> Vec<Change<K>> {
        let mut state = self.write();
        match event {
            Event::Init => {
                state.listed = Some(HashSet::new());
                Vec::new()
            }
            Event::InitApply(object) => {
                if let Some(listed) = &mut state.listed {
                    listed.insert(Key::of(&object));
                }
                state.apply(self.trim(object))
            }
            Event::Apply(object) => state.apply(self.trim(object)),
            Event::Delete(object) => state.remove(&object),
            Event::InitDone => {
                let gone = state.end_list();
                drop(state);
                self.complete.send_replace(true);
                gone
            }
        }
    }
}

impl<K: Resource<DynamicType = ()> + Clone> Entry<K> {
    fn new(mut object: K, written: Option<Instant>) -> Self {
        // Nobody here asks who set which field, and that is half of an object.
        object.meta_mut().managed_fields = None;
        let version = version(&object);
        Self {
            object: Arc::new(object),
            version,
            written,
            deleted: None,
        }
    }

    /// The object, unless it is one that the watch should have told of long ago.
    fn view(&self) -> Option<Arc<K>> {
        let is_ghost = self
            .written
            .is_some_and(|written| written.elapsed() > UNCONFIRMED);
        (!is_ghost).then(|| Arc::clone(&self.object))
    }

    fn terminate(&mut self) {
        if let Some((since, time)) = &self.deleted
            && since.elapsed() < UNCONFIRMED
            && self.object.meta().deletion_timestamp.is_none()
        {
            let time = time.clone();
            Arc::make_mut(&mut self.object)
                .meta_mut()
                .deletion_timestamp = Some(time);
        }
    }
}

impl<K: Resource<DynamicType = ()> + Clone> State<K> {
    fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.objects.get(&key.namespace)?.get(&key.name)?.view()
    }

    fn apply(&mut self, object: K) -> Vec<Change<K>> {
        let mut entry = Entry::new(object, None);
        self.newest = self.newest.max(entry.version);
        let key = Key::of(&*entry.object);
        let known = self
            .objects
            .get(&key.namespace)
            .and_then(|names| names.get(&key.name));
        let old = known.map(|known| Arc::clone(&known.object));
        if let Some(known) = known {
            if known.version > entry.version {
                return Vec::new();
            }
            if known.object.meta().uid == entry.object.meta().uid {
                entry.deleted.clone_from(&known.deleted);
                entry.terminate();
            }
        }
        let new = Some(Arc::clone(&entry.object));
        self.insert(entry);
        vec![Change { old, new }]
    }

    fn insert(&mut self, entry: Entry<K>) {
        let key = Key::of(&*entry.object);
        self.unlink(&key);
        match controller_of(entry.object.meta()) {
            Some(owner) => {
                let keys = self.owned.entry(owner.uid.clone()).or_default();
                keys.insert(key.clone());
            }
            None => {
                let ownerless = self.ownerless.entry(key.namespace.clone()).or_default();
                ownerless.insert(key.name.clone());
            }
        }
        let names = self.objects.entry(key.namespace).or_default();
        names.insert(key.name, entry);
    }

    fn remove(&mut self, object: &K) -> Vec<Change<K>> {
        self.newest = self.newest.max(version(object));
        let key = Key::of(object);
        let known = self
            .objects
            .get(&key.namespace)
            .and_then(|names| names.get(&key.name));
        match known {
            Some(known) if known.object.meta().uid == object.meta().uid => self.drop_key(&key),
            _ => Vec::new(),
        }
    }

    fn end_list(&mut self) -> Vec<Change<K>> {
        let Some(listed) = self.listed.take() else {
            return Vec::new();
        };
        let mut gone = Vec::new();
        for (namespace, names) in &self.objects {
            for (name, entry) in names {
                let key = Key::new(namespace, name);
                if entry.written.is_none() && !listed.contains(&key) {
                    gone.push(key);
                }
            }
        }
        gone.iter().flat_map(|key| self.drop_key(key)).collect()
    }

    fn drop_key(&mut self, key: &Key) -> Vec<Change<K>> {
        self.unlink(key);
        let Some(names) = self.objects.get_mut(&key.namespace) else {
            return Vec::new();
        };
        let removed = names.remove(&key.name);
        if names.is_empty() {
            self.objects.remove(&key.namespace);
        }
        let change = |entry: Entry<K>| Change {
            old: Some(entry.object),
            new: None,
        };
        removed.map(change).into_iter().collect()
    }

    /// Takes an object out of the indexes.
    fn unlink(&mut self, key: &Key) {
        let entry = self
            .objects
            .get(&key.namespace)
            .and_then(|names| names.get(&key.name));
        let Some(entry) = entry else { return };
        match controller_of(entry.object.meta()) {
            Some(owner) => {
                if let Some(keys) = self.owned.get_mut(&owner.uid) {
                    keys.remove(key);
                    if keys.is_empty() {
                        self.owned.remove(&owner.uid);
                    }
                }
            }
            None => {
                if let Some(ownerless) = self.ownerless.get_mut(&key.namespace) {
                    ownerless.remove(&key.name);
                    if ownerless.is_empty() {
                        self.ownerless.remove(&key.namespace);
                    }
                }
            }
        }
    }
}

/// Versions of one kind are numbers that grow, which the API promises since 1.35.
fn version(object: &impl Resource) -> u64 {
    let version = object.meta().resource_version.as_deref();
    version.and_then(|text| text.parse().ok()).unwrap_or(0)
}
