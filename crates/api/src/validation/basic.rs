//! The small kinds of the core group: namespaces, nodes, config maps, secrets, events.

use std::{collections::BTreeSet, net::IpAddr};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;

use super::{
    fault::{Faults, Report, same},
    formats,
    metadata::{self, NameRule, Scope},
    pod, quantities,
    read::Read,
};
use crate::field::{FieldError, Path};

/// How many bytes a config map or secret may hold.
const DATA_LENGTH: usize = 1024 * 1024;
const FROZEN: &str = "field is immutable when `immutable` is set";

pub(super) fn namespace(faults: &mut Faults, namespace: &Value) {
    metadata::create(faults, namespace, Scope::Cluster, NameRule::Label);
    let path = Path::new("spec").child("finalizers");
    for finalizer in namespace["spec"].texts("finalizers") {
        namespace_finalizer(faults, finalizer, &path);
    }
}

fn namespace_finalizer(faults: &mut Faults, finalizer: &str, path: &Path) {
    faults.messages(path, finalizer, formats::qualified_name(finalizer));
    metadata::standard_finalizer(faults, finalizer, path);
}

/// An update of the finalizers by the controller of namespaces.
pub(super) fn namespace_finalize(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    let path = Path::new("spec").child("finalizers");
    for (index, finalizer) in new["spec"].texts("finalizers").enumerate() {
        namespace_finalizer(faults, finalizer, &path.index(index));
    }
}

pub(super) fn namespace_status(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    let phase = new["status"].text("phase");
    let path = Path::new("status").child("Phase");
    let ends = new["metadata"].has("deletionTimestamp");
    if ends && phase != "Terminating" {
        faults.invalid(
            &path,
            phase,
            "may only be 'Terminating' if `deletionTimestamp` is not empty",
        );
    } else if !ends && phase != "Active" {
        faults.invalid(
            &path,
            phase,
            "may only be 'Active' if `deletionTimestamp` is empty",
        );
    }
}

/// Counts the bytes in the values of a map, which may be in base64.
fn length(entries: &serde_json::Map<String, Value>, encoded: bool) -> usize {
    entries
        .values()
        .filter_map(Value::as_str)
        .map(|text| {
            if encoded {
                let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
                (text.len() / 4 * 3).saturating_sub(padding)
            } else {
                text.len()
            }
        })
        .sum()
}

pub(super) fn config_map(faults: &mut Faults, map: &Value) {
    metadata::create(faults, map, Scope::Namespaced, NameRule::Subdomain);
    let binary = map.entries("binaryData");
    for key in map.entries("data").keys() {
        let path = Path::new("data").key(key);
        faults.messages(&path, key.as_str(), formats::config_key(key));
        if binary.contains_key(key) {
            faults.invalid(
                &path,
                key.as_str(),
                "duplicate of key present in binaryData",
            );
        }
    }
    for key in binary.keys() {
        let path = Path::new("binaryData").key(key);
        faults.messages(&path, key.as_str(), formats::config_key(key));
    }
    if length(map.entries("data"), false) + length(binary, true) > DATA_LENGTH {
        faults.push(FieldError::too_long(&Path::new(""), DATA_LENGTH));
    }
}

pub(super) fn config_map_update(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    frozen(faults, new, old, &["data", "binaryData"]);
    config_map(faults, new);
}

fn frozen(faults: &mut Faults, new: &Value, old: &Value, fields: &[&str]) {
    if !old.flag("immutable") {
        return;
    }
    if !new.flag("immutable") {
        faults.forbidden(&Path::new("immutable"), FROZEN);
    }
    for field in fields {
        if !same(&new[*field], &old[*field]) {
            faults.forbidden(&Path::new(field), FROZEN);
        }
    }
}

