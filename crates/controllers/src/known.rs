//! What watches told, cut down to what a controller has to know.
//!
//! News that change nothing of that are not passed on: a pod that only reports its health, or a lease that only
//! lives, costs a comparison. What we wrote ourselves can be put in at once; older news do not undo it, and an answer
//! that comes after the watch told of that time changes nothing.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fmt::Debug,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::ObjectMeta, serde::de::DeserializeOwned};
use kube::{
    Api, Resource,
    runtime::watcher::{Config, Event},
};
use tokio::sync::watch;

use crate::{follow::follow, shared::Shared};

/// Where an object is. Objects of the cluster are in the namespace without a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    pub(crate) fn of(metadata: &ObjectMeta) -> Self {
        Self::new(
            metadata.namespace.clone().unwrap_or_default(),
            metadata.name.clone().unwrap_or_default(),
        )
    }
}

/// All objects of a resource as far as they matter, by namespace and by a group that each may belong to.
#[derive(Debug)]
pub(crate) struct Known<V> {
    state: Mutex<State<V>>,
    complete: watch::Sender<bool>,
    group: fn(&V) -> Option<String>,
}

#[derive(Debug)]
struct State<V> {
    objects: BTreeMap<String, BTreeMap<String, Entry<V>>>,
    groups: HashMap<String, BTreeSet<Key>>,
    /// How far the watch is.
    newest: u64,
}

/// Who tells of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// A list, which is right whatever was known before.
    List,
    Watch,
    /// The answer to a request of ours.
    Answer,
}

#[derive(Debug)]
struct Entry<V> {
    version: u64,
    value: Arc<V>,
}

/// What a piece of news changed: what was known, and what is known now.
type Change<V> = (Option<Arc<V>>, Option<Arc<V>>);

impl<V: PartialEq> Known<V> {
    pub(crate) fn new() -> Self {
        Self::grouped(|_| None)
    }

    /// With groups, which can be looked up as fast as one object.
    pub(crate) fn grouped(group: fn(&V) -> Option<String>) -> Self {
        Self {
            state: Mutex::new(State {
                objects: BTreeMap::new(),
                groups: HashMap::new(),
                newest: 0,
            }),
            complete: watch::Sender::new(false),
            group,
        }
    }

    fn state(&self) -> MutexGuard<'_, State<V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when all objects were seen.
    pub(crate) async fn complete(&self) {
        // The sender is ours, so there is always something to wait for.
        let _ = self
            .complete
            .subscribe()
            .wait_for(|complete| *complete)
            .await;
    }

    pub(crate) fn is_complete(&self) -> bool {
        *self.complete.borrow()
    }

    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<Arc<V>> {
        let state = self.state();
        let entry = state.objects.get(namespace)?.get(name)?;
        Some(Arc::clone(&entry.value))
    }

    /// The objects of a namespace that `is_wanted`, by name.
    pub(crate) fn find(&self, namespace: &str, is_wanted: impl Fn(&V) -> bool) -> Vec<Arc<V>> {
        let state = self.state();
        let objects = state.objects.get(namespace).into_iter().flatten();
        let values = objects.map(|(_, entry)| &entry.value);
        values.filter(|value| is_wanted(value)).cloned().collect()
    }

    /// The objects of a group, by namespace and name.
    pub(crate) fn group(&self, group: &str) -> Vec<Arc<V>> {
        let state = self.state();
        let keys = state.groups.get(group).into_iter().flatten();
        keys.filter_map(|key| state.objects.get(&key.namespace)?.get(&key.name))
            .map(|entry| Arc::clone(&entry.value))
            .collect()
    }

    pub(crate) fn keys(&self) -> Vec<Key> {
        let state = self.state();
        let spaces = state.objects.iter();
        spaces
            .flat_map(|(namespace, objects)| {
                objects.keys().map(move |name| Key::new(namespace, name))
            })
            .collect()
    }

    /// Takes note of an object as an answer to a request of ours told it.
    pub(crate) fn note(&self, metadata: &ObjectMeta, value: V) {
        let key = Key::of(metadata);
        self.put(&key, version(metadata), value, Source::Answer);
    }

    /// Takes note that an object was deleted by us.
    pub(crate) fn forget(&self, key: &Key) {
        self.state().remove(key, self.group);
    }

