//! An API server over an empty store, with all controllers running.

use std::{collections::BTreeMap, fmt::Debug, pin::pin, sync::Arc, time::Duration};

use futures::StreamExt as _;
use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    serde::{Serialize, de::DeserializeOwned},
};
use kube::{
    Api as Objects, Client, Resource, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
    core::DynamicObject,
    discovery::ApiResource,
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
use transom_controllers::Options;
use transom_store::Memory;

/// How long a test waits for anything.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);
pub(crate) const ROOT_CA: &str = "-----BEGIN CERTIFICATE-----\n";

pub(crate) struct Cluster {
    pub(crate) client: Client,
    feed: JoinHandle<()>,
    controllers: JoinHandle<()>,
    stop: CancellationToken,
    options: Options,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.controllers.abort();
        self.feed.abort();
    }
}

impl Cluster {
    pub(crate) async fn new() -> Self {
        Self::with(Options::default()).await
    }

    pub(crate) async fn with(options: Options) -> Self {
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
        let options = Options {
            root_ca: ROOT_CA.to_owned(),
            ..options
        };
        let (controllers, stop) = start(&client, options.clone());
        Self {
            client,
            feed,
            controllers,
            stop,
            options,
        }
    }

    pub(crate) fn all<K: Resource<DynamicType = ()>>(&self) -> Objects<K> {
        Objects::all(self.client.clone())
    }

    pub(crate) fn maps(&self, namespace: &str) -> Objects<ConfigMap> {
        Objects::namespaced(self.client.clone(), namespace)
    }

    pub(crate) async fn namespace(&self, name: &str) -> Namespace {
        let value = json!({"metadata": {"name": name}, "spec": {"finalizers": ["kubernetes"]}});
        create(&self.all(), value).await
    }

    /// Defines a kind and gives access to its objects in a namespace.
    pub(crate) async fn define(&self, namespace: &str) -> Objects<DynamicObject> {
        self.define_with(namespace, json!({})).await
    }

    pub(crate) async fn define_with(
        &self,
        namespace: &str,
        subresources: Value,
    ) -> Objects<DynamicObject> {
        let definition = json!({
            "metadata": {"name": "widgets.example.org"},
            "spec": {
                "group": "example.org",
                "scope": "Namespaced",
                "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "subresources": subresources,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }],
            },
        });
        let definitions = self.all::<CustomResourceDefinition>();
        create(&definitions, definition).await;
        when(&definitions, "widgets.example.org", |definition| {
            let status = definition.status.as_ref();
            let mut conditions = status
                .into_iter()
                .flat_map(|status| status.conditions.iter().flatten());
            conditions.any(|one| one.type_ == "Established" && one.status == "True")
        })
        .await;
        let resource = ApiResource {
            group: "example.org".to_owned(),
            version: "v1".to_owned(),
            api_version: "example.org/v1".to_owned(),
            kind: "Widget".to_owned(),
            plural: "widgets".to_owned(),
        };
        Objects::namespaced_with(self.client.clone(), namespace, &resource)
    }

    /// Ends the controllers wherever they are, and starts others that know nothing.
    pub(crate) async fn restart_controllers(&mut self) {
        self.controllers.abort();
        // They were told to end in the middle of their work.
        let _ = (&mut self.controllers).await;
        (self.controllers, self.stop) = start(&self.client, self.options.clone());
    }

    /// Tells the controllers to stop and waits until they did.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        let ended = tokio::time::timeout(PATIENCE, &mut self.controllers).await;
        ended.expect("the controllers should stop").unwrap();
    }
}

fn start(client: &Client, options: Options) -> (JoinHandle<()>, CancellationToken) {
    let stop = CancellationToken::new();
    let run = transom_controllers::run(client.clone(), options, stop.clone());
    (tokio::spawn(run), stop)
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

pub(crate) async fn merge<K>(objects: &Objects<K>, name: &str, patch: Value) -> K
where
    K: Clone + Debug + DeserializeOwned,
{
    let parameters = PatchParams::default();
    objects
        .patch(name, &parameters, &Patch::Merge(patch))
        .await
        .unwrap()
}

/// Waits until an object is as the test wants it.
pub(crate) async fn when<K>(objects: &Objects<K>, name: &str, is_wanted: impl Fn(&K) -> bool) -> K
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let found = until(objects, name, |seen| seen.is_some_and(&is_wanted)).await;
    found.unwrap()
}

/// Waits until an object, known by its uid, is gone.
pub(crate) async fn gone<K>(objects: &Objects<K>, object: &K)
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let is_gone = |seen: Option<&K>| seen.is_none_or(|seen| seen.uid() != object.uid());
    until(objects, &object.name_any(), is_gone).await;
}

/// Waits until an object, known by its uid, is gone or on its way out.
pub(crate) async fn going<K>(objects: &Objects<K>, object: &K)
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let is_going = |seen: Option<&K>| {
        seen.is_none_or(|seen| {
            seen.uid() != object.uid() || seen.meta().deletion_timestamp.is_some()
        })
    };
    until(objects, &object.name_any(), is_going).await;
}

/// Waits until all objects together, by their names, are as the test wants them.
pub(crate) async fn when_all<K>(
    objects: &Objects<K>,
    are_wanted: impl Fn(&BTreeMap<String, K>) -> bool,
) -> BTreeMap<String, K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let events = watcher(objects.clone(), watcher::Config::default());
    let mut events = pin!(events.default_backoff());
    let mut all = BTreeMap::new();
    let waiting = tokio::time::timeout(PATIENCE, async {
        let mut is_whole = false;
        loop {
            match events.next().await.unwrap().unwrap() {
                watcher::Event::Init => {
                    is_whole = false;
                    all.clear();
                }
                watcher::Event::InitApply(object) | watcher::Event::Apply(object) => {
                    all.insert(object.name_any(), object);
                }
                watcher::Event::InitDone => is_whole = true,
                watcher::Event::Delete(object) => {
                    all.remove(&object.name_any());
                }
            }
            if is_whole && are_wanted(&all) {
                return;
            }
        }
    });
    let in_time = waiting.await.is_ok();
    assert!(in_time, "they did not become what they should be: {all:?}");
    all
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
