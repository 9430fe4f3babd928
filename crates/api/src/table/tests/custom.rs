//! Columns of custom resources, paths, and rows of objects that are nonsense.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    super::{CustomColumns, JsonPath, PathError, cells, columns},
    now,
};

#[test]
fn columns_of_custom_resources_are_found_by_path() {
    let definitions = [
        json!({"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas", "priority": 1}),
        json!({"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}),
        json!({"name": "Since", "type": "date", "jsonPath": ".spec.since"}),
        json!({"name": "Ports", "type": "string", "jsonPath": ".spec.ports"}),
        json!({"name": "On", "type": "boolean", "jsonPath": ".spec.on"}),
        json!({"name": "Load", "type": "number", "jsonPath": ".spec.load"}),
        json!({"name": "Wrong", "type": "integer", "jsonPath": ".spec.on"}),
    ];
    let columns = CustomColumns::new(&definitions).unwrap();
    assert_eq!(columns.heads().len(), 8);
    assert_eq!(columns.heads()[1]["priority"], 1);
    let object = json!({"metadata": {"name": "x"}, "spec": {"replicas": 3, "since": "2026-11-16T11:00:00Z", "ports": [1, 2], "on": true, "load": 2},
        "status": {"conditions": [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]}});
    assert_eq!(
        columns.cells(&object, now()),
        [
            json!("x"),
            json!(3),
            json!("True"),
            json!("60m"),
            json!("[1,2]"),
            json!(true),
            json!(2.0),
            json!(null)
        ]
    );
    let empty = columns.cells(
        &json!({"metadata": {"name": "x"}, "spec": {"since": "never"}}),
        now(),
    );
    assert_eq!(
        empty[1..],
        [
            json!(null),
            json!(null),
            json!("<invalid>"),
            json!(null),
            json!(null),
            json!(null),
            json!(null)
        ]
    );
    let default = CustomColumns::new(&[]).unwrap();
    let object = json!({"metadata": {"name": "x", "creationTimestamp": "2026-11-16T11:00:00Z"}});
    assert_eq!(default.cells(&object, now()), ["x", "60m"]);
    let wrong = json!({"name": "A", "type": "string", "jsonPath": "spec"});
    assert_eq!(CustomColumns::new(&[wrong]), Err((0, PathError::NoDot)));
}

#[test]
fn paths_have_indexes_slices_wildcards_quotes_and_filters() {
    let object = json!({"a": [{"n": 1, "t": "x"}, {"n": 2, "t": "y"}, {"n": 3, "t": "x]"}], "b.c": {"d/e": true}, "m": {"p": 1, "q": 2}});
    for (path, expected) in [
        (".a[0].n", json!([1])),
        (".a[-1].n", json!([3])),
        (".a[7].n", json!([])),
        (".a[*].n", json!([1, 2, 3])),
        (".a[1:].n", json!([2, 3])),
        (".a[:2].n", json!([1, 2])),
        (".m.*", json!([1, 2])),
        (".b\\.c.d/e", json!([true])),
        ("['b.c']['d/e']", json!([true])),
        ("{.a[0].t}", json!(["x"])),
        (".a[?(@.t=='x')].n", json!([1])),
        (".a[?(@.t==\"x]\")].n", json!([3])),
        (".a[?(@.t!='x')].n", json!([2, 3])),
        (".a[?(@.n>=2)].n", json!([2, 3])),
        (".a[?(@.n < 2)].n", json!([1])),
        (".a[?(@.z)].n", json!([])),
        (".a[?(@.n==@.n)].n", json!([1, 2, 3])),
        (".nothing.at.all", json!([])),
    ] {
        let found = JsonPath::parse(path)
            .unwrap()
            .follow(&object)
            .into_iter()
            .cloned()
            .collect::<Vec<_>>();
        assert_eq!(Value::Array(found), expected, "{path}");
    }
}

/// Every kind that has a row of its own.
const KINDS: [(&str, &str); 34] = [
    ("", "Pod"),
    ("", "PodTemplate"),
    ("", "ReplicationController"),
    ("", "Service"),
    ("", "Endpoints"),
    ("", "PersistentVolume"),
    ("", "PersistentVolumeClaim"),
    ("", "Node"),
    ("", "Namespace"),
    ("", "Event"),
    ("", "ConfigMap"),
    ("", "Secret"),
    ("", "ServiceAccount"),
    ("", "ResourceQuota"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("apps", "ControllerRevision"),
    ("batch", "Job"),
    ("batch", "CronJob"),
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("policy", "PodDisruptionBudget"),
    ("networking.k8s.io", "Ingress"),
    ("networking.k8s.io", "IngressClass"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("networking.k8s.io", "ServiceCIDR"),
    ("networking.k8s.io", "IPAddress"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("storage.k8s.io", "CSIDriver"),
    ("storage.k8s.io", "CSIStorageCapacity"),
    ("storage.k8s.io", "VolumeAttachment"),
    ("storage.k8s.io", "VolumeAttributesClass"),
    ("certificates.k8s.io", "CertificateSigningRequest"),
];

fn junk() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        "[a-z]{0,3}".prop_map(Value::from),
    ];
    let name = prop_oneof![
        Just("metadata"),
        Just("spec"),
        Just("status"),
        Just("name"),
        Just("type"),
        Just("conditions"),
        Just("containerStatuses"),
        Just("state"),
        Just("terminated"),
        Just("subsets"),
        Just("metrics"),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..6).prop_map(|fields| {
                Value::Object(
                    fields
                        .into_iter()
                        .map(|(name, value)| (name.to_owned(), value))
                        .collect(),
                )
            }),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_an_object_has_its_row_is_complete(object in junk()) {
        for (group, kind) in KINDS {
            let columns = columns(group, kind);
            prop_assert!(columns.len() > 1 && columns[1].name != "Created At", "{kind}");
            prop_assert_eq!(cells(group, kind, &object, now()).len(), columns.len(), "{}", kind);
        }
    }

    #[test]
    fn no_text_makes_the_reader_of_paths_panic(text in "[.\\[\\]?(@)=<>!'\"*:a-c0-2\\\\ -]{0,24}") {
        if let Ok(path) = JsonPath::parse(&text) {
            path.follow(&json!({"a": [{"b": 1}, {"c": [1, 2]}], "b": {"a": "c"}}));
        }
    }
}

#[test]
fn what_is_no_path_is_refused() {
    assert_eq!(JsonPath::parse("spec"), Err(PathError::NoDot));
    assert_eq!(JsonPath::parse(".a[0"), Err(PathError::NotClosed('[')));
    assert_eq!(JsonPath::parse(".a['x]"), Err(PathError::NotClosed('\'')));
    assert_eq!(
        JsonPath::parse(&format!(".{}", "a".repeat(5000))),
        Err(PathError::TooLong)
    );
    for wrong in [
        ".a[x]",
        ".a[?(t==1)]",
        ".a[?(@.t==x)]",
        ".a[1:x]",
        ".a[?(@.b[?(@.c)])]",
        ".a[]",
    ] {
        let error = JsonPath::parse(wrong).unwrap_err();
        assert!(
            matches!(error, PathError::NotUnderstood(_)),
            "{wrong}: {error:?}"
        );
    }
}
