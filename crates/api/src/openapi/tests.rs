//! Documents as clients read them.

use serde_json::{Value, json};

use super::*;

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

fn deployments() -> OpenApiResource {
    OpenApiResource {
        group: "apps".to_owned(),
        version: "v1".to_owned(),
        kind: "Deployment".to_owned(),
        plural: "deployments".to_owned(),
        namespaced: true,
        verbs: words(&[
            "get",
            "list",
            "watch",
            "create",
            "update",
            "patch",
            "delete",
            "deletecollection",
        ]),
        subresources: vec![OpenApiSubresource {
            name: "scale".to_owned(),
            verbs: words(&["get", "update", "patch"]),
            group: "autoscaling".to_owned(),
            version: "v1".to_owned(),
            kind: "Scale".to_owned(),
            type_name: "io.k8s.api.autoscaling.v1.Scale".to_owned(),
        }],
        type_name: "io.k8s.api.apps.v1.Deployment".to_owned(),
        custom: None,
    }
}

fn reviews() -> OpenApiResource {
    OpenApiResource {
        group: "authentication.k8s.io".to_owned(),
        kind: "TokenReview".to_owned(),
        plural: "tokenreviews".to_owned(),
        namespaced: false,
        verbs: words(&["create"]),
        subresources: Vec::new(),
        type_name: "io.k8s.api.authentication.v1.TokenReview".to_owned(),
        ..deployments()
    }
}

fn widgets(schema: Value) -> OpenApiResource {
    OpenApiResource {
        group: "example.com".to_owned(),
        kind: "Widget".to_owned(),
        plural: "widgets".to_owned(),
        subresources: Vec::new(),
        type_name: "com.example.v1.Widget".to_owned(),
        custom: Some(Arc::new(schema)),
        ..deployments()
    }
}

fn document(openapi: &OpenApi, path: &str) -> Value {
    let document = openapi.document(path).unwrap().unwrap();
    serde_json::from_slice(&document.plain().unwrap()).unwrap()
}

fn parameters(operation: &Value) -> Vec<&str> {
    operation["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|parameter| parameter["name"].as_str().unwrap())
        .collect()
}

/// Every reference in the document leads somewhere.
fn assert_complete(document: &Value, value: &Value) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get("$ref") {
                let found = document.pointer(&reference.replace("#/", "/"));
                assert!(found.is_some(), "{reference}");
            }
            map.values()
                .for_each(|value| assert_complete(document, value));
        }
        Value::Array(items) => items
            .iter()
            .for_each(|value| assert_complete(document, value)),
        _ => {}
    }
}

#[test]
fn the_index_has_an_address_for_each_group() {
    let openapi = OpenApi::new(vec![deployments(), reviews()], "v1.36.0");
    let hash = openapi.hash("apis/apps/v1").unwrap();

    assert_eq!(
        openapi.index()["paths"]["apis/apps/v1"]["serverRelativeURL"],
        format!("/openapi/v3/apis/apps/v1?hash={hash}")
    );
    assert_eq!(openapi.index()["paths"].as_object().unwrap().len(), 2);
    assert!(openapi.document("apis/nothing/v1").unwrap().is_none());
}

#[test]
fn a_patch_tells_kubectl_that_fields_are_validated() {
    let openapi = OpenApi::new(vec![deployments()], "v1.36.0");
    let document = document(&openapi, "apis/apps/v1");
    let patch =
        &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];

    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({"group": "apps", "version": "v1", "kind": "Deployment"})
    );
    assert_eq!(patch["x-kubernetes-action"], "patch");
    assert_eq!(patch["operationId"], "patchAppsV1NamespacedDeployment");
    assert_eq!(
        parameters(patch),
        ["dryRun", "fieldManager", "fieldValidation", "force"]
    );
}

