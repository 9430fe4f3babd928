//! An API server over an empty store, a machine that is not there, and an agent on it. Time is tokio's.

use std::{
    fmt::Debug,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::StreamExt as _;
use k8s_openapi::{
    api::core::v1::{Event, Namespace, Node, Pod, ServiceAccount},
    serde::{Serialize, de::DeserializeOwned},
};
use kube::{
    Api as Objects, Client, Resource, ResourceExt as _,
    api::{ListParams, PostParams},
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tower::{Service as _, service_fn};
use transom_agent::{Clock, ClusterDns, Eviction, Listen, Options, Reserved};
use transom_api::{
    Api, Guard, Settings,
    access::authentication::{User, group},
    http::router_as,
    storage::Codec,
};
use transom_host::{access::fake::FakeAccess, files::fake::FakeFiles, machine::fake::FakeMachine};
use transom_model::Os;
use transom_runtime::{
    ContainerSpec, PodSpec, Runtime as _,
    fake::{Clock as _, FakeMachines, FakeRuntime, Plan, TokioClock},
};
use transom_store::Memory;

/// How long a test waits for anything, in the time of the test.
pub(crate) const PATIENCE: Duration = Duration::from_mins(30);
pub(crate) const NODE: &str = "node-1";

pub(crate) struct Cluster {
    pub(crate) client: Client,
    pub(crate) runtime: FakeRuntime,
    clock: Arc<TokioClock>,
    files: FakeFiles,
    machine: Arc<FakeMachine>,
    is_away: Arc<AtomicBool>,
    agent_client: Client,
    feed: JoinHandle<()>,
    agent: Option<(JoinHandle<()>, CancellationToken)>,
    pub(crate) listen: Option<Listen>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some((task, _)) = &self.agent {
            task.abort();
        }
        self.feed.abort();
    }
}

impl Cluster {
    /// A cluster of one node whose containers do as `script` says.
    pub(crate) async fn new(
        os: Os,
        script: impl Fn(&PodSpec, &ContainerSpec) -> Plan + Send + Sync + 'static,
    ) -> Self {
        let clock = Arc::new(TokioClock::starting_at(
            "2026-01-01T00:00:00Z".parse().unwrap(),
        ));
        let now = Arc::clone(&clock);
        let (api, feed) = Api::open(
            Arc::new(Memory::new()),
            Arc::new(Codec::default()),
            Settings::default(),
            Arc::new(move || now.now()),
            Arc::new(Guard::default()),
        )
        .await
        .unwrap();
        let feed = tokio::spawn(async move { feed.run().await });
        let user = User::authenticated("admin", vec![group::MASTERS.to_owned()]);
        let router = router_as(api, user);
        let is_away = Arc::new(AtomicBool::new(false));
        let gate = {
            let (router, is_away) = (router.clone(), Arc::clone(&is_away));
            service_fn(move |request: http::Request<kube::client::Body>| {
                let (mut router, away) = (router.clone(), is_away.load(Ordering::SeqCst));
                async move {
                    if away {
                        return Err("the API is away");
                    }
                    Ok(router.call(request).await.unwrap())
                }
            })
        };
        let cluster = Self {
            client: Client::new(router, "default"),
            runtime: FakeMachines::new(Arc::clone(&clock) as _, script).open(NODE),
            clock,
            files: FakeFiles::new(os),
            machine: Arc::new(FakeMachine::new(os)),
            is_away,
            agent_client: Client::new(gate, "default"),
            feed,
            agent: None,
            listen: None,
        };
        for name in ["default", "kube-node-lease", "kube-system"] {
            let namespace =
                json!({"metadata": {"name": name}, "spec": {"finalizers": ["kubernetes"]}});
            create(
                &Objects::<Namespace>::all(cluster.client.clone()),
                namespace,
            )
            .await;
        }
        let accounts: Objects<ServiceAccount> =
            Objects::namespaced(cluster.client.clone(), "default");
        create(&accounts, json!({"metadata": {"name": "default"}})).await;
        cluster
    }

    /// A cluster whose agent runs and whose node is ready.
    pub(crate) async fn started(
        os: Os,
        script: impl Fn(&PodSpec, &ContainerSpec) -> Plan + Send + Sync + 'static,
    ) -> Self {
        let mut cluster = Self::new(os, script).await;
        cluster.start();
        cluster
            .node_when(|node| condition(node, "Ready") == Some("True".to_owned()))
            .await;
        cluster
    }

    /// Starts an agent on the machine, with whatever the one before left there.
    pub(crate) fn start(&mut self) {
        let os = transom_host::machine::Machine::os(&*self.machine);
        let root = match os {
            Os::Linux => "/var/lib/transom",
            Os::Windows => r"C:\Transom",
        };
        let clock = Arc::clone(&self.clock);
        let options = Options {
            node: NODE.to_owned(),
            machine: Arc::clone(&self.machine) as _,
            files: Arc::new(self.files.clone()),
            access: Arc::new(FakeAccess::default()),
            runtime: Arc::new(self.runtime.clone()),
            labels: [("zone".to_owned(), "a".to_owned())].into(),
            taints: Vec::new(),
            addresses: vec!["192.0.2.7".parse().unwrap()],
            listen: self.listen.clone(),
            state: root.into(),
            logs: transom_host::files::path::join(os, root.into(), "logs"),
            static_pods: Some(transom_host::files::path::join(
                os,
                root.into(),
                "manifests",
            )),
            max_pods: 3,
            reserved: Reserved {
                cpu_millis: 500,
                ..Reserved::default()
            },
            eviction: Eviction::usual(os),
            dns: ClusterDns::default(),
            clock: Clock::new(move || clock.now()),
        };
        let stop = CancellationToken::new();
        let agent = transom_agent::run(self.agent_client.clone(), options, stop.clone());
        let task = tokio::spawn(async move { agent.await.unwrap() });
        self.agent = Some((task, stop));
    }

    /// Ends the agent as a crash would: at once.
    pub(crate) async fn kill(&mut self) {
        let (task, _) = self.agent.take().unwrap();
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
    }

    /// The agent cannot reach the API any more, or again.
    pub(crate) fn set_away(&self, is_away: bool) {
        self.is_away.store(is_away, Ordering::SeqCst);
    }

    pub(crate) fn files(&self) -> &FakeFiles {
        &self.files
    }

    pub(crate) fn machine(&self) -> &FakeMachine {
        &self.machine
    }

    pub(crate) fn now(&self) -> jiff::Timestamp {
        self.clock.now()
    }

    pub(crate) fn pods(&self) -> Objects<Pod> {
        Objects::namespaced(self.client.clone(), "default")
    }

    pub(crate) async fn pod(&self, name: &str, mut spec: Value) -> Pod {
        spec["nodeName"] = json!(NODE);
        spec["automountServiceAccountToken"] = json!(false);
        create(
            &self.pods(),
            json!({"metadata": {"name": name}, "spec": spec}),
        )
        .await
    }

    pub(crate) async fn node_when(&self, is_wanted: impl Fn(&Node) -> bool) -> Node {
        when(&Objects::all(self.client.clone()), NODE, is_wanted).await
    }

    /// Waits until nothing is left on the node.
    pub(crate) async fn emptied(&self) {
        let empty = async {
            while !self.runtime.pods().await.unwrap().is_empty() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, empty).await.is_ok();
        assert!(in_time, "{:?}", self.runtime.pods().await);
    }

    /// `reason: message` of all events about a pod, in turn.
    pub(crate) async fn events(&self, pod: &str) -> Vec<String> {
        let events: Objects<Event> = Objects::all(self.client.clone());
        let mut all = events.list(&ListParams::default()).await.unwrap().items;
        all.retain(|event| event.involved_object.name.as_deref() == Some(pod));
        all.sort_by_key(Event::name_any);
        let text = |event: Event| {
            format!(
                "{}: {}",
                event.reason.unwrap_or_default(),
                event.message.unwrap_or_default()
            )
        };
        all.into_iter().map(text).collect()
    }
}

/// What a node says of one of its conditions.
pub(crate) fn condition(node: &Node, name: &str) -> Option<String> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    conditions
        .iter()
        .find(|one| one.type_ == name)
        .map(|one| one.status.clone())
}

pub(crate) fn phase(pod: &Pod) -> &str {
    let status = pod.status.as_ref();
    status
        .and_then(|status| status.phase.as_deref())
        .unwrap_or_default()
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
    until(objects, name, |seen| seen.is_some_and(&is_wanted))
        .await
        .unwrap()
}

pub(crate) async fn gone<K>(objects: &Objects<K>, name: &str)
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    until(objects, name, |seen| seen.is_none()).await;
}

async fn until<K>(
    objects: &Objects<K>,
    name: &str,
    is_wanted: impl Fn(Option<&K>) -> bool,
) -> Option<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let mut states = pin!(watcher::watch_object(objects.clone(), name).default_backoff());
    let mut last = None;
    let waiting = tokio::time::timeout(PATIENCE, async {
        loop {
            last = states.next().await.unwrap().unwrap();
            if is_wanted(last.as_ref()) {
                return;
            }
        }
    });
    let in_time = waiting.await.is_ok();
    assert!(in_time, "{name} did not become what it should be: {last:?}");
    last
}
