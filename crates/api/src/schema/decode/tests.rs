//! Objects as clients send them, and what is kept of them.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::schema::{builtin, json::read};

const POD: &str = "io.k8s.api.core.v1.Pod";

fn id(name: &str) -> TypeId {
    builtin().find(name).unwrap()
}

fn kept(name: &str, value: Value) -> Value {
    convert(builtin(), id(name), value).unwrap().0
}

fn refusal(name: &str, value: Value) -> String {
    decode(
        builtin(),
        id(name),
        value,
        Findings::default(),
        FieldValidation::Strict,
    )
    .unwrap_err()
    .message
}

fn pod(spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "spec": spec})
}

#[test]
fn a_good_object_stays_as_it_is() {
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "labels": {"app": "x"}},
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": {}, "securityContext": {"runAsNonRoot": false}}],
            "volumes": [{"name": "v", "emptyDir": {}}],
            "terminationGracePeriodSeconds": 0,
            "hostAliases": [{"ip": "10.0.0.1"}],
        },
        "status": {},
    });

    assert_eq!(kept(POD, pod.clone()), pod);
}

#[test]
fn nothing_that_go_leaves_out_is_kept() {
    let given = json!({
        "metadata": {"labels": {}, "annotations": null, "creationTimestamp": null, "generateName": ""},
        "spec": {"containers": [], "hostNetwork": false, "nodeSelector": {}, "tolerations": []},
    });

    assert_eq!(
        kept(POD, given),
        json!({"metadata": {}, "spec": {"containers": []}})
    );
}

#[test]
fn null_in_a_map_or_a_list_is_the_empty_value() {
    let given = json!({"metadata": {"labels": {"a": null}}, "spec": {"containers": [null]}});

    assert_eq!(
        kept(POD, given),
        json!({"metadata": {"labels": {"a": ""}}, "spec": {"containers": [{}]}})
    );
}

#[test]
fn amounts_of_resources_get_one_form_and_others_keep_theirs() {
    let given = pod(&json!({
        "containers": [{"name": "c", "resources": {"limits": {"cpu": 1.5, "memory": "1024Mi"}}}],
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1024Mi"}}],
    }));
    let kept = kept(POD, given);

    assert_eq!(
        kept["spec"]["containers"][0]["resources"]["limits"],
        json!({"cpu": "1500m", "memory": "1Gi"})
    );
    assert_eq!(
        kept["spec"]["volumes"][0]["emptyDir"]["sizeLimit"],
        "1024Mi"
    );
}

#[test]
fn times_are_written_in_utc() {
    let given = json!({"metadata": {"creationTimestamp": "2026-01-01T01:00:00+01:00"}});

    assert_eq!(
        kept(POD, given),
        json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}})
    );
}

