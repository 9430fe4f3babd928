//! Writes statuses of pods to the API, the newest only, and deletes the objects of pods that are gone.
//!
//! Nobody waits for it: with the API away, statuses wait here, one per pod.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{StreamExt as _, stream::FuturesUnordered};
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
};
use serde_json::{Value, json};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use super::conditions;
use crate::fault::{Fault, ask};

const AT_ONCE: usize = 8;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(20);

#[derive(Clone, Debug)]
struct Entry {
    namespace: String,
    name: String,
    /// To be told.
    status: Option<Box<PodStatus>>,
    /// What the API has, as far as is known.
    told: Box<PodStatus>,
    delete: bool,
    busy: bool,
    due: Instant,
    failures: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Statuses {
    entries: Mutex<BTreeMap<String, Entry>>,
    changed: Notify,
}

/// One thing to tell.
struct Job {
    uid: String,
    entry: Entry,
}

enum Outcome {
    Done,
    /// The object is gone, or another one has its name.
    Void,
    Failed(Fault),
}

impl Statuses {
    fn entries(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entry(&self, pod: &Pod, change: impl FnOnce(&mut Entry)) {
        let Some(uid) = pod.metadata.uid.clone() else {
            return;
        };
        let mut entries = self.entries();
        let entry = entries.entry(uid).or_insert_with(|| Entry {
            namespace: pod.metadata.namespace.clone().unwrap_or_default(),
            name: pod.metadata.name.clone().unwrap_or_default(),
            status: None,
            told: Box::new(pod.status.clone().unwrap_or_default()),
            delete: false,
            busy: false,
            due: Instant::now(),
            failures: 0,
        });
        change(entry);
        drop(entries);
        self.changed.notify_one();
    }

    /// Has a status told, unless it is what was told last.
    pub(crate) fn tell(&self, pod: &Pod, status: &PodStatus) {
        self.entry(pod, |entry| {
            let same = *entry.told == *status && !entry.busy;
            entry.status = (!same).then(|| Box::new(status.clone()));
        });
    }

    /// Has the object deleted, after its last status was told.
    pub(crate) fn delete(&self, pod: &Pod) {
        self.entry(pod, |entry| entry.delete = true);
    }

    /// The object is gone: nothing is left to tell.
    pub(crate) fn forget(&self, uid: &str) {
        self.entries().remove(uid);
    }

    pub(crate) async fn run(&self, client: Client, stop: CancellationToken) {
        let mut running = FuturesUnordered::new();
        loop {
            let mut next_due = None;
            while running.len() < AT_ONCE {
                match self.take(&mut next_due) {
                    Some(job) => running.push(tell(&client, job)),
                    None => break,
                }
            }
            let sleep = async {
                match next_due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                Some((job, outcome)) = running.next() => self.finish(job, outcome),
                () = self.changed.notified() => {}
                () = sleep, if running.len() < AT_ONCE => {}
            }
        }
    }

    fn take(&self, next_due: &mut Option<Instant>) -> Option<Job> {
        let now = Instant::now();
        let mut entries = self.entries();
        for (uid, entry) in entries.iter_mut() {
            if entry.busy || (entry.status.is_none() && !entry.delete) {
                continue;
            }
            if entry.due > now {
                *next_due = Some(next_due.map_or(entry.due, |due| due.min(entry.due)));
                continue;
            }
            entry.busy = true;
            let job = Job {
                uid: uid.clone(),
                entry: entry.clone(),
            };
            entry.status = None;
            return Some(job);
        }
        None
    }

    fn finish(&self, job: Job, outcome: Outcome) {
        let mut entries = self.entries();
        let Some(entry) = entries.get_mut(&job.uid) else {
            return;
        };
        entry.busy = false;
        match outcome {
            Outcome::Done => {
                entry.failures = 0;
                if let Some(status) = job.entry.status {
                    entry.told = status;
                } else {
                    // Its deletion: the object is gone or waits for the finalizers of others.
                    entries.remove(&job.uid);
                }
            }
            Outcome::Void => drop(entries.remove(&job.uid)),
            Outcome::Failed(fault) => {
                let pause = FIRST_PAUSE
                    .saturating_mul(1 << entry.failures.min(10))
                    .min(LONGEST_PAUSE);
                tracing::debug!(pod = entry.name, %fault, ?pause, "a status could not be told");
                entry.failures = entry.failures.saturating_add(1);
                entry.due = Instant::now() + pause;
                if entry.status.is_none() {
                    entry.status = job.entry.status;
                }
            }
        }
    }
}

async fn tell(client: &Client, job: Job) -> (Job, Outcome) {
    let pods = Api::<Pod>::namespaced(client.clone(), &job.entry.namespace);
    let answer = match &job.entry.status {
        Some(status) => {
            let patch = Patch::Strategic(patch(&job.uid, &job.entry.told, status));
            let parameters = PatchParams::default();
            ask(pods.patch_status(&job.entry.name, &parameters, &patch))
                .await
                .map(drop)
        }
        None => {
            let parameters = DeleteParams {
                grace_period_seconds: Some(0),
                preconditions: Some(Preconditions {
                    uid: Some(job.uid.clone()),
                    resource_version: None,
                }),
                ..DeleteParams::default()
            };
            ask(pods.delete(&job.entry.name, &parameters))
                .await
                .map(drop)
        }
    };
    let outcome = match answer {
        Ok(()) => Outcome::Done,
        Err(fault) if fault.is_absent() || fault.is_conflict() => Outcome::Void,
        Err(fault) => Outcome::Failed(fault),
    };
    (job, outcome)
}

/// Conditions of ours that do not hold: those of a list stay unless they are taken out by name. All of them are, as
/// the API may have some from an earlier life of the agent, which this one has not seen yet.
fn ended(status: &PodStatus) -> Vec<Value> {
    let holds = |name: &str| {
        let mut all = status.conditions.iter().flatten();
        all.any(|one| one.type_ == name)
    };
    let ended = conditions::OURS.iter().filter(|name| !holds(name));
    ended
        .map(|name| json!({"type": name, "$patch": "delete"}))
        .collect()
}

/// The change from one status to another, refused if the name belongs to another pod by now.
fn patch(uid: &str, before: &PodStatus, after: &PodStatus) -> Value {
    let ended = ended(after);
    let (before, mut after) = (json!(before), json!(after));
    if let Some(Value::Array(list)) = after.get_mut("conditions") {
        list.extend(ended);
    }
    if let (Some(before), Some(after)) = (before.as_object(), after.as_object_mut()) {
        for key in before.keys() {
            after.entry(key.clone()).or_insert(Value::Null);
        }
        for key in ["podIPs", "hostIPs"] {
            if before.get(key) != after.get(key)
                && let Some(Value::Array(list)) = after.get_mut(key)
            {
                list.insert(0, json!({"$patch": "replace"}));
            }
        }
    }
    json!({"metadata": {"uid": uid}, "status": after})
}
