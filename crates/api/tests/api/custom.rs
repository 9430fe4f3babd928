//! Custom resources come and go with their definitions.

use std::sync::Arc;

use serde_json::{Value, json};
use transom_store::{Range, Transaction};

use crate::client::Client;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.org/v1/namespaces/default/widgets";

fn definition() -> Value {
    json!({
        "metadata": {"name": "widgets.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"color": {"type": "string", "default": "red"}}},
                }}},
            }],
        },
    })
}

async fn with_widget() -> Client {
    let client = Client::new().await;
    client.post(DEFINITIONS, &definition()).await.expect(201);
    let widget = json!({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {}});
    // The answer to the definition says that it is served; the registry follows with the feed.
    client.get(DEFINITIONS).await.expect(200);
    let made = client.post(WIDGETS, &widget).await.expect(201);
    assert_eq!(made["spec"]["color"], "red");
    client
}

#[tokio::test]
async fn a_definition_waits_for_its_objects_and_takes_its_watchers_along() {
    let client = with_widget().await;
    let mut events = client.watch(&format!("{WIDGETS}?watch=1")).await;
    assert_eq!(events.step().await, ("ADDED".into(), "w".into()));
    let one = format!("{DEFINITIONS}/widgets.example.org");
    client.delete(&one).await.expect(200);
    // What the controller of definitions would do.
    client.delete(&format!("{WIDGETS}/w")).await.expect(200);
    client
        .merge(&one, &json!({"metadata": {"finalizers": null}}))
        .await
        .expect(200);
    assert_eq!(events.step().await, ("DELETED".into(), "w".into()));
    assert!(events.next().await.is_none());
    assert_eq!(client.get(&one).await.code, 404);
    assert_eq!(client.get(WIDGETS).await.code, 404);
}

/// All keys of widgets in the store.
async fn stored_widgets(client: &Client) -> Vec<String> {
    let range = Range {
        prefix: "/registry/example.org/widgets/".to_owned(),
        ..Range::default()
    };
    let page = client.store.list(range).await.unwrap();
    let keys = page.entries.iter().map(|entry| entry.key.to_string());
    keys.collect()
}

async fn force_away(client: &Client) {
    let one = format!("{DEFINITIONS}/widgets.example.org");
    client.delete(&one).await.expect(200);
    let by_hand = json!({"metadata": {"finalizers": null}});
    client.merge(&one, &by_hand).await.expect(200);
    assert_eq!(client.get(&one).await.code, 404);
}

#[tokio::test]
async fn objects_go_with_a_definition_whose_finalizer_was_taken_off_by_hand() {
    let client = with_widget().await;
    for number in 0..300 {
        let name = format!("w{number}");
        let finalizers = ["example.org/keep"];
        let widget = json!({"metadata": {"name": name, "finalizers": finalizers}, "spec": {}});
        client.post(WIDGETS, &widget).await.expect(201);
    }
    let mut neighbour = definition();
    neighbour["metadata"]["name"] = "widgetsets.example.org".into();
    neighbour["spec"]["names"] = json!({"plural": "widgetsets", "kind": "WidgetSet"});
    client.post(DEFINITIONS, &neighbour).await.expect(201);
    client.get(DEFINITIONS).await.expect(200);
    let others = WIDGETS.replace("widgets", "widgetsets");
    let other = json!({"metadata": {"name": "o"}, "spec": {}});
    client.post(&others, &other).await.expect(201);

    force_away(&client).await;
    assert_eq!(stored_widgets(&client).await, Vec::<String>::new());
    client.get(&format!("{others}/o")).await.expect(200);

    client.post(DEFINITIONS, &definition()).await.expect(201);
    client.get(DEFINITIONS).await.expect(200);
    let restarted = Client::over(Arc::clone(&client.store)).await;
    for client in [&client, &restarted] {
        let list = client.get(WIDGETS).await.expect(200);
        assert_eq!(list["items"], json!([]));
    }
    let widget = json!({"metadata": {"name": "w"}, "spec": {}});
    client.post(WIDGETS, &widget).await.expect(201);
}

#[tokio::test]
async fn a_dry_run_takes_no_objects_along() {
    let client = with_widget().await;
    let one = format!("{DEFINITIONS}/widgets.example.org");
    client.delete(&one).await.expect(200);
    let by_hand = json!({"metadata": {"finalizers": null}});
    let path = format!("{one}?dryRun=All");
    client.merge(&path, &by_hand).await.expect(200);
    client.get(&format!("{WIDGETS}/w")).await.expect(200);
}

