//! One example for each rule and each directive, most of them in the shape in which kubectl sends them.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{PatchMedia, PatchType, apply};
use crate::{
    schema::{Field, ListKind, Merge, Schema, Shape, Type, TypeId, Wire, builtin},
    status::ApiError,
};

pub(super) fn field(name: &str, shape: Shape) -> Field {
    Field {
        name: name.to_owned(),
        number: 0,
        shape,
        required: false,
        list: ListKind::Atomic,
        merge: None,
        atomic: false,
        default: None,
        wire: Wire::default(),
    }
}

fn merged(name: &str, shape: Shape, key: Option<&str>) -> Field {
    Field {
        merge: Some(Merge {
            key: key.map(str::to_owned),
            retain_keys: false,
            merges: true,
        }),
        ..field(name, Shape::List(Arc::new(shape)))
    }
}

fn kind(name: &str, mut fields: Vec<Field>) -> Type {
    fields.sort_by(|a, b| a.name.cmp(&b.name));
    Type {
        name: name.to_owned(),
        fields,
        ..Type::default()
    }
}

/// A pod, as far as these tests need it.
pub(super) fn pod() -> (Schema, Shape) {
    let strings = || Shape::Map(Arc::new(Shape::String));
    let schema = Schema::new(vec![
        kind(
            "Pod",
            vec![
                field("metadata", Shape::Object(TypeId(1))),
                field("spec", Shape::Object(TypeId(2))),
            ],
        ),
        kind(
            "ObjectMeta",
            vec![
                field("annotations", strings()),
                merged("finalizers", Shape::String, None),
                field("labels", strings()),
            ],
        ),
        kind(
            "PodSpec",
            vec![
                merged("containers", Shape::Object(TypeId(3)), Some("name")),
                field("nodeSelector", strings()),
                field("taints", Shape::List(Arc::new(Shape::Any))),
                merged("volumes", Shape::Object(TypeId(4)), Some("name")),
            ],
        ),
        kind(
            "Container",
            vec![
                field("args", Shape::List(Arc::new(Shape::String))),
                merged("env", Shape::Any, Some("name")),
                field("image", Shape::String),
                field("name", Shape::String),
                merged("ports", Shape::Any, Some("containerPort")),
            ],
        ),
        kind("Volume", vec![field("name", Shape::String)]),
    ]);
    (schema, Shape::Object(TypeId(0)))
}

fn strategic(current: &Value, patch: &Value) -> Result<Value, ApiError> {
    let (schema, shape) = pod();
    apply(
        PatchType::Strategic,
        &schema,
        &shape,
        current,
        patch.to_string().as_bytes(),
    )
}

fn json_patch(current: &Value, patch: &Value) -> Result<Value, ApiError> {
    let body = patch.to_string();
    let (schema, shape) = pod();
    apply(PatchType::Json, &schema, &shape, current, body.as_bytes())
}

fn merge_patch(current: &Value, body: &str) -> Result<Value, ApiError> {
    let (schema, shape) = pod();
    apply(PatchType::Merge, &schema, &shape, current, body.as_bytes())
}

fn web() -> Value {
    json!({"spec": {"containers": [
        {"name": "web", "image": "nginx:1", "args": ["-a"],
         "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
         "ports": [{"containerPort": 80}, {"containerPort": 443}]},
        {"name": "log", "image": "log:1"},
    ]}})
}

#[test]
fn set_image_changes_one_container_and_leaves_the_rest() {
    let patch = json!({"spec": {
        "$setElementOrder/containers": [{"name": "web"}, {"name": "log"}],
        "containers": [{"name": "web", "image": "nginx:2"}],
    }});
    let mut expected = web();
    expected["spec"]["containers"][0]["image"] = "nginx:2".into();
    assert_eq!(strategic(&web(), &patch).unwrap(), expected);
}

#[test]
fn a_new_item_comes_first_and_an_old_one_stays() {
    let patch = json!({"spec": {"containers": [{"name": "new", "image": "new:1"}]}});
    let patched = strategic(&web(), &patch).unwrap();
    assert_eq!(names(&patched), ["new", "web", "log"]);
}

fn names(pod: &Value) -> Vec<&str> {
    let containers = pod["spec"]["containers"].as_array().unwrap();
    containers
        .iter()
        .map(|c| c["name"].as_str().unwrap())
        .collect()
}

