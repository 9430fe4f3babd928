//! Each reason why a pod cannot go to a node.

use serde_json::{Value, json};

use super::{node, outcome, pod, resident, snapshot};

/// What becomes of a pod on a cluster of one node with one pod.
fn on_one(node_is: &Value, other_is: &Value, pod_is: &Value) -> String {
    let mut snapshot = snapshot(
        &[node("n", "z", node_is)],
        &[resident("other", "n", other_is)],
    );
    outcome(&mut snapshot, &pod("p", pod_is))
}

fn table(cases: &[(Value, Value, Value, &str)]) {
    for (node_is, other_is, pod_is, expected) in cases {
        let expected = match *expected {
            "" => "n".to_owned(),
            reason => format!("0/1 nodes are available: {reason}."),
        };
        let found = on_one(node_is, other_is, pod_is);
        assert_eq!(found, expected, "{node_is} {other_is} {pod_is}");
    }
}

fn asks(requests: &Value) -> Value {
    json!({"spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}})
}

#[test]
fn resources_must_be_left() {
    let plain = json!({});
    let gpu = json!({"status": {"allocatable": {"example.org/gpu": "2"}}});
    table(&[
        (plain.clone(), plain.clone(), asks(&json!({"cpu": "3"})), ""),
        (
            plain.clone(),
            plain.clone(),
            asks(&json!({"cpu": "3001m"})),
            "1 Insufficient cpu",
        ),
        (
            plain.clone(),
            asks(&json!({"memory": "5Gi"})),
            asks(&json!({"memory": "4Gi", "cpu": "9"})),
            "1 Insufficient cpu, 1 Insufficient memory",
        ),
        (
            plain.clone(),
            plain.clone(),
            asks(&json!({"ephemeral-storage": "1"})),
            "1 Insufficient ephemeral-storage",
        ),
        (
            gpu.clone(),
            asks(&json!({"example.org/gpu": "1"})),
            asks(&json!({"example.org/gpu": "1"})),
            "",
        ),
        (
            gpu,
            asks(&json!({"example.org/gpu": "1"})),
            asks(&json!({"example.org/gpu": "2"})),
            "1 Insufficient example.org/gpu",
        ),
        (
            json!({"status": {"allocatable": {"pods": "1"}}}),
            plain.clone(),
            plain.clone(),
            "1 Too many pods",
        ),
        (
            json!({"status": {"allocatable": {"cpu": "0"}}}),
            plain.clone(),
            asks(&json!({})),
            "",
        ),
    ]);
}

#[test]
fn taints_must_be_tolerated() {
    let tainted =
        |effect: &str| json!({"spec": {"taints": [{"key": "k", "value": "v", "effect": effect}]}});
    let tolerates = |toleration: Value| json!({"spec": {"tolerations": [toleration]}});
    let refused = "1 node(s) had untolerated taint {k: v}";
    let plain = json!({});
    let closed = json!({"spec": {"unschedulable": true}});
    table(&[
        (tainted("NoSchedule"), plain.clone(), plain.clone(), refused),
        (tainted("NoExecute"), plain.clone(), plain.clone(), refused),
        (
            tainted("PreferNoSchedule"),
            plain.clone(),
            plain.clone(),
            "",
        ),
        (
            tainted("NoSchedule"),
            plain.clone(),
            tolerates(json!({"operator": "Exists"})),
            "",
        ),
        (
            tainted("NoSchedule"),
            plain.clone(),
            tolerates(json!({"key": "k", "operator": "Exists"})),
            "",
        ),
        (
            tainted("NoSchedule"),
            plain.clone(),
            tolerates(json!({"key": "k", "value": "v"})),
            "",
        ),
        (
            tainted("NoSchedule"),
            plain.clone(),
            tolerates(json!({"key": "k", "value": "w"})),
            refused,
        ),
        (
            tainted("NoSchedule"),
            plain.clone(),
            tolerates(json!({"key": "k", "operator": "Exists", "effect": "NoExecute"})),
            refused,
        ),
        (
            closed.clone(),
            plain.clone(),
            plain.clone(),
            "1 node(s) were unschedulable",
        ),
        (
            closed,
            plain.clone(),
            tolerates(json!({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"})),
            "",
        ),
    ]);
}

#[test]
fn selectors_and_affinity_choose_nodes() {
    let plain = json!({});
    let selects = |key: &str, value: &str| json!({"spec": {"nodeSelector": {key: value}}});
    let requires = |terms: Value| {
        json!({"spec": {"affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}}})
    };
    let refused = "1 node(s) didn't match Pod's node affinity/selector";
    let term = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
    let named = |name: &str| json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]});
    table(&[
        (
            plain.clone(),
            plain.clone(),
            selects("kubernetes.io/os", "linux"),
            "",
        ),
        (
            plain.clone(),
            plain.clone(),
            selects("beta.kubernetes.io/os", "linux"),
            "",
        ),
        (
            plain.clone(),
            plain.clone(),
            selects("beta.kubernetes.io/arch", "amd64"),
            "",
        ),
        (
            plain.clone(),
            plain.clone(),
            selects("kubernetes.io/os", "windows"),
            refused,
        ),
        (
            plain.clone(),
            plain.clone(),
            requires(json!([named("n")])),
            "",
        ),
        (
            plain.clone(),
            plain.clone(),
            requires(json!([named("m")])),
            refused,
        ),
        (plain.clone(), plain.clone(), requires(json!([{}])), refused),
        (
            plain.clone(),
            plain.clone(),
            requires(json!([
                term("x", "Exists", &[]),
                term("x", "DoesNotExist", &[])
            ])),
            "",
        ),
        (
            json!({"metadata": {"labels": {"size": "7"}}}),
            plain.clone(),
            requires(json!([term("size", "Gt", &["6"])])),
            "",
        ),
        (
            json!({"metadata": {"labels": {"size": "7"}}}),
            plain.clone(),
            requires(json!([term("size", "Lt", &["7"])])),
            refused,
        ),
    ]);
}

#[test]
fn ports_of_the_node_are_used_once() {
    let uses = |ip: &str, protocol: &str, port: i32| {
        json!({"spec": {"containers": [{"name": "c", "ports": [
            {"containerPort": 1, "hostPort": port, "hostIP": ip, "protocol": protocol}]}]}})
    };
    let refused = "1 node(s) didn't have free ports for the requested pod ports";
    let plain = json!({});
    table(&[
        (
            plain.clone(),
            uses("", "TCP", 80),
            uses("", "TCP", 80),
            refused,
        ),
        (plain.clone(), uses("", "TCP", 80), uses("", "UDP", 80), ""),
        (plain.clone(), uses("", "TCP", 80), uses("", "TCP", 81), ""),
        (
            plain.clone(),
            uses("10.0.0.1", "TCP", 80),
            uses("10.0.0.2", "TCP", 80),
            "",
        ),
        (
            plain.clone(),
            uses("10.0.0.1", "TCP", 80),
            uses("10.0.0.1", "TCP", 80),
            refused,
        ),
        (
            plain.clone(),
            uses("0.0.0.0", "TCP", 80),
            uses("10.0.0.1", "TCP", 80),
            refused,
        ),
        (
            plain.clone(),
            uses("10.0.0.1", "TCP", 80),
            uses("", "TCP", 80),
            refused,
        ),
    ]);
}

#[test]
fn pods_share_addresses_of_a_node_if_they_ask_for_one() {
    let node_is = json!({"metadata": {"annotations": {"scheduler.transom.dev/addresses": "10.0.0.1, 10.0.0.2"}}});
    let uses = |address: Value| {
        json!({"metadata": {"annotations": {"scheduler.transom.dev/address": address}},
               "spec": {"containers": [{"name": "c", "ports": [{"containerPort": 1, "hostPort": 80}]}]}})
    };
    let refused = "1 node(s) had no address with all requested ports free";
    table(&[
        (
            node_is.clone(),
            uses(json!("10.0.0.1")),
            uses(json!("auto")),
            "",
        ),
        (
            json!({}),
            uses(json!("10.0.0.1")),
            uses(json!("auto")),
            refused,
        ),
        (json!({}), json!({}), uses(json!("auto")), ""),
        (
            node_is.clone(),
            uses(json!("")),
            uses(json!("auto")),
            refused,
        ),
        (
            node_is,
            uses(json!("10.0.0.1")),
            uses(json!("")),
            "1 node(s) didn't have free ports for the requested pod ports",
        ),
    ]);
}

#[test]
fn a_node_can_admit_only_some() {
    let node_is =
        json!({"metadata": {"annotations": {"scheduler.transom.dev/require-any": "app=db,gpu"}}});
    let labelled = |labels: Value| json!({"metadata": {"labels": labels}});
    table(&[
        (
            node_is.clone(),
            json!({}),
            json!({}),
            "1 node(s) admit only pods with certain labels",
        ),
        (
            node_is.clone(),
            json!({}),
            labelled(json!({"app": "DB"})),
            "",
        ),
        (node_is, json!({}), labelled(json!({"gpu": "x"})), ""),
    ]);
}

fn near(kind: &str, selects: &Value, topology: &str, more: &Value) -> Value {
    let mut term = json!({"labelSelector": {"matchLabels": selects}, "topologyKey": topology});
    super::merge(&mut term, more);
    json!({"spec": {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}})
}

#[test]
fn pods_are_near_to_some_and_far_from_others() {
    let zone = "topology.kubernetes.io/zone";
    let db = json!({"metadata": {"labels": {"app": "db"}}});
    let elsewhere = json!({"metadata": {"labels": {"app": "db"}, "namespace": "other"}});
    let to_db = json!({"app": "db"});
    let affinity = "1 node(s) didn't match pod affinity rules";
    let anti = "1 node(s) didn't match pod anti-affinity rules";
    let own = "1 node(s) didn't satisfy existing pods anti-affinity rules";
    let plain = json!({});
    let all = json!({"namespaceSelector": {}});
    table(&[
        (
            plain.clone(),
            db.clone(),
            near("podAffinity", &to_db, zone, &plain),
            "",
        ),
        (
            plain.clone(),
            plain.clone(),
            near("podAffinity", &to_db, zone, &plain),
            affinity,
        ),
        (
            plain.clone(),
            elsewhere.clone(),
            near("podAffinity", &to_db, zone, &plain),
            affinity,
        ),
        (
            plain.clone(),
            elsewhere.clone(),
            near("podAffinity", &to_db, zone, &all),
            "",
        ),
        (
            plain.clone(),
            elsewhere.clone(),
            near(
                "podAffinity",
                &to_db,
                zone,
                &json!({"namespaces": ["other"]}),
            ),
            "",
        ),
        (
            plain.clone(),
            db.clone(),
            near("podAffinity", &to_db, "nowhere", &plain),
            affinity,
        ),
        // The first of a group may be anywhere that has the label.
        (
            plain.clone(),
            db.clone(),
            near("podAffinity", &json!({"app": "web"}), zone, &plain),
            "",
        ),
        (
            plain.clone(),
            db.clone(),
            near("podAffinity", &json!({"app": "web"}), "nowhere", &plain),
            affinity,
        ),
        (
            plain.clone(),
            db.clone(),
            near("podAntiAffinity", &to_db, zone, &plain),
            anti,
        ),
        (
            plain.clone(),
            db.clone(),
            near("podAntiAffinity", &to_db, "nowhere", &plain),
            "",
        ),
        (
            plain.clone(),
            elsewhere.clone(),
            near("podAntiAffinity", &to_db, zone, &plain),
            "",
        ),
        (
            plain.clone(),
            near("podAntiAffinity", &json!({"app": "web"}), zone, &plain),
            plain.clone(),
            own,
        ),
        (
            plain.clone(),
            near("podAntiAffinity", &to_db, zone, &plain),
            plain.clone(),
            "",
        ),
    ]);
}

#[test]
fn a_namespace_is_chosen_by_its_labels() {
    let mut snapshot = snapshot(
        &[node("n", "z", &json!({}))],
        &[resident(
            "other",
            "n",
            &json!({"metadata": {"namespace": "red", "labels": {"app": "db"}}}),
        )],
    );
    let by_label = json!({"namespaceSelector": {"matchLabels": {"team": "red"}}});
    let wants = pod(
        "p",
        &near(
            "podAffinity",
            &json!({"app": "db"}),
            "kubernetes.io/hostname",
            &by_label,
        ),
    );
    assert!(outcome(&mut snapshot, &wants).starts_with("0/1"));
    let red = json!({"metadata": {"name": "red", "labels": {"team": "red"}}});
    snapshot.put_namespace(&serde_json::from_value(red).unwrap());
    assert_eq!(outcome(&mut snapshot, &wants), "n");
    snapshot.remove_namespace("red");
    assert!(outcome(&mut snapshot, &wants).starts_with("0/1"));
}

fn spread(skew: i32, topology: &str, more: &Value) -> Value {
    let mut rule = json!({
        "maxSkew": skew, "topologyKey": topology, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    });
    super::merge(&mut rule, more);
    json!({"spec": {"topologySpreadConstraints": [rule]}})
}

#[test]
fn pods_are_spread_over_zones() {
    let zone = "topology.kubernetes.io/zone";
    let nodes = [
        node("a1", "a", &json!({})),
        node("b1", "b", &json!({"metadata": {"labels": {"disk": "ssd"}}})),
        node(
            "c1",
            "c",
            &json!({"spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}}),
        ),
        node(
            "d1",
            "d",
            &json!({"metadata": {"labels": {zone: "", "kubernetes.io/hostname": "d1"}}}),
        ),
    ];
    let nodes = nodes.map(|mut node| {
        let labels = node.metadata.labels.get_or_insert_default();
        labels.retain(|_, value| !value.is_empty());
        node
    });
    let pods = [
        resident("x", "a1", &json!({})),
        resident("y", "a1", &json!({})),
        resident("z", "b1", &json!({})),
    ];
    let mut snapshot = snapshot(&nodes, &pods);
    let taint = "1 node(s) had untolerated taint {k: v}";
    let why = "node(s) didn't match pod topology spread constraints";
    let on_ssd = |mut value: Value| {
        value["spec"]["nodeSelector"] = json!({"disk": "ssd"});
        value
    };
    let selector = "node(s) didn't match Pod's node affinity/selector";
    for (wants, expected) in [
        // Zone c has none and nobody may go there, so a is 2 too many.
        (
            spread(1, zone, &json!({})),
            format!("0/4 nodes are available: 1 {why} (missing required label), {taint}, 2 {why}."),
        ),
        (spread(2, zone, &json!({})), "b1".to_owned()),
        (
            spread(1, zone, &json!({"nodeTaintsPolicy": "Honor"})),
            "b1".to_owned(),
        ),
        (
            spread(
                1,
                zone,
                &json!({"nodeTaintsPolicy": "Honor", "minDomains": 3}),
            ),
            format!("0/4 nodes are available: 1 {why} (missing required label), {taint}, 2 {why}."),
        ),
        (on_ssd(spread(1, zone, &json!({}))), "b1".to_owned()),
        (
            on_ssd(spread(1, zone, &json!({"nodeAffinityPolicy": "Ignore"}))),
            format!("0/4 nodes are available: 1 {why}, {taint}, 2 {selector}."),
        ),
    ] {
        let found = outcome(&mut snapshot, &pod("p", &wants));
        assert_eq!(found, expected, "{wants}");
    }
}

#[test]
fn matching_by_key_counts_only_pods_of_the_same_revision() {
    let hash = |hash: &str| json!({"metadata": {"labels": {"app": "web", "hash": hash}}});
    let mut snapshot = snapshot(
        &[node("a", "a", &json!({})), node("b", "b", &json!({}))],
        &[
            resident("old", "a", &hash("1")),
            resident("older", "a", &hash("1")),
        ],
    );
    let mut wants = spread(
        1,
        "topology.kubernetes.io/zone",
        &json!({"matchLabelKeys": ["hash"]}),
    );
    super::merge(&mut wants, &hash("2"));
    wants["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": "a"});
    wants["spec"]["topologySpreadConstraints"][0]["nodeAffinityPolicy"] = "Ignore".into();
    assert_eq!(outcome(&mut snapshot, &pod("p", &wants)), "a");
}

#[test]
fn no_nodes_is_said_as_such() {
    let mut empty = snapshot(&[], &[]);
    assert_eq!(
        outcome(&mut empty, &pod("p", &json!({}))),
        "no nodes available to schedule pods"
    );
}
