//! Both directions against prost and the messages of `k8s-pb`, which share no code with ours.
#![expect(
    clippy::unnecessary_wraps,
    reason = "every field of prost is an option"
)]

use std::fmt::Debug;

use k8s_pb::api::{apps, authorization, autoscaling, core, events};
use k8s_pb::apiextensions_apiserver::pkg::apis::apiextensions::v1 as extensions;
use k8s_pb::apimachinery::pkg::api::resource::Quantity;
use k8s_pb::apimachinery::pkg::apis::meta::v1 as meta;
use k8s_pb::apimachinery::pkg::runtime::{RawExtension, TypeMeta, Unknown};
use k8s_pb::apimachinery::pkg::util::intstr::IntOrString;
use proptest::prelude::*;
use prost::Message;
use serde_json::json;

use super::*;
use crate::schema::builtin;

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn sealed(object: &Value, raw: Vec<u8>) -> Vec<u8> {
    let unknown = Unknown {
        type_meta: Some(TypeMeta {
            api_version: text(object["apiVersion"].as_str().unwrap()),
            kind: text(object["kind"].as_str().unwrap()),
        }),
        raw: Some(raw),
        ..Unknown::default()
    };
    [MAGIC, &unknown.encode_to_vec()].concat()
}

/// The message is the object, and the object is the message.
fn same<M: Message + Default + PartialEq + Debug>(message: &M, object: &Value) {
    let (api_version, kind, decoded) =
        decode(builtin(), &sealed(object, message.encode_to_vec())).unwrap();
    assert_eq!(decoded, *object);

    let id = envelope(&sealed(object, Vec::new()))
        .unwrap()
        .find(builtin())
        .unwrap();
    let bytes = encode(builtin(), id, &api_version, &kind, object).unwrap();
    let unknown = Unknown::decode(bytes.strip_prefix(MAGIC).unwrap()).unwrap();
    assert_eq!(unknown.type_meta.unwrap().kind, text(&kind));
    assert_eq!(M::decode(&unknown.raw.unwrap()[..]).unwrap(), *message);
}

fn named(name: &str) -> Option<meta::ObjectMeta> {
    Some(meta::ObjectMeta {
        name: text(name),
        ..meta::ObjectMeta::default()
    })
}

fn at(seconds: i64) -> meta::Time {
    meta::Time {
        seconds: Some(seconds),
        nanos: Some(0),
    }
}

fn amount(text: &str) -> Quantity {
    Quantity {
        string: self::text(text),
    }
}

fn port(number: i32) -> IntOrString {
    IntOrString {
        r#type: Some(0),
        int_val: Some(number),
        str_val: text(""),
    }
}

fn pod_message() -> core::v1::Pod {
    core::v1::Pod {
        metadata: Some(meta::ObjectMeta {
            name: text("p"),
            creation_timestamp: Some(at(1_767_225_600)),
            labels: [("a".to_owned(), "b".to_owned())].into(),
            managed_fields: vec![meta::ManagedFieldsEntry {
                manager: text("kubectl"),
                fields_v1: Some(meta::FieldsV1 {
                    raw: Some(br#"{"f:spec":{}}"#.to_vec()),
                }),
                ..meta::ManagedFieldsEntry::default()
            }],
            ..meta::ObjectMeta::default()
        }),
        spec: Some(core::v1::PodSpec {
            termination_grace_period_seconds: Some(0),
            volumes: vec![core::v1::Volume {
                name: text("v"),
                volume_source: Some(core::v1::VolumeSource {
                    config_map: Some(core::v1::ConfigMapVolumeSource {
                        local_object_reference: Some(core::v1::LocalObjectReference {
                            name: text("c"),
                        }),
                        default_mode: Some(0),
                        ..core::v1::ConfigMapVolumeSource::default()
                    }),
                    ..core::v1::VolumeSource::default()
                }),
            }],
            containers: vec![core::v1::Container {
                name: text("c"),
                liveness_probe: Some(core::v1::Probe {
                    handler: Some(core::v1::ProbeHandler {
                        http_get: Some(core::v1::HttpGetAction {
                            path: text("/"),
                            port: Some(port(80)),
                            ..core::v1::HttpGetAction::default()
                        }),
                        ..core::v1::ProbeHandler::default()
                    }),
                    period_seconds: Some(3),
                    ..core::v1::Probe::default()
                }),
                resources: Some(core::v1::ResourceRequirements {
                    limits: [("cpu".to_owned(), amount("500m"))].into(),
                    ..core::v1::ResourceRequirements::default()
                }),
                ..core::v1::Container::default()
            }],
            ..core::v1::PodSpec::default()
        }),
        status: None,
    }
}

fn pod_object() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"a": "b"},
            "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
        },
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "volumes": [{"name": "v", "configMap": {"name": "c", "defaultMode": 0}}],
            "containers": [{
                "name": "c",
                "livenessProbe": {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 3},
                "resources": {"limits": {"cpu": "500m"}},
            }],
        },
    })
}

