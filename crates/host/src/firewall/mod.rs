//! Firewall operations as data; executors come with the network. Every rule carries our mark (the
//! nftables table `transom`, the Windows rule group `Transom`), and no other rule is ever named.

use std::fmt;

use ipnet::IpNet;
use transom_model::Os;

use crate::route::command::{PlannedCommand, powershell_quoted};

/// The nftables table that holds our rules and nothing else.
pub const NFT_TABLE: &str = "transom";
/// The group that marks a Windows rule as ours.
pub const WINDOWS_GROUP: &str = "Transom";

/// A change of the host's firewall.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FirewallOperation {
    /// Puts the rule in place, instead of an earlier one of the same name.
    Allow(Rule),
    /// Removes a rule of ours; there need not be one.
    Remove { name: String, direction: Direction },
}

/// Traffic that may pass.
///
/// # Platform behavior
/// A Windows rule opens the port. On Linux it accepts the traffic in our own table: a drop in a
/// table of someone else still wins, since nftables has no way to overrule it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rule {
    /// Lower-case letters, digits and hyphens; one rule per name and direction.
    pub name: String,
    pub protocol: Protocol,
    /// At least one.
    pub ports: Vec<PortRange>,
    /// The other side's addresses; empty for anyone.
    pub peers: Vec<IpNet>,
    pub direction: Direction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    Tcp,
    Udp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    Inbound,
    Outbound,
}

/// Ports from `first` to `last`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortRange {
    pub first: u16,
    pub last: u16,
}

impl From<u16> for PortRange {
    fn from(port: u16) -> Self {
        Self {
            first: port,
            last: port,
        }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

/// Why an operation is not rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FirewallError {
    #[error(
        "`{name}` is not a rule name: use up to 48 lower-case letters, digits and hyphens, a letter first"
    )]
    Name { name: String },
    #[error("the rule `{rule}` names no port")]
    NoPorts { rule: String },
    #[error("the rule `{rule}` names port 0, which no program can listen on")]
    PortZero { rule: String },
    #[error("the rule `{rule}` has the port range `{range}`, which ends before it starts")]
    PortOrder { rule: String, range: PortRange },
    #[error(
        "the rule `{rule}` has the peer `{peer}` with bits beyond its prefix: `{meant}` is meant"
    )]
    HostBits {
        rule: String,
        peer: IpNet,
        meant: IpNet,
    },
}

impl FirewallOperation {
    /// The commands that an executor on `os` would run, in order.
    pub fn render_commands(&self, os: Os) -> Result<Vec<PlannedCommand>, FirewallError> {
        match self {
            Self::Allow(rule) => rule.check()?,
            Self::Remove { name, .. } => check_name(name)?,
        }
        Ok(vec![match os {
            Os::Linux => PlannedCommand::new("nft", vec!["-f".to_owned(), "-".to_owned()])
                .with_input(self.render_nft()),
            Os::Windows => PlannedCommand::powershell(&self.render_powershell()),
        }])
    }

    /// One transaction. The chain is declared before it is emptied, so that neither the first run
    /// nor a repeated removal fails.
    fn render_nft(&self) -> String {
        let (name, direction) = match self {
            Self::Allow(rule) => (&rule.name, rule.direction),
            Self::Remove { name, direction } => (name, *direction),
        };
        let hook = direction.nft_hook();
        let chain = format!("inet {NFT_TABLE} {hook}-{name}");
        let mut lines = vec![
            format!("add table inet {NFT_TABLE}"),
            format!(
                "add chain {chain} {{ type filter hook {hook} priority filter; policy accept; }}"
            ),
            format!("flush chain {chain}"),
        ];
        match self {
            Self::Allow(rule) => lines.extend(
                rule.nft_matches()
                    .into_iter()
                    .map(|matches| format!("add rule {chain} {matches} accept")),
            ),
            Self::Remove { .. } => lines.push(format!("delete chain {chain}")),
        }
        lines.push(String::new());
        lines.join("\n")
    }

