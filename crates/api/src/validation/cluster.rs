//! The small kinds outside the core group: budgets, priorities, storage, leases, runtimes, certificates.

use std::collections::BTreeSet;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use x509_parser::prelude::{FromDer, X509CertificationRequest};

use super::{
    apps,
    fault::{Faults, Report, same},
    formats,
    metadata::{self, NameRule, Scope},
    pod, quantities,
    read::Read,
    selector, sources,
};
use crate::field::{FieldError, Path};

const PARAMETERS: usize = 512;
const PARAMETERS_LENGTH: usize = 256 * 1024;
/// The largest priority that users can give.
pub(crate) const HIGHEST_PRIORITY: i64 = 1_000_000_000;
const SYSTEM_PREFIX: &str = "system-";

pub(super) fn budget(faults: &mut Faults, budget: &Value) {
    metadata::create(faults, budget, Scope::Namespaced, NameRule::Subdomain);
    let path = Path::new("spec");
    let spec = &budget["spec"];
    let bounds = ["minAvailable", "maxUnavailable"];
    if bounds.iter().all(|field| spec.has(field)) {
        faults.invalid(
            &path,
            spec.clone(),
            "minAvailable and maxUnavailable cannot be both set",
        );
    }
    for field in bounds {
        if spec.has(field) {
            apps::number_or_percentage(faults, &spec[field], &path.child(field));
            apps::not_more_than_all(faults, &spec[field], &path.child(field));
        }
    }
    selector::validate(faults, &spec["selector"], &path.child("selector"));
    faults.choice(
        &path.child("unhealthyPodEvictionPolicy"),
        &spec["unhealthyPodEvictionPolicy"],
        &["AlwaysAllow", "IfHealthyBudget"],
    );
}

pub(super) fn budget_status(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    faults.not_negative(
        &new["status"],
        &Path::new("status"),
        &[
            "disruptionsAllowed",
            "currentHealthy",
            "desiredHealthy",
            "expectedPods",
        ],
    );
}

/// Priorities that the system itself has: name and value.
pub(crate) const SYSTEM_PRIORITIES: [(&str, i64); 2] = [
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
];

pub(super) fn priority_class(faults: &mut Faults, class: &Value) {
    metadata::create(faults, class, Scope::Cluster, NameRule::Subdomain);
    let name = class["metadata"].text("name");
    if name.starts_with(SYSTEM_PREFIX) {
        if let Err(reason) = known_system_priority(class, name) {
            faults.forbidden(
                &Path::new("metadata").child("name"),
                format!(
                    "priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: {reason}"
                ),
            );
        }
    } else if class.number("value") > HIGHEST_PRIORITY {
        faults.forbidden(
            &Path::new("value"),
            format!("maximum allowed value of a user defined priority is {HIGHEST_PRIORITY}"),
        );
    }
    if let Some(policy) = class.maybe_text("preemptionPolicy") {
        faults.required_choice(
            &Path::new("preemptionPolicy"),
            policy,
            &["Never", "PreemptLowerPriority"],
        );
    }
}

fn known_system_priority(class: &Value, name: &str) -> Result<(), String> {
    let Some((_, value)) = SYSTEM_PRIORITIES.iter().find(|known| known.0 == name) else {
        return Err(format!("{name} is not a known system priority class"));
    };
    if class.number("value") != *value {
        return Err(format!("value of {name} PriorityClass must be {value}"));
    }
    if class.flag("globalDefault") {
        return Err(format!(
            "globalDefault of {name} PriorityClass must be false"
        ));
    }
    Ok(())
}

pub(super) fn priority_class_update(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    if new.number("value") != old.number("value") {
        faults.forbidden(&Path::new("value"), "may not be changed in an update.");
    }
    faults.immutable(
        &Path::new("preemptionPolicy"),
        &new["preemptionPolicy"],
        &old["preemptionPolicy"],
    );
}

fn provisioner(faults: &mut Faults, class: &Value, field: &str) {
    let (name, path) = (class.text(field), Path::new(field));
    if name.is_empty() {
        faults.required(&path, "");
    } else {
        faults.messages(&path, name, formats::qualified_name(&name.to_lowercase()));
    }
}

/// A class of what volumes can do; there is none of nothing.
pub(super) fn attributes_class(faults: &mut Faults, class: &Value) {
    metadata::create(faults, class, Scope::Cluster, NameRule::Subdomain);
    provisioner(faults, class, "driverName");
    if class.entries("parameters").is_empty() {
        faults.required(
            &Path::new("parameters"),
            "must contain at least one key/value pair",
        );
    }
    parameters(faults, class);
}

pub(super) fn attributes_class_update(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    for field in ["driverName", "parameters"] {
        if new[field] != old[field] {
            faults.forbidden(
                &Path::new(field),
                format!("updates to {field} are forbidden."),
            );
        }
    }
}

