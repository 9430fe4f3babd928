//! The pods of this node: who is here, who comes, who goes. Each has a worker of its own.

mod act;
mod admission;
mod back_off;
mod checkpoint;
mod conditions;
mod decide;
mod last_words;
mod memory;
mod notices;
mod phase;
mod resize;
mod restart;
mod sources;
mod static_pods;
mod status;
mod statuses;
#[cfg(test)]
mod tests;
mod view;
mod worker;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use k8s_openapi::api::core::v1::Pod;
use tokio::{sync::watch, task::JoinHandle};
use transom_runtime::ContainerState;

pub(crate) use act::pod_addresses;
pub(crate) use back_off::Pause;
pub(crate) use memory::{FailedPull, Memory, Verdict};
pub(crate) use resize::Room;
pub(crate) use sources::run;
pub(crate) use static_pods::is_own;
pub(crate) use status::{IMAGE_REFERENCE, go_duration};
pub(crate) use statuses::Statuses;
pub(crate) use view::{Kind, Place, View, find, full_name};

use self::worker::{Reins, Wish, Worker};
use crate::site::Site;

struct Handle {
    wish: watch::Sender<Wish>,
    reins: Reins,
    task: JoinHandle<()>,
}

/// All pods that have a worker, by uid.
pub(crate) struct Pods {
    site: Arc<Site>,
    workers: Mutex<BTreeMap<String, Handle>>,
}

impl Drop for Pods {
    fn drop(&mut self) {
        for handle in self.workers().values() {
            handle.task.abort();
        }
    }
}

impl Pods {
    pub(crate) fn new(site: Arc<Site>) -> Self {
        Self {
            site,
            workers: Mutex::default(),
        }
    }

    fn workers(&self) -> MutexGuard<'_, BTreeMap<String, Handle>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pods that have a worker, as they are wanted.
    pub(crate) fn list(&self) -> Vec<Arc<Pod>> {
        let workers = self.workers();
        workers
            .values()
            .map(|handle| Arc::clone(&handle.wish.borrow().pod))
            .collect()
    }

    pub(crate) fn find(&self, namespace: &str, name: &str) -> Option<Arc<Pod>> {
        let is_meant = |pod: &Arc<Pod>| {
            pod.metadata.name.as_deref() == Some(name)
                && pod.metadata.namespace.as_deref() == Some(namespace)
        };
        let mut found: Vec<_> = self.list().into_iter().filter(is_meant).collect();
        // One that is on its way out may share its name with one that comes.
        found.sort_by_key(|pod| pod.metadata.deletion_timestamp.is_some());
        found.into_iter().next()
    }

    /// A pod is wanted, or wanted otherwise. `judge` is asked about new ones only.
    fn want(self: &Arc<Self>, wish: Wish, judge: impl FnOnce(&[Arc<Pod>]) -> Option<Verdict>) {
        let Some(uid) = wish.pod.metadata.uid.clone() else {
            return;
        };
        let others = self.list();
        let mut workers = self.workers();
        if let Some(handle) = workers.get(&uid) {
            handle.wish.send_replace(wish);
            return;
        }
        let verdict = judge(&others);
        if let Some(verdict) = &verdict {
            let about = crate::events::about_pod(&wish.pod);
            self.site
                .events
                .warning(about, "FailedAdmission", verdict.message.clone());
        }
        let (sender, receiver) = watch::channel(wish);
        let worker = Worker::new(Arc::clone(&self.site), &uid, receiver, verdict);
        let reins = worker.reins();
        let (pods, ended) = (Arc::downgrade(self), uid.clone());
        let task = tokio::spawn(async move {
            worker.run().await;
            if let Some(pods) = pods.upgrade() {
                pods.workers().remove(&ended);
            }
        });
        let handle = Handle {
            wish: sender,
            reins,
            task,
        };
        workers.insert(uid, handle);
    }

    /// Has a pod end though nobody deleted it; tells whether that is news to it.
    pub(crate) fn evict(&self, uid: &str, verdict: Verdict) -> bool {
        let workers = self.workers();
        workers
            .get(uid)
            .is_some_and(|handle| handle.reins.end(verdict))
    }

    /// Whether something of a pod still runs here.
    pub(crate) fn is_running(&self, uid: &str) -> bool {
        let sandboxes = self.site.observer.sandboxes(uid);
        let mut containers = sandboxes.iter().flat_map(|one| &one.containers);
        containers.any(|one| matches!(one.state, ContainerState::Running { .. }))
    }

    /// The object of a pod is gone: nothing is told any more, and what runs is ended.
    fn remove(&self, uid: &str) {
        if let Some(handle) = self.workers().get(uid) {
            handle.wish.send_if_modified(|wish| {
                let changed = !wish.removed;
                wish.removed = true;
                changed
            });
        }
        self.site.statuses.forget(uid);
    }
}
