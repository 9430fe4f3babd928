//! Looks at one object after the other and does what has to be done with it. Invariant: what cannot be decided
//! before a kind is known is put aside until it is, but never longer than that kind is waited for.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Client, runtime::events::Recorder};
use tokio::{sync::Notify, time::Instant};

use super::{
    act,
    graph::{self, FOREGROUND, Graph, Known, Node, ORPHAN, Uid},
    judge::{Duty, Owner, Verdict, duty, judge},
    report,
};
use crate::{
    fault::{Fault, fetch, found},
    queue::{Next, Queue},
    resources::{Deletable, Metadata},
};

/// An object that waits for its dependants is given this long until it is looked at: another watch tells of
/// those that were made just before.
const SETTLE: Duration = Duration::from_millis(250);
/// How many dependants are let go at a time.
const ORPHANS_AT_ONCE: usize = 8;
/// How long an owner that no watch has told of yet is waited for at most.
const UNSEEN: Duration = Duration::from_secs(30);
/// How long the objects of a kind are waited for. One that cannot be listed must not hold up all others.
const UNLISTED: Duration = Duration::from_secs(30);

pub(super) struct Collector {
    pub(super) client: Client,
    pub(super) queue: Queue<Uid>,
    /// Rings when a kind was defined, changed or removed.
    pub(super) definitions: Notify,
    state: Mutex<State>,
    recorder: Recorder,
}

#[derive(Default)]
struct State {
    graph: Graph,
    /// What is served, by group and kind.
    kinds: HashMap<(String, String), Arc<Deletable>>,
    /// What is watched, but not all of whose objects were seen yet, and until when that is waited for.
    unseen: HashMap<Arc<Deletable>, Instant>,
    /// What is looked at again when all objects of some kind were seen.
    aside: HashSet<Uid>,
}

impl State {
    /// Until when a kind is waited for that has to do with the duty of an object.
    fn waits_until(&self, node: &Node, duty: &Duty) -> Option<Instant> {
        let due = match duty {
            Duty::Nothing | Duty::Wait(_) => None,
            // A dependant that nobody has seen yet would be lost, and it may be of any kind.
            Duty::Orphan(_) | Duty::Release => self.unseen.values().max().copied(),
            // Whatever is not known is asked for one by one, which is much at the start.
            Duty::FindOwners => {
                let owners = node.owners.iter();
                let kinds = owners.filter_map(|owner| self.kinds.get(&key(owner)));
                let kinds = kinds.chain([&node.resource]);
                kinds
                    .filter_map(|kind| self.unseen.get(kind).copied())
                    .max()
            }
        };
        due.filter(|due| *due > Instant::now())
    }

    /// Says which kinds could not be looked through though an object might own some of them.
    fn report_unseen(&self, owner: &Node) {
        for kind in self.unseen.keys() {
            tracing::warn!(
                group = kind.api.group,
                kind = kind.api.kind,
                namespace = owner.namespace,
                owner = owner.name,
                "an object goes though not all that it may own could be listed"
            );
        }
    }
}

/// Where the kind that a reference names is found.
fn key(reference: &OwnerReference) -> (String, String) {
    (graph::group(reference).to_owned(), reference.kind.clone())
}