pub(super) fn storage_class(faults: &mut Faults, class: &Value) {
    metadata::create(faults, class, Scope::Cluster, NameRule::Subdomain);
    provisioner(faults, class, "provisioner");
    parameters(faults, class);
    if class.has("reclaimPolicy") {
        faults.choice(
            &Path::new("reclaimPolicy"),
            &class["reclaimPolicy"],
            &["Delete", "Retain"],
        );
    }
    match class.maybe_text("volumeBindingMode") {
        None => faults.required(&Path::new("volumeBindingMode"), ""),
        Some(_) => faults.choice(
            &Path::new("volumeBindingMode"),
            &class["volumeBindingMode"],
            &["Immediate", "WaitForFirstConsumer"],
        ),
    }
    topologies(faults, class);
}

fn parameters(faults: &mut Faults, class: &Value) {
    let path = Path::new("parameters");
    let entries = class.entries("parameters");
    if entries.len() > PARAMETERS {
        faults.push(FieldError::too_long(&path, PARAMETERS));
        return;
    }
    if entries.contains_key("") {
        faults.invalid(&path, "", "field can not be empty.");
    }
    let length: usize = entries
        .iter()
        .map(|(key, value)| key.len() + value.as_str().unwrap_or_default().len())
        .sum();
    if length > PARAMETERS_LENGTH {
        faults.push(FieldError::too_long(&path, PARAMETERS_LENGTH));
    }
}

fn topologies(faults: &mut Faults, class: &Value) {
    let path = Path::new("allowedTopologies");
    for (index, term) in class.items("allowedTopologies").iter().enumerate() {
        let path = path.index(index).child("matchLabelExpressions");
        let mut keys = BTreeSet::new();
        for (index, each) in term.items("matchLabelExpressions").iter().enumerate() {
            let path = path.index(index);
            let values = each.items("values");
            if values.is_empty() {
                faults.required(&path.child("values"), "");
            }
            for (index, value) in values.iter().enumerate() {
                if values[..index].contains(value) {
                    faults.push(FieldError::duplicate(
                        &path.child("values").index(index),
                        value.clone(),
                    ));
                }
            }
            metadata::label_name(faults, each.text("key"), &path.child("key"));
            if !keys.insert(each.text("key")) {
                faults.push(FieldError::duplicate(&path.child("key"), each.text("key")));
            }
        }
    }
}

pub(super) fn storage_class_update(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    for field in ["parameters", "provisioner", "reclaimPolicy"] {
        if !same(&new[field], &old[field]) {
            faults.forbidden(
                &Path::new(field),
                format!("updates to {field} are forbidden."),
            );
        }
    }
    faults.immutable(
        &Path::new("volumeBindingMode"),
        &new["volumeBindingMode"],
        &old["volumeBindingMode"],
    );
}

pub(super) fn attachment(faults: &mut Faults, attachment: &Value) {
    metadata::create(faults, attachment, Scope::Cluster, NameRule::Subdomain);
    let path = Path::new("spec");
    let spec = &attachment["spec"];
    sources::driver_name(faults, spec.text("attacher"), &path.child("attacher"));
    let source = &spec["source"];
    let source_path = path.child("source");
    let (inline, name) = (
        source.has("inlineVolumeSpec"),
        source.maybe_text("persistentVolumeName"),
    );
    match (inline, name) {
        (false, None) => faults.required(
            &source_path,
            "must specify exactly one of inlineVolumeSpec and persistentVolumeName",
        ),
        (true, Some(_)) => faults.invalid(
            &source_path,
            source.clone(),
            "must specify exactly one of inlineVolumeSpec and persistentVolumeName",
        ),
        (false, Some("")) => faults.required(
            &source_path.child("persistentVolumeName"),
            "must specify non empty persistentVolumeName",
        ),
        _ => {}
    }
    let node = spec.text("nodeName");
    faults.messages(&path.child("nodeName"), node, formats::subdomain(node));
}

pub(super) fn attachment_update(faults: &mut Faults, new: &Value, old: &Value) {
    attachment(faults, new);
    metadata::update(faults, new, old);
    if !same(&new["spec"], &old["spec"]) {
        faults.invalid(
            &Path::new("spec"),
            new["spec"].clone(),
            super::fault::IMMUTABLE,
        );
    }
}

