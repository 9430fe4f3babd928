//! Services: how pods are reached under one name and address.

use std::{collections::BTreeSet, net::IpAddr};

use serde_json::{Value, json};

use super::{
    endpoints,
    fault::{Faults, Report},
    formats,
    metadata::{self, NameRule, Scope},
    pod,
    read::Read,
};
use crate::field::{FieldError, Path};

const ONLY_BALANCED: &str = "may only be used when `type` is 'LoadBalancer'";
const RANGES_ANNOTATION: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const LONGEST_AFFINITY: i64 = 86400;

fn is_headless(service: &Value) -> bool {
    matches!(service["spec"].items("clusterIPs"), [only] if only == "None")
}

pub(super) fn create(faults: &mut Faults, service: &Value) {
    metadata::create(faults, service, Scope::Namespaced, NameRule::OldLabel);
    let path = Path::new("spec");
    let spec = &service["spec"];
    let kind = spec.text("type");
    if spec.items("ports").is_empty() && !is_headless(service) && kind != "ExternalName" {
        faults.required(&path.child("ports"), "");
    }
    by_type(faults, service, &path);
    let mut names = BTreeSet::new();
    for (index, port) in spec.items("ports").iter().enumerate() {
        let needs_name = spec.items("ports").len() > 1;
        self::port(
            faults,
            port,
            needs_name,
            &mut names,
            &path.child("ports").index(index),
        );
    }
    metadata::labels(faults, spec.entries("selector"), &path.child("selector"));
    affinity(faults, spec, &path);
    addresses(faults, service, &path);
    for (index, address) in spec.texts("externalIPs").enumerate() {
        let path = path.child("externalIPs").index(index);
        match formats::ip(address, &path) {
            Some(fault) => faults.push(fault),
            None => endpoints::ordinary_address(faults, address, &path),
        }
    }
    faults.required_choice(
        &path.child("type"),
        kind,
        &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"],
    );
    node_ports(faults, spec, &path.child("ports"));
    balancer(faults, service, &path);
    traffic(faults, spec, &path);
}

fn by_type(faults: &mut Faults, service: &Value, path: &Path) {
    let spec = &service["spec"];
    match spec.text("type") {
        kind @ ("LoadBalancer" | "NodePort") if is_headless(service) => faults.invalid(
            &path.child("clusterIPs").index(0),
            "None",
            format!("may not be set to 'None' for {kind} services"),
        ),
        "ExternalName" => {
            let why = "may not be set for ExternalName services";
            for field in ["clusterIPs", "ipFamilies"] {
                if !spec.items(field).is_empty() {
                    faults.forbidden(&path.child(field), why);
                }
            }
            if spec.has("ipFamilyPolicy") {
                faults.forbidden(&path.child("ipFamilyPolicy"), why);
            }
            let name = spec.text("externalName");
            let name = name.strip_suffix('.').unwrap_or(name);
            if name.is_empty() {
                faults.required(&path.child("externalName"), "");
            } else {
                faults.messages(&path.child("externalName"), name, formats::subdomain(name));
            }
        }
        _ => {}
    }
}

fn port<'a>(
    faults: &mut Faults,
    port: &'a Value,
    needs_name: bool,
    names: &mut BTreeSet<&'a str>,
    path: &Path,
) {
    let name = port.text("name");
    if !name.is_empty() {
        faults.messages(&path.child("name"), name, formats::label(name));
        if !names.insert(name) {
            faults.push(FieldError::duplicate(&path.child("name"), name));
        }
    } else if needs_name {
        faults.required(&path.child("name"), "");
    }
    let number = port.number("port");
    faults.messages(&path.child("port"), number, formats::port_number(number));
    faults.required_choice(
        &path.child("protocol"),
        port.text("protocol"),
        &["SCTP", "TCP", "UDP"],
    );
    pod::port(faults, &port["targetPort"], &path.child("targetPort"));
    if let Some(protocol) = port.maybe_text("appProtocol") {
        faults.messages(
            &path.child("appProtocol"),
            protocol,
            formats::qualified_name(protocol),
        );
    }
}

