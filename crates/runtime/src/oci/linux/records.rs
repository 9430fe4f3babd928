//! What is kept on disk about pods and containers, and where. Invariant: each fact has one file that is
//! written in one instant by one process: the agent writes what is wanted, the shim what became of it.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use transom_host::files::{Access, FileError, Files, Native};

use crate::images::Digest;
use crate::{ContainerSpec, ContainerState, Ended, PodSpec, RuntimeError};

const LARGEST: u64 = 4 << 20;

/// A pod that was asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PodRecord {
    pub(super) spec: PodSpec,
    pub(super) created: Timestamp,
    /// Set once its network is there.
    pub(super) addresses: Vec<IpAddr>,
    /// All of it is there.
    pub(super) ready: bool,
    /// Its network was given back, and nothing runs in it any more.
    pub(super) stopped: bool,
    /// The first process of a process namespace that all containers share.
    #[serde(default)]
    pub(super) first_process: Option<i32>,
}

/// A container that was asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ContainerRecord {
    pub(super) spec: ContainerSpec,
    pub(super) image: String,
    pub(super) created: Timestamp,
    pub(super) stop_signal: i32,
    /// Relative to the controllers' folders.
    pub(super) cgroup: String,
    /// What was asked for and cannot be had on this machine.
    #[serde(default)]
    pub(super) notes: Vec<String>,
}

/// A container that runs, or did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StartRecord {
    pub(super) pid: i32,
    pub(super) started: Timestamp,
}

/// The same pod always has the same id, so that it is found again.
pub(super) fn pod_id(uid: &str, attempt: u32) -> String {
    short(&format!("pod/{uid}/{attempt}"))
}

pub(super) fn container_id(pod: &str, name: &str, attempt: u32) -> String {
    short(&format!("container/{pod}/{name}/{attempt}"))
}

fn short(text: &str) -> String {
    Digest::of(text.as_bytes()).hex()[..32].to_owned()
}

/// Where a pod keeps what.
#[derive(Clone, Debug)]
pub(super) struct PodFolder(pub(super) Utf8PathBuf);

impl PodFolder {
    pub(super) fn record(&self) -> Utf8PathBuf {
        self.0.join("pod.json")
    }

    pub(super) fn log(&self) -> Utf8PathBuf {
        self.0.join("shim.log")
    }

    /// Files that all containers see: `hosts`, `hostname`, `resolv.conf`.
    pub(super) fn shared(&self, name: &str) -> Utf8PathBuf {
        self.0.join(name)
    }

    pub(super) fn containers(&self) -> Utf8PathBuf {
        self.0.join(CONTAINERS)
    }

    pub(super) fn container(&self, id: &str) -> Utf8PathBuf {
        self.containers().join(id)
    }
}

pub(super) const SOCKET: &str = "s";
pub(super) const CONTAINERS: &str = "c";
/// Where libcontainer keeps its state.
pub(super) const STATES: &str = "r";
pub(super) const CONTAINER: &str = "container.json";
pub(super) const STARTED: &str = "started.json";
pub(super) const ENDED: &str = "ended.json";

/// What became of the container of a folder.
pub(super) fn state(container: &Utf8Path) -> Result<ContainerState, RuntimeError> {
    let started: Option<StartRecord> = read(&container.join(STARTED))?;
    let ended: Option<Ended> = read(&container.join(ENDED))?;
    Ok(match (started, ended) {
        (_, Some(ended)) => ContainerState::Exited(ended),
        (Some(started), None) => ContainerState::Running {
            started: started.started,
        },
        (None, None) => ContainerState::Created,
    })
}

/// Reads a record; `None` if there is none.
pub(super) fn read<T: DeserializeOwned>(path: &Utf8Path) -> Result<Option<T>, RuntimeError> {
    match Native.read(path, LARGEST) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| RuntimeError::Other(format!("{path} cannot be understood: {error}"))),
        Err(FileError::NotFound { .. }) => Ok(None),
        Err(error) => Err(file_error(format!("read {path}"), error)),
    }
}

pub(super) fn write<T: Serialize>(path: &Utf8Path, record: &T) -> Result<(), RuntimeError> {
    let bytes =
        serde_json::to_vec(record).map_err(|error| RuntimeError::Other(error.to_string()))?;
    // The environment of a container holds secrets.
    Native
        .write_durable(path, &bytes, Access::Secret)
        .map_err(|error| file_error(format!("write {path}"), error))
}

pub(super) fn file_error(action: String, error: FileError) -> RuntimeError {
    RuntimeError::io(action, io::Error::other(error))
}
