//! Tests of the rules for every kind but pods, and of what all kinds have in common.

mod creations;
mod updates;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{create, status, subresource, update};
use crate::{defaults, field::FieldError};

fn texts(faults: &[FieldError]) -> Vec<String> {
    faults.iter().map(ToString::to_string).collect()
}

/// A right object of a kind, as small as it can be: group, kind, whether it is in a namespace, the rest.
fn minimal() -> Vec<(&'static str, &'static str, bool, Value)> {
    let template = json!({
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]},
    });
    let workload = json!({"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}});
    let mut finite = template.clone();
    finite["spec"]["restartPolicy"] = json!("Never");
    let mut job_template = finite.clone();
    for key in ["controller-uid", "batch.kubernetes.io/controller-uid"] {
        job_template["metadata"]["labels"][key] = json!("1-2-3");
    }
    for key in ["job-name", "batch.kubernetes.io/job-name"] {
        job_template["metadata"]["labels"][key] = json!("x");
    }
    let rbac = "rbac.authorization.k8s.io";
    vec![
        ("", "Pod", true, json!({"spec": template["spec"]})),
        ("", "PodTemplate", true, json!({"template": template})),
        (
            "",
            "ReplicationController",
            true,
            json!({"spec": {"template": template}}),
        ),
        (
            "",
            "Service",
            true,
            json!({"spec": {"ports": [{"port": 80}]}}),
        ),
        (
            "",
            "Endpoints",
            true,
            json!({"subsets": [{"addresses": [{"ip": "10.0.0.1"}]}]}),
        ),
        ("", "Namespace", false, json!({})),
        ("", "Node", false, json!({})),
        ("", "ConfigMap", true, json!({"data": {"a": "b"}})),
        ("", "Secret", true, json!({"data": {"a": "Yg=="}})),
        ("", "ServiceAccount", true, json!({})),
        (
            "",
            "Event",
            true,
            json!({"involvedObject": {"namespace": "default"}}),
        ),
        (
            "",
            "PersistentVolume",
            false,
            json!({"spec": {
                "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/a"},
            }}),
        ),
        (
            "",
            "PersistentVolumeClaim",
            true,
            json!({"spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
            }}),
        ),
        (
            "",
            "ResourceQuota",
            true,
            json!({"spec": {"hard": {"pods": "1"}}}),
        ),
        (
            "",
            "LimitRange",
            true,
            json!({"spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}}),
        ),
        ("apps", "Deployment", true, workload.clone()),
        ("apps", "ReplicaSet", true, workload.clone()),
        ("apps", "DaemonSet", true, workload.clone()),
        ("apps", "StatefulSet", true, workload.clone()),
        (
            "apps",
            "ControllerRevision",
            true,
            json!({"data": {}, "revision": 1}),
        ),
        (
            "batch",
            "Job",
            true,
            json!({"spec": {
                "template": job_template,
                "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "1-2-3"}},
            }}),
        ),
        (
            "batch",
            "CronJob",
            true,
            json!({"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": finite}}}}),
        ),
        (
            "autoscaling",
            "HorizontalPodAutoscaler",
            true,
            json!({"spec": {
                "maxReplicas": 2, "scaleTargetRef": {"kind": "Deployment", "name": "a"},
            }}),
        ),
        (
            "networking.k8s.io",
            "NetworkPolicy",
            true,
            json!({"spec": {}}),
        ),
        (
            "networking.k8s.io",
            "Ingress",
            true,
            json!({"spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}}),
        ),
        (
            "networking.k8s.io",
            "IngressClass",
            false,
            json!({"spec": {"controller": "example.com/c"}}),
        ),
        (
            "discovery.k8s.io",
            "EndpointSlice",
            true,
            json!({"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}]}),
        ),
        (
            "policy",
            "PodDisruptionBudget",
            true,
            json!({"spec": {"minAvailable": 1}}),
        ),
        (
            rbac,
            "Role",
            true,
            json!({"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]}),
        ),
        (
            rbac,
            "ClusterRole",
            false,
            json!({"rules": [{"verbs": ["get"], "nonResourceURLs": ["/"]}]}),
        ),
        (
            rbac,
            "RoleBinding",
            true,
            json!({"roleRef": {"kind": "Role", "name": "a"}, "subjects": [{"kind": "User", "name": "u"}]}),
        ),
        (
            rbac,
            "ClusterRoleBinding",
            false,
            json!({"roleRef": {"kind": "ClusterRole", "name": "system:a"}}),
        ),
        (
            "scheduling.k8s.io",
            "PriorityClass",
            false,
            json!({"value": 5}),
        ),
        (
            "storage.k8s.io",
            "StorageClass",
            false,
            json!({"provisioner": "example.com/p"}),
        ),
        ("storage.k8s.io", "CSIDriver", false, json!({"spec": {}})),
        (
            "storage.k8s.io",
            "CSINode",
            false,
            json!({"spec": {"drivers": []}}),
        ),
        (
            "storage.k8s.io",
            "VolumeAttachment",
            false,
            json!({"spec": {
                "attacher": "a.example", "nodeName": "n", "source": {"persistentVolumeName": "p"},
            }}),
        ),
        (
            "storage.k8s.io",
            "CSIStorageCapacity",
            true,
            json!({"storageClassName": "a"}),
        ),
        ("coordination.k8s.io", "Lease", true, json!({"spec": {}})),
        (
            "node.k8s.io",
            "RuntimeClass",
            false,
            json!({"handler": "runc"}),
        ),
        (
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            false,
            json!({
                "metadata": {"name": "boats.example.com"},
                "spec": {
                    "group": "example.com", "scope": "Namespaced", "names": {"plural": "boats", "kind": "Boat"},
                    "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
                },
            }),
        ),
        (
            "stable.example.com",
            "Boat",
            true,
            json!({"spec": {"anything": 1}}),
        ),
    ]
}

fn full(group: &str, kind: &str, namespaced: bool, rest: &Value) -> Value {
    let mut object = json!({"metadata": {"name": "x", "uid": "1-2-3", "resourceVersion": "7"}});
    if namespaced {
        object["metadata"]["namespace"] = json!("default");
    }
    json_patch::merge(&mut object, rest);
    let version = if group == "autoscaling" { "v2" } else { "v1" };
    defaults::apply(group, version, kind, &mut object);
    object
}

fn object_of(kind: &str) -> (&'static str, Value) {
    let all = minimal();
    let found = all.into_iter().find(|each| each.1 == kind);
    let (group, kind, namespaced, rest) = found.expect("a kind of the table");
    (group, full(group, kind, namespaced, &rest))
}

#[test]
fn a_small_object_of_each_kind_is_right_once_it_has_its_defaults() {
    for (group, kind, namespaced, rest) in minimal() {
        let object = full(group, kind, namespaced, &rest);
        assert_eq!(
            texts(&create(group, kind, &object)),
            Vec::<String>::new(),
            "{kind}"
        );
        assert_eq!(
            texts(&update(group, kind, &object, &object)),
            Vec::<String>::new(),
            "update of {kind}"
        );
        assert_eq!(
            texts(&status(group, kind, &object, &object)),
            Vec::<String>::new(),
            "status of {kind}"
        );
    }
}

#[test]
fn names_have_the_form_of_their_kind() {
    let cases = [
        (
            "Namespace",
            "a.b",
            "metadata.name: Invalid value: \"a.b\": must not contain dots",
        ),
        (
            "Service",
            "1a",
            "metadata.name: Invalid value: \"1a\": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
        ),
        (
            "ConfigMap",
            "A",
            "metadata.name: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        ),
        (
            "ClusterRole",
            "a/b",
            "metadata.name: Invalid value: \"a/b\": may not contain '/'",
        ),
        (
            "ConfigMap",
            "",
            "metadata.name: Required value: name or generateName is required",
        ),
    ];
    for (kind, name, expected) in cases {
        let (group, mut object) = object_of(kind);
        object["metadata"]["name"] = json!(name);
        let faults = texts(&create(group, kind, &object));
        assert_eq!(
            faults.first().map(String::as_str),
            Some(expected),
            "{kind} {name}"
        );
    }
}

#[test]
fn metadata_has_upstreams_faults() {
    let cases = [
        (
            json!({"labels": {"a b": "c"}}),
            "metadata.labels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        ),
        (
            json!({"labels": {"a": "-"}}),
            "metadata.labels[a]: Invalid value: \"-\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ),
        (
            json!({"annotations": {"a": "x".repeat(262_144)}}),
            "metadata.annotations: Too long: may not be more than 262144 bytes",
        ),
        (
            json!({"finalizers": ["mine"]}),
            "metadata.finalizers[0]: Invalid value: \"mine\": name is neither a standard finalizer name nor is it fully qualified",
        ),
        (
            json!({"finalizers": ["orphan", "foregroundDeletion"]}),
            "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and foregroundDeletion cannot be both set",
        ),
        (
            json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a"}]}),
            "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
        ),
        (
            json!({"namespace": null}),
            "metadata.namespace: Required value",
        ),
        (
            json!({"generateName": "A-"}),
            "metadata.generateName: Invalid value: \"A-\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        ),
    ];
    for (patch, expected) in cases {
        let (group, mut object) = object_of("ConfigMap");
        json_patch::merge(&mut object, &json!({"metadata": patch}));
        let expected = expected.to_owned();
        if expected.starts_with("metadata.generateName") {
            // The letter before the dash is not looked at, so a longer prefix shows the fault.
            object["metadata"]["generateName"] = json!("AB-");
            let faults = texts(&create(group, "ConfigMap", &object));
            assert_eq!(faults, [expected.replace("A-", "AB-")]);
            continue;
        }
        assert_eq!(texts(&create(group, "ConfigMap", &object)), [expected]);
    }
}

#[test]
fn some_metadata_never_changes() {
    let cases = [
        (
            json!({"uid": "other"}),
            "metadata.uid: Invalid value: \"other\": field is immutable",
        ),
        (
            json!({"name": "y"}),
            "metadata.name: Invalid value: \"y\": field is immutable",
        ),
        (
            json!({"resourceVersion": null}),
            "metadata.resourceVersion: Invalid value: \"\": must be specified for an update",
        ),
        (
            json!({"creationTimestamp": "2020-01-01T00:00:00Z"}),
            "metadata.creationTimestamp: Invalid value: \"2020-01-01T00:00:00Z\": field is immutable",
        ),
        (
            json!({"deletionTimestamp": "2020-01-01T00:00:00Z"}),
            "metadata.deletionTimestamp: Invalid value: \"2020-01-01T00:00:00Z\": field is immutable",
        ),
    ];
    for (patch, expected) in cases {
        let (group, old) = object_of("ConfigMap");
        let mut new = old.clone();
        json_patch::merge(&mut new, &json!({"metadata": patch}));
        assert_eq!(texts(&update(group, "ConfigMap", &new, &old)), [expected]);
    }
    let (group, mut old) = object_of("ConfigMap");
    old["metadata"]["deletionTimestamp"] = json!("2020-01-01T00:00:00Z");
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!(["a/b"]);
    assert_eq!(
        texts(&update(group, "ConfigMap", &new, &old)),
        [
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"a/b\"}"
        ]
    );
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-5_i64..70000).prop_map(Value::from),
        "(|-|[a-z]{1,3}|[0-9./:-]{1,6}|RollingUpdate|Indexed|windows|1Gi|é%)".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,4}|name|type", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Replaces the value in one place of an object, wherever that is.
fn replace(object: &mut Value, mut place: usize, value: Value) {
    let mut here = object;
    loop {
        let count = match here {
            Value::Object(fields) => fields.len(),
            Value::Array(items) => items.len(),
            _ => 0,
        };
        if count == 0 || place % 7 == 6 {
            *here = value;
            return;
        }
        let index = place % count;
        place = place / 2 + 1;
        here = match here {
            Value::Object(fields) => fields.values_mut().nth(index).expect("a field"),
            Value::Array(items) => &mut items[index],
            _ => return,
        };
    }
}

proptest! {
    #[test]
    fn no_shape_makes_the_rules_panic(places in prop::collection::vec((any::<u16>(), any_value()), 1..4), kind in 0..42_usize) {
        let all = minimal();
        let (group, kind, namespaced, rest) = &all[kind % all.len()];
        let old = full(group, kind, *namespaced, rest);
        let mut new = old.clone();
        for (place, value) in places {
            replace(&mut new, usize::from(place), value);
        }
        let _ = create(group, kind, &new);
        let _ = update(group, kind, &new, &old);
        let _ = update(group, kind, &old, &new);
        let _ = status(group, kind, &new, &old);
        for name in ["resize", "ephemeralcontainers", "binding", "finalize", "approval"] {
            let _ = subresource(kind, name, &new, &old);
        }
    }
}
