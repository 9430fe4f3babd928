//! Laws of ownership, on random managers and random maps, lists and sets.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{
    FieldSet, apply,
    tests::{World, config_map, owners},
    update,
};

fn data() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-e]", "[0-2]", 1..5).prop_map(|fields| {
        let fields: Map<String, Value> = fields.into_iter().map(|(k, v)| (k, v.into())).collect();
        Value::Object(fields)
    })
}

fn pods() -> World {
    World::new("io.k8s.api.core.v1.Pod", "v1", "Pod")
}

fn pod() -> impl Strategy<Value = Value> {
    let container = (
        "[a-c]",
        "[x-z]",
        prop::collection::btree_set(1..4_u16, 0..3),
    )
        .prop_map(|(name, image, ports)| {
            let ports: Vec<Value> = ports
                .iter()
                .map(|port| json!({"containerPort": port}))
                .collect();
            (
                name.clone(),
                json!({"name": name, "image": image, "ports": ports}),
            )
        });
    let containers = prop::collection::vec(container, 1..4).prop_map(|items| {
        let mut seen = std::collections::HashSet::new();
        items
            .into_iter()
            .filter(|(name, _)| seen.insert(name.clone()))
            .map(|(_, item)| item)
            .collect::<Vec<_>>()
    });
    let finalizers = prop::collection::btree_set("x/[a-c]", 0..3);
    (containers, finalizers).prop_map(|(containers, finalizers)| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "finalizers": finalizers},
            "spec": {"containers": containers, "nodeSelector": {"a": "b"}}})
    })
}

fn without_owners(object: &Value) -> Value {
    super::without_entries(object.clone())
}

proptest! {
    #[test]
    fn applying_twice_is_applying_once(live in pod(), config in pod()) {
        let world = pods();
        let live = update(&world.request("creator", 0), None, live);
        let once = apply(&world.request("me", 1), Some(&live), &config, true).unwrap();
        let twice = apply(&world.request("me", 2), Some(&once), &config, true).unwrap();
        prop_assert_eq!(&once, &twice);
        let unforced = apply(&world.request("me", 3), Some(&once), &config, false).unwrap();
        prop_assert_eq!(once, unforced);
    }

    #[test]
    fn what_is_applied_is_there_afterwards(live in pod(), config in pod()) {
        let world = pods();
        let live = update(&world.request("creator", 0), None, live);
        let after = apply(&world.request("me", 1), Some(&live), &config, true).unwrap();
        for wanted in config["spec"]["containers"].as_array().unwrap() {
            let found = after["spec"]["containers"].as_array().unwrap().iter()
                .find(|item| item["name"] == wanted["name"]).unwrap();
            prop_assert_eq!(&found["image"], &wanted["image"]);
        }
    }

    #[test]
    fn applying_new_fields_and_letting_go_leads_back(base in data(), own in data()) {
        let world = World::config_maps();
        let live = update(&world.request("creator", 0), None, config_map(&base));
        let fresh: Map<String, Value> = own.as_object().unwrap().iter()
            .map(|(key, value)| (format!("mine-{key}"), value.clone())).collect();
        let applied = apply(&world.request("me", 1), Some(&live), &config_map(&fresh.into()), false).unwrap();
        let mut nothing = config_map(&json!({}));
        nothing.as_object_mut().unwrap().remove("data");
        let after = apply(&world.request("me", 2), Some(&applied), &nothing, false).unwrap();
        prop_assert_eq!(after, live);
    }

    #[test]
    fn without_force_nobody_loses_what_they_applied(
        requests in prop::collection::vec((0..3_usize, data()), 1..12),
    ) {
        let world = World::config_maps();
        let mut live: Option<Value> = None;
        let mut wanted: [Option<Value>; 3] = [None, None, None];
        for (number, (who, data)) in requests.into_iter().enumerate() {
            let second = i64::try_from(number).unwrap();
            let manager = ["one", "two", "three"][who];
            let config = config_map(&data);
            match apply(&world.request(manager, second), live.as_ref(), &config, false) {
                Ok(object) => {
                    wanted[who] = Some(data);
                    live = Some(object);
                }
                Err(error) => prop_assert_eq!(error.code, 409),
            }
            let stored = live.as_ref().unwrap();
            let mut all = Map::new();
            for data in wanted.iter().flatten() {
                all.extend(data.as_object().unwrap().clone());
            }
            prop_assert_eq!(&stored["data"], &Value::Object(all));
        }
    }

    #[test]
    fn every_change_of_an_update_has_its_writer_as_owner(before in pod(), after in pod()) {
        let world = pods();
        let live = update(&world.request("first", 0), None, before);
        let changed = update(&world.request("second", 1), Some(&live), after.clone());
        prop_assert_eq!(without_owners(&changed), after);
        let lines = owners(&changed);
        for line in &lines {
            let mut paths: Vec<&str> = line.split(' ').skip(2).collect();
            let count = paths.len();
            paths.sort_unstable();
            paths.dedup();
            prop_assert_eq!(paths.len(), count);
        }
    }

    #[test]
    fn sets_obey_the_laws_of_sets(a in pod(), b in pod()) {
        let world = pods();
        let fields = |pod: Value| {
            let object = update(&world.request("m", 0), None, pod);
            FieldSet::decode(&object["metadata"]["managedFields"][0]["fieldsV1"]).unwrap()
        };
        let (a, b) = (fields(a), fields(b));
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a.clone());
        prop_assert!(a.difference(&b).intersection(&b).is_empty());
        prop_assert!(a.difference(&a).is_empty());
        prop_assert_eq!(a.touches(&b), !a.intersection(&b).is_empty());
        prop_assert_eq!(FieldSet::decode(&a.encode()), Some(a));
    }
}
