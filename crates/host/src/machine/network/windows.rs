//! Interfaces and routes through the IP Helper library, by the two calls that Wine answers too:
//! others abort the process there.
#![expect(
    unsafe_code,
    reason = "the IP Helper library returns linked raw structures"
)]

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use windows::Win32::Foundation::{
    ERROR_BUFFER_OVERFLOW, ERROR_NO_DATA, ERROR_SUCCESS, WIN32_ERROR,
};
use windows::Win32::NetworkManagement::IpHelper::{
    FreeMibTable, GAA_FLAG_SKIP_ANYCAST, GAA_FLAG_SKIP_DNS_SERVER, GAA_FLAG_SKIP_MULTICAST,
    GetAdaptersAddresses, GetIpForwardTable2, IP_ADAPTER_ADDRESSES_LH, MIB_IPFORWARD_TABLE2,
};
use windows::Win32::NetworkManagement::Ndis::IfOperStatusUp;
use windows::Win32::Networking::WinSock::{
    AF_INET, AF_INET6, AF_UNSPEC, SOCKADDR, SOCKADDR_IN, SOCKADDR_IN6, SOCKADDR_INET,
};

use super::super::{Interface, InterfaceAddress, MachineError, RouteEntry};
use super::mac_text;

/// `IF_TYPE_SOFTWARE_LOOPBACK`.
const TYPE_LOOPBACK: u32 = 24;
/// The table can grow between two calls, but not for ever.
const TRIES: usize = 8;

pub(in super::super) fn interfaces() -> Result<Vec<Interface>, MachineError> {
    let buffer = adapters().map_err(MachineError::read("the interfaces"))?;
    let mut by_index = BTreeMap::new();
    let mut next: *const IP_ADAPTER_ADDRESSES_LH = buffer.as_ptr().cast();
    // An empty answer leaves the buffer empty too.
    if buffer.is_empty() {
        next = std::ptr::null();
    }
    while !next.is_null() {
        // SAFETY: the list is linked inside `buffer`, which lives until the end of this function.
        let adapter = unsafe { &*next };
        let interface = interface(adapter);
        by_index.insert(interface.index, interface);
        next = adapter.Next;
    }
    Ok(by_index.into_values().collect())
}

/// The system's list of adapters, in a buffer that is aligned for it.
fn adapters() -> io::Result<Vec<u64>> {
    let flags = GAA_FLAG_SKIP_ANYCAST | GAA_FLAG_SKIP_MULTICAST | GAA_FLAG_SKIP_DNS_SERVER;
    let mut size: u32 = 16 * 1024;
    for _ in 0..TRIES {
        let mut buffer = vec![0_u64; (size as usize).div_ceil(8)];
        // SAFETY: the buffer has at least `size` bytes.
        let code = unsafe {
            GetAdaptersAddresses(
                u32::from(AF_UNSPEC.0),
                flags,
                None,
                Some(buffer.as_mut_ptr().cast()),
                &raw mut size,
            )
        };
        match WIN32_ERROR(code) {
            ERROR_SUCCESS => return Ok(buffer),
            ERROR_NO_DATA => return Ok(Vec::new()),
            ERROR_BUFFER_OVERFLOW => {}
            other => return Err(io::Error::from_raw_os_error(other.0.cast_signed())),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::ResourceBusy,
        "the list of interfaces grew each time it was read",
    ))
}

fn interface(adapter: &IP_ADAPTER_ADDRESSES_LH) -> Interface {
    // SAFETY: the call fills this member of the union.
    let index = unsafe { adapter.Anonymous1.Anonymous.IfIndex };
    let length = (adapter.PhysicalAddressLength as usize).min(adapter.PhysicalAddress.len());
    let mut addresses = Vec::new();
    let mut next = adapter.FirstUnicastAddress;
    while !next.is_null() {
        // SAFETY: the list is linked inside the buffer of the adapter.
        let entry = unsafe { &*next };
        // SAFETY: the entry's address is inside that buffer too.
        if let Some(address) = unsafe { ip_of_pointer(entry.Address.lpSockaddr) } {
            addresses.push(InterfaceAddress {
                address,
                prefix_length: entry.OnLinkPrefixLength,
            });
        }
        next = entry.Next;
    }
    Interface {
        // SAFETY: the name ends with a zero.
        name: unsafe { adapter.FriendlyName.to_string() }.unwrap_or_default(),
        index: if index == 0 {
            adapter.Ipv6IfIndex
        } else {
            index
        },
        mac: mac_text(&adapter.PhysicalAddress[..length]),
        mtu: adapter.Mtu,
        up: adapter.OperStatus == IfOperStatusUp,
        loopback: adapter.IfType == TYPE_LOOPBACK,
        addresses,
    }
}

