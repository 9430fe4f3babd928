//! Ownership by example, on the built-in types: what applying does.

mod writes;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{FieldSet, Request, Scope, apply, check_options, update};
use crate::{
    schema::{Shape, builtin},
    status::ApiError,
};

/// The entries of an object as one line each: who, how, which fields.
pub(super) fn owners(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array();
    entries
        .into_iter()
        .flatten()
        .map(|entry| {
            let fields = FieldSet::decode(&entry["fieldsV1"]).unwrap();
            let part = entry["subresource"].as_str().map(|part| format!("/{part}"));
            format!(
                "{} {}{} {}",
                entry["manager"].as_str().unwrap(),
                entry["operation"].as_str().unwrap(),
                part.unwrap_or_default(),
                fields.paths().join(" ")
            )
        })
        .collect()
}

pub(super) struct World {
    shape: Shape,
    scope: Scope,
    api_version: &'static str,
    kind: &'static str,
}

impl World {
    pub(super) fn new(name: &str, api_version: &'static str, kind: &'static str) -> Self {
        let id = builtin().find(name).unwrap();
        Self {
            shape: Shape::Object(id),
            scope: Scope::everything(),
            api_version,
            kind,
        }
    }

    pub(super) fn config_maps() -> Self {
        Self::new("io.k8s.api.core.v1.ConfigMap", "v1", "ConfigMap")
    }

    fn deployments() -> Self {
        Self::new("io.k8s.api.apps.v1.Deployment", "apps/v1", "Deployment")
    }

    pub(super) fn request<'a>(&'a self, manager: &'a str, second: i64) -> Request<'a> {
        Request {
            schema: builtin(),
            shape: &self.shape,
            api_version: self.api_version,
            kind: self.kind,
            manager,
            subresource: "",
            scope: &self.scope,
            now: Timestamp::from_second(1_800_000_000 + second).unwrap(),
        }
    }
}

pub(super) fn config_map(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}, "data": data})
}

fn applied(
    live: Option<&Value>,
    manager: &str,
    data: &Value,
    force: bool,
) -> Result<Value, ApiError> {
    let world = World::config_maps();
    apply(&world.request(manager, 0), live, &config_map(data), force)
}

#[test]
fn the_first_apply_creates_the_object_and_owns_what_it_says() {
    let object = applied(None, "kubectl", &json!({"a": "1", "b": "2"}), false).unwrap();
    assert_eq!(object["data"], json!({"a": "1", "b": "2"}));
    assert_eq!(
        object["metadata"]["managedFields"],
        json!([{
            "apiVersion": "v1", "fieldsType": "FieldsV1", "manager": "kubectl", "operation": "Apply",
            "time": "2027-01-15T08:00:00Z",
            "fieldsV1": {"f:data": {"f:a": {}, "f:b": {}}},
        }])
    );
}

#[test]
fn applying_the_same_again_changes_nothing_not_even_times() {
    let world = World::config_maps();
    let config = config_map(&json!({"a": "1"}));
    let once = apply(&world.request("m", 0), None, &config, false).unwrap();
    let twice = apply(&world.request("m", 60), Some(&once), &config, false).unwrap();
    assert_eq!(once, twice);
}

#[test]
fn a_time_that_says_nothing_does_not_take_the_time_of_the_object() {
    let world = World::config_maps();
    let mut config = config_map(&json!({"a": "1"}));
    let mut live = apply(&world.request("m", 0), None, &config, false).unwrap();
    live["metadata"]["creationTimestamp"] = json!("2027-01-15T08:00:00Z");
    config["metadata"]["creationTimestamp"] = json!(null);
    let again = apply(&world.request("m", 60), Some(&live), &config, false).unwrap();
    assert_eq!(again, live);
}

#[test]
fn what_is_not_applied_any_more_goes() {
    let live = applied(None, "m", &json!({"a": "1", "b": "2"}), false).unwrap();
    let live = applied(Some(&live), "m", &json!({"b": "2"}), false).unwrap();
    assert_eq!(live["data"], json!({"b": "2"}));
    assert_eq!(owners(&live), ["m Apply .data.b"]);
}

#[test]
fn an_applier_that_applies_nothing_any_more_takes_the_map_with_it() {
    let world = World::config_maps();
    let live = applied(None, "m", &json!({"a": "1"}), false).unwrap();
    let mut nothing = config_map(&json!({}));
    nothing.as_object_mut().unwrap().remove("data");
    let live = apply(&world.request("m", 1), Some(&live), &nothing, false).unwrap();
    assert_eq!(live.get("data"), None);
    assert_eq!(owners(&live), Vec::<String>::new());
}