#[test]
fn there_is_a_path_for_each_verb_and_part_and_no_other() {
    let openapi = OpenApi::new(vec![deployments(), reviews()], "v1.36.0");
    let apps = document(&openapi, "apis/apps/v1");
    let authentication = document(&openapi, "apis/authentication.k8s.io/v1");
    let paths: Vec<&String> = apps["paths"].as_object().unwrap().keys().collect();

    assert_eq!(
        paths,
        [
            "/apis/apps/v1/",
            "/apis/apps/v1/deployments",
            "/apis/apps/v1/namespaces/{namespace}/deployments",
            "/apis/apps/v1/namespaces/{namespace}/deployments/{name}",
            "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale",
        ]
    );
    assert_eq!(
        apps["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]["put"]["operationId"],
        "replaceAppsV1NamespacedDeploymentScale"
    );
    assert_eq!(
        apps["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments"]["delete"]["operationId"],
        "deleteAppsV1CollectionNamespacedDeployment"
    );
    let reviews = &authentication["paths"]["/apis/authentication.k8s.io/v1/tokenreviews"];
    assert_eq!(reviews["post"]["tags"], json!(["authentication_v1"]));
    assert!(reviews.get("get").is_none());
}

#[test]
fn schemas_say_how_things_merge_and_what_they_are_for() {
    let openapi = OpenApi::new(vec![deployments()], "v1.36.0");
    let document = document(&openapi, "apis/apps/v1");
    let schemas = &document["components"]["schemas"];
    let ports = &schemas["io.k8s.api.core.v1.Container"]["properties"]["ports"];
    let selector = &schemas["io.k8s.api.core.v1.SecretKeySelector"];

    assert_eq!(
        schemas["io.k8s.api.apps.v1.Deployment"]["x-kubernetes-group-version-kind"],
        json!([{"group": "apps", "version": "v1", "kind": "Deployment"}])
    );
    assert_eq!(
        schemas["io.k8s.api.apps.v1.DeploymentList"]["required"],
        json!(["items"])
    );
    assert_eq!(ports["x-kubernetes-list-type"], "map");
    assert_eq!(
        ports["x-kubernetes-list-map-keys"],
        json!(["containerPort", "protocol"])
    );
    assert_eq!(ports["x-kubernetes-patch-strategy"], "merge");
    assert_eq!(ports["x-kubernetes-patch-merge-key"], "containerPort");
    assert!(ports["description"].as_str().unwrap().contains("ports"));
    assert_eq!(selector["x-kubernetes-map-type"], "atomic");
    assert_eq!(selector["required"], json!(["key"]));
    assert_eq!(
        schemas["io.k8s.api.core.v1.ContainerPort"]["properties"]["protocol"]["default"],
        "TCP"
    );
    assert_eq!(
        schemas["io.k8s.api.core.v1.Probe"]["properties"]["httpGet"]["allOf"][0]["$ref"],
        "#/components/schemas/io.k8s.api.core.v1.HTTPGetAction"
    );
    assert_eq!(
        schemas["io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry"]["properties"]["fieldsV1"]
            ["allOf"][0]["$ref"],
        "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1"
    );
    assert_complete(&document, &document);
}

#[test]
fn a_custom_resource_brings_its_own_schema() {
    let schema = json!({
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"size": {
            "description": "how large", "type": "integer", "nullable": true, "anyOf": [{"minimum": 1}],
        }}}},
    });
    let openapi = OpenApi::new(vec![widgets(schema)], "v1.36.0");
    let three = document(&openapi, "apis/example.com/v1");
    let two: Value = serde_json::from_slice(
        &openapi
            .document_v2(Notation::Json)
            .unwrap()
            .plain()
            .unwrap(),
    )
    .unwrap();
    let widget = &three["components"]["schemas"]["com.example.v1.Widget"];

    assert_eq!(
        widget["properties"]["spec"]["properties"]["size"]["description"],
        "how large"
    );
    assert_eq!(
        widget["x-kubernetes-group-version-kind"][0]["kind"],
        "Widget"
    );
    assert_complete(&three, &three);
    assert_complete(&two, &two);
    let paths = three["paths"].as_object().unwrap();
    let patches: Vec<&Value> = paths
        .values()
        .filter_map(|path| path.get("patch"))
        .collect();
    assert!(!patches.is_empty());
    for patch in patches {
        let media_types = patch["requestBody"]["content"].as_object().unwrap();
        // kubectl would send one, and the server takes none.
        assert!(!media_types.contains_key("application/strategic-merge-patch+json"));
    }
    assert_eq!(
        two["definitions"]["com.example.v1.Widget"]["properties"]["spec"]["properties"]["size"],
        json!({"description": "how large", "type": "integer"})
    );
}

