//! What this machine can do for a cluster. Looking (one file per system) and judging (pure, for both
//! systems on both) are apart, so a judgement about any machine can be tested on any other.

mod facts;
mod judgement;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub use linux::{observe, observe_and_judge};
#[cfg(windows)]
pub use windows::{observe, observe_and_judge};

use std::io;
use std::net::{Ipv4Addr, TcpListener};

use serde::Serialize;

pub use facts::{
    Capability, CgroupFacts, CgroupMode, LinuxFacts, PortState, Runtime, WindowsFacts,
    WindowsService,
};
pub use judgement::{judge_linux, judge_windows};

/// TCP ports that a server or node listens on, and what for.
pub const PORTS: &[(u16, &str, Purpose)] = &[
    (6443, "the API", Purpose::Server),
    (2379, "an etcd store", Purpose::Server),
    (8086, "the bootstrap server", Purpose::Server),
    (10250, "the agent", Purpose::Node),
];

/// One thing that was looked at, and what it means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Stable, for scripts: `cgroup-controllers`.
    pub id: String,
    pub area: Area,
    /// What was looked at, for people.
    pub what: String,
    pub state: State,
    /// What was seen.
    pub detail: String,
    /// What to do about it.
    pub way_forward: Option<String>,
    /// What does not work, or not fully, without it.
    pub needed_for: Vec<Purpose>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Area {
    System,
    Kernel,
    Resources,
    Network,
    Security,
    Runtimes,
    Ports,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Ok,
    /// It works, with a limit that the detail names.
    Warning,
    Missing,
    /// It could not be seen from here.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// The control plane.
    Server,
    /// Any node.
    Node,
    /// Containers, by the embedded runtime or another.
    Containers,
    /// Containers in a virtual machine each.
    HyperVContainers,
    /// Addresses for pods on each host.
    PodNetwork,
    /// Virtual addresses of services.
    ServiceNetwork,
    /// Pod networks over hosts that do not route for each other.
    Overlay,
    /// Limits on processor and memory.
    Limits,
    /// Everything that the supervisor does for host processes.
    Services,
}

fn probe_ports() -> Vec<(u16, PortState)> {
    PORTS
        .iter()
        .map(|(port, _, _)| (*port, probe_port(*port)))
        .collect()
}

/// Whether a port is free, by binding it for a moment.
fn probe_port(port: u16) -> PortState {
    match TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)) {
        Ok(_) => PortState::Free,
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => PortState::Taken,
        Err(error) => PortState::Unknown(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
