//! Who may write what: each path writes its part of an object and nothing else.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};

use crate::client::Client;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

#[tokio::test]
async fn who_may_only_change_objects_makes_none() {
    let client = Client::new().await;
    let rules = json!([{
        "apiGroups": ["", "coordination.k8s.io"], "resources": ["configmaps", "leases"],
        "verbs": ["get", "update", "patch"],
    }]);
    let visitor = client.visitor("editor", &rules).await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}});
    let path = format!("{MAPS}/a?fieldManager=editor");
    let refused = visitor.apply(&path, &map).await;
    assert_eq!(
        (refused.code, &refused.body["reason"]),
        (403, &json!("Forbidden"))
    );
    assert_eq!(
        refused.body["message"],
        "configmaps \"a\" is forbidden: User \"editor\" cannot create resource \"configmaps\" in API group \"\" in the namespace \"default\""
    );
    let lease = json!({"metadata": {"name": "l"}, "spec": {}});
    assert_eq!(visitor.put(&format!("{LEASES}/l"), &lease).await.code, 403);
    assert_eq!(client.get(&format!("{LEASES}/l")).await.code, 404);
    client.apply(&path, &map).await.expect(201);
    visitor.apply(&path, &map).await.expect(200);
    client.put(&format!("{LEASES}/l"), &lease).await.expect(201);
}

async fn pod(client: &Client, name: &str) -> Value {
    let object = json!({
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
    });
    client.post(PODS, &object).await.expect(201)
}

#[tokio::test]
async fn containers_for_debugging_bring_nothing_else_along() {
    let client = Client::new().await;
    let before = pod(&client, "p").await;
    let mut wanted = before.clone();
    wanted["spec"]["ephemeralContainers"] = json!([{"name": "debug", "image": "shell"}]);
    wanted["spec"]["containers"][0]["image"] = "other".into();
    wanted["spec"]["nodeName"] = "n1".into();
    wanted["metadata"]["labels"] = json!({"app": "other"});
    wanted["metadata"]["finalizers"] = json!(["example.org/mine"]);
    wanted["status"]["phase"] = "Succeeded".into();
    let path = format!("{PODS}/p/ephemeralcontainers");
    let after = client.put(&path, &wanted).await.expect(200);
    assert_eq!(after["spec"]["ephemeralContainers"][0]["name"], "debug");
    assert_eq!(after["spec"]["containers"], before["spec"]["containers"]);
    assert_eq!(after["spec"].get("nodeName"), None);
    assert_eq!(after["metadata"]["labels"], before["metadata"]["labels"]);
    assert_eq!(after["metadata"].get("finalizers"), None);
    assert_eq!(after["status"], before["status"]);
    let gone = json!({"spec": {"ephemeralContainers": null}});
    assert_eq!(client.merge(&path, &gone).await.code, 422);
}

#[tokio::test]
async fn a_resize_changes_resources_alone() {
    let client = Client::new().await;
    let before = pod(&client, "p").await;
    let mut wanted = before.clone();
    wanted["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2".into();
    wanted["spec"]["containers"][0]["image"] = "other".into();
    wanted["spec"]["priority"] = 9.into();
    wanted["metadata"]["labels"] = json!({"app": "other"});
    wanted["status"]["phase"] = "Succeeded".into();
    let path = format!("{PODS}/p/resize");
    let after = client.put(&path, &wanted).await.expect(200);
    let mut expected = before["spec"].clone();
    expected["containers"][0]["resources"]["requests"]["cpu"] = "2".into();
    assert_eq!(after["spec"], expected);
    assert_eq!(after["metadata"]["labels"], before["metadata"]["labels"]);
    assert_eq!(after["status"], before["status"]);
    wanted["metadata"]["resourceVersion"] = after["metadata"]["resourceVersion"].clone();
    wanted["spec"]["containers"][0]["name"] = "renamed".into();
    assert_eq!(client.put(&path, &wanted).await.code, 422);
}

#[tokio::test]
async fn finalizers_of_a_namespace_have_a_path_that_writes_no_status() {
    let client = Client::new().await;
    let path = "/api/v1/namespaces/default";
    let before = client.get(path).await.expect(200);
    let mut wanted = before.clone();
    wanted["spec"]["finalizers"] = json!(["example.org/mine"]);
    wanted["status"]["phase"] = "Terminating".into();
    let main = client.put(path, &wanted).await.expect(200);
    assert_eq!(main["spec"], before["spec"]);
    wanted["metadata"]["resourceVersion"] = main["metadata"]["resourceVersion"].clone();
    let after = client
        .put(&format!("{path}/finalize"), &wanted)
        .await
        .expect(200);
    assert_eq!(after["spec"]["finalizers"], json!(["example.org/mine"]));
    assert_eq!(after["status"], before["status"]);
}

#[tokio::test]
async fn the_status_of_a_pod_gives_it_no_owner_and_no_finalizer() {
    let client = Client::new().await;
    let before = pod(&client, "p").await;
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "u"});
    let patch = json!({
        "metadata": {"ownerReferences": [owner], "finalizers": ["example.org/mine"],
            "annotations": {"seen": "yes"}},
        "status": {"phase": "Running"},
    });
    let after = client
        .merge(&format!("{PODS}/p/status"), &patch)
        .await
        .expect(200);
    assert_eq!(after["status"]["phase"], "Running");
    assert_eq!(after["metadata"]["annotations"]["seen"], "yes");
    assert_eq!(after["metadata"].get("ownerReferences"), None);
    assert_eq!(after["metadata"].get("finalizers"), None);
    assert_eq!(after["spec"], before["spec"]);
}