#[test]
fn a_pod_has_embedded_messages_maps_times_and_amounts() {
    same(&pod_message(), &pod_object());
}

#[test]
fn a_deployment() {
    let message = apps::v1::Deployment {
        metadata: named("d"),
        spec: Some(apps::v1::DeploymentSpec {
            replicas: Some(0),
            selector: Some(meta::LabelSelector {
                match_labels: [("a".to_owned(), String::new())].into(),
                ..meta::LabelSelector::default()
            }),
            strategy: Some(apps::v1::DeploymentStrategy {
                r#type: text("RollingUpdate"),
                rolling_update: Some(apps::v1::RollingUpdateDeployment {
                    max_surge: Some(IntOrString {
                        r#type: Some(1),
                        int_val: Some(0),
                        str_val: text("25%"),
                    }),
                    max_unavailable: Some(port(0)),
                }),
            }),
            ..apps::v1::DeploymentSpec::default()
        }),
        status: Some(apps::v1::DeploymentStatus::default()),
    };

    same(
        &message,
        &json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d"},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"a": ""}},
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0},
                },
            },
            "status": {},
        }),
    );
}

#[test]
fn a_config_map_and_a_secret() {
    same(
        &core::v1::ConfigMap {
            metadata: named("c"),
            data: [("a".to_owned(), "ä".to_owned())].into(),
            binary_data: [("b".to_owned(), vec![0, 255])].into(),
            immutable: Some(false),
        },
        &json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "c"},
            "data": {"a": "ä"},
            "binaryData": {"b": "AP8="},
            "immutable": false,
        }),
    );
    same(
        &core::v1::Secret {
            metadata: named("s"),
            data: [
                ("k".to_owned(), b"v".to_vec()),
                ("none".to_owned(), Vec::new()),
            ]
            .into(),
            r#type: text("Opaque"),
            ..core::v1::Secret::default()
        },
        &json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "s"},
            "data": {"k": "dg==", "none": ""},
            "type": "Opaque",
        }),
    );
}

#[test]
fn a_service_and_a_node() {
    same(
        &core::v1::Service {
            metadata: named("s"),
            spec: Some(core::v1::ServiceSpec {
                cluster_ips: vec!["10.0.0.1".to_owned()],
                ports: vec![core::v1::ServicePort {
                    port: Some(80),
                    target_port: Some(port(8080)),
                    ..core::v1::ServicePort::default()
                }],
                ..core::v1::ServiceSpec::default()
            }),
            status: None,
        },
        &json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "s"},
            "spec": {
                "clusterIPs": ["10.0.0.1"],
                "ports": [{"port": 80, "targetPort": 8080}],
            },
        }),
    );
    same(
        &core::v1::Node {
            metadata: named("n"),
            spec: Some(core::v1::NodeSpec {
                pod_cid_rs: vec!["10.1.0.0/24".to_owned()],
                ..core::v1::NodeSpec::default()
            }),
            status: Some(core::v1::NodeStatus {
                capacity: [("memory".to_owned(), amount("8Gi"))].into(),
                images: vec![core::v1::ContainerImage {
                    names: vec!["a".to_owned()],
                    size_bytes: Some(-5),
                }],
                ..core::v1::NodeStatus::default()
            }),
        },
        &json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n"},
            "spec": {"podCIDRs": ["10.1.0.0/24"]},
            "status": {"capacity": {"memory": "8Gi"}, "images": [{"names": ["a"], "sizeBytes": -5}]},
        }),
    );
}

