//! Definitions of custom resources that are deleted while there are objects.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    ResourceExt as _,
    api::{DeleteParams, ListParams},
};
use serde_json::json;

use crate::cluster::{Cluster, create, gone, merge};

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_is_not_served_takes_its_objects_along() {
    let cluster = Cluster::new().await;
    cluster.namespace("work").await;
    let widgets = cluster.define("work").await;
    let widget =
        json!({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w"}});
    let old = create(&widgets, widget.clone()).await;

    let definitions = cluster.all::<CustomResourceDefinition>();
    let definition = definitions.get("widgets.example.org").await.unwrap();
    let mut versions = json!(definition.spec.versions);
    versions[0]["served"] = false.into();
    let spec = json!({"spec": {"versions": versions}});
    merge(&definitions, &definition.name_any(), spec).await;
    definitions
        .delete(&definition.name_any(), &DeleteParams::default())
        .await
        .unwrap();
    gone(&definitions, &definition).await;

    // The next definition of that name begins with nothing.
    let widgets = cluster.define("work").await;
    let left = widgets.list(&ListParams::default()).await.unwrap();
    assert_eq!(left.items.len(), 0);
    let new = create(&widgets, widget).await;
    assert_ne!(new.uid(), old.uid());
    cluster.stop().await;
}
