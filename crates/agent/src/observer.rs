//! What the runtime has, kept for all who ask: one list serves every pod.
//!
//! Events are only hints. The runtime is listed after each, and from time to time without any.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::{Notify, broadcast, watch};
use tokio_util::sync::CancellationToken;
use transom_runtime::{Container, Pod, Runtime, RuntimeError};

/// How long it may take until something is noticed that no event told of.
const PERIOD: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_secs(1);
/// How long a list may take.
const LIST: Duration = Duration::from_mins(1);

/// The sandboxes of one pod, the newest first.
pub(crate) type Sandboxes = Arc<Vec<Pod>>;

#[derive(Debug)]
pub(crate) struct Observer {
    runtime: Arc<dyn Runtime>,
    pods: Mutex<HashMap<String, watch::Sender<Sandboxes>>>,
    wanted: Notify,
    begun: Mutex<u64>,
    /// How many lists there were, and why the last one failed if it did.
    done: watch::Sender<(u64, Option<String>)>,
}

impl Observer {
    pub(crate) fn new(runtime: Arc<dyn Runtime>) -> Self {
        Self {
            runtime,
            pods: Mutex::default(),
            wanted: Notify::new(),
            begun: Mutex::default(),
            done: watch::Sender::new((0, None)),
        }
    }

    fn pods(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<Sandboxes>>> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows one pod. What it has now is there at once, if the runtime was ever listed.
    pub(crate) fn subscribe(&self, uid: &str) -> watch::Receiver<Sandboxes> {
        self.pods().entry(uid.to_owned()).or_default().subscribe()
    }

    /// The uids of all pods the runtime has.
    pub(crate) fn uids(&self) -> Vec<String> {
        let pods = self.pods();
        let there = pods.iter().filter(|(_, pod)| !pod.borrow().is_empty());
        there.map(|(uid, _)| uid.clone()).collect()
    }

    pub(crate) fn sandboxes(&self, uid: &str) -> Sandboxes {
        self.pods()
            .get(uid)
            .map(|pod| Arc::clone(&pod.borrow()))
            .unwrap_or_default()
    }

    /// Why the runtime cannot be listed; `None` while all is well.
    pub(crate) fn trouble(&self) -> Option<String> {
        let done = self.done.borrow();
        match &*done {
            (0, None) => Some("container runtime is not listed yet".to_owned()),
            (_, trouble) => trouble.clone(),
        }
    }

    /// Changes with every list.
    pub(crate) fn lists(&self) -> watch::Receiver<(u64, Option<String>)> {
        self.done.subscribe()
    }

    /// Shows every container the runtime has.
    pub(crate) fn each_container(&self, mut show: impl FnMut(&Container)) {
        for pod in self.pods().values() {
            let sandboxes = pod.borrow();
            sandboxes
                .iter()
                .flat_map(|one| &one.containers)
                .for_each(&mut show);
        }
    }

    /// Returns after a list that began later than this call. Fails if the runtime does.
    pub(crate) async fn fresh(&self) -> Result<(), String> {
        let target = *self.begun.lock().unwrap_or_else(PoisonError::into_inner) + 1;
        let mut done = self.done.subscribe();
        self.wanted.notify_one();
        let listed = done.wait_for(|(number, _)| *number >= target);
        match tokio::time::timeout(LIST, listed).await {
            Ok(Ok(done)) => done.1.clone().map_or(Ok(()), Err),
            Ok(Err(_)) => Err("nobody lists the runtime any more".to_owned()),
            Err(_) => Err("the runtime was not listed in time".to_owned()),
        }
    }

    pub(crate) async fn run(&self, stop: CancellationToken) {
        let mut events = self.runtime.events();
        while !stop.is_cancelled() {
            let failed = self.list().await;
            let pause = if failed { RETRY } else { PERIOD };
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.wanted.notified(), if !failed => {}
                event = events.recv(), if !failed => {
                    if let Err(broadcast::error::RecvError::Closed) = event {
                        events = self.runtime.events();
                        tokio::time::sleep(RETRY).await;
                    }
                    while let Ok(_) | Err(broadcast::error::TryRecvError::Lagged(_)) = events.try_recv() {}
                }
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Lists once and tells whom it concerns; returns whether that failed.
    async fn list(&self) -> bool {
        let number = {
            let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
            *begun += 1;
            *begun
        };
        let listed = match tokio::time::timeout(LIST, self.runtime.pods()).await {
            Ok(listed) => listed,
            Err(_) => Err(RuntimeError::Other("the list took too long".to_owned())),
        };
        let trouble = match listed {
            Ok(pods) => {
                self.spread(pods);
                None
            }
            Err(error) => {
                tracing::warn!(%error, "the runtime cannot be listed");
                Some(error.to_string())
            }
        };
        let failed = trouble.is_some();
        self.done.send_replace((number, trouble));
        failed
    }

    fn spread(&self, pods: Vec<Pod>) {
        let mut by_uid: BTreeMap<String, Vec<Pod>> = BTreeMap::new();
        for pod in pods {
            by_uid.entry(pod.uid.clone()).or_default().push(pod);
        }
        let mut known = self.pods();
        for uid in by_uid.keys() {
            known.entry(uid.clone()).or_default();
        }
        known.retain(|uid, sender| {
            let mut now = by_uid.remove(uid).unwrap_or_default();
            now.sort_by_key(|pod| std::cmp::Reverse(pod.attempt));
            let gone = now.is_empty();
            sender.send_if_modified(|before| {
                let changed = **before != now;
                if changed {
                    *before = Arc::new(now);
                }
                changed
            });
            !gone || sender.receiver_count() > 0
        });
    }
}
