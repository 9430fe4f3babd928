//! A node that exists on paper: it says of pods what a test wants, and lets go those that are deleted.

use std::sync::{Arc, Mutex};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api as Objects, Client, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// What a pod does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Runs and is ready.
    Ready,
    /// Runs and never gets ready.
    Unready,
    /// Nothing happens to it.
    Pending,
    Succeeded,
    /// Its container ends with this code.
    Failed(i32),
}

type Script = Box<dyn Fn(&Pod) -> Fate + Send + Sync>;

/// Watches all pods and plays their part until it is dropped.
pub(crate) struct Node {
    script: Arc<Mutex<Script>>,
    client: Client,
    task: JoinHandle<()>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Node {
    pub(crate) fn new(
        client: &Client,
        script: impl Fn(&Pod) -> Fate + Send + Sync + 'static,
    ) -> Self {
        let script: Arc<Mutex<Script>> = Arc::new(Mutex::new(Box::new(script)));
        let task = tokio::spawn(play(client.clone(), Arc::clone(&script)));
        Self {
            script,
            client: client.clone(),
            task,
        }
    }

    /// From now on pods do something else, those that are there too.
    pub(crate) fn script(&mut self, script: impl Fn(&Pod) -> Fate + Send + Sync + 'static) {
        *self.script.lock().unwrap() = Box::new(script);
        // A new watch sees all pods again.
        self.task.abort();
        self.task = tokio::spawn(play(self.client.clone(), Arc::clone(&self.script)));
    }
}

async fn play(client: Client, script: Arc<Mutex<Script>>) {
    let all: Objects<Pod> = Objects::all(client.clone());
    let events = watcher(all, watcher::Config::default())
        .default_backoff()
        .applied_objects();
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        let Ok(pod) = event else { continue };
        let pods: Objects<Pod> = Objects::namespaced(client.clone(), &pod.namespace().unwrap());
        if pod.metadata.deletion_timestamp.is_some() {
            // It may be gone already.
            let _ = pods
                .delete(&pod.name_any(), &DeleteParams::default().grace_period(0))
                .await;
            continue;
        }
        let fate = script.lock().unwrap()(&pod);
        if let Some(status) = status(&pod, fate) {
            let change = Patch::Merge(json!({"status": status}));
            let _ = pods
                .patch_status(&pod.name_any(), &PatchParams::default(), &change)
                .await;
        }
    }
}

/// What a fate says about a pod, if that is not said yet.
fn status(pod: &Pod, fate: Fate) -> Option<Value> {
    let (phase, ready) = match fate {
        Fate::Ready => ("Running", "True"),
        Fate::Unready => ("Running", "False"),
        Fate::Pending => return None,
        Fate::Succeeded => ("Succeeded", "False"),
        Fate::Failed(_) => ("Failed", "False"),
    };
    let old = pod.status.as_ref();
    let is_said = old.and_then(|old| old.phase.as_deref()) == Some(phase)
        && old
            .and_then(|old| old.conditions.as_ref())
            .is_some_and(|all| {
                all.iter()
                    .any(|one| one.type_ == "Ready" && one.status == ready)
            });
    if is_said
        || old.is_some_and(|old| matches!(old.phase.as_deref(), Some("Succeeded" | "Failed")))
    {
        return None;
    }
    let now = jiff::Timestamp::now();
    let mut status = json!({
        "phase": phase,
        "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": now.to_string()}],
    });
    if let Fate::Failed(code) = fate {
        let ended = json!({"exitCode": code, "reason": "Error", "finishedAt": now.to_string()});
        status["containerStatuses"] = json!([{
            "name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": ended},
        }]);
    }
    Some(status)
}
