//! Defaults of resource lists: requests that follow from limits, and what a pod as a whole asks for.

use serde_json::{Map, Value};

use super::fill::Fill;
use crate::validation::{
    amounts::{self, Amounts},
    quantities,
    read::Read,
};

/// Requests that are absent are as large as the limits.
pub(super) fn requests_from_limits(requirements: &mut Value) {
    let Some(limits) = requirements["limits"].as_object().cloned() else {
        return;
    };
    requirements.within("requests", |requests| {
        copy_absent(&limits, requests);
    });
}

/// Copies entries whose names `to` does not have.
pub(super) fn copy_absent(from: &Map<String, Value>, to: &mut Value) {
    for (name, amount) in from {
        to.fill(name, amount.clone());
    }
}

/// Completes what a pod says about all its containers together, if it says anything.
pub(super) fn of_pod(spec: &mut Value) {
    let said = |field: &str, spec: &Value| !spec["resources"].entries(field).is_empty();
    let (limited, requested) = (said("limits", spec), said("requests", spec));
    if !limited && !requested {
        return;
    }
    let requests = amounts::container_requests(spec);
    let limits = amounts::container_limits(spec);
    let all_limited: Amounts = limits
        .iter()
        .filter(|(name, _)| everybody_limits(spec, name))
        .map(|(name, amount)| (name.clone(), *amount))
        .collect();
    spec.when_there("resources", |resources| {
        let asked = resources["requests"].clone();
        let huge: Amounts = limits
            .into_iter()
            .filter(|(name, _)| quantities::is_huge_pages(name) && !asked.has(name))
            .collect();
        fill_amounts(resources, "limits", &huge);
        if limited {
            let basic = basic_amounts(requests);
            fill_amounts(resources, "requests", &basic);
            if let Some(limits) = resources["limits"].as_object().cloned() {
                resources.within("requests", |requests| copy_absent(&limits, requests));
            }
        } else {
            let basic = basic_amounts(all_limited);
            fill_amounts(resources, "limits", &basic);
        }
    });
}

fn everybody_limits(spec: &Value, name: &str) -> bool {
    let has = |container: &Value| container["resources"]["limits"].has(name);
    spec.items("containers").iter().all(has)
        && spec
            .items("initContainers")
            .iter()
            .filter(|container| container.text("restartPolicy") == "Always")
            .all(has)
}

fn basic_amounts(mut amounts: Amounts) -> Amounts {
    amounts.retain(|name, _| matches!(name.as_str(), "cpu" | "memory"));
    amounts
}

fn fill_amounts(resources: &mut Value, field: &str, amounts: &Amounts) {
    if amounts.is_empty() {
        return;
    }
    resources.within(field, |list| {
        for (name, amount) in amounts {
            list.fill(name, amount.to_string());
        }
    });
}
