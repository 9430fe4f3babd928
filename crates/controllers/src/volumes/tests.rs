//! Claims and volumes in all states, and what becomes of them.

use std::sync::Arc;

use k8s_openapi::{
    api::{
        core::v1::{PersistentVolume, PersistentVolumeClaim},
        storage::v1::StorageClass,
    },
    jiff::Timestamp,
};
use serde_json::{Value, json};

use super::{
    claims::{self, Step, bound_claim, bound_status, plan_claim},
    supply::{self, given, in_phase, plan_volume, taken_back},
};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn merged(mut base: Value, change: &Value) -> Value {
    for (name, value) in change.as_object().into_iter().flatten() {
        if value.is_object() && base[name].is_object() {
            base[name] = merged(base[name].take(), value);
        } else {
            base[name] = value.clone();
        }
    }
    base
}

fn claim(change: &Value) -> PersistentVolumeClaim {
    let base = json!({
        "metadata": {"name": "c", "namespace": "n", "uid": "cu", "resourceVersion": "5"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "resources": {"requests": {"storage": "5Gi"}}},
    });
    serde_json::from_value(merged(base, change)).unwrap()
}

fn volume(name: &str, size: &str, change: &Value) -> Arc<PersistentVolume> {
    let base = json!({
        "metadata": {"name": name, "uid": name},
        "spec": {"accessModes": ["ReadWriteOnce", "ReadOnlyMany"], "storageClassName": "fast", "capacity": {"storage": size}},
        "status": {"phase": "Available"},
    });
    Arc::new(serde_json::from_value(merged(base, change)).unwrap())
}

fn class(mode: &str, provisioner: &str) -> StorageClass {
    serde_json::from_value(json!({
        "metadata": {"name": "fast"}, "volumeBindingMode": mode, "provisioner": provisioner,
    }))
    .unwrap()
}

/// The name of the volume, or the reason to wait.
fn outcome(step: Step) -> String {
    match step {
        Step::Bind(volume) => volume.metadata.name.clone().unwrap(),
        Step::Pend { remark, .. } => remark.map_or("waits", |remark| remark.reason).to_owned(),
        Step::Lose(remark) => remark.reason.to_owned(),
    }
}

#[test]
fn a_claim_gets_the_smallest_volume_that_fits() {
    let none = json!({});
    let labelled = json!({"metadata": {"labels": {"disk": "ssd"}}});
    let volumes = [
        volume("small", "1Gi", &none),
        volume("large", "10Gi", &none),
        volume(
            "right",
            "5Gi",
            &json!({"spec": {"accessModes": ["ReadOnlyMany"]}}),
        ),
        volume(
            "taken",
            "5Gi",
            &json!({"spec": {"claimRef": {"name": "x", "namespace": "n", "uid": "u"}}}),
        ),
        volume("failed", "5Gi", &json!({"status": {"phase": "Failed"}})),
        volume("block", "5Gi", &json!({"spec": {"volumeMode": "Block"}})),
        volume(
            "slow",
            "5Gi",
            &json!({"spec": {"storageClassName": "slow"}}),
        ),
        volume("fine", "6Gi", &labelled),
    ];
    let plan = |change: &Value| outcome(plan_claim(&claim(change), None, &volumes, None));
    assert_eq!(plan(&none), "fine");
    assert_eq!(
        plan(&json!({"spec": {"resources": {"requests": {"storage": "7Gi"}}}})),
        "large"
    );
    assert_eq!(
        plan(&json!({"spec": {"selector": {"matchLabels": {"disk": "ssd"}}}})),
        "fine"
    );
    assert_eq!(
        plan(&json!({"spec": {"accessModes": ["ReadOnlyMany"]}})),
        "right"
    );
    assert_eq!(
        plan(&json!({"spec": {"accessModes": ["ReadWriteMany"]}})),
        "FailedBinding"
    );
    assert_eq!(plan(&json!({"spec": {"volumeMode": "Block"}})), "block");
}

#[test]
fn a_volume_that_is_kept_for_a_claim_is_the_one() {
    let kept = json!({"spec": {"claimRef": {"name": "c", "namespace": "n"}}});
    let volumes = [volume("a", "5Gi", &json!({})), volume("z", "9Gi", &kept)];
    let waits = class("WaitForFirstConsumer", "example.org/disks");
    for class in [None, Some(&waits)] {
        let step = plan_claim(&claim(&json!({})), None, &volumes, class);
        assert_eq!(outcome(step), "z");
    }
}

