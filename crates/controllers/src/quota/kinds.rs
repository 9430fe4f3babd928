//! How many objects there are of the kinds that some quota limits, and of no others.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{StreamExt as _, stream::FuturesUnordered};
use k8s_openapi::api::core::v1::ResourceQuota;
use kube::{Client, runtime::watcher::Config};
use tokio::sync::Notify;

use super::count::{Counted, counted};
use crate::{
    known::{Known, keep},
    resources::{Deletable, Metadata, discover},
};

/// How soon a kind that is not served, or could not be asked for, is looked for again.
const LATER: Duration = Duration::from_secs(30);

type Name = (String, String);

pub(super) struct Kinds {
    client: Client,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    wanted: BTreeSet<Name>,
    known: BTreeMap<Name, Arc<Known<()>>>,
}

impl Kinds {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kinds that a quota limits are counted from now on.
    pub(super) fn want(&self, quota: &ResourceQuota) {
        let hard = quota
            .spec
            .iter()
            .flat_map(|spec| spec.hard.iter().flatten());
        for (resource, _) in hard {
            if let Counted::Number { plural, group } = counted(resource)
                && self.state().wanted.insert((plural, group))
            {
                self.changed.notify_one();
            }
        }
    }

    /// How many there are in a namespace; `None` if that is not known.
    pub(super) fn number(&self, plural: &str, group: &str, namespace: &str) -> Option<usize> {
        let name = (plural.to_owned(), group.to_owned());
        let known = self.state().known.get(&name).cloned()?;
        known
            .is_complete()
            .then(|| known.find(namespace, |()| true).len())
    }

    /// Follows what is wanted, and tells in which namespace something changed.
    pub(super) async fn follow(&self, changed: impl Fn(&str)) {
        let mut watches = FuturesUnordered::new();
        loop {
            let missing = self.missing();
            if !missing.is_empty() {
                match discover(&self.client).await {
                    Ok(found) => {
                        for resource in found {
                            let name = (resource.api.plural.clone(), resource.api.group.clone());
                            if missing.contains(&name) && resource.watchable {
                                let known = Arc::new(Known::new());
                                self.state().known.insert(name, Arc::clone(&known));
                                watches.push(self.count(resource, known, &changed));
                            }
                        }
                    }
                    Err(fault) => {
                        tracing::warn!(%fault, "the kinds of the API could not be found");
                    }
                }
            }
            tokio::select! {
                () = self.changed.notified() => {}
                () = tokio::time::sleep(LATER), if !self.missing().is_empty() => {}
                Some(()) = watches.next() => return,
            }
        }
    }

    fn missing(&self) -> BTreeSet<Name> {
        let state = self.state();
        let wanted = state.wanted.iter();
        wanted
            .filter(|name| !state.known.contains_key(*name))
            .cloned()
            .collect()
    }

    async fn count(&self, resource: Deletable, known: Arc<Known<()>>, changed: &impl Fn(&str)) {
        let objects = resource.objects::<Metadata>(&self.client, None);
        keep(
            objects,
            Config::default(),
            &known,
            |_| Some(()),
            |key, _, _| changed(&key.namespace),
        )
        .await;
    }
}