pub(super) fn driver(faults: &mut Faults, driver: &Value) {
    metadata::create(faults, driver, Scope::Cluster, NameRule::Subdomain);
    let path = Path::new("spec");
    let spec = &driver["spec"];
    for field in ["attachRequired", "podInfoOnMount"] {
        if !spec.has(field) {
            faults.required(&path.child(field), "");
        }
    }
    faults.choice(
        &path.child("fsGroupPolicy"),
        &spec["fsGroupPolicy"],
        &["File", "None", "ReadWriteOnceWithFSType"],
    );
    for mode in spec.items("volumeLifecycleModes") {
        faults.choice(
            &path.child("volumeLifecycleModes"),
            mode,
            &["Ephemeral", "Persistent"],
        );
    }
    let mut audiences = BTreeSet::new();
    for (index, request) in spec.items("tokenRequests").iter().enumerate() {
        let path = path.child("tokenRequests").index(index);
        if !audiences.insert(request.text("audience")) {
            faults.push(FieldError::duplicate(
                &path.child("audience"),
                request.text("audience"),
            ));
        }
        if let Some(seconds) = request.maybe_number("expirationSeconds") {
            if seconds < 600 {
                faults.invalid(
                    &path.child("expirationSeconds"),
                    seconds,
                    "may not specify a duration less than 10 minutes",
                );
            } else if seconds > 1 << 32 {
                faults.invalid(
                    &path.child("expirationSeconds"),
                    seconds,
                    "may not specify a duration larger than 2^32 seconds",
                );
            }
        }
    }
}

pub(super) fn driver_update(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    driver(faults, new);
    let path = Path::new("spec");
    for field in ["attachRequired", "volumeLifecycleModes"] {
        faults.immutable(&path.child(field), &new["spec"][field], &old["spec"][field]);
    }
}

pub(super) fn storage_node(faults: &mut Faults, node: &Value) {
    metadata::create(faults, node, Scope::Cluster, NameRule::Subdomain);
    let path = Path::new("spec").child("drivers");
    let mut names = BTreeSet::new();
    for (index, driver) in node["spec"].items("drivers").iter().enumerate() {
        let path = path.index(index);
        let name = driver.text("name");
        sources::driver_name(faults, name, &path.child("name"));
        let id = driver.text("nodeID");
        if id.is_empty() {
            faults.required(&path.child("nodeID"), "");
        } else if id.len() > 256 {
            faults.invalid(&path.child("nodeID"), id, "must be 256 characters or less");
        }
        if !names.insert(name) {
            faults.push(FieldError::duplicate(&path.child("name"), name));
        }
        if driver["allocatable"].number("count") < 0 {
            faults.invalid(
                &path.child("allocatable").child("count"),
                driver["allocatable"].number("count"),
                super::fault::NEGATIVE,
            );
        }
    }
}

pub(super) fn storage_capacity(faults: &mut Faults, capacity: &Value) {
    metadata::create(faults, capacity, Scope::Namespaced, NameRule::Subdomain);
    let class = capacity.text("storageClassName");
    faults.messages(
        &Path::new("storageClassName"),
        class,
        formats::subdomain(class),
    );
    for field in ["capacity", "maximumVolumeSize"] {
        if quantities::is_negative(&capacity[field]) {
            faults.invalid(
                &Path::new(field),
                capacity[field].clone(),
                super::fault::NEGATIVE,
            );
        }
    }
    selector::validate(
        faults,
        &capacity["nodeTopology"],
        &Path::new("nodeTopology"),
    );
}

pub(super) fn lease(faults: &mut Faults, lease: &Value) {
    metadata::create(faults, lease, Scope::Namespaced, NameRule::Subdomain);
    lease_spec(faults, &lease["spec"]);
}

fn lease_spec(faults: &mut Faults, spec: &Value) {
    let path = Path::new("spec");
    if let Some(seconds) = spec.maybe_number("leaseDurationSeconds")
        && seconds <= 0
    {
        faults.invalid(
            &path.child("leaseDurationSeconds"),
            seconds,
            "must be greater than 0",
        );
    }
    faults.not_negative(spec, &path, &["leaseTransitions"]);
    let strategy = spec.text("strategy");
    if !spec.text("preferredHolder").is_empty() && strategy.is_empty() {
        faults.forbidden(
            &path.child("preferredHolder"),
            "may only be specified if `strategy` is defined",
        );
    }
}

pub(super) fn lease_update(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    lease_spec(faults, &new["spec"]);
}

pub(super) fn runtime_class(faults: &mut Faults, class: &Value) {
    metadata::create(faults, class, Scope::Cluster, NameRule::Subdomain);
    let handler = class.text("handler");
    faults.messages(&Path::new("handler"), handler, formats::label(handler));
    if class.has("overhead") {
        pod::resource_requirements(
            faults,
            &json!({"limits": class["overhead"]["podFixed"]}),
            None,
            &Path::new("overhead"),
        );
    }
    let path = Path::new("scheduling");
    let scheduling = &class["scheduling"];
    metadata::labels(
        faults,
        scheduling.entries("nodeSelector"),
        &path.child("nodeSelector"),
    );
    pod::tolerations(
        faults,
        scheduling.items("tolerations"),
        &path.child("tolerations"),
    );
}

pub(super) fn runtime_class_update(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    faults.immutable(&Path::new("handler"), &new["handler"], &old["handler"]);
}

