//! Workloads that are sized by what their pods use.

use k8s_openapi::{
    api::{
        autoscaling::v2::HorizontalPodAutoscaler,
        core::v1::{Pod, ServiceAccount},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api as Objects,
    api::{ApiResource, Patch, PatchParams},
    core::DynamicObject,
};
use serde_json::{Value, json};

use crate::cluster::{Cluster, create, when};

/// Defines a kind, and gives access to its objects.
async fn define(
    cluster: &Cluster,
    group: &str,
    version: &str,
    kind: &str,
    plural: &str,
    subresources: Value,
) -> Objects<DynamicObject> {
    let name = format!("{plural}.{group}");
    let definitions = cluster.all::<CustomResourceDefinition>();
    let definition = json!({
        "metadata": {"name": name, "annotations": {"api-approved.kubernetes.io": "https://example.org/approved"}},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{
                "name": version, "served": true, "storage": true, "subresources": subresources,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    });
    create(&definitions, definition).await;
    when(&definitions, &name, |definition| {
        let conditions = definition
            .status
            .iter()
            .flat_map(|status| status.conditions.iter().flatten());
        let mut established = conditions.filter(|one| one.type_ == "Established");
        established.any(|one| one.status == "True")
    })
    .await;
    let resource = ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: format!("{group}/{version}"),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    };
    Objects::namespaced_with(cluster.client.clone(), "work", &resource)
}

fn condition(scaler: &HorizontalPodAutoscaler, kind: &str) -> Option<(String, String)> {
    let conditions = scaler.status.as_ref()?.conditions.as_ref()?;
    let found = conditions.iter().find(|each| each.type_ == kind)?;
    Some((found.status.clone(), found.reason.clone()?))
}

#[tokio::test(start_paused = true)]
async fn a_workload_is_kept_within_its_bounds_while_nobody_measures_it() {
    let cluster = Cluster::new().await;
    cluster.namespace("work").await;
    let accounts: Objects<ServiceAccount> = Objects::namespaced(cluster.client.clone(), "work");
    when(&accounts, "default", |_| true).await;
    let scale = json!({"status": {}, "scale": {
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }});
    let crews = define(&cluster, "example.org", "v1", "Crew", "crews", scale).await;
    let crew = json!({
        "apiVersion": "example.org/v1", "kind": "Crew", "metadata": {"name": "crew"}, "spec": {"replicas": 2},
    });
    create(&crews, crew).await;
    let status = json!({"status": {"replicas": 2, "selector": "app=web"}});
    crews
        .patch_status("crew", &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
    let pods: Objects<Pod> = Objects::namespaced(cluster.client.clone(), "work");
    for name in ["a", "b"] {
        let pod = json!({
            "metadata": {"name": name, "labels": {"app": "web"}},
            "spec": {"nodeName": "node", "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
        });
        create(&pods, pod).await;
        let running = json!({"status": {
            "phase": "Running", "startTime": "2026-01-01T00:00:00Z",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:01Z"}],
        }});
        pods.patch_status(name, &PatchParams::default(), &Patch::Merge(running))
            .await
            .unwrap();
    }
    let scalers: Objects<HorizontalPodAutoscaler> =
        Objects::namespaced(cluster.client.clone(), "work");
    let scaler = json!({
        "metadata": {"name": "scaler"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "example.org/v1", "kind": "Crew", "name": "crew"},
            "minReplicas": 1, "maxReplicas": 5,
            "metrics": [{"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 45},
            }}],
        },
    });
    create(&scalers, scaler).await;
    // Nobody measures yet.
    let failed = ("False".to_owned(), "FailedGetResourceMetric".to_owned());
    when(&scalers, "scaler", |scaler| {
        condition(scaler, "ScalingActive").as_ref() == Some(&failed)
    })
    .await;
    let bounds = json!({"spec": {"minReplicas": 4}});
    let how = PatchParams::default();
    scalers
        .patch("scaler", &how, &Patch::Merge(bounds))
        .await
        .unwrap();
    when(&crews, "crew", |crew| crew.data["spec"]["replicas"] == 4).await;
    let done = when(&scalers, "scaler", |scaler| {
        let status = scaler.status.as_ref();
        status.is_some_and(|status| status.desired_replicas == 4)
    })
    .await;
    let able = ("True".to_owned(), "SucceededRescale".to_owned());
    assert_eq!(condition(&done, "AbleToScale"), Some(able));
    cluster.stop().await;
}
