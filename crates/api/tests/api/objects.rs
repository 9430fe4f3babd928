//! Objects: make, read, change, delete.

use serde_json::{Value, json};

use crate::client::Client;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn a_new_object_gets_what_the_server_gives() {
    let client = Client::new().await;
    let made = client.config_map("a", &json!({"key": "value"})).await;
    assert_eq!(made["kind"], "ConfigMap");
    assert_eq!(made["metadata"]["namespace"], "default");
    assert!(
        made["metadata"]["uid"].is_string() && made["metadata"]["creationTimestamp"].is_string()
    );
    let read = client.get(&format!("{MAPS}/a")).await.expect(200);
    assert_eq!(read, made);
}

#[tokio::test]
async fn a_name_is_taken_once() {
    let client = Client::new().await;
    client.config_map("a", &json!({})).await;
    let answer = client.post(MAPS, &json!({"metadata": {"name": "a"}})).await;
    assert_eq!(answer.code, 409);
    assert_eq!(answer.body["reason"], "AlreadyExists");
    assert_eq!(answer.body["message"], "configmaps \"a\" already exists");
    assert_eq!(
        answer.body["details"],
        json!({"name": "a", "kind": "configmaps"})
    );
}

#[tokio::test]
async fn a_generated_name_is_new_each_time() {
    let client = Client::new().await;
    let object = json!({"metadata": {"generateName": "web-"}});
    let first = client.post(MAPS, &object).await.expect(201);
    let second = client.post(MAPS, &object).await.expect(201);
    let name = first["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("web-") && name.len() == 9, "{name}");
    assert_ne!(first["metadata"]["name"], second["metadata"]["name"]);
}

#[tokio::test]
async fn an_update_of_an_old_version_is_a_conflict() {
    let client = Client::new().await;
    let old = client.config_map("a", &json!({"n": "1"})).await;
    let mut new = old.clone();
    new["data"]["n"] = "2".into();
    let path = format!("{MAPS}/a");
    let updated = client.put(&path, &new).await.expect(200);
    assert_eq!(updated["data"]["n"], "2");
    let answer = client.put(&path, &old).await;
    assert_eq!(
        (answer.code, &answer.body["reason"]),
        (409, &json!("Conflict"))
    );
    assert!(
        answer.body["message"]
            .as_str()
            .unwrap()
            .contains("the object has been modified")
    );
}

#[tokio::test]
async fn an_update_that_changes_nothing_is_not_written() {
    let client = Client::new().await;
    let made = client.config_map("a", &json!({"n": "1"})).await;
    let again = client.put(&format!("{MAPS}/a"), &made).await.expect(200);
    assert_eq!(
        again["metadata"]["resourceVersion"],
        made["metadata"]["resourceVersion"]
    );
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let client = Client::new().await;
    let answer = client.get(&format!("{MAPS}/nothing")).await;
    assert_eq!(answer.code, 404);
    assert_eq!(answer.body["message"], "configmaps \"nothing\" not found");
    assert_eq!(
        client.get("/api/v1/namespaces/default/nothings").await.code,
        404
    );
    assert_eq!(
        client.get("/apis/none.example.org/v1/things").await.code,
        404
    );
    assert_eq!(client.delete(&format!("{MAPS}/nothing")).await.code, 404);
    assert_eq!(
        client.put("/api/v1/configmaps/a", &json!({})).await.code,
        405
    );
}

#[tokio::test]
async fn a_merge_patch_changes_and_removes() {
    let client = Client::new().await;
    client.config_map("a", &json!({"x": "1", "y": "2"})).await;
    let patch = json!({"data": {"x": null, "z": "3"}});
    let patched = client.merge(&format!("{MAPS}/a"), &patch).await.expect(200);
    assert_eq!(patched["data"], json!({"y": "2", "z": "3"}));
}

#[tokio::test]
async fn a_dry_run_leaves_no_trace() {
    let client = Client::new().await;
    let object = json!({"metadata": {"name": "a"}});
    client
        .post(&format!("{MAPS}?dryRun=All"), &object)
        .await
        .expect(201);
    assert_eq!(client.get(&format!("{MAPS}/a")).await.code, 404);
    client.config_map("a", &json!({"n": "1"})).await;
    let patched = client
        .merge(
            &format!("{MAPS}/a?dryRun=All"),
            &json!({"data": {"n": "2"}}),
        )
        .await;
    assert_eq!(patched.expect(200)["data"]["n"], "2");
    assert_eq!(
        client.delete(&format!("{MAPS}/a?dryRun=All")).await.code,
        200
    );
    let read = client.get(&format!("{MAPS}/a")).await.expect(200);
    assert_eq!(read["data"]["n"], "1");
}

#[tokio::test]
async fn an_object_with_finalizers_goes_when_the_last_is_taken_off() {
    let client = Client::new().await;
    let object = json!({"metadata": {"name": "a", "finalizers": ["example.org/one"]}});
    client.post(MAPS, &object).await.expect(201);
    let path = format!("{MAPS}/a");
    let deleted = client.delete(&path).await.expect(200);
    assert!(deleted["metadata"]["deletionTimestamp"].is_string());
    let read = client.get(&path).await.expect(200);
    assert!(read["metadata"]["deletionTimestamp"].is_string());
    client
        .merge(&path, &json!({"metadata": {"finalizers": null}}))
        .await
        .expect(200);
    assert_eq!(client.get(&path).await.code, 404);
}

#[tokio::test]
async fn a_deletion_can_have_preconditions() {
    let client = Client::new().await;
    client.config_map("a", &json!({})).await;
    let path = format!("{MAPS}/a");
    let wrong = json!({"preconditions": {"uid": "other"}}).to_string();
    let answer = client
        .send("DELETE", &path, "application/json", wrong)
        .await;
    assert_eq!(
        (answer.code, &answer.body["reason"]),
        (409, &json!("Conflict"))
    );
    client.delete(&path).await.expect(200);
}

#[tokio::test]
async fn a_pod_on_a_node_is_given_its_time() {
    let client = Client::new().await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = |name: &str, node: Value| {
        json!({
            "metadata": {"name": name},
            "spec": {"nodeName": node, "terminationGracePeriodSeconds": 7,
                "containers": [{"name": "c", "image": "i"}]},
        })
    };
    client
        .post(pods, &pod("placed", "n1".into()))
        .await
        .expect(201);
    let deleted = client.delete(&format!("{pods}/placed")).await.expect(200);
    assert_eq!(deleted["metadata"]["deletionGracePeriodSeconds"], 7);
    client.get(&format!("{pods}/placed")).await.expect(200);
    let now = json!({"gracePeriodSeconds": 0}).to_string();
    client
        .send("DELETE", &format!("{pods}/placed"), "application/json", now)
        .await
        .expect(200);
    assert_eq!(client.get(&format!("{pods}/placed")).await.code, 404);
}

#[tokio::test]
async fn a_status_is_written_through_its_own_path() {
    let client = Client::new().await;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let object = json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
        "status": {"replicas": 9},
    });
    let made = client.post(path, &object).await.expect(201);
    assert_eq!(made["metadata"]["generation"], 1);
    assert_ne!(made["status"]["replicas"], 9);
    let one = format!("{path}/web");
    let both = json!({"status": {"replicas": 5}, "spec": {"replicas": 5}});
    let status = client
        .merge(&format!("{one}/status"), &both)
        .await
        .expect(200);
    assert_eq!(
        (&status["status"]["replicas"], &status["spec"]["replicas"]),
        (&json!(5), &json!(2))
    );
    assert_eq!(status["metadata"]["generation"], 1);
    let main = client
        .merge(
            &one,
            &json!({"status": {"replicas": 1}, "spec": {"replicas": 3}}),
        )
        .await
        .expect(200);
    assert_eq!(
        (&main["status"]["replicas"], &main["spec"]["replicas"]),
        (&json!(5), &json!(3))
    );
    assert_eq!(main["metadata"]["generation"], 2);
    let scale = client.get(&format!("{one}/scale")).await.expect(200);
    assert_eq!(scale["spec"]["replicas"], 3);
    assert_eq!(
        scale["status"],
        json!({"replicas": 5, "selector": "app=web"})
    );
    client
        .merge(&format!("{one}/scale"), &json!({"spec": {"replicas": 4}}))
        .await
        .expect(200);
    assert_eq!(client.get(&one).await.expect(200)["spec"]["replicas"], 4);
}

