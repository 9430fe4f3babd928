//! Scale and binding: objects that are never stored, with rules of their own.

use serde_json::{Value, json};

use crate::client::Client;

const PODS: &str = "/api/v1/namespaces/default/pods";
const WEB: &str = "/apis/apps/v1/namespaces/default/deployments/web";

async fn with_deployment() -> Client {
    let client = Client::new().await;
    let object = json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    });
    client
        .post("/apis/apps/v1/namespaces/default/deployments", &object)
        .await
        .expect(201);
    client
}

async fn replicas(client: &Client) -> Value {
    client.get(WEB).await.expect(200)["spec"]["replicas"].clone()
}

#[tokio::test]
async fn a_scale_of_another_shape_scales_nothing() {
    let client = with_deployment().await;
    let path = format!("{WEB}/scale");
    let text = json!({"spec": {"replicas": "5"}});
    assert_eq!(client.put(&path, &text).await.code, 400);
    assert_eq!(client.merge(&path, &text).await.code, 400);
    let other = json!({"kind": "Deployment", "apiVersion": "apps/v1", "spec": {"replicas": 5}});
    assert_eq!(client.put(&path, &other).await.code, 400);
    let elsewhere = json!({"metadata": {"name": "other"}, "spec": {"replicas": 5}});
    assert_eq!(client.put(&path, &elsewhere).await.code, 400);
    let reborn = json!({"metadata": {"name": "web", "uid": "u"}, "spec": {"replicas": 5}});
    assert_eq!(client.put(&path, &reborn).await.code, 409);
    let negative = json!({"spec": {"replicas": -1}});
    assert_eq!(client.put(&path, &negative).await.code, 422);
    assert_eq!(replicas(&client).await, 2);
}

#[tokio::test]
async fn a_scale_can_be_applied_and_owns_the_number() {
    let client = with_deployment().await;
    let scale = json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"},
        "spec": {"replicas": 5},
    });
    let path = format!("{WEB}/scale?fieldManager=scaler");
    let conflict = client.apply(&path, &scale).await;
    assert_eq!(conflict.code, 409, "{:#}", conflict.body);
    assert_eq!(
        conflict.body["details"]["causes"][0]["field"],
        ".spec.replicas"
    );
    let applied = client
        .apply(&format!("{path}&force=true"), &scale)
        .await
        .expect(200);
    assert_eq!(applied["kind"], "Scale");
    assert_eq!(applied["spec"]["replicas"], 5);
    let stored = client.get(WEB).await.expect(200);
    assert_eq!(stored["spec"]["replicas"], 5);
    let entry = stored["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["manager"] == "scaler")
        .unwrap();
    assert_eq!(
        (&entry["operation"], &entry["subresource"]),
        (&json!("Apply"), &json!("scale"))
    );
    assert_eq!(entry["fieldsV1"], json!({"f:spec": {"f:replicas": {}}}));
}

#[tokio::test]
async fn a_binding_is_for_the_pod_that_its_writer_saw() {
    let client = Client::new().await;
    let pod =
        json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let made = client.post(PODS, &pod).await.expect(201);
    let path = format!("{PODS}/a/binding");
    let binding =
        |metadata: Value| json!({"metadata": metadata, "target": {"kind": "Node", "name": "n1"}});
    for (metadata, code) in [
        (json!({"name": "a", "uid": "u"}), 409),
        (json!({"name": "a", "resourceVersion": "1"}), 409),
        (json!({"name": "b"}), 400),
        (json!({"name": "a", "annotations": {"x": 1}}), 400),
    ] {
        let refused = client.post(&path, &binding(metadata.clone())).await;
        assert_eq!(refused.code, code, "{metadata}: {:#}", refused.body);
    }
    let metadata = json!({
        "name": "a", "uid": made["metadata"]["uid"],
        "resourceVersion": made["metadata"]["resourceVersion"], "annotations": {"x": "1"},
    });
    client.post(&path, &binding(metadata)).await.expect(201);
    let read = client.get(&format!("{PODS}/a")).await.expect(200);
    assert_eq!(read["spec"]["nodeName"], "n1");
    assert_eq!(read["metadata"]["annotations"]["x"], "1");
}

#[tokio::test]
async fn a_pod_behind_a_gate_is_not_bound() {
    let client = Client::new().await;
    let pod = json!({"metadata": {"name": "a"}, "spec": {
        "schedulingGates": [{"name": "example.org/wait"}],
        "containers": [{"name": "c", "image": "i"}],
    }});
    client.post(PODS, &pod).await.expect(201);
    let binding = json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}});
    let refused = client.post(&format!("{PODS}/a/binding"), &binding).await;
    assert_eq!(refused.code, 409, "{:#}", refused.body);
}

#[tokio::test]
async fn nothing_is_bound_in_a_namespace_that_ends() {
    let client = Client::new().await;
    let namespace = json!({"metadata": {"name": "ending"}});
    client
        .post("/api/v1/namespaces", &namespace)
        .await
        .expect(201);
    let account = json!({"metadata": {"name": "default"}});
    let accounts = "/api/v1/namespaces/ending/serviceaccounts";
    client.post(accounts, &account).await.expect(201);
    let pods = "/api/v1/namespaces/ending/pods";
    let pod =
        json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    client.post(pods, &pod).await.expect(201);
    client.delete("/api/v1/namespaces/ending").await.expect(200);
    // A read waits for what was written; a binding goes by what the server knows.
    client.get("/api/v1/namespaces/ending").await.expect(200);
    let binding = json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}});
    let refused = client.post(&format!("{pods}/a/binding"), &binding).await;
    assert_eq!(refused.code, 403, "{:#}", refused.body);
    assert_eq!(
        refused.body["details"]["causes"][0]["reason"],
        "NamespaceTerminating"
    );
}
