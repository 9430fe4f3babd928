//! Endpoints and endpoint slices: the addresses behind a service.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv6Addr},
};

use serde_json::Value;

use super::{
    fault::{Faults, Report},
    formats,
    metadata::{self, NameRule, Scope},
    read::Read,
};
use crate::field::{FieldError, Path};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// Whether an address is in `fe80::/10`.
fn is_link_local(address: Ipv6Addr) -> bool {
    address.segments()[0] & 0xffc0 == 0xfe80
}

/// An address that others can reach: not that of a host to itself or to its link.
pub(super) fn ordinary_address(faults: &mut Faults, text: &str, path: &Path) {
    let Ok(address) = text.parse::<IpAddr>() else {
        faults.invalid(path, text, "must be a valid IP address");
        return;
    };
    if address.is_unspecified() {
        faults.invalid(path, text, format!("may not be unspecified ({text})"));
    }
    if address.is_loopback() {
        faults.invalid(
            path,
            text,
            "may not be in the loopback range (127.0.0.0/8, ::1/128)",
        );
    }
    let (link, link_multicast) = match address {
        IpAddr::V4(four) => (four.is_link_local(), four.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(six) => (is_link_local(six), six.segments()[0] & 0xff0f == 0xff02),
    };
    if link {
        faults.invalid(
            path,
            text,
            "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
        );
    }
    if link_multicast {
        faults.invalid(
            path,
            text,
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
        );
    }
}

/// The name of a load balancer, which is no address.
pub(super) fn balancer_name(faults: &mut Faults, name: &str, path: &Path) {
    if name.is_empty() {
        return;
    }
    faults.messages(path, name, formats::subdomain(name));
    if name.parse::<IpAddr>().is_ok() {
        faults.invalid(path, name, "must be a DNS name, not an IP address");
    }
}

pub(super) fn create(faults: &mut Faults, endpoints: &Value) {
    metadata::create(faults, endpoints, Scope::Namespaced, NameRule::Subdomain);
    let path = Path::new("subsets");
    for (index, subset) in endpoints.items("subsets").iter().enumerate() {
        let path = path.index(index);
        let lists = ["addresses", "notReadyAddresses"];
        if lists.iter().all(|list| subset.items(list).is_empty()) {
            faults.required(&path, "must specify `addresses` or `notReadyAddresses`");
        }
        for list in lists {
            for (index, address) in subset.items(list).iter().enumerate() {
                self::address(faults, address, &path.child(list).index(index));
            }
        }
        let ports = subset.items("ports");
        for (index, port) in ports.iter().enumerate() {
            self::port(
                faults,
                port,
                ports.len() > 1,
                &path.child("ports").index(index),
            );
        }
    }
}

fn address(faults: &mut Faults, address: &Value, path: &Path) {
    faults.extend(formats::ip(address.text("ip"), &path.child("ip")));
    let name = address.text("hostname");
    if !name.is_empty() {
        faults.messages(&path.child("hostname"), name, formats::label(name));
    }
    if let Some(node) = address.maybe_text("nodeName") {
        faults.messages(&path.child("nodeName"), node, formats::subdomain(node));
    }
    ordinary_address(faults, address.text("ip"), &path.child("ip"));
}

fn port(faults: &mut Faults, port: &Value, needs_name: bool, path: &Path) {
    let name = port.text("name");
    if !name.is_empty() {
        faults.messages(&path.child("name"), name, formats::label(name));
    } else if needs_name {
        faults.required(&path.child("name"), "");
    }
    let number = port.number("port");
    faults.messages(&path.child("port"), number, formats::port_number(number));
    faults.required_choice(&path.child("protocol"), port.text("protocol"), &PROTOCOLS);
    if let Some(protocol) = port.maybe_text("appProtocol") {
        faults.messages(
            &path.child("appProtocol"),
            protocol,
            formats::qualified_name(protocol),
        );
    }
}

pub(super) fn slice(faults: &mut Faults, slice: &Value) {
    metadata::create(faults, slice, Scope::Namespaced, NameRule::Subdomain);
    let family = slice.text("addressType");
    faults.required_choice(&Path::new("addressType"), family, &["FQDN", "IPv4", "IPv6"]);
    let path = Path::new("endpoints");
    let endpoints = slice.items("endpoints");
    if endpoints.len() > 1000 {
        faults.push(FieldError::too_many(&path, endpoints.len(), 1000));
    } else {
        for (index, endpoint) in endpoints.iter().enumerate() {
            slice_endpoint(faults, endpoint, family, &path.index(index));
        }
    }
    let path = Path::new("ports");
    let ports = slice.items("ports");
    if ports.len() > 20000 {
        faults.push(FieldError::too_many(&path, ports.len(), 20000));
        return;
    }
    let mut names = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        let name = port.text("name");
        if !name.is_empty() {
            faults.messages(&path.child("name"), name, formats::label(name));
        }
        if !names.insert(name) {
            faults.push(FieldError::duplicate(&path.child("name"), name));
        }
        faults.required_choice(&path.child("protocol"), port.text("protocol"), &PROTOCOLS);
        if let Some(number) = port.maybe_number("port") {
            faults.messages(&path.child("port"), number, formats::port_number(number));
        }
        if let Some(protocol) = port.maybe_text("appProtocol") {
            faults.messages(
                &path.child("appProtocol"),
                protocol,
                formats::qualified_name(protocol),
            );
        }
    }
}

