//! Ownership by example: what every other write does, and the stored entries.

use serde_json::{Value, json};

use super::{
    super::{Request, Scope, keep_times, manager_name, update},
    World, applied, config_map, owners,
};

#[test]
fn a_write_that_came_to_nothing_keeps_the_times() {
    let world = World::config_maps();
    let live = update(&world.request("m", 0), None, config_map(&json!({"a": "1"})));
    let mut later = live.clone();
    later["metadata"]["managedFields"][0]["time"] = json!("2030-01-01T00:00:00Z");
    let mut same = later.clone();
    keep_times(&live, &mut same);
    assert_eq!(same, live);
    later["data"]["a"] = json!("2");
    let mut changed = later.clone();
    keep_times(&live, &mut changed);
    assert_eq!(changed, later);
}

#[test]
fn the_owner_of_a_change_is_who_made_it_and_times_move_with_it() {
    let world = World::config_maps();
    let live = update(
        &world.request("kubectl-create", 0),
        None,
        config_map(&json!({"a": "1", "b": "1"})),
    );
    assert_eq!(
        owners(&live),
        ["kubectl-create Update .data .data.a .data.b"]
    );
    let mut new = live.clone();
    new["data"]["a"] = json!("2");
    let live = update(&world.request("kubectl-edit", 60), Some(&live), new);
    assert_eq!(
        owners(&live),
        [
            "kubectl-create Update .data .data.b",
            "kubectl-edit Update .data.a"
        ]
    );
    let times: Vec<&Value> = live["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["time"])
        .collect();
    assert_eq!(times, ["2027-01-15T08:00:00Z", "2027-01-15T08:01:00Z"]);
    let again = update(
        &world.request("kubectl-replace", 90),
        Some(&live),
        live.clone(),
    );
    assert_eq!(again, live);
}

#[test]
fn a_field_that_is_removed_has_no_owner() {
    let world = World::config_maps();
    let live = applied(None, "one", &json!({"a": "1", "b": "1"}), false).unwrap();
    let mut new = live.clone();
    new["data"].as_object_mut().unwrap().remove("a");
    let live = update(&world.request("kubectl-edit", 60), Some(&live), new);
    assert_eq!(owners(&live), ["one Apply .data.b"]);
}

#[test]
fn a_deployment_of_kubectl_create_has_the_owners_upstream_records() {
    let world = World::deployments();
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "uid": "u", "labels": {"app": "web"}},
        "spec": {
            "replicas": 1, "progressDeadlineSeconds": 600,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [{
                        "name": "nginx", "image": "nginx", "imagePullPolicy": "Always",
                        "ports": [{"containerPort": 80, "protocol": "TCP"}],
                    }],
                    "dnsPolicy": "ClusterFirst", "securityContext": {},
                },
            },
        },
        "status": {},
    });
    let live = update(&world.request("kubectl-create", 0), None, deployment);
    assert_eq!(
        live["metadata"]["managedFields"][0]["fieldsV1"],
        json!({
            "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
            "f:spec": {
                "f:progressDeadlineSeconds": {}, "f:replicas": {}, "f:selector": {},
                "f:strategy": {
                    "f:rollingUpdate": {".": {}, "f:maxSurge": {}, "f:maxUnavailable": {}},
                    "f:type": {}},
                "f:template": {
                    "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                    "f:spec": {
                        "f:containers": {"k:{\"name\":\"nginx\"}": {
                            ".": {}, "f:image": {}, "f:imagePullPolicy": {}, "f:name": {},
                            "f:ports": {".": {}, "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {
                                ".": {}, "f:containerPort": {}, "f:protocol": {}}},
                            "f:resources": {}}},
                        "f:dnsPolicy": {}, "f:securityContext": {}}}}})
    );
}

#[test]
fn a_client_may_move_fields_to_another_owner_and_reset_all() {
    let world = World::config_maps();
    let live = update(
        &world.request("kubectl-client-side-apply", 0),
        None,
        config_map(&json!({"a": "1"})),
    );
    let mut moved = live.clone();
    moved["metadata"]["managedFields"][0]["manager"] = json!("kubectl");
    moved["metadata"]["managedFields"][0]["operation"] = json!("Apply");
    let live = update(&world.request("kubectl", 0), Some(&live), moved);
    assert_eq!(owners(&live), ["kubectl Apply .data .data.a"]);

    for reset in [json!([{}]), json!([])] {
        let mut new = live.clone();
        new["metadata"]["managedFields"] = reset;
        let untracked = update(&world.request("kubectl", 0), Some(&live), new);
        assert_eq!(untracked["metadata"].get("managedFields"), None);
        let mut changed = untracked.clone();
        changed["data"]["a"] = json!("2");
        let changed = update(&world.request("kubectl", 0), Some(&untracked), changed);
        assert_eq!(changed["metadata"].get("managedFields"), None);
        let live = applied(Some(&changed), "m", &json!({"b": "1"}), false).unwrap();
        assert_eq!(
            owners(&live),
            ["m Apply .data.b", "before-first-apply Update .data .data.a"]
        );
    }
}

#[test]
fn entries_that_are_not_well_formed_are_not_taken() {
    let world = World::config_maps();
    let live = update(
        &world.request("creator", 0),
        None,
        config_map(&json!({"a": "1"})),
    );
    for entry in [
        json!({"manager": "x", "operation": "Replace", "apiVersion": "v1", "fieldsType": "FieldsV1"}),
        json!({"manager": "x", "operation": "Apply", "fieldsType": "FieldsV1"}),
        json!({"manager": "x", "operation": "Apply", "apiVersion": "v1"}),
        json!({"manager": "x", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"q:a": {}}}),
        json!("x"),
    ] {
        let mut new = live.clone();
        new["metadata"]["managedFields"] = json!([entry]);
        assert_eq!(update(&world.request("editor", 1), Some(&live), new), live);
    }
}

