//! Follows the store and hands each change to the cache of its resource.
//!
//! The feed is the only writer of the caches, so they move through the store's history in its order. When the
//! store's connection breaks, it goes on from where it was; when that is forgotten meanwhile, it compares.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use futures::StreamExt as _;
use transom_store::{Batch, Entry, Range, Revision, Store, StoreError};

use super::{Cache, cached::Cached, resource::ResourceCache};
use crate::{
    registry::{CUSTOM_RESOURCE_PREFIX, Kind, Registry},
    storage::Codec,
};

/// How many entries are read from the store at once.
const PAGE: usize = 2_000;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A key with what it holds now, or with the revision that deleted it.
type Change = (Arc<str>, Result<Entry, u64>);

/// What connects a store with the caches.
#[derive(Debug)]
pub struct Feed {
    pub store: Arc<dyn Store>,
    pub cache: Arc<Cache>,
    pub registry: Arc<Registry>,
    pub codec: Arc<Codec>,
    pub observer: Arc<dyn Observer>,
}

/// Somebody who follows all changes, in order and at once.
pub trait Observer: std::fmt::Debug + Send + Sync {
    /// What is at a key now; `None` if it was deleted.
    fn changed(&self, kind: &Kind, key: &str, object: Option<&Cached>);
}

impl Feed {
    /// Fills the caches with what the store has.
    pub async fn load(&self) -> Result<(), StoreError> {
        let revision = self.store.revision().await?;
        // Definitions first: they say which resources the rest belongs to.
        let mut loaded = HashSet::new();
        let definitions = self.read(CUSTOM_RESOURCE_PREFIX, revision).await?;
        self.registry
            .define_all(definitions.iter().map(|entry| &entry.value[..]));
        for kind in self.stored_kinds() {
            let prefix = kind.prefix();
            if !loaded.insert(prefix.clone()) {
                continue;
            }
            let cache = self.cache.of(&self.registry.storage_kind(&kind));
            let entries = self.read(&prefix, revision).await?;
            let objects: Vec<Cached> = entries
                .iter()
                .filter_map(|entry| self.cached(&cache, &prefix, entry))
                .collect();
            for object in &objects {
                self.observer
                    .changed(cache.kind(), &object.key, Some(object));
            }
            cache.load(objects, revision.0);
        }
        self.cache.applied.send_replace(revision.0);
        Ok(())
    }

    /// All kinds of which there may be objects in the store.
    fn stored_kinds(&self) -> Vec<Arc<Kind>> {
        let kinds = self.registry.kinds();
        let served = kinds.iter().filter(|kind| !kind.ephemeral).cloned();
        served.chain(self.registry.hidden()).collect()
    }