#[tokio::test]
async fn a_definition_begins_without_what_an_earlier_one_left() {
    let client = with_widget().await;
    force_away(&client).await;
    // A server that was killed in between, or one of another version, has not cleaned up.
    let left = json!({"metadata": {"name": "left", "namespace": "default"}});
    let key = "/registry/example.org/widgets/default/left";
    let transaction = Transaction::create(key, left.to_string());
    client.store.commit(transaction).await.unwrap();
    let path = format!("{DEFINITIONS}?dryRun=All");
    client.post(&path, &definition()).await.expect(201);
    assert_eq!(stored_widgets(&client).await, [key]);
    client.post(DEFINITIONS, &definition()).await.expect(201);
    assert_eq!(stored_widgets(&client).await, Vec::<String>::new());
    // One that is there already keeps its objects, whoever tries to make it again.
    client.get(DEFINITIONS).await.expect(200);
    let widget = json!({"metadata": {"name": "w"}, "spec": {}});
    client.post(WIDGETS, &widget).await.expect(201);
    assert_eq!(client.post(DEFINITIONS, &definition()).await.code, 409);
    client.get(&format!("{WIDGETS}/w")).await.expect(200);
}

#[tokio::test]
async fn a_field_that_becomes_selectable_selects_what_is_there_already() {
    let client = with_widget().await;
    let query = format!("{WIDGETS}?fieldSelector=spec.color%3Dred");
    assert_eq!(client.get(&query).await.code, 400);
    let mut wanted = definition();
    wanted["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.color"}]);
    let one = format!("{DEFINITIONS}/widgets.example.org");
    client
        .merge(&one, &json!({"spec": wanted["spec"]}))
        .await
        .expect(200);
    client.get(DEFINITIONS).await.expect(200);
    let found = client.get(&query).await.expect(200);
    assert_eq!(found["items"][0]["metadata"]["name"], "w");
    let other = client
        .get(&format!("{WIDGETS}?fieldSelector=spec.color%3Dblue"))
        .await
        .expect(200);
    assert_eq!(other["items"], json!([]));
}

/// A version of widgets with a field of its own to select by.
fn version(name: &str, selectable: &[&str]) -> Value {
    let text = json!({"type": "string"});
    let paths: Vec<Value> = selectable
        .iter()
        .map(|path| json!({"jsonPath": path}))
        .collect();
    json!({
        "name": name, "served": true, "storage": name == "v1", "selectableFields": paths,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"color": text, "size": text}},
        }}},
    })
}

async fn with_two_versions() -> Client {
    let client = Client::new().await;
    let mut wanted = definition();
    wanted["spec"]["versions"] = json!([
        version("v1", &[".spec.color"]),
        version("v1beta1", &[".spec.size", ".spec.color"]),
    ]);
    client.post(DEFINITIONS, &wanted).await.expect(201);
    client.get(DEFINITIONS).await.expect(200);
    client
}

fn beta() -> String {
    WIDGETS.replace("/v1/", "/v1beta1/")
}

#[tokio::test]
async fn who_watches_a_version_gets_objects_of_that_version() {
    let client = with_two_versions().await;
    let mut stable = client.watch(&format!("{WIDGETS}?watch=1")).await;
    let mut older = client.watch(&format!("{}?watch=1", beta())).await;
    let widget = json!({"metadata": {"name": "w"}, "spec": {"color": "red"}});
    client.post(WIDGETS, &widget).await.expect(201);
    let one = format!("{WIDGETS}/w");
    let blue = json!({"spec": {"color": "blue"}});
    client.merge(&one, &blue).await.expect(200);
    client.delete(&one).await.expect(200);
    for kind in ["ADDED", "MODIFIED", "DELETED"] {
        for (events, version) in [
            (&mut stable, "example.org/v1"),
            (&mut older, "example.org/v1beta1"),
        ] {
            let event = events.next().await.unwrap();
            assert_eq!(event["type"], kind);
            assert_eq!(event["object"]["apiVersion"], version);
            assert_eq!(event["object"]["kind"], "Widget");
        }
    }
}

#[tokio::test]
async fn each_version_selects_by_its_own_fields() {
    let client = with_two_versions().await;
    for (name, color, size) in [("a", "red", "small"), ("b", "small", "red")] {
        let spec = json!({"color": color, "size": size});
        let widget = json!({"metadata": {"name": name}, "spec": spec});
        client.post(WIDGETS, &widget).await.expect(201);
    }
    let names = async |path: String| -> Vec<String> {
        let list = client.get(&path).await.expect(200);
        let items = list["items"].as_array().unwrap().clone();
        let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
        items.iter().map(name).collect()
    };
    let by = |place: &str, field: &str| format!("{place}?fieldSelector=spec.{field}%3Dred");
    assert_eq!(names(by(WIDGETS, "color")).await, ["a"]);
    assert_eq!(names(by(&beta(), "color")).await, ["a"]);
    assert_eq!(names(by(&beta(), "size")).await, ["b"]);
    assert_eq!(client.get(&by(WIDGETS, "size")).await.code, 400);

    let query = format!("{}&watch=1", by(&beta(), "size"));
    let mut events = client.watch(&query).await;
    assert_eq!(events.step().await, ("ADDED".into(), "b".into()));
    let change = json!({"spec": {"size": "red"}});
    let one = format!("{WIDGETS}/a");
    client.merge(&one, &change).await.expect(200);
    assert_eq!(events.step().await, ("ADDED".into(), "a".into()));
}

