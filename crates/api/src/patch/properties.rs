//! Laws that hold for any object and any patch.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{PatchType, apply, merge, tests::pod};

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        (0..5_i64).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-d]", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-d]", value(), 0..4)
        .prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

/// The merge patch that leads from one object to the other.
fn difference(from: &Map<String, Value>, to: &Map<String, Value>) -> Map<String, Value> {
    let mut patch = Map::new();
    for name in from.keys().filter(|name| !to.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, new) in to {
        match (from.get(name), new) {
            (Some(old), new) if old == new => {}
            (Some(Value::Object(old)), Value::Object(new)) => {
                patch.insert(name.clone(), difference(old, new).into());
            }
            _ => {
                patch.insert(name.clone(), new.clone());
            }
        }
    }
    patch
}

fn containers() -> impl Strategy<Value = Vec<(u8, u8)>> {
    prop::collection::btree_map(0..6_u8, 0..3_u8, 1..6)
        .prop_map(|items| items.into_iter().collect::<Vec<_>>())
        .prop_shuffle()
}

fn pod_of(containers: &[(u8, u8)]) -> Value {
    let items: Vec<Value> = containers
        .iter()
        .map(|(name, image)| json!({"name": name.to_string(), "image": image.to_string()}))
        .collect();
    json!({"spec": {"containers": items}})
}

/// The strategic patch kubectl would send: what changed, what goes, and the order.
fn strategic_difference(from: &[(u8, u8)], to: &[(u8, u8)]) -> Value {
    let mut items: Vec<Value> = to
        .iter()
        .filter(|item| !from.contains(item))
        .map(|(name, image)| json!({"name": name.to_string(), "image": image.to_string()}))
        .collect();
    for (name, _) in from {
        if !to.iter().any(|(other, _)| other == name) {
            items.push(json!({"name": name.to_string(), "$patch": "delete"}));
        }
    }
    let order: Vec<Value> = to
        .iter()
        .map(|(name, _)| json!({"name": name.to_string()}))
        .collect();
    json!({"spec": {"containers": items, "$setElementOrder/containers": order}})
}

proptest! {
    #[test]
    fn a_computed_merge_patch_leads_to_its_target(from in object(), to in object()) {
        let patch = difference(from.as_object().unwrap(), to.as_object().unwrap());
        let mut patched = from;
        merge(&mut patched, patch.into());
        prop_assert_eq!(patched, to);
    }

    #[test]
    fn a_merge_patch_done_twice_is_done_once(target in object(), patch in object()) {
        let mut once = target;
        merge(&mut once, patch.clone());
        let mut twice = once.clone();
        merge(&mut twice, patch);
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn a_computed_strategic_patch_leads_to_its_target_in_order(from in containers(), to in containers()) {
        let (schema, shape) = pod();
        let body = strategic_difference(&from, &to).to_string();
        let patched = apply(PatchType::Strategic, &schema, &shape, &pod_of(&from), body.as_bytes());
        prop_assert_eq!(patched.unwrap(), pod_of(&to));
    }

    #[test]
    fn without_keys_a_strategic_patch_is_a_merge_patch(target in object(), patch in object()) {
        let (schema, shape) = pod();
        let body = patch.to_string();
        let strategic = apply(PatchType::Strategic, &schema, &shape, &target, body.as_bytes());
        let plain = apply(PatchType::Merge, &schema, &shape, &target, body.as_bytes());
        prop_assert_eq!(strategic, plain);
    }

    #[test]
    fn a_json_patch_agrees_with_another_implementation(target in object(), path in "(/[a-d0-2-]){1,3}", new in value()) {
        for op in ["add", "remove"] {
            let patch = json!([{"op": op, "path": path, "value": new}]);
            let theirs: json_patch::Patch = serde_json::from_value(patch.clone()).unwrap();
            let mut expected = target.clone();
            let fits = json_patch::patch(&mut expected, &theirs).is_ok();
            let (schema, shape) = pod();
            let ours = apply(PatchType::Json, &schema, &shape, &target, patch.to_string().as_bytes());
            prop_assert_eq!(ours.ok(), fits.then_some(expected));
        }
    }

    #[test]
    fn no_patch_makes_the_server_panic(target in object(), body in "[\\[\\]{}\":,$a-d0-9]{0,40}") {
        let (schema, shape) = pod();
        for kind in [PatchType::Json, PatchType::Merge, PatchType::Strategic] {
            let _ = apply(kind, &schema, &shape, &target, body.as_bytes());
        }
    }
}
