//! Namespaces that are deleted with things in them.

use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::{
    Api as Objects,
    api::{DeleteParams, ListParams},
};
use serde_json::json;

use crate::cluster::{Cluster, create, gone, merge, when};

fn condition(namespace: &Namespace, kind: &str) -> Option<(String, String)> {
    let conditions = namespace.status.as_ref()?.conditions.as_ref()?;
    let one = conditions.iter().find(|one| one.type_ == kind)?;
    Some((one.status.clone(), one.message.clone().unwrap_or_default()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_goes_when_the_last_finalizer_in_it_is_gone() {
    let cluster = Cluster::new().await;
    let namespaces = cluster.all::<Namespace>();
    let namespace = cluster.namespace("work").await;
    let maps = cluster.maps("work");
    for name in ["first", "second"] {
        create(&maps, json!({"metadata": {"name": name}})).await;
    }
    let widgets = cluster.define("work").await;
    let widget =
        json!({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w"}});
    let widget = create(&widgets, widget).await;
    // A pod is admitted when its account is there.
    let accounts: Objects<ServiceAccount> = Objects::namespaced(cluster.client.clone(), "work");
    when(&accounts, "default", |_| true).await;
    let pods: Objects<Pod> = Objects::namespaced(cluster.client.clone(), "work");
    let pod = json!({
        "metadata": {"name": "p", "finalizers": ["example.org/hold"]},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let pod = create(&pods, pod).await;

    namespaces
        .delete("work", &DeleteParams::default())
        .await
        .unwrap();
    let held = when(&namespaces, "work", |namespace| {
        condition(namespace, "NamespaceFinalizersRemaining")
            .is_some_and(|(status, _)| status == "True")
    })
    .await;
    assert_eq!(
        condition(&held, "NamespaceContentRemaining").unwrap().1,
        "Some resources are remaining: pods. has 1 resource instances"
    );
    assert_eq!(
        condition(&held, "NamespaceFinalizersRemaining").unwrap().1,
        "Some content in the namespace has finalizers remaining: example.org/hold in 1 resource instances"
    );
    // Pods go first: the rest is still there.
    assert!(maps.get_opt("first").await.unwrap().is_some());
    assert!(
        pods.get("p")
            .await
            .unwrap()
            .metadata
            .deletion_timestamp
            .is_some()
    );

    merge(&pods, "p", json!({"metadata": {"finalizers": null}})).await;
    gone(&namespaces, &namespace).await;
    gone(&pods, &pod).await;
    gone(&widgets, &widget).await;
    let left = cluster
        .maps("work")
        .list(&ListParams::default())
        .await
        .unwrap();
    assert_eq!(left.items, []);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn finalizers_of_others_keep_a_namespace_that_is_empty() {
    let cluster = Cluster::new().await;
    let namespaces = cluster.all::<Namespace>();
    let value = json!({
        "metadata": {"name": "kept"},
        "spec": {"finalizers": ["kubernetes", "example.org/other"]},
    });
    create(&namespaces, value).await;
    namespaces
        .delete("kept", &DeleteParams::default())
        .await
        .unwrap();
    let kept = when(&namespaces, "kept", |namespace| {
        let finalizers = namespace
            .spec
            .as_ref()
            .and_then(|spec| spec.finalizers.as_ref());
        finalizers.is_some_and(|list| list == &["example.org/other"])
    })
    .await;
    assert_eq!(
        condition(&kept, "NamespaceContentRemaining").unwrap().0,
        "False"
    );
}
