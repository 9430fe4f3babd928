//! An API server over an empty store, and schedulers that come and go.

use std::{fmt::Debug, pin::pin, sync::Arc, time::Duration};

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::{
    api::{
        core::v1::{Namespace, Node, Pod, ServiceAccount},
        events::v1::Event,
    },
    serde::{Serialize, de::DeserializeOwned},
};
use kube::{
    Api as Objects, Client, Resource, ResourceExt as _,
    api::{ListParams, Patch, PatchParams, PostParams},
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use transom_api::{
    Api, Guard, Settings,
    access::authentication::{User, group},
    http::router_as,
    storage::Codec,
};
use transom_scheduler::Options;
use transom_store::Memory;

/// How long a test waits for anything.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct Cluster {
    pub(crate) client: Client,
    feed: JoinHandle<()>,
}

/// A scheduler that works.
pub(crate) struct Running {
    task: JoinHandle<()>,
    stop: CancellationToken,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.feed.abort();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Running {
    /// Tells the scheduler to stop and waits until it did.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        let ended = tokio::time::timeout(PATIENCE, &mut self.task).await;
        ended.expect("the scheduler should stop").unwrap();
    }
}

impl Cluster {
    pub(crate) async fn new() -> Self {
        let (api, feed) = Api::open(
            Arc::new(Memory::new()),
            Arc::new(Codec::default()),
            Settings::default(),
            Arc::new(jiff::Timestamp::now),
            Arc::new(Guard::default()),
        )
        .await
        .unwrap();
        let feed = tokio::spawn(async move { feed.run().await });
        let user = User::authenticated("admin", vec![group::MASTERS.to_owned()]);
        let client = Client::new(router_as(api, user), "default");
        let cluster = Self { client, feed };
        for name in ["default", "kube-system"] {
            create(
                &cluster.all::<Namespace>(),
                json!({"metadata": {"name": name}}),
            )
            .await;
        }
        let accounts: Objects<ServiceAccount> = Objects::default_namespaced(cluster.client.clone());
        create(&accounts, json!({"metadata": {"name": "default"}})).await;
        cluster
    }

    pub(crate) fn scheduler(&self) -> Running {
        self.scheduler_with(Options::default())
    }

    pub(crate) fn scheduler_with(&self, options: Options) -> Running {
        Self::scheduler_of(self.client.clone(), options)
    }

    /// A scheduler that asks in its own way.
    pub(crate) fn scheduler_of(client: Client, options: Options) -> Running {
        let stop = CancellationToken::new();
        let work = transom_scheduler::run(client, options, stop.clone());
        Running {
            task: tokio::spawn(work),
            stop,
        }
    }

    pub(crate) fn all<K: Resource<DynamicType = ()>>(&self) -> Objects<K> {
        Objects::all(self.client.clone())
    }

    pub(crate) fn pods(&self) -> Objects<Pod> {
        Objects::default_namespaced(self.client.clone())
    }

    /// A node with a name, a processor count and 8 GiB; `more` is merged into it.
    pub(crate) async fn node(&self, name: &str, cpu: &str, more: Value) {
        let resources = json!({"cpu": cpu, "memory": "8Gi", "pods": "110"});
        let mut labels = json!({"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"});
        json_merge(&mut labels, &more["labels"]);
        let nodes: Objects<Node> = self.all();
        let value = json!({
            "metadata": {"name": name, "labels": labels},
            "spec": more.get("spec").cloned().unwrap_or_else(|| json!({})),
        });
        create(&nodes, value).await;
        let mut status = json!({"status": {"capacity": resources, "allocatable": resources}});
        json_merge(&mut status["status"], &more["status"]);
        let parameters = PatchParams::default();
        nodes
            .patch_status(name, &parameters, &Patch::Merge(status))
            .await
            .unwrap();
        // Whoever watches the nodes would take off what a new node has until it is ready.
        let taints = json!({"spec": {"taints": more["spec"]["taints"]}});
        nodes
            .patch(name, &parameters, &Patch::Merge(taints))
            .await
            .unwrap();
    }