#[test]
fn a_conflict_names_the_owner_and_the_field_in_upstreams_words() {
    let world = World::config_maps();
    let live = update(
        &world.request("kubectl-client-side-apply", 0),
        None,
        config_map(&json!({"key": "old"})),
    );
    let error = applied(Some(&live), "other", &json!({"key": "new"}), false).unwrap_err();
    assert_eq!(
        error.to_status(),
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 409,
            "reason": "Conflict",
            "message": "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using v1: .data.key",
            "details": {"causes": [{
                "reason": "FieldManagerConflict",
                "message": "conflict with \"kubectl-client-side-apply\" using v1",
                "field": ".data.key"}]}})
    );
}

#[test]
fn several_conflicts_are_grouped_by_owner() {
    let live = applied(None, "one", &json!({"a": "1", "b": "1"}), false).unwrap();
    let live = applied(Some(&live), "two", &json!({"c": "1"}), false).unwrap();
    let error = applied(
        Some(&live),
        "me",
        &json!({"a": "2", "b": "2", "c": "2"}),
        false,
    )
    .unwrap_err();
    assert_eq!(
        error.message,
        "Apply failed with 3 conflicts: conflicts with \"one\":\n- .data.a\n- .data.b\nconflicts with \"two\":\n- .data.c"
    );
}

#[test]
fn force_takes_the_field_from_its_owner() {
    let live = applied(None, "one", &json!({"a": "1", "b": "1"}), false).unwrap();
    let live = applied(Some(&live), "two", &json!({"a": "2"}), true).unwrap();
    assert_eq!(live["data"], json!({"a": "2", "b": "1"}));
    assert_eq!(owners(&live), ["one Apply .data.b", "two Apply .data.a"]);
}

#[test]
fn two_appliers_may_own_the_same_value_and_it_stays_until_both_let_go() {
    let live = applied(None, "one", &json!({"a": "1"}), false).unwrap();
    let live = applied(Some(&live), "two", &json!({"a": "1"}), false).unwrap();
    assert_eq!(owners(&live), ["two Apply .data.a", "one Apply .data.a"]);
    let live = applied(Some(&live), "one", &json!({"x": "1"}), false).unwrap();
    assert_eq!(live["data"], json!({"a": "1", "x": "1"}));
    let live = applied(Some(&live), "two", &json!({"y": "1"}), false).unwrap();
    assert_eq!(live["data"], json!({"x": "1", "y": "1"}));
}

#[test]
fn items_with_keys_are_owned_one_by_one() {
    let world = World::deployments();
    let with = |containers: &Value| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"template": {"spec": {"containers": containers}}}})
    };
    let one = with(&json!([{"name": "a", "image": "a:1"}]));
    let two = with(&json!([{"name": "b", "image": "b:1", "ports": [{"containerPort": 80}]}]));
    let live = apply(&world.request("one", 0), None, &one, false).unwrap();
    let live = apply(&world.request("two", 1), Some(&live), &two, false).unwrap();
    assert_eq!(
        live["spec"]["template"]["spec"]["containers"],
        json!([{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1", "ports": [{"containerPort": 80}]}])
    );
    let path = ".spec.template.spec.containers[name=\"b\"]";
    let port = format!("{path}.ports[containerPort=80,protocol=\"TCP\"]");
    assert_eq!(
        owners(&live)[1],
        format!("two Apply {path} {path}.image {path}.name {port} {port}.containerPort")
    );
    let live = apply(
        &world.request("two", 2),
        Some(&live),
        &with(&json!([])),
        false,
    )
    .unwrap();
    assert_eq!(
        live["spec"]["template"]["spec"]["containers"],
        json!([{"name": "a", "image": "a:1"}])
    );
}

#[test]
fn sets_merge_value_by_value() {
    let world = World::config_maps();
    let with = |finalizers: &[&str]| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "finalizers": finalizers}});
    let live = apply(
        &world.request("one", 0),
        None,
        &with(&["x/a", "x/b"]),
        false,
    )
    .unwrap();
    let live = apply(
        &world.request("two", 0),
        Some(&live),
        &with(&["x/c", "x/a"]),
        false,
    )
    .unwrap();
    assert_eq!(live["metadata"]["finalizers"], json!(["x/c", "x/a", "x/b"]));
    let live = apply(
        &world.request("one", 0),
        Some(&live),
        &with(&["x/b"]),
        false,
    )
    .unwrap();
    assert_eq!(live["metadata"]["finalizers"], json!(["x/c", "x/a", "x/b"]));
    let live = apply(
        &world.request("two", 0),
        Some(&live),
        &with(&["x/c"]),
        false,
    )
    .unwrap();
    assert_eq!(live["metadata"]["finalizers"], json!(["x/c", "x/b"]));
}

