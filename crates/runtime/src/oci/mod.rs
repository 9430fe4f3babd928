//! Containers run by ourselves: images unpacked and stacked, namespaces, limits, and one small process per
//! pod that outlives the agent.
//!
//! # Platform behavior
//!
//! Linux only, as root. Elsewhere opening it says that it is not supported.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(windows)]
use windows as system;

#[cfg(target_os = "linux")]
pub(crate) use linux::in_network;
#[cfg(target_os = "linux")]
pub use linux::{Bridge, LinuxUnpacker, Loopback, Network, OciHandle, OciRuntime, shim_main};
#[cfg(windows)]
pub use windows::shim_main;

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};

use crate::images::{Images, Platform, Registries};
use crate::{Runtime, RuntimeError};

/// Where and how pods are run.
#[derive(Clone, Debug)]
pub struct OciSettings {
    /// Pods, containers and their sockets. Survives restarts; has to be short, for the sockets' sake.
    pub state: Utf8PathBuf,
    /// The program and its first arguments that end up in [`shim_main`] with the rest of them.
    pub shim: Vec<String>,
    /// The name of the cgroup that all pods are below of.
    pub cgroup: String,
}

/// A runtime that is ready, and the images it starts containers from.
#[derive(Clone, Debug)]
pub struct Opened {
    pub runtime: Arc<dyn Runtime>,
    pub images: Arc<Images>,
}

/// The network of a node's pods: a bridge of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgeSettings {
    /// Ten small letters and digits at most; the mark of all that belongs to it.
    pub name: String,
    /// As `10.42.0.0/24`.
    pub subnet: String,
}

/// Opens the runtime of a node, which takes over the pods that are there.
pub async fn open(
    settings: &OciSettings,
    images: &Utf8Path,
    platform: Platform,
    registries: Registries,
    bridge: &BridgeSettings,
) -> Result<Opened, RuntimeError> {
    system::open(settings, images, platform, registries, bridge).await
}

/// Takes away what a node without pods still has of ours: its bridge, rules and cgroups. They come back with the
/// next pod. That the node forwards stays: others may count on it by now.
pub async fn remove_all(
    settings: &OciSettings,
    bridge: &BridgeSettings,
) -> Result<(), RuntimeError> {
    system::remove_all(settings, bridge).await
}
