//! Watches: every change once, in order, through selectors.

use serde_json::json;

use crate::client::Client;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn a_watch_sees_what_is_there_and_what_comes() {
    let client = Client::new().await;
    client.config_map("a", &json!({})).await;
    let mut events = client.watch(&format!("{MAPS}?watch=1")).await;
    assert_eq!(events.step().await, ("ADDED".into(), "a".into()));
    client.config_map("b", &json!({})).await;
    assert_eq!(events.step().await, ("ADDED".into(), "b".into()));
    let changed = client
        .merge(&format!("{MAPS}/a"), &json!({"data": {"x": "1"}}))
        .await
        .expect(200);
    let event = events.next().await.unwrap();
    assert_eq!(event["type"], "MODIFIED");
    assert_eq!(event["object"], changed);
    client.delete(&format!("{MAPS}/a")).await.expect(200);
    let event = events.next().await.unwrap();
    assert_eq!(event["type"], "DELETED");
    assert_ne!(
        event["object"]["metadata"]["resourceVersion"],
        changed["metadata"]["resourceVersion"]
    );
}

#[tokio::test]
async fn a_watch_from_a_version_begins_behind_it() {
    let client = Client::new().await;
    let first = client.config_map("a", &json!({})).await;
    client.config_map("b", &json!({})).await;
    let version = first["metadata"]["resourceVersion"].as_str().unwrap();
    let mut events = client
        .watch(&format!("{MAPS}?watch=1&resourceVersion={version}"))
        .await;
    assert_eq!(events.step().await, ("ADDED".into(), "b".into()));
}

#[tokio::test]
async fn an_object_that_leaves_a_selection_is_deleted_for_those_who_watch_it() {
    let client = Client::new().await;
    client.config_map("a", &json!({})).await;
    let mut events = client
        .watch(&format!("{MAPS}?watch=1&labelSelector=app%3Da"))
        .await;
    assert_eq!(events.step().await, ("ADDED".into(), "a".into()));
    let path = format!("{MAPS}/a");
    client
        .merge(&path, &json!({"metadata": {"labels": {"app": "b"}}}))
        .await
        .expect(200);
    let gone = events.next().await.unwrap();
    assert_eq!(
        (&gone["type"], &gone["object"]["metadata"]["labels"]["app"]),
        (&json!("DELETED"), &json!("a"))
    );
    client
        .merge(&path, &json!({"metadata": {"labels": {"app": "a"}}}))
        .await
        .expect(200);
    assert_eq!(events.step().await, ("ADDED".into(), "a".into()));
}

#[tokio::test]
async fn a_watch_list_ends_its_start_with_a_bookmark() {
    let client = Client::new().await;
    client.config_map("a", &json!({})).await;
    let query =
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut events = client.watch(&format!("{MAPS}?{query}")).await;
    assert_eq!(events.step().await, ("ADDED".into(), "a".into()));
    let mark = events.next().await.unwrap();
    assert_eq!(mark["type"], "BOOKMARK");
    assert_eq!(
        mark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
    client.config_map("b", &json!({})).await;
    assert_eq!(events.step().await, ("ADDED".into(), "b".into()));
}

#[tokio::test]
async fn a_watch_ends_when_its_time_is_over() {
    let client = Client::new().await;
    let mut events = client
        .watch(&format!("{MAPS}?watch=1&timeoutSeconds=1"))
        .await;
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn nodes_watch_their_own_pods_only() {
    let client = Client::new().await;
    let pods = "/api/v1/namespaces/default/pods";
    let mut events = client
        .watch("/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dn1")
        .await;
    for name in ["a", "b"] {
        let pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        client.post(pods, &pod).await.expect(201);
    }
    for (pod, node) in [("a", "n2"), ("b", "n1")] {
        let binding = json!({"target": {"kind": "Node", "name": node}});
        client
            .post(&format!("{pods}/{pod}/binding"), &binding)
            .await
            .expect(201);
    }
    assert_eq!(events.step().await, ("ADDED".into(), "b".into()));
}

#[tokio::test]
async fn a_watcher_that_does_not_read_misses_nothing_and_delays_nobody() {
    let client = Client::new().await;
    let mut slow = client.watch(&format!("{MAPS}?watch=1")).await;
    client.config_map("a", &json!({"n": "0"})).await;
    // More changes than the queue of a watcher holds.
    for number in 1..=600 {
        let patch = json!({"data": {"n": number.to_string()}});
        client.merge(&format!("{MAPS}/a"), &patch).await.expect(200);
    }
    for number in 0..=600 {
        let event = slow.next().await.unwrap();
        assert_eq!(event["object"]["data"]["n"], number.to_string());
    }
}

#[tokio::test]
async fn a_watch_for_all_eternity_begins_like_others() {
    let client = Client::new().await;
    client.config_map("a", &json!({})).await;
    let path = format!("{MAPS}?watch=1&timeoutSeconds=9223372036854775807");
    let mut events = client.watch(&path).await;
    assert_eq!(events.step().await, ("ADDED".into(), "a".into()));
}
