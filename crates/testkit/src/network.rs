//! Addresses of a lab and the cables between its switch and its hosts. A lab's subnet is none that
//! the machine has a route to, so a packet that got out by mistake could not hit anything.

use std::io::Write as _;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result, bail};
use fs_err as fs;

use crate::init::{SEARCH_PATH, TIMEOUT};
use crate::namespaces::{Namespaces, Scope};

/// Labs take a /24 of this /9, which people rarely use for networks of their own.
const POOL: u32 = u32::from_be_bytes([10, 128, 0, 0]);
/// How many /24 the pool has.
const POOL_SIZE: u32 = 1 << 15;
/// The last byte that a host may have.
const LAST_HOST: u8 = 254;

/// The network of one lab, always a /24.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Subnet(u32);

impl Subnet {
    /// Picks a subnet that the machine has no route to and that other labs are unlikely to have.
    pub(crate) fn pick() -> Result<Self> {
        static LABS: AtomicU32 = AtomicU32::new(0);
        let routes = parse_routes(&fs::read_to_string("/proc/net/route")?)?;
        // A multiplier without a common divisor spreads neighbouring process ids over the pool.
        let spread = std::process::id().wrapping_mul(251);
        let first = spread.wrapping_add(LABS.fetch_add(1, Ordering::Relaxed));
        Self::first_free(first, &routes).context("the machine has a route to every lab subnet")
    }

    fn first_free(first: u32, routes: &[Route]) -> Option<Self> {
        (0..POOL_SIZE)
            .map(|step| Self(POOL + (first.wrapping_add(step) % POOL_SIZE) * 256))
            .find(|subnet| !routes.iter().any(|route| route.overlaps(*subnet)))
    }

    /// The address of the lab's switch, every host's way out.
    pub(crate) fn switch(self) -> Ipv4Addr {
        Ipv4Addr::from(self.0 + 1)
    }

    /// The address of the host with this place on the switch, counted from 0.
    pub(crate) fn host(self, place: usize) -> Result<Ipv4Addr> {
        match u8::try_from(place)
            .ok()
            .and_then(|place| place.checked_add(2))
        {
            Some(last) if last <= LAST_HOST => Ok(Ipv4Addr::from(self.0 + u32::from(last))),
            _ => bail!("a lab has room for {} hosts", LAST_HOST - 1),
        }
    }
}

/// A destination that the machine knows a way to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Route {
    network: u32,
    mask: u32,
}

impl Route {
    fn overlaps(self, subnet: Subnet) -> bool {
        let common = self.mask & 0xffff_ff00;
        self.network & common == subnet.0 & common
    }
}

/// Reads `/proc/net/route`, without the default route: that one leads everywhere.
fn parse_routes(table: &str) -> Result<Vec<Route>> {
    let mut routes = Vec::new();
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |index: usize| -> Result<u32> {
            let field = fields.get(index).context("too few columns")?;
            // The kernel prints the bytes of the network order as one number of the machine.
            Ok(u32::from_be(u32::from_str_radix(field, 16)?))
        };
        let route = (|| {
            Ok::<_, anyhow::Error>(Route {
                network: number(1)?,
                mask: number(7)?,
            })
        })()
        .with_context(|| format!("unexpected line in /proc/net/route: {line}"))?;
        if route.mask != 0 {
            routes.push(route);
        }
    }
    Ok(routes)
}

/// The commands that make the switch, for `ip -batch`, run by the lab's keeper.
pub(crate) fn switch_commands(subnet: Subnet) -> String {
    // The last route answers at once to whoever tries to leave the lab, instead of a time-out.
    format!(
        "link set lo up\n\
         link add switch type bridge stp_state 0 forward_delay 0 mcast_snooping 0\n\
         addr add {}/24 dev switch\n\
         link set switch up\n\
         route add unreachable default\n",
        subnet.switch()
    )
}

/// Plugs the host whose process is `process` into the switch and gives it its address.
pub(crate) fn connect(
    switch: &Namespaces,
    host: &Namespaces,
    process: u32,
    subnet: Subnet,
    address: Ipv4Addr,
) -> Result<()> {
    let port = port(address);
    let cable = format!(
        "link add {port} type veth peer name eth0 address {} netns {process}\n\
         link set {port} master switch up\n",
        hardware_address(address)
    );
    ip(switch, &cable).context("could not plug the host into the switch")?;
    let own = format!(
        "link set lo up\n\
         addr add {address}/24 dev eth0\n\
         link set eth0 up\n\
         route add default via {}\n",
        subnet.switch()
    );
    ip(host, &own).context("could not give the host its address")
}

