//! The messages of the container runtime interface, version 1, that we use, with the fields that we use. Numbers are
//! those of Kubernetes.

mod container;
mod image;
mod pod;

pub(super) use container::*;
pub(super) use image::*;
pub(super) use pod::*;

/// Requests and answers that say nothing but that they are.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(in crate::cri) struct Empty {}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(in crate::cri) struct Int64Value {
    #[prost(int64, tag = "1")]
    pub(in crate::cri) value: i64,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(in crate::cri) struct UInt64Value {
    #[prost(uint64, tag = "1")]
    pub(in crate::cri) value: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct VersionRequest {
    #[prost(string, tag = "1")]
    pub(in crate::cri) version: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct VersionResponse {
    #[prost(string, tag = "2")]
    pub(in crate::cri) runtime_name: String,
    #[prost(string, tag = "3")]
    pub(in crate::cri) runtime_version: String,
}

/// The address of a stream.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct UrlResponse {
    #[prost(string, tag = "1")]
    pub(in crate::cri) url: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct ContainerEvent {
    #[prost(string, tag = "1")]
    pub(in crate::cri) container_id: String,
    #[prost(message, optional, tag = "4")]
    pub(in crate::cri) sandbox: Option<SandboxStatus>,
}