#[test]
fn an_item_is_deleted_by_its_key() {
    let patch = json!({"spec": {"containers": [{"$patch": "delete", "name": "web"}]}});
    assert_eq!(names(&strategic(&web(), &patch).unwrap()), ["log"]);
}

#[test]
fn deleting_an_item_that_is_not_there_changes_nothing() {
    let patch = json!({"spec": {"containers": [{"$patch": "delete", "name": "other"}]}});
    assert_eq!(strategic(&web(), &patch).unwrap(), web());
}

#[test]
fn edit_deletes_one_item_adds_another_and_sets_the_order() {
    let patch = json!({"spec": {
        "$setElementOrder/containers": [{"name": "new"}, {"name": "web"}],
        "containers": [{"name": "new", "image": "n"}, {"$patch": "delete", "name": "log"}],
    }});
    assert_eq!(names(&strategic(&web(), &patch).unwrap()), ["new", "web"]);
}

#[test]
fn an_order_alone_moves_items_and_keeps_what_only_the_server_has_in_place() {
    let current = json!({"spec": {"containers": [
        {"name": "a"}, {"name": "sidecar"}, {"name": "b"}, {"name": "c"}]}});
    let patch = json!({"spec": {"$setElementOrder/containers":
        [{"name": "c"}, {"name": "a"}, {"name": "b"}]}});
    let patched = strategic(&current, &patch).unwrap();
    assert_eq!(names(&patched), ["sidecar", "c", "a", "b"]);
}

#[test]
fn a_list_that_contradicts_its_order_is_refused() {
    let patch = json!({"spec": {
        "$setElementOrder/containers": [{"name": "web"}],
        "containers": [{"name": "log", "image": "l"}],
    }});
    let error = strategic(&web(), &patch).unwrap_err();
    assert_eq!(error.code, 500);
    assert_eq!(
        error.message,
        "The order in patch list:\n[map[image:l name:log]]\n doesn't match $setElementOrder list:\n[map[name:web]]\n"
    );
}

#[test]
fn replace_in_a_list_drops_every_old_item() {
    let patch = json!({"spec": {"containers": [
        {"name": "only", "image": "o"}, {"$patch": "replace"}]}});
    let patched = strategic(&web(), &patch).unwrap();
    assert_eq!(
        patched,
        json!({"spec": {"containers": [{"name": "only", "image": "o"}]}})
    );
}

#[test]
fn replace_in_an_object_drops_every_old_field() {
    let current = json!({"spec": {"nodeSelector": {"a": "1", "b": "2"}}});
    let patch = json!({"spec": {"nodeSelector": {"$patch": "replace", "c": "3"}}});
    assert_eq!(
        strategic(&current, &patch).unwrap(),
        json!({"spec": {"nodeSelector": {"c": "3"}}})
    );
}

#[test]
fn delete_in_an_object_empties_it() {
    let current = json!({"spec": {"nodeSelector": {"a": "1"}}});
    let patch = json!({"spec": {"nodeSelector": {"$patch": "delete"}}});
    assert_eq!(
        strategic(&current, &patch).unwrap(),
        json!({"spec": {"nodeSelector": {}}})
    );
}

#[test]
fn merging_cannot_be_asked_for() {
    let list = json!({"spec": {"containers": [{"$patch": "merge", "name": "web"}]}});
    let error = strategic(&web(), &list).unwrap_err();
    assert_eq!(
        error.message,
        "merging lists cannot yet be specified in the patch"
    );
    let map = json!({"spec": {"$patch": "merge"}});
    let error = strategic(&web(), &map).unwrap_err();
    assert_eq!(
        error.message,
        "unknown patch type: merge in map: map[$patch:merge]"
    );
}

#[test]
fn an_item_without_its_key_is_refused_in_upstreams_words() {
    for item in [
        json!({"image": "x"}),
        json!({"image": "x", "$patch": "delete"}),
    ] {
        let patch = json!({"spec": {"containers": [item]}});
        let error = strategic(&web(), &patch).unwrap_err();
        assert!(
            error
                .message
                .ends_with("image:x] does not contain declared merge key: name"),
            "{error}"
        );
        assert!(error.message.starts_with("map: map["), "{error}");
    }
}

#[test]
fn plain_values_merge_as_a_set() {
    let current = json!({"metadata": {"finalizers": ["a", "b"]}});
    let patch = json!({"metadata": {"finalizers": ["b", "c"]}});
    assert_eq!(
        strategic(&current, &patch).unwrap(),
        json!({"metadata": {"finalizers": ["a", "b", "c"]}})
    );
}

