//! Ingresses, their classes, and network policies.

use std::net::IpAddr;

use serde_json::Value;

use super::{
    endpoints,
    fault::{Faults, Report},
    formats,
    metadata::{self, NameRule, Scope},
    read::Read,
    selector,
};
use crate::field::{FieldError, Path};

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const CONTROLLER_LENGTH: usize = 250;

pub(super) fn policy(faults: &mut Faults, policy: &Value) {
    metadata::create(faults, policy, Scope::Namespaced, NameRule::Subdomain);
    let path = Path::new("spec");
    let spec = &policy["spec"];
    selector::validate(faults, &spec["podSelector"], &path.child("podSelector"));
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in spec.items(rules).iter().enumerate() {
            let path = path.child(rules).index(index);
            for (index, port) in rule.items("ports").iter().enumerate() {
                policy_port(faults, port, &path.child("ports").index(index));
            }
            for (index, peer) in rule.items(peers).iter().enumerate() {
                policy_peer(faults, peer, &path.child(peers).index(index));
            }
        }
    }
    let path = path.child("policyTypes");
    if spec.items("policyTypes").len() > 2 {
        faults.invalid(
            &path,
            spec["policyTypes"].clone(),
            "may not specify more than two policyTypes",
        );
        return;
    }
    for (index, kind) in spec.items("policyTypes").iter().enumerate() {
        faults.choice(&path.index(index), kind, &["Egress", "Ingress"]);
    }
}

fn policy_port(faults: &mut Faults, port: &Value, path: &Path) {
    faults.choice(
        &path.child("protocol"),
        &port["protocol"],
        &["SCTP", "TCP", "UDP"],
    );
    let end = port.maybe_number("endPort");
    let end_path = path.child("endPort");
    match &port["port"] {
        Value::Null => {
            if let Some(end) = end {
                faults.invalid(
                    &end_path,
                    end,
                    "may not be specified when `port` is not specified",
                );
            }
        }
        Value::String(name) => {
            if let Some(end) = end {
                faults.invalid(
                    &end_path,
                    end,
                    "may not be specified when `port` is non-numeric",
                );
            }
            faults.messages(&path.child("port"), name.as_str(), formats::port_name(name));
        }
        number => {
            let number = number.as_i64().unwrap_or_default();
            faults.messages(&path.child("port"), number, formats::port_number(number));
            if let Some(end) = end {
                if end < number {
                    faults.invalid(&end_path, end, "must be greater than or equal to `port`");
                }
                faults.messages(&end_path, end, formats::port_number(end));
            }
        }
    }
}

fn policy_peer(faults: &mut Faults, peer: &Value, path: &Path) {
    let mut count = 0;
    for field in ["podSelector", "namespaceSelector"] {
        if peer.has(field) {
            count += 1;
            selector::validate(faults, &peer[field], &path.child(field));
        }
    }
    if peer.has("ipBlock") {
        count += 1;
        block(faults, &peer["ipBlock"], &path.child("ipBlock"));
    }
    if count == 0 {
        faults.required(path, "must specify a peer");
    } else if count > 1 && peer.has("ipBlock") {
        faults.forbidden(path, "may not specify both ipBlock and another peer");
    }
}

fn block(faults: &mut Faults, block: &Value, path: &Path) {
    let range = block.text("cidr");
    if range.is_empty() {
        faults.required(&path.child("cidr"), "");
        return;
    }
    faults.extend(formats::ip_range(range, &path.child("cidr")));
    let Some(outer) = formats::parse_range(range) else {
        return;
    };
    for (index, except) in block.texts("except").enumerate() {
        let path = path.child("except").index(index);
        faults.extend(formats::ip_range(except, &path));
        if let Some(inner) = formats::parse_range(except)
            && !is_inside(outer, inner)
        {
            faults.invalid(&path, except, "must be a strict subset of `cidr`");
        }
    }
}

