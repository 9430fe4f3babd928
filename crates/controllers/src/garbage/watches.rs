//! One watch for each kind that is served, begun and ended as kinds come and go.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::runtime::watcher::{Config, Event};
use tokio::task::{AbortHandle, JoinSet};

use super::{
    collector::Collector,
    graph::{Node, Uid},
};
use crate::{
    follow::follow,
    resources::{Deletable, Metadata, discover},
    shared::{Shared, map},
};

/// How often the kinds are asked for though no definition changed.
const REDISCOVERY: Duration = Duration::from_secs(30);
/// How soon they are asked for again when that failed.
const RETRY: Duration = Duration::from_secs(2);

/// Keeps the watches. It returns only if one of them ended, which none should.
pub(super) async fn keep(collector: &Arc<Collector>, pods: &Shared<Pod>) {
    let mut tasks = JoinSet::new();
    let mut watched: HashMap<Arc<Deletable>, AbortHandle> = HashMap::new();
    loop {
        let pause = match discover(&collector.client).await {
            Ok(found) => {
                adjust(collector, pods, found, &mut tasks, &mut watched);
                REDISCOVERY
            }
            Err(fault) => {
                tracing::warn!(%fault, "the kinds of the API could not be found");
                RETRY
            }
        };
        let wake = tokio::time::sleep(pause);
        tokio::pin!(wake);
        loop {
            tokio::select! {
                () = &mut wake => break,
                () = collector.definitions.notified() => break,
                Some(ended) = tasks.join_next() => {
                    if !ended.is_err_and(|error| error.is_cancelled()) {
                        return;
                    }
                }
            }
        }
    }
}

/// Begins to watch what is new and forgets what is not served any more.
fn adjust(
    collector: &Arc<Collector>,
    pods: &Shared<Pod>,
    found: Vec<Deletable>,
    tasks: &mut JoinSet<()>,
    watched: &mut HashMap<Arc<Deletable>, AbortHandle>,
) {
    // Nothing owns events and events own nothing, and there are many of them.
    let wanted: HashSet<Arc<Deletable>> = found
        .into_iter()
        .filter(|resource| resource.watchable && !resource.is_event())
        .map(Arc::new)
        .collect();
    let new: Vec<Arc<Deletable>> = wanted
        .iter()
        .filter(|resource| !watched.contains_key(*resource))
        .cloned()
        .collect();
    collector.set_kinds(&wanted, &new);
    for resource in new {
        let task = watch(Arc::clone(collector), pods.clone(), Arc::clone(&resource));
        watched.insert(resource, tasks.spawn(task));
    }
    watched.retain(|resource, task| {
        let stays = wanted.contains(resource);
        if !stays {
            task.abort();
            collector.forget(resource);
        }
        stays
    });
}

async fn watch(collector: Arc<Collector>, pods: Shared<Pod>, resource: Arc<Deletable>) {
    let mut seen: HashSet<Uid> = HashSet::new();
    let is_definition = resource.api.group == "apiextensions.k8s.io";
    let mut take = |event: Event<ObjectMeta>| {
        // Also after the first list: a kind may have been defined since the kinds were asked for.
        if is_definition && matches!(event, Event::Apply(_) | Event::Delete(_) | Event::InitDone) {
            collector.definitions.notify_one();
        }
        match event {
            Event::Init => seen.clear(),
            Event::InitApply(metadata) => {
                if let Some(node) = Node::read(&resource, metadata) {
                    seen.insert(Arc::clone(&node.uid));
                    collector.put(node);
                }
            }
            Event::InitDone => collector.seen_all(&resource, &std::mem::take(&mut seen)),
            Event::Apply(metadata) => {
                if let Some(node) = Node::read(&resource, metadata) {
                    collector.put(node);
                }
            }
            Event::Delete(metadata) => {
                if let Some(uid) = metadata.uid {
                    collector.remove(&resource, &uid);
                }
            }
        }
    };
    if resource.is_pod() {
        pods.follow(|event| take(map(event, |pod| pod.metadata.clone())))
            .await;
    } else {
        let objects = resource.objects::<Metadata>(&collector.client, None);
        follow(objects, Config::default(), |event| {
            take(map(event, |object| object.metadata));
        })
        .await;
    }
}
