//! Rules for the pods of a bridge, as text for nft: one table that is ours, replaced as a whole.

use std::fmt::Write as _;

use super::leases::Lease;
use crate::{PortMap, Protocol, RuntimeError};

/// Refuses ports at addresses that no pod of the bridge can be reached by: it has no IPv6.
pub(super) fn check(ports: &[PortMap]) -> Result<(), RuntimeError> {
    let unreachable = ports.iter().find_map(|port| {
        port.host_address
            .filter(|address| address.is_ipv6() && !address.is_unspecified())
    });
    match unreachable {
        Some(address) => Err(RuntimeError::NotSupported(format!(
            "a port at the address {address}: the network of the pods has no IPv6"
        ))),
        None => Ok(()),
    }
}

/// Masquerade for all, the ports of the node that lead into pods, and a guard: what the node serves
/// on its loopback no pod reaches, though the bridge routes such addresses.
pub(super) fn render(table: &str, bridge: &str, subnet: &str, leases: &[&Lease]) -> String {
    let mut rules = String::new();
    for lease in leases {
        for port in &lease.ports {
            let protocol = match port.protocol {
                Protocol::Tcp => "tcp",
                Protocol::Udp => "udp",
                Protocol::Sctp => "sctp",
            };
            let at = match port.host_address {
                Some(address) if address.is_ipv4() && !address.is_unspecified() => {
                    format!("ip daddr {address} ")
                }
                // Those of IPv6 were refused; one that an older version let in leads nowhere.
                Some(address) if !address.is_unspecified() => continue,
                _ => String::new(),
            };
            // Writing to a text cannot fail.
            let _ = writeln!(
                rules,
                "    {at}{protocol} dport {} dnat to {}:{}",
                port.host_port, lease.address, port.container_port
            );
        }
    }
    format!(
        "table ip {table}\ndelete table ip {table}\ntable ip {table} {{\n  \
         chain ports {{\n{rules}  }}\n  \
         chain guard {{\n    type filter hook prerouting priority -150;\n    \
         iifname \"{bridge}\" ip daddr 127.0.0.0/8 drop\n  }}\n  \
         chain incoming {{\n    type nat hook prerouting priority -100;\n    fib daddr type local jump ports\n  }}\n  \
         chain outgoing {{\n    type nat hook output priority -100;\n    fib daddr type local jump ports\n  }}\n  \
         chain leaving {{\n    type nat hook postrouting priority 100;\n    \
         ip saddr {subnet} oifname != \"{bridge}\" masquerade\n    \
         ip saddr {subnet} ip daddr {subnet} ct status dnat masquerade\n    \
         ip saddr 127.0.0.0/8 oifname \"{bridge}\" masquerade\n  }}\n}}\n"
    )
}

/// Takes the table away, if it is there.
pub(super) fn render_removal(table: &str) -> String {
    format!("table ip {table}\ndelete table ip {table}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_pods_for_the_loopback_of_the_node_is_dropped() {
        let text = render("t", "b", "10.0.0.0/24", &[]);
        let rule = "iifname \"b\" ip daddr 127.0.0.0/8 drop\n";
        assert!(text.contains(rule), "{text}");
    }

    #[test]
    fn a_port_at_an_address_that_no_pod_has_is_refused_and_never_opened_elsewhere() {
        let port = |address: &str| PortMap {
            protocol: Protocol::Tcp,
            container_port: 80,
            host_port: 8080,
            host_address: Some(address.parse().expect("an address")),
        };
        assert!(check(&[port("127.0.0.1"), port("0.0.0.0"), port("::")]).is_ok());
        let refused = check(&[port("::1")]);
        assert!(
            matches!(refused, Err(RuntimeError::NotSupported(_))),
            "{refused:?}"
        );
        let lease = Lease {
            address: "10.0.0.2".parse().expect("an address"),
            ports: vec![port("::1")],
        };
        let text = render("t", "b", "10.0.0.0/24", &[&lease]);
        assert!(!text.contains("dnat to"), "{text}");
    }

    #[test]
    fn ports_of_the_node_lead_to_the_pod_and_only_there() {
        let lease = Lease {
            address: "10.0.0.2".parse().expect("an address"),
            ports: vec![PortMap {
                protocol: Protocol::Udp,
                container_port: 53,
                host_port: 5353,
                host_address: Some("192.0.2.1".parse().expect("an address")),
            }],
        };
        let text = render("t", "b", "10.0.0.0/24", &[&lease]);
        assert!(
            text.contains("ip daddr 192.0.2.1 udp dport 5353 dnat to 10.0.0.2:53\n"),
            "{text}"
        );
        assert!(
            text.starts_with("table ip t\ndelete table ip t\n"),
            "the table is replaced in one step"
        );
    }
}