/// Whether the second range is a part of the first, and not all of it.
fn is_inside(outer: (IpAddr, u8), inner: (IpAddr, u8)) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(four) => (u128::from(four.to_bits()) << 96, true),
        IpAddr::V6(six) => (six.to_bits(), false),
    };
    let ((outer_bits, outer_four), (inner_bits, inner_four)) = (bits(outer.0), bits(inner.0));
    let differing = (outer_bits ^ inner_bits).checked_shr(128 - u32::from(outer.1));
    outer_four == inner_four && inner.1 > outer.1 && differing.unwrap_or_default() == 0
}

pub(super) fn ingress_create(faults: &mut Faults, ingress: &Value) {
    self::ingress(faults, ingress);
    if let (Some(annotation), Some(class)) = (
        ingress["metadata"]["annotations"].maybe_text(CLASS_ANNOTATION),
        ingress["spec"].maybe_text("ingressClassName"),
    ) && annotation != class
    {
        faults.invalid(
            &Path::new("annotations").child(CLASS_ANNOTATION),
            annotation,
            "must match `ingressClassName` when both are specified",
        );
    }
}

pub(super) fn ingress(faults: &mut Faults, ingress: &Value) {
    metadata::create(faults, ingress, Scope::Namespaced, NameRule::Subdomain);
    let path = Path::new("spec");
    let spec = &ingress["spec"];
    if spec.items("rules").is_empty() && !spec.has("defaultBackend") {
        faults.invalid(
            &path,
            spec["rules"].clone(),
            "either `defaultBackend` or `rules` must be specified",
        );
    }
    if spec.has("defaultBackend") {
        backend(
            faults,
            &spec["defaultBackend"],
            &path.child("defaultBackend"),
        );
    }
    for (index, rule) in spec.items("rules").iter().enumerate() {
        self::rule(faults, rule, &path.child("rules").index(index));
    }
    for (index, entry) in spec.items("tls").iter().enumerate() {
        let path = path.child("tls").index(index);
        for (index, host) in entry.texts("hosts").enumerate() {
            self::host(faults, host, &path.child("hosts").index(index));
        }
        let secret = entry.text("secretName");
        if !secret.is_empty() {
            faults.messages(
                &path.child("secretName"),
                secret,
                formats::subdomain(secret),
            );
        }
    }
    if let Some(class) = spec.maybe_text("ingressClassName") {
        faults.messages(
            &path.child("ingressClassName"),
            class,
            formats::subdomain(class),
        );
    }
}

fn host(faults: &mut Faults, host: &str, path: &Path) {
    if host.contains('*') {
        faults.messages(path, host, formats::wildcard_subdomain(host));
    } else {
        faults.messages(path, host, formats::subdomain(host));
    }
}

fn rule(faults: &mut Faults, rule: &Value, path: &Path) {
    let name = rule.text("host");
    if !name.is_empty() {
        let path = path.child("host");
        if name.parse::<IpAddr>().is_ok() {
            faults.invalid(&path, name, "must be a DNS name, not an IP address");
        }
        host(faults, name, &path);
    }
    if !rule.has("http") {
        return;
    }
    let path = path.child("http").child("paths");
    let paths = rule["http"].items("paths");
    if paths.is_empty() {
        faults.required(&path, "");
    }
    for (index, entry) in paths.iter().enumerate() {
        http_path(faults, entry, &path.index(index));
    }
}

fn http_path(faults: &mut Faults, entry: &Value, path: &Path) {
    let text = entry.text("path");
    let text_path = path.child("path");
    let Some(kind) = entry.maybe_text("pathType") else {
        faults.required(&path.child("pathType"), "pathType must be specified");
        return;
    };
    let absolute = text.starts_with('/');
    match kind {
        "Exact" | "Prefix" => {
            if !absolute {
                faults.invalid(&text_path, text, "must be an absolute path");
            }
            for sequence in ["//", "/./", "/../", "%2f", "%2F"] {
                if text.contains(sequence) {
                    faults.invalid(&text_path, text, format!("must not contain '{sequence}'"));
                }
            }
            for suffix in ["/..", "/."] {
                if text.ends_with(suffix) {
                    faults.invalid(&text_path, text, format!("cannot end with '{suffix}'"));
                }
            }
        }
        "ImplementationSpecific" => {
            if !text.is_empty() && !absolute {
                faults.invalid(&text_path, text, "must be an absolute path");
            }
        }
        other => faults.push(FieldError::not_supported(
            &path.child("pathType"),
            other,
            &["Exact", "ImplementationSpecific", "Prefix"],
        )),
    }
    backend(faults, &entry["backend"], &path.child("backend"));
}