impl Collector {
    pub(super) fn new(client: Client) -> Self {
        Self {
            recorder: report::recorder(client.clone()),
            client,
            queue: Queue::new(),
            definitions: Notify::new(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These kinds are served now, and the watches of some begin.
    pub(super) fn set_kinds(&self, all: &HashSet<Arc<Deletable>>, new: &[Arc<Deletable>]) {
        let mut state = self.state();
        let key = |kind: &Deletable| (kind.api.group.clone(), kind.api.kind.clone());
        state.kinds = all
            .iter()
            .map(|kind| (key(kind), Arc::clone(kind)))
            .collect();
        let due = Instant::now() + UNLISTED;
        let new = new.iter().map(|kind| (Arc::clone(kind), due));
        state.unseen.extend(new);
    }

    /// A kind is not served any more.
    pub(super) fn forget(&self, resource: &Deletable) {
        self.seen_all(resource, &HashSet::new());
    }

    /// All objects of a kind were seen.
    pub(super) fn seen_all(&self, resource: &Deletable, seen: &HashSet<Uid>) {
        let look = {
            let mut state = self.state();
            let mut look = state.graph.retain(resource, seen);
            if state.unseen.remove(resource).is_some() {
                look.extend(state.aside.drain());
            }
            look
        };
        self.add(look);
    }

    pub(super) fn put(&self, node: Node) {
        let waits = node.waits_for_orphans() || node.waits_for_dependants();
        let settles = waits.then(|| Arc::clone(&node.uid));
        let mut look = self.state().graph.put(node);
        if let Some(uid) = settles {
            look.retain(|each| *each != uid);
            self.queue.add_after(uid, SETTLE);
        }
        self.add(look);
    }

    pub(super) fn remove(&self, resource: &Deletable, uid: &str) {
        let look = self.state().graph.remove(resource, uid);
        self.add(look);
    }

    fn add(&self, look: Vec<Uid>) {
        for uid in look {
            self.queue.add(uid);
        }
    }

    /// Looks at an object and does what has to be done.
    pub(super) async fn look(&self, uid: Uid) -> Result<Next, Fault> {
        let (node, duty) = {
            let mut state = self.state();
            let Some(node) = state.graph.get(&uid).cloned() else {
                return Ok(Next::Done);
            };
            let duty = duty(&state.graph, &node);
            if let Some(due) = state.waits_until(&node, &duty) {
                state.aside.insert(Arc::clone(&uid));
                self.queue.add_after(uid, due - Instant::now());
                return Ok(Next::Done);
            }
            if matches!(duty, Duty::Orphan(_) | Duty::Release) {
                state.report_unseen(&node);
            }
            (node, duty)
        };
        match duty {
            Duty::Nothing => {}
            Duty::Orphan(dependants) => {
                self.orphan(&node, dependants).await?;
                act::release(&self.client, &node, ORPHAN).await?;
            }
            Duty::Wait(dependants) => self.add(dependants),
            Duty::Release => act::release(&self.client, &node, FOREGROUND).await?,
            Duty::FindOwners => return self.find_owners(&node).await,
        }
        Ok(Next::Done)
    }

    async fn orphan(&self, node: &Node, dependants: Vec<Node>) -> Result<(), Fault> {
        let owner = [node.uid.to_string()];
        stream::iter(dependants)
            .map(Ok)
            .try_for_each_concurrent(ORPHANS_AT_ONCE, |dependant| {
                let (client, owner) = (&self.client, &owner);
                async move { act::drop_owners(client, &dependant, owner).await }
            })
            .await
    }

    /// Looks for the owners of an object, in the graph and then in the API, and decides about it.
    async fn find_owners(&self, node: &Node) -> Result<Next, Fault> {
        if self.has_all_owners(node) {
            return Ok(Next::Done);
        }
        let Some(live) = act::read(&self.client, node).await? else {
            return Ok(Next::Done);
        };
        if live.is_being_deleted {
            return Ok(Next::Done);
        }
        let mut owners = Vec::new();
        let mut next = Next::Done;
        for reference in &live.owners {
            let known = self.state().graph.owner(&live, reference);
            let owner = match known {
                Known::Present => Owner::Present,
                Known::Waiting => Owner::Waiting,
                Known::Elsewhere | Known::Nothing => self.ask_for(&live, reference).await?,
            };
            if known == Known::Elsewhere || owner == Owner::Unfit {
                report::wrong_namespace(&self.recorder, &live, reference).await;
            }
            // The end of what no watch has told of would not be told either.
            if known == Known::Nothing && owner == Owner::Present {
                next = Next::Again(UNSEEN);
            }
            owners.push((reference.clone(), owner));
        }
        let verdict = judge(&self.state().graph, &live, &owners);
        self.execute(&live, verdict).await?;
        Ok(next)
    }

    fn has_all_owners(&self, node: &Node) -> bool {
        let state = self.state();
        let is_there =
            |reference: &OwnerReference| state.graph.owner(node, reference) == Known::Present;
        node.owners.iter().all(is_there)
    }

    /// Asks the API for an owner, where it would have to be.
    async fn ask_for(&self, node: &Node, reference: &OwnerReference) -> Result<Owner, Fault> {
        let kind = self.state().kinds.get(&key(reference)).cloned();
        let kind = kind.ok_or_else(|| Fault::UnknownKind {
            api_version: reference.api_version.clone(),
            kind: reference.kind.clone(),
        })?;
        if kind.namespaced && node.namespace.is_empty() {
            return Ok(Owner::Unfit);
        }
        let objects = kind.objects::<Metadata>(&self.client, Some(&node.namespace));
        let found = found(fetch(objects.get(&reference.name)).await)?;
        let owner = found.and_then(|object| Node::read(&kind, object.metadata));
        Ok(match owner {
            Some(owner) if *owner.uid != *reference.uid => Owner::Absent,
            Some(owner) if owner.waits_for_dependants() => Owner::Waiting,
            Some(_) => Owner::Present,
            None => Owner::Absent,
        })
    }

    async fn execute(&self, node: &Node, verdict: Verdict) -> Result<(), Fault> {
        match verdict {
            Verdict::Keep => Ok(()),
            Verdict::Drop(owners) => act::drop_owners(&self.client, node, &owners).await,
            Verdict::Delete { policy, unblock } => {
                let newer = if unblock {
                    act::unblock(&self.client, node).await?
                } else {
                    Some(node.clone())
                };
                let Some(node) = newer else {
                    return Ok(());
                };
                tracing::debug!(
                    kind = node.resource.api.kind,
                    namespace = node.namespace,
                    name = node.name,
                    ?policy,
                    "an object without owners is deleted"
                );
                act::delete(&self.client, &node, policy).await
            }
        }
    }
}
