//! Kinds of our own are there from the start, like those of Kubernetes.

use axum::body::Body;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::client::Client;

const IMAGES: &str = "/apis/transom.dev/v1/images";

fn image() -> Value {
    json!({
        "apiVersion": "transom.dev/v1", "kind": "Image", "metadata": {"name": "app"},
        "spec": {"reference": "docker.io/library/app:1"},
        "status": {
            "digest": "sha256:0", "checkedAt": "2026-01-01T00:00:00Z", "runsOn": "linux/amd64",
            "platforms": [{"os": "linux", "architecture": "amd64"}],
        },
    })
}

#[tokio::test]
async fn images_are_discovered_written_with_their_status_and_shown_with_what_they_are_for() {
    let client = Client::new().await;
    let group = client.get("/apis/transom.dev/v1").await.expect(200);
    assert_eq!(group["resources"][0]["name"], "images");
    assert_eq!(group["resources"][0]["namespaced"], false);
    let made = client.post(IMAGES, &image()).await.expect(201);
    assert_eq!(made["status"], image()["status"]);
    let request = Request::get(IMAGES)
        .header(
            "accept",
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
        )
        .body(Body::empty())
        .unwrap();
    let bytes = client.raw(request).await.into_body().collect().await;
    let table: Value = serde_json::from_slice(&bytes.unwrap().to_bytes()).unwrap();
    let shown: Vec<(&Value, &Value)> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .zip(table["rows"][0]["cells"].as_array().unwrap())
        .filter(|(column, _)| column["priority"] == 0)
        .map(|(column, cell)| (&column["name"], cell))
        .collect();
    let [name, reference, platforms, age] = shown[..] else {
        panic!("{shown:?}");
    };
    assert_eq!(name, (&json!("Name"), &json!("app")));
    assert_eq!(
        reference,
        (&json!("Reference"), &json!("docker.io/library/app:1"))
    );
    assert_eq!(platforms, (&json!("Platforms"), &json!("linux/amd64")));
    assert_eq!(age.0, "Age");
    let described = client
        .get("/openapi/v3/apis/transom.dev/v1")
        .await
        .expect(200);
    let schema = &described["components"]["schemas"]["dev.transom.v1.Image"];
    assert!(
        schema["properties"]["status"]["properties"]["platforms"].is_object(),
        "{schema}"
    );
}

#[tokio::test]
async fn an_image_without_a_name_is_refused_and_unknown_fields_go() {
    let client = Client::new().await;
    let mut nameless = image();
    nameless["spec"] = json!({});
    assert_eq!(client.post(IMAGES, &nameless).await.code, 422);
    let mut more = image();
    more["status"]["colour"] = "red".into();
    let made = client.post(IMAGES, &more).await.expect(201);
    assert_eq!(made["status"]["colour"], Value::Null);
}

#[tokio::test]
async fn nobody_can_define_a_kind_of_ours_anew() {
    let client = Client::new().await;
    client.post(IMAGES, &image()).await.expect(201);
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = json!({
        "metadata": {"name": "images.transom.dev"},
        "spec": {
            "group": "transom.dev", "scope": "Namespaced", "names": {"plural": "images", "kind": "Image"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    let made = client.post(definitions, &definition).await.expect(201);
    let conditions = made["status"]["conditions"].as_array().unwrap();
    let accepted = conditions.iter().find(|one| one["type"] == "NamesAccepted");
    assert_eq!(accepted.unwrap()["status"], "False", "{conditions:?}");
    client.get(definitions).await.expect(200);
    let still = client.get(&format!("{IMAGES}/app")).await.expect(200);
    assert_eq!(still["spec"], image()["spec"]);
}
