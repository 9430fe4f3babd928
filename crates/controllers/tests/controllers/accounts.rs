//! What every namespace has.

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::{Api as Objects, ResourceExt as _, api::DeleteParams};
use serde_json::json;

use crate::cluster::{Cluster, ROOT_CA, gone, merge, when};

#[tokio::test(flavor = "multi_thread")]
async fn account_and_certificates_appear_in_every_namespace_and_come_back() {
    let cluster = Cluster::new().await;
    for name in ["one", "two"] {
        cluster.namespace(name).await;
    }
    for name in ["one", "two"] {
        let accounts: Objects<ServiceAccount> = Objects::namespaced(cluster.client.clone(), name);
        let maps = cluster.maps(name);
        let account = when(&accounts, "default", |_| true).await;
        let map = when(&maps, "kube-root-ca.crt", |_| true).await;
        assert_eq!(map.data.unwrap()["ca.crt"], ROOT_CA);

        let background = DeleteParams::background();
        accounts.delete("default", &background).await.unwrap();
        when(&accounts, "default", |newer| newer.uid() != account.uid()).await;
        let old = map.metadata.uid.clone();
        maps.delete("kube-root-ca.crt", &background).await.unwrap();
        when(&maps, "kube-root-ca.crt", |newer| newer.uid() != old).await;

        let changed = json!({"data": {"ca.crt": "other", "more": "x"}});
        merge(&maps, "kube-root-ca.crt", changed).await;
        let mended = when(&maps, "kube-root-ca.crt", |map| {
            map.data
                .as_ref()
                .is_some_and(|data| data["ca.crt"] == ROOT_CA)
        })
        .await;
        assert_eq!(mended.data.unwrap().len(), 1);
    }
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_has_them_can_go() {
    let cluster = Cluster::new().await;
    let namespaces = cluster.all::<Namespace>();
    let namespace = cluster.namespace("brief").await;
    when(&cluster.maps("brief"), "kube-root-ca.crt", |_| true).await;
    namespaces
        .delete("brief", &DeleteParams::default())
        .await
        .unwrap();
    gone(&namespaces, &namespace).await;
}
