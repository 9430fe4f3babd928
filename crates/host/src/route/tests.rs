//! Golden commands of route operations, and what is refused.

use std::fmt::Write as _;

use super::*;

fn route(destination: &str, gateway: Option<&str>, interface: InterfaceRef) -> Route {
    Route {
        destination: destination.parse().unwrap(),
        gateway: gateway.map(|gateway| gateway.parse().unwrap()),
        interface,
        metric: None,
    }
}

fn name(name: &str) -> InterfaceRef {
    InterfaceRef::Name(name.to_owned())
}

fn rendered(os: Os, routes: &[Route]) -> String {
    let mut text = String::new();
    for route in routes {
        for operation in [
            RouteOperation::Add(route.clone()),
            RouteOperation::Replace(route.clone()),
            RouteOperation::Remove(route.clone()),
        ] {
            for command in operation.render_commands(os).unwrap() {
                writeln!(text, "{command}").unwrap();
            }
        }
    }
    text
}

#[test]
fn linux_routes_carry_our_protocol() {
    let with_metric = Route {
        metric: Some(100),
        ..route("10.42.3.0/24", Some("192.168.0.13"), name("eth0"))
    };
    insta::assert_snapshot!(rendered(
        Os::Linux,
        &[
            with_metric,
            route("169.254.169.250/32", None, name("transom0")),
            route("fd00:42::/64", Some("fe80::1"), name("eth0")),
            route("0.0.0.0/0", Some("10.0.0.1"), name("eth0")),
        ]
    ), @r###"
ip -4 route add 10.42.3.0/24 via 192.168.0.13 dev eth0 metric 100 proto 84
ip -4 route replace 10.42.3.0/24 via 192.168.0.13 dev eth0 metric 100 proto 84
ip -4 route del 10.42.3.0/24 via 192.168.0.13 dev eth0 metric 100 proto 84
ip -4 route add 169.254.169.250/32 dev transom0 proto 84
ip -4 route replace 169.254.169.250/32 dev transom0 proto 84
ip -4 route del 169.254.169.250/32 dev transom0 proto 84
ip -6 route add fd00:42::/64 via fe80::1 dev eth0 proto 84
ip -6 route replace fd00:42::/64 via fe80::1 dev eth0 proto 84
ip -6 route del fd00:42::/64 via fe80::1 dev eth0 proto 84
ip -4 route add 0.0.0.0/0 via 10.0.0.1 dev eth0 proto 84
ip -4 route replace 0.0.0.0/0 via 10.0.0.1 dev eth0 proto 84
ip -4 route del 0.0.0.0/0 via 10.0.0.1 dev eth0 proto 84
"###);
}

#[test]
fn windows_routes_are_told_to_netsh() {
    let with_metric = Route {
        metric: Some(100),
        ..route("10.42.3.0/24", Some("192.168.0.13"), InterfaceRef::Index(7))
    };
    insta::assert_snapshot!(rendered(
        Os::Windows,
        &[
            with_metric,
            route("169.254.169.250/32", None, name("vEthernet (nat)")),
            route("fd00:42::/64", Some("fe80::1"), InterfaceRef::Index(12)),
        ]
    ), @r###"
netsh.exe interface ipv4 add route prefix=10.42.3.0/24 interface=7 nexthop=192.168.0.13 metric=100 store=active
netsh.exe interface ipv4 delete route prefix=10.42.3.0/24 interface=7 nexthop=192.168.0.13 store=active (may fail)
netsh.exe interface ipv4 add route prefix=10.42.3.0/24 interface=7 nexthop=192.168.0.13 metric=100 store=active
netsh.exe interface ipv4 delete route prefix=10.42.3.0/24 interface=7 nexthop=192.168.0.13 store=active
netsh.exe interface ipv4 add route prefix=169.254.169.250/32 "interface=vEthernet (nat)" store=active
netsh.exe interface ipv4 delete route prefix=169.254.169.250/32 "interface=vEthernet (nat)" store=active (may fail)
netsh.exe interface ipv4 add route prefix=169.254.169.250/32 "interface=vEthernet (nat)" store=active
netsh.exe interface ipv4 delete route prefix=169.254.169.250/32 "interface=vEthernet (nat)" store=active
netsh.exe interface ipv6 add route prefix=fd00:42::/64 interface=12 nexthop=fe80::1 store=active
netsh.exe interface ipv6 delete route prefix=fd00:42::/64 interface=12 nexthop=fe80::1 store=active (may fail)
netsh.exe interface ipv6 add route prefix=fd00:42::/64 interface=12 nexthop=fe80::1 store=active
netsh.exe interface ipv6 delete route prefix=fd00:42::/64 interface=12 nexthop=fe80::1 store=active
"###);
}

#[test]
fn a_destination_with_host_bits_is_refused_with_the_one_that_is_meant() {
    let error = RouteOperation::Add(route("10.42.3.7/24", None, name("eth0")))
        .render_commands(Os::Linux)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the destination `10.42.3.7/24` has bits beyond its prefix: `10.42.3.0/24` is meant"
    );
}

#[test]
fn a_gateway_must_be_one_and_of_the_same_family() {
    let refused = |gateway: &str| {
        RouteOperation::Add(route("10.0.0.0/8", Some(gateway), name("eth0")))
            .render_commands(Os::Linux)
            .unwrap_err()
    };
    assert!(matches!(refused("fe80::1"), RouteError::OtherFamily { .. }));
    assert!(matches!(refused("0.0.0.0"), RouteError::NoGateway { .. }));
    assert!(matches!(refused("224.0.0.1"), RouteError::NoGateway { .. }));
}

#[test]
fn interface_names_that_a_command_could_misread_are_refused() {
    let refused = |os: Os, interface: InterfaceRef| {
        RouteOperation::Add(route("10.0.0.0/8", None, interface))
            .render_commands(os)
            .unwrap_err()
    };
    for bad in ["", "-6", "eth 0", "eth0/1", "sixteen-letters!", "eth\n0"] {
        assert!(
            matches!(
                refused(Os::Linux, name(bad)),
                RouteError::InterfaceName { .. }
            ),
            "{bad:?}"
        );
    }
    for bad in ["", "17", "a\"b", "a=b", "-x"] {
        assert!(
            matches!(
                refused(Os::Windows, name(bad)),
                RouteError::InterfaceName { .. }
            ),
            "{bad:?}"
        );
    }
    assert_eq!(
        refused(Os::Windows, InterfaceRef::Index(0)),
        RouteError::InterfaceIndex
    );
    assert!(matches!(
        refused(Os::Linux, InterfaceRef::Index(3)),
        RouteError::InterfaceForm { .. }
    ));
}