/// Says of the only version whether it is served.
async fn serve(client: &Client, served: bool) {
    let mut wanted = definition();
    wanted["spec"]["versions"][0]["served"] = served.into();
    let one = format!("{DEFINITIONS}/widgets.example.org");
    let spec = json!({"spec": wanted["spec"]});
    client.merge(&one, &spec).await.expect(200);
    client.get(DEFINITIONS).await.expect(200);
}

#[tokio::test]
async fn what_is_not_served_for_a_while_is_there_afterwards() {
    let client = with_widget().await;
    let mut events = client.watch(&format!("{WIDGETS}?watch=1")).await;
    assert_eq!(events.step().await, ("ADDED".into(), "w".into()));
    serve(&client, false).await;
    assert!(events.next().await.is_none());
    assert_eq!(client.get(WIDGETS).await.code, 404);

    // A server that starts now finds nothing of it to serve, but must not forget it either.
    let restarted = Client::over(Arc::clone(&client.store)).await;
    for client in [&client, &restarted] {
        serve(client, true).await;
        client.get(&format!("{WIDGETS}/w")).await.expect(200);
        let list = client.get(WIDGETS).await.expect(200);
        assert_eq!(list["items"][0]["metadata"]["name"], "w");
        let mut events = client.watch(&format!("{WIDGETS}?watch=1")).await;
        assert_eq!(events.step().await, ("ADDED".into(), "w".into()));
    }
}

#[tokio::test]
async fn the_status_of_a_custom_resource_is_all_that_its_path_writes() {
    let client = Client::new().await;
    let mut definition = definition();
    let version = &mut definition["spec"]["versions"][0];
    version["subresources"] = json!({"status": {}});
    version["schema"]["openAPIV3Schema"]["properties"]["status"] =
        json!({"type": "object", "properties": {"phase": {"type": "string"}}});
    client.post(DEFINITIONS, &definition).await.expect(201);
    client.get(DEFINITIONS).await.expect(200);
    let widget = json!({"metadata": {"name": "w", "labels": {"a": "1"}}, "spec": {}});
    client.post(WIDGETS, &widget).await.expect(201);
    let patch = json!({
        "metadata": {"labels": {"a": "2"}, "annotations": {"b": "1"}, "finalizers": ["example.org/f"]},
        "spec": {"color": "blue"}, "status": {"phase": "Done"},
    });
    let one = format!("{WIDGETS}/w");
    let after = client
        .merge(&format!("{one}/status"), &patch)
        .await
        .expect(200);
    assert_eq!(after["status"]["phase"], "Done");
    assert_eq!(after["spec"]["color"], "red");
    assert_eq!(after["metadata"]["labels"], json!({"a": "1"}));
    assert_eq!(after["metadata"].get("annotations"), None);
    assert_eq!(after["metadata"].get("finalizers"), None);
    // What an applier says beside the status is not taken, and so not owned either.
    let mut wanted = patch;
    wanted["apiVersion"] = "example.org/v1".into();
    wanted["kind"] = "Widget".into();
    let applied = client
        .apply(&format!("{one}/status?fieldManager=m&force=true"), &wanted)
        .await
        .expect(200);
    assert_eq!(applied["metadata"]["labels"], json!({"a": "1"}));
    let entries = applied["metadata"]["managedFields"].as_array().unwrap();
    let entry = entries
        .iter()
        .find(|entry| entry["manager"] == "m")
        .unwrap();
    assert_eq!(entry["fieldsV1"], json!({"f:status": {"f:phase": {}}}));
    let blind = json!({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {}});
    assert_eq!(client.put(&one, &blind).await.code, 422);
}

#[tokio::test]
async fn a_definition_that_asks_for_more_than_there_is_earns_a_warning() {
    let client = Client::new().await;
    let plain = client.post(DEFINITIONS, &definition()).await;
    assert_eq!((plain.code, plain.warnings.len()), (201, 0));
    let one = format!("{DEFINITIONS}/widgets.example.org");
    let webhook = json!({"spec": {"conversion": {"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://example.org/convert"},
    }}}});
    let warned = client.merge(&one, &webhook).await;
    assert_eq!(warned.code, 200, "{:#}", warned.body);
    assert!(
        warned.warnings[0].contains("webhooks are not supported"),
        "{:?}",
        warned.warnings
    );
}
