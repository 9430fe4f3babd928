//! Removes pods that nobody else would: of nodes that are gone or off, never placed, or ended and too many.
//!
//! A pod is called orphaned only after its node was missing for a while and the API itself said so.

mod decide;

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::{
    api::core::v1::{Node, Pod},
    jiff::Timestamp,
};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
    core::PartialObjectMeta,
    runtime::watcher::Config,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::decide::{Cause, NodeFacts, PodFacts, cause};
use crate::{
    fault::{Fault, ask, fetch, found},
    known::{Key, Known, keep, keep_shared},
    queue::{Next, Queue},
    shared::Shared,
};

const AT_ONCE: usize = 8;
/// How long a node may be missing until its pods are orphans: it may be registering anew.
const QUARANTINE: Duration = Duration::from_secs(40);
/// How many pods that ended are kept.
const ENDED: usize = 12_500;
/// How often too many of them are removed.
const ROUND: Duration = Duration::from_secs(20);
/// How many are removed in one go.
const BATCH: usize = 500;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Item {
    Pod(Key),
    Node(String),
    Ended,
}

struct World {
    shared_pods: Shared<Pod>,
    client: Client,
    /// In groups by their node.
    pods: Known<PodFacts>,
    nodes: Known<NodeFacts>,
    /// Pods that ended, the oldest first.
    ended: Mutex<BTreeSet<(Option<Timestamp>, Key)>>,
    queue: Queue<Item>,
}

pub(crate) async fn run(client: Client, pods: Shared<Pod>, stop: CancellationToken) {
    let world = World {
        client,
        shared_pods: pods,
        pods: Known::grouped(|pod| pod.node.clone()),
        nodes: Known::new(),
        ended: Mutex::default(),
        queue: Queue::new(),
    };
    let complete = async {
        tokio::join!(world.pods.complete(), world.nodes.complete());
    };
    let work = async {
        if stop.run_until_cancelled(complete).await.is_some() {
            let look = |item| world.look(item);
            world.queue.drive("pods", AT_ONCE, &stop, look).await;
        }
    };
    tokio::select! {
        () = work => {}
        () = world.news() => {}
    }
}

impl World {
    fn ended(&self) -> MutexGuard<'_, BTreeSet<(Option<Timestamp>, Key)>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn news(&self) {
        let pods = keep_shared(
            &self.shared_pods,
            &self.pods,
            |pod| Some(PodFacts::read(pod)),
            |key, old, new| self.pod_changed(key, old, new),
        );
        let nodes = keep(
            Api::<Node>::all(self.client.clone()),
            Config::default(),
            &self.nodes,
            |node| Some(NodeFacts::read(&node)),
            |key, _, new| match new {
                Some(node) if node.is_out_of_service => {
                    for pod in self.pods.group(&key.name) {
                        let key = Key::new(&pod.namespace, &pod.name);
                        self.queue.add(Item::Pod(key));
                    }
                }
                Some(_) => {}
                None => self
                    .queue
                    .add_after(Item::Node(key.name.clone()), QUARANTINE),
            },
        );
        tokio::join!(pods, nodes);
    }

    fn pod_changed(&self, key: &Key, old: Option<&PodFacts>, new: Option<&PodFacts>) {
        let place = |pod: &PodFacts| (pod.created, key.clone());
        if let Some(old) = old.filter(|pod| pod.has_ended) {
            self.ended().remove(&place(old));
        }
        let Some(pod) = new else {
            return;
        };
        if pod.has_ended {
            let mut ended = self.ended();
            ended.insert(place(pod));
            if ended.len() > ENDED {
                self.queue.add_after(Item::Ended, ROUND);
            }
        }
        match (&pod.node, old) {
            (Some(node), None) if self.nodes.get("", node).is_none() => {
                self.queue.add_after(Item::Node(node.clone()), QUARANTINE);
            }
            _ if pod.is_going => self.queue.add(Item::Pod(key.clone())),
            (Some(node), Some(_)) if self.nodes.get("", node).is_none() => {
                self.queue.add_after(Item::Node(node.clone()), QUARANTINE);
            }
            _ => {}
        }
    }

    async fn look(&self, item: Item) -> Result<Next, Fault> {
        match item {
            Item::Pod(key) => self.look_at_pod(&key).await?,
            Item::Node(name) => self.look_at_node(&name).await?,
            Item::Ended => self.thin_out().await?,
        }
        Ok(Next::Done)
    }

    async fn look_at_pod(&self, key: &Key) -> Result<(), Fault> {
        let Some(pod) = self.pods.get(&key.namespace, &key.name) else {
            return Ok(());
        };
        let node = pod.node.as_ref().and_then(|name| self.nodes.get("", name));
        match cause(&pod, node.as_deref()) {
            // The quarantine of its node tells.
            None | Some(Cause::Orphaned) => Ok(()),
            Some(cause) => self.remove(&pod, cause).await,
        }
    }

    /// A node has been missing for a while: if it does not exist, its pods go.
    async fn look_at_node(&self, name: &str) -> Result<(), Fault> {
        let pods = self.pods.group(name);
        if pods.is_empty() || self.nodes.get("", name).is_some() {
            return Ok(());
        }
        let nodes: Api<PartialObjectMeta<Node>> = Api::all(self.client.clone());
        if found(fetch(nodes.get_metadata(name)).await)?.is_some() {
            return Ok(());
        }
        for pod in pods {
            self.remove(&pod, Cause::Orphaned).await?;
        }
        Ok(())
    }

    /// Removes the oldest of the pods that ended until few enough are left.
    async fn thin_out(&self) -> Result<(), Fault> {
        let oldest: Vec<Key> = {
            let ended = self.ended();
            let surplus = ended.len().saturating_sub(ENDED).min(BATCH);
            let oldest = ended.iter().take(surplus);
            oldest.map(|(_, key)| key.clone()).collect()
        };
        for key in oldest {
            if let Some(pod) = self.pods.get(&key.namespace, &key.name) {
                self.delete(&pod).await?;
            }
        }
        if self.ended().len() > ENDED {
            self.queue.add_after(Item::Ended, ROUND);
        }
        Ok(())
    }

    /// Says that a pod failed, and why, and removes it at once.
    async fn remove(&self, pod: &PodFacts, cause: Cause) -> Result<(), Fault> {
        tracing::info!(
            namespace = pod.namespace,
            name = pod.name,
            ?cause,
            "a pod is collected"
        );
        if !pod.has_ended {
            let pods: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace);
            let patch = Patch::Strategic(last_words(pod, cause));
            let parameters = PatchParams::default();
            unless_replaced(ask(pods.patch_status(&pod.name, &parameters, &patch)).await)?;
        }
        self.delete(pod).await
    }

    async fn delete(&self, pod: &PodFacts) -> Result<(), Fault> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace);
        let parameters = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions {
                uid: Some(pod.uid.clone()),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        unless_replaced(ask(pods.delete(&pod.name, &parameters)).await)
    }
}

/// That a pod is gone, or another has its name, is as good.
fn unless_replaced<T>(answer: Result<T, Fault>) -> Result<(), Fault> {
    match answer {
        Err(fault) if !fault.is_absent() && !fault.is_conflict() => Err(fault),
        _ => Ok(()),
    }
}

fn last_words(pod: &PodFacts, cause: Cause) -> Value {
    let mut status = json!({"phase": "Failed"});
    if cause == Cause::Orphaned {
        status["conditions"] = json!([{
            "type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists",
            "lastTransitionTime": Timestamp::now(),
        }]);
    }
    json!({"metadata": {"uid": pod.uid}, "status": status})
}
