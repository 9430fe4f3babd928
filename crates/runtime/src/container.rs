//! A container as a runtime sees it: a program from an image with limits around it.

use std::collections::BTreeMap;
use std::fmt;

use camino::Utf8PathBuf;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::PodId;

/// What a runtime calls a container.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContainerId(pub String);

impl fmt::Display for ContainerId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A container that is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerSpec {
    pub name: String,
    /// Counts the containers of one name in a pod: a restart is a new container.
    pub attempt: u32,
    /// The id of an image that is here, as [`crate::Image::id`] says it.
    pub image: String,
    /// The name the user gave, for the status.
    pub image_name: String,
    /// In place of the image's entry point, if not empty.
    pub command: Vec<String>,
    /// In place of the image's arguments, if not empty.
    pub arguments: Vec<String>,
    pub working_directory: Option<String>,
    pub environment: Vec<Variable>,
    pub mounts: Vec<Mount>,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    /// Below the pod's log folder.
    pub log_path: Utf8PathBuf,
    pub stdin: bool,
    /// The input ends with the first who attached to it.
    pub stdin_once: bool,
    pub terminal: bool,
    pub resources: Resources,
    pub security: Security,
    /// In place of the image's signal, as `SIGUSR1`.
    pub stop_signal: Option<String>,
}

/// A variable of the environment. Its value is often a secret: it is never printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    pub name: String,
    pub value: String,
}

impl fmt::Debug for Variable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}=…", self.name)
    }
}

/// A file or folder of the node inside a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    pub host_path: Utf8PathBuf,
    /// In the words of the container's system.
    pub container_path: String,
    pub read_only: bool,
    pub propagation: Propagation,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Propagation {
    #[default]
    Private,
    HostToContainer,
    Bidirectional,
}

/// How much of the machine a container may use. `None` is no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Thousandths of a core that it is entitled to when all want one.
    pub cpu_request_millis: Option<u64>,
    pub cpu_limit_millis: Option<u64>,
    pub memory_limit_bytes: Option<u64>,
    pub pids_limit: Option<u64>,
    pub oom_score_adjustment: Option<i32>,
}

/// Who the program is and what it may do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Security {
    pub user: Option<i64>,
    pub group: Option<i64>,
    pub supplemental_groups: Vec<i64>,
    /// A user of the system by name: Windows only.
    pub user_name: Option<String>,
    pub privileged: bool,
    pub read_only_root: bool,
    pub may_gain_privileges: bool,
    pub capabilities: Capabilities,
    pub seccomp: Seccomp,
    /// The paths under `/proc` that tell of the node stay visible.
    pub unmasked_proc: bool,
    /// A process of the Windows machine itself.
    pub host_process: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// As `NET_ADMIN`, or `ALL`.
    pub add: Vec<String>,
    pub drop: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Seccomp {
    Unconfined,
    #[default]
    RuntimeDefault,
    /// A profile of the node, as a path.
    Localhost(Utf8PathBuf),
}

/// A container that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    pub id: ContainerId,
    pub pod: PodId,
    pub name: String,
    pub attempt: u32,
    pub image: String,
    pub image_name: String,
    pub created: Timestamp,
    pub state: ContainerState,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    /// The whole path of its log.
    pub log_path: Utf8PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContainerState {
    Created,
    Running { started: Timestamp },
    Exited(Ended),
}

/// How and when a container ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// `None` if it never ran.
    pub started: Option<Timestamp>,
    pub finished: Timestamp,
    /// 128 and the signal, if it was killed by one.
    pub exit_code: i32,
    /// `Completed`, `Error`, `OOMKilled`, `ContainerCannotRun`: words that people know from kubectl.
    pub reason: String,
    pub message: String,
}
