//! Definitions as operators write them, and objects of theirs.

use serde_json::json;

use super::*;
use crate::field::Path;
use crate::schema::{ListKind, Shape};

fn structural(schema: &Value) -> Structural {
    Structural::parse(schema).unwrap()
}

fn spec(properties: &Value) -> Structural {
    structural(
        &json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}),
    )
}

fn faults(schema: &Structural, spec: &Value) -> Vec<String> {
    schema
        .validate(&json!({"spec": spec}))
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn faults_of_definition(schema: &Value) -> Vec<String> {
    check(&Path::new("schema"), schema)
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn what_the_schema_lacks_is_pruned() {
    let schema = spec(&json!({
        "known": {"type": "string"},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"closed": {"type": "object"}}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
        "object": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
    }));
    let mut object = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "extra": 1,
        "spec": {
            "known": "x", "unknown": {"deep": 1},
            "open": {"any": 1, "closed": {"gone": 1}},
            "map": {"k": {"a": "1", "b": "2"}},
            "list": [{"a": "1", "b": "2"}],
            "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "foo": 1}, "spec": {}},
        },
    });
    let findings = schema.prune(&mut object);

    assert_eq!(
        object["spec"],
        json!({
            "known": "x",
            "open": {"any": 1, "closed": {}},
            "map": {"k": {"a": "1"}},
            "list": [{"a": "1"}],
            "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}},
        })
    );
    assert_eq!(object["metadata"], json!({"name": "w"}));
    let mut sentences = findings.sentences().to_vec();
    sentences.sort();
    assert_eq!(
        sentences,
        [
            "unknown field \"extra\"",
            "unknown field \"spec.list[0].b\"",
            "unknown field \"spec.map.k.b\"",
            "unknown field \"spec.object.metadata.foo\"",
            "unknown field \"spec.open.closed.gone\"",
            "unknown field \"spec.unknown\"",
        ]
    );
}

#[test]
fn defaults_come_where_nothing_is_and_null_goes() {
    let schema = spec(&json!({
        "size": {"type": "integer", "default": 3},
        "mode": {"type": "object", "default": {}, "properties": {"kind": {"type": "string", "default": "x"}}},
        "maybe": {"type": "string", "nullable": true, "default": "d"},
        "gone": {"type": "string"},
        "map": {"type": "object", "additionalProperties": {"type": "string", "default": "m"}},
    }));
    let mut object =
        json!({"spec": {"size": null, "maybe": null, "gone": null, "map": {"a": null}}});
    schema.apply_defaults(&mut object);

    assert_eq!(
        object,
        json!({"spec": {"size": 3, "mode": {"kind": "x"}, "maybe": null, "map": {"a": "m"}}})
    );
}

#[test]
fn values_are_refused_as_upstream_refuses_them() {
    let schema = spec(&json!({
        "replicas": {"type": "integer", "minimum": 1, "maximum": 10, "multipleOf": 2},
        "cron": {"type": "string", "pattern": "^a+$", "minLength": 2, "maxLength": 4},
        "mode": {"type": "string", "enum": ["On", "Off"]},
        "list": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string"}},
        "at": {"type": "string", "format": "date-time"},
        "port": {"x-kubernetes-int-or-string": true},
        "ratio": {"type": "number", "exclusiveMinimum": true, "minimum": 0},
        "few": {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}},
    }));
    for (given, expected) in [
        (
            json!({"replicas": 100}),
            "spec.replicas: Invalid value: 100: spec.replicas in body should be less than or equal to 10",
        ),
        (
            json!({"replicas": 0}),
            "spec.replicas: Invalid value: 0: spec.replicas in body should be greater than or equal to 1",
        ),
        (
            json!({"replicas": 3}),
            "spec.replicas: Invalid value: 3: spec.replicas in body should be a multiple of 2",
        ),
        (
            json!({"replicas": "many"}),
            "spec.replicas: Invalid value: \"string\": spec.replicas in body must be of type integer: \"string\"",
        ),
        (
            json!({"replicas": null}),
            "spec.replicas: Invalid value: \"null\": spec.replicas in body must be of type integer: \"null\"",
        ),
        (
            json!({"cron": "bb"}),
            "spec.cron: Invalid value: \"bb\": spec.cron in body should match '^a+$'",
        ),
        (
            json!({"cron": "a"}),
            "spec.cron: Invalid value: \"a\": spec.cron in body should be at least 2 chars long",
        ),
        (
            json!({"cron": "aaaaa"}),
            "spec.cron: Too long: may not be more than 4 bytes",
        ),
        (
            json!({"mode": "?"}),
            "spec.mode: Unsupported value: \"?\": supported values: \"On\", \"Off\"",
        ),
        (
            json!({"list": []}),
            "spec.list: Invalid value: 0: spec.list in body should have at least 1 items",
        ),
        (
            json!({"list": ["a", "b", "c"]}),
            "spec.list: Too many: 3: must have at most 2 items",
        ),
        (
            json!({"list": [1]}),
            "spec.list[0]: Invalid value: \"integer\": spec.list[0] in body must be of type string: \"integer\"",
        ),
        (
            json!({"at": "noon"}),
            "spec.at: Invalid value: \"noon\": spec.at in body must be of type date-time: \"noon\"",
        ),
        (
            json!({"port": true}),
            "spec.port: Invalid value: \"boolean\": spec.port in body must be of type integer,string: \"boolean\"",
        ),
        (
            json!({"ratio": 0}),
            "spec.ratio: Invalid value: 0: spec.ratio in body should be greater than 0",
        ),
        (
            json!({"few": {}}),
            "spec.few: Invalid value: 1: spec.few in body should have at least 1 properties",
        ),
    ] {
        assert_eq!(faults(&schema, &given), [expected]);
    }
    let good = json!({"replicas": 4.0, "cron": "aa", "mode": "On", "list": ["a"], "port": "http", "ratio": 0.5});
    assert!(faults(&schema, &good).is_empty());
}

