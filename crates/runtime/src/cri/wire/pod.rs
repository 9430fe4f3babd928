//! Messages about sandboxes.

use std::collections::HashMap;

use super::container::{LinuxResources, SecurityProfile};

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct SandboxMetadata {
    #[prost(string, tag = "1")]
    pub(in crate::cri) name: String,
    #[prost(string, tag = "2")]
    pub(in crate::cri) uid: String,
    #[prost(string, tag = "3")]
    pub(in crate::cri) namespace: String,
    #[prost(uint32, tag = "4")]
    pub(in crate::cri) attempt: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct DnsConfig {
    #[prost(string, repeated, tag = "1")]
    pub(in crate::cri) servers: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(in crate::cri) searches: Vec<String>,
    #[prost(string, repeated, tag = "3")]
    pub(in crate::cri) options: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct PortMapping {
    #[prost(int32, tag = "1")]
    pub(in crate::cri) protocol: i32,
    #[prost(int32, tag = "2")]
    pub(in crate::cri) container_port: i32,
    #[prost(int32, tag = "3")]
    pub(in crate::cri) host_port: i32,
    #[prost(string, tag = "4")]
    pub(in crate::cri) host_ip: String,
}

/// Whose namespaces: 0 of the pod, 1 of the container, 2 of the node.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(in crate::cri) struct NamespaceOption {
    #[prost(int32, tag = "1")]
    pub(in crate::cri) network: i32,
    #[prost(int32, tag = "2")]
    pub(in crate::cri) pid: i32,
    #[prost(int32, tag = "3")]
    pub(in crate::cri) ipc: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct LinuxSandboxSecurity {
    #[prost(message, optional, tag = "1")]
    pub(in crate::cri) namespaces: Option<NamespaceOption>,
    #[prost(bool, tag = "6")]
    pub(in crate::cri) privileged: bool,
    #[prost(message, optional, tag = "9")]
    pub(in crate::cri) seccomp: Option<SecurityProfile>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct LinuxSandbox {
    #[prost(string, tag = "1")]
    pub(in crate::cri) cgroup_parent: String,
    #[prost(message, optional, tag = "2")]
    pub(in crate::cri) security: Option<LinuxSandboxSecurity>,
    #[prost(map = "string, string", tag = "3")]
    pub(in crate::cri) sysctls: HashMap<String, String>,
    #[prost(message, optional, tag = "5")]
    pub(in crate::cri) resources: Option<LinuxResources>,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(in crate::cri) struct WindowsSandboxSecurity {
    #[prost(bool, tag = "3")]
    pub(in crate::cri) host_process: bool,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(in crate::cri) struct WindowsSandbox {
    #[prost(message, optional, tag = "1")]
    pub(in crate::cri) security: Option<WindowsSandboxSecurity>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct SandboxConfig {
    #[prost(message, optional, tag = "1")]
    pub(in crate::cri) metadata: Option<SandboxMetadata>,
    #[prost(string, tag = "2")]
    pub(in crate::cri) hostname: String,
    #[prost(string, tag = "3")]
    pub(in crate::cri) log_directory: String,
    #[prost(message, optional, tag = "4")]
    pub(in crate::cri) dns: Option<DnsConfig>,
    #[prost(message, repeated, tag = "5")]
    pub(in crate::cri) ports: Vec<PortMapping>,
    #[prost(map = "string, string", tag = "6")]
    pub(in crate::cri) labels: HashMap<String, String>,
    #[prost(map = "string, string", tag = "7")]
    pub(in crate::cri) annotations: HashMap<String, String>,
    #[prost(message, optional, tag = "8")]
    pub(in crate::cri) linux: Option<LinuxSandbox>,
    #[prost(message, optional, tag = "9")]
    pub(in crate::cri) windows: Option<WindowsSandbox>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct RunSandboxRequest {
    #[prost(message, optional, tag = "1")]
    pub(in crate::cri) config: Option<SandboxConfig>,
}

/// A sandbox by its id, in requests and answers.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct SandboxById {
    #[prost(string, tag = "1")]
    pub(in crate::cri) id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct SandboxAddress {
    #[prost(string, tag = "1")]
    pub(in crate::cri) ip: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct SandboxNetwork {
    #[prost(string, tag = "1")]
    pub(in crate::cri) ip: String,
    #[prost(message, repeated, tag = "2")]
    pub(in crate::cri) more: Vec<SandboxAddress>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct SandboxStatus {
    #[prost(string, tag = "1")]
    pub(in crate::cri) id: String,
    #[prost(message, optional, tag = "5")]
    pub(in crate::cri) network: Option<SandboxNetwork>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct SandboxStatusResponse {
    #[prost(message, optional, tag = "1")]
    pub(in crate::cri) status: Option<SandboxStatus>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct SandboxFilter {
    #[prost(map = "string, string", tag = "3")]
    pub(in crate::cri) labels: HashMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct ListSandboxesRequest {
    #[prost(message, optional, tag = "1")]
    pub(in crate::cri) filter: Option<SandboxFilter>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct Sandbox {
    #[prost(string, tag = "1")]
    pub(in crate::cri) id: String,
    #[prost(message, optional, tag = "2")]
    pub(in crate::cri) metadata: Option<SandboxMetadata>,
    /// 0 is ready.
    #[prost(int32, tag = "3")]
    pub(in crate::cri) state: i32,
    #[prost(int64, tag = "4")]
    pub(in crate::cri) created_at: i64,
    #[prost(map = "string, string", tag = "5")]
    pub(in crate::cri) labels: HashMap<String, String>,
    #[prost(map = "string, string", tag = "6")]
    pub(in crate::cri) annotations: HashMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct ListSandboxesResponse {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::cri) items: Vec<Sandbox>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct PortForwardRequest {
    #[prost(string, tag = "1")]
    pub(in crate::cri) id: String,
    #[prost(int32, repeated, tag = "2")]
    pub(in crate::cri) ports: Vec<i32>,
}