fn slice_endpoint(faults: &mut Faults, endpoint: &Value, family: &str, path: &Path) {
    let addresses_path = path.child("addresses");
    let addresses = endpoint.items("addresses");
    if addresses.is_empty() {
        faults.required(&addresses_path, "must contain at least 1 address");
    } else if addresses.len() > 100 {
        faults.push(FieldError::too_many(&addresses_path, addresses.len(), 100));
    }
    for (index, address) in endpoint.texts("addresses").enumerate() {
        let path = addresses_path.index(index);
        match family {
            "IPv4" | "IPv6" => {
                let right = address
                    .parse::<IpAddr>()
                    .is_ok_and(|parsed| parsed.is_ipv4() == (family == "IPv4"));
                if !right {
                    faults.invalid(&path, address, format!("must be a valid {family} address"));
                }
                ordinary_address(faults, address, &path);
            }
            "FQDN" => domain(faults, address, &path),
            _ => {}
        }
    }
    if let Some(node) = endpoint.maybe_text("nodeName") {
        faults.messages(&path.child("nodeName"), node, formats::subdomain(node));
    }
    let topology = endpoint.entries("deprecatedTopology");
    let topology_path = path.child("deprecatedTopology");
    if topology.len() > 16 {
        faults.push(FieldError::too_many(&topology_path, topology.len(), 16));
    }
    metadata::labels(faults, topology, &topology_path);
    if let Some(name) = endpoint.maybe_text("hostname") {
        faults.messages(&path.child("hostname"), name, formats::label(name));
    }
    hints(faults, &endpoint["hints"], &path.child("hints"));
}

fn hints(faults: &mut Faults, hints: &Value, path: &Path) {
    let zones = hints.items("forZones");
    let path = path.child("forZones");
    if zones.len() > 8 {
        faults.push(FieldError::too_many(&path, zones.len(), 8));
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, zone) in zones.iter().enumerate() {
        let path = path.index(index).child("name");
        let name = zone.text("name");
        if !seen.insert(name) {
            faults.push(FieldError::duplicate(&path, name));
        }
        faults.messages(&path, name, formats::label_value(name));
    }
}

fn domain(faults: &mut Faults, name: &str, path: &Path) {
    if name.is_empty() {
        faults.required(path, "");
        return;
    }
    let plain = name.strip_suffix('.').unwrap_or(name);
    let messages = formats::subdomain(plain);
    if !messages.is_empty() {
        faults.invalid(path, plain, messages.join(","));
    } else if !plain.contains('.') {
        faults.invalid(
            path,
            plain,
            "should be a domain with at least two segments separated by dots",
        );
    }
}
