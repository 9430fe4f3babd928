//! Images decide before anything is pulled: the API, the controllers, the scheduler and a registry, in this process.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, ServiceAccount};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api as Objects, Client};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use transom_api::access::authentication::{User, group};
use transom_api::http::router_as;
use transom_api::storage::Codec;
use transom_api::{Api, Guard, Settings};
use transom_controllers::{Answer, Question};
use transom_model::images::object_name;
use transom_runtime::images::{Registries, Seen};
use transom_scheduler::image_objects;
use transom_store::Memory;
use transom_testkit::Registry;

use crate::server::Server;

/// How long a test waits for anything.
const PATIENCE: Duration = Duration::from_mins(1);

/// Asks as the server does, also on this machine.
#[derive(Debug)]
struct Asker;

impl transom_controllers::Registry for Asker {
    fn look<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<Answer, String>> {
        async move {
            let known = question.known.as_deref();
            let registries = Registries::default();
            let seen = registries.look(&question.reference, &[], known).await;
            match seen.map_err(|error| error.to_string())? {
                Seen::Same => Ok(Answer::Same),
                Seen::Image(found) => Ok(Answer::Image {
                    digest: found.digest,
                    platforms: found.platforms,
                }),
            }
        }
        .boxed()
    }
}

/// A control plane without machines.
struct Cluster {
    client: Client,
    /// Has an image that all nodes can run.
    registry: Registry,
    // All of it ends with the test.
    _tasks: JoinSet<()>,
}

impl Cluster {
    async fn new() -> Self {
        let (api, feed) = Api::open(
            Arc::new(Memory::new()),
            Arc::new(Codec::default()),
            Settings::default(),
            Arc::new(jiff::Timestamp::now),
            Arc::new(Guard::default()),
        )
        .await
        .unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { feed.run().await });
        let user = User::authenticated("admin", vec![group::MASTERS.to_owned()]);
        let client = Client::new(router_as(api, user), "default");
        let stop = CancellationToken::new();
        tasks.spawn(transom_controllers::run(
            client.clone(),
            transom_controllers::Options {
                registry: Some(Arc::new(Asker)),
                ..transom_controllers::Options::default()
            },
            stop.clone(),
        ));
        let options = transom_scheduler::Options {
            // Who is placed was not placed because the time was over.
            image_patience: PATIENCE * 2,
            ..transom_scheduler::Options::default()
        };
        tasks.spawn(transom_scheduler::run(client.clone(), options, stop));
        let namespaces: Objects<Namespace> = Objects::all(client.clone());
        create(&namespaces, json!({"metadata": {"name": "default"}})).await;
        let accounts: Objects<ServiceAccount> = Objects::default_namespaced(client.clone());
        first(accounts, |account| {
            account.metadata.name.as_deref() == Some("default")
        })
        .await;
        let registry = Registry::start().unwrap();
        let all = ["linux/amd64", "linux/arm64", "windows/amd64:10.0.20348.1"];
        registry.put_index("team/probe", "1", &all);
        Self {
            client,
            registry,
            _tasks: tasks,
        }
    }

    /// A node that the scheduler knows of: what it learns of pods comes by another way, and may be faster.
    async fn node(&self, name: &str, labels: Value) {
        let nodes: Objects<Node> = Objects::all(self.client.clone());
        create(
            &nodes,
            json!({"metadata": {"name": name, "labels": labels}}),
        )
        .await;
        let room = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
        let ready = json!([{"type": "Ready", "status": "True"}]);
        let status =
            json!({"status": {"capacity": room, "allocatable": room, "conditions": ready}});
        let parameters = PatchParams::default();
        let status = Patch::Merge(status);
        nodes
            .patch_status(name, &parameters, &status)
            .await
            .unwrap();
        let taints = Patch::Merge(json!({"spec": {"taints": null}}));
        nodes.patch(name, &parameters, &taints).await.unwrap();
        let pods: Objects<Pod> = Objects::default_namespaced(self.client.clone());
        let probe = format!("probe-{name}");
        let image = format!("{}/team/probe:1", self.registry.address());
        let spec = json!({"nodeSelector": labels, "containers": [{"name": "c", "image": image}]});
        create(&pods, json!({"metadata": {"name": probe}, "spec": spec})).await;
        assert_eq!(self.node_of(&probe).await, name);
    }

    async fn pod(&self, name: &str, image: &str) {
        let pods: Objects<Pod> = Objects::default_namespaced(self.client.clone());
        let spec = json!({"containers": [{"name": "c", "image": image}]});
        create(&pods, json!({"metadata": {"name": name}, "spec": spec})).await;
    }

    async fn node_of(&self, name: &str) -> String {
        let pods: Objects<Pod> = Objects::default_namespaced(self.client.clone());
        let node = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        let pod = first(pods, |pod| {
            pod.metadata.name.as_deref() == Some(name) && node(pod).is_some()
        })
        .await;
        node(&pod).unwrap()
    }

    async fn refusal(&self, name: &str) -> String {
        let events: Objects<Event> = Objects::default_namespaced(self.client.clone());
        let event = first(events, |event| {
            let about = event.regarding.as_ref().and_then(|one| one.name.as_deref());
            about == Some(name) && event.reason.as_deref() == Some("FailedScheduling")
        })
        .await;
        event.note.unwrap()
    }
}