#[tokio::test]
async fn a_service_gets_an_address_of_its_own() {
    let client = Client::new().await;
    let path = "/api/v1/namespaces/default/services";
    let service = |name: &str, address: Option<&str>| {
        let mut object = json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}});
        if let Some(address) = address {
            object["spec"]["clusterIP"] = address.into();
        }
        object
    };
    let made = client.post(path, &service("a", None)).await.expect(201);
    let address = made["spec"]["clusterIP"].as_str().unwrap().to_owned();
    assert!(address.starts_with("10.43."), "{address}");
    assert_eq!(made["spec"]["clusterIPs"], json!([address]));
    let taken = client.post(path, &service("b", Some(&address))).await;
    assert_eq!(taken.code, 422, "{:#}", taken.body);
    let outside = client.post(path, &service("b", Some("192.168.1.1"))).await;
    assert_eq!(outside.code, 422);
    client.delete(&format!("{path}/a")).await.expect(200);
    client
        .post(path, &service("b", Some(&address)))
        .await
        .expect(201);
    let nodes =
        json!({"metadata": {"name": "c"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    let made = client.post(path, &nodes).await.expect(201);
    let port = made["spec"]["ports"][0]["nodePort"].as_u64().unwrap();
    assert!((30_000..32_768).contains(&port), "{port}");
}

#[tokio::test]
async fn a_pod_is_bound_once() {
    let client = Client::new().await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod =
        json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    client.post(pods, &pod).await.expect(201);
    let binding = json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}});
    client
        .post(&format!("{pods}/a/binding"), &binding)
        .await
        .expect(201);
    let read = client.get(&format!("{pods}/a")).await.expect(200);
    assert_eq!(read["spec"]["nodeName"], "n1");
    assert_eq!(read["status"]["conditions"][0]["type"], "PodScheduled");
    let again = client.post(&format!("{pods}/a/binding"), &binding).await;
    assert_eq!(again.code, 409);
}