#[test]
fn a_claim_waits_for_its_consumer_its_provisioner_or_anybody() {
    let volumes = [volume("a", "5Gi", &json!({}))];
    let waits = class("WaitForFirstConsumer", "example.org/disks");
    let step = plan_claim(&claim(&json!({})), None, &volumes, Some(&waits));
    assert_eq!(outcome(step), "WaitForFirstConsumer");
    let placed =
        json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "node"}}});
    let step = plan_claim(&claim(&placed), None, &volumes, Some(&waits));
    assert_eq!(outcome(step), "a");
    let step = plan_claim(&claim(&placed), None, &[], Some(&waits));
    let Step::Pend {
        provisioner,
        remark,
    } = step
    else {
        panic!("{step:?}");
    };
    assert_eq!(remark.unwrap().reason, "ExternalProvisioning");
    let told = claims::told_claim(&claim(&placed), &provisioner.unwrap()).unwrap();
    let annotations = told.metadata.annotations.as_ref().unwrap();
    assert_eq!(
        annotations["volume.kubernetes.io/storage-provisioner"],
        "example.org/disks"
    );
    assert_eq!(claims::told_claim(&told, "example.org/disks"), None);
    let none = class("Immediate", "kubernetes.io/no-provisioner");
    let step = plan_claim(&claim(&json!({})), None, &[], Some(&none));
    assert_eq!(outcome(step), "FailedBinding");
}

#[test]
fn a_claim_that_names_a_volume_gets_it_or_waits() {
    let names = json!({"spec": {"volumeName": "v"}});
    let bound = json!({
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": "v"},
    });
    let of = |uid: &str| json!({"spec": {"claimRef": {"name": "c", "namespace": "n", "uid": uid}}});
    let free = volume("v", "5Gi", &json!({}));
    let ours = volume("v", "5Gi", &of("cu"));
    let others = volume("v", "5Gi", &of("other"));
    let small = volume("v", "1Gi", &json!({}));
    for (change, named, expected) in [
        (&names, None, "waits"),
        (&names, Some(&free), "v"),
        (&names, Some(&ours), "v"),
        (&names, Some(&others), "FailedBinding"),
        (&names, Some(&small), "VolumeMismatch"),
        (&bound, None, "ClaimLost"),
        (&bound, Some(&free), "v"),
        (&bound, Some(&ours), "v"),
        (&bound, Some(&others), "ClaimMisbound"),
    ] {
        let step = plan_claim(&claim(change), named.cloned(), &[], None);
        assert_eq!(outcome(step), expected, "{change} {named:?}");
    }
}

#[test]
fn binding_is_complete_after_four_writes_and_begins_again_anywhere() {
    let mut claim = claim(&json!({}));
    let mut volume = PersistentVolume::clone(&volume("v", "6Gi", &json!({})));
    volume = given(&volume, &claim).unwrap();
    assert_eq!(given(&volume, &claim), None);
    assert!(claims::is_kept_for(&volume, &claim));
    volume = in_phase(&volume, "Bound", None, NOW).unwrap();
    assert_eq!(in_phase(&volume, "Bound", None, NOW), None);
    claim = bound_claim(&claim, &volume).unwrap();
    assert_eq!(bound_claim(&claim, &volume), None);
    claim = bound_status(&claim, &volume).unwrap();
    assert_eq!(bound_status(&claim, &volume), None);
    let status = claim.status.as_ref().unwrap();
    assert_eq!(status.phase.as_deref(), Some("Bound"));
    assert_eq!(status.capacity.as_ref().unwrap()["storage"].0, "6Gi");
    assert_eq!(
        plan_volume(&volume, Some(&claim)),
        supply::Step::Phase("Bound")
    );
}

#[test]
fn a_volume_follows_its_claim() {
    let of = |policy: &str, annotations: Value| {
        let change = json!({
            "metadata": {"annotations": annotations},
            "spec": {
                "persistentVolumeReclaimPolicy": policy,
                "claimRef": {"name": "c", "namespace": "n", "uid": "cu"},
            },
            "status": {"phase": "Bound"},
        });
        volume("v", "5Gi", &change)
    };
    let phase = |phase| supply::Step::Phase(phase);
    let here = claim(&json!({}));
    let elsewhere = claim(&json!({"spec": {"volumeName": "other"}}));
    let by_us = json!({"pv.kubernetes.io/bound-by-controller": "yes"});
    assert_eq!(
        plan_volume(&volume("v", "1Gi", &json!({})), None),
        phase("Available")
    );
    assert_eq!(
        plan_volume(&of("Retain", json!({})), Some(&here)),
        phase("Bound")
    );
    assert_eq!(
        plan_volume(&of("Retain", json!({})), Some(&elsewhere)),
        phase("Available")
    );
    let ours = of("Retain", by_us);
    assert_eq!(plan_volume(&ours, Some(&elsewhere)), supply::Step::TakeBack);
    let back = taken_back(&ours);
    assert_eq!(back.spec.unwrap().claim_ref, None);
    assert_eq!(back.metadata.annotations.unwrap().len(), 0);
    assert_eq!(
        plan_volume(&of("Retain", json!({})), None),
        phase("Released")
    );
    let external = json!({"pv.kubernetes.io/provisioned-by": "example.org/disks"});
    assert_eq!(
        plan_volume(&of("Delete", external), None),
        phase("Released")
    );
    let failed = plan_volume(&of("Delete", json!({})), None);
    assert!(matches!(failed, supply::Step::Fail(_)), "{failed:?}");
}
