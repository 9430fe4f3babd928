//! Answers of Docker, as far as we read them. Invariant: a field that is absent or null is empty, never an error.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

pub(super) type Labels = BTreeMap<String, String>;

fn or_empty<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct VersionAnswer {
    #[serde(rename = "Arch")]
    pub(super) architecture: String,
    pub(super) version: String,
    pub(super) api_version: String,
    #[serde(rename = "MinAPIVersion")]
    pub(super) oldest_api_version: String,
}

/// What was made.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Made {
    pub(super) id: String,
}

/// A container in a list.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Listed {
    pub(super) id: String,
    pub(super) state: String,
    #[serde(deserialize_with = "or_empty")]
    pub(super) labels: Labels,
}

/// A container in full.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Inspected {
    pub(super) id: String,
    pub(super) created: String,
    /// The program, for messages.
    pub(super) path: String,
    pub(super) state: State,
    pub(super) config: InspectedConfig,
    #[serde(deserialize_with = "or_empty")]
    pub(super) network_settings: NetworkSettings,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct State {
    pub(super) status: String,
    #[serde(rename = "OOMKilled")]
    pub(super) oom_killed: bool,
    pub(super) pid: u32,
    pub(super) exit_code: i64,
    pub(super) error: String,
    pub(super) started_at: String,
    pub(super) finished_at: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct InspectedConfig {
    pub(super) tty: bool,
    #[serde(deserialize_with = "or_empty")]
    pub(super) labels: Labels,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct NetworkSettings {
    #[serde(deserialize_with = "or_empty")]
    pub(super) networks: BTreeMap<String, Joined>,
}

/// A network that a container is in.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Joined {
    #[serde(rename = "IPAddress")]
    pub(super) address: String,
    #[serde(rename = "GlobalIPv6Address")]
    pub(super) address_v6: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct ExecState {
    pub(super) running: bool,
    pub(super) exit_code: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct InspectedImage {
    pub(super) id: String,
    #[serde(deserialize_with = "or_empty")]
    pub(super) repo_tags: Vec<String>,
    #[serde(deserialize_with = "or_empty")]
    pub(super) repo_digests: Vec<String>,
    pub(super) size: u64,
    pub(super) os: String,
    pub(super) architecture: String,
    pub(super) os_version: String,
    #[serde(deserialize_with = "or_empty")]
    pub(super) config: ImageConfig,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct ImageConfig {
    pub(super) user: String,
}

/// A line of a pull.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PullLine {
    pub(super) id: String,
    pub(super) error: String,
    #[serde(rename = "progressDetail", deserialize_with = "or_empty")]
    pub(super) progress: LayerProgress,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LayerProgress {
    pub(super) current: u64,
    pub(super) total: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Info {
    pub(super) docker_root_dir: String,
}

/// Something that happened.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Happening {
    #[serde(rename = "Action")]
    pub(super) action: String,
    #[serde(rename = "Actor")]
    pub(super) actor: Actor,
    #[serde(rename = "timeNano")]
    pub(super) time: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Actor {
    #[serde(rename = "ID")]
    pub(super) id: String,
    #[serde(rename = "Attributes", deserialize_with = "or_empty")]
    pub(super) attributes: Labels,
}

/// What a container uses, in the words of its system.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Measured {
    pub(super) cpu_stats: CpuStats,
    pub(super) memory_stats: MemoryStats,
    pub(super) pids_stats: PidsStats,
    #[serde(deserialize_with = "or_empty")]
    pub(super) networks: BTreeMap<String, Traffic>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CpuStats {
    pub(super) cpu_usage: CpuUsage,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CpuUsage {
    pub(super) total_usage: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MemoryStats {
    pub(super) usage: Option<u64>,
    #[serde(deserialize_with = "or_empty")]
    pub(super) stats: BTreeMap<String, u64>,
    #[serde(rename = "commitbytes")]
    pub(super) committed: Option<u64>,
    #[serde(rename = "privateworkingset")]
    pub(super) private_working_set: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PidsStats {
    pub(super) current: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Traffic {
    pub(super) rx_bytes: u64,
    pub(super) tx_bytes: u64,
}