    fn render_powershell(&self) -> String {
        let (name, direction) = match self {
            Self::Allow(rule) => (&rule.name, rule.direction),
            Self::Remove { name, direction } => (name, *direction),
        };
        let id = powershell_quoted(&format!("transom-{}-{name}", direction.nft_hook()));
        let group = powershell_quoted(WINDOWS_GROUP);
        let remove = format!(
            "Get-NetFirewallRule -Name {id} -ErrorAction SilentlyContinue | Where-Object Group -EQ {group} | Remove-NetFirewallRule"
        );
        match self {
            Self::Remove { .. } => remove,
            Self::Allow(rule) => format!(
                "{remove}; New-NetFirewallRule -Name {id} -DisplayName {display} -Group {group} {conditions} -Action Allow | Out-Null",
                display = powershell_quoted(&format!("Transom: {name}")),
                conditions = rule.powershell_conditions(),
            ),
        }
    }
}

impl Direction {
    const fn nft_hook(self) -> &'static str {
        match self {
            Self::Inbound => "input",
            Self::Outbound => "output",
        }
    }
}

impl Rule {
    fn check(&self) -> Result<(), FirewallError> {
        check_name(&self.name)?;
        let rule = || self.name.clone();
        if self.ports.is_empty() {
            return Err(FirewallError::NoPorts { rule: rule() });
        }
        for range in &self.ports {
            if range.first == 0 {
                return Err(FirewallError::PortZero { rule: rule() });
            }
            if range.last < range.first {
                return Err(FirewallError::PortOrder {
                    rule: rule(),
                    range: *range,
                });
            }
        }
        match self.peers.iter().find(|peer| peer.trunc() != **peer) {
            Some(peer) => Err(FirewallError::HostBits {
                rule: rule(),
                peer: *peer,
                meant: peer.trunc(),
            }),
            None => Ok(()),
        }
    }

    /// One match per address family that the peers have.
    fn nft_matches(&self) -> Vec<String> {
        let protocol = match self.protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
        };
        let ports = format!("{protocol} dport {{ {} }}", joined(&self.ports, ", "));
        if self.peers.is_empty() {
            return vec![ports];
        }
        let side = match self.direction {
            Direction::Inbound => "saddr",
            Direction::Outbound => "daddr",
        };
        let (v4, v6): (Vec<&IpNet>, Vec<&IpNet>) = self
            .peers
            .iter()
            .partition(|peer| matches!(peer, IpNet::V4(_)));
        [("ip", v4), ("ip6", v6)]
            .into_iter()
            .filter(|(_, peers)| !peers.is_empty())
            .map(|(family, peers)| {
                format!("{family} {side} {{ {} }} {ports}", joined(&peers, ", "))
            })
            .collect()
    }

    fn powershell_conditions(&self) -> String {
        let (direction, port_side) = match self.direction {
            Direction::Inbound => ("Inbound", "LocalPort"),
            Direction::Outbound => ("Outbound", "RemotePort"),
        };
        let protocol = match self.protocol {
            Protocol::Tcp => "TCP",
            Protocol::Udp => "UDP",
        };
        let list = |items: Vec<String>| {
            let quoted: Vec<String> = items.iter().map(|item| powershell_quoted(item)).collect();
            format!("@({})", quoted.join(", "))
        };
        let ports = list(self.ports.iter().map(ToString::to_string).collect());
        let mut conditions =
            format!("-Direction {direction} -Protocol {protocol} -{port_side} {ports}");
        if !self.peers.is_empty() {
            let peers = list(self.peers.iter().map(ToString::to_string).collect());
            conditions.push_str(" -RemoteAddress ");
            conditions.push_str(&peers);
        }
        conditions
    }
}

fn joined(items: &[impl ToString], separator: &str) -> String {
    let texts: Vec<String> = items.iter().map(ToString::to_string).collect();
    texts.join(separator)
}

fn check_name(name: &str) -> Result<(), FirewallError> {
    let fits = (1..=48).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    if fits {
        Ok(())
    } else {
        Err(FirewallError::Name {
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests;
