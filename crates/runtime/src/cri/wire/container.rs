//! Messages about containers.

use std::collections::HashMap;
use std::fmt;

use super::image::ImageSpec;
use super::pod::{NamespaceOption, SandboxConfig};
use super::{Int64Value, UInt64Value};

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct ContainerMetadata {
    #[prost(string, tag = "1")]
    pub(in crate::cri) name: String,
    #[prost(uint32, tag = "2")]
    pub(in crate::cri) attempt: u32,
}

/// A variable, whose value may be a secret.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub(in crate::cri) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(in crate::cri) key: String,
    #[prost(string, tag = "2")]
    pub(in crate::cri) value: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct MountConfig {
    #[prost(string, tag = "1")]
    pub(in crate::cri) container_path: String,
    #[prost(string, tag = "2")]
    pub(in crate::cri) host_path: String,
    #[prost(bool, tag = "3")]
    pub(in crate::cri) read_only: bool,
    #[prost(int32, tag = "5")]
    pub(in crate::cri) propagation: i32,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(in crate::cri) struct LinuxResources {
    #[prost(int64, tag = "1")]
    pub(in crate::cri) cpu_period: i64,
    #[prost(int64, tag = "2")]
    pub(in crate::cri) cpu_quota: i64,
    #[prost(int64, tag = "3")]
    pub(in crate::cri) cpu_shares: i64,
    #[prost(int64, tag = "4")]
    pub(in crate::cri) memory_limit: i64,
    #[prost(int64, tag = "5")]
    pub(in crate::cri) oom_score_adjustment: i64,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(in crate::cri) struct WindowsResources {
    #[prost(int64, tag = "1")]
    pub(in crate::cri) cpu_shares: i64,
    /// Percents of all processors, times 100.
    #[prost(int64, tag = "3")]
    pub(in crate::cri) cpu_maximum: i64,
    #[prost(int64, tag = "4")]
    pub(in crate::cri) memory_limit: i64,
}

/// 0 is the runtime's default, 1 unconfined, 2 a file of the node.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct SecurityProfile {
    #[prost(int32, tag = "1")]
    pub(in crate::cri) kind: i32,
    #[prost(string, tag = "2")]
    pub(in crate::cri) localhost: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct CapabilityChange {
    #[prost(string, repeated, tag = "1")]
    pub(in crate::cri) add: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(in crate::cri) drop: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct LinuxSecurity {
    #[prost(message, optional, tag = "1")]
    pub(in crate::cri) capabilities: Option<CapabilityChange>,
    #[prost(bool, tag = "2")]
    pub(in crate::cri) privileged: bool,
    #[prost(message, optional, tag = "3")]
    pub(in crate::cri) namespaces: Option<NamespaceOption>,
    #[prost(message, optional, tag = "5")]
    pub(in crate::cri) user: Option<Int64Value>,
    #[prost(string, tag = "6")]
    pub(in crate::cri) user_name: String,
    #[prost(bool, tag = "7")]
    pub(in crate::cri) read_only_root: bool,
    #[prost(int64, repeated, tag = "8")]
    pub(in crate::cri) supplemental_groups: Vec<i64>,
    #[prost(bool, tag = "11")]
    pub(in crate::cri) no_new_privileges: bool,
    #[prost(message, optional, tag = "12")]
    pub(in crate::cri) group: Option<Int64Value>,
    #[prost(string, repeated, tag = "13")]
    pub(in crate::cri) masked_paths: Vec<String>,
    #[prost(string, repeated, tag = "14")]
    pub(in crate::cri) read_only_paths: Vec<String>,
    #[prost(message, optional, tag = "15")]
    pub(in crate::cri) seccomp: Option<SecurityProfile>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct LinuxContainer {
    #[prost(message, optional, tag = "1")]
    pub(in crate::cri) resources: Option<LinuxResources>,
    #[prost(message, optional, tag = "2")]
    pub(in crate::cri) security: Option<LinuxSecurity>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct WindowsSecurity {
    #[prost(string, tag = "1")]
    pub(in crate::cri) user_name: String,
    #[prost(bool, tag = "3")]
    pub(in crate::cri) host_process: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct WindowsContainer {
    #[prost(message, optional, tag = "1")]
    pub(in crate::cri) resources: Option<WindowsResources>,
    #[prost(message, optional, tag = "2")]
    pub(in crate::cri) security: Option<WindowsSecurity>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct ContainerConfig {
    #[prost(message, optional, tag = "1")]
    pub(in crate::cri) metadata: Option<ContainerMetadata>,
    #[prost(message, optional, tag = "2")]
    pub(in crate::cri) image: Option<ImageSpec>,
    #[prost(string, repeated, tag = "3")]
    pub(in crate::cri) command: Vec<String>,
    #[prost(string, repeated, tag = "4")]
    pub(in crate::cri) arguments: Vec<String>,
    #[prost(string, tag = "5")]
    pub(in crate::cri) working_directory: String,
    #[prost(message, repeated, tag = "6")]
    pub(in crate::cri) environment: Vec<KeyValue>,
    #[prost(message, repeated, tag = "7")]
    pub(in crate::cri) mounts: Vec<MountConfig>,
    #[prost(map = "string, string", tag = "9")]
    pub(in crate::cri) labels: HashMap<String, String>,
    #[prost(map = "string, string", tag = "10")]
    pub(in crate::cri) annotations: HashMap<String, String>,
    #[prost(string, tag = "11")]
    pub(in crate::cri) log_path: String,
    #[prost(bool, tag = "12")]
    pub(in crate::cri) stdin: bool,
    #[prost(bool, tag = "13")]
    pub(in crate::cri) stdin_once: bool,
    #[prost(bool, tag = "14")]
    pub(in crate::cri) terminal: bool,
    #[prost(message, optional, tag = "15")]
    pub(in crate::cri) linux: Option<LinuxContainer>,
    #[prost(message, optional, tag = "16")]
    pub(in crate::cri) windows: Option<WindowsContainer>,
    #[prost(int32, tag = "18")]
    pub(in crate::cri) stop_signal: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct CreateContainerRequest {
    #[prost(string, tag = "1")]
    pub(in crate::cri) sandbox_id: String,
    #[prost(message, optional, tag = "2")]
    pub(in crate::cri) config: Option<ContainerConfig>,
    #[prost(message, optional, tag = "3")]
    pub(in crate::cri) sandbox: Option<SandboxConfig>,
}

/// A container by its id, in requests and answers.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct ContainerById {
    #[prost(string, tag = "1")]
    pub(in crate::cri) id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct StopContainerRequest {
    #[prost(string, tag = "1")]
    pub(in crate::cri) id: String,
    #[prost(int64, tag = "2")]
    pub(in crate::cri) timeout_seconds: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct ContainerFilter {
    #[prost(string, tag = "3")]
    pub(in crate::cri) sandbox_id: String,
    #[prost(map = "string, string", tag = "4")]
    pub(in crate::cri) labels: HashMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct ListContainersRequest {
    #[prost(message, optional, tag = "1")]
    pub(in crate::cri) filter: Option<ContainerFilter>,
}

pub(in crate::cri) const CREATED: i32 = 0;
pub(in crate::cri) const RUNNING: i32 = 1;

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct ListedContainer {
    #[prost(string, tag = "1")]
    pub(in crate::cri) id: String,
    #[prost(string, tag = "2")]
    pub(in crate::cri) sandbox_id: String,
    #[prost(message, optional, tag = "3")]
    pub(in crate::cri) metadata: Option<ContainerMetadata>,
    #[prost(int32, tag = "6")]
    pub(in crate::cri) state: i32,
    #[prost(int64, tag = "7")]
    pub(in crate::cri) created_at: i64,
    #[prost(map = "string, string", tag = "8")]
    pub(in crate::cri) labels: HashMap<String, String>,
    #[prost(map = "string, string", tag = "9")]
    pub(in crate::cri) annotations: HashMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct ListContainersResponse {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::cri) containers: Vec<ListedContainer>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct ContainerStatus {
    #[prost(string, tag = "1")]
    pub(in crate::cri) id: String,
    #[prost(int32, tag = "3")]
    pub(in crate::cri) state: i32,
    #[prost(int64, tag = "5")]
    pub(in crate::cri) started_at: i64,
    #[prost(int64, tag = "6")]
    pub(in crate::cri) finished_at: i64,
    #[prost(int32, tag = "7")]
    pub(in crate::cri) exit_code: i32,
    #[prost(string, tag = "10")]
    pub(in crate::cri) reason: String,
    #[prost(string, tag = "11")]
    pub(in crate::cri) message: String,
    #[prost(map = "string, string", tag = "13")]
    pub(in crate::cri) annotations: HashMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct ContainerStatusResponse {
    #[prost(message, optional, tag = "1")]
    pub(in crate::cri) status: Option<ContainerStatus>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct UpdateResourcesRequest {
    #[prost(string, tag = "1")]
    pub(in crate::cri) id: String,
    #[prost(message, optional, tag = "2")]
    pub(in crate::cri) linux: Option<LinuxResources>,
    #[prost(message, optional, tag = "3")]
    pub(in crate::cri) windows: Option<WindowsResources>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct ExecRequest {
    #[prost(string, tag = "1")]
    pub(in crate::cri) id: String,
    #[prost(string, repeated, tag = "2")]
    pub(in crate::cri) command: Vec<String>,
    #[prost(bool, tag = "3")]
    pub(in crate::cri) terminal: bool,
    #[prost(bool, tag = "4")]
    pub(in crate::cri) stdin: bool,
    #[prost(bool, tag = "5")]
    pub(in crate::cri) stdout: bool,
    #[prost(bool, tag = "6")]
    pub(in crate::cri) stderr: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct AttachRequest {
    #[prost(string, tag = "1")]
    pub(in crate::cri) id: String,
    #[prost(bool, tag = "2")]
    pub(in crate::cri) stdin: bool,
    #[prost(bool, tag = "3")]
    pub(in crate::cri) terminal: bool,
    #[prost(bool, tag = "4")]
    pub(in crate::cri) stdout: bool,
    #[prost(bool, tag = "5")]
    pub(in crate::cri) stderr: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct StatsFilter {
    #[prost(map = "string, string", tag = "3")]
    pub(in crate::cri) labels: HashMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct ListStatsRequest {
    #[prost(message, optional, tag = "1")]
    pub(in crate::cri) filter: Option<StatsFilter>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct ContainerAttributes {
    #[prost(string, tag = "1")]
    pub(in crate::cri) id: String,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(in crate::cri) struct CpuUsage {
    #[prost(message, optional, tag = "2")]
    pub(in crate::cri) used_nanoseconds: Option<UInt64Value>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(in crate::cri) struct MemoryUsage {
    #[prost(message, optional, tag = "2")]
    pub(in crate::cri) working_set: Option<UInt64Value>,
    #[prost(message, optional, tag = "4")]
    pub(in crate::cri) usage: Option<UInt64Value>,
    #[prost(message, optional, tag = "5")]
    pub(in crate::cri) rss: Option<UInt64Value>,
    #[prost(message, optional, tag = "6")]
    pub(in crate::cri) page_faults: Option<UInt64Value>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(in crate::cri) struct FilesystemUsage {
    #[prost(message, optional, tag = "3")]
    pub(in crate::cri) used_bytes: Option<UInt64Value>,
    #[prost(message, optional, tag = "4")]
    pub(in crate::cri) inodes_used: Option<UInt64Value>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct ListedStats {
    #[prost(message, optional, tag = "1")]
    pub(in crate::cri) attributes: Option<ContainerAttributes>,
    #[prost(message, optional, tag = "2")]
    pub(in crate::cri) cpu: Option<CpuUsage>,
    #[prost(message, optional, tag = "3")]
    pub(in crate::cri) memory: Option<MemoryUsage>,
    #[prost(message, optional, tag = "4")]
    pub(in crate::cri) writable: Option<FilesystemUsage>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct ListStatsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::cri) stats: Vec<ListedStats>,
}

impl fmt::Debug for KeyValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}=…", self.key)
    }
}