fn backend(faults: &mut Faults, backend: &Value, path: &Path) {
    match (backend.has("resource"), backend.has("service")) {
        (true, true) => {
            faults.invalid(path, "", "cannot set both resource and service backends");
        }
        (true, false) => typed_reference(faults, &backend["resource"], &path.child("resource")),
        (false, true) => {
            let service = &backend["service"];
            let service_path = path.child("service");
            let name = service.text("name");
            if name.is_empty() {
                faults.required(&service_path.child("name"), "");
            } else {
                faults.messages(&service_path.child("name"), name, formats::old_label(name));
            }
            let (port_name, number) = (
                service["port"].text("name"),
                service["port"].number("number"),
            );
            let port_path = service_path.child("port");
            match (port_name, number) {
                ("", 0) => faults.required(path, "port name or number is required"),
                ("", number) => faults.messages(
                    &port_path.child("number"),
                    number,
                    formats::port_number(number),
                ),
                (name, 0) => {
                    faults.messages(&port_path.child("name"), name, formats::port_name(name));
                }
                _ => faults.invalid(path, "", "cannot set both port name & port number"),
            }
        }
        (false, false) => faults.invalid(path, "", "resource or service backend is required"),
    }
}

fn typed_reference(faults: &mut Faults, reference: &Value, path: &Path) {
    if let Some(group) = reference.maybe_text("apiGroup") {
        faults.messages(&path.child("apiGroup"), group, formats::subdomain(group));
    }
    for field in ["kind", "name"] {
        let text = reference.text(field);
        if text.is_empty() {
            faults.required(&path.child(field), "");
        } else {
            faults.messages(&path.child(field), text, formats::path_segment(text));
        }
    }
}

pub(super) fn ingress_status(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    let path = Path::new("status").child("loadBalancer").child("ingress");
    for (index, entry) in new["status"]["loadBalancer"]
        .items("ingress")
        .iter()
        .enumerate()
    {
        let path = path.index(index);
        let address = entry.text("ip");
        if !address.is_empty() {
            faults.extend(formats::ip(address, &path.child("ip")));
        }
        endpoints::balancer_name(faults, entry.text("hostname"), &path.child("hostname"));
    }
}

pub(super) fn class(faults: &mut Faults, class: &Value) {
    metadata::create(faults, class, Scope::Cluster, NameRule::Subdomain);
    let path = Path::new("spec");
    let controller = class["spec"].text("controller");
    if controller.len() > CONTROLLER_LENGTH {
        faults.push(FieldError::too_long(
            &path.child("controller"),
            CONTROLLER_LENGTH,
        ));
    }
    faults.extend(formats::domain_prefixed_path(
        controller,
        &path.child("controller"),
    ));
    let parameters = &class["spec"]["parameters"];
    if parameters.is_null() {
        return;
    }
    let path = path.child("parameters");
    typed_reference(faults, parameters, &path);
    let namespace = parameters.maybe_text("namespace");
    match (parameters.text("scope"), namespace) {
        ("", _) => faults.required(&path.child("scope"), ""),
        ("Namespace", None) => faults.required(
            &path.child("namespace"),
            "`parameters.scope` is set to 'Namespace'",
        ),
        ("Namespace", Some(namespace)) => faults.messages(
            &path.child("namespace"),
            namespace,
            formats::label(namespace),
        ),
        ("Cluster", Some(_)) => faults.forbidden(
            &path.child("namespace"),
            "`parameters.scope` is set to 'Cluster'",
        ),
        ("Cluster", None) => {}
        (other, _) => faults.push(FieldError::not_supported(
            &path.child("scope"),
            other,
            &["Cluster", "Namespace"],
        )),
    }
}

pub(super) fn class_update(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    faults.immutable(
        &Path::new("spec").child("controller"),
        &new["spec"]["controller"],
        &old["spec"]["controller"],
    );
    class(faults, new);
}
