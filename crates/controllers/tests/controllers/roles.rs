//! Cluster roles that are made of others.

use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::{
    Api as Objects, ResourceExt as _,
    api::{DeleteParams, PostParams},
};
use serde_json::json;

use crate::cluster::{Cluster, when};

#[tokio::test(flavor = "multi_thread")]
async fn a_role_of_parts_follows_them() {
    let cluster = Cluster::new().await;
    let roles: Objects<ClusterRole> = cluster.all();
    let make = async |value| {
        let role: ClusterRole = serde_json::from_value(value).unwrap();
        roles.create(&PostParams::default(), &role).await.unwrap()
    };
    make(json!({
        "metadata": {"name": "whole"},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"part-of": "whole"}}]},
    }))
    .await;
    make(json!({
        "metadata": {"name": "part", "labels": {"part-of": "whole"}},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    }))
    .await;
    let count = |role: &ClusterRole| role.rules.as_ref().map_or(0, Vec::len);
    let whole = when(&roles, "whole", |role| count(role) == 1).await;
    let writers: Vec<String> = whole
        .managed_fields()
        .iter()
        .filter_map(|entry| entry.manager.clone())
        .collect();
    assert!(
        writers.contains(&"clusterrole-aggregation-controller".to_owned()),
        "{writers:?}"
    );
    roles
        .delete("part", &DeleteParams::default())
        .await
        .unwrap();
    when(&roles, "whole", |role| count(role) == 0).await;
    cluster.stop().await;
}