    /// Sets an object. News that are older than what is known count only if they are from a list.
    fn put(&self, key: &Key, version: u64, value: V, source: Source) -> Option<Change<V>> {
        let mut state = self.state();
        if source == Source::Answer && version <= state.newest {
            // The watch has told of this and of all that came of it: the object may be gone.
            return None;
        }
        if source != Source::Answer {
            state.newest = state.newest.max(version);
        }
        let objects = state.objects.get(&key.namespace);
        let old = objects.and_then(|objects| objects.get(&key.name));
        if old.is_some_and(|old| old.version > version && source != Source::List) {
            return None;
        }
        let old = old.map(|entry| Arc::clone(&entry.value));
        let is_same = old.as_deref() == Some(&value);
        let value = match &old {
            Some(old) if is_same => Arc::clone(old),
            _ => Arc::new(value),
        };
        let entry = Entry {
            version,
            value: Arc::clone(&value),
        };
        if is_same {
            let space = state.objects.get_mut(&key.namespace);
            space.map(|objects| objects.insert(key.name.clone(), entry));
            return None;
        }
        if let Some(old) = &old {
            state.leave(key, (self.group)(old));
        }
        if let Some(group) = (self.group)(&value) {
            state.groups.entry(group).or_default().insert(key.clone());
        }
        let space = state.objects.entry(key.namespace.clone()).or_default();
        space.insert(key.name.clone(), entry);
        Some((old, Some(value)))
    }

    /// Removes an object, which the watch told of, unless what is known is newer.
    fn remove(&self, key: &Key, version: u64) -> Option<Change<V>> {
        let mut state = self.state();
        state.newest = state.newest.max(version);
        let entry = state.objects.get(&key.namespace)?.get(&key.name)?;
        if entry.version > version {
            return None;
        }
        let old = state.remove(key, self.group)?;
        Some((Some(old), None))
    }

    /// Removes an object that a list did not have.
    fn drop_unlisted(&self, key: &Key) -> Option<Change<V>> {
        let old = self.state().remove(key, self.group)?;
        Some((Some(old), None))
    }
}

impl<V> State<V> {
    fn leave(&mut self, key: &Key, group: Option<String>) {
        let Some(group) = group else {
            return;
        };
        if let Some(members) = self.groups.get_mut(&group) {
            members.remove(key);
            if members.is_empty() {
                self.groups.remove(&group);
            }
        }
    }

    fn remove(&mut self, key: &Key, group: fn(&V) -> Option<String>) -> Option<Arc<V>> {
        let objects = self.objects.get_mut(&key.namespace)?;
        let old = objects.remove(&key.name)?.value;
        if objects.is_empty() {
            self.objects.remove(&key.namespace);
        }
        self.leave(key, group(&old));
        Some(old)
    }
}

fn version(metadata: &ObjectMeta) -> u64 {
    let text = metadata.resource_version.as_deref().unwrap_or_default();
    text.parse().unwrap_or_default()
}

