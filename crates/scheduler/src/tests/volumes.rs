//! Data decides where a pod can be.

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::{node, outcome, pod, resident, snapshot};
use crate::{ClaimPlan, Placement, Snapshot, place};

fn claim(snapshot: &mut Snapshot, name: &str, spec: &Value, phase: &str, annotations: &Value) {
    let mut value = json!({
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "local",
                 "resources": {"requests": {"storage": "5Gi"}}},
        "status": {"phase": phase},
    });
    super::merge(&mut value["spec"], spec);
    snapshot.put_claim(&serde_json::from_value(value).unwrap());
}

fn volume(snapshot: &mut Snapshot, name: &str, size: &str, on: &str, spec: &Value) {
    let mut value = json!({
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "local", "capacity": {"storage": size},
                 "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                     {"key": "kubernetes.io/hostname", "operator": "In", "values": [on]}]}]}}},
        "status": {"phase": "Available"},
    });
    super::merge(&mut value["spec"], spec);
    snapshot.put_volume(&serde_json::from_value(value).unwrap());
}

fn class(snapshot: &mut Snapshot, provisioner: &str, mode: &str) {
    let value = json!({"metadata": {"name": "local"}, "provisioner": provisioner, "volumeBindingMode": mode});
    snapshot.put_class(&serde_json::from_value(value).unwrap());
}

fn user() -> Pod {
    pod(
        "p",
        &json!({"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}}),
    )
}

fn cluster(mode: &str) -> Snapshot {
    let mut snapshot = snapshot(
        &[node("a", "z", &json!({})), node("b", "z", &json!({}))],
        &[],
    );
    class(&mut snapshot, "kubernetes.io/no-provisioner", mode);
    snapshot
}

const LATE: &str = "WaitForFirstConsumer";

#[test]
fn a_pod_goes_where_its_volume_is() {
    let mut snapshot = cluster(LATE);
    assert_eq!(
        outcome(&mut snapshot, &user()),
        "0/2 nodes are available: persistentvolumeclaim \"data\" not found."
    );
    claim(
        &mut snapshot,
        "data",
        &json!({"volumeName": "pv"}),
        "Bound",
        &json!({}),
    );
    assert_eq!(
        outcome(&mut snapshot, &user()),
        "0/2 nodes are available: 2 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)."
    );
    volume(
        &mut snapshot,
        "pv",
        "5Gi",
        "b",
        &json!({"claimRef": {"namespace": "default", "name": "data"}}),
    );
    assert_eq!(outcome(&mut snapshot, &user()), "b");
    snapshot.remove_node("b");
    assert_eq!(
        outcome(&mut snapshot, &user()),
        "0/1 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity."
    );
}

#[test]
fn a_claim_that_does_not_wait_must_be_bound_first() {
    let mut snapshot = cluster("Immediate");
    claim(&mut snapshot, "data", &json!({}), "Pending", &json!({}));
    assert_eq!(
        outcome(&mut snapshot, &user()),
        "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    );
}

#[test]
fn a_claim_that_waits_gets_the_smallest_volume_that_is_large_enough() {
    let mut snapshot = cluster(LATE);
    claim(&mut snapshot, "data", &json!({}), "Pending", &json!({}));
    volume(&mut snapshot, "small", "1Gi", "a", &json!({}));
    assert_eq!(
        outcome(&mut snapshot, &user()),
        "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind."
    );
    volume(&mut snapshot, "large", "50Gi", "b", &json!({}));
    volume(&mut snapshot, "medium", "6Gi", "b", &json!({}));
    volume(
        &mut snapshot,
        "block",
        "5Gi",
        "b",
        &json!({"volumeMode": "Block"}),
    );
    volume(
        &mut snapshot,
        "shared",
        "5Gi",
        "b",
        &json!({"accessModes": ["ReadOnlyMany"]}),
    );
    volume(
        &mut snapshot,
        "taken",
        "5Gi",
        "b",
        &json!({"claimRef": {"namespace": "default", "name": "other"}}),
    );
    let pod = snapshot.prepare(&user());
    let Placement::Node(found) = place(&snapshot, &pod) else {
        panic!("there is a volume")
    };
    assert_eq!(found.node, "b");
    let plan = ClaimPlan::Bind {
        claim: "data".to_owned(),
        volume: "medium".to_owned(),
    };
    assert_eq!(found.claims, [plan]);
}

#[test]
fn a_volume_that_was_promised_is_not_given_twice() {
    let mut snapshot = cluster(LATE);
    claim(&mut snapshot, "data", &json!({}), "Pending", &json!({}));
    volume(&mut snapshot, "only", "6Gi", "b", &json!({}));
    let other = (crate::Text::from("default"), crate::Text::from("other"));
    snapshot.storage.promise("only", other.clone());
    assert!(outcome(&mut snapshot, &user()).starts_with("0/2"));
    snapshot.storage.forget_promise(&other);
    assert_eq!(outcome(&mut snapshot, &user()), "b");
}

#[test]
fn a_volume_can_be_made_where_the_class_allows() {
    let mut snapshot = cluster(LATE);
    let value = json!({"metadata": {"name": "local"}, "provisioner": "example.org/disk", "volumeBindingMode": LATE,
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "kubernetes.io/hostname", "values": ["b"]}]}]});
    snapshot.put_class(&serde_json::from_value(value).unwrap());
    claim(&mut snapshot, "data", &json!({}), "Pending", &json!({}));
    assert_eq!(outcome(&mut snapshot, &user()), "b");
    // Somebody was told to make it elsewhere, before a restart of ours.
    claim(
        &mut snapshot,
        "data",
        &json!({}),
        "Pending",
        &json!({"volume.kubernetes.io/selected-node": "a"}),
    );
    assert_eq!(outcome(&mut snapshot, &user()), "a");
}

