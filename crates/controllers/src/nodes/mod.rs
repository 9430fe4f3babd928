//! The life of nodes: silent ones become unknown, taints follow their state, and taints drive pods away.
//!
//! A lease that is renewed costs one note of the time. Nothing is written but changes, and no event has all nodes
//! looked at, except that the last well node falls or the first one recovers.

mod act;
mod eviction;
mod facts;
mod health;
mod zones;

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::{
    api::{
        coordination::v1::Lease,
        core::v1::{Node, Pod},
    },
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{Api, Client, runtime::watcher::Config};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::{
    eviction::Verdict,
    facts::{NodeFacts, PodFacts},
    health::Eviction,
    zones::Zones,
};
use crate::{
    announce::{Announcer, core},
    fault::Fault,
    known::{Key, Known, keep, keep_shared},
    queue::{Next, Queue},
    shared::Shared,
};

const AT_ONCE: usize = 16;

/// How long nodes may be silent, and how fast those are emptied that are silent for longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    pub silence: Duration,
    /// For one that has never said anything.
    pub first_silence: Duration,
    /// Between one node and the next of a zone.
    pub between_nodes: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            silence: Duration::from_secs(50),
            first_silence: Duration::from_mins(1),
            between_nodes: Duration::from_secs(10),
        }
    }
}

const LEASES: &str = "kube-node-lease";

struct World {
    shared_pods: Shared<Pod>,
    client: Client,
    patience: Patience,
    nodes: Known<NodeFacts>,
    leases: Known<Option<MicroTime>>,
    /// In groups by their node.
    pods: Known<PodFacts>,
    state: Mutex<State>,
    of_nodes: Queue<String>,
    of_pods: Queue<Key>,
    node_events: Announcer,
    pod_events: Announcer,
}

struct State {
    signs: HashMap<String, Sign>,
    zones: Zones,
    /// Since when taints want pods away that may stay for a while, by uid.
    leaving: HashMap<String, Instant>,
}

/// What was heard of a node.
#[derive(Clone, Copy, Debug)]
struct Sign {
    heard: Instant,
    /// It fell, and its pods are known not to be ready.
    is_told: bool,
}

pub(crate) async fn run(
    client: Client,
    pods: Shared<Pod>,
    patience: Patience,
    stop: CancellationToken,
) {
    let world = World {
        shared_pods: pods,
        nodes: Known::new(),
        leases: Known::new(),
        pods: Known::grouped(|pod| Some(pod.node.clone())),
        state: Mutex::new(State {
            signs: HashMap::new(),
            zones: Zones::new(patience.between_nodes),
            leaving: HashMap::new(),
        }),
        patience,
        of_nodes: Queue::new(),
        of_pods: Queue::new(),
        node_events: Announcer::new(client.clone(), "node-controller"),
        pod_events: Announcer::new(client.clone(), "taint-eviction-controller"),
        client,
    };
    let work = async {
        let complete = async {
            tokio::join!(
                world.nodes.complete(),
                world.leases.complete(),
                world.pods.complete(),
            );
        };
        if stop.run_until_cancelled(complete).await.is_some() {
            let look = |name| world.look(name);
            let nodes = world.of_nodes.drive("nodes", AT_ONCE, &stop, look);
            let judge = |key| world.judge(key);
            let pods = world.of_pods.drive("evictions", AT_ONCE, &stop, judge);
            tokio::join!(nodes, pods);
        }
    };
    tokio::select! {
        () = work => {}
        () = world.news() => {}
    }
}

impl World {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn news(&self) {
        let nodes = keep(
            Api::<Node>::all(self.client.clone()),
            Config::default(),
            &self.nodes,
            |node| Some(NodeFacts::read(&node)),
            |key, old, new| self.node_changed(&key.name, old, new),
        );
        let leases = keep(
            Api::<Lease>::namespaced(self.client.clone(), LEASES),
            Config::default(),
            &self.leases,
            |lease| Some(lease.spec.and_then(|spec| spec.renew_time)),
            |key, _, new| {
                if new.is_some() {
                    self.hear(&key.name);
                }
            },
        );
        let pods = keep_shared(
            &self.shared_pods,
            &self.pods,
            PodFacts::read,
            |key, old, new| match (old, new) {
                (Some(old), None) => {
                    self.state().leaving.remove(&old.uid);
                }
                _ => self.of_pods.add(key.clone()),
            },
        );
        tokio::join!(nodes, leases, pods);
    }

    /// A node gave a sign of life.
    fn hear(&self, name: &str) {
        if let Some(sign) = self.state().signs.get_mut(name) {
            sign.heard = Instant::now();
        }
    }

