//! Counts what a quota limits, from what the objects of its namespace use.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{ResourceQuota, ResourceQuotaStatus},
    apimachinery::pkg::api::resource::Quantity,
};

use super::usage::{Amounts, Usage};
use crate::quantity::Amount;

/// Whose objects a resource of a quota is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Counted {
    /// Pods, services and claims, of which more matters than how many there are.
    Detailed,
    /// Only their number: plural and group.
    Number { plural: String, group: String },
}

pub(super) fn counted(resource: &str) -> Counted {
    let number = |plural: &str, group: &str| Counted::Number {
        plural: plural.to_owned(),
        group: group.to_owned(),
    };
    if let Some(name) = resource.strip_prefix("count/") {
        return match name.split_once('.') {
            Some((plural, group)) => number(plural, group),
            None if matches!(name, "pods" | "services" | "persistentvolumeclaims") => {
                Counted::Detailed
            }
            None => number(name, ""),
        };
    }
    match resource {
        "configmaps" | "secrets" | "replicationcontrollers" | "resourcequotas" => {
            number(resource, "")
        }
        _ => Counted::Detailed,
    }
}

/// The status of a quota, counted anew. A kind whose number nobody knows keeps what was counted before.
pub(super) fn plan_status(
    quota: &ResourceQuota,
    objects: &[std::sync::Arc<Usage>],
    number: impl Fn(&str, &str) -> Option<usize>,
) -> ResourceQuotaStatus {
    let spec = quota.spec.clone().unwrap_or_default();
    let before = quota.status.clone().unwrap_or_default();
    let before = before.used.unwrap_or_default();
    let hard = spec.hard.clone().unwrap_or_default();
    let mut sums: Amounts = Amounts::new();
    for usage in objects.iter().filter(|usage| usage.is_in(&spec)) {
        for (name, amount) in &usage.amounts {
            if hard.contains_key(name) {
                let sum = sums.entry(name.clone()).or_default();
                *sum = sum.plus(*amount);
            }
        }
    }
    let is_scoped = spec.scopes.is_some() || spec.scope_selector.is_some();
    let mut used: BTreeMap<String, Quantity> = BTreeMap::new();
    for (name, limit) in &hard {
        let old = before.get(name);
        let amount = match counted(name) {
            Counted::Detailed => Some(sums.get(name).copied().unwrap_or_default()),
            Counted::Number { .. } if is_scoped => Some(Amount::ZERO),
            Counted::Number { plural, group } => number(&plural, &group)
                .and_then(|number| i64::try_from(number).ok())
                .map(Amount::whole),
        };
        let quantity = match (amount, old) {
            // As it was written, if it is as much.
            (Some(amount), Some(old)) if Amount::of(old) == Some(amount) => old.clone(),
            (Some(amount), _) => amount.quantity(is_size(name, limit)),
            (None, Some(old)) => old.clone(),
            (None, None) => continue,
        };
        used.insert(name.clone(), quantity);
    }
    ResourceQuotaStatus {
        hard: Some(hard),
        used: Some(used),
    }
}

fn is_size(name: &str, limit: &Quantity) -> bool {
    ["memory", "storage"]
        .iter()
        .any(|part| name.ends_with(part))
        || limit.0.ends_with('i')
}