#[test]
fn plain_values_are_deleted_by_a_list_beside() {
    let current = json!({"metadata": {"finalizers": ["a", "b", "c"]}});
    let patch = json!({"metadata": {
        "$deleteFromPrimitiveList/finalizers": ["a", "z"],
        "$setElementOrder/finalizers": ["c", "b"],
    }});
    assert_eq!(
        strategic(&current, &patch).unwrap(),
        json!({"metadata": {"finalizers": ["c", "b"]}})
    );
    let nothing = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}});
    assert_eq!(
        strategic(&json!({}), &nothing).unwrap(),
        json!({"metadata": {}})
    );
    let wrong = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": "a"}});
    let error = strategic(&current, &wrong).unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (400, "invalid patch format of primitive list")
    );
}

#[test]
fn a_list_without_a_merge_strategy_is_replaced_as_taint_needs_it() {
    let current = json!({"spec": {"taints": [{"key": "a"}, {"key": "b"}]}});
    let patch = json!({"spec": {"taints": [{"key": "c", "effect": "NoSchedule"}]}});
    assert_eq!(strategic(&current, &patch).unwrap(), patch);
    let args = json!({"spec": {"containers": [{"name": "web", "args": ["-b"]}]}});
    let patched = strategic(&web(), &args).unwrap();
    assert_eq!(patched["spec"]["containers"][0]["args"], json!(["-b"]));
}

#[test]
fn cordon_sets_and_uncordon_removes() {
    let cordoned = strategic(
        &json!({"spec": {}}),
        &json!({"spec": {"unschedulable": true}}),
    )
    .unwrap();
    assert_eq!(cordoned, json!({"spec": {"unschedulable": true}}));
    let free = strategic(&cordoned, &json!({"spec": {"unschedulable": null}})).unwrap();
    assert_eq!(free, json!({"spec": {}}));
}

#[test]
fn volumes_of_another_type_drop_the_old_source() {
    let current = json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}});
    let patch = json!({"spec": {"volumes": [
        {"$retainKeys": ["name", "hostPath"], "name": "v", "hostPath": {"path": "/x"}, "emptyDir": null}]}});
    assert_eq!(
        strategic(&current, &patch).unwrap(),
        json!({"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}})
    );
}

#[test]
fn retain_keys_must_name_all_that_is_set() {
    let patch = json!({"spec": {"$retainKeys": ["a"], "b": 1}});
    let error = strategic(&json!({"spec": {"a": 1}}), &patch).unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (400, "invalid patch format of retainKeys")
    );
    let wrong = json!({"spec": {"$retainKeys": "a"}});
    assert_eq!(
        strategic(&json!({"spec": {}}), &wrong).unwrap_err().code,
        400
    );
}

#[test]
fn directives_do_not_survive_where_there_was_nothing_to_merge_with() {
    let patch = json!({"spec": {
        "$setElementOrder/containers": [{"name": "web"}],
        "containers": [
            {"name": "web", "env": [{"name": "A", "value": "1"}, {"$patch": "delete", "name": "B"}],
             "$setElementOrder/env": [{"name": "A"}], "image": null},
            {"$patch": "delete", "name": "gone"}],
        "nodeSelector": {"$patch": "replace", "a": "b"},
        "volumes": [{"$patch": "replace"}, {"name": "v", "$retainKeys": ["name"]}],
    }});
    assert_eq!(
        strategic(&json!({}), &patch).unwrap(),
        json!({"spec": {
            "containers": [{"name": "web", "env": [{"name": "A", "value": "1"}]}],
            "nodeSelector": {"a": "b"},
            "volumes": [{"name": "v"}],
        }})
    );
}

#[test]
fn a_list_of_keys_and_plain_values_mixed_is_refused() {
    let patch = json!({"spec": {"containers": ["web"]}});
    let error = strategic(&web(), &patch).unwrap_err();
    assert!(
        error
            .message
            .starts_with("list element types are not identical: [["),
        "{error}"
    );
    let patch = json!({"metadata": {"finalizers": [["a"]]}});
    let current = json!({"metadata": {"finalizers": [["b"]]}});
    assert_eq!(strategic(&current, &patch).unwrap_err().code, 422);
}