#[tokio::test]
async fn a_body_that_is_too_large_or_broken_is_refused() {
    let client = Client::new().await;
    let large = json!({"metadata": {"name": "a"}, "data": {"x": "y".repeat(4 << 20)}});
    assert_eq!(client.post(MAPS, &large).await.code, 413);
    assert_eq!(
        client
            .send("POST", MAPS, "application/json", "{")
            .await
            .code,
        400
    );
    assert_eq!(client.send("POST", MAPS, "text/html", "{}").await.code, 415);
    let other = json!({"kind": "Secret", "metadata": {"name": "a"}});
    assert_eq!(client.post(MAPS, &other).await.code, 400);
    let elsewhere = json!({"metadata": {"name": "a", "namespace": "other"}});
    assert_eq!(client.post(MAPS, &elsewhere).await.code, 400);
}

#[tokio::test]
async fn unknown_fields_are_told_or_refused() {
    let client = Client::new().await;
    let object = json!({"metadata": {"name": "a"}, "foo": 1});
    let strict = client
        .post(&format!("{MAPS}?fieldValidation=Strict"), &object)
        .await;
    assert_eq!(strict.code, 400);
    assert!(
        strict.body["message"]
            .as_str()
            .unwrap()
            .contains("unknown field \"foo\""),
        "{}",
        strict.body
    );
    let warned = client
        .post(&format!("{MAPS}?fieldValidation=Warn"), &object)
        .await;
    assert_eq!(warned.warnings, ["299 - \"unknown field \\\"foo\\\"\""]);
    assert!(warned.body.get("foo").is_none());
}