fn affinity(faults: &mut Faults, spec: &Value, path: &Path) {
    let kind = spec.text("sessionAffinity");
    faults.required_choice(&path.child("sessionAffinity"), kind, &["ClientIP", "None"]);
    let config = &spec["sessionAffinityConfig"];
    let path = path.child("sessionAffinityConfig");
    if kind == "None" && !config.is_null() {
        faults.forbidden(&path, "must not be set when session affinity is None");
    }
    if kind != "ClientIP" {
        return;
    }
    let why = "when session affinity type is ClientIP";
    let client_path = path.child("clientIP");
    if config.is_null() {
        faults.required(&path, why);
    } else if !config.has("clientIP") {
        faults.required(&client_path, why);
    } else {
        let seconds_path = client_path.child("timeoutSeconds");
        match config["clientIP"].maybe_number("timeoutSeconds") {
            None => faults.required(&seconds_path, why),
            Some(seconds) if !(1..=LONGEST_AFFINITY).contains(&seconds) => faults.invalid(
                &seconds_path,
                seconds,
                format!("must be greater than 0 and less than {LONGEST_AFFINITY}"),
            ),
            Some(_) => {}
        }
    }
}

/// The addresses of the service and their families must agree.
fn addresses(faults: &mut Faults, service: &Value, path: &Path) {
    let spec = &service["spec"];
    if spec.text("type") == "ExternalName" {
        return;
    }
    let list_path = path.child("clusterIPs");
    let list: Vec<&str> = spec.texts("clusterIPs").collect();
    let shown = || spec["clusterIPs"].clone();
    match (spec.text("clusterIP"), list.first()) {
        ("", Some(_)) => faults.invalid(
            &list_path,
            shown(),
            "must be empty when `clusterIP` is not specified",
        ),
        ("", None) => {}
        (_, None) => faults.required(&list_path, ""),
        (first, Some(listed)) if first != *listed => {
            faults.invalid(&list_path, shown(), "first value must match `clusterIP`");
        }
        _ => {}
    }
    families(faults, spec, path);
    let mut wrong = false;
    for (index, address) in list.iter().enumerate() {
        if index == 0 && *address == "None" {
            if list.len() > 1 {
                wrong = true;
                faults.invalid(
                    &list_path,
                    shown(),
                    "'None' must be the first and only value",
                );
            }
            continue;
        }
        let fault = formats::ip(address, &list_path.index(index));
        wrong |= fault.is_some();
        faults.extend(fault);
    }
    if list.len() > 2 {
        faults.invalid(&list_path, shown(), "may only hold up to 2 values");
    }
    if wrong {
        return;
    }
    let parsed: Vec<IpAddr> = list.iter().filter_map(|each| each.parse().ok()).collect();
    if list.len() > 1 && !formats::is_dual_stack(&parsed) {
        faults.invalid(
            &list_path,
            shown(),
            "may specify no more than one IP for each IP family",
        );
    }
    for (index, (address, family)) in parsed.iter().zip(spec.texts("ipFamilies")).enumerate() {
        let expected = if address.is_ipv4() { "IPv4" } else { "IPv6" };
        if matches!(family, "IPv4" | "IPv6") && family != expected {
            faults.invalid(
                &list_path.index(index),
                address.to_string(),
                format!("expected an {family} value as indicated by `ipFamilies[{index}]`"),
            );
        }
    }
}

fn families(faults: &mut Faults, spec: &Value, path: &Path) {
    let mut seen = BTreeSet::new();
    for (index, family) in spec.texts("ipFamilies").enumerate() {
        let path = path.child("ipFamilies").index(index);
        if !["IPv4", "IPv6"].contains(&family) {
            faults.push(FieldError::not_supported(&path, family, &["IPv4", "IPv6"]));
        }
        if !seen.insert(family) {
            faults.push(FieldError::duplicate(&path, family));
        }
    }
    faults.choice(
        &path.child("ipFamilyPolicy"),
        &spec["ipFamilyPolicy"],
        &["PreferDualStack", "RequireDualStack", "SingleStack"],
    );
}

