//! Resource quotas and limit ranges.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    fault::{Faults, Report},
    metadata::{self, NameRule, Scope},
    pod,
    quantities::{self, Amount, is_huge_pages},
    read::Read,
};
use crate::field::{FieldError, Path};

/// What a quota can count without a domain.
const COUNTED: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
    "services.loadbalancers",
    "storage",
];

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];

/// What belongs to pods that are not served best-effort.
const OF_PODS: [&str; 10] = [
    "pods",
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
    "ephemeral-storage",
    "requests.ephemeral-storage",
    "limits.ephemeral-storage",
];

pub(super) fn quota(faults: &mut Faults, quota: &Value) {
    metadata::create(faults, quota, Scope::Namespaced, NameRule::Subdomain);
    quota_spec(faults, &quota["spec"]);
    quota_amounts(faults, &quota["status"]);
}

fn resource_name(faults: &mut Faults, name: &str, path: &Path) {
    pod::resource_name(faults, name, path);
    let known =
        COUNTED.contains(&name) || is_huge_pages(name) || name.starts_with("requests.hugepages-");
    if !name.contains('/') && !known {
        faults.invalid(path, name, "must be a standard resource for quota");
    }
}

fn amounts(faults: &mut Faults, holder: &Value, field: &str, path: &Path) {
    let path = path.child(field);
    for (name, amount) in holder.entries(field) {
        resource_name(faults, name, &path.key(name));
        quantities::of_resource(faults, name, amount, &path.key(name));
    }
}

fn quota_amounts(faults: &mut Faults, status: &Value) {
    let path = Path::new("status");
    amounts(faults, status, "hard", &path);
    amounts(faults, status, "used", &path);
}

fn quota_spec(faults: &mut Faults, spec: &Value) {
    let path = Path::new("spec");
    amounts(faults, spec, "hard", &path);
    let scopes: Vec<&str> = spec.texts("scopes").collect();
    let scopes_path = path.child("scopes");
    for scope in &scopes {
        if !SCOPES.contains(scope) {
            faults.invalid(&scopes_path, spec["scopes"].clone(), "unsupported scope");
        }
        unfitting(faults, scope, spec, &scopes_path, &spec["scopes"]);
    }
    conflicts(faults, &scopes, spec, &scopes_path);
    if spec.has("scopeSelector") {
        scope_selector(
            faults,
            spec,
            &path.child("scopeSelector").child("matchExpressions"),
        );
    }
}

/// Resources that a scope says nothing about.
fn unfitting(faults: &mut Faults, scope: &str, spec: &Value, path: &Path, shown: &Value) {
    for name in spec.entries("hard").keys() {
        let standard = COUNTED.contains(&name.as_str());
        if standard && SCOPES.contains(&scope) && !fits(scope, name) {
            faults.invalid(path, shown.clone(), "unsupported scope applied to resource");
        }
    }
}

fn fits(scope: &str, resource: &str) -> bool {
    match scope {
        "Terminating"
        | "NotTerminating"
        | "NotBestEffort"
        | "PriorityClass"
        | "CrossNamespacePodAffinity" => OF_PODS.contains(&resource),
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => {
            matches!(
                resource,
                "persistentvolumeclaims" | "requests.storage" | "storage"
            )
        }
        _ => true,
    }
}

fn conflicts(faults: &mut Faults, scopes: &[&str], spec: &Value, path: &Path) {
    for pair in [
        ["BestEffort", "NotBestEffort"],
        ["Terminating", "NotTerminating"],
    ] {
        if pair.iter().all(|scope| scopes.contains(scope)) {
            faults.invalid(path, spec["scopes"].clone(), "conflicting scopes");
        }
    }
}

fn scope_selector(faults: &mut Faults, spec: &Value, path: &Path) {
    let expressions = spec["scopeSelector"].items("matchExpressions");
    for expression in expressions {
        let scope = expression.text("scopeName");
        let operator = expression.text("operator");
        if !SCOPES.contains(&scope) {
            faults.invalid(&path.child("scopeName"), scope, "unsupported scope");
        }
        unfitting(faults, scope, spec, path, &spec["scopeSelector"]);
        let only_exists =
            SCOPES.contains(&scope) && !matches!(scope, "PriorityClass" | "VolumeAttributesClass");
        if only_exists && operator != "Exists" {
            faults.invalid(
                &path.child("operator"),
                operator,
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity",
            );
        }
        let empty = expression.items("values").is_empty();
        match operator {
            "In" | "NotIn" if empty => faults.required(
                &path.child("values"),
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
            ),
            "Exists" | "DoesNotExist" if !empty => faults.invalid(
                &path.child("values"),
                expression["values"].clone(),
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
            ),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => faults.invalid(
                &path.child("operator"),
                other,
                "not a valid selector operator",
            ),
        }
    }
    let scopes: Vec<&str> = expressions
        .iter()
        .map(|expression| expression.text("scopeName"))
        .collect();
    conflicts(faults, &scopes, spec, path);
}

pub(super) fn quota_update(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    quota_spec(faults, &new["spec"]);
    let scopes = |quota: &Value| -> BTreeSet<String> {
        quota["spec"].texts("scopes").map(str::to_owned).collect()
    };
    if scopes(new) != scopes(old) {
        faults.invalid(
            &Path::new("spec").child("scopes"),
            new["spec"]["scopes"].clone(),
            super::fault::IMMUTABLE,
        );
    }
}