/// A request of the administrator, whom the server writes into it.
async fn signing_request(client: &Client) -> Value {
    let key = KeyPair::generate().unwrap();
    let parameters = CertificateParams::default();
    let pem = parameters.serialize_request(&key).unwrap().pem().unwrap();
    let object = json!({
        "metadata": {"name": "r"},
        "spec": {"request": STANDARD.encode(pem), "usages": ["digital signature", "client auth"],
            "signerName": "example.org/signer"},
    });
    client.post(REQUESTS, &object).await.expect(201)
}

#[tokio::test]
async fn what_a_certificate_was_asked_for_never_changes() {
    let client = Client::new().await;
    let before = signing_request(&client).await;
    assert_eq!(before["spec"]["username"], "admin");
    let forged = json!({"spec": {
        "username": "system:node:n1", "groups": ["system:nodes"],
        "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
    }});
    for path in ["r", "r/status", "r/approval"] {
        let after = client.merge(&format!("{REQUESTS}/{path}"), &forged).await;
        assert_eq!(after.expect(200)["spec"], before["spec"], "{path}");
    }
}

#[tokio::test]
async fn who_approves_does_not_sign_and_who_signs_does_not_approve() {
    let client = Client::new().await;
    signing_request(&client).await;
    let decision = json!({"type": "Approved", "status": "True", "reason": "Mine"});
    let certificate = STANDARD.encode("certificate");
    let both = json!({"status": {"conditions": [decision], "certificate": certificate}});
    let refused = client.merge(&format!("{REQUESTS}/r/status"), &both).await;
    assert_eq!(refused.code, 422, "{:#}", refused.body);
    let message = refused.body["message"].as_str().unwrap();
    assert!(
        message.contains("updates may not add a condition of type \"Approved\""),
        "{message}"
    );
    let approved = client
        .merge(&format!("{REQUESTS}/r/approval"), &both)
        .await
        .expect(200);
    assert_eq!(approved["status"].get("certificate"), None);
    let condition = &approved["status"]["conditions"][0];
    assert_eq!(condition["type"], "Approved");
    assert!(condition["lastUpdateTime"].is_string() && condition["lastTransitionTime"].is_string());
    // A signer that does not repeat the decision does not undo it.
    let failed = json!({"type": "Failed", "status": "True", "reason": "Mine"});
    let signed = client
        .merge(
            &format!("{REQUESTS}/r/status"),
            &json!({"status": {"conditions": [failed]}}),
        )
        .await
        .expect(200);
    let kinds: Vec<&Value> = signed["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|condition| &condition["type"])
        .collect();
    assert_eq!(kinds, ["Failed", "Approved"]);
}

#[tokio::test]
async fn kinds_that_controllers_fight_over_are_replaced_by_version_only() {
    let client = Client::new().await;
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}});
    let path = format!("{LEASES}/l");
    let made = client.put(&path, &lease).await.expect(201);
    let blind = client.put(&path, &lease).await;
    assert_eq!(
        (blind.code, &blind.body["reason"]),
        (422, &json!("Invalid"))
    );
    assert_eq!(
        blind.body["message"],
        "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0x0: must be specified for an update"
    );
    client.put(&path, &made).await.expect(200);
    client.config_map("a", &json!({"x": "1"})).await;
    let map = json!({"metadata": {"name": "a"}, "data": {"x": "2"}});
    client.put(&format!("{MAPS}/a"), &map).await.expect(200);
}