#[test]
fn an_event_has_microseconds() {
    same(
        &events::v1::Event {
            metadata: named("e"),
            event_time: Some(meta::MicroTime {
                seconds: Some(1_767_225_600),
                nanos: Some(123_456_000),
            }),
            ..events::v1::Event::default()
        },
        &json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": "e"},
            "eventTime": "2026-01-01T00:00:00.123456Z",
        }),
    );
}

#[test]
fn an_autoscaler() {
    same(
        &autoscaling::v2::HorizontalPodAutoscaler {
            metadata: named("h"),
            spec: Some(autoscaling::v2::HorizontalPodAutoscalerSpec {
                max_replicas: Some(3),
                metrics: vec![autoscaling::v2::MetricSpec {
                    r#type: text("Resource"),
                    resource: Some(autoscaling::v2::ResourceMetricSource {
                        name: text("cpu"),
                        target: Some(autoscaling::v2::MetricTarget {
                            r#type: text("Utilization"),
                            average_utilization: Some(80),
                            ..autoscaling::v2::MetricTarget::default()
                        }),
                    }),
                    ..autoscaling::v2::MetricSpec::default()
                }],
                ..autoscaling::v2::HorizontalPodAutoscalerSpec::default()
            }),
            status: None,
        },
        &json!({
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "h"},
            "spec": {
                "maxReplicas": 3,
                "metrics": [{
                    "type": "Resource",
                    "resource": {
                        "name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 80},
                    },
                }],
            },
        }),
    );
}

fn boxed<T>(value: T) -> Option<Box<T>> {
    Some(Box::new(value))
}

#[test]
fn a_definition_has_schemas_that_are_objects_or_something_simpler() {
    let typed = |name: &str| extensions::JsonSchemaProps {
        r#type: text(name),
        ..extensions::JsonSchemaProps::default()
    };
    let raw = |json: &str| extensions::Json {
        raw: Some(json.as_bytes().to_vec()),
    };
    let schema = extensions::JsonSchemaProps {
        r#type: text("object"),
        minimum: Some(0.0),
        default: Some(raw(r#"{"a":1}"#)),
        r#enum: vec![raw("1"), raw(r#""x""#)],
        properties: [("a".to_owned(), typed("string"))].into(),
        items: boxed(extensions::JsonSchemaPropsOrArray {
            schema: boxed(typed("integer")),
            j_son_schemas: Vec::new(),
        }),
        additional_properties: boxed(extensions::JsonSchemaPropsOrBool {
            allows: Some(true),
            schema: boxed(typed("string")),
        }),
        additional_items: boxed(extensions::JsonSchemaPropsOrBool {
            allows: Some(false),
            schema: None,
        }),
        dependencies: [(
            "d".to_owned(),
            extensions::JsonSchemaPropsOrStringArray {
                schema: None,
                property: vec!["e".to_owned()],
            },
        )]
        .into(),
        x_kubernetes_preserve_unknown_fields: Some(true),
        ..extensions::JsonSchemaProps::default()
    };

    same(
        &extensions::CustomResourceDefinition {
            metadata: named("x"),
            spec: Some(extensions::CustomResourceDefinitionSpec {
                group: text("g"),
                versions: vec![extensions::CustomResourceDefinitionVersion {
                    name: text("v1"),
                    served: Some(true),
                    storage: Some(false),
                    schema: Some(extensions::CustomResourceValidation {
                        open_apiv3_schema: Some(schema),
                    }),
                    ..extensions::CustomResourceDefinitionVersion::default()
                }],
                ..extensions::CustomResourceDefinitionSpec::default()
            }),
            status: None,
        },
        &json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "x"},
            "spec": {
                "group": "g",
                "versions": [{
                    "name": "v1",
                    "served": true,
                    "storage": false,
                    "schema": {"openAPIV3Schema": {
                        "type": "object",
                        "minimum": 0.0,
                        "default": {"a": 1},
                        "enum": [1, "x"],
                        "properties": {"a": {"type": "string"}},
                        "items": {"type": "integer"},
                        "additionalProperties": {"type": "string"},
                        "additionalItems": false,
                        "dependencies": {"d": ["e"]},
                        "x-kubernetes-preserve-unknown-fields": true,
                    }},
                }],
            },
        }),
    );
}