fn node_ports(faults: &mut Faults, spec: &Value, path: &Path) {
    let mut on_nodes = BTreeSet::new();
    let mut own = BTreeSet::new();
    let ports = spec.items("ports");
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index).child("nodePort");
        if spec.text("type") == "ClusterIP" && port.number("nodePort") != 0 {
            faults.forbidden(&path, "may not be used when `type` is 'ClusterIP'");
        }
    }
    for (index, port) in ports.iter().enumerate() {
        let number = port.number("nodePort");
        if number != 0 && !on_nodes.insert((port.text("protocol"), number)) {
            faults.push(FieldError::duplicate(
                &path.index(index).child("nodePort"),
                number,
            ));
        }
    }
    for (index, port) in ports.iter().enumerate() {
        let (protocol, number) = (port.text("protocol"), port.number("port"));
        if !own.insert((protocol, number)) {
            faults.push(FieldError::duplicate(
                &path.index(index),
                json!({"protocol": protocol, "port": number, "targetPort": 0}),
            ));
        }
    }
}

fn balancer(faults: &mut Faults, service: &Value, path: &Path) {
    let spec = &service["spec"];
    let balanced = spec.text("type") == "LoadBalancer";
    let annotation = service["metadata"]["annotations"].maybe_text(RANGES_ANNOTATION);
    if !spec.items("loadBalancerSourceRanges").is_empty() {
        let path = path.child("LoadBalancerSourceRanges");
        if !balanced {
            faults.forbidden(&path, ONLY_BALANCED);
        }
        for (index, range) in spec.texts("loadBalancerSourceRanges").enumerate() {
            faults.extend(formats::ip_range(range.trim(), &path.index(index)));
        }
    } else if let Some(ranges) = annotation {
        let path = Path::new("metadata")
            .child("annotations")
            .key(RANGES_ANNOTATION);
        if !balanced {
            faults.forbidden(&path, ONLY_BALANCED);
        }
        for range in ranges.split(',').filter(|_| !ranges.trim().is_empty()) {
            faults.extend(formats::ip_range(range.trim(), &path));
        }
    }
    let allocates = spec.has("allocateLoadBalancerNodePorts");
    if allocates && !balanced {
        faults.forbidden(&path.child("allocateLoadBalancerNodePorts"), ONLY_BALANCED);
    } else if !allocates && balanced {
        faults.required(&Path::new("allocateLoadBalancerNodePorts"), "");
    }
    if let Some(class) = spec.maybe_text("loadBalancerClass") {
        let path = path.child("loadBalancerClass");
        if balanced {
            faults.messages(&path, class, formats::qualified_name(class));
        } else {
            faults.forbidden(&path, ONLY_BALANCED);
        }
    }
}

/// Whether a balancer asks nodes whether they have pods of this service.
fn needs_health_check(spec: &Value) -> bool {
    spec.text("type") == "LoadBalancer" && spec.text("externalTrafficPolicy") == "Local"
}

fn traffic(faults: &mut Faults, spec: &Value, path: &Path) {
    let kind = spec.text("type");
    let external = matches!(kind, "LoadBalancer" | "NodePort")
        || (kind == "ClusterIP" && !spec.items("externalIPs").is_empty());
    let policy = spec.text("externalTrafficPolicy");
    let policy_path = path.child("externalTrafficPolicy");
    if external {
        faults.required_choice(&policy_path, policy, &["Cluster", "Local"]);
    } else if !policy.is_empty() {
        faults.invalid(
            &policy_path,
            policy,
            "may only be set for externally-accessible services",
        );
    }
    let check = spec.number("healthCheckNodePort");
    let check_path = path.child("healthCheckNodePort");
    if !needs_health_check(spec) {
        if check != 0 {
            faults.invalid(
                &check_path,
                check,
                "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
            );
        }
    } else if check == 0 {
        faults.required(&check_path, "");
    } else {
        faults.messages(&check_path, check, formats::port_number(check));
    }
    let inner_path = path.child("internalTrafficPolicy");
    if !spec.has("internalTrafficPolicy")
        && matches!(kind, "NodePort" | "LoadBalancer" | "ClusterIP")
    {
        faults.required(&inner_path, "");
    }
    faults.choice(
        &inner_path,
        &spec["internalTrafficPolicy"],
        &["Cluster", "Local"],
    );
    faults.choice(
        &path.child("trafficDistribution"),
        &spec["trafficDistribution"],
        &["PreferClose", "PreferSameNode", "PreferSameZone"],
    );
}

