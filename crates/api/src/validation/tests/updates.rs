//! Tests of what may change.

use super::*;

#[test]
fn what_is_immutable_stays() {
    let cases = [
        (
            "Deployment",
            "/spec/selector",
            json!({"matchLabels": {"a": "b", "c": "d"}}),
            "spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"b\",\"c\":\"d\"}}: field is immutable",
        ),
        (
            "StatefulSet",
            "/spec/serviceName",
            json!("other"),
            "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        ),
        (
            "Job",
            "/spec/completions",
            json!(5),
            "spec.completions: Invalid value: 5: field is immutable",
        ),
        (
            "Secret",
            "/type",
            json!("other"),
            "type: Invalid value: \"other\": field is immutable",
        ),
        (
            "Node",
            "/spec/providerID",
            json!("b"),
            "spec.providerID: Forbidden: node updates may not change providerID except from \"\" to valid",
        ),
        (
            "RoleBinding",
            "/roleRef",
            json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "b"}),
            "roleRef: Invalid value: {\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"Role\",\"name\":\"b\"}: cannot change roleRef",
        ),
        (
            "PriorityClass",
            "/value",
            json!(6),
            "value: Forbidden: may not be changed in an update.",
        ),
        (
            "StorageClass",
            "/provisioner",
            json!("example.com/q"),
            "provisioner: Forbidden: updates to provisioner are forbidden.",
        ),
        (
            "RuntimeClass",
            "/handler",
            json!("other"),
            "handler: Invalid value: \"other\": field is immutable",
        ),
        (
            "EndpointSlice",
            "/addressType",
            json!("FQDN"),
            "addressType: Invalid value: \"FQDN\": field is immutable",
        ),
        (
            "PersistentVolumeClaim",
            "/spec/accessModes",
            json!(["ReadOnlyMany"]),
            "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
        ),
        (
            "PersistentVolume",
            "/spec/hostPath",
            json!({"path": "/b", "type": ""}),
            "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation",
        ),
        (
            "CustomResourceDefinition",
            "/spec/group",
            json!("example.org"),
            "spec.group: Invalid value: \"example.org\": field is immutable",
        ),
        (
            "ControllerRevision",
            "/data",
            json!({"a": 1}),
            "data: Invalid value: {\"a\":1}: field is immutable",
        ),
        (
            "Service",
            "/spec/clusterIPs",
            json!(["10.0.0.2"]),
            "spec.clusterIPs[0]: Invalid value: [\"10.0.0.2\"]: may not change once set",
        ),
    ];
    for (kind, pointer, value, expected) in cases {
        let (group, mut old) = object_of(kind);
        if kind == "Node" {
            old["spec"]["providerID"] = json!("a");
        }
        if kind == "StatefulSet" {
            old["spec"]["serviceName"] = json!("first");
        }
        if kind == "Service" {
            old["spec"]["clusterIP"] = json!("10.0.0.1");
            old["spec"]["clusterIPs"] = json!(["10.0.0.1"]);
        }
        let mut new = old.clone();
        let place = new.pointer_mut(pointer).expect("a field that is there");
        *place = value;
        let faults = texts(&update(group, kind, &new, &old));
        assert!(faults.contains(&expected.to_owned()), "{kind}: {faults:#?}");
    }
}

#[test]
fn an_immutable_config_map_keeps_its_data() {
    let (group, mut old) = object_of("ConfigMap");
    old["immutable"] = json!(true);
    let mut new = old.clone();
    new["data"]["a"] = json!("c");
    new["immutable"] = json!(false);
    assert_eq!(
        texts(&update(group, "ConfigMap", &new, &old)),
        [
            "immutable: Forbidden: field is immutable when `immutable` is set",
            "data: Forbidden: field is immutable when `immutable` is set",
        ]
    );
}

#[test]
fn a_namespace_that_ends_says_so() {
    let (group, mut old) = object_of("Namespace");
    old["metadata"]["deletionTimestamp"] = json!("2020-01-01T00:00:00Z");
    assert_eq!(
        texts(&status(group, "Namespace", &old, &old)),
        [
            "status.Phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty"
        ]
    );
}

#[test]
fn a_status_counts_right() {
    let (group, old) = object_of("Deployment");
    let mut new = old.clone();
    new["status"] = json!({"replicas": 1, "readyReplicas": 2});
    assert_eq!(
        texts(&status(group, "Deployment", &new, &old)),
        ["status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas"]
    );
}