    fn node_changed(&self, name: &str, old: Option<&NodeFacts>, new: Option<&NodeFacts>) {
        let is_turning = {
            let mut state = self.state();
            let Some(node) = new else {
                state.signs.remove(name);
                let is_turning = state.zones.remove(name);
                drop(state);
                self.turn_all(is_turning);
                return;
            };
            let now = Instant::now();
            let sign = state.signs.entry(name.to_owned()).or_insert(Sign {
                heard: now,
                is_told: false,
            });
            if old.is_some_and(|old| old.heartbeat != node.heartbeat) {
                sign.heard = now;
            }
            if node.is_ready() {
                sign.is_told = false;
            }
            if node.is_excluded {
                state.zones.remove(name)
            } else {
                state.zones.set(name, &node.zone, node.is_ready())
            }
        };
        self.of_nodes.add(name.to_owned());
        self.turn_all(is_turning);
        let taints = |node: Option<&NodeFacts>| node.map(|node| node.taints.clone());
        if old.is_none() || taints(old) != taints(new) {
            for pod in self.pods.group(name) {
                self.of_pods.add(Key::new(&pod.namespace, &pod.name));
            }
        }
    }

    /// The last well node fell, or the first recovered: what holds for all is another now.
    fn turn_all(&self, is_turning: bool) {
        if !is_turning {
            return;
        }
        let mut state = self.state();
        let is_better = !state.zones.are_all_down();
        let now = Instant::now();
        for (name, sign) in &mut state.signs {
            // Nobody could be heard for a while, so silence says nothing.
            if is_better {
                sign.heard = now;
            }
            self.of_nodes.add(name.clone());
        }
    }

    /// Looks at a node, and comes back when it would have been silent for too long.
    async fn look(&self, name: String) -> Result<Next, Fault> {
        let Some(node) = self.nodes.get("", &name) else {
            return Ok(Next::Done);
        };
        let Some(sign) = self.state().signs.get(&name).copied() else {
            return Ok(Next::Done);
        };
        let grace = health::grace(&node, &self.patience);
        if !health::is_given_up(&node) {
            let silence = sign.heard.elapsed();
            if silence < grace {
                self.of_nodes
                    .add_after(name.clone(), grace.saturating_sub(silence));
            } else {
                let renewed = self.leases.get(LEASES, &name);
                let renewed = renewed.and_then(|time| (*time).clone());
                if act::give_up(&self.client, &node, renewed.as_ref()).await? {
                    self.hear(&name);
                    self.of_nodes.add_after(name, grace);
                }
                // What was written comes back as news, and the rest is done then.
                return Ok(Next::Done);
            }
        }
        let mut eviction = Eviction::Held;
        if self.state().zones.are_all_down() {
            eviction = Eviction::Lifted;
        } else if health::wants_eviction(&node) {
            let (may, later) = self.state().zones.turn(&node.zone, Instant::now());
            eviction = may;
            if let Some(later) = later {
                self.of_nodes.add_after(name.clone(), later);
            }
        }
        act::set_taints(&self.client, &node, eviction).await?;
        if node.condition("Ready").is_some() && !node.is_ready() && !sign.is_told {
            self.tell_pods(&node).await?;
        }
        Ok(Next::Done)
    }

    /// The pods of a node that fell are not ready, whatever they said last.
    async fn tell_pods(&self, node: &NodeFacts) -> Result<(), Fault> {
        let about = core("Node", "", &node.name, &node.uid);
        let text = format!("Node {} status is now: NodeNotReady", node.name);
        self.node_events.note(&about, "NodeNotReady", text).await;
        let pods = self.pods.group(&node.name);
        for pod in pods.iter().filter(|pod| pod.is_ready) {
            act::set_not_ready(&self.client, pod).await?;
            let about = core("Pod", &pod.namespace, &pod.name, &pod.uid);
            let text = "Node is not ready".to_owned();
            self.node_events.warn(&about, "NodeNotReady", text).await;
        }
        if let Some(sign) = self.state().signs.get_mut(&node.name) {
            sign.is_told = true;
        }
        Ok(())
    }

    /// Looks whether a pod may stay where it is.
    async fn judge(&self, key: Key) -> Result<Next, Fault> {
        let Some(pod) = self.pods.get(&key.namespace, &key.name) else {
            return Ok(Next::Done);
        };
        let node = self.nodes.get("", &pod.node);
        let verdict = match node {
            Some(node) if !pod.is_going => eviction::judge(&node.taints, &pod.tolerations),
            _ => Verdict::Stay,
        };
        let about = core("Pod", &pod.namespace, &pod.name, &pod.uid);
        let Verdict::Leave(limit) = verdict else {
            let was_leaving = self.state().leaving.remove(&pod.uid).is_some();
            if was_leaving && !pod.is_going {
                let text = format!("Cancelling deletion of Pod {}/{}", key.namespace, key.name);
                let reason = "TaintManagerEviction";
                self.pod_events.note(&about, reason, text).await;
            }
            return Ok(Next::Done);
        };
        let now = Instant::now();
        let since = *self.state().leaving.entry(pod.uid.clone()).or_insert(now);
        let stayed = now - since;
        if stayed < limit {
            self.of_pods.add_after(key, limit.saturating_sub(stayed));
            return Ok(Next::Done);
        }
        let text = format!("Marking for deletion Pod {}/{}", key.namespace, key.name);
        let reason = "TaintManagerEviction";
        self.pod_events.note(&about, reason, text).await;
        act::evict(&self.client, &pod).await?;
        self.state().leaving.remove(&pod.uid);
        Ok(Next::Done)
    }
}