/// Keeps what is known up to date, and tells what changed. What cannot be `read` does not exist for the reader.
pub(crate) async fn keep<K, V>(
    api: Api<K>,
    config: Config,
    known: &Known<V>,
    read: impl Fn(K) -> Option<V>,
    changed: impl FnMut(&Key, Option<&V>, Option<&V>),
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    V: PartialEq,
{
    let mut keeper = Keeper::new(known, changed);
    follow(api, config, |event| {
        keeper.take(event, Resource::meta, &read);
    })
    .await;
}

/// The same from a watch that others share.
pub(crate) async fn keep_shared<K, V>(
    shared: &Shared<K>,
    known: &Known<V>,
    read: impl Fn(&K) -> Option<V>,
    changed: impl FnMut(&Key, Option<&V>, Option<&V>),
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    V: PartialEq,
{
    let mut keeper = Keeper::new(known, changed);
    shared
        .follow(|event| keeper.take(event, |object| object.meta(), |object| read(&object)))
        .await;
}

/// Takes events into what is known.
struct Keeper<'a, V, F> {
    known: &'a Known<V>,
    changed: F,
    /// What the list that is being read has had so far.
    seen: HashSet<Key>,
}

impl<'a, V, F> Keeper<'a, V, F>
where
    V: PartialEq,
    F: FnMut(&Key, Option<&V>, Option<&V>),
{
    fn new(known: &'a Known<V>, changed: F) -> Self {
        Self {
            known,
            changed,
            seen: HashSet::new(),
        }
    }

    fn take<T>(
        &mut self,
        event: Event<T>,
        metadata: impl Fn(&T) -> &ObjectMeta,
        read: impl Fn(T) -> Option<V>,
    ) {
        match event {
            Event::Init => self.seen.clear(),
            Event::InitApply(object) => {
                let (key, version) = place(metadata(&object));
                if let Some(value) = read(object) {
                    let change = self.known.put(&key, version, value, Source::List);
                    tell(&key, change, &mut self.changed);
                    self.seen.insert(key);
                }
            }
            Event::InitDone => {
                let seen = std::mem::take(&mut self.seen);
                for key in self.known.keys() {
                    if !seen.contains(&key) {
                        tell(&key, self.known.drop_unlisted(&key), &mut self.changed);
                    }
                }
                self.known.complete.send_replace(true);
            }
            Event::Apply(object) => {
                let (key, version) = place(metadata(&object));
                let change = match read(object) {
                    Some(value) => self.known.put(&key, version, value, Source::Watch),
                    None => self.known.remove(&key, version),
                };
                tell(&key, change, &mut self.changed);
            }
            Event::Delete(object) => {
                let (key, version) = place(metadata(&object));
                tell(&key, self.known.remove(&key, version), &mut self.changed);
            }
        }
    }
}

/// Where and when an object is.
fn place(metadata: &ObjectMeta) -> (Key, u64) {
    (Key::of(metadata), version(metadata))
}

fn tell<V>(
    key: &Key,
    change: Option<Change<V>>,
    changed: &mut impl FnMut(&Key, Option<&V>, Option<&V>),
) {
    if let Some((old, new)) = change {
        changed(key, old.as_deref(), new.as_deref());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Known<&'static str> {
        Known::grouped(|value| value.split('/').next().map(str::to_owned))
    }

    #[test]
    fn what_did_not_change_is_not_told() {
        let known = known();
        let key = Key::new("n", "a");
        assert!(known.put(&key, 1, "g/x", Source::Watch).is_some());
        assert!(known.put(&key, 2, "g/x", Source::Watch).is_none());
        assert!(known.put(&key, 3, "g/y", Source::Watch).is_some());
    }

    #[test]
    fn old_news_do_not_undo_what_is_known_but_a_list_does() {
        let known = known();
        let key = Key::new("n", "a");
        known.put(&key, 5, "g/new", Source::Watch);
        assert!(known.put(&key, 4, "g/old", Source::Watch).is_none());
        assert!(known.remove(&key, 4).is_none());
        assert_eq!(*known.get("n", "a").unwrap(), "g/new");
        assert!(known.put(&key, 4, "g/old", Source::List).is_some());
        assert!(known.remove(&key, 4).is_some());
        assert_eq!(known.get("n", "a"), None);
        assert_eq!(known.keys(), []);
    }

    #[test]
    fn an_answer_that_comes_after_the_news_of_the_end_does_not_bring_an_object_back() {
        let known = known();
        let metadata = |version: &str| ObjectMeta {
            name: Some("a".to_owned()),
            namespace: Some("n".to_owned()),
            resource_version: Some(version.to_owned()),
            ..ObjectMeta::default()
        };
        let key = Key::new("n", "a");
        known.note(&metadata("5"), "g/ours");
        assert_eq!(*known.get("n", "a").unwrap(), "g/ours");
        known.put(&key, 6, "g/theirs", Source::Watch);
        assert!(known.remove(&key, 8).is_some());
        known.note(&metadata("7"), "g/late");
        assert_eq!(known.get("n", "a"), None);
        known.note(&metadata("9"), "g/new");
        assert_eq!(*known.get("n", "a").unwrap(), "g/new");
    }

    #[test]
    fn groups_follow_their_members() {
        let known = known();
        let (a, b) = (Key::new("n", "a"), Key::new("m", "b"));
        known.put(&a, 1, "g/a", Source::Watch);
        known.put(&b, 1, "g/b", Source::Watch);
        let members = |group| {
            let values = known.group(group).into_iter();
            values.map(|value| *value).collect::<Vec<_>>()
        };
        assert_eq!(members("g"), ["g/b", "g/a"]);
        known.put(&a, 2, "h/a", Source::Watch);
        assert_eq!((members("g"), members("h")), (vec!["g/b"], vec!["h/a"]));
        known.forget(&b);
        assert_eq!(members("g"), Vec::<&str>::new());
        assert_eq!(known.state().groups.len(), 1);
    }
}
