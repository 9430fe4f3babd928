//! What a pod asks for in all, from what its containers ask for.
//!
//! Containers that run one after the other need the most that any needs; those that run together need the sum.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    quantities::{self, Amount},
    read::Read,
};

pub(crate) type Amounts = BTreeMap<String, Amount>;

fn read(list: &Map<String, Value>) -> Amounts {
    list.iter()
        .filter_map(|(name, value)| Some((name.clone(), quantities::read(value)?)))
        .collect()
}

fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let entry = sum.entry(name.clone()).or_insert(Amount::ZERO);
        *entry = entry.plus(*amount);
    }
}

fn raise(most: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let entry = most.entry(name.clone()).or_insert(*amount);
        *entry = (*entry).max(*amount);
    }
}

/// The requests or limits (`field`) of all containers together.
fn together(spec: &Value, field: &str) -> Amounts {
    let mut sum = Amounts::new();
    for container in spec.items("containers") {
        add(&mut sum, &read(container["resources"].entries(field)));
    }
    let mut sidecars = Amounts::new();
    let mut initial = Amounts::new();
    for container in spec.items("initContainers") {
        let own = read(container["resources"].entries(field));
        let mut at_once = sidecars.clone();
        add(&mut at_once, &own);
        if container.text("restartPolicy") == "Always" {
            add(&mut sum, &own);
            add(&mut sidecars, &own);
        }
        raise(&mut initial, &at_once);
    }
    raise(&mut sum, &initial);
    sum
}

pub(crate) fn container_requests(spec: &Value) -> Amounts {
    together(spec, "requests")
}

pub(crate) fn container_limits(spec: &Value) -> Amounts {
    together(spec, "limits")
}

/// What the pod as a whole requests or is limited to, with what the pod itself says and its overhead.
fn of_pod(spec: &Value, field: &str) -> Amounts {
    let mut sum = together(spec, field);
    for (name, amount) in read(spec["resources"].entries(field)) {
        if matches!(name.as_str(), "cpu" | "memory") || name.starts_with("hugepages-") {
            sum.insert(name, amount);
        }
    }
    let overhead = read(spec.entries("overhead"));
    if field == "requests" {
        add(&mut sum, &overhead);
    } else {
        // Overhead only raises limits that there are.
        for (name, amount) in overhead {
            if let Some(entry) = sum.get_mut(&name) {
                *entry = entry.plus(amount);
            }
        }
    }
    sum
}

pub(crate) fn pod_requests(spec: &Value) -> Amounts {
    of_pod(spec, "requests")
}

pub(crate) fn pod_limits(spec: &Value) -> Amounts {
    of_pod(spec, "limits")
}

/// How well a pod is served when resources are short.
pub(crate) fn quality_of_service(spec: &Value) -> &'static str {
    let mut requests = Amounts::new();
    let mut limits = Amounts::new();
    let mut all_limited = true;
    let basic = |name: &str| matches!(name, "cpu" | "memory");
    let pod_level = &spec["resources"];
    let holders: Vec<&Value> =
        if pod_level.entries("requests").is_empty() && pod_level.entries("limits").is_empty() {
            ["containers", "initContainers"]
                .into_iter()
                .flat_map(|list| spec.items(list))
                .map(|container| &container["resources"])
                .collect()
        } else {
            vec![pod_level]
        };
    for holder in holders {
        let positive = |field: &str| -> Amounts {
            read(holder.entries(field))
                .into_iter()
                .filter(|(name, amount)| basic(name) && *amount > Amount::ZERO)
                .collect()
        };
        add(&mut requests, &positive("requests"));
        let own = positive("limits");
        all_limited &= own.len() == 2;
        add(&mut limits, &own);
    }
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if all_limited
        && requests.len() == limits.len()
        && requests
            .iter()
            .all(|(name, amount)| limits.get(name) == Some(amount))
    {
        "Guaranteed"
    } else {
        "Burstable"
    }
}