    async fn read(&self, prefix: &str, at: Revision) -> Result<Vec<Entry>, StoreError> {
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let range = Range {
                prefix: prefix.to_owned(),
                after: entries.last().map(|entry| entry.key.to_string()),
                limit: Some(PAGE),
                at: (at.0 > 0).then_some(at),
            };
            let page = self.store.list(range).await?;
            entries.extend(page.entries);
            if !page.more {
                return Ok(entries);
            }
        }
    }

    /// Follows the store for ever. Dropping the future ends it.
    pub async fn run(&self) {
        let _end = End(&self.cache);
        let mut pause = FIRST_PAUSE;
        loop {
            let from = Revision(self.cache.revision());
            match self.follow(from, &mut pause).await {
                Err(StoreError::Compacted { .. }) => {
                    tracing::warn!(
                        revision = from.0,
                        "the store has forgotten where the cache was; comparing"
                    );
                    if let Err(error) = self.compare().await {
                        tracing::error!(%error, "could not compare the cache with the store");
                    }
                }
                Err(StoreError::Closed) => return,
                Err(error) => tracing::warn!(%error, "lost the store's changes; trying again"),
                Ok(()) => {}
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn follow(&self, from: Revision, pause: &mut Duration) -> Result<(), StoreError> {
        let mut changes = self.store.watch("/registry/", from).await?;
        while let Some(batch) = changes.next().await {
            self.take(batch?);
            *pause = FIRST_PAUSE;
        }
        Ok(())
    }

    /// Puts a batch into the caches.
    fn take(&self, batch: Batch) {
        let now = Instant::now();
        let mut by_resource: HashMap<String, Vec<Change>> = HashMap::new();
        for event in batch.events {
            let Some((prefix, _)) = split_key(&event.key) else {
                continue;
            };
            // A definition must be known before the objects that follow it in the same batch.
            if prefix == CUSTOM_RESOURCE_PREFIX {
                for (prefix, changes) in by_resource.drain() {
                    self.apply(&prefix, changes, now);
                }
                self.registry.define(
                    &event.key,
                    event.current.as_ref().map(|entry| &entry.value[..]),
                );
                self.fit_caches();
            }
            let change = event.current.ok_or(event.revision.0);
            by_resource
                .entry(prefix.to_owned())
                .or_default()
                .push((event.key, change));
        }
        for (prefix, changes) in by_resource {
            self.apply(&prefix, changes, now);
        }
        for cache in self.cache.all() {
            cache.advance(batch.revision.0);
        }
        self.cache.applied.send_replace(batch.revision.0);
    }

    fn apply(&self, prefix: &str, changes: Vec<Change>, now: Instant) {
        let Some(cache) = self.cache_at(prefix) else {
            tracing::debug!(prefix, "changes of a resource that is not served");
            return;
        };
        let changes: Vec<_> = changes
            .into_iter()
            .filter_map(|(key, change)| {
                let key: Arc<str> = key.strip_prefix(prefix)?.into();
                match change {
                    Ok(entry) => Some((key, Ok(self.cached(&cache, prefix, &entry)?))),
                    Err(revision) => Some((key, Err(revision))),
                }
            })
            .collect();
        self.tell(&cache, &changes);
        cache.apply(changes, now);
    }

    fn tell(&self, cache: &ResourceCache, changes: &[(Arc<str>, Result<Cached, u64>)]) {
        for (key, change) in changes {
            self.observer
                .changed(cache.kind(), key, change.as_ref().ok());
        }
    }

    /// Makes the caches of custom resources fit the definitions of now: those without one go, those of which no
    /// version is served have nobody who watches, and those whose selectable fields are others are made anew
    /// from what they hold.
    fn fit_caches(&self) {
        let kinds = self.registry.kinds();
        let hidden = self.registry.hidden();
        for cache in self
            .cache
            .all()
            .iter()
            .filter(|cache| cache.kind().custom.is_some())
        {
            let prefix = cache.kind().prefix();
            let is_same = |kind: &&Arc<Kind>| kind.prefix() == prefix;
            match kinds.iter().find(is_same) {
                None if hidden.iter().any(|kind| kind.prefix() == prefix) => cache.send_away(),
                None => self.cache.replace(&prefix, None),
                Some(kind) if !has_fields(cache.kind(), kind) => {
                    let revision = cache.revision();
                    let anew = ResourceCache::new(kind, revision);
                    let objects = cache
                        .items()
                        .iter()
                        .map(|object| object.seen_as(kind))
                        .collect();
                    anew.load(objects, revision);
                    self.cache.replace(&prefix, Some(Arc::new(anew)));
                }
                Some(_) => {}
            }
        }
    }

    fn cache_at(&self, prefix: &str) -> Option<Arc<ResourceCache>> {
        self.cache.at(prefix).or_else(|| {
            let kinds = self.stored_kinds();
            let kind = kinds.iter().find(|kind| kind.prefix() == prefix)?;
            Some(self.cache.of(&self.registry.storage_kind(kind)))
        })
    }

    /// One damaged object must not stop all others: it is named in the log and left out.
    fn cached(&self, cache: &ResourceCache, prefix: &str, entry: &Entry) -> Option<Cached> {
        let key = entry.key.strip_prefix(prefix)?;
        let read = self
            .codec
            .open(&entry.key, &entry.value)
            .map_err(|error| error.to_string())
            .and_then(|plain| {
                Cached::read(cache.kind(), key, &plain, entry.modified.0)
                    .map_err(|error| error.to_string())
            });
        match read {
            Ok(object) => Some(object),
            Err(error) => {
                tracing::error!(key = %entry.key, error, "an object cannot be read and is not served");
                None
            }
        }
    }

    /// Makes the caches equal to the store by comparing all keys.
    async fn compare(&self) -> Result<(), StoreError> {
        let revision = self.store.revision().await?;
        let definitions = self.read(CUSTOM_RESOURCE_PREFIX, revision).await?;
        self.registry
            .define_all(definitions.iter().map(|entry| &entry.value[..]));
        self.fit_caches();
        let mut compared = HashSet::new();
        for kind in self.stored_kinds() {
            let prefix = kind.prefix();
            if !compared.insert(prefix.clone()) {
                continue;
            }
            let cache = self.cache.of(&self.registry.storage_kind(&kind));
            let entries = self.read(&prefix, revision).await?;
            let known: HashMap<Arc<str>, u64> = cache.revisions().into_iter().collect();
            let mut gone: HashSet<Arc<str>> = known.keys().cloned().collect();
            let mut changes = Vec::new();
            for entry in &entries {
                let Some(key) = entry.key.strip_prefix(&prefix) else {
                    continue;
                };
                gone.remove(key);
                if known.get(key) != Some(&entry.modified.0)
                    && let Some(object) = self.cached(&cache, &prefix, entry)
                {
                    changes.push((Arc::clone(&object.key), Ok(object)));
                }
            }
            changes.extend(gone.into_iter().map(|key| (key, Err(revision.0))));
            changes.sort_by_key(|(_, change)| match change {
                Ok(object) => object.revision,
                Err(revision) => *revision,
            });
            self.tell(&cache, &changes);
            cache.leap(changes, revision.0, Instant::now());
        }
        self.cache.applied.send_replace(revision.0);
        Ok(())
    }
}

/// Says at the end of the feed that there will be nothing more, however it ends.
struct End<'a>(&'a Cache);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.is_starved.store(true, Ordering::Release);
    }
}