pub(super) fn secret(faults: &mut Faults, secret: &Value) {
    metadata::create(faults, secret, Scope::Namespaced, NameRule::Subdomain);
    let path = Path::new("data");
    let data = secret.entries("data");
    for key in data.keys() {
        faults.messages(&path.key(key), key.as_str(), formats::config_key(key));
    }
    if length(data, true) > DATA_LENGTH {
        faults.push(FieldError::too_long(&path, DATA_LENGTH));
    }
    match secret.text("type") {
        "kubernetes.io/service-account-token" => {
            let key = "kubernetes.io/service-account.name";
            if secret["metadata"]["annotations"].text(key).is_empty() {
                faults.required(&Path::new("metadata").child("annotations").key(key), "");
            }
        }
        "kubernetes.io/dockercfg" => json_key(faults, secret, ".dockercfg", &path),
        "kubernetes.io/dockerconfigjson" => json_key(faults, secret, ".dockerconfigjson", &path),
        "kubernetes.io/basic-auth" => {
            let keys = ["username", "password"];
            if !keys.iter().any(|key| data.contains_key(*key)) {
                for key in keys {
                    faults.required(&path.key(key), "");
                }
            }
        }
        "kubernetes.io/ssh-auth" if secret["data"].text("ssh-privatekey").is_empty() => {
            faults.required(&path.key("ssh-privatekey"), "");
        }
        "kubernetes.io/tls" => {
            for key in ["tls.crt", "tls.key"] {
                if !data.contains_key(key) {
                    faults.required(&path.key(key), "");
                }
            }
        }
        _ => {}
    }
}

/// A key whose value must be JSON. The value itself is secret and stays out of the fault.
fn json_key(faults: &mut Faults, secret: &Value, key: &str, path: &Path) {
    let path = path.key(key);
    let Some(text) = secret["data"].maybe_text(key) else {
        faults.required(&path, "");
        return;
    };
    let parsed = BASE64_STANDARD
        .decode(text)
        .is_ok_and(|bytes| serde_json::from_slice::<serde_json::Map<_, _>>(&bytes).is_ok());
    if !parsed {
        faults.invalid(&path, "<secret contents redacted>", "must be valid json");
    }
}

pub(super) fn secret_update(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    faults.immutable(&Path::new("type"), &new["type"], &old["type"]);
    frozen(faults, new, old, &["data"]);
    secret(faults, new);
}

pub(super) fn node(faults: &mut Faults, node: &Value) {
    metadata::create(faults, node, Scope::Cluster, NameRule::Subdomain);
    taints(faults, node);
    node_resources(faults, node);
    let path = Path::new("spec").child("podCIDRs");
    let ranges: Vec<&str> = node["spec"].texts("podCIDRs").collect();
    for (index, range) in ranges.iter().enumerate() {
        faults.extend(formats::ip_range(range, &path.index(index)));
    }
    if ranges.len() > 1 {
        let parsed: Vec<IpAddr> = ranges
            .iter()
            .filter_map(|range| formats::parse_range(range))
            .map(|(address, _)| address)
            .collect();
        if !formats::is_dual_stack(&parsed) || ranges.len() > 2 {
            faults.invalid(
                &path,
                node["spec"]["podCIDRs"].clone(),
                "may specify no more than one CIDR for each IP family",
            );
        }
        for (index, range) in ranges.iter().enumerate() {
            if ranges[..index].contains(range) {
                faults.push(FieldError::duplicate(&path.index(index), *range));
            }
        }
    }
}

/// Upstream calls the place of taints `metadata.taints` in faults.
fn taints(faults: &mut Faults, node: &Value) {
    let path = Path::new("metadata").child("taints");
    let mut seen = BTreeSet::new();
    for (index, taint) in node["spec"].items("taints").iter().enumerate() {
        let path = path.index(index);
        let (key, effect) = (taint.text("key"), taint.text("effect"));
        metadata::label_name(faults, key, &path.child("key"));
        let messages = formats::label_value(taint.text("value"));
        if !messages.is_empty() {
            faults.invalid(
                &path.child("value"),
                taint.text("value"),
                messages.join(";"),
            );
        }
        pod::taint_effect(faults, effect, false, &path.child("effect"));
        if !seen.insert((key, effect)) {
            let mut fault = FieldError::duplicate(&path, taint.clone());
            "taints must be unique by key and effect pair".clone_into(&mut fault.detail);
            faults.push(fault);
        }
    }
}

fn node_resources(faults: &mut Faults, node: &Value) {
    for field in ["capacity", "allocatable"] {
        let path = Path::new("status").child(field);
        for (resource, amount) in node["status"].entries(field) {
            quantities::of_resource(faults, resource, amount, &path.child(resource));
        }
    }
}