/// Takes the cable of a host away.
pub(crate) fn disconnect(switch: &Namespaces, address: Ipv4Addr) -> Result<()> {
    ip(switch, &format!("link del {}\n", port(address))).context("could not unplug the host")
}

/// Switches the port of a host on or off, as when its cable is pulled: the host sees no carrier.
pub(crate) fn set_link(switch: &Namespaces, address: Ipv4Addr, up: bool) -> Result<()> {
    let state = if up { "up" } else { "down" };
    ip(switch, &format!("link set {} {state}\n", port(address)))
        .with_context(|| format!("could not set the link of the host {state}"))
}

/// The same after each start: others remember it, and would talk to the old one for seconds.
fn hardware_address(address: Ipv4Addr) -> String {
    let [first, second, third, fourth] = address.octets();
    format!("02:00:{first:02x}:{second:02x}:{third:02x}:{fourth:02x}")
}

fn port(address: Ipv4Addr) -> String {
    format!("port{}", address.octets()[3])
}

fn ip(namespaces: &Namespaces, commands: &str) -> Result<()> {
    namespaces.enter(Scope::Network, || {
        let seconds = TIMEOUT.as_secs().to_string();
        let mut child = Command::new("timeout")
            .args([&seconds, "ip", "-batch", "-"])
            .env("PATH", SEARCH_PATH)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("could not start `timeout` (package coreutils)")?;
        let mut input = child.stdin.take().context("`timeout` has no input")?;
        input.write_all(commands.as_bytes())?;
        drop(input);
        let output = child.wait_with_output()?;
        if !output.status.success() {
            bail!(
                "ip (package iproute2) said: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n\
        eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\n\
        eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\n\
        tun0\t0000800A\t00000000\t0001\t0\t0\t0\t0000FCFF\n";

    #[test]
    fn routes_are_read_without_the_default_one() {
        let routes = parse_routes(TABLE).unwrap();
        let network = |bytes: [u8; 4]| u32::from_be_bytes(bytes);
        assert_eq!(
            routes,
            [
                Route {
                    network: network([192, 0, 2, 0]),
                    mask: network([255, 255, 255, 0])
                },
                Route {
                    network: network([10, 128, 0, 0]),
                    mask: network([255, 252, 0, 0])
                },
            ]
        );
    }

    #[test]
    fn a_line_that_is_no_route_is_refused() {
        let error = parse_routes("header\neth0\tnonsense\n").unwrap_err();
        assert!(error.to_string().contains("eth0\tnonsense"), "{error}");
    }

    #[test]
    fn a_subnet_that_the_machine_has_a_route_to_is_passed_over() {
        let routes = parse_routes(TABLE).unwrap();
        // The route covers 10.128.0.0 to 10.131.255.255.
        let subnet = Subnet::first_free(0, &routes).unwrap();
        assert_eq!(subnet.switch(), Ipv4Addr::new(10, 132, 0, 1));
    }

    #[test]
    fn a_route_to_a_single_address_inside_of_a_subnet_counts() {
        let single = Route {
            network: POOL + 77,
            mask: u32::MAX,
        };
        let subnet = Subnet::first_free(0, &[single]).unwrap();
        assert_eq!(subnet.switch(), Ipv4Addr::new(10, 128, 1, 1));
    }

    #[test]
    fn a_machine_with_routes_to_all_of_the_pool_gets_no_subnet() {
        let whole = Route {
            network: u32::from_be_bytes([10, 0, 0, 0]),
            mask: 0xff00_0000,
        };
        assert_eq!(Subnet::first_free(0, &[whole]), None);
    }

    #[test]
    fn hosts_are_counted_from_two_and_end_before_the_broadcast_address() {
        let subnet = Subnet::first_free(5, &[]).unwrap();
        assert_eq!(subnet.host(0).unwrap(), Ipv4Addr::new(10, 128, 5, 2));
        assert_eq!(subnet.host(252).unwrap(), Ipv4Addr::new(10, 128, 5, 254));
        assert!(subnet.host(253).is_err());
        assert!(subnet.host(1000).is_err());
    }
}
