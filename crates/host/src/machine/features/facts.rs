//! What was seen on a machine. None is a fact that could not be seen, which is not the same as a
//! thing that is not there.

use camino::Utf8PathBuf;
use transom_model::windows::WindowsVersion;

use crate::service::ServiceStatus;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinuxFacts {
    pub kernel: String,
    pub cgroups: CgroupFacts,
    /// Kinds of namespaces that the kernel lacks.
    pub missing_namespaces: Vec<String>,
    pub overlay_file_system: Option<bool>,
    /// Kinds of network links, and whether the kernel can make them.
    pub link_kinds: Vec<(String, Option<bool>)>,
    pub nftables: Option<bool>,
    pub nft_program: Option<Utf8PathBuf>,
    pub bridge_netfilter: Option<bool>,
    pub forwards_ipv4: Option<bool>,
    /// The effective set, one bit each.
    pub capabilities: Option<u64>,
    pub seccomp: Option<bool>,
    pub apparmor: Option<bool>,
    /// The most files that a process may open.
    pub open_files: Option<u64>,
    pub inotify_instances: Option<u64>,
    pub inotify_watches: Option<u64>,
    pub systemd: bool,
    pub runtimes: Vec<Runtime>,
    pub ports: Vec<(u16, PortState)>,
    /// Whether something keeps the clock right.
    pub clock_synchronised: Option<bool>,
    pub swap_total: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CgroupMode {
    V2,
    V1,
    /// Controllers in v1, and v2 mounted without them.
    Hybrid,
    None,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupFacts {
    pub mode: CgroupMode,
    pub controllers: Vec<String>,
    pub writable: Option<bool>,
}

/// A container runtime, or a part of one, that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runtime {
    pub name: String,
    pub program: Option<Utf8PathBuf>,
    /// Where it can be talked to, which means that it runs.
    pub socket: Option<Utf8PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortState {
    Free,
    Taken,
    Unknown(String),
}

/// A right that Linux gives apart from the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capability {
    pub name: &'static str,
    pub bit: u8,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowsFacts {
    pub version: Option<WindowsVersion>,
    /// `Server`, `Server Core`, `Nano Server` or `Client`.
    pub installation: Option<String>,
    pub wine: Option<String>,
    pub elevated: Option<bool>,
    pub long_paths: Option<bool>,
    pub developer_mode: Option<bool>,
    /// Services that containers need, and how they are.
    pub services: Vec<WindowsService>,
    /// Libraries of the system, and whether they are there.
    pub libraries: Vec<(String, bool)>,
    pub powershell: Option<Utf8PathBuf>,
    pub ports: Vec<(u16, PortState)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowsService {
    pub name: String,
    /// None if the service manager did not answer.
    pub status: Option<ServiceStatus>,
}
