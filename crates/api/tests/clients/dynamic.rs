//! Kinds that a program learns of while it runs: discovery, and objects without a type.

use std::time::Duration;

use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::discovery::{Discovery, Scope, verbs};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::served::{Served, refusal};

#[tokio::test]
async fn every_kind_that_discovery_names_can_be_listed() {
    let served = Served::new().await;
    let client = served.client();
    let discovery = Discovery::new(client.clone()).run().await.unwrap();
    let mut listed = 0;
    for group in discovery.groups() {
        for (resource, capabilities) in group.recommended_resources() {
            if !capabilities.supports_operation(verbs::LIST) {
                continue;
            }
            let api: Api<DynamicObject> = if capabilities.scope == Scope::Namespaced {
                Api::default_namespaced_with(client.clone(), &resource)
            } else {
                Api::all_with(client.clone(), &resource)
            };
            let list = api.list(&ListParams::default()).await;
            let list = list.unwrap_or_else(|error| panic!("{}: {error}", resource.kind));
            assert_eq!(list.types.kind, format!("{}List", resource.kind));
            listed += 1;
        }
    }
    assert!(listed > 40, "only {listed} kinds");
}

#[tokio::test]
async fn both_ways_of_discovery_name_the_same_kinds() {
    let served = Served::new().await;
    let names = |discovery: &Discovery| {
        let mut names: Vec<String> = discovery
            .groups()
            .flat_map(kube::discovery::ApiGroup::recommended_resources)
            .map(|(resource, _)| format!("{}/{}", resource.api_version, resource.plural))
            .collect();
        names.sort();
        names
    };
    let plain = Discovery::new(served.client()).run().await.unwrap();
    let aggregated = Discovery::new(served.client())
        .run_aggregated()
        .await
        .unwrap();
    assert_eq!(names(&plain), names(&aggregated));
}

#[tokio::test]
async fn a_kind_of_somebody_else_is_discovered_and_used() {
    let served = Served::new().await;
    let client = served.client();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gears.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "gears", "singular": "gear", "kind": "Gear"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {"type": "object", "properties": {"teeth": {"type": "integer", "default": 12, "maximum": 100}}},
                        "status": {"type": "object", "properties": {"turns": {"type": "integer"}}},
                    },
                }},
            }],
        },
    });
    let definitions: Api<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition> =
        Api::all(client.clone());
    let definition = serde_json::from_value(definition).unwrap();
    definitions
        .create(&PostParams::default(), &definition)
        .await
        .unwrap();
    let established = kube::runtime::conditions::is_crd_established();
    let waiting =
        kube::runtime::wait::await_condition(definitions, "gears.example.org", established);
    tokio::time::timeout(Duration::from_mins(1), waiting)
        .await
        .unwrap()
        .unwrap();

    let discovery = Discovery::new(client.clone())
        .filter(&["example.org"])
        .run()
        .await
        .unwrap();
    let group = discovery.get("example.org").unwrap();
    let (resource, capabilities) = group.recommended_kind("Gear").unwrap();
    assert!(capabilities.supports_operation(verbs::WATCH));
    let gears: Api<DynamicObject> = Api::default_namespaced_with(client, &resource);
    let gear = |name: &str, spec| DynamicObject::new(name, &resource).data(json!({"spec": spec}));
    let made = gears
        .create(
            &PostParams::default(),
            &gear("one", json!({"colour": "red"})),
        )
        .await
        .unwrap();
    assert_eq!(made.data["spec"], json!({"teeth": 12}));
    let wrong = gears
        .create(&PostParams::default(), &gear("two", json!({"teeth": 101})))
        .await;
    assert_eq!(refusal(wrong), (422, "Invalid".to_owned()));

    let apply =
        Patch::Apply(json!({"apiVersion": "example.org/v1", "kind": "Gear", "spec": {"teeth": 7}}));
    let applied = gears
        .patch("one", &PatchParams::apply("tests").force(), &apply)
        .await
        .unwrap();
    assert_eq!(applied.metadata.generation, Some(2));
    let status = Patch::Merge(json!({"status": {"turns": 3}, "spec": {"teeth": 9}}));
    let turned = gears
        .patch_status("one", &PatchParams::default(), &status)
        .await
        .unwrap();
    assert_eq!(
        turned.data,
        json!({"spec": {"teeth": 7}, "status": {"turns": 3}})
    );
    assert_eq!(turned.name_any(), "one");
    gears.delete("one", &DeleteParams::default()).await.unwrap();
    assert!(
        gears
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
}
