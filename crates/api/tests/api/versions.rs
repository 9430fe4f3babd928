//! Which version a write is for: a patch that takes it out is held to the rules of an update.

use serde_json::{Value, json};

use crate::client::{Answer, Client};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

/// Ways to say that the version is nothing, each with something else that changes.
fn without_version(change: &Value) -> Vec<(&'static str, Value)> {
    let merged = |version: Value| {
        let mut patch = change.clone();
        patch["metadata"]["resourceVersion"] = version;
        patch
    };
    let labels = json!([
        {"op": "remove", "path": "/metadata/resourceVersion"},
        {"op": "add", "path": "/metadata/labels", "value": change["metadata"]["labels"]},
    ]);
    vec![
        ("application/json-patch+json", labels),
        ("application/merge-patch+json", merged(Value::Null)),
        ("application/merge-patch+json", merged("0".into())),
        ("application/merge-patch+json", merged("".into())),
        (
            "application/strategic-merge-patch+json",
            merged(Value::Null),
        ),
    ]
}

async fn patch(client: &Client, path: &str, media: &str, wanted: &Value) -> Answer {
    client.send("PATCH", path, media, wanted.to_string()).await
}

#[tokio::test]
async fn a_patch_cannot_leave_the_version_open_where_an_update_cannot() {
    let client = Client::new().await;
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}});
    let made = client.post(LEASES, &lease).await.expect(201);
    let path = format!("{LEASES}/l");
    let change = json!({"metadata": {"labels": {"a": "1"}}});
    for (media, wanted) in without_version(&change) {
        let refused = patch(&client, &path, media, &wanted).await;
        assert_eq!(refused.code, 422, "{media} {wanted} {:#}", refused.body);
        assert_eq!(
            refused.body["message"],
            "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0x0: must be specified for an update"
        );
    }
    assert_eq!(client.get(&path).await.expect(200), made);
    // Who says nothing of it changes what is there now.
    let merge = "application/merge-patch+json";
    let changed = patch(&client, &path, merge, &change).await.expect(200);
    let mut stale = change;
    stale["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"].clone();
    stale["metadata"]["labels"]["a"] = "2".into();
    assert_eq!(patch(&client, &path, merge, &stale).await.code, 409);
    stale["metadata"]["resourceVersion"] = changed["metadata"]["resourceVersion"].clone();
    patch(&client, &path, merge, &stale).await.expect(200);
}

#[tokio::test]
async fn a_patch_may_leave_the_version_open_where_an_update_may() {
    let client = Client::new().await;
    client.config_map("a", &json!({"x": "1"})).await;
    let path = format!("{MAPS}/a");
    for (index, value) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        let change = json!({"metadata": {"labels": {"value": value}}});
        let (media, wanted) = without_version(&change).swap_remove(index);
        let changed = patch(&client, &path, media, &wanted).await.expect(200);
        assert_eq!(changed["metadata"]["labels"]["value"], value);
        let now = client.get(&path).await.expect(200);
        assert_eq!(
            now["metadata"]["resourceVersion"],
            changed["metadata"]["resourceVersion"]
        );
    }
    // As in upstream, zero is no version in an update either.
    let zero = json!({"metadata": {"name": "a", "resourceVersion": "0"}, "data": {"x": "2"}});
    client.put(&path, &zero).await.expect(200);
}
