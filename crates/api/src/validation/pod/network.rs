//! Names and addresses of a pod: DNS, hosts and ports of the host.

use std::net::IpAddr;

use serde_json::Value;

use super::Context;
use crate::{
    field::Path,
    validation::{
        fault::{Faults, Report},
        formats,
        read::Read,
    },
};

const NAME_SERVERS: usize = 3;
const SEARCH_PATHS: usize = 32;
const SEARCH_LENGTH: usize = 2048;

/// On the network of the host, ports are the ports of the host.
pub(super) fn host_ports(faults: &mut Faults, context: &Context<'_>, path: &Path) {
    if !context.spec.flag("hostNetwork") {
        return;
    }
    let path = path.child("containers");
    for (index, container) in context.spec.items("containers").iter().enumerate() {
        let path = path.index(index).child("ports");
        for (index, port) in container.items("ports").iter().enumerate() {
            let host = port.number("hostPort");
            let chosen = context.is_pod || host != 0;
            if chosen && host != port.number("containerPort") {
                faults.invalid(
                    &path.index(index).child("hostPort"),
                    host,
                    "must match `containerPort` when `hostNetwork` is true",
                );
            }
        }
    }
}

pub(super) fn dns(faults: &mut Faults, spec: &Value, path: &Path) {
    let config = &spec["dnsConfig"];
    if spec.text("dnsPolicy") == "None" {
        if config.is_null() {
            faults.required(path, "must provide `dnsConfig` when `dnsPolicy` is None");
            return;
        }
        if config.items("nameservers").is_empty() {
            faults.required(
                &path.child("nameservers"),
                "must provide at least one DNS nameserver when `dnsPolicy` is None",
            );
            return;
        }
    }
    let servers = config.items("nameservers");
    if servers.len() > NAME_SERVERS {
        faults.invalid(
            &path.child("nameservers"),
            config["nameservers"].clone(),
            format!("must not have more than {NAME_SERVERS} nameservers"),
        );
    }
    for (index, server) in config.texts("nameservers").enumerate() {
        faults.extend(formats::ip(server, &path.child("nameservers").index(index)));
    }
    searches(faults, config, &path.child("searches"));
    for (index, option) in config.items("options").iter().enumerate() {
        if option.text("name").is_empty() {
            faults.required(&path.child("options").index(index), "must not be empty");
        }
    }
}

fn searches(faults: &mut Faults, config: &Value, path: &Path) {
    let searches: Vec<&str> = config.texts("searches").collect();
    if searches.len() > SEARCH_PATHS {
        faults.invalid(
            path,
            config["searches"].clone(),
            format!("must not have more than {SEARCH_PATHS} search paths"),
        );
    }
    if searches.join(" ").len() > SEARCH_LENGTH {
        faults.invalid(
            path,
            config["searches"].clone(),
            format!(
                "must not have more than {SEARCH_LENGTH} characters (including spaces) in the search list"
            ),
        );
    }
    for (index, search) in searches.into_iter().enumerate() {
        if search == "." {
            continue;
        }
        let search = search.strip_suffix('.').unwrap_or(search);
        faults.messages(
            &path.index(index),
            search,
            formats::subdomain_with_underscores(search),
        );
    }
}

pub(super) fn host_names(faults: &mut Faults, spec: &Value, path: &Path) {
    for field in ["hostname", "subdomain"] {
        let name = spec.text(field);
        if !name.is_empty() {
            faults.messages(&path.child(field), name, formats::label(name));
        }
    }
    let Some(name) = spec.maybe_text("hostnameOverride") else {
        return;
    };
    let path = path.child("hostnameOverride");
    if spec.flag("hostNetwork") {
        faults.forbidden(&path, "may not be specified when hostNetwork is true");
    }
    if spec.flag("setHostnameAsFQDN") {
        faults.forbidden(&path, "may not be specified when setHostnameAsFQDN is true");
    }
    faults.messages(&path, name, formats::subdomain(name));
    if name.len() > 64 {
        faults.messages(&path, name, vec![formats::too_long(64)]);
    }
}

pub(super) fn host_aliases(faults: &mut Faults, spec: &Value, path: &Path) {
    for (index, alias) in spec.items("hostAliases").iter().enumerate() {
        let path = path.index(index);
        faults.extend(formats::ip(alias.text("ip"), &path.child("ip")));
        for (index, name) in alias.texts("hostnames").enumerate() {
            faults.messages(
                &path.child("hostnames").index(index),
                name,
                formats::subdomain(name),
            );
        }
    }
}

/// At most one address of each family, as in the status of a pod.
pub(super) fn addresses(faults: &mut Faults, list: &Value, path: &Path) {
    let Some(items) = list.as_array() else {
        return;
    };
    for (index, item) in items.iter().enumerate() {
        faults.extend(formats::ip(item.text("ip"), &path.index(index)));
    }
    if items.len() < 2 {
        return;
    }
    let parsed: Vec<IpAddr> = items
        .iter()
        .filter_map(|item| item.text("ip").parse().ok())
        .collect();
    if !formats::is_dual_stack(&parsed) || items.len() > 2 {
        faults.invalid(
            path,
            list.clone(),
            "may specify no more than one IP for each IP family",
        );
    }
    for (index, item) in items.iter().enumerate() {
        if items[..index].contains(item) {
            faults.push(crate::field::FieldError::duplicate(
                &path.index(index),
                item.clone(),
            ));
        }
    }
}
