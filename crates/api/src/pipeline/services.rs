//! Addresses and ports of services: each is given to one service only.
//!
//! A taken address is a key of its own, written in the same transaction as the service, so two servers cannot
//! give the same one twice.

use std::net::Ipv4Addr;

use serde_json::{Value, json};
use transom_store::{Condition, Write as StoreWrite};

use super::Write;
use crate::{
    field::{FieldError, Path},
    object,
    state::Api,
    status::ApiError,
};

const ADDRESSES: &str = "/registry/ranges/serviceips/";
const PORTS: &str = "/registry/ranges/nodeports/";
const FIRST_PORT: u16 = 30_000;
const LAST_PORT: u16 = 32_767;

fn invalid(value: &Value, fault: FieldError) -> ApiError {
    ApiError::invalid("", "Service", object::name(value), &[fault])
}

/// The addresses that services get.
struct Subnet {
    network: u32,
    size: u32,
}

impl Subnet {
    fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let address: Ipv4Addr = address.parse().ok()?;
        let length: u32 = length
            .parse()
            .ok()
            .filter(|length| (8..=30).contains(length))?;
        let size = 1_u32 << (32 - length);
        Some(Self {
            network: u32::from(address) & !(size - 1),
            size,
        })
    }

    fn address(&self, index: u32) -> Ipv4Addr {
        Ipv4Addr::from(self.network + index)
    }

    fn contains(&self, address: Ipv4Addr) -> bool {
        let index = u32::from(address).wrapping_sub(self.network);
        (1..self.size - 1).contains(&index)
    }
}

/// Gives a service what its type needs, and takes back what it does not need any more.
pub(super) fn allocate(
    api: &Api,
    current: Option<&Value>,
    write: &mut Write,
) -> Result<(), ApiError> {
    let old_address = current.map(cluster_ip).unwrap_or_default();
    let old_ports = current.map(node_ports).unwrap_or_default();
    assign_address(api, &old_address, write)?;
    assign_ports(api, &old_ports, write)?;
    Ok(())
}

fn service_type(value: &Value) -> &str {
    value["spec"]["type"].as_str().unwrap_or("ClusterIP")
}

fn cluster_ip(value: &Value) -> String {
    value["spec"]["clusterIP"]
        .as_str()
        .filter(|text| *text != "None")
        .unwrap_or_default()
        .to_owned()
}

