//! Where things are on disk, and what is written there.
//!
//! Invariant: a container's `record.json` is written by its keeper alone while that lives; whoever finds the keeper
//! dead may write the end into it.

use std::fmt::Write;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use transom_host::files::{Access, FileError, Files, Native};
use transom_host::process::{GroupId, Identity};

use super::file_error;
use crate::{ContainerId, ContainerSpec, Ended, PodId, PodSpec, RuntimeError};

const POD_FILE: &str = "pod.json";
const CONTAINER_FILE: &str = "container.json";
pub(super) const SETUP_FILE: &str = "setup.json";
const RECORD_FILE: &str = "record.json";
/// What a container sees as its root.
const ROOT: &str = "root";
/// Specs hold config maps in variables at worst, which are a mebibyte each.
const LARGEST_FILE: u64 = 16 << 20;

/// A pod as it is written down.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PodRecord {
    pub(super) spec: PodSpec,
    pub(super) created: Timestamp,
    pub(super) stopped: bool,
}

/// A container as it is written down when it is made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ContainerRecord {
    pub(super) pod: PodId,
    pub(super) spec: ContainerSpec,
    pub(super) created: Timestamp,
}

/// What a keeper writes down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) keeper: Identity,
    pub(super) life: Life,
    /// The start failed because this system has no such thing.
    #[serde(default)]
    pub(super) not_supported: bool,
    /// Limits that do not hold, with reasons.
    #[serde(default)]
    pub(super) remarks: Vec<String>,
}

/// How far a container is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Life {
    Created,
    /// Its keeper is there, its program may be.
    Starting,
    Running {
        process: Identity,
        started: Timestamp,
    },
    Ended(Ended),
}

/// A name that follows from what it names, and fits everywhere.
fn digest(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let mut text = String::new();
    for byte in hasher.finalize().iter().take(20) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

pub(super) fn pod_id(spec: &PodSpec) -> PodId {
    PodId(digest(&["pod", &spec.uid, &spec.attempt.to_string()]))
}

pub(super) fn container_id(pod: &PodId, spec: &ContainerSpec) -> ContainerId {
    let attempt = spec.attempt.to_string();
    ContainerId(digest(&["container", &pod.0, &spec.name, &attempt]))
}

/// The folder of all pods below the runtime's own.
pub(super) fn pods_folder(root: &Utf8Path) -> Utf8PathBuf {
    root.join("pods")
}

pub(super) fn pod_folder(root: &Utf8Path, pod: &PodId) -> Utf8PathBuf {
    pods_folder(root).join(&pod.0)
}

pub(super) fn write_pod(folder: &Utf8Path, record: &PodRecord) -> Result<(), RuntimeError> {
    write(&folder.join(POD_FILE), record)
}

pub(super) fn read_pod(folder: &Utf8Path) -> Result<Option<PodRecord>, RuntimeError> {
    read(&folder.join(POD_FILE))
}

/// The folder of one container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Folder(pub(super) Utf8PathBuf);

impl Folder {
    pub(super) fn new(root: &Utf8Path, pod: &PodId, container: &ContainerId) -> Self {
        Self(pod_folder(root, pod).join(&container.0))
    }

    pub(super) fn root(&self) -> Utf8PathBuf {
        self.0.join(ROOT)
    }

    pub(super) fn keeper_log(&self) -> Utf8PathBuf {
        self.0.join("keeper.log")
    }

    /// All processes of the container belong to this group.
    pub(super) fn group(&self) -> GroupId {
        group("c", &self.0)
    }

    /// The keeper itself belongs to this one.
    pub(super) fn keeper_group(&self) -> GroupId {
        group("k", &self.0)
    }

    pub(super) fn read_container(&self) -> Result<Option<ContainerRecord>, RuntimeError> {
        read(&self.0.join(CONTAINER_FILE))
    }

    pub(super) fn write_container(&self, record: &ContainerRecord) -> Result<(), RuntimeError> {
        write(&self.0.join(CONTAINER_FILE), record)
    }

    pub(super) fn read_record(&self) -> Result<Option<Record>, RuntimeError> {
        read(&self.0.join(RECORD_FILE))
    }

    pub(super) fn write_record(&self, record: &Record) -> Result<(), RuntimeError> {
        write(&self.0.join(RECORD_FILE), record)
    }

    /// Whether a keeper was ever prepared.
    pub(super) fn has_setup(&self) -> bool {
        Native.metadata(&self.0.join(SETUP_FILE)).is_ok()
    }
}

/// Two runtimes of one machine may know the same pod; their folders differ.
fn group(kind: &str, folder: &Utf8Path) -> GroupId {
    format!("{kind}-{}", digest(&[folder.as_str()]))
        .parse()
        .unwrap_or_else(|_| GroupId::unique())
}

/// Variables of containers are often secrets, so all of it is for our eyes only.
pub(super) fn write(path: &Utf8Path, value: &impl Serialize) -> Result<(), RuntimeError> {
    let bytes = serde_json::to_vec(value)
        .map_err(|error| RuntimeError::Other(format!("{path} cannot be written: {error}")))?;
    let written = Native.write_durable(path, &bytes, Access::Secret);
    written.map_err(file_error)
}

pub(super) fn read<T: DeserializeOwned>(path: &Utf8Path) -> Result<Option<T>, RuntimeError> {
    let bytes = match Native.read(path, LARGEST_FILE) {
        Ok(bytes) => bytes,
        Err(FileError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(file_error(error)),
    };
    let value = serde_json::from_slice(&bytes);
    value
        .map(Some)
        .map_err(|error| RuntimeError::Other(format!("{path} is damaged: {error}")))
}
