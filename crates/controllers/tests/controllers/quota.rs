//! Quotas whose use goes down again.

use k8s_openapi::api::core::v1::{ConfigMap, ResourceQuota, Service};
use kube::{
    Api as Objects,
    api::{DeleteParams, PostParams},
};
use serde_json::json;

use crate::cluster::{Cluster, create, when};

fn used(quota: &ResourceQuota, name: &str) -> Option<String> {
    let used = quota.status.as_ref()?.used.as_ref()?;
    used.get(name).map(|quantity| quantity.0.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_can_be_made_again() {
    let cluster = Cluster::new().await;
    cluster.namespace("work").await;
    when(&cluster.maps("work"), "kube-root-ca.crt", |_| true).await;
    let quotas: Objects<ResourceQuota> = Objects::namespaced(cluster.client.clone(), "work");
    let quota = json!({
        "metadata": {"name": "q"},
        "spec": {"hard": {"configmaps": "2", "services": "1"}},
    });
    create(&quotas, quota).await;
    let counted = |quota: &ResourceQuota| {
        used(quota, "configmaps").as_deref() == Some("1")
            && used(quota, "services").as_deref() == Some("0")
    };
    when(&quotas, "q", counted).await;
    let maps: Objects<ConfigMap> = cluster.maps("work");
    let services: Objects<Service> = Objects::namespaced(cluster.client.clone(), "work");
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 1}]}});
    create(&services, service).await;
    create(&maps, json!({"metadata": {"name": "m"}})).await;
    let full = when(&quotas, "q", |quota| {
        used(quota, "configmaps").as_deref() == Some("2")
    })
    .await;
    assert_eq!(used(&full, "services").as_deref(), Some("1"));
    let one_more: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "n"}})).unwrap();
    let parameters = PostParams::default();
    maps.create(&parameters, &one_more).await.unwrap_err();
    maps.delete("m", &DeleteParams::default()).await.unwrap();
    services
        .delete("s", &DeleteParams::default())
        .await
        .unwrap();
    when(&quotas, "q", counted).await;
    maps.create(&parameters, &one_more).await.unwrap();
    cluster.stop().await;
}