/// Whether less is used than was counted: this may only be said when all that was charged is known.
pub(super) fn is_less(before: Option<&ResourceQuotaStatus>, after: &ResourceQuotaStatus) -> bool {
    let used = |status: &ResourceQuotaStatus, name: &str| {
        let used = status.used.as_ref();
        used.and_then(|used| used.get(name)).and_then(Amount::of)
    };
    let names = after.used.iter().flat_map(|used| used.keys());
    before.is_some_and(|before| {
        let mut names = names;
        names.any(|name| used(after, name) < used(before, name))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;

    fn pod(change: &Value) -> Arc<Usage> {
        let mut value = json!({
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "c", "resources": {
                "requests": {"cpu": "250m", "memory": "64Mi"}, "limits": {"cpu": "1"},
            }}]},
            "status": {"phase": "Running"},
        });
        for (name, field) in change.as_object().into_iter().flatten() {
            for (inner, each) in field.as_object().into_iter().flatten() {
                value[name][inner] = each.clone();
            }
        }
        Arc::new(Usage::of_pod(&serde_json::from_value(value).unwrap()))
    }

    fn used(spec: &Value, objects: &[Arc<Usage>]) -> Value {
        let quota = json!({"metadata": {"name": "q"}, "spec": spec, "status": {"used": {"count/widgets.example.org": "7"}}});
        let quota = serde_json::from_value(quota).unwrap();
        let number = |plural: &str, group: &str| match (plural, group) {
            ("configmaps", "") => Some(4),
            ("deployments", "apps") => Some(2),
            _ => None,
        };
        json!(plan_status(&quota, objects, number).used)
    }

    #[test]
    fn pods_are_summed_and_those_that_ended_only_count_as_objects() {
        let ended = pod(&json!({"status": {"phase": "Succeeded"}}));
        let init = pod(&json!({"spec": {
            "initContainers": [
                {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
                {"name": "i", "resources": {"requests": {"cpu": "2"}}},
            ],
            "overhead": {"cpu": "10m", "memory": "1Mi"},
        }}));
        let hard = json!({
            "hard": {"pods": "9", "count/pods": "9", "requests.cpu": "9", "cpu": "9", "memory": "1Gi", "limits.cpu": "9"},
        });
        assert_eq!(
            used(&hard, &[pod(&json!({})), ended, init]),
            json!({
                "pods": "2", "count/pods": "3", "requests.cpu": "2360m", "cpu": "2360m", "memory": "129Mi",
                "limits.cpu": "2010m",
            })
        );
    }

    #[test]
    fn scopes_choose_what_is_counted() {
        let best =
            pod(&json!({"spec": {"containers": [{"name": "c"}], "activeDeadlineSeconds": 5}}));
        let high = pod(&json!({"spec": {"priorityClassName": "high"}}));
        let pods = [best, high, pod(&json!({}))];
        let count = |scope: Value| {
            let mut spec = json!({"hard": {"pods": "9"}});
            for (name, value) in scope.as_object().into_iter().flatten() {
                spec[name] = value.clone();
            }
            used(&spec, &pods)["pods"].clone()
        };
        let chosen = |operator: &str, values: Value| {
            let expression =
                json!({"scopeName": "PriorityClass", "operator": operator, "values": values});
            count(json!({"scopeSelector": {"matchExpressions": [expression]}}))
        };
        assert_eq!(count(json!({})), "3");
        assert_eq!(count(json!({"scopes": ["BestEffort"]})), "1");
        assert_eq!(
            count(json!({"scopes": ["NotBestEffort", "NotTerminating"]})),
            "2"
        );
        assert_eq!(
            count(json!({"scopes": ["Terminating", "NotBestEffort"]})),
            "0"
        );
        assert_eq!(chosen("In", json!(["high", "low"])), "1");
        assert_eq!(chosen("NotIn", json!(["high"])), "2");
        assert_eq!(chosen("DoesNotExist", json!([])), "2");
    }

    #[test]
    fn services_claims_and_numbers_of_objects_are_counted() {
        let service = Usage::of_service(
            serde_json::from_value(json!({
                "spec": {"type": "LoadBalancer", "ports": [{"port": 1}, {"port": 2}]},
            }))
            .unwrap(),
        );
        let claim = Usage::of_claim(
            serde_json::from_value(json!({
                "spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "5Gi"}}},
                "status": {"allocatedResources": {"storage": "6Gi"}},
            }))
            .unwrap(),
        );
        let hard = json!({"hard": {
            "services": "9", "services.nodeports": "9", "services.loadbalancers": "9",
            "requests.storage": "9Gi", "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "9",
            "configmaps": "9", "count/deployments.apps": "9", "count/widgets.example.org": "9",
        }});
        assert_eq!(
            used(&hard, &[Arc::new(service), Arc::new(claim)]),
            json!({
                "services": "1", "services.nodeports": "2", "services.loadbalancers": "1",
                "requests.storage": "6Gi", "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
                "configmaps": "4", "count/deployments.apps": "2", "count/widgets.example.org": "7",
            })
        );
    }

    #[test]
    fn less_is_less_of_anything() {
        let status = |cpu: &str, pods: &str| -> ResourceQuotaStatus {
            serde_json::from_value(json!({"used": {"cpu": cpu, "pods": pods}})).unwrap()
        };
        assert!(!is_less(None, &status("1", "1")));
        assert!(!is_less(Some(&status("1", "1")), &status("1000m", "2")));
        assert!(is_less(Some(&status("2", "1")), &status("1", "2")));
    }
}