pub(super) fn signing_request(faults: &mut Faults, request: &Value) {
    metadata::create(faults, request, Scope::Cluster, NameRule::PathSegment);
    let path = Path::new("spec");
    let spec = &request["spec"];
    if let Err(reason) = parse_request(spec.text("request")) {
        faults.invalid(&path.child("request"), spec["request"].clone(), reason);
    }
    let mut usages = BTreeSet::new();
    if spec.items("usages").is_empty() {
        faults.required(&path.child("usages"), "");
    }
    for (index, usage) in spec.texts("usages").enumerate() {
        let path = path.child("usages").index(index);
        if !USAGES.contains(&usage) {
            faults.push(FieldError::not_supported(&path, usage, &USAGES));
        }
        if !usages.insert(usage) {
            faults.push(FieldError::duplicate(&path, usage));
        }
    }
    faults.extend(formats::domain_prefixed_path(
        spec.text("signerName"),
        &path.child("signerName"),
    ));
    if let Some(seconds) = spec.maybe_number("expirationSeconds")
        && seconds < 600
    {
        faults.invalid(
            &path.child("expirationSeconds"),
            seconds,
            "may not specify a duration less than 600 seconds (10 minutes)",
        );
    }
    conditions(faults, request);
}

const USAGES: [&str; 22] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
];

fn parse_request(text: &str) -> Result<(), &'static str> {
    let bytes = BASE64_STANDARD
        .decode(text)
        .map_err(|_| "PEM block type must be CERTIFICATE REQUEST")?;
    let (_, block) = x509_parser::pem::parse_x509_pem(&bytes)
        .map_err(|_| "PEM block type must be CERTIFICATE REQUEST")?;
    if block.label != "CERTIFICATE REQUEST" {
        return Err("PEM block type must be CERTIFICATE REQUEST");
    }
    X509CertificationRequest::from_der(&block.contents)
        .map(|_| ())
        .map_err(|_| "x509: malformed certificate request")
}

fn conditions(faults: &mut Faults, request: &Value) {
    let path = Path::new("status").child("conditions");
    let list = request["status"].items("conditions");
    let has = |kind: &str| list.iter().any(|each| each.text("type") == kind);
    let mut seen = BTreeSet::new();
    for (index, condition) in list.iter().enumerate() {
        let path = path.index(index);
        let kind = condition.text("type");
        if kind.is_empty() {
            faults.required(&path.child("type"), "");
        }
        faults.required_choice(
            &path.child("status"),
            condition.text("status"),
            &["False", "True", "Unknown"],
        );
        if matches!(kind, "Approved" | "Denied" | "Failed") && condition.text("status") != "True" {
            faults.push(FieldError::not_supported(
                &path.child("status"),
                condition.text("status"),
                &["True"],
            ));
        }
        if kind == "Denied" && has("Approved") {
            faults.invalid(
                &path.child("type"),
                kind,
                "Approved and Denied conditions are mutually exclusive",
            );
        }
        if !seen.insert(kind) {
            faults.push(FieldError::duplicate(&path.child("type"), kind));
        }
    }
}

/// What a signer writes: a certificate, or that there will be none, but no decision.
pub(super) fn signing_request_status(faults: &mut Faults, new: &Value, old: &Value) {
    signing_request_update(faults, new, old);
    let path = Path::new("status").child("conditions");
    for kind in ["Approved", "Denied"] {
        let of = |request: &Value| -> Vec<Value> {
            let all = request["status"].items("conditions").iter();
            all.filter(|each| each.text("type") == kind)
                .cloned()
                .collect()
        };
        let (new, old) = (of(new), of(old));
        if new.len() > old.len() {
            faults.forbidden(
                &path,
                format!("updates may not add a condition of type {kind:?}"),
            );
        } else if new.len() == old.len() && new != old {
            faults.forbidden(
                &path,
                format!("updates may not modify a condition of type {kind:?}"),
            );
        }
    }
}

/// Requests do not change; their status and conditions have doors of their own.
pub(super) fn signing_request_update(faults: &mut Faults, new: &Value, old: &Value) {
    signing_request(faults, new);
    metadata::update(faults, new, old);
    let before = old["status"].text("certificate");
    if !before.is_empty() && before != new["status"].text("certificate") {
        faults.forbidden(
            &Path::new("status").child("certificate"),
            "updates may not clear or change certificate content",
        );
    }
    for kind in ["Approved", "Denied", "Failed"] {
        let count = |request: &Value| {
            request["status"]
                .items("conditions")
                .iter()
                .filter(|each| each.text("type") == kind)
                .count()
        };
        if count(new) < count(old) {
            faults.forbidden(
                &Path::new("status").child("conditions"),
                format!("updates may not remove a condition of type {kind:?}"),
            );
        }
    }
}
