//! What containers and pods need and may use at most.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    field::{FieldError, Path},
    validation::{
        amounts,
        fault::{Faults, Report},
        formats,
        quantities::{self, Amount, is_huge_pages, may_be_overcommitted},
        read::Read,
    },
};

/// Names without a domain that Kubernetes knows anywhere.
const STANDARD: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];

/// The name of a resource anywhere.
pub(in crate::validation) fn resource_name(faults: &mut Faults, name: &str, path: &Path) -> bool {
    let messages = formats::qualified_name(name);
    if !messages.is_empty() {
        faults.messages(path, name, messages);
        return false;
    }
    let standard =
        STANDARD.contains(&name) || is_huge_pages(name) || name.starts_with("requests.hugepages-");
    if !name.contains('/') && !standard {
        faults.invalid(
            path,
            name,
            "must be a standard resource type or fully qualified",
        );
        return false;
    }
    true
}

/// The name of a resource that a container can have.
pub(in crate::validation) fn container_resource_name(faults: &mut Faults, name: &str, path: &Path) {
    resource_name(faults, name, path);
    if name.contains('/') {
        if !quantities::is_native(name) && !quantities::is_extended(name) {
            faults.invalid(path, name, "doesn't follow extended resource name standard");
        }
    } else if !matches!(name, "cpu" | "memory" | "ephemeral-storage") && !is_huge_pages(name) {
        faults.invalid(path, name, "must be a standard resource for containers");
    }
}

fn pod_resource_name(faults: &mut Faults, name: &str, path: &Path) {
    if resource_name(faults, name, path)
        && !matches!(name, "cpu" | "memory")
        && !is_huge_pages(name)
    {
        faults.push(FieldError::not_supported(
            path,
            name,
            &["cpu", "hugepages-", "memory"],
        ));
    }
}

/// Requests and limits of a container; the pod is known where claims can be named.
pub(in crate::validation) fn requirements(
    faults: &mut Faults,
    requirements: &Value,
    spec: Option<&Value>,
    path: &Path,
) {
    lists(faults, requirements, container_resource_name, path);
    claim_names(faults, requirements, spec, &path.child("claims"));
}

fn lists(
    faults: &mut Faults,
    requirements: &Value,
    check_name: impl Fn(&mut Faults, &str, &Path),
    path: &Path,
) {
    let limits = &requirements["limits"];
    let mut has_huge_pages = false;
    let mut has_basic = false;
    for list in ["limits", "requests"] {
        let list_path = path.child(list);
        for (name, value) in requirements.entries(list) {
            let path_of_name = list_path.key(name);
            check_name(faults, name, &path_of_name);
            quantities::of_resource(faults, name, value, &path_of_name);
            if list == "requests" {
                below_limit(faults, name, value, limits, path);
            }
            if is_huge_pages(name) {
                has_huge_pages = true;
                whole_pages(faults, name, value, &path_of_name);
            }
            has_basic |= matches!(name.as_str(), "cpu" | "memory");
        }
    }
    if has_huge_pages && !has_basic {
        faults.forbidden(path, "HugePages require cpu or memory");
    }
}

fn below_limit(faults: &mut Faults, name: &str, value: &Value, limits: &Value, path: &Path) {
    let Some(request) = quantities::read(value) else {
        return;
    };
    let requests = path.child("requests");
    match quantities::amount_of(limits, name) {
        Some(limit) if limit != request && !may_be_overcommitted(name) => faults.invalid(
            &requests,
            request.to_string(),
            format!("must be equal to {name} limit of {limit}"),
        ),
        Some(limit) if request > limit => faults.invalid(
            &requests,
            request.to_string(),
            format!("must be less than or equal to {name} limit of {limit}"),
        ),
        None if !may_be_overcommitted(name) => faults.required(
            &path.child("limits"),
            "Limit must be set for non overcommitable resources",
        ),
        _ => {}
    }
}

fn whole_pages(faults: &mut Faults, name: &str, value: &Value, path: &Path) {
    let size = name
        .strip_prefix("hugepages-")
        .and_then(|size| Amount::parse(size).ok());
    if let (Some(amount), Some(size)) = (quantities::read(value), size)
        && (size.value() <= 0 || !amount.is_whole() || amount.value() % size.value() != 0)
    {
        faults.invalid(
            path,
            amount.to_string(),
            format!("{amount} is not positive integer multiple of {name}"),
        );
    }
}

