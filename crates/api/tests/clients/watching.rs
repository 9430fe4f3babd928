//! Watches as operators use them: kube-rs' watcher and reflector, over changes, ends, restarts and lost
//! history.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, PartialObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::watcher::{self, Event};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::served::{Served, config_map};

const LIMIT: Duration = Duration::from_mins(1);

/// A reflector in the background, ended with the test.
struct Reflector {
    store: reflector::Store<ConfigMap>,
    /// How often it was told that its version is too old.
    too_old: Arc<AtomicUsize>,
    follower: tokio::task::JoinHandle<()>,
}

impl Drop for Reflector {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

/// Follows config maps; errors are part of it, since the watcher begins again by itself.
fn reflect(served: &Served, config: watcher::Config) -> Reflector {
    let maps: Api<ConfigMap> = Api::default_namespaced(served.client());
    let (store, writer) = reflector::store();
    let stream = watcher::watcher(maps, config)
        .default_backoff()
        .reflect(writer);
    let too_old = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&too_old);
    let follower = tokio::spawn(async move {
        let mut stream = std::pin::pin!(stream);
        while let Some(event) = stream.next().await {
            if let Err(watcher::Error::WatchError(status)) = event
                && status.code == 410
            {
                counter.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    Reflector {
        store,
        too_old,
        follower,
    }
}

/// Waits until the reflector has `value` in the map `name`.
async fn until(reflector: &Reflector, name: &str, value: Option<&str>) {
    let key = ObjectRef::new(name).within("default");
    let seen = || {
        let map = reflector.store.get(&key)?;
        map.data.as_ref()?.get("a").cloned()
    };
    let what = format!("{name} to be {value:?}");
    eventually(&what, || seen().as_deref() == value).await;
}

async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let done = tokio::time::timeout(LIMIT, waiting).await;
    assert!(done.is_ok(), "waited {LIMIT:?} for {what}");
}

async fn set(served: &Served, name: &str, value: &str) {
    let maps: Api<ConfigMap> = Api::default_namespaced(served.client());
    let patch =
        Patch::Apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": value}}));
    maps.patch(name, &PatchParams::apply("test"), &patch)
        .await
        .unwrap();
}

async fn remove(served: &Served, name: &str) {
    let maps: Api<ConfigMap> = Api::default_namespaced(served.client());
    maps.delete(name, &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn a_reflector_follows_changes_over_the_ends_of_watches() {
    let served = Served::new().await;
    set(&served, "one", "1").await;
    // Each watch ends after a second.
    let reflector = reflect(&served, watcher::Config::default().timeout(1));
    until(&reflector, "one", Some("1")).await;
    for round in 0..4 {
        let value = format!("round {round}");
        set(&served, "one", &value).await;
        until(&reflector, "one", Some(&value)).await;
        let before = served.watches();
        eventually("another watch", || served.watches() > before).await;
    }
    remove(&served, "one").await;
    until(&reflector, "one", None).await;
}

#[tokio::test]
async fn a_reflector_begins_with_a_stream_of_what_is_there() {
    let served = Served::new().await;
    set(&served, "one", "1").await;
    let reflector = reflect(&served, watcher::Config::default().streaming_lists());
    until(&reflector, "one", Some("1")).await;
    set(&served, "two", "2").await;
    until(&reflector, "two", Some("2")).await;
}

#[tokio::test]
async fn a_reflector_finds_its_way_after_a_restart() {
    let mut served = Served::new().await;
    set(&served, "one", "1").await;
    let reflector = reflect(&served, watcher::Config::default().timeout(2));
    until(&reflector, "one", Some("1")).await;
    set(&served, "two", "2").await;
    served.restart().await;
    set(&served, "one", "after").await;
    remove(&served, "two").await;
    until(&reflector, "one", Some("after")).await;
    until(&reflector, "two", None).await;
}

#[tokio::test]
async fn a_reflector_lists_again_when_its_history_is_gone() {
    let mut served = Served::new().await;
    set(&served, "one", "1").await;
    // A server that starts now has no history of before.
    served.restart().await;
    let reflector = reflect(&served, watcher::Config::default().timeout(1));
    until(&reflector, "one", Some("1")).await;
    served.send_next_watch_back().await;
    set(&served, "one", "2").await;
    eventually("a watch to be refused", || {
        reflector.too_old.load(Ordering::SeqCst) > 0
    })
    .await;
    set(&served, "one", "3").await;
    until(&reflector, "one", Some("3")).await;
}

#[tokio::test]
async fn a_watch_of_metadata_has_names_and_no_data() {
    let served = Served::new().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(served.client());
    maps.create(&PostParams::default(), &config_map("one", "a", "1"))
        .await
        .unwrap();
    let described: Api<PartialObjectMeta<ConfigMap>> = Api::default_namespaced(served.client());
    let one = described.get("one").await.unwrap();
    assert_eq!(one.name_any(), "one");
    assert_eq!(one.types.unwrap().kind, "PartialObjectMetadata");
    let mut stream = std::pin::pin!(watcher::watcher(described, watcher::Config::default()));
    let found = async {
        loop {
            let event = stream.next().await.unwrap().unwrap();
            if let Event::InitApply(object) | Event::Apply(object) = event {
                return object;
            }
        }
    };
    let found = tokio::time::timeout(LIMIT, found).await.unwrap();
    assert_eq!(found.name_any(), "one");
}