#[test]
fn thousands_of_items_merge_in_reasonable_time() {
    let items = |value: &str| -> Vec<Value> {
        (0..20_000)
            .map(|n| json!({"name": n.to_string(), "image": value}))
            .collect()
    };
    let current = json!({"spec": {"containers": items("old")}});
    let patch = json!({"spec": {"containers": items("new")}});
    assert_eq!(strategic(&current, &patch).unwrap(), patch);
}

#[test]
fn the_built_in_types_know_how_they_merge() {
    let patched = |name: &str, current: Value, patch: &Value| {
        let shape = Shape::Object(builtin().find(name).unwrap());
        let body = patch.to_string();
        apply(
            PatchType::Strategic,
            builtin(),
            &shape,
            &current,
            body.as_bytes(),
        )
        .unwrap()
    };
    // A selector is replaced where its type says so.
    assert_eq!(
        patched(
            "io.k8s.api.policy.v1.PodDisruptionBudget",
            json!({"spec": {"selector": {"matchLabels": {"a": "1"}}}}),
            &json!({"spec": {"selector": {"matchLabels": {"b": "2"}}}}),
        ),
        json!({"spec": {"selector": {"matchLabels": {"b": "2"}}}})
    );
    assert_eq!(
        patched(
            "io.k8s.api.core.v1.Service",
            json!({"spec": {"ports": [{"port": 80, "name": "http"}, {"port": 443}]}}),
            &json!({"spec": {"ports": [{"port": 80, "nodePort": 30080}, {"$patch": "delete", "port": 443}]}}),
        ),
        json!({"spec": {"ports": [{"port": 80, "name": "http", "nodePort": 30080}]}})
    );
    // What `kubectl rollout restart` sends.
    assert_eq!(
        patched(
            "io.k8s.api.apps.v1.Deployment",
            json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}, "template": {"spec": {}}}}),
            &json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"},
                "template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}}}),
        ),
        json!({"spec": {"strategy": {"type": "Recreate"},
            "template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}, "spec": {}}}})
    );
}

#[test]
fn label_and_annotate_send_merge_patches() {
    let current = json!({"metadata": {"labels": {"a": "1", "b": "2"}, "annotations": {"x": "y"}}});
    let patched = merge_patch(
        &current,
        r#"{"metadata":{"labels":{"a":null,"c":"3"},"resourceVersion":"7"}}"#,
    );
    assert_eq!(
        patched.unwrap(),
        json!({"metadata": {"labels": {"b": "2", "c": "3"}, "annotations": {"x": "y"}, "resourceVersion": "7"}})
    );
}

#[test]
fn a_merge_patch_that_is_no_object_is_refused() {
    for (body, message) in [
        (
            "[1]",
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        ("null", "Invalid JSON Patch"),
    ] {
        let error = merge_patch(&json!({}), body).unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (400, message));
    }
    let error = merge_patch(&json!({}), "{").unwrap_err();
    assert_eq!(error.code, 400);
    assert!(
        error.message.starts_with("error decoding patch: "),
        "{error}"
    );
}

#[test]
fn the_examples_of_rfc_7386_hold() {
    for (target, patch, expected) in [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (
            json!({"a": "b"}),
            json!({"b": "c"}),
            json!({"a": "b", "b": "c"}),
        ),
        (json!({"a": "b"}), json!({"a": null}), json!({})),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
        (
            json!({"a": {"b": "c"}}),
            json!({"a": {"b": "d", "c": null}}),
            json!({"a": {"b": "d"}}),
        ),
        (
            json!({"a": [{"b": "c"}]}),
            json!({"a": [1]}),
            json!({"a": [1]}),
        ),
        (
            json!({"e": null}),
            json!({"a": 1}),
            json!({"e": null, "a": 1}),
        ),
        (
            json!({}),
            json!({"a": {"bb": {"ccc": null}}}),
            json!({"a": {"bb": {}}}),
        ),
    ] {
        assert_eq!(merge_patch(&target, &patch.to_string()).unwrap(), expected);
    }
}

#[test]
fn rollout_undo_replaces_the_template() {
    let current = json!({"spec": {"template": {"a": 1}, "replicas": 2}, "metadata": {"annotations": {"r": "3"}}});
    let patch = json!([
        {"op": "replace", "path": "/spec/template", "value": {"a": 2}},
        {"op": "replace", "path": "/metadata/annotations", "value": {"r": "2"}},
    ]);
    assert_eq!(
        json_patch(&current, &patch).unwrap(),
        json!({"spec": {"template": {"a": 2}, "replicas": 2}, "metadata": {"annotations": {"r": "2"}}})
    );
}

#[test]
fn every_operation_of_a_json_patch_works() {
    let current = json!({"a": [1, 2], "b/c": {"d~e": 1}});
    let patch = json!([
        {"op": "test", "path": "/b~1c/d~0e", "value": 1},
        {"op": "test", "path": "/nothing", "value": null},
        {"op": "add", "path": "/a/1", "value": 9},
        {"op": "add", "path": "/a/-", "value": 3},
        {"op": "replace", "path": "/a/0", "value": 0},
        {"op": "replace", "path": "/new", "value": "n"},
        {"op": "copy", "from": "/new", "path": "/copy"},
        {"op": "move", "from": "/new", "path": "/moved"},
        {"op": "remove", "path": "/a/-1"},
    ]);
    assert_eq!(
        json_patch(&current, &patch).unwrap(),
        json!({"a": [0, 9, 2], "b/c": {"d~e": 1}, "copy": "n", "moved": "n"})
    );
}

#[test]
fn a_json_patch_that_does_not_fit_is_refused_with_upstreams_one_sentence() {
    let current = json!({"a": [1], "s": "text"});
    for operation in [
        json!({"op": "test", "path": "/a/0", "value": 2}),
        json!({"op": "test", "path": "/a/7", "value": null}),
        json!({"op": "remove", "path": "/nothing"}),
        json!({"op": "remove", "path": "/a/1"}),
        json!({"op": "add", "path": "/x/y", "value": 1}),
        json!({"op": "add", "path": "/a/3", "value": 1}),
        json!({"op": "add", "path": "/s/x", "value": 1}),
        json!({"op": "add", "path": "a", "value": 1}),
        json!({"op": "replace", "path": "/a/1", "value": 1}),
        json!({"op": "replace", "path": "", "value": 1}),
        json!({"op": "move", "path": "/b"}),
        json!({"op": "spin", "path": "/b"}),
        json!({"path": "/b"}),
    ] {
        let error = json_patch(&current, &json!([operation])).unwrap_err();
        assert_eq!(
            error.to_status(),
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 422,
                "reason": "Invalid", "details": {},
                "message": "the server rejected our request due to an error in our request"}),
            "{operation}"
        );
    }
}

