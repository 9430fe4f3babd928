//! Daemons on the nodes of a cluster that exist on paper.

use std::collections::BTreeMap;

use k8s_openapi::api::{
    apps::v1::{ControllerRevision, DaemonSet},
    core::v1::{Node as KubeNode, Pod},
};
use kube::{
    Api as Objects, ResourceExt as _,
    api::{DeleteParams, ListParams},
};
use serde_json::{Value, json};
use transom_model::images::{canonical, object_name};

use crate::{
    cluster::{Cluster, create, gone, merge, when, when_all},
    deployments::{cluster, images, of},
    images::images as image_objects,
    node::{Fate, Node},
};

fn template(image: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "d"}},
        "spec": {"containers": [{"name": "c", "image": image}]},
    })
}

async fn nodes(cluster: &Cluster, names: &[&str]) {
    for name in names {
        let value = json!({"metadata": {"name": name}});
        create::<KubeNode>(&cluster.all(), value).await;
        // A new node is tainted until somebody says that it is well.
        let taints = json!({"spec": {"taints": null}});
        merge::<KubeNode>(&cluster.all(), name, taints).await;
    }
}

fn is_rolled_out(set: &DaemonSet, number: i32) -> bool {
    let Some(status) = &set.status else {
        return false;
    };
    status.observed_generation == set.metadata.generation
        && status.desired_number_scheduled == number
        && status.updated_number_scheduled == Some(number)
        && status.number_available == Some(number)
        && status.number_unavailable.is_none()
}

#[tokio::test(flavor = "multi_thread")]
async fn daemons_follow_the_nodes_and_are_updated_and_go() {
    let mut cluster = cluster().await;
    let _node = Node::new(&cluster.client, |_| Fate::Ready);
    nodes(&cluster, &["a", "b"]).await;
    let (sets, pods) = (of::<DaemonSet>(&cluster), of::<Pod>(&cluster));
    let value = json!({
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"app": "d"}}, "template": template("one")},
    });
    let set = create(&sets, value).await;
    when(&sets, "d", |set| is_rolled_out(set, 2)).await;
    nodes(&cluster, &["c"]).await;
    when(&sets, "d", |set| is_rolled_out(set, 3)).await;

    merge(&sets, "d", json!({"spec": {"template": template("two")}})).await;
    cluster.restart_controllers().await;
    when(&sets, "d", |set| is_rolled_out(set, 3)).await;
    assert_eq!(images(&pods).await, ["two"; 3]);
    let revisions = of::<ControllerRevision>(&cluster);
    let list = revisions.list(&ListParams::default()).await.unwrap();
    let mut numbers: Vec<i64> = list.iter().map(|one| one.revision).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2]);

    sets.delete("d", &DeleteParams::foreground()).await.unwrap();
    gone(&sets, &set).await;
    // The set may hear of the end of a daemon before it hears of its own, and make one more, which goes later.
    when_all(&pods, BTreeMap::is_empty).await;
    for revision in list {
        gone(&revisions, &revision).await;
    }
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_daemon_says_for_which_node_it_is() {
    let cluster = cluster().await;
    nodes(&cluster, &["a"]).await;
    // Never without a taint: the controller may see the set before it sees a change of the node.
    let name = json!({"metadata": {"name": "b"}});
    create::<KubeNode>(&cluster.all(), name).await;
    let taints = json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}});
    merge::<KubeNode>(&cluster.all(), "b", taints).await;
    let (sets, pods) = (of::<DaemonSet>(&cluster), of::<Pod>(&cluster));
    let value = json!({
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"app": "d"}}, "template": template("one")},
    });
    create(&sets, value).await;
    when(&sets, "d", |set| {
        set.status
            .as_ref()
            .is_some_and(|status| status.current_number_scheduled == 1)
    })
    .await;
    let list = pods.list(&ListParams::default()).await.unwrap();
    assert_eq!(list.items.len(), 1, "{list:?}");
    let affinity = json!(list.items[0].spec.as_ref().unwrap().affinity);
    let terms = &affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
    let wanted =
        json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}]);
    assert_eq!(*terms, wanted);
    assert!(
        list.items[0]
            .labels()
            .contains_key("controller-revision-hash")
    );
}

/// The nodes that daemons are for, except for those that go.
async fn places(pods: &Objects<Pod>) -> Vec<String> {
    let list = pods.list(&ListParams::default()).await.unwrap();
    live_places(list.iter())
}

fn live_places<'a>(pods: impl Iterator<Item = &'a Pod>) -> Vec<String> {
    let live = pods.filter(|pod| pod.metadata.deletion_timestamp.is_none());
    let mut places: Vec<String> = live
        .map(|pod| {
            let affinity = json!(pod.spec.as_ref().unwrap().affinity);
            let required =
                &affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
            let field = &required["nodeSelectorTerms"][0]["matchFields"][0];
            field["values"][0].as_str().unwrap().to_owned()
        })
        .collect();
    places.sort();
    places
}

/// Waits until a set wants, and has, so many daemons.
async fn placed(sets: &Objects<DaemonSet>, number: i32) {
    when(sets, "d", |set| {
        set.status.as_ref().is_some_and(|status| {
            status.desired_number_scheduled == number
                && status.current_number_scheduled == number
                && status.number_misscheduled == 0
        })
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn daemons_go_where_their_images_can_run_as_soon_as_that_is_known() {
    let mut cluster = cluster().await;
    let _node = Node::new(&cluster.client, |_| Fate::Pending);
    nodes(&cluster, &["l", "w"]).await;
    for (name, os) in [("l", "linux"), ("w", "windows")] {
        let labels = json!({"kubernetes.io/os": os, "kubernetes.io/arch": "amd64"});
        let change = json!({"metadata": {"labels": labels}});
        merge::<KubeNode>(&cluster.all(), name, change).await;
    }
    let (sets, pods) = (of::<DaemonSet>(&cluster), of::<Pod>(&cluster));
    let value = json!({
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"app": "d"}}, "template": template("app:1")},
    });
    create(&sets, value).await;
    placed(&sets, 2).await;
    assert_eq!(places(&pods).await, ["l", "w"]);

    let linux = json!({"os": "linux", "architecture": "amd64"});
    let windows = json!({"os": "windows", "architecture": "amd64"});
    let objects = image_objects(&cluster);
    let name = object_name("app:1");
    let image = json!({
        "apiVersion": "transom.dev/v1", "kind": "Image", "metadata": {"name": name},
        "spec": {"reference": canonical("app:1")}, "status": {"platforms": [linux]},
    });
    create(&objects, image).await;
    placed(&sets, 1).await;
    assert_eq!(places(&pods).await, ["l"]);
    // Also for controllers that begin anew, and for a node that does not say what it is.
    cluster.restart_controllers().await;
    nodes(&cluster, &["x"]).await;
    // They wait some seconds for what is known of images, and may go wrong for a moment if that takes longer.
    when_all(&pods, |all| live_places(all.values()) == ["l", "x"]).await;
    placed(&sets, 2).await;
    assert_eq!(places(&pods).await, ["l", "x"]);

    let change = json!({"status": {"platforms": [linux, windows]}});
    merge(&objects, &name, change).await;
    placed(&sets, 3).await;
    assert_eq!(places(&pods).await, ["l", "w", "x"]);
    cluster.stop().await;
}