#[test]
fn required_fields_and_alternatives() {
    let schema = structural(&json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "string"}},
        "oneOf": [{"required": ["b"]}, {"required": ["c"]}],
        "not": {"required": ["b", "c"]},
    }}}));

    assert_eq!(
        faults(&schema, &json!({"b": "x"})),
        ["spec.a: Required value"]
    );
    assert_eq!(
        faults(&schema, &json!({"a": "x"})),
        [
            "<nil>: Invalid value: \"\": \"spec\" must validate one and only one schema (oneOf). Found none valid",
            "spec.b: Required value",
        ]
    );
    assert_eq!(
        faults(&schema, &json!({"a": "x", "b": "x", "c": "x"})),
        [
            "<nil>: Invalid value: \"\": \"spec\" must validate one and only one schema (oneOf). Found 2 valid alternatives",
            "<nil>: Invalid value: \"\": \"spec\" must not validate the schema (not)",
        ]
    );
}

#[test]
fn sets_and_lists_with_keys_have_no_item_twice() {
    let schema = spec(&json!({
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}}}},
    }));

    assert_eq!(
        faults(
            &schema,
            &json!({"set": ["a", "b", "a", "a"], "map": [{"k": "x"}, {"k": "x"}]})
        ),
        [
            "spec.map[1]: Duplicate value: {\"k\":\"x\"}",
            "spec.set[2]: Duplicate value: \"a\"",
        ]
    );
}

#[test]
fn a_good_definition_has_no_faults() {
    let schema = json!({
        "type": "object",
        "description": "a widget",
        "properties": {
            "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}},
            "spec": {
                "type": "object",
                "properties": {
                    "port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                    "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                        "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
                    "any": {"x-kubernetes-preserve-unknown-fields": true},
                },
                "anyOf": [{"properties": {"port": {"minimum": 5}}}],
            },
        },
    });

    assert_eq!(faults_of_definition(&schema), Vec::<String>::new());
}

#[test]
fn a_definition_that_is_not_structural_is_refused() {
    for (schema, expected) in [
        (
            json!({}),
            "schema.type: Required value: must not be empty at the root",
        ),
        (
            json!({"type": "string"}),
            "schema.type: Invalid value: \"string\": must be object at the root",
        ),
        (
            json!({"type": "object", "properties": {"a": {}}}),
            "schema.properties[a].type: Required value: must not be empty for specified object fields",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array"}}}),
            "schema.properties[a].items: Required value: must be specified",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "int"}}}),
            "schema.properties[a].type: Unsupported value: \"int\": supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"",
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            "schema.additionalProperties: Forbidden: must not be used at the root",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "$ref": "#/x"}}}),
            "schema.properties[a].$ref: Forbidden: $ref is not supported",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}),
            "schema.properties[a].pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: regex parse error:\n    (\n    ^\nerror: unclosed group",
        ),
        (
            json!({"type": "object", "anyOf": [{"properties": {"a": {"minimum": 1}}}]}),
            "schema.properties[a]: Required value: because it is defined in schema.anyOf[0].properties[a]",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "allOf": [{"properties": {"a": {"type": "string"}}}]}),
            "schema.allOf[0].properties[a].type: Forbidden: must be empty to be structural",
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}),
            "schema.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
        ),
        (
            json!({"type": "object", "properties": {"l": {"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}}}}),
            "schema.properties[l].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
        ),
        (
            json!({"type": "object", "properties": {"l": {"type": "array", "uniqueItems": true, "items": {"type": "string"}}}}),
            "schema.properties[l].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ),
    ] {
        assert_eq!(faults_of_definition(&schema), [expected]);
    }
}

#[test]
fn the_types_know_how_lists_merge() {
    let (schema, root) = spec(&json!({
        "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}}}},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }))
    .to_schema("com.example.v1.Widget");
    let root = schema.get(root);
    let Shape::Object(spec) = root.field("spec").unwrap().shape else {
        panic!("not an object");
    };
    let Shape::Object(metadata) = root.field("metadata").unwrap().shape else {
        panic!("not an object");
    };
    let Shape::Object(open) = schema.get(spec).field("open").unwrap().shape else {
        panic!("not an object");
    };

    assert_eq!(root.name, "com.example.v1.Widget");
    assert_eq!(
        schema.get(spec).field("list").unwrap().list,
        ListKind::Map(vec!["k".to_owned()])
    );
    assert!(schema.get(open).open);
    assert_eq!(
        schema.get(metadata).field("finalizers").unwrap().list,
        ListKind::Set
    );
}

#[test]
fn a_schema_that_is_too_deep_or_has_a_bad_pattern_cannot_be_read() {
    let mut deep = json!({"type": "object"});
    for _ in 0..150 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }

    assert!(matches!(
        Structural::parse(&deep),
        Err(StructuralError::TooDeep)
    ));
    assert!(!check(&Path::new("schema"), &deep).is_empty());
    assert!(matches!(
        Structural::parse(&json!({"pattern": "("})),
        Err(StructuralError::Pattern(_))
    ));
}
