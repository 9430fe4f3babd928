//! Route operations as data; executors come with the network. An operation renders to the exact
//! commands an executor would run, so a plan for either system can be printed on either system.

pub mod command;

use std::net::IpAddr;

use ipnet::IpNet;
use transom_model::Os;

use command::PlannedCommand;

/// The routing protocol number that marks a Linux route as ours (84 is `T`).
pub const ROUTE_PROTOCOL: u8 = 84;

/// A change of the routing table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RouteOperation {
    /// Fails when the route is there already.
    Add(Route),
    /// Puts the route in place of one with the same destination, if there is one. A planner asks for
    /// this only where it has seen that the present route is ours.
    Replace(Route),
    /// Removes a route of ours.
    Remove(Route),
}

/// Where packets for a destination go.
///
/// # Platform behavior
/// On Linux a route carries our protocol number, so a removal can only hit a route of ours. Windows
/// routes carry no mark: the executor keeps a journal of what it added and removes nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Route {
    pub destination: IpNet,
    /// None for a destination that is directly on the interface.
    pub gateway: Option<IpAddr>,
    pub interface: InterfaceRef,
    pub metric: Option<u32>,
}

/// How a route names its interface.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum InterfaceRef {
    Name(String),
    Index(u32),
}

/// Why an operation is not rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    #[error("the destination `{destination}` has bits beyond its prefix: `{meant}` is meant")]
    HostBits { destination: IpNet, meant: IpNet },
    #[error(
        "the gateway `{gateway}` and the destination `{destination}` are of different families"
    )]
    OtherFamily { gateway: IpAddr, destination: IpNet },
    #[error("`{gateway}` cannot be a gateway")]
    NoGateway { gateway: IpAddr },
    #[error("`{name}` is not an interface name on {os}")]
    InterfaceName { name: String, os: Os },
    #[error("an interface has no index 0")]
    InterfaceIndex,
    #[error("on {os} the interface of the route to `{destination}` must be given by {by}")]
    InterfaceForm {
        os: Os,
        destination: IpNet,
        by: &'static str,
    },
}

impl RouteOperation {
    pub const fn route(&self) -> &Route {
        match self {
            Self::Add(route) | Self::Replace(route) | Self::Remove(route) => route,
        }
    }

    /// The commands that an executor on `os` would run, in order.
    pub fn render_commands(&self, os: Os) -> Result<Vec<PlannedCommand>, RouteError> {
        let route = self.route();
        route.check(os)?;
        match os {
            Os::Linux => self.render_linux().map(|command| vec![command]),
            Os::Windows => Ok(self.render_windows()),
        }
    }

    fn render_linux(&self) -> Result<PlannedCommand, RouteError> {
        let route = self.route();
        let InterfaceRef::Name(device) = &route.interface else {
            return Err(RouteError::InterfaceForm {
                os: Os::Linux,
                destination: route.destination,
                by: "name",
            });
        };
        let verb = match self {
            Self::Add(_) => "add",
            Self::Replace(_) => "replace",
            Self::Remove(_) => "del",
        };
        let family = if route.is_v4() { "-4" } else { "-6" };
        let mut arguments = vec![
            family.to_owned(),
            "route".to_owned(),
            verb.to_owned(),
            route.destination.to_string(),
        ];
        if let Some(gateway) = route.gateway {
            arguments.extend(["via".to_owned(), gateway.to_string()]);
        }
        arguments.extend(["dev".to_owned(), device.clone()]);
        if let Some(metric) = route.metric {
            arguments.extend(["metric".to_owned(), metric.to_string()]);
        }
        arguments.extend(["proto".to_owned(), ROUTE_PROTOCOL.to_string()]);
        Ok(PlannedCommand::new("ip", arguments))
    }

    fn render_windows(&self) -> Vec<PlannedCommand> {
        let route = self.route();
        let add = || {
            let mut arguments = route.netsh("add");
            arguments.extend(route.metric.map(|metric| format!("metric={metric}")));
            // The executor puts its routes back after a boot; a route that outlives our knowledge
            // of it would be nobody's.
            arguments.push("store=active".to_owned());
            PlannedCommand::new("netsh.exe", arguments)
        };
        let delete = || {
            let mut arguments = route.netsh("delete");
            arguments.push("store=active".to_owned());
            PlannedCommand::new("netsh.exe", arguments)
        };
        match self {
            Self::Add(_) => vec![add()],
            // `set route` fails for a route that is not there yet.
            Self::Replace(_) => vec![delete().may_fail(), add()],
            Self::Remove(_) => vec![delete()],
        }
    }
}

impl Route {
    fn is_v4(&self) -> bool {
        matches!(self.destination, IpNet::V4(_))
    }

    fn netsh(&self, verb: &str) -> Vec<String> {
        let interface = match &self.interface {
            InterfaceRef::Name(name) => name.clone(),
            InterfaceRef::Index(index) => index.to_string(),
        };
        let mut arguments = vec![
            "interface".to_owned(),
            if self.is_v4() { "ipv4" } else { "ipv6" }.to_owned(),
            verb.to_owned(),
            "route".to_owned(),
            format!("prefix={}", self.destination),
            format!("interface={interface}"),
        ];
        arguments.extend(self.gateway.map(|gateway| format!("nexthop={gateway}")));
        arguments
    }

    fn check(&self, os: Os) -> Result<(), RouteError> {
        let meant = self.destination.trunc();
        if meant != self.destination {
            return Err(RouteError::HostBits {
                destination: self.destination,
                meant,
            });
        }
        if let Some(gateway) = self.gateway {
            if gateway.is_ipv4() != self.is_v4() {
                return Err(RouteError::OtherFamily {
                    gateway,
                    destination: self.destination,
                });
            }
            if gateway.is_unspecified() || gateway.is_multicast() {
                return Err(RouteError::NoGateway { gateway });
            }
        }
        match &self.interface {
            InterfaceRef::Index(0) => Err(RouteError::InterfaceIndex),
            InterfaceRef::Name(name) if !is_interface_name(name, os) => {
                Err(RouteError::InterfaceName {
                    name: name.clone(),
                    os,
                })
            }
            InterfaceRef::Index(_) | InterfaceRef::Name(_) => Ok(()),
        }
    }
}

/// Whether the kernel could have given an interface this name, and no command misreads it.
fn is_interface_name(name: &str, os: Os) -> bool {
    let length = match os {
        // `IFNAMSIZ`, without the zero at its end.
        Os::Linux => 15,
        // `IF_MAX_STRING_SIZE`.
        Os::Windows => 256,
    };
    let fits = (1..=length).contains(&name.len()) && !name.starts_with('-');
    fits && match os {
        Os::Linux => {
            !matches!(name, "." | "..")
                && name
                    .chars()
                    .all(|c| c.is_ascii_graphic() && !matches!(c, '/' | ':' | '%'))
        }
        // A name of digits only would be taken for an index.
        Os::Windows => {
            !name.chars().any(|c| c.is_control() || c == '"' || c == '=')
                && !name.chars().all(|c| c.is_ascii_digit())
        }
    }
}

#[cfg(test)]
mod tests;