#[test]
fn a_subresource_has_owners_of_its_own_and_cannot_move_fields() {
    let world = World::deployments();
    let live = update(
        &world.request("creator", 0),
        None,
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 1}}),
    );
    let mut new = live.clone();
    new["status"] = json!({"replicas": 1});
    new["metadata"]["managedFields"] = json!([{}]);
    let request = Request {
        subresource: "status",
        ..world.request("controller", 5)
    };
    let live = update(&request, Some(&live), new);
    assert_eq!(
        owners(&live),
        [
            "creator Update .spec.replicas",
            "controller Update/status .status.replicas"
        ]
    );
}

#[test]
fn what_an_endpoint_ignores_has_no_owner() {
    let world = World::deployments();
    let request = |subresource, scope| Request {
        subresource,
        scope,
        ..world.request("creator", 0)
    };
    let but_status = Scope::all_but(&[&["status"]]);
    let live = update(
        &request("", &but_status),
        None,
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"replicas": 1}, "status": {"replicas": 3}}),
    );
    assert_eq!(owners(&live), ["creator Update .spec.replicas"]);
    let mut both = live.clone();
    both["spec"]["replicas"] = json!(5);
    both["status"]["replicas"] = json!(4);
    let status = update(
        &request("status", &Scope::Only(&[&["status"]])),
        Some(&live),
        both.clone(),
    );
    assert_eq!(owners(&status)[1], "creator Update/status .status.replicas");
    let all = update(&request("", &Scope::everything()), Some(&live), both);
    assert_eq!(
        owners(&all),
        ["creator Update .spec.replicas .status.replicas"]
    );
}

#[test]
fn the_oldest_of_more_than_ten_updaters_are_one() {
    let world = World::config_maps();
    let mut live = update(
        &world.request("m0", 0),
        None,
        config_map(&json!({"k0": "1"})),
    );
    for number in 1..13 {
        let mut new = live.clone();
        new["data"][format!("k{number}")] = json!("1");
        let manager = format!("m{number}");
        live = update(&world.request(&manager, number), Some(&live), new);
    }
    let owners = owners(&live);
    assert_eq!(owners.len(), 10);
    assert_eq!(
        owners[0],
        "ancient-changes Update .data .data.k0 .data.k1 .data.k2 .data.k3"
    );
    assert_eq!(owners[1], "m4 Update .data.k4");
}

#[test]
fn a_writer_without_a_name_is_called_by_its_program() {
    assert_eq!(manager_name("me", "kubectl/v1.36.4 (linux/amd64)"), "me");
    assert_eq!(manager_name("", "kubectl/v1.36.4 (linux/amd64)"), "kubectl");
    assert_eq!(manager_name("", &"é".repeat(100)), "é".repeat(64));
    let live = update(
        &World::config_maps().request("", 0),
        None,
        config_map(&json!({"a": "1"})),
    );
    assert_eq!(owners(&live), ["unknown Update .data .data.a"]);
}

#[test]
fn a_place_that_became_one_value_is_owned_by_who_owned_a_part() {
    let world = World::deployments();
    let mut live = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"a": "1"}}}});
    live["metadata"]["managedFields"] = json!([{"manager": "m", "operation": "Apply", "apiVersion": "apps/v1",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:selector": {"f:matchLabels": {"f:a": {}}}}}}]);
    let mut new = live.clone();
    new["spec"]["replicas"] = json!(1);
    let live = update(&world.request("n", 0), Some(&live), new);
    assert_eq!(
        owners(&live),
        ["m Apply .spec.selector", "n Update .spec.replicas"]
    );
}

/// A guard against a change that makes it an order slower; the bound in release builds is 100 µs.
#[test]
fn owners_of_a_deployment_are_kept_in_no_time() {
    let world = World::deployments();
    let env: Vec<Value> = (0..20)
        .map(|n| json!({"name": format!("VARIABLE_{n}"), "value": "a value of some length"}))
        .collect();
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web", "tier": "front"}},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "nginx", "env": env}]}}}});
    assert!(deployment.to_string().len() > 1200);
    let live = update(&world.request("creator", 0), None, deployment);
    let mut new = live.clone();
    new["spec"]["replicas"] = json!(2);
    // The fastest of many, since other tests run beside.
    let fastest = (0..100)
        .map(|second| {
            let new = new.clone();
            let start = std::time::Instant::now();
            let changed = update(&world.request("editor", second), Some(&live), new);
            let taken = start.elapsed();
            assert_eq!(owners(&changed).len(), 2);
            taken
        })
        .min()
        .unwrap();
    println!("{fastest:?} for each update");
    assert!(
        fastest < std::time::Duration::from_millis(20),
        "{fastest:?}"
    );
}

#[test]
fn an_object_that_cannot_be_compared_keeps_its_owners() {
    let world = World::deployments();
    let with = |containers: &Value| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"template": {"spec": {"containers": containers}}}})
    };
    let live = update(
        &world.request("creator", 0),
        None,
        with(&json!([{"name": "a", "image": "a:1"}])),
    );
    let nameless = with(&json!([{"image": "a:1"}]));
    let changed = update(&world.request("editor", 1), Some(&live), nameless);
    assert_eq!(owners(&changed), owners(&live));
}