#[test]
fn a_json_patch_is_bounded_in_operations_copies_and_depth() {
    let many = vec![json!({"op": "test", "path": "/a", "value": null}); 10_001];
    let error = json_patch(&json!({}), &many.into()).unwrap_err();
    assert_eq!(error.code, 413);
    assert_eq!(
        error.message,
        "Request entity is too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    );
    let copies = vec![json!({"op": "copy", "from": "/a", "path": "/a/-"}); 40];
    assert_eq!(
        json_patch(&json!({"a": ["text"]}), &copies.into())
            .unwrap_err()
            .code,
        422
    );
    let deeper: Vec<Value> = (0..10)
        .map(|n| json!({"op": "copy", "from": "/a", "path": format!("/a{}", "/a".repeat(1 << n))}))
        .collect();
    assert_eq!(
        json_patch(&json!({"a": {}}), &deeper.into())
            .unwrap_err()
            .code,
        422
    );
}

#[test]
fn a_body_that_is_no_list_of_operations_is_a_bad_request() {
    for body in [json!({}), json!("x"), json!([1])] {
        let error = json_patch(&json!({}), &body).unwrap_err();
        assert_eq!(error.code, 400, "{body}");
    }
}

#[test]
fn custom_resources_have_no_strategic_merge_patch() {
    let strategic = "application/strategic-merge-patch+json; charset=utf-8";
    assert_eq!(
        PatchMedia::from_content_type(strategic, false),
        Ok(PatchMedia::Change(PatchType::Strategic))
    );
    let error = PatchMedia::from_content_type(strategic, true).unwrap_err();
    assert_eq!((error.code, error.reason), (415, "UnsupportedMediaType"));
    assert_eq!(
        error.message,
        "the body of the request was in an unknown format - accepted media types include: \
         application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    );
    assert_eq!(
        PatchMedia::from_content_type("application/apply-patch+yaml", true),
        Ok(PatchMedia::Apply)
    );
}
