//! What is known about a machine, the same on both systems. Sizes are bytes; an `Option` is a fact
//! that one of the systems, or this machine, does not have.

use std::net::IpAddr;

use camino::Utf8PathBuf;
use ipnet::IpNet;
use serde::Serialize;
use transom_model::windows::WindowsVersion;
use transom_model::{Arch, Os};

/// Name, build, kernel, architecture and host name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct System {
    pub os: Os,
    /// For people: `Debian GNU/Linux 12 (bookworm)`, `Windows Server 2022`.
    pub pretty_name: String,
    pub kernel: String,
    /// None for an architecture that no node can have.
    pub arch: Option<Arch>,
    pub host_name: String,
    /// Windows only.
    pub windows_version: Option<WindowsVersion>,
    /// Windows only: `ServerDatacenter`.
    pub edition: Option<String>,
    /// Windows only: `Server`, `Server Core`, `Nano Server` or `Client`.
    pub installation: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Memory {
    pub total: u64,
    /// What programs could get without swapping.
    pub available: u64,
    pub swap_total: u64,
    pub swap_free: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Processors {
    /// Logical processors of the machine.
    pub logical: usize,
    /// How many of them this process may use, by affinity and quota.
    pub allowed: usize,
}

/// Processes that run or wait to, averaged over one, five and fifteen minutes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Load {
    pub one: f64,
    pub five: f64,
    pub fifteen: f64,
}

/// A mounted file system or volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Disk {
    pub mount_point: Utf8PathBuf,
    pub file_system: String,
    pub read_only: bool,
    /// On another machine: its size is not asked for, as the answer may never come.
    pub remote: bool,
    pub size: Option<u64>,
    /// What an ordinary user could still write.
    pub free: Option<u64>,
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interface {
    pub name: String,
    pub index: u32,
    /// Lower-case with colons; None for interfaces that have none.
    pub mac: Option<String>,
    pub mtu: u32,
    pub up: bool,
    pub loopback: bool,
    pub addresses: Vec<InterfaceAddress>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct InterfaceAddress {
    pub address: IpAddr,
    pub prefix_length: u8,
}

/// A route as the system has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RouteEntry {
    pub destination: IpNet,
    pub gateway: Option<IpAddr>,
    pub interface_index: Option<u32>,
    pub metric: u32,
    /// Who made the route; [`crate::route::ROUTE_PROTOCOL`] marks ours on Linux.
    pub protocol: u32,
}

/// What is around the system. Hints, not proof.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Surroundings {
    /// The name of the machine's maker and model, if it tells one of a hypervisor.
    pub hypervisor: Option<String>,
    /// The kind of container that this system runs in.
    pub container: Option<String>,
    /// The version of Wine, if this is Wine rather than Windows.
    pub wine: Option<String>,
}

/// Firmware names by which hypervisors are known.
const HYPERVISORS: &[(&str, &str)] = &[
    ("Microsoft Corporation Virtual Machine", "Hyper-V"),
    ("QEMU", "QEMU"),
    ("KVM", "KVM"),
    ("VMware", "VMware"),
    ("VirtualBox", "VirtualBox"),
    ("innotek", "VirtualBox"),
    ("Xen", "Xen"),
    ("Amazon EC2", "Amazon EC2"),
    ("Google Compute Engine", "Google Compute Engine"),
    ("Parallels", "Parallels"),
    ("OpenStack", "OpenStack"),
    ("Firecracker", "Firecracker"),
];

/// The hypervisor that a machine's maker and model stand for.
pub(crate) fn hypervisor_of(firmware: &str) -> Option<String> {
    HYPERVISORS
        .iter()
        .find(|(part, _)| firmware.contains(part))
        .map(|(_, name)| (*name).to_owned())
}

pub(crate) fn default_route(routes: &[RouteEntry]) -> Option<&RouteEntry> {
    routes
        .iter()
        .filter(|route| route.destination.prefix_len() == 0)
        .min_by_key(|route| (matches!(route.destination, IpNet::V6(_)), route.metric))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(destination: &str, metric: u32) -> RouteEntry {
        RouteEntry {
            destination: destination.parse().unwrap(),
            gateway: None,
            interface_index: Some(1),
            metric,
            protocol: 0,
        }
    }

    #[test]
    fn the_default_route_is_the_cheapest_one_of_ipv4() {
        let routes = [
            route("::/0", 1),
            route("0.0.0.0/0", 200),
            route("0.0.0.0/0", 100),
            route("0.0.0.0/1", 0),
        ];
        assert_eq!(default_route(&routes), Some(&routes[2]));
        assert_eq!(default_route(&routes[..1]), Some(&routes[0]));
        assert_eq!(default_route(&routes[3..]), None);
    }

    #[test]
    fn a_maker_that_is_no_hypervisor_tells_nothing() {
        assert_eq!(
            hypervisor_of("Microsoft Corporation Virtual Machine").as_deref(),
            Some("Hyper-V")
        );
        assert_eq!(hypervisor_of("Microsoft Corporation Surface Pro"), None);
        assert_eq!(hypervisor_of(""), None);
    }
}
