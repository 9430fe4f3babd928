//! Messages about images.

use std::collections::HashMap;
use std::fmt;

use super::container::FilesystemUsage;
use super::{Int64Value, UInt64Value};

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct ImageSpec {
    #[prost(string, tag = "1")]
    pub(in crate::cri) image: String,
}

/// An image in requests that are about one.
#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct ImageRequest {
    #[prost(message, optional, tag = "1")]
    pub(in crate::cri) image: Option<ImageSpec>,
    /// Of a status: with the image's configuration.
    #[prost(bool, tag = "2")]
    pub(in crate::cri) verbose: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct RemoveImageRequest {
    #[prost(message, optional, tag = "1")]
    pub(in crate::cri) image: Option<ImageSpec>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct ListedImage {
    #[prost(string, tag = "1")]
    pub(in crate::cri) id: String,
    #[prost(string, repeated, tag = "2")]
    pub(in crate::cri) tags: Vec<String>,
    #[prost(string, repeated, tag = "3")]
    pub(in crate::cri) digests: Vec<String>,
    #[prost(uint64, tag = "4")]
    pub(in crate::cri) size: u64,
    #[prost(message, optional, tag = "5")]
    pub(in crate::cri) user: Option<Int64Value>,
    #[prost(string, tag = "6")]
    pub(in crate::cri) user_name: String,
    #[prost(bool, tag = "8")]
    pub(in crate::cri) pinned: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct ListImagesResponse {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::cri) images: Vec<ListedImage>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct ImageStatusResponse {
    #[prost(message, optional, tag = "1")]
    pub(in crate::cri) image: Option<ListedImage>,
    #[prost(map = "string, string", tag = "2")]
    pub(in crate::cri) info: HashMap<String, String>,
}

/// Who asks a registry. Never printed.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub(in crate::cri) struct AuthConfig {
    #[prost(string, tag = "1")]
    pub(in crate::cri) user: String,
    #[prost(string, tag = "2")]
    pub(in crate::cri) password: String,
    #[prost(string, tag = "6")]
    pub(in crate::cri) registry_token: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct PullImageRequest {
    #[prost(message, optional, tag = "1")]
    pub(in crate::cri) image: Option<ImageSpec>,
    #[prost(message, optional, tag = "2")]
    pub(in crate::cri) auth: Option<AuthConfig>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct PullImageResponse {
    #[prost(string, tag = "1")]
    pub(in crate::cri) image_ref: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct FilesystemId {
    #[prost(string, tag = "1")]
    pub(in crate::cri) mountpoint: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct ImageFilesystem {
    #[prost(message, optional, tag = "2")]
    pub(in crate::cri) id: Option<FilesystemId>,
    #[prost(message, optional, tag = "3")]
    pub(in crate::cri) used_bytes: Option<UInt64Value>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(in crate::cri) struct ImageFilesystemsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::cri) images: Vec<ImageFilesystem>,
}

impl FilesystemUsage {
    pub(in crate::cri) fn bytes(&self) -> u64 {
        self.used_bytes.map_or(0, |bytes| bytes.value)
    }
}

impl fmt::Debug for AuthConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AuthConfig(…)")
    }
}
