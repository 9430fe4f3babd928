//! What watches tell, and what that means for the snapshot and for those who wait.

use std::{collections::HashSet, fmt::Debug, pin::pin};

use futures::{FutureExt as _, StreamExt as _, future::BoxFuture};
use k8s_openapi::{
    api::{
        core::v1::{Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod},
        policy::v1::PodDisruptionBudget,
        storage::v1::StorageClass,
    },
    serde::de::DeserializeOwned,
};
use kube::{
    Api, Client, Resource,
    runtime::{
        WatchStreamExt as _,
        watcher::{self, Config, Event},
    },
};
use tokio::sync::mpsc;

use crate::read::{Image, images};

/// How much news may wait to be taken. Whoever brings more waits, too.
const WAITING: usize = 1024;

/// An event of one of the kinds that matter.
#[expect(clippy::large_enum_variant, reason = "news are always in a box")]
pub(super) enum News {
    Node(Event<Node>),
    Pod(Event<Pod>),
    Claim(Event<PersistentVolumeClaim>),
    Volume(Event<PersistentVolume>),
    Class(Event<StorageClass>),
    Budget(Event<PodDisruptionBudget>),
    Namespace(Event<Namespace>),
    Image(Event<Image>),
}

/// How many kinds there are.
pub(super) const KINDS: usize = 8;

/// What there was of a kind before the list that is being read.
#[derive(Debug, Default)]
pub(super) struct Listing {
    known: HashSet<String>,
    seen: HashSet<String>,
    pub(super) is_complete: bool,
}

/// What to do with an object.
pub(super) enum Step<K> {
    Put(K),
    Remove(String),
}

impl Listing {
    /// Takes an event apart into what came and what went.
    pub(super) fn take<K>(&mut self, event: Event<K>, key: impl Fn(&K) -> String) -> Vec<Step<K>> {
        match event {
            Event::Init => {
                self.seen.clear();
                Vec::new()
            }
            Event::InitApply(object) => {
                let key = key(&object);
                self.seen.insert(key.clone());
                self.known.insert(key);
                vec![Step::Put(object)]
            }
            Event::InitDone => {
                let seen = std::mem::take(&mut self.seen);
                let gone = self
                    .known
                    .iter()
                    .filter(|key| !seen.contains(*key))
                    .cloned();
                let steps = gone.map(Step::Remove).collect();
                self.known = seen;
                self.is_complete = true;
                steps
            }
            Event::Apply(object) => {
                self.known.insert(key(&object));
                vec![Step::Put(object)]
            }
            Event::Delete(object) => {
                let key = key(&object);
                self.known.remove(&key);
                vec![Step::Remove(key)]
            }
        }
    }
}

/// Namespace and name, or only the name.
pub(super) fn key_of<K: Resource>(object: &K) -> String {
    let metadata = object.meta();
    let name = metadata.name.as_deref().unwrap_or_default();
    match metadata.namespace.as_deref() {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}

/// Watches all kinds. The work ends only if one of the watches does, which none should.
pub(super) fn watch_all(client: &Client) -> (mpsc::Receiver<Box<News>>, BoxFuture<'static, ()>) {
    let (sender, receiver) = mpsc::channel(WAITING);
    let running = "status.phase!=Succeeded,status.phase!=Failed";
    let plain = Config::default;
    let all = [
        watch(
            Api::all(client.clone()),
            plain(),
            sender.clone(),
            News::Node,
        ),
        watch(
            Api::all(client.clone()),
            plain().fields(running),
            sender.clone(),
            News::Pod,
        ),
        watch(
            Api::all(client.clone()),
            plain(),
            sender.clone(),
            News::Claim,
        ),
        watch(
            Api::all(client.clone()),
            plain(),
            sender.clone(),
            News::Volume,
        ),
        watch(
            Api::all(client.clone()),
            plain(),
            sender.clone(),
            News::Class,
        ),
        watch(
            Api::all(client.clone()),
            plain(),
            sender.clone(),
            News::Budget,
        ),
        watch(
            Api::all(client.clone()),
            plain(),
            sender.clone(),
            News::Namespace,
        ),
        watch(images(client), plain(), sender, News::Image),
    ];
    let work = async move {
        // Each in its own task, so that reading what they bring uses more than one processor.
        let mut tasks = tokio::task::JoinSet::new();
        for one in all {
            tasks.spawn(one);
        }
        tasks.join_next().await;
    };
    (receiver, work.boxed())
}

fn watch<K>(
    api: Api<K>,
    config: Config,
    sender: mpsc::Sender<Box<News>>,
    wrap: fn(Event<K>) -> News,
) -> BoxFuture<'static, ()>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    async move {
        let path = api.resource_url().to_owned();
        let mut events = pin!(watcher::watcher(api, config).default_backoff());
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    if sender.send(Box::new(wrap(event))).await.is_err() {
                        return;
                    }
                }
                Err(error) if is_expected(&error) => {
                    tracing::debug!(path, %error, "a watch begins anew");
                }
                Err(error) => tracing::warn!(path, %error, "a watch failed and is tried again"),
            }
        }
    }
    .boxed()
}

/// A history that was forgotten passes by itself.
fn is_expected(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchError(status) if status.code == 410)
}