async fn create<K>(objects: &Objects<K>, value: Value)
where
    K: Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    let object: K = serde_json::from_value(value).unwrap();
    let made = objects.create(&PostParams::default(), &object).await;
    made.unwrap();
}

/// The first object that is as the test wants it.
async fn first<K>(objects: Objects<K>, is_wanted: impl Fn(&K) -> bool) -> K
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + 'static,
{
    let all = watcher(objects, watcher::Config::default());
    let mut all = pin!(all.default_backoff().applied_objects());
    let found = async {
        loop {
            let object = all.try_next().await.unwrap().unwrap();
            if is_wanted(&object) {
                return object;
            }
        }
    };
    let found = tokio::time::timeout(PATIENCE, found).await;
    found.expect("there should be one")
}

fn linux(architecture: &str) -> Value {
    json!({"kubernetes.io/os": "linux", "kubernetes.io/arch": architecture})
}

fn windows(build: &str) -> Value {
    json!({"kubernetes.io/os": "windows", "kubernetes.io/arch": "amd64", "node.kubernetes.io/windows-build": build})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_for_windows_goes_to_the_windows_node_with_no_selector() {
    let registry = Registry::start().unwrap();
    registry.put_image("team/app", Some("1"), "windows/amd64:10.0.20348.2113");
    registry.put_index(
        "team/both",
        "1",
        &["linux/arm64", "windows/amd64:10.0.17763.1"],
    );
    let cluster = Cluster::new().await;
    cluster.node("linux", linux("amd64")).await;
    cluster.node("windows", windows("10.0.20348")).await;
    let at = registry.address();
    for name in ["one", "two", "three"] {
        cluster.pod(name, &format!("{at}/team/app:1")).await;
        assert_eq!(cluster.node_of(name).await, "windows");
    }
    cluster.pod("four", &format!("{at}/team/both:1")).await;
    let why = cluster.refusal("four").await;
    assert!(why.contains("2 node(s) cannot run image"), "{why}");
    let asked = registry.requests();
    let tag = |request: &&String| request.as_str() == "GET /v2/team/app/manifests/1";
    assert_eq!(asked.iter().filter(tag).count(), 1, "{asked:?}");
    let images = image_objects(&cluster.client);
    let known = first(images, |image| image.spec.reference.ends_with("both:1")).await;
    assert_eq!(
        known.status.unwrap().runs_on.as_deref(),
        Some("linux/arm64, windows(10.0.17763.1)/amd64")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_for_windows_is_told_at_once_which_build_it_needs() {
    let registry = Registry::start().unwrap();
    registry.put_image("team/app", Some("1"), "windows/amd64:10.0.20348.2113");
    let cluster = Cluster::new().await;
    cluster.node("amd", linux("amd64")).await;
    cluster.node("arm", linux("arm64")).await;
    let image = format!("{}/team/app:1", registry.address());
    cluster.pod("app", &image).await;
    let why = cluster.refusal("app").await;
    let wanted = format!(
        "0/2 nodes are available: 2 node(s) cannot run image {image}. No node can ever run image {image}: it needs a \
         host with a build from 20348 (Windows Server 2022) to 26100 (Windows Server 2025), windows/amd64; there are \
         linux/amd64 (1), linux/arm64 (1)."
    );
    assert!(why.starts_with(&wanted), "{why}");
}

#[test]
fn a_server_asks_the_mirrors_that_its_file_names() {
    let mirror = Registry::start().unwrap();
    mirror.put_image("team/app", Some("1"), "windows/amd64:10.0.20348.2113");
    let file = format!(
        "mirrors:\n  registry.example:\n    endpoint: [http://{}]\n",
        mirror.address()
    );
    let flags = &["--registries", "registries.yaml"];
    let server = Server::start_with_file("registries.yaml", &file, flags);
    server.ok("kubectl run app --image=registry.example/team/app:1");
    let image = format!(
        "images.transom.dev/{}",
        object_name("registry.example/team/app:1")
    );
    server.ok(&format!("kubectl wait --for=create {image} --timeout=50s"));
    server.ok(&format!(
        "kubectl wait --for=jsonpath='{{.status.runsOn}}' {image} --timeout=50s"
    ));
    let told = server.ok(&format!(
        "kubectl get {image} -o jsonpath={{.status.runsOn}}"
    ));
    assert_eq!(told.trim(), "windows(10.0.20348.2113)/amd64");
}