#[tokio::test]
async fn an_event_that_is_written_again_still_goes_by_itself() {
    let client = Client::new().await;
    let events = "/api/v1/namespaces/default/events";
    let event = json!({
        "metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
        "reason": "Started", "message": "m", "type": "Normal",
    });
    client.post(events, &event).await.expect(201);
    client
        .merge(&format!("{events}/e"), &json!({"count": 2}))
        .await
        .expect(200);
    let stored = client
        .store
        .get("/registry/core/events/default/e")
        .await
        .unwrap()
        .unwrap();
    assert!(stored.lease.is_some());
}

#[tokio::test]
async fn many_writers_of_one_key_lose_nothing() {
    let client = std::sync::Arc::new(Client::new().await);
    client.config_map("counter", &json!({"n": "0"})).await;
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let client = std::sync::Arc::clone(&client);
        writers.spawn(async move {
            let path = format!("{MAPS}/counter");
            let mut done = 0;
            while done < 10 {
                let mut object = client.get(&path).await.expect(200);
                let count: u64 = object["data"]["n"].as_str().unwrap().parse().unwrap();
                object["data"]["n"] = (count + 1).to_string().into();
                let answer = client.put(&path, &object).await;
                match answer.code {
                    200 => done += 1,
                    409 => {}
                    code => panic!("{code}: {:#}", answer.body),
                }
            }
        });
    }
    while let Some(ended) = writers.join_next().await {
        ended.unwrap();
    }
    let read = client.get(&format!("{MAPS}/counter")).await.expect(200);
    assert_eq!(read["data"]["n"], "80");
}

#[tokio::test]
async fn what_is_not_served_is_neither_offered_nor_found() {
    let client = Client::new().await;
    let groups = client.get("/apis").await.expect(200);
    let names: Vec<&Value> = groups["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| &group["name"])
        .collect();
    assert!(names.contains(&&json!("storage.k8s.io")));
    for (group, plural) in [
        (
            "admissionregistration.k8s.io",
            "validatingwebhookconfigurations",
        ),
        ("flowcontrol.apiserver.k8s.io", "flowschemas"),
        ("apiregistration.k8s.io", "apiservices"),
    ] {
        assert!(!names.contains(&&json!(group)), "{group}");
        for path in [
            format!("/apis/{group}"),
            format!("/apis/{group}/v1"),
            format!("/apis/{group}/v1/{plural}"),
        ] {
            let answer = client.get(&path).await;
            assert_eq!(answer.code, 404, "{path}");
            assert_eq!(
                answer.body["message"], "the server could not find the requested resource",
                "{path}"
            );
        }
    }
}

#[tokio::test]
async fn a_class_of_volume_attributes_does_not_change() {
    let client = Client::new().await;
    let path = "/apis/storage.k8s.io/v1/volumeattributesclasses";
    let class = json!({
        "metadata": {"name": "fast"}, "driverName": "example.org", "parameters": {"iops": "9"},
    });
    let empty = json!({"metadata": {"name": "none"}, "driverName": "example.org"});
    assert_eq!(client.post(path, &empty).await.code, 422);
    client.post(path, &class).await.expect(201);
    let one = format!("{path}/fast");
    let changed = client
        .merge(&one, &json!({"parameters": {"iops": "10"}}))
        .await;
    assert_eq!(changed.code, 422, "{:#}", changed.body);
    // Nobody would take a finalizer off.
    client.delete(&one).await.expect(200);
    assert_eq!(client.get(&one).await.code, 404);
}

#[tokio::test]
async fn a_server_that_can_be_asked_is_alive() {
    let client = Client::new().await;
    for path in ["/livez/ping", "/readyz/store", "/healthz/shutdown"] {
        assert_eq!(client.get(path).await.expect(200), "ok", "{path}");
    }
    // A server that stops is alive until it is gone.
    assert_eq!(client.get("/livez/shutdown").await.code, 404);
    assert_eq!(client.get("/livez/other").await.code, 404);
    assert_eq!(client.get("//livez").await.code, 404);
    assert_eq!(client.get("/version/ping").await.code, 404);
}
