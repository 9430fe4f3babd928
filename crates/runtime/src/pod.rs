//! A pod as a runtime sees it: a sandbox that containers share.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use camino::Utf8PathBuf;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Container;

/// What a runtime calls a sandbox. Says nothing to anybody else.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PodId(pub String);

impl fmt::Display for PodId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A sandbox that is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodSpec {
    /// The uid of the pod object: a pod of the same name that comes later is another one.
    pub uid: String,
    pub namespace: String,
    pub name: String,
    /// Counts the sandboxes of one pod object.
    pub attempt: u32,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub hostname: String,
    /// Where the logs of its containers go.
    pub log_directory: Utf8PathBuf,
    pub network: PodNetwork,
    pub dns: Dns,
    pub ports: Vec<PortMap>,
    /// All processes of the pod see each other.
    pub share_processes: bool,
    pub host_pid: bool,
    pub host_ipc: bool,
    /// One of its containers is to be privileged; some runtimes have to know before there is one.
    #[serde(default)]
    pub privileged: bool,
    pub sysctls: BTreeMap<String, String>,
    /// The group of limits all containers share, as a path of names under the runtime's own.
    pub cgroup_parent: String,
    /// Limits of the pod as a whole.
    pub resources: crate::Resources,
}

/// Which network a pod is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodNetwork {
    /// One of its own, with its own addresses.
    #[default]
    Own,
    /// That of the node.
    Host,
}

/// What the programs of a pod ask for names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dns {
    pub servers: Vec<String>,
    pub searches: Vec<String>,
    pub options: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Protocol {
    #[default]
    Tcp,
    Udp,
    Sctp,
}

/// A port of the node that leads into the pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortMap {
    pub protocol: Protocol,
    pub container_port: u16,
    pub host_port: u16,
    pub host_address: Option<IpAddr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodState {
    Ready,
    /// Its network or its first process is gone: it can only be removed.
    NotReady,
}

/// A sandbox that is there, with its containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    pub id: PodId,
    pub uid: String,
    pub namespace: String,
    pub name: String,
    pub attempt: u32,
    pub state: PodState,
    pub created: Timestamp,
    /// Of the node if the pod is in the node's network: empty then.
    pub addresses: Vec<IpAddr>,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub containers: Vec<Container>,
}