/// # Safety
/// The pointer is null, or points to a socket address that is as long as its family says.
unsafe fn ip_of_pointer(address: *const SOCKADDR) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: every socket address starts with its family.
    match unsafe { (*address).sa_family } {
        AF_INET => {
            // SAFETY: the family says that this is the structure.
            let address = unsafe { address.cast::<SOCKADDR_IN>().read_unaligned() };
            // SAFETY: all members of the union are the same four bytes.
            let bits = unsafe { address.sin_addr.S_un.S_addr };
            Some(IpAddr::from(bits.to_ne_bytes()))
        }
        AF_INET6 => {
            // SAFETY: the family says that this is the structure.
            let address = unsafe { address.cast::<SOCKADDR_IN6>().read_unaligned() };
            // SAFETY: all members of the union are the same sixteen bytes.
            Some(IpAddr::from(unsafe { address.sin6_addr.u.Byte }))
        }
        _ => None,
    }
}

/// A table that the system allocated.
struct RouteTable(*mut MIB_IPFORWARD_TABLE2);

impl Drop for RouteTable {
    fn drop(&mut self) {
        // SAFETY: the table came from the call that documents this as its release.
        unsafe { FreeMibTable(self.0.cast_const().cast()) };
    }
}

pub(in super::super) fn routes() -> Result<Vec<RouteEntry>, MachineError> {
    let mut routes = Vec::new();
    for family in [AF_INET, AF_INET6] {
        let mut table = std::ptr::null_mut();
        // SAFETY: the pointer is ours to fill.
        let code = unsafe { GetIpForwardTable2(family, &raw mut table) };
        code.ok()
            .map_err(|error| MachineError::read("the routes")(error.into()))?;
        let table = RouteTable(table);
        // SAFETY: the call filled the table.
        let count = unsafe { (*table.0).NumEntries } as usize;
        // SAFETY: the rows follow each other behind the count; taking an address reads nothing.
        let first = unsafe {
            (&raw const (*table.0).Table)
                .cast::<windows::Win32::NetworkManagement::IpHelper::MIB_IPFORWARD_ROW2>()
        };
        for at in 0..count {
            // SAFETY: the table has `count` rows. Only numbers are read, and no reference to the
            // whole row is made, because its flags need not be valid as `bool`.
            let entry = unsafe {
                let row = first.add(at);
                route(
                    ip_of(&(*row).DestinationPrefix.Prefix),
                    (*row).DestinationPrefix.PrefixLength,
                    ip_of(&(*row).NextHop),
                    (*row).InterfaceIndex,
                    (*row).Metric,
                    (*row).Protocol.0,
                )
            };
            routes.extend(entry);
        }
    }
    Ok(routes)
}

fn route(
    destination: Option<IpAddr>,
    prefix_length: u8,
    gateway: Option<IpAddr>,
    interface: u32,
    metric: u32,
    protocol: i32,
) -> Option<RouteEntry> {
    Some(RouteEntry {
        destination: IpNet::new(destination?, prefix_length).ok()?,
        gateway: gateway.filter(|gateway| !gateway.is_unspecified()),
        interface_index: Some(interface).filter(|index| *index != 0),
        metric,
        protocol: protocol.cast_unsigned(),
    })
}

fn ip_of(address: &SOCKADDR_INET) -> Option<IpAddr> {
    // SAFETY: every member of the union starts with the family.
    match unsafe { address.si_family } {
        AF_INET => {
            // SAFETY: the family says which member is filled; its union is four bytes.
            let bits = unsafe { address.Ipv4.sin_addr.S_un.S_addr };
            Some(IpAddr::from(Ipv4Addr::from(bits.to_ne_bytes())))
        }
        AF_INET6 => {
            // SAFETY: the family says which member is filled; its union is sixteen bytes.
            let bytes = unsafe { address.Ipv6.sin6_addr.u.Byte };
            Some(IpAddr::from(Ipv6Addr::from(bytes)))
        }
        _ => None,
    }
}