#[test]
fn wrong_types_are_refused_as_go_refuses_them() {
    for (spec, why) in [
        (
            json!({"containers": "x"}),
            "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            json!({"containers": [{"image": 5}]}),
            "json: cannot unmarshal number into Go struct field Container.spec.containers.image of type string",
        ),
        (
            json!({"containers": [{"ports": [{"containerPort": 1.5}]}]}),
            "json: cannot unmarshal number 1.5 into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
        ),
        (
            json!({"restartPolicy": true}),
            "json: cannot unmarshal bool into Go struct field PodSpec.spec.restartPolicy of type v1.RestartPolicy",
        ),
        (
            json!({"activeDeadlineSeconds": {}}),
            "json: cannot unmarshal object into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64",
        ),
        (
            json!({"overhead": {"cpu": "lots"}}),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
    ] {
        assert_eq!(
            refusal(POD, pod(&spec)),
            format!("Pod in version \"v1\" cannot be handled as a Pod: {why}")
        );
    }
    assert_eq!(
        refusal(
            "io.k8s.api.core.v1.Secret",
            json!({"kind": "Secret", "data": {"a": "%%"}})
        ),
        "Secret in version \"v1\" cannot be handled as a Secret: illegal base64 data at input byte 0"
    );
    assert_eq!(
        refusal(POD, json!([])),
        "Pod in version \"v1\" cannot be handled as a Pod: json: cannot unmarshal array into Go value of type v1.Pod"
    );
}

#[test]
fn a_whole_number_may_be_written_with_a_point() {
    let kept = kept(
        "io.k8s.api.apps.v1.Deployment",
        json!({"spec": {"replicas": 3.0}}),
    );

    assert_eq!(kept, json!({"spec": {"replicas": 3}}));
}

#[test]
fn unknown_and_duplicate_fields_are_found_in_their_order() {
    let body = br#"{"apiVersion":"apps/v1","kind":"Deployment","spec":{
        "unknown1": {"a": 1, "a": 2}, "unknownDupe": 1, "unknownDupe": 2, "paused": true, "paused": false,
        "template": {"spec": {"containers": [{"unknownNested": 1, "name": "a", "name": "b"}]}}}}"#;
    let deployment = id("io.k8s.api.apps.v1.Deployment");
    let (value, findings) = read(body, Some((builtin(), deployment))).unwrap();
    let error = decode(
        builtin(),
        deployment,
        value.clone(),
        findings.clone(),
        FieldValidation::Strict,
    )
    .unwrap_err();
    let (decoded, warnings) = decode(
        builtin(),
        deployment,
        value,
        findings,
        FieldValidation::Warn,
    )
    .unwrap();

    assert_eq!(
        error.message,
        "Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding error: \
         unknown field \"spec.unknown1\", unknown field \"spec.unknownDupe\", \
         duplicate field \"spec.paused\", \
         unknown field \"spec.template.spec.containers[0].unknownNested\", \
         duplicate field \"spec.template.spec.containers[0].name\""
    );
    assert_eq!(warnings.len(), 5);
    assert_eq!(
        decoded["spec"],
        json!({"template": {"spec": {"containers": [{"name": "b"}]}}})
    );
}

#[test]
fn names_are_told_apart_by_case() {
    let (_, findings) = convert(builtin(), id(POD), json!({"Spec": {}})).unwrap();

    assert_eq!(findings.sentences(), ["unknown field \"Spec\""]);
}

#[test]
fn schemas_in_a_definition_are_read_without_findings() {
    let definition =
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition";
    let schema = |schema: Value| json!({"spec": {"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    let (kept, findings) = convert(
        builtin(),
        id(definition),
        schema(json!({
            "type": "array",
            "items": {"type": "object", "foo": 1, "additionalProperties": true},
            "enum": [null, 1],
            "minimum": 0,
        })),
    )
    .unwrap();

    assert!(findings.is_empty());
    assert_eq!(
        kept,
        schema(json!({
            "type": "array",
            "items": {"type": "object", "additionalProperties": true},
            "enum": [null, 1],
            "minimum": 0,
        }))
    );
}

#[test]
fn what_is_too_deep_is_refused_and_not_fatal() {
    let mut schema = json!({});
    for _ in 0..300 {
        schema = json!({"not": schema});
    }
    let props = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

    assert!(
        convert(builtin(), id(props), schema)
            .unwrap_err()
            .contains("max depth")
    );
    assert!(read("[".repeat(100_000).as_bytes(), None).is_err());
}

proptest! {
    #[test]
    fn decoding_twice_is_decoding_once(text in r#"\{"spec":\{"replicas":(0|1|null|2\.0),"paused":(true|false|null),"x":1,"strategy":\{("type":"[a-z]*")?\}\}\}"#) {
        let deployment = id("io.k8s.api.apps.v1.Deployment");
        let (value, _) = read(text.as_bytes(), None).unwrap();
        let (once, _) = convert(builtin(), deployment, value).unwrap();
        let (twice, findings) = convert(builtin(), deployment, once.clone()).unwrap();
        prop_assert_eq!(once, twice);
        prop_assert!(findings.is_empty());
    }

    #[test]
    fn no_bytes_are_fatal(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes, Some((builtin(), id(POD))));
    }
}