    /// A pod that asks for processors; `spec` is merged into it.
    pub(crate) async fn pod(&self, name: &str, cpu: &str, spec: Value) -> Pod {
        create(&self.pods(), pod(name, cpu, &spec)).await
    }

    /// The node that a pod gets.
    pub(crate) async fn node_of(&self, name: &str) -> String {
        let pod = when(&self.pods(), name, |pod| node_of(pod).is_some()).await;
        node_of(&pod).unwrap().to_owned()
    }

    /// What a pod is told about why it waits.
    pub(crate) async fn refusal(&self, name: &str) -> String {
        let pod = when(&self.pods(), name, |pod| message_of(pod).is_some()).await;
        message_of(&pod).unwrap()
    }

    /// Waits until there is an event of a reason about a pod, and gives its note.
    pub(crate) async fn event(&self, pod: &str, reason: &str) -> String {
        let events: Objects<Event> = Objects::default_namespaced(self.client.clone());
        let mut all = pin!(
            watcher(events, watcher::Config::default())
                .default_backoff()
                .applied_objects()
        );
        let found = async {
            while let Some(event) = all.try_next().await.unwrap() {
                let about = event.regarding.as_ref().and_then(|one| one.name.as_deref());
                if about == Some(pod) && event.reason.as_deref() == Some(reason) {
                    return event.note.unwrap();
                }
            }
            unreachable!("watches do not end")
        };
        tokio::time::timeout(PATIENCE, found)
            .await
            .expect("there should be an event")
    }

    /// Waits until so many pods have a node, and gives their names and nodes.
    pub(crate) async fn placed(&self, number: usize) -> Vec<(String, String)> {
        let all = watcher(self.pods(), watcher::Config::default());
        let mut all = pin!(all.default_backoff().applied_objects());
        let mut placed = std::collections::BTreeMap::new();
        let waiting = async {
            while placed.len() < number {
                let pod = all.try_next().await.unwrap().unwrap();
                if let Some(node) = node_of(&pod) {
                    placed.insert(pod.name_any(), node.to_owned());
                }
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, waiting).await.is_ok();
        assert!(
            in_time,
            "only {} of {number} pods have a node",
            placed.len()
        );
        placed.into_iter().collect()
    }

    pub(crate) async fn list_pods(&self) -> Vec<Pod> {
        self.pods()
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
    }
}

fn pod(name: &str, cpu: &str, spec: &Value) -> Value {
    let mut value = json!({
        "metadata": {"name": name, "labels": {"app": name.split('-').next()}},
        "spec": {"containers": [{
            "name": "main",
            "image": "app",
            "resources": {"requests": {"cpu": cpu}},
        }]},
    });
    json_merge(&mut value["spec"], spec);
    value
}

fn json_merge(value: &mut Value, more: &Value) {
    for (key, one) in more.as_object().into_iter().flatten() {
        value[key] = one.clone();
    }
}

pub(crate) fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

fn message_of(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let one = conditions
        .iter()
        .find(|one| one.type_ == "PodScheduled" && one.status == "False")?;
    one.message.clone()
}

pub(crate) async fn create<K>(objects: &Objects<K>, value: Value) -> K
where
    K: Clone + Debug + DeserializeOwned + Serialize,
{
    let object: K = serde_json::from_value(value).unwrap();
    objects
        .create(&PostParams::default(), &object)
        .await
        .unwrap()
}

/// Waits until an object is as the test wants it.
pub(crate) async fn when<K>(objects: &Objects<K>, name: &str, is_wanted: impl Fn(&K) -> bool) -> K
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let mut states = pin!(watcher::watch_object(objects.clone(), name).default_backoff());
    let mut last = None;
    let waiting = async {
        loop {
            last = states.next().await.unwrap().unwrap();
            if last.as_ref().is_some_and(&is_wanted) {
                return;
            }
        }
    };
    let in_time = tokio::time::timeout(PATIENCE, waiting).await.is_ok();
    assert!(in_time, "{name} did not become what it should be: {last:?}");
    last.unwrap()
}