pub(super) fn update(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    let path = Path::new("spec");
    let external = |service: &Value| service["spec"].text("type") == "ExternalName";
    if !external(new) && !external(old) {
        kept_addresses(faults, new, old, &path);
    }
    let (after, before) = (&new["spec"], &old["spec"]);
    let balanced = |spec: &Value| spec.text("type") == "LoadBalancer";
    let class = |spec: &Value| spec.maybe_text("loadBalancerClass").map(str::to_owned);
    if balanced(after) && balanced(before) && class(after) != class(before) {
        faults.invalid(
            &path.child("loadBalancerClass"),
            after["loadBalancerClass"].clone(),
            "may not change once set",
        );
    }
    if needs_health_check(after)
        && needs_health_check(before)
        && after.number("healthCheckNodePort") != before.number("healthCheckNodePort")
    {
        faults.forbidden(&path.child("healthCheckNodePort"), "field is immutable");
    }
    create(faults, new);
}

/// A second family may come and go; the first address stays.
fn kept_addresses(faults: &mut Faults, new: &Value, old: &Value, path: &Path) {
    let (new_headless, old_headless) = (is_headless(new), is_headless(old));
    if new_headless && old_headless {
        return;
    }
    for (field, what, compare) in [
        ("clusterIPs", "clusterIP", true),
        ("ipFamilies", "ipFamily", new_headless == old_headless),
    ] {
        if !compare {
            continue;
        }
        let after: Vec<&str> = new["spec"].texts(field).collect();
        let before: Vec<&str> = old["spec"].texts(field).collect();
        let list_path = path.child(field);
        let shown = new["spec"][field].clone();
        if after.is_empty() && !before.is_empty() {
            faults.invalid(
                &list_path.index(0),
                shown.clone(),
                format!("primary {what} can not be unset"),
            );
        }
        let both = if after.len() == before.len() {
            before.len()
        } else {
            1.min(before.len()).min(after.len())
        };
        for index in 0..both {
            if after[index] != before[index] {
                let at = if field == "ipFamilies" { 0 } else { index };
                faults.invalid(
                    &list_path.index(at),
                    shown.clone(),
                    "may not change once set",
                );
            }
        }
        if before.len() > after.len()
            && after.len() == 1
            && new["spec"].text("ipFamilyPolicy") != "SingleStack"
        {
            faults.invalid(
                &path.child("ipFamilyPolicy"),
                new["spec"]["ipFamilyPolicy"].clone(),
                format!("must be set to 'SingleStack' when releasing the secondary {what}"),
            );
        }
    }
}

pub(super) fn status(faults: &mut Faults, new: &Value, old: &Value) {
    metadata::update(faults, new, old);
    let path = Path::new("status").child("loadBalancer").child("ingress");
    let ingress = new["status"]["loadBalancer"].items("ingress");
    if new["spec"].text("type") != "LoadBalancer" && !ingress.is_empty() {
        faults.forbidden(&path, "may only be used when `spec.type` is 'LoadBalancer'");
        return;
    }
    for (index, entry) in ingress.iter().enumerate() {
        let path = path.index(index);
        let address = entry.text("ip");
        let mode = entry.maybe_text("ipMode");
        if !address.is_empty() {
            faults.extend(formats::ip(address, &path.child("ip")));
        }
        match mode {
            None if !address.is_empty() => {
                faults.required(&path.child("ipMode"), "must be specified when `ip` is set");
            }
            Some(_) if address.is_empty() => faults.forbidden(
                &path.child("ipMode"),
                "may not be specified when `ip` is not set",
            ),
            _ => faults.choice(&path.child("ipMode"), &entry["ipMode"], &["Proxy", "VIP"]),
        }
        endpoints::balancer_name(faults, entry.text("hostname"), &path.child("hostname"));
    }
}