pub(super) fn node_update(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    node_resources(faults, new);
    let addresses = new["status"].items("addresses");
    for (index, address) in addresses.iter().enumerate() {
        if addresses[..index].contains(address) {
            faults.push(FieldError::duplicate(
                &Path::new("status").child("addresses").index(index),
                address.clone(),
            ));
        }
    }
    let path = Path::new("spec");
    let (after, before) = (&new["spec"], &old["spec"]);
    if !before.items("podCIDRs").is_empty() && after["podCIDRs"] != before["podCIDRs"] {
        faults.forbidden(
            &path.child("podCIDRs"),
            "node updates may not change podCIDR except from \"\" to valid",
        );
    }
    if !before.text("providerID").is_empty()
        && after.text("providerID") != before.text("providerID")
    {
        faults.forbidden(
            &path.child("providerID"),
            "node updates may not change providerID except from \"\" to valid",
        );
    }
    taints(faults, new);
    if after.text("externalID") != before.text("externalID") {
        faults.forbidden(&path.child("externalID"), "may not be updated");
    }
}

pub(super) fn service_account(faults: &mut Faults, account: &Value) {
    metadata::create(faults, account, Scope::Namespaced, NameRule::Subdomain);
}

/// An event of either group. Those with `eventTime` are of the new kind and say more.
pub(super) fn event(faults: &mut Faults, event: &Value) {
    let about = if event.has("regarding") {
        &event["regarding"]
    } else {
        &event["involvedObject"]
    };
    let namespace = event["metadata"].text("namespace");
    let other = about.text("namespace");
    let modern = event.has("eventTime");
    let fits = match (modern, other) {
        (false, "") => matches!(namespace, "" | "default"),
        (true, "") => matches!(namespace, "default" | "kube-system"),
        (false, other) => other == namespace,
        (true, _) => true,
    };
    if !fits {
        faults.invalid(
            &Path::new("involvedObject").child("namespace"),
            other,
            "does not match event.namespace",
        );
    }
    if modern {
        modern_event(faults, event);
    }
    faults.messages(
        &Path::new("namespace"),
        namespace,
        formats::subdomain(namespace),
    );
}

fn modern_event(faults: &mut Faults, event: &Value) {
    let controller = event
        .maybe_text("reportingComponent")
        .unwrap_or_else(|| event.text("reportingController"));
    let path = Path::new("reportingController");
    if controller.is_empty() {
        faults.required(&path, "");
    }
    faults.messages(&path, controller, formats::qualified_name(controller));
    for field in ["reportingInstance", "action", "reason"] {
        let text = event.text(field);
        if text.is_empty() {
            faults.required(&Path::new(field), "");
        }
        if text.len() > 128 {
            faults.invalid(&Path::new(field), "", "can have at most 128 characters");
        }
    }
    let message = event
        .maybe_text("note")
        .unwrap_or_else(|| event.text("message"));
    if message.len() > 1024 {
        faults.invalid(
            &Path::new("message"),
            "",
            "can have at most 1024 characters",
        );
    }
}

/// What the new group asks of an event beyond what the old one asks.
pub(super) fn new_event(faults: &mut Faults, event: &Value) {
    self::event(faults, event);
    metadata::create(faults, event, Scope::Namespaced, NameRule::Subdomain);
    let series = &event["series"];
    if !series.is_null() {
        if series.number("count") < 2 {
            faults.invalid(&Path::new("series.count"), "", "should be at least 2");
        }
        if !series.has("lastObservedTime") {
            faults.required(&Path::new("series.lastObservedTime"), "");
        }
    }
    if !event.has("eventTime") {
        faults.required(&Path::new("eventTime"), "");
    }
    if !matches!(event.text("type"), "Normal" | "Warning") {
        faults.invalid(
            &Path::new("type"),
            "",
            format!("has invalid value: {}", event.text("type")),
        );
    }
    for (field, shown) in [
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
    ] {
        if event.has(field) {
            faults.invalid(&Path::new(shown), "", "needs to be unset");
        }
    }
    if event.number("deprecatedCount") != 0 {
        faults.invalid(&Path::new("count"), "", "needs to be unset");
    }
    if !event.entries("deprecatedSource").is_empty() {
        faults.invalid(&Path::new("source"), "", "needs to be unset");
    }
}

pub(super) fn new_event_update(faults: &mut Faults, new: &Value, old: &Value) {
    event(faults, new);
    metadata::update(faults, new, old);
    for (field, shown) in [
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        if !same(&new[field], &old[field]) {
            faults.invalid(
                &Path::new(shown),
                new[field].clone(),
                super::fault::IMMUTABLE,
            );
        }
    }
}
