//! Interfaces and routes of the network namespace we are in, through rtnetlink. Files below
//! `/sys/class/net` would tell of the namespace that mounted them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use super::super::{Interface, InterfaceAddress, MachineError, RouteEntry};
use super::mac_text;
use super::netlink::{Message, attributes, dump, u32_at};

const GET_LINK: u16 = 18;
const GET_ADDRESS: u16 = 22;
const GET_ROUTE: u16 = 26;
const NEW_LINK: u16 = 16;
const NEW_ADDRESS: u16 = 20;
const NEW_ROUTE: u16 = 24;

const LINK_HEADER: usize = 16;
const ADDRESS_HEADER: usize = 8;
const ROUTE_HEADER: usize = 12;

const FAMILY_V4: u8 = 2;
const FAMILY_V6: u8 = 10;
const FLAG_UP: u32 = 0x1;
const FLAG_LOOPBACK: u32 = 0x8;
const MAIN_TABLE: u32 = 254;
const TYPE_UNICAST: u8 = 1;
const FLAG_CLONED: u32 = 0x200;

pub(in super::super) fn interfaces() -> Result<Vec<Interface>, MachineError> {
    let links = dump(GET_LINK, &[0; LINK_HEADER]).map_err(MachineError::read("the interfaces"))?;
    let addresses =
        dump(GET_ADDRESS, &[0; ADDRESS_HEADER]).map_err(MachineError::read("the addresses"))?;
    let mut by_index: BTreeMap<u32, Interface> = links
        .iter()
        .filter(|message| message.kind == NEW_LINK)
        .filter_map(|message| interface(&message.body))
        .map(|interface| (interface.index, interface))
        .collect();
    for message in addresses
        .iter()
        .filter(|message| message.kind == NEW_ADDRESS)
    {
        if let Some((index, address)) = address(&message.body)
            && let Some(interface) = by_index.get_mut(&index)
        {
            interface.addresses.push(address);
        }
    }
    Ok(by_index.into_values().collect())
}

pub(in super::super) fn routes() -> Result<Vec<RouteEntry>, MachineError> {
    let mut routes = Vec::new();
    for family in [FAMILY_V4, FAMILY_V6] {
        let mut body = [0; ROUTE_HEADER];
        body[0] = family;
        let messages = dump(GET_ROUTE, &body).map_err(MachineError::read("the routes"))?;
        routes.extend(messages.iter().filter_map(route));
    }
    Ok(routes)
}

fn interface(body: &[u8]) -> Option<Interface> {
    const ADDRESS: u16 = 1;
    const NAME: u16 = 3;
    const MTU: u16 = 4;
    let index = u32_at(body, 4)?;
    let flags = u32_at(body, 8)?;
    let mut interface = Interface {
        name: String::new(),
        index,
        mac: None,
        mtu: 0,
        up: flags & FLAG_UP != 0,
        loopback: flags & FLAG_LOOPBACK != 0,
        addresses: Vec::new(),
    };
    for (kind, value) in attributes(body.get(LINK_HEADER..)?) {
        match kind {
            ADDRESS => interface.mac = mac_text(value),
            NAME => {
                let end = value
                    .iter()
                    .position(|byte| *byte == 0)
                    .unwrap_or(value.len());
                interface.name = String::from_utf8_lossy(&value[..end]).into_owned();
            }
            MTU => interface.mtu = u32_at(value, 0)?,
            _ => {}
        }
    }
    Some(interface).filter(|interface| !interface.name.is_empty())
}

fn address(body: &[u8]) -> Option<(u32, InterfaceAddress)> {
    const ADDRESS: u16 = 1;
    /// On point-to-point links this is our side, and `ADDRESS` the other.
    const LOCAL: u16 = 2;
    let prefix_length = *body.get(1)?;
    let index = u32_at(body, 4)?;
    let mut found = None;
    for (kind, value) in attributes(body.get(ADDRESS_HEADER..)?) {
        match kind {
            LOCAL => found = ip(value),
            ADDRESS if found.is_none() => found = ip(value),
            _ => {}
        }
    }
    found.map(|address| {
        (
            index,
            InterfaceAddress {
                address,
                prefix_length,
            },
        )
    })
}

fn route(message: &Message) -> Option<RouteEntry> {
    const DESTINATION: u16 = 1;
    const OUTPUT: u16 = 4;
    const GATEWAY: u16 = 5;
    const PRIORITY: u16 = 6;
    const TABLE: u16 = 15;
    let body = &message.body;
    if message.kind != NEW_ROUTE
        || *body.get(7)? != TYPE_UNICAST
        || u32_at(body, 8)? & FLAG_CLONED != 0
    {
        return None;
    }
    let (family, prefix_length) = (*body.first()?, *body.get(1)?);
    let mut table = u32::from(*body.get(4)?);
    let mut destination = match family {
        FAMILY_V4 => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        FAMILY_V6 => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        _ => return None,
    };
    let (mut gateway, mut interface_index, mut metric) = (None, None, 0);
    for (kind, value) in attributes(body.get(ROUTE_HEADER..)?) {
        match kind {
            DESTINATION => destination = ip(value)?,
            GATEWAY => gateway = ip(value),
            OUTPUT => interface_index = u32_at(value, 0),
            PRIORITY => metric = u32_at(value, 0)?,
            TABLE => table = u32_at(value, 0)?,
            _ => {}
        }
    }
    if table != MAIN_TABLE {
        return None;
    }
    Some(RouteEntry {
        destination: IpNet::new(destination, prefix_length).ok()?,
        gateway,
        interface_index,
        metric,
        protocol: u32::from(*body.get(5)?),
    })
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => Some(IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        16 => Some(IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?)),
        _ => None,
    }
}