fn node_ports(value: &Value) -> Vec<u16> {
    let ports = value["spec"]["ports"].as_array().into_iter().flatten();
    let mut numbers: Vec<u16> = ports
        .filter_map(|port| u16::try_from(port["nodePort"].as_u64()?).ok())
        .chain(
            value["spec"]["healthCheckNodePort"]
                .as_u64()
                .and_then(|port| u16::try_from(port).ok()),
        )
        .filter(|port| *port > 0)
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

fn is_taken(api: &Api, own: &Value, is_same: impl Fn(&Value) -> bool) -> bool {
    let kinds = api.registry.kinds();
    let Some(kind) = kinds.resource("", "v1", "services") else {
        return false;
    };
    let all = crate::cache::Selection::default();
    let listing = api.cache_of(kind).list(&all, None, None, None);
    listing.is_ok_and(|listing| {
        listing.items.iter().any(|item| {
            let value = item.value();
            object::uid(&value) != object::uid(own) && is_same(&value)
        })
    })
}

fn take(write: &mut Write, key: String) {
    let owner = object::uid(&write.value).to_owned();
    write
        .also
        .conditions
        .push(Condition::Absent { key: key.clone() });
    write.also.writes.push(StoreWrite::Put {
        key,
        value: owner.into_bytes().into(),
        lease: None,
    });
}

fn give_back(write: &mut Write, key: String) {
    write.also.writes.push(StoreWrite::Delete { key });
}

fn assign_address(api: &Api, old: &str, write: &mut Write) -> Result<(), ApiError> {
    let path = Path::new("spec").child("clusterIPs");
    let is_external = service_type(&write.value) == "ExternalName";
    let wanted = write.value["spec"]["clusterIP"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    if is_external || wanted == "None" {
        if !old.is_empty() {
            give_back(write, format!("{ADDRESSES}{old}"));
        }
        if wanted == "None" {
            write.value["spec"]["clusterIPs"] = json!(["None"]);
        }
        return Ok(());
    }
    let chosen = if wanted.is_empty() {
        if !old.is_empty() {
            write.value["spec"]["clusterIP"] = old.into();
            write.value["spec"]["clusterIPs"] = json!([old]);
            return Ok(());
        }
        free_address(api)
            .ok_or_else(|| ApiError::internal("failed to allocate a serviceIP: range is full"))?
    } else {
        wanted
    };
    if chosen != old {
        check_address(api, &write.value, &chosen, &path)?;
        take(write, format!("{ADDRESSES}{chosen}"));
        if !old.is_empty() {
            give_back(write, format!("{ADDRESSES}{old}"));
        }
    }
    let spec = &mut write.value["spec"];
    spec["clusterIPs"] = json!([chosen]);
    spec["clusterIP"] = chosen.into();
    let map = object::as_map(spec);
    map.entry("ipFamilies").or_insert_with(|| json!(["IPv4"]));
    map.entry("ipFamilyPolicy")
        .or_insert_with(|| "SingleStack".into());
    Ok(())
}

fn check_address(api: &Api, value: &Value, chosen: &str, path: &Path) -> Result<(), ApiError> {
    let fault = |detail: String| invalid(value, FieldError::invalid(path, json!([chosen]), detail));
    let subnet = Subnet::parse(&api.settings.service_subnet)
        .ok_or_else(|| ApiError::internal("the service subnet is not valid"))?;
    let address: Ipv4Addr = chosen
        .parse()
        .map_err(|_| fault("must be a valid IP address".to_owned()))?;
    if !subnet.contains(address) {
        return Err(fault(format!(
            "failed to allocate IP {chosen}: the provided IP ({chosen}) is not in the valid range. The range of valid IPs is {}",
            api.settings.service_subnet
        )));
    }
    if is_taken(api, value, |other| cluster_ip(other) == chosen) {
        return Err(fault(format!(
            "failed to allocate IP {chosen}: provided IP is already allocated"
        )));
    }
    Ok(())
}

/// An address that nobody has. The low part of the subnet is left to those who choose their own.
fn free_address(api: &Api) -> Option<String> {
    let subnet = Subnet::parse(&api.settings.service_subnet)?;
    let reserved = (subnet.size / 16).clamp(16, 256).min(subnet.size / 2);
    let span = subnet.size - 1 - reserved;
    let start = u32::try_from(uuid::Uuid::new_v4().as_u128() % u128::from(span)).ok()?;
    let kinds = api.registry.kinds();
    let kind = kinds.resource("", "v1", "services")?;
    let all = crate::cache::Selection::default();
    let taken: std::collections::HashSet<String> = api
        .cache_of(kind)
        .list(&all, None, None, None)
        .ok()?
        .items
        .iter()
        .map(|item| cluster_ip(&item.value()))
        .collect();
    (0..span)
        .map(|step| subnet.address(reserved + (start + step) % span).to_string())
        .find(|address| !taken.contains(address))
}

fn assign_ports(api: &Api, old: &[u16], write: &mut Write) -> Result<(), ApiError> {
    let needs = matches!(service_type(&write.value), "NodePort" | "LoadBalancer");
    if !needs {
        for port in write.value["spec"]["ports"]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            object::as_map(port).remove("nodePort");
        }
    } else if write.value["spec"]["allocateLoadBalancerNodePorts"] != false {
        choose_ports(api, write)?;
    }
    let now = node_ports(&write.value);
    for port in now.iter().filter(|port| !old.contains(port)) {
        take(write, format!("{PORTS}{port}"));
    }
    for port in old.iter().filter(|port| !now.contains(port)) {
        give_back(write, format!("{PORTS}{port}"));
    }
    Ok(())
}

fn choose_ports(api: &Api, write: &mut Write) -> Result<(), ApiError> {
    let ports = write.value["spec"]["ports"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let mut used = node_ports(&write.value);
    for (index, port) in ports.iter().enumerate() {
        let path = Path::new("spec")
            .child("ports")
            .index(index)
            .child("nodePort");
        let given = port["nodePort"].as_u64().unwrap_or_default();
        if given != 0 {
            let number = u16::try_from(given).unwrap_or_default();
            if !(FIRST_PORT..=LAST_PORT).contains(&number) {
                let detail = format!(
                    "provided port is not in the valid range. The range of valid ports is {FIRST_PORT}-{LAST_PORT}"
                );
                return Err(invalid(
                    &write.value,
                    FieldError::invalid(&path, given, detail),
                ));
            }
            if is_taken(api, &write.value, |other| {
                node_ports(other).contains(&number)
            }) {
                return Err(invalid(
                    &write.value,
                    FieldError::invalid(&path, given, "provided port is already allocated"),
                ));
            }
            continue;
        }
        let span = LAST_PORT - FIRST_PORT + 1;
        let start =
            u16::try_from(uuid::Uuid::new_v4().as_u128() % u128::from(span)).unwrap_or_default();
        let free = (0..span)
            .map(|step| FIRST_PORT + (start + step) % span)
            .find(|port| {
                !used.contains(port)
                    && !is_taken(api, &write.value, |other| node_ports(other).contains(port))
            })
            .ok_or_else(|| ApiError::internal("failed to allocate a nodePort: range is full"))?;
        used.push(free);
        write.value["spec"]["ports"][index]["nodePort"] = free.into();
    }
    Ok(())
}

/// What a service that goes leaves for others.
pub(super) fn released(value: &Value) -> Vec<StoreWrite> {
    let address = cluster_ip(value);
    let addresses = (!address.is_empty()).then(|| format!("{ADDRESSES}{address}"));
    let ports = node_ports(value)
        .into_iter()
        .map(|port| format!("{PORTS}{port}"));
    addresses
        .into_iter()
        .chain(ports)
        .map(|key| StoreWrite::Delete { key })
        .collect()
}
