//! Who owns what after a write to a part of an object: only what that path writes.

use serde_json::{Value, json};

use crate::client::Client;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const PODS: &str = "/api/v1/namespaces/default/pods";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const ATTACHMENTS: &str = "/apis/storage.k8s.io/v1/volumeattachments";

/// The fields of the one entry that a manager has.
fn owned(object: &Value, manager: &str, subresource: &str) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let mut own = entries.iter().filter(|entry| entry["manager"] == manager);
    let entry = own
        .next()
        .unwrap_or_else(|| panic!("{manager} owns nothing of {object:#}"));
    assert_eq!(own.next(), None);
    assert_eq!(entry["subresource"], subresource);
    entry["fieldsV1"].clone()
}

async fn apply(client: &Client, path: &str, wanted: &Value) -> Value {
    let path = format!("{path}?fieldManager=m&force=true");
    client.apply(&path, wanted).await.expect(200)
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "d", "labels": {"a": "1"}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "d"}},
            "template": {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    })
}

#[tokio::test]
async fn applying_a_whole_deployment_to_its_status_owns_the_status() {
    let client = Client::new().await;
    client.post(DEPLOYMENTS, &deployment()).await.expect(201);
    let mut wanted = deployment();
    wanted["metadata"]["labels"] = json!({"a": "2"});
    wanted["metadata"]["annotations"] = json!({"b": "1"});
    wanted["spec"]["replicas"] = 5.into();
    wanted["status"] = json!({"observedGeneration": 1});
    let after = apply(&client, &format!("{DEPLOYMENTS}/d/status"), &wanted).await;
    assert_eq!(after["spec"]["replicas"], 1);
    assert_eq!(after["metadata"]["labels"], json!({"a": "1"}));
    // Annotations are written here as in upstream, whose controllers keep theirs this way.
    assert_eq!(after["metadata"]["annotations"], json!({"b": "1"}));
    assert_eq!(
        owned(&after, "m", "status"),
        json!({
            "f:metadata": {"f:annotations": {"f:b": {}}},
            "f:status": {"f:observedGeneration": {}},
        })
    );
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "labels": {"a": "1"}},
        "spec": {
            "initContainers": [{"name": "i", "image": "i", "restartPolicy": "Always"}],
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
        },
    })
}

/// All that an applier could say of a pod.
fn whole_pod() -> Value {
    let mut wanted = pod();
    wanted["metadata"]["labels"] = json!({"a": "2"});
    wanted["metadata"]["finalizers"] = json!(["example.org/mine"]);
    wanted["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "u"}]);
    wanted["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2".into();
    wanted["spec"]["containers"][0]["image"] = "other".into();
    wanted["spec"]["priority"] = 9.into();
    wanted["status"] = json!({"message": "hello"});
    wanted
}

#[tokio::test]
async fn applying_a_whole_pod_to_its_status_owns_neither_owners_nor_finalizers() {
    let client = Client::new().await;
    client.post(PODS, &pod()).await.expect(201);
    let after = apply(&client, &format!("{PODS}/p/status"), &whole_pod()).await;
    assert_eq!(after["metadata"]["labels"], json!({"a": "2"}));
    assert_eq!(
        owned(&after, "m", "status"),
        json!({
            "f:metadata": {"f:labels": {"f:a": {}}},
            "f:status": {"f:message": {}},
        })
    );
}

#[tokio::test]
async fn applying_a_whole_pod_to_its_size_owns_resources() {
    let client = Client::new().await;
    let before = client.post(PODS, &pod()).await.expect(201);
    let after = apply(&client, &format!("{PODS}/p/resize"), &whole_pod()).await;
    assert_eq!(
        after["spec"]["containers"][0]["resources"]["requests"]["cpu"],
        "2"
    );
    assert_eq!(after["metadata"]["labels"], before["metadata"]["labels"]);
    assert_eq!(
        owned(&after, "m", "resize"),
        json!({"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {
            "f:resources": {"f:requests": {"f:cpu": {}}},
        }}}})
    );
    // What belongs to nobody on this path is in nobody's way: no force is needed the second time.
    let path = format!("{PODS}/p/resize?fieldManager=m");
    client.apply(&path, &whole_pod()).await.expect(200);
}

#[tokio::test]
async fn applying_a_container_for_debugging_owns_it_alone() {
    let client = Client::new().await;
    client.post(PODS, &pod()).await.expect(201);
    let mut wanted = whole_pod();
    wanted["spec"]["ephemeralContainers"] = json!([{"name": "debug", "image": "shell"}]);
    let after = apply(&client, &format!("{PODS}/p/ephemeralcontainers"), &wanted).await;
    assert_eq!(
        owned(&after, "m", "ephemeralcontainers"),
        json!({"f:spec": {"f:ephemeralContainers": {"k:{\"name\":\"debug\"}": {
            ".": {}, "f:image": {}, "f:name": {},
        }}}})
    );
}

#[tokio::test]
async fn the_status_of_an_attachment_and_of_a_definition_bring_no_metadata() {
    let client = Client::new().await;
    let attachment = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": "v"},
        "spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
    });
    client.post(ATTACHMENTS, &attachment).await.expect(201);
    let mut wanted = attachment;
    wanted["metadata"]["labels"] = json!({"a": "1"});
    wanted["status"] = json!({"attached": true});
    let after = apply(&client, &format!("{ATTACHMENTS}/v/status"), &wanted).await;
    assert_eq!(
        owned(&after, "m", "status"),
        json!({"f:status": {"f:attached": {}}})
    );

    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    client.post(DEFINITIONS, &definition).await.expect(201);
    let mut wanted = definition;
    wanted["metadata"]["labels"] = json!({"a": "1"});
    wanted["status"] = json!({"storedVersions": ["v1"]});
    let path = format!("{DEFINITIONS}/widgets.example.org/status");
    let after = apply(&client, &path, &wanted).await;
    assert_eq!(
        owned(&after, "m", "status"),
        json!({"f:status": {"f:storedVersions": {}}})
    );
}
