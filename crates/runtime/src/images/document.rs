//! The documents of images: index, manifest and configuration, of OCI and of Docker alike. They come from
//! outside: only what we need is read, and nothing of it is trusted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::record::ImageSettings;
use crate::RuntimeError;

const INDEX_TYPES: [&str; 2] = [
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];
pub(super) const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
pub(super) const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
pub(super) const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar";
/// No image has more layers than overlayfs can stack.
const MOST_LAYERS: usize = 500;

/// Which system and processor a node has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    /// `linux` or `windows`.
    pub os: String,
    /// As registries say it: `amd64`, `arm64`.
    pub architecture: String,
    /// The build of Windows, as `10.0.20348`.
    pub os_version: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    #[serde(default)]
    pub(super) media_type: String,
    pub(super) digest: Digest,
    pub(super) size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) platform: Option<DescriptorPlatform>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) annotations: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct DescriptorPlatform {
    pub(super) os: String,
    pub(super) architecture: String,
    #[serde(
        default,
        rename = "os.version",
        skip_serializing_if = "Option::is_none"
    )]
    pub(super) os_version: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Index {
    pub(super) manifests: Vec<Descriptor>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Manifest {
    pub(super) schema_version: u32,
    #[serde(default)]
    pub(super) media_type: String,
    pub(super) config: Descriptor,
    pub(super) layers: Vec<Descriptor>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Configuration {
    pub(super) os: String,
    pub(super) architecture: String,
    #[serde(
        default,
        rename = "os.version",
        skip_serializing_if = "Option::is_none"
    )]
    pub(super) os_version: Option<String>,
    #[serde(default)]
    pub(super) config: Option<Program>,
    pub(super) rootfs: RootFileSystem,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Program {
    user: String,
    env: Option<Vec<String>>,
    entrypoint: Option<Vec<String>>,
    cmd: Option<Vec<String>>,
    working_dir: String,
    stop_signal: Option<String>,
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct RootFileSystem {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) diff_ids: Vec<Digest>,
}

impl From<Program> for ImageSettings {
    fn from(program: Program) -> Self {
        Self {
            user: program.user,
            environment: program.env.unwrap_or_default(),
            entrypoint: program.entrypoint.unwrap_or_default(),
            arguments: program.cmd.unwrap_or_default(),
            working_directory: program.working_dir,
            stop_signal: program.stop_signal,
            labels: program.labels.unwrap_or_default(),
        }
    }
}

impl From<ImageSettings> for Program {
    fn from(settings: ImageSettings) -> Self {
        Self {
            user: settings.user,
            env: Some(settings.environment),
            entrypoint: Some(settings.entrypoint),
            cmd: Some(settings.arguments),
            working_dir: settings.working_directory,
            stop_signal: settings.stop_signal,
            labels: Some(settings.labels),
        }
    }
}

/// A manifest, or an index of several.
pub(super) enum Document {
    Index(Index),
    Manifest(Manifest),
}

pub(super) fn parse(bytes: &[u8]) -> Result<Document, RuntimeError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Kind {
        #[serde(default)]
        media_type: String,
        #[serde(default)]
        manifests: Option<serde::de::IgnoredAny>,
    }
    let wrong = |error: serde_json::Error| {
        RuntimeError::Invalid(format!("a manifest cannot be read: {error}"))
    };
    let kind: Kind = serde_json::from_slice(bytes).map_err(wrong)?;
    if INDEX_TYPES.contains(&kind.media_type.as_str()) || kind.manifests.is_some() {
        return serde_json::from_slice(bytes)
            .map(Document::Index)
            .map_err(wrong);
    }
    let manifest: Manifest = serde_json::from_slice(bytes).map_err(wrong)?;
    if manifest.schema_version != 2 || manifest.layers.len() > MOST_LAYERS {
        return Err(RuntimeError::Invalid(format!(
            "a manifest of version {} with {} layers cannot be used",
            manifest.schema_version,
            manifest.layers.len()
        )));
    }
    Ok(Document::Manifest(manifest))
}

pub(super) fn parse_configuration(bytes: &[u8]) -> Result<Configuration, RuntimeError> {
    serde_json::from_slice(bytes).map_err(|error| {
        RuntimeError::Invalid(format!(
            "the configuration of an image cannot be read: {error}"
        ))
    })
}

/// The image of an index that runs here, best first: for Windows the same build counts most.
pub(super) fn choose<'a>(
    index: &'a Index,
    platform: &Platform,
) -> Result<&'a Descriptor, RuntimeError> {
    let build = |version: &str| version.split('.').take(3).collect::<Vec<_>>().join(".");
    let rank = |descriptor: &Descriptor| -> Option<u32> {
        let Some(offered) = &descriptor.platform else {
            return (index.manifests.len() == 1).then_some(0);
        };
        if offered.os != platform.os || offered.architecture != platform.architecture {
            return None;
        }
        Some(match (&platform.os_version, &offered.os_version) {
            (Some(wanted), Some(offered)) if wanted == offered => 4,
            (Some(wanted), Some(offered)) if build(wanted) == build(offered) => 3,
            (_, None) => 2,
            _ => 1,
        })
    };
    let ranked = index
        .manifests
        .iter()
        .filter_map(|entry| Some((rank(entry)?, entry)));
    // Of equals the first: that is what others choose, too.
    let best = ranked.rev().max_by_key(|(rank, _)| *rank);
    best.map(|(_, entry)| entry).ok_or_else(|| {
        let offered: Vec<String> = index
            .manifests
            .iter()
            .filter_map(|entry| entry.platform.as_ref())
            .map(|offered| match &offered.os_version {
                Some(version) => format!("{}/{} {version}", offered.os, offered.architecture),
                None => format!("{}/{}", offered.os, offered.architecture),
            })
            .collect();
        RuntimeError::Invalid(format!(
            "no match for platform {}/{} in the image: it is there for {}",
            platform.os,
            platform.architecture,
            if offered.is_empty() {
                "none".to_owned()
            } else {
                offered.join(", ")
            }
        ))
    })
}
