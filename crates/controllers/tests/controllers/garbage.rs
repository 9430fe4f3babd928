//! Owners that go, and what becomes of what they own.

use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace};
use kube::{
    Api as Objects, Resource, ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::{Value, json};

use crate::cluster::{Cluster, create, gone, merge, when};

fn reference(owner: &ConfigMap) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": owner.name_any(), "uid": owner.uid(),
        "blockOwnerDeletion": true,
    })
}

async fn map(
    maps: &Objects<ConfigMap>,
    name: &str,
    owners: &[&ConfigMap],
    finalizers: &[&str],
) -> ConfigMap {
    let owners: Vec<Value> = owners.iter().map(|owner| reference(owner)).collect();
    let metadata = json!({"name": name, "ownerReferences": owners, "finalizers": finalizers});
    create(maps, json!({"metadata": metadata})).await
}

async fn cluster() -> (Cluster, Objects<ConfigMap>) {
    let cluster = Cluster::new().await;
    cluster.namespace("n").await;
    let maps = cluster.maps("n");
    (cluster, maps)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_owner_owns_goes_with_it_over_two_levels() {
    let (cluster, maps) = cluster().await;
    let owner = map(&maps, "owner", &[], &[]).await;
    let child = map(&maps, "child", &[&owner], &[]).await;
    let grandchild = map(&maps, "grandchild", &[&child], &[]).await;
    let other = map(&maps, "other", &[], &[]).await;
    let shared = map(&maps, "shared", &[&owner, &other], &[]).await;

    maps.delete("owner", &DeleteParams::background())
        .await
        .unwrap();
    for object in [&owner, &child, &grandchild] {
        gone(&maps, object).await;
    }
    let kept = when(&maps, "shared", |map| map.owner_references().len() == 1).await;
    assert_eq!(kept.uid(), shared.uid());
    assert_eq!(kept.owner_references()[0].uid, other.uid().unwrap());
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_names_an_owner_which_never_was_goes() {
    let (_cluster, maps) = cluster().await;
    let mut owner = map(&maps, "owner", &[], &[]).await;
    owner.meta_mut().uid = Some("00000000-0000-4000-8000-000000000000".to_owned());
    let child = map(&maps, "child", &[&owner], &[]).await;
    gone(&maps, &child).await;
    assert!(maps.get_opt("owner").await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn in_the_foreground_an_owner_goes_after_what_it_owns() {
    let (cluster, maps) = cluster().await;
    let owner = map(&maps, "owner", &[], &[]).await;
    let child = map(&maps, "child", &[&owner], &[]).await;
    let grandchild = map(&maps, "grandchild", &[&child], &["example.org/hold"]).await;

    maps.delete("owner", &DeleteParams::foreground())
        .await
        .unwrap();
    let held = when(&maps, "grandchild", |map| {
        map.metadata.deletion_timestamp.is_some()
    })
    .await;
    assert_eq!(held.uid(), grandchild.uid());
    for name in ["owner", "child"] {
        let waiting = maps.get(name).await.unwrap();
        assert!(waiting.metadata.deletion_timestamp.is_some());
        assert_eq!(waiting.finalizers(), ["foregroundDeletion"]);
    }
    merge(
        &maps,
        "grandchild",
        json!({"metadata": {"finalizers": null}}),
    )
    .await;
    gone(&maps, &owner).await;
    let left: Vec<String> = maps
        .list(&ListParams::default())
        .await
        .unwrap()
        .iter()
        .map(ResourceExt::name_any)
        .collect();
    assert!(!left.contains(&"child".to_owned()) && !left.contains(&"grandchild".to_owned()));
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orphans_stay_without_their_owner() {
    let (cluster, maps) = cluster().await;
    let owner = map(&maps, "owner", &[], &[]).await;
    let child = map(&maps, "child", &[&owner], &[]).await;
    let grandchild = map(&maps, "grandchild", &[&child], &[]).await;
    maps.delete("owner", &DeleteParams::orphan()).await.unwrap();
    gone(&maps, &owner).await;
    let kept = maps.get("child").await.unwrap();
    assert_eq!(kept.uid(), child.uid());
    assert_eq!(kept.owner_references(), []);
    assert!(kept.metadata.deletion_timestamp.is_none());
    assert_eq!(
        maps.get("grandchild").await.unwrap().uid(),
        grandchild.uid()
    );
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_resources_that_are_defined_later_are_collected_too() {
    let (cluster, maps) = cluster().await;
    let owner = map(&maps, "owner", &[], &[]).await;
    let widgets = cluster.define("n").await;
    let widget = json!({
        "apiVersion": "example.org/v1", "kind": "Widget",
        "metadata": {"name": "w", "ownerReferences": [reference(&owner)]},
    });
    let widget = create(&widgets, widget).await;
    maps.delete("owner", &DeleteParams::background())
        .await
        .unwrap();
    gone(&widgets, &widget).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_in_no_namespace_with_an_owner_in_one_is_kept_and_told_of() {
    let (cluster, maps) = cluster().await;
    // Events about what is in no namespace go there, and one that cannot be written is lost.
    cluster.namespace("default").await;
    let owner = map(&maps, "owner", &[], &[]).await;
    let value = json!({"metadata": {"name": "wide", "ownerReferences": [reference(&owner)]}});
    let wide: Namespace = create(&cluster.all(), value).await;
    let events: Objects<Event> = Objects::all(cluster.client.clone());
    let uid = wide.uid().unwrap();
    told(&events, |event| {
        event.involved_object.uid.as_ref() == Some(&uid)
            && event.reason.as_deref() == Some("OwnerRefInvalidNamespace")
    })
    .await;
    let kept = cluster.all::<Namespace>().get("wide").await.unwrap();
    assert!(kept.metadata.deletion_timestamp.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_in_another_namespace_is_none() {
    let (cluster, maps) = cluster().await;
    let owner = map(&maps, "owner", &[], &[]).await;
    cluster.namespace("m").await;
    let others = cluster.maps("m");
    let stray = map(&others, "stray", &[&owner], &[]).await;
    gone(&others, &stray).await;
    assert!(maps.get_opt("owner").await.unwrap().is_some());
}

/// Waits for an event of a kind.
async fn told(events: &Objects<Event>, is_wanted: impl Fn(&Event) -> bool) {
    use futures::StreamExt as _;
    use kube::runtime::{WatchStreamExt as _, watcher};

    let config = watcher::Config::default();
    let stream = watcher(events.clone(), config)
        .default_backoff()
        .applied_objects();
    let mut stream = std::pin::pin!(stream.filter_map(async |event| event.ok()));
    let found = async {
        while let Some(event) = stream.next().await {
            if is_wanted(&event) {
                return;
            }
        }
    };
    let in_time = tokio::time::timeout(crate::cluster::PATIENCE, found).await;
    in_time.expect("an event should be there");
}
