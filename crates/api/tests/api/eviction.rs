//! Evictions: what a budget allows, and when it is spent.

use serde_json::{Value, json};

use crate::client::Client;

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

/// A pod that runs on a node, ready or not.
async fn pod(client: &Client, name: &str, is_ready: bool) -> Value {
    let object = json!({
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
    });
    let made = client.post(PODS, &object).await.expect(201);
    let ready = json!({"type": "Ready", "status": if is_ready { "True" } else { "False" }});
    let status = json!({"status": {"phase": "Running", "conditions": [ready]}});
    client
        .merge(&format!("{PODS}/{name}/status"), &status)
        .await
        .expect(200);
    made
}

/// A budget as its controller would have counted it.
async fn budget(client: &Client, name: &str, spec: Value, status: Value) {
    let object = json!({"metadata": {"name": name}, "spec": spec});
    client.post(BUDGETS, &object).await.expect(201);
    let mut status = status;
    status["observedGeneration"] = 1.into();
    client
        .merge(
            &format!("{BUDGETS}/{name}/status"),
            &json!({"status": status}),
        )
        .await
        .expect(200);
}

fn web() -> Value {
    json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}})
}

async fn left(client: &Client, name: &str) -> Value {
    let read = client.get(&format!("{BUDGETS}/{name}")).await.expect(200);
    read["status"]["disruptionsAllowed"].clone()
}

async fn evict(client: &Client, name: &str, options: Value) -> crate::client::Answer {
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name},
        "deleteOptions": options,
    });
    client
        .post(&format!("{PODS}/{name}/eviction"), &eviction)
        .await
}

fn is_going(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_string()
}

#[tokio::test]
async fn an_eviction_spends_a_budget_once_and_says_why_the_pod_goes() {
    let client = Client::new().await;
    pod(&client, "a", true).await;
    pod(&client, "b", true).await;
    let status = json!({"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1});
    budget(&client, "web", web(), status).await;
    evict(&client, "a", Value::Null).await.expect(201);
    let gone = client.get(&format!("{PODS}/a")).await.expect(200);
    assert!(is_going(&gone));
    let condition = gone["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|condition| condition["type"] == "DisruptionTarget")
        .unwrap();
    assert_eq!(condition["status"], "True");
    assert_eq!(condition["reason"], "EvictionByEvictionAPI");
    assert_eq!(left(&client, "web").await, 0);
    let refused = evict(&client, "b", Value::Null).await;
    assert_eq!(refused.code, 429);
    assert_eq!(
        refused.body["details"]["causes"][0]["message"],
        "The disruption budget web needs 1 healthy pods and has 2 currently"
    );
    let stays = client.get(&format!("{PODS}/b")).await.expect(200);
    assert!(!is_going(&stays));
}

#[tokio::test]
async fn an_eviction_that_only_tries_spends_nothing() {
    let client = Client::new().await;
    pod(&client, "a", true).await;
    let status = json!({"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1});
    budget(&client, "web", web(), status).await;
    evict(&client, "a", json!({"dryRun": ["All"]}))
        .await
        .expect(201);
    assert_eq!(left(&client, "web").await, 1);
    let read = client.get(&format!("{PODS}/a")).await.expect(200);
    assert!(!is_going(&read));
    let unknown = evict(&client, "a", json!({"dryRun": ["Some"]})).await;
    assert_eq!(unknown.code, 422);
}

#[tokio::test]
async fn an_eviction_of_another_pod_spends_nothing() {
    let client = Client::new().await;
    pod(&client, "a", true).await;
    let status = json!({"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1});
    budget(&client, "web", web(), status).await;
    let other = json!({"preconditions": {"uid": "u"}});
    assert_eq!(evict(&client, "a", other).await.code, 409);
    assert_eq!(left(&client, "web").await, 1);
}

#[tokio::test]
async fn a_pod_that_is_not_ready_goes_as_its_budget_says() {
    let client = Client::new().await;
    pod(&client, "a", false).await;
    let short = json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 1});
    budget(&client, "web", web(), short.clone()).await;
    assert_eq!(evict(&client, "a", Value::Null).await.code, 429);
    client.delete(&format!("{BUDGETS}/web")).await.expect(200);
    let mut always = web();
    always["unhealthyPodEvictionPolicy"] = "AlwaysAllow".into();
    budget(&client, "always", always, short).await;
    evict(&client, "a", Value::Null).await.expect(201);
    assert_eq!(left(&client, "always").await, 0);
    pod(&client, "b", false).await;
    client
        .delete(&format!("{BUDGETS}/always"))
        .await
        .expect(200);
    let enough = json!({"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1});
    budget(&client, "enough", web(), enough).await;
    evict(&client, "b", Value::Null).await.expect(201);
}

#[tokio::test]
async fn a_budget_without_a_selector_is_about_no_pod() {
    let client = Client::new().await;
    pod(&client, "a", true).await;
    let none = json!({"disruptionsAllowed": 0});
    budget(&client, "nobody", json!({"minAvailable": 1}), none.clone()).await;
    budget(
        &client,
        "all",
        json!({"minAvailable": 1, "selector": {}}),
        none,
    )
    .await;
    let refused = evict(&client, "a", Value::Null).await;
    assert_eq!(refused.code, 429, "{:#}", refused.body);
    client.delete(&format!("{BUDGETS}/all")).await.expect(200);
    evict(&client, "a", Value::Null).await.expect(201);
}