fn claim_names(faults: &mut Faults, requirements: &Value, spec: Option<&Value>, path: &Path) {
    let known: BTreeSet<&str> = spec
        .map(|spec| spec.items("resourceClaims"))
        .unwrap_or_default()
        .iter()
        .map(|claim| claim.text("name"))
        .filter(|name| !name.is_empty())
        .collect();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for (index, claim) in requirements.items("claims").iter().enumerate() {
        let path = path.index(index);
        let name = claim.text("name");
        if name.is_empty() {
            faults.required(&path, "");
            continue;
        }
        let request = claim.text("request");
        if !request.is_empty() {
            faults.messages(&path.child("request"), request, formats::label(request));
        }
        let key = if request.is_empty() {
            name.to_owned()
        } else {
            format!("{name}/{request}")
        };
        let part = format!("{name}/");
        let overlaps = seen.contains(name)
            || seen.contains(&key)
            || (request.is_empty() && seen.iter().any(|each| each.starts_with(&part)));
        if overlaps {
            faults.push(FieldError::duplicate(&path, key.clone()));
        }
        seen.insert(key);
        if !known.contains(name) {
            let mut fault = FieldError::not_found(&path, name);
            let all: Vec<&str> = known.iter().copied().collect();
            fault.detail = if all.is_empty() {
                "must be one of the names in pod.spec.resourceClaims which is empty".to_owned()
            } else {
                format!(
                    "must be one of the names in pod.spec.resourceClaims: {}",
                    all.join(", ")
                )
            };
            faults.push(fault);
        }
    }
}

/// What running the pod costs beside its containers.
pub(super) fn overhead(faults: &mut Faults, spec: &Value, path: &Path) {
    if spec.has("overhead") {
        requirements(faults, &json!({"limits": spec["overhead"]}), None, path);
    }
}

/// The claims for devices that containers can name.
pub(super) fn claims(faults: &mut Faults, spec: &Value, path: &Path) {
    let mut names = BTreeSet::new();
    for (index, claim) in spec.items("resourceClaims").iter().enumerate() {
        let path = path.index(index);
        let name = claim.text("name");
        if name.is_empty() {
            faults.required(&path.child("name"), "");
        } else if names.insert(name) {
            faults.messages(&path.child("name"), name, formats::label(name));
        } else {
            faults.push(FieldError::duplicate(&path.child("name"), name));
        }
        let fields = ["resourceClaimName", "resourceClaimTemplateName"];
        match fields.iter().filter(|field| claim.has(field)).count() {
            0 => faults.invalid(
                &path,
                claim.clone(),
                "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            ),
            1 => {}
            _ => faults.invalid(
                &path,
                claim.clone(),
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            ),
        }
        for field in fields {
            if let Some(name) = claim.maybe_text(field) {
                faults.messages(&path.child(field), name, formats::subdomain(name));
            }
        }
    }
}

/// What all containers of a pod may use together.
pub(super) fn pod_level(faults: &mut Faults, spec: &Value, path: &Path) {
    if !spec.has("resources") {
        return;
    }
    let resources = &spec["resources"];
    if resources.has("claims") {
        faults.forbidden(
            &path.child("claims"),
            "claims cannot be set for Resources at pod-level",
        );
    }
    lists(faults, resources, pod_resource_name, path);
    for (name, sum) in amounts::container_requests(spec) {
        let own = quantities::amount_of(&resources["requests"], &name).unwrap_or(Amount::ZERO);
        let supported = matches!(name.as_str(), "cpu" | "memory") || is_huge_pages(&name);
        if supported && sum > own {
            faults.invalid(
                &path.child("requests").key(&name),
                own.to_string(),
                format!("must be greater than or equal to aggregate container requests of {sum}"),
            );
        }
    }
    for (index, container) in spec.items("containers").iter().enumerate() {
        for (name, value) in container["resources"].entries("limits") {
            let (Some(own), Some(limit)) = (
                quantities::read(value),
                quantities::amount_of(&resources["limits"], name),
            ) else {
                continue;
            };
            if own > limit {
                faults.invalid(
                    &path
                        .child("containers")
                        .index(index)
                        .key(name)
                        .child("limits"),
                    own.to_string(),
                    format!("must be less than or equal to pod limits of {limit}"),
                );
            }
        }
    }
}
