//! Lists: pages, selectors, versions.

use axum::body::Body;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::client::Client;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn names(list: &Value) -> Vec<&str> {
    list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn pages_show_one_moment() {
    let client = Client::new().await;
    for name in ["a", "b", "c", "d", "e"] {
        client.config_map(name, &json!({})).await;
    }
    let first = client.get(&format!("{MAPS}?limit=2")).await.expect(200);
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    let token = first["metadata"]["continue"].as_str().unwrap();
    // What happens between two pages is not seen by the second.
    client.delete(&format!("{MAPS}/c")).await.expect(200);
    client.config_map("bb", &json!({})).await;
    client
        .merge(&format!("{MAPS}/d"), &json!({"data": {"new": "1"}}))
        .await
        .expect(200);
    let second = client
        .get(&format!("{MAPS}?limit=2&continue={token}"))
        .await
        .expect(200);
    assert_eq!(names(&second), ["c", "d"]);
    assert!(second["items"][1].get("data").is_none());
    assert_eq!(
        second["metadata"]["resourceVersion"],
        first["metadata"]["resourceVersion"]
    );
    let token = second["metadata"]["continue"].as_str().unwrap();
    let last = client
        .get(&format!("{MAPS}?limit=2&continue={token}"))
        .await
        .expect(200);
    assert_eq!(names(&last), ["e"]);
    assert!(last["metadata"].get("continue").is_none());
    let now = client.get(MAPS).await.expect(200);
    assert_eq!(names(&now), ["a", "b", "bb", "d", "e"]);
}

#[tokio::test]
async fn an_exact_version_shows_the_past() {
    let client = Client::new().await;
    client.config_map("a", &json!({})).await;
    let then = client.get(MAPS).await.expect(200);
    let version = then["metadata"]["resourceVersion"].as_str().unwrap();
    let newer = client.config_map("b", &json!({})).await;
    let query = format!("{MAPS}?resourceVersion={version}&resourceVersionMatch=Exact");
    assert_eq!(names(&client.get(&query).await.expect(200)), ["a"]);
    let version = newer["metadata"]["resourceVersion"].as_str().unwrap();
    let query = format!("{MAPS}?resourceVersion={version}&resourceVersionMatch=NotOlderThan");
    assert_eq!(names(&client.get(&query).await.expect(200)), ["a", "b"]);
    for query in ["resourceVersion=x", "continue=%21"] {
        assert_eq!(
            client.get(&format!("{MAPS}?{query}")).await.code,
            400,
            "{query}"
        );
    }
    let forgotten = client
        .get(&format!(
            "{MAPS}?resourceVersion=1&resourceVersionMatch=Exact"
        ))
        .await;
    assert!(matches!(forgotten.code, 200 | 410), "{}", forgotten.code);
}

#[tokio::test]
async fn selectors_choose() {
    let client = Client::new().await;
    for name in ["a", "b"] {
        client.config_map(name, &json!({})).await;
    }
    let by_label = client
        .get(&format!("{MAPS}?labelSelector=app%3Da"))
        .await
        .expect(200);
    assert_eq!(names(&by_label), ["a"]);
    let by_name = client
        .get(&format!("{MAPS}?fieldSelector=metadata.name%21%3Da"))
        .await
        .expect(200);
    assert_eq!(names(&by_name), ["b"]);
    assert_eq!(
        client
            .get(&format!("{MAPS}?fieldSelector=data%3Da"))
            .await
            .code,
        400
    );
    let everywhere = client.get("/api/v1/configmaps").await.expect(200);
    assert_eq!(names(&everywhere), ["a", "b"]);
    assert_eq!(everywhere["kind"], "ConfigMapList");
    client
        .send("DELETE", &format!("{MAPS}?labelSelector=app%3Da"), "", "")
        .await
        .expect(200);
    assert_eq!(names(&client.get(MAPS).await.expect(200)), ["b"]);
}

#[tokio::test]
async fn namespaces_whose_names_begin_alike_are_told_apart() {
    let client = Client::new().await;
    for name in ["default-2", "defaul"] {
        client
            .post("/api/v1/namespaces", &json!({"metadata": {"name": name}}))
            .await
            .expect(201);
        let path = format!("/api/v1/namespaces/{name}/configmaps");
        client
            .post(&path, &json!({"metadata": {"name": "other"}}))
            .await
            .expect(201);
    }
    client.config_map("own", &json!({})).await;
    assert_eq!(names(&client.get(MAPS).await.expect(200)), ["own"]);
}

#[tokio::test]
async fn a_large_list_is_the_same_in_every_form() {
    let client = Client::new().await;
    let filler = "x".repeat(60 << 10);
    for name in ["a", "b", "c"] {
        client.config_map(name, &json!({"filler": filler})).await;
    }
    let plain = client.get(MAPS).await.expect(200);
    let ask = async |accept: &str, encoding: &str| {
        let request = Request::builder()
            .uri(MAPS)
            .header("accept", accept)
            .header("accept-encoding", encoding)
            .body(Body::empty())
            .unwrap();
        let response = client.raw(request).await;
        assert_eq!(response.status(), 200);
        let headers = response.headers().clone();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (headers, bytes)
    };
    let (headers, packed) = ask("application/json", "gzip").await;
    assert_eq!(headers["content-encoding"], "gzip");
    let unpacked: Value =
        serde_json::from_reader(flate2::read::GzDecoder::new(&packed[..])).unwrap();
    assert_eq!(unpacked, plain);
    let (_, table) = ask("application/json;as=Table;v=v1;g=meta.k8s.io", "").await;
    let table: Value = serde_json::from_slice(&table).unwrap();
    let rows = table["rows"].as_array().unwrap().iter();
    let rows: Vec<&Value> = rows.map(|row| &row["cells"][0]).collect();
    assert_eq!(rows, ["a", "b", "c"]);
    let (headers, binary) = ask("application/vnd.kubernetes.protobuf", "").await;
    let media = &headers["content-type"];
    assert_eq!(media, "application/vnd.kubernetes.protobuf");
    assert!(binary.len() > 3 * filler.len());
}

#[tokio::test]
async fn a_page_of_a_version_is_of_that_version() {
    let client = Client::new().await;
    client.config_map("a", &json!({})).await;
    let then = client.get(MAPS).await.expect(200);
    let version = then["metadata"]["resourceVersion"].as_str().unwrap();
    let newer = client.config_map("b", &json!({})).await;
    let page = client
        .get(&format!("{MAPS}?limit=5&resourceVersion={version}"))
        .await
        .expect(200);
    assert_eq!(names(&page), ["a"]);
    // Without a limit it is the oldest state that will do.
    let version = newer["metadata"]["resourceVersion"].as_str().unwrap();
    let list = client
        .get(&format!("{MAPS}?resourceVersion={version}"))
        .await
        .expect(200);
    assert_eq!(names(&list), ["a", "b"]);
}

#[tokio::test]
async fn a_list_that_asks_for_what_does_not_go_together_is_refused() {
    let client = Client::new().await;
    for name in ["a", "b"] {
        client.config_map(name, &json!({})).await;
    }
    let first = client.get(&format!("{MAPS}?limit=1")).await.expect(200);
    let token = first["metadata"]["continue"].as_str().unwrap();
    let version = first["metadata"]["resourceVersion"].as_str().unwrap();
    for (query, code) in [
        (
            format!("limit=1&continue={token}&resourceVersion={version}"),
            400,
        ),
        ("sendInitialEvents=true".to_owned(), 422),
        ("resourceVersionMatch=Exact".to_owned(), 422),
        (
            "resourceVersionMatch=Exact&resourceVersion=0".to_owned(),
            422,
        ),
        (
            "resourceVersionMatch=Some&resourceVersion=1".to_owned(),
            422,
        ),
    ] {
        let refused = client.get(&format!("{MAPS}?{query}")).await;
        assert_eq!(refused.code, code, "{query}: {:#}", refused.body);
    }
    let rest = format!("{MAPS}?limit=1&continue={token}&resourceVersion=0");
    assert_eq!(names(&client.get(&rest).await.expect(200)), ["b"]);
}

#[tokio::test]
async fn what_remains_of_a_list_is_in_its_namespace() {
    let client = Client::new().await;
    let other = json!({"metadata": {"name": "other"}});
    client.post("/api/v1/namespaces", &other).await.expect(201);
    for name in ["a", "b", "c"] {
        client.config_map(name, &json!({})).await;
        let map = json!({"metadata": {"name": name}});
        let path = "/api/v1/namespaces/other/configmaps";
        client.post(path, &map).await.expect(201);
    }
    let page = client.get(&format!("{MAPS}?limit=1")).await.expect(200);
    assert_eq!(page["metadata"]["remainingItemCount"], 2);
    // The state of before is counted in the same way.
    let version = page["metadata"]["resourceVersion"].as_str().unwrap();
    client.config_map("d", &json!({})).await;
    let past = client
        .get(&format!(
            "{MAPS}?limit=1&resourceVersion={version}&resourceVersionMatch=Exact"
        ))
        .await
        .expect(200);
    assert_eq!(past["metadata"]["remainingItemCount"], 2);
}

#[tokio::test]
async fn a_right_to_one_name_is_a_right_to_lists_of_that_name() {
    let client = Client::new().await;
    for name in ["a", "b"] {
        client.config_map(name, &json!({})).await;
    }
    let rules = json!([{
        "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"], "verbs": ["list"],
    }]);
    let visitor = client.visitor("reader", &rules).await;
    for query in [
        "metadata.name=a",
        "metadata.name==a",
        "metadata.name=a,metadata.namespace=default",
    ] {
        let query = query.replace('=', "%3D");
        let list = visitor.get(&format!("{MAPS}?fieldSelector={query}")).await;
        assert_eq!(list.code, 200, "{query}: {:#}", list.body);
        assert_eq!(names(&list.body), ["a"]);
    }
    for query in ["", "metadata.name%3Db", "metadata.name!%3Da"] {
        let list = visitor.get(&format!("{MAPS}?fieldSelector={query}")).await;
        assert_eq!(list.code, 403, "{query}");
    }
}