#[test]
fn atomic_values_have_one_owner() {
    let world = World::deployments();
    let with = |labels: &Value| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"selector": {"matchLabels": labels}}})
    };
    let live = apply(
        &world.request("one", 0),
        None,
        &with(&json!({"a": "1"})),
        false,
    )
    .unwrap();
    let other = with(&json!({"b": "1"}));
    let error = apply(&world.request("two", 0), Some(&live), &other, false).unwrap_err();
    assert_eq!(
        error.message,
        "Apply failed with 1 conflict: conflict with \"one\": .spec.selector"
    );
    let live = apply(&world.request("two", 0), Some(&live), &other, true).unwrap();
    assert_eq!(live["spec"]["selector"]["matchLabels"], json!({"b": "1"}));
    assert_eq!(owners(&live), ["two Apply .spec.selector"]);
}

#[test]
fn a_field_the_schema_does_not_know_is_refused() {
    let world = World::deployments();
    let config = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"}, "spec": {"foo": 1, "replicas": "x"}});
    let error = apply(&world.request("m", 0), None, &config, false).unwrap_err();
    assert_eq!(error.code, 500);
    assert_eq!(
        error.message,
        "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): errors:\n  \
         .spec.foo: field not declared in schema\n  \
         .spec.replicas: expected numeric (int or float), got string"
    );
}

#[test]
fn items_without_keys_and_items_that_are_there_twice_are_refused() {
    let world = World::deployments();
    for (containers, fault) in [
        (
            json!([{"image": "x"}]),
            ".spec.template.spec.containers: element 0: associative list with keys has an element that omits key field \"name\" (and doesn't have default value)",
        ),
        (
            json!([{"name": "a"}, {"name": "a"}]),
            ".spec.template.spec.containers: duplicate entries for key [name=\"a\"]",
        ),
    ] {
        let config = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"template": {"spec": {"containers": containers}}}});
        let error = apply(&world.request("m", 0), None, &config, false).unwrap_err();
        assert!(error.message.ends_with(fault), "{error}");
    }
}

#[test]
fn an_applied_object_may_not_bring_owners_or_be_something_else() {
    let world = World::config_maps();
    let mut config = config_map(&json!({}));
    config["metadata"]["managedFields"] = json!([]);
    let error = apply(&world.request("m", 0), None, &config, false).unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (400, "metadata.managedFields must be nil")
    );
    config["kind"] = json!("Secret");
    let error = apply(&world.request("m", 0), None, &config, false).unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (400, "invalid object type: /v1, Kind=Secret")
    );
}

#[test]
fn kubectl_takes_over_what_it_applied_from_the_client() {
    let world = World::config_maps();
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let mut object = config_map(&json!({"a": "1", "b": "1"}));
    object["metadata"]["annotations"] =
        json!({annotation: config_map(&json!({"a": "1"})).to_string()});
    let live = update(&world.request("kubectl-client-side-apply", 0), None, object);
    let error = applied(Some(&live), "other", &json!({"a": "2"}), false).unwrap_err();
    assert_eq!(error.code, 409);
    let live = applied(Some(&live), "kubectl", &json!({"a": "2"}), false).unwrap();
    assert_eq!(live["data"], json!({"a": "2", "b": "1"}));
    assert_eq!(
        live["metadata"]["annotations"][annotation],
        format!("{}\n", config_map(&json!({"a": "2"})))
    );
    let error = applied(Some(&live), "kubectl", &json!({"b": "2"}), false).unwrap_err();
    assert_eq!(error.code, 409);
}

#[test]
fn an_applier_must_have_a_name_and_only_appliers_force() {
    assert_eq!(check_options("m", Some(true), true), Ok(()));
    assert_eq!(check_options("", None, false), Ok(()));
    let error = check_options("", None, true).unwrap_err();
    assert_eq!(error.code, 422);
    assert_eq!(
        error.message,
        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"
    );
    let error = check_options("", Some(true), false).unwrap_err();
    assert_eq!(
        error.message,
        "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch"
    );
    assert_eq!(
        check_options(&"x".repeat(129), None, true)
            .unwrap_err()
            .code,
        422
    );
    assert_eq!(check_options("a\nb", None, false).unwrap_err().code, 422);
}

#[test]
fn fields_are_written_as_they_were_read() {
    let fields = json!({"f:a": {".": {}, "k:{\"n\":\"x\",\"p\":80}": {".": {}, "f:b": {}}, "v:\"s\"": {}, "v:1": {}, "i:3": {}}, "f:c": {}});
    let set = FieldSet::decode(&fields).unwrap();
    assert_eq!(set.encode(), fields);
    assert_eq!(
        set.paths(),
        [
            ".a",
            ".c",
            ".a[n=\"x\",p=80]",
            ".a[=1]",
            ".a[=\"s\"]",
            ".a[3]",
            ".a[n=\"x\",p=80].b"
        ]
    );
    for wrong in [
        json!([]),
        json!({"x": {}}),
        json!({"k:{": {}}),
        json!({"f:a": 1}),
    ] {
        assert_eq!(FieldSet::decode(&wrong), None);
    }
}
