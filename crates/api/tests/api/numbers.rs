//! `/metrics`: dashboards and alerts go by these names and labels, so they are a promise like any other.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::client::Client;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// One line: what is counted, of what, and how much.
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: String,
}

async fn samples(client: &Client) -> (String, Vec<Sample>) {
    let Value::String(text) = client.get("/metrics").await.expect(200) else {
        panic!("the numbers are a text");
    };
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let samples = lines.map(sample).collect();
    (text, samples)
}

fn sample(line: &str) -> Sample {
    let (series, value) = line.rsplit_once(' ').unwrap();
    let (name, labels) = series.split_once('{').unwrap_or((series, ""));
    let labels = labels.trim_end_matches('}').split(',');
    let labels = labels.filter_map(|label| label.split_once('='));
    let plain = |(name, value): (&str, &str)| (name.to_owned(), value.trim_matches('"').to_owned());
    Sample {
        name: name.to_owned(),
        labels: labels.map(plain).collect(),
        value: value.to_owned(),
    }
}

/// The number of the one series that has exactly these labels.
fn value<'a>(samples: &'a [Sample], name: &str, labels: &[(&str, &str)]) -> &'a str {
    let is_meant = |sample: &&Sample| {
        let is_of = |(name, value): &(&str, &str)| {
            let own = sample.labels.get(*name);
            own.is_some_and(|own| own == value)
        };
        let same = sample.labels.len() == labels.len() && labels.iter().all(is_of);
        sample.name == name && same
    };
    let mut found = samples.iter().filter(is_meant);
    let first = found
        .next()
        .unwrap_or_else(|| panic!("there is no {name} with {labels:?}"));
    assert!(
        found.next().is_none(),
        "{name} is there twice with {labels:?}"
    );
    &first.value
}

#[tokio::test]
async fn requests_are_counted_by_verb_resource_and_code() {
    let client = Client::new().await;
    client.config_map("a", &json!({"x": "1"})).await;
    client.get(&format!("{MAPS}/a")).await.expect(200);
    client.get(&format!("{MAPS}/b")).await.expect(404);
    client.get(MAPS).await.expect(200);
    let status = "/apis/apps/v1/namespaces/default/deployments/d/status";
    client.get(status).await.expect(404);
    let (text, samples) = samples(&client).await;
    assert!(
        text.contains("# TYPE apiserver_request counter\n"),
        "{text}"
    );
    for (verb, resource, group, subresource, code) in [
        ("create", "configmaps", "", "", "201"),
        ("get", "configmaps", "", "", "200"),
        ("get", "configmaps", "", "", "404"),
        ("list", "configmaps", "", "", "200"),
        ("get", "deployments", "apps", "status", "404"),
    ] {
        let labels = [
            ("verb", verb),
            ("group", group),
            ("resource", resource),
            ("subresource", subresource),
            ("code", code),
        ];
        let count = value(&samples, "apiserver_request_total", &labels);
        assert_eq!(count, "1", "{labels:?}");
    }
}

#[tokio::test]
async fn durations_are_in_buckets_and_those_of_watches_are_not() {
    let client = Client::new().await;
    for _ in 0..3 {
        client.get(MAPS).await.expect(200);
    }
    let mut events = client
        .watch(&format!("{MAPS}?watch=1&timeoutSeconds=1"))
        .await;
    while events.next().await.is_some() {}
    let (text, samples) = samples(&client).await;
    assert!(
        text.contains("# TYPE apiserver_request_duration_seconds histogram\n"),
        "{text}"
    );
    let labels = [("verb", "list"), ("group", ""), ("resource", "configmaps")];
    let of = |name: &str| {
        value(
            &samples,
            &format!("apiserver_request_duration_seconds_{name}"),
            &labels,
        )
    };
    assert_eq!(of("count"), "3");
    assert_ne!(of("sum"), "0.0");
    let mut last = 0;
    for bound in ["0.001", "0.01", "0.1", "1.0", "10.0", "30.0", "+Inf"] {
        let mut labels = labels.to_vec();
        labels.push(("le", bound));
        let count = value(
            &samples,
            "apiserver_request_duration_seconds_bucket",
            &labels,
        );
        let count: u64 = count.parse().unwrap();
        assert!(count >= last, "{bound}");
        last = count;
    }
    assert_eq!(last, 3);
    let is_watch = |sample: &&Sample| {
        sample
            .labels
            .get("verb")
            .is_some_and(|verb| verb == "watch")
    };
    let names: Vec<&str> = samples
        .iter()
        .filter(is_watch)
        .map(|sample| sample.name.as_str())
        .collect();
    assert_eq!(names, ["apiserver_request_total"]);
}

#[tokio::test]
async fn what_is_there_now_is_told_by_resource() {
    let client = Client::new().await;
    client.config_map("a", &json!({"x": "1"})).await;
    let watch = client.watch(&format!("{MAPS}?watch=1")).await;
    let list = client.get(MAPS).await.expect(200);
    let here = list["items"].as_array().unwrap().len().to_string();
    let (_, during) = samples(&client).await;
    let maps = [("group", ""), ("resource", "configmaps")];
    assert_eq!(value(&during, "apiserver_storage_objects", &maps), here);
    assert_ne!(value(&during, "transom_cache_object_bytes", &maps), "0");
    assert_eq!(value(&during, "apiserver_registered_watchers", &maps), "1");
    assert_ne!(value(&during, "transom_cache_revision", &[]), "0");
    for kind in ["system", "ordinary", "lasting"] {
        for name in [
            "apiserver_current_inflight_requests",
            "apiserver_current_inqueue_requests",
        ] {
            value(&during, name, &[("request_kind", kind)]);
        }
    }
    drop(watch);
    let (_, after) = samples(&client).await;
    assert_eq!(value(&after, "apiserver_registered_watchers", &maps), "0");
}