#[test]
fn a_review_has_lists_in_messages_of_their_own() {
    let extra = |items: &[&str]| authorization::v1::ExtraValue {
        items: items.iter().map(ToString::to_string).collect(),
    };
    same(
        &authorization::v1::SubjectAccessReview {
            metadata: named("r"),
            spec: Some(authorization::v1::SubjectAccessReviewSpec {
                user: text("u"),
                extra: [
                    ("k".to_owned(), extra(&["a", "b"])),
                    ("none".to_owned(), extra(&[])),
                ]
                .into(),
                ..authorization::v1::SubjectAccessReviewSpec::default()
            }),
            status: Some(authorization::v1::SubjectAccessReviewStatus {
                allowed: Some(false),
                ..authorization::v1::SubjectAccessReviewStatus::default()
            }),
        },
        &json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "metadata": {"name": "r"},
            "spec": {"user": "u", "extra": {"k": ["a", "b"], "none": []}},
            "status": {"allowed": false},
        }),
    );
}

#[test]
fn a_status() {
    same(
        &meta::Status {
            metadata: Some(meta::ListMeta::default()),
            status: text("Failure"),
            code: Some(404),
            details: Some(meta::StatusDetails {
                causes: vec![meta::StatusCause {
                    reason: text("x"),
                    ..meta::StatusCause::default()
                }],
                ..meta::StatusDetails::default()
            }),
            ..meta::Status::default()
        },
        &json!({
            "apiVersion": "v1",
            "kind": "Status",
            "metadata": {},
            "status": "Failure",
            "code": 404,
            "details": {"causes": [{"reason": "x"}]},
        }),
    );
}

#[test]
fn a_list_is_built_from_the_messages_of_its_items() {
    let id = builtin().find("io.k8s.api.core.v1.Pod").unwrap();
    let pod = encode_message(builtin(), id, &pod_object()).unwrap();
    let bytes = encode_list(
        builtin(),
        "v1",
        "PodList",
        &json!({"resourceVersion": "7"}),
        [&pod[..], &pod[..]].into_iter(),
    )
    .unwrap();
    let unknown = Unknown::decode(&bytes[4..]).unwrap();
    let list = core::v1::PodList::decode(&unknown.raw.unwrap()[..]).unwrap();

    assert_eq!(list.metadata.unwrap().resource_version, text("7"));
    assert_eq!(list.items, [pod_message(), pod_message()]);
    assert_eq!(unknown.type_meta.unwrap().kind, text("PodList"));
}

#[test]
fn an_event_of_a_watch_is_a_length_and_a_bare_message() {
    let id = builtin().find("io.k8s.api.core.v1.Pod").unwrap();
    let object = encode(builtin(), id, "v1", "Pod", &pod_object()).unwrap();
    let frame = watch_event("ADDED", &object);
    let (length, message) = frame.split_first_chunk::<4>().unwrap();

    assert_eq!(u32::from_be_bytes(*length) as usize, message.len());
    assert_eq!(
        meta::WatchEvent::decode(message).unwrap(),
        meta::WatchEvent {
            r#type: text("ADDED"),
            object: Some(RawExtension { raw: Some(object) }),
        }
    );
}

#[test]
fn an_object_inside_an_object_is_opened() {
    let inner = sealed(&pod_object(), pod_message().encode_to_vec());
    let event = meta::WatchEvent {
        r#type: text("ADDED"),
        object: Some(RawExtension { raw: Some(inner) }),
    };
    let outer = json!({"apiVersion": "v1", "kind": "WatchEvent"});
    let (_, _, decoded) = decode(builtin(), &sealed(&outer, event.encode_to_vec())).unwrap();

    assert_eq!(decoded["object"], pod_object());
}