#[test]
fn a_claim_of_one_pod_is_not_for_another() {
    let mut snapshot = cluster(LATE);
    claim(
        &mut snapshot,
        "data",
        &json!({"volumeName": "pv", "accessModes": ["ReadWriteOncePod"]}),
        "Bound",
        &json!({}),
    );
    volume(&mut snapshot, "pv", "5Gi", "b", &json!({}));
    assert_eq!(outcome(&mut snapshot, &user()), "b");
    let volumes = json!({"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}});
    snapshot.put_pod(&resident("first", "a", &volumes));
    assert_eq!(
        outcome(&mut snapshot, &user()),
        "0/2 nodes are available: 2 node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode."
    );
    snapshot.remove_pod("uid-first");
    assert_eq!(outcome(&mut snapshot, &user()), "b");
}

#[test]
fn a_volume_that_says_its_zone_is_used_there_and_on_nodes_that_say_none() {
    let mut snapshot = snapshot(
        &[node("a", "z1", &json!({})), node("b", "z2", &json!({}))],
        &[],
    );
    class(&mut snapshot, "kubernetes.io/no-provisioner", LATE);
    let bound = json!({"volumeName": "pv"});
    claim(&mut snapshot, "data", &bound, "Bound", &json!({}));
    let mut labelled = |labels: Value| {
        let volume = json!({
            "metadata": {"name": "pv", "labels": labels},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "local", "capacity": {"storage": "5Gi"},
                     "claimRef": {"namespace": "default", "name": "data"}},
        });
        snapshot.put_volume(&serde_json::from_value(volume).unwrap());
        outcome(&mut snapshot, &user())
    };
    assert_eq!(labelled(json!({"topology.kubernetes.io/zone": "z2"})), "b");
    let old = "failure-domain.beta.kubernetes.io/zone";
    assert_eq!(labelled(json!({old: "z2__z3"})), "b");
    let nowhere = "0/2 nodes are available: 2 node(s) had no available volume zone.";
    assert_eq!(
        labelled(json!({"topology.kubernetes.io/zone": "z3"})),
        nowhere
    );
    let region = json!({"topology.kubernetes.io/zone": "z2", "topology.kubernetes.io/region": "r"});
    assert_eq!(labelled(region), nowhere);
    let placeless = json!({"metadata": {"labels": null}});
    snapshot.put_node(&node("c", "z", &placeless));
    assert_eq!(outcome(&mut snapshot, &user()), "c");
}