#[test]
fn version_2_has_all_groups_and_bodies_as_parameters() {
    let openapi = OpenApi::new(vec![deployments(), reviews()], "v1.36.0");
    let document: Value = serde_json::from_slice(
        &openapi
            .document_v2(Notation::Json)
            .unwrap()
            .plain()
            .unwrap(),
    )
    .unwrap();
    let create = &document["paths"]["/apis/authentication.k8s.io/v1/tokenreviews"]["post"];

    assert_eq!(document["swagger"], "2.0");
    assert_eq!(
        parameters(create),
        ["dryRun", "fieldManager", "fieldValidation", "body"]
    );
    assert!(document["definitions"]["io.k8s.api.apps.v1.Deployment"].is_object());
    assert_complete(&document, &document);
}

#[test]
fn only_what_changed_is_built_again() {
    let first = OpenApi::new(vec![deployments(), widgets(json!({}))], "v1.36.0");
    let apps = first.document("apis/apps/v1").unwrap().unwrap();
    let widget = first.document("apis/example.com/v1").unwrap().unwrap();
    let second = first.changed_to(vec![deployments(), widgets(json!({"description": "new"}))]);

    assert!(Arc::ptr_eq(
        &apps,
        &second.document("apis/apps/v1").unwrap().unwrap()
    ));
    assert!(!Arc::ptr_eq(
        &widget,
        &second.document("apis/example.com/v1").unwrap().unwrap()
    ));
    assert_ne!(
        first.hash("apis/example.com/v1"),
        second.hash("apis/example.com/v1")
    );
}

/// What stands at a path of field numbers, wherever it branches.
fn at(message: &[u8], path: &[u32]) -> Vec<String> {
    use crate::protobuf::wire::{Payload, Reader};
    let Some((first, rest)) = path.split_first() else {
        return vec![String::from_utf8(message.to_vec()).unwrap()];
    };
    let mut reader = Reader(message);
    let mut found = Vec::new();
    while let Some((number, payload)) = reader.next().unwrap() {
        match payload {
            Payload::Bytes(inner) if number == *first => found.extend(at(inner, rest)),
            _ => {}
        }
    }
    found
}

#[test]
fn the_document_of_version_2_is_also_a_message() {
    let schema = json!({"type": "object", "properties": {
        "size": {"type": "string", "enum": ["s", "l"], "default": "s"},
        "free": {"type": "object", "additionalProperties": true},
    }});
    let openapi = OpenApi::new(vec![deployments(), widgets(schema)], "v1.36.0");
    let document = |notation| openapi.document_v2(notation).unwrap().plain().unwrap();
    let json: Value = serde_json::from_slice(&document(Notation::Json)).unwrap();
    let message = document(Notation::Protobuf);
    let keys = |name: &str| -> Vec<String> {
        let map = json[name].as_object().unwrap();
        map.keys().cloned().collect()
    };
    let sorted = |path: &[u32]| {
        let mut found = at(&message, path);
        found.sort();
        found
    };

    assert_eq!(at(&message, &[1]), ["2.0"]);
    assert_eq!(at(&message, &[2, 2]), ["v1.36.0"]);
    assert_eq!(sorted(&[8, 2, 1]), keys("paths"));
    assert_eq!(sorted(&[9, 1, 1]), keys("definitions"));
    let operations = at(&message, &[8, 2, 2, 3, 5]);
    assert!(
        operations.contains(&"replaceAppsV1NamespacedDeployment".to_owned()),
        "{operations:?}"
    );
    let bodies = at(&message, &[8, 2, 2, 3, 8, 1, 1, 5, 1]);
    assert!(
        bodies.contains(&"#/definitions/io.k8s.api.apps.v1.Deployment".to_owned()),
        "{bodies:?}"
    );
    let extensions = at(&message, &[9, 1, 2, 31, 1]);
    assert!(
        extensions.contains(&"x-kubernetes-group-version-kind".to_owned()),
        "{extensions:?}"
    );
    let kinds = at(&message, &[9, 1, 2, 31, 2, 2]);
    let kind = json!([{"group": "example.com", "kind": "Widget", "version": "v1"}]);
    assert!(kinds.contains(&kind.to_string()), "{kinds:?}");
    // The values of an enumeration, and what a property is without one.
    assert_eq!(
        at(&message, &[9, 1, 2, 25, 1, 2, 20, 2]),
        ["\"s\"", "\"l\""]
    );
    let other = openapi.changed_to(vec![deployments(), widgets(json!({}))]);
    assert_ne!(openapi.hash_v2(), other.hash_v2());
}