#[test]
fn what_go_always_writes_is_nothing_unless_it_is_required_or_a_pointer() {
    let message = core::v1::Pod {
        metadata: Some(meta::ObjectMeta {
            name: text("p"),
            generate_name: text(""),
            generation: Some(0),
            creation_timestamp: Some(meta::Time::default()),
            ..meta::ObjectMeta::default()
        }),
        spec: Some(core::v1::PodSpec {
            host_network: Some(false),
            automount_service_account_token: Some(false),
            priority: Some(0),
            containers: vec![core::v1::Container {
                name: text(""),
                image: text(""),
                resources: Some(core::v1::ResourceRequirements::default()),
                ..core::v1::Container::default()
            }],
            ..core::v1::PodSpec::default()
        }),
        status: None,
    };
    let pod = json!({"apiVersion": "v1", "kind": "Pod"});
    let (_, _, decoded) = decode(builtin(), &sealed(&pod, message.encode_to_vec())).unwrap();

    assert_eq!(
        decoded,
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": {
                "automountServiceAccountToken": false,
                "priority": 0,
                "containers": [{"name": "", "resources": {}}],
            },
        })
    );
}

#[test]
fn bytes_that_are_no_object_are_refused() {
    assert_eq!(decode(builtin(), b"{}"), Err(ProtobufError::NoMagic));
    assert_eq!(decode(builtin(), MAGIC), Err(ProtobufError::NoKind));
    let nothing = json!({"apiVersion": "v1", "kind": "Nothing"});
    assert!(matches!(
        decode(builtin(), &sealed(&nothing, Vec::new())),
        Err(ProtobufError::UnknownKind { .. })
    ));
    for raw in [vec![0x0a, 0x7f], vec![0x08, 1], vec![0x0a, 2, 0x0a, 9]] {
        assert!(decode(builtin(), &sealed(&pod_object(), raw)).is_err());
    }
}

#[test]
fn amounts_get_one_form_and_must_be_amounts() {
    let node = |cpu: &str| core::v1::Node {
        status: Some(core::v1::NodeStatus {
            capacity: [("cpu".to_owned(), amount(cpu))].into(),
            ..core::v1::NodeStatus::default()
        }),
        ..core::v1::Node::default()
    };
    let names = json!({"apiVersion": "v1", "kind": "Node"});
    let read = |cpu: &str| decode(builtin(), &sealed(&names, node(cpu).encode_to_vec()));

    assert_eq!(read("2000m").unwrap().2["status"]["capacity"]["cpu"], "2");
    assert!(matches!(read("two"), Err(ProtobufError::Amount(_))));
}

#[test]
fn unknown_numbers_are_skipped() {
    let mut raw = pod_message().encode_to_vec();
    raw.extend([0xf8, 0x3f, 1, 0xfa, 0x3f, 2, 1, 2]);
    let (_, _, decoded) = decode(builtin(), &sealed(&pod_object(), raw)).unwrap();

    assert_eq!(decoded, pod_object());
}

#[test]
fn messages_that_are_too_deep_are_refused() {
    let mut schema = Vec::new();
    for _ in 0..500 {
        let mut writer = Writer::default();
        writer.bytes(28, &schema);
        schema = writer.0;
    }
    let id = builtin()
        .find("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
        .unwrap();

    assert_eq!(
        decode::message(builtin(), id, &schema),
        Err(ProtobufError::TooDeep)
    );
}

#[test]
fn an_object_that_is_not_of_its_type_is_not_written() {
    let id = builtin().find("io.k8s.api.core.v1.Pod").unwrap();
    let pod = json!({"spec": {"containers": [{"image": 5}]}});
    let error = encode_message(builtin(), id, &pod).unwrap_err();

    assert_eq!(error.to_string(), "spec: containers: image: not String");
}

proptest! {
    #[test]
    fn no_bytes_are_fatal(raw in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode(builtin(), &[MAGIC, &raw].concat());
        let _ = decode(builtin(), &sealed(&pod_object(), raw));
    }

    #[test]
    fn no_changed_byte_of_a_pod_is_fatal(at in 0_usize..200, byte in any::<u8>()) {
        let mut raw = pod_message().encode_to_vec();
        let at = at % raw.len();
        raw[at] = byte;
        let _ = decode(builtin(), &sealed(&pod_object(), raw));
    }
}