/// Whether a cache of one version of a kind has the selectable fields of another.
fn has_fields(cached: &Kind, wanted: &Kind) -> bool {
    let paths = |kind: &Kind| -> Vec<Vec<String>> {
        let fields = kind.fields.iter();
        fields.map(|field| field.path.clone()).collect()
    };
    paths(cached) == paths(wanted)
}

/// `/registry/<group>/<plural>/` and what follows.
fn split_key(key: &str) -> Option<(&str, &str)> {
    let mut slashes = key.match_indices('/').skip(3);
    let (end, _) = slashes.next()?;
    Some(key.split_at(end + 1))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use transom_store::{Memory, Transaction, Write};

    use super::*;
    use crate::{
        cache::{Selection, Start},
        guard::Guard,
    };

    const MAPS: &str = "/registry/core/configmaps/default/";
    const WIDGETS: &str = "/registry/example.org/widgets/default/";

    async fn write(store: &Memory, key: String, value: Option<Value>) {
        let write = match value {
            Some(value) => Write::Put {
                key,
                value: value.to_string().into(),
                lease: None,
            },
            None => Write::Delete { key },
        };
        let transaction = Transaction {
            conditions: Vec::new(),
            writes: vec![write],
        };
        store.commit(transaction).await.unwrap();
    }

    fn named(name: &str) -> Value {
        json!({"metadata": {"name": name, "namespace": "default"}})
    }

    fn definition() -> Value {
        let names = json!({"plural": "widgets", "kind": "Widget"});
        json!({
            "metadata": {"name": "widgets.example.org"},
            "spec": {
                "group": "example.org", "scope": "Namespaced", "names": names,
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }],
            },
            "status": {
                "acceptedNames": names,
                "conditions": [{"type": "Established", "status": "True"}],
            },
        })
    }

    #[tokio::test]
    async fn after_a_gap_definitions_and_objects_are_those_of_the_store() {
        let store = Arc::new(Memory::new());
        let feed = Feed {
            store: Arc::clone(&store) as Arc<dyn Store>,
            cache: Arc::default(),
            registry: Arc::new(Registry::builtin()),
            codec: Arc::default(),
            observer: Arc::new(Guard::default()),
        };
        for name in ["goes", "stays"] {
            write(&store, format!("{MAPS}{name}"), Some(named(name))).await;
        }
        feed.load().await.unwrap();
        let before = feed.cache.revision();
        let kinds = feed.registry.kinds();
        let maps = feed
            .cache
            .of(kinds.resource("", "v1", "configmaps").unwrap());
        let mut watcher = maps
            .watch(Selection::default(), Start::After(before))
            .unwrap();

        write(&store, format!("{MAPS}goes"), None).await;
        write(&store, format!("{MAPS}short"), Some(named("short"))).await;
        let between = store.revision().await.unwrap().0;
        write(&store, format!("{MAPS}short"), None).await;
        write(&store, format!("{MAPS}comes"), Some(named("comes"))).await;
        let crd = format!("{CUSTOM_RESOURCE_PREFIX}widgets.example.org");
        write(&store, crd, Some(definition())).await;
        write(&store, format!("{WIDGETS}w"), Some(named("w"))).await;
        feed.compare().await.unwrap();

        // Who watched sees the difference; who saw something between does not miss that it is gone.
        let seen: Vec<String> = std::iter::from_fn(|| watcher.ready().unwrap())
            .map(|sight| format!("{} {}", sight.kind.as_str(), sight.object.name()))
            .collect();
        assert_eq!(seen, ["ADDED comes", "DELETED goes"]);
        assert!(
            maps.watch(Selection::default(), Start::After(between))
                .is_err()
        );
        let now = store.revision().await.unwrap().0;
        assert!(maps.watch(Selection::default(), Start::After(now)).is_ok());
        let kinds = feed.registry.kinds();
        let widgets = kinds.resource("example.org", "v1", "widgets").unwrap();
        assert!(feed.cache.of(widgets).get("default/w").is_some());
    }
}
