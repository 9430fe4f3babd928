//! Amounts of resources: which there are, and which amounts of them can be.

use serde_json::Value;

use super::{
    fault::{Faults, NEGATIVE, NOT_POSITIVE, Report},
    read::Read,
};
use crate::field::Path;
pub(crate) use crate::schema::quantity::Quantity as Amount;

/// Reads an amount, which JSON may have as a number.
pub(crate) fn read(value: &Value) -> Option<Amount> {
    match value {
        Value::String(text) => Amount::parse(text).ok(),
        Value::Number(number) => Amount::parse(&number.to_string()).ok(),
        _ => None,
    }
}

pub(crate) fn is_negative(value: &Value) -> bool {
    read(value).is_some_and(Amount::is_negative)
}

/// An amount that must be more than nothing.
pub(crate) fn positive(faults: &mut Faults, value: &Value, path: &Path) -> bool {
    match read(value) {
        Some(amount) if amount > Amount::ZERO => true,
        Some(amount) => {
            faults.invalid(path, amount.to_string(), NOT_POSITIVE);
            false
        }
        None => true,
    }
}

/// An amount of a resource; some can only be counted in whole numbers.
pub(crate) fn of_resource(faults: &mut Faults, resource: &str, value: &Value, path: &Path) {
    let Some(amount) = read(value) else {
        return;
    };
    if amount.is_negative() {
        faults.invalid(path, amount.to_string(), NEGATIVE);
    }
    if is_counted(resource) && !amount.is_whole() {
        faults.invalid(path, amount.to_string(), "must be an integer");
    }
}

/// Whether a resource is a number of things.
fn is_counted(resource: &str) -> bool {
    matches!(
        resource,
        "pods"
            | "services"
            | "replicationcontrollers"
            | "resourcequotas"
            | "secrets"
            | "configmaps"
            | "persistentvolumeclaims"
            | "services.nodeports"
            | "services.loadbalancers"
    ) || is_extended(resource)
}

/// Whether a resource is neither of Kubernetes nor of a quota: devices, mostly.
pub(crate) fn is_extended(resource: &str) -> bool {
    !is_native(resource)
        && !resource.starts_with("requests.")
        && super::formats::qualified_name(&format!("requests.{resource}")).is_empty()
}

/// Whether a resource has no domain, or that of Kubernetes.
pub(crate) fn is_native(resource: &str) -> bool {
    !resource.contains('/') || resource.contains("kubernetes.io/")
}

pub(crate) fn is_huge_pages(resource: &str) -> bool {
    resource.starts_with("hugepages-")
}

/// Whether more of a resource can be promised than there is.
pub(crate) fn may_be_overcommitted(resource: &str) -> bool {
    is_native(resource) && !is_huge_pages(resource)
}

/// The amount of one resource in a list.
pub(crate) fn amount_of(list: &Value, resource: &str) -> Option<Amount> {
    list.has(resource).then(|| read(&list[resource]))?
}