pub(super) fn quota_status(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    quota_amounts(faults, &new["status"]);
}

pub(super) fn limit_range(faults: &mut Faults, range: &Value) {
    metadata::create(faults, range, Scope::Namespaced, NameRule::Subdomain);
    let path = Path::new("spec").child("limits");
    let mut kinds = BTreeSet::new();
    for (index, limit) in range["spec"].items("limits").iter().enumerate() {
        let path = path.index(index);
        let kind = limit.text("type");
        limit_type(faults, kind, &path.child("type"));
        if !kinds.insert(kind) {
            faults.push(FieldError::duplicate(&path.child("type"), kind));
        }
        limit_names(faults, limit, kind, &path);
        if kind == "PersistentVolumeClaim"
            && !limit["min"].has("storage")
            && !limit["max"].has("storage")
        {
            faults.required(
                &path.child("limits"),
                "either minimum or maximum storage value is required, but neither was provided",
            );
        }
        limit_amounts(faults, limit, &path);
    }
}

fn limit_type(faults: &mut Faults, kind: &str, path: &Path) {
    let messages = super::formats::qualified_name(kind);
    if !messages.is_empty() {
        faults.messages(path, kind, messages);
    } else if !kind.contains('/') && !matches!(kind, "Pod" | "Container" | "PersistentVolumeClaim")
    {
        faults.invalid(
            path,
            kind,
            "must be a standard limit type or fully qualified",
        );
    }
}

fn limit_names(faults: &mut Faults, limit: &Value, kind: &str, path: &Path) {
    for field in [
        "max",
        "min",
        "default",
        "defaultRequest",
        "maxLimitRequestRatio",
    ] {
        let list_path = path.child(field);
        let entries = limit.entries(field);
        if kind == "Pod" && matches!(field, "default" | "defaultRequest") {
            if !entries.is_empty() {
                faults.forbidden(&list_path, "may not be specified when `type` is 'Pod'");
            }
            continue;
        }
        for name in entries.keys() {
            if matches!(kind, "Pod" | "Container") {
                pod::container_resource_name(faults, name, &list_path.key(name));
            } else {
                pod::resource_name(faults, name, &list_path.key(name));
            }
        }
    }
}

fn limit_amounts(faults: &mut Faults, limit: &Value, path: &Path) {
    let names: BTreeSet<&String> = [
        "max",
        "min",
        "default",
        "defaultRequest",
        "maxLimitRequestRatio",
    ]
    .iter()
    .flat_map(|field| limit.entries(field).keys())
    .collect();
    for name in names {
        let amount = |field: &str| quantities::amount_of(&limit[field], name);
        let (least, most) = (amount("min"), amount("max"));
        let (default, request) = (amount("default"), amount("defaultRequest"));
        // Each row: a smaller and a larger amount, where the fault is, and how both are called.
        let rows = [
            (least, most, "min", "min value", "max value", least),
            (
                least,
                request,
                "defaultRequest",
                "min value",
                "default request value",
                request,
            ),
            (
                request,
                most,
                "defaultRequest",
                "default request value",
                "max value",
                request,
            ),
            (
                request,
                default,
                "defaultRequest",
                "default request value",
                "default limit value",
                request,
            ),
            (
                least,
                default,
                "default",
                "min value",
                "default value",
                least,
            ),
            (default, most, "default", "default value", "max value", most),
        ];
        for (small, large, field, small_name, large_name, shown) in rows {
            if let (Some(small), Some(large)) = (small, large)
                && small > large
            {
                faults.invalid(
                    &path.child(field).key(name),
                    shown.map(|amount| amount.to_string()).unwrap_or_default(),
                    format!("{small_name} {small} is greater than {large_name} {large}"),
                );
            }
        }
        ratio(
            faults,
            amount("maxLimitRequestRatio"),
            least,
            most,
            &path.child("maxLimitRequestRatio").key(name),
        );
        if let (Some(default), Some(request)) = (default, request)
            && default != request
            && !quantities::may_be_overcommitted(name)
        {
            faults.invalid(
                &path.child("defaultRequest").key(name),
                request.to_string(),
                format!(
                    "default value {default} must equal to defaultRequest value {request} in {name}"
                ),
            );
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "upstream compares and shows ratios as floating point numbers"
)]
fn ratio(
    faults: &mut Faults,
    ratio: Option<Amount>,
    least: Option<Amount>,
    most: Option<Amount>,
    path: &Path,
) {
    let Some(ratio) = ratio else {
        return;
    };
    if ratio < Amount::from_integer(1) {
        faults.invalid(
            path,
            ratio.to_string(),
            format!("ratio {ratio} is less than 1"),
        );
    }
    if let (Some(least), Some(most)) = (least, most) {
        let possible = most.milli_value() as f64 / least.milli_value() as f64;
        if ratio.milli_value() as f64 / 1000.0 > possible {
            faults.invalid(
                path,
                ratio.to_string(),
                format!("ratio {ratio} is greater than max/min = {possible:.6}"),
            );
        }
    }
}
