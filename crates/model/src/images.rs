//! What is known of container images, and the objects that keep it for all to read.
//!
//! There is one object of kind [`KIND`] in [`GROUP`] for each name that pods ask for. The controllers write what
//! registries told, agents what only their node can see; the scheduler reads it, because the platforms that an
//! image is for decide which nodes can run it. An object is about the name in its `spec` and no other, whatever
//! it is called itself.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::platform::Platform;

pub const GROUP: &str = "transom.dev";
pub const VERSION: &str = "v1";
pub const KIND: &str = "Image";
pub const PLURAL: &str = "images";

/// What an object is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageSpec {
    /// The canonical name by which pods ask for the image.
    pub reference: String,
}

/// What is known of an image.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImageStatus {
    /// Of the manifest, or of the index of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What it is for; several when it is an index of images.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub platforms: Vec<ImagePlatform>,
    /// The platforms as a text, for tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs_on: Option<String>,
    /// When somebody looked last, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checked_at: Option<String>,
    /// Why nothing new could be learned then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The node that told, if it was not the registry itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// A platform as documents of images say it, also one that no node of ours can be.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImagePlatform {
    pub os: String,
    pub architecture: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os_version: Option<String>,
}

impl fmt::Display for ImagePlatform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.os_version {
            Some(version) => write!(f, "{}({version})/{}", self.os, self.architecture),
            None => write!(f, "{}/{}", self.os, self.architecture),
        }
    }
}

impl ImagePlatform {
    /// What a node would have to be; `None` if no node can be that.
    pub fn platform(&self) -> Option<Platform> {
        let os = self.os.parse().ok()?;
        let arch = self.architecture.parse().ok()?;
        let version = self.os_version.as_deref().filter(|_| self.os == "windows");
        let os_version = match version {
            Some(version) => Some(version.parse().ok()?),
            None => None,
        };
        Some(Platform {
            os,
            arch,
            os_version,
        })
    }
}

impl ImageStatus {
    /// What is known of an image of these platforms. The order in which they were told does not matter.
    pub fn of(digest: Option<String>, mut platforms: Vec<ImagePlatform>) -> Self {
        platforms.sort();
        platforms.dedup();
        let texts: Vec<String> = platforms.iter().map(ToString::to_string).collect();
        Self {
            digest,
            runs_on: (!texts.is_empty()).then(|| texts.join(", ")),
            platforms,
            ..Self::default()
        }
    }

    /// The platforms that nodes can be.
    pub fn known_platforms(&self) -> Vec<Platform> {
        let platforms = self.platforms.iter();
        platforms.filter_map(ImagePlatform::platform).collect()
    }

    /// Whether somebody looked, with or without success.
    pub fn is_answer(&self) -> bool {
        !self.platforms.is_empty() || self.message.is_some()
    }
}

/// The most characters that the name of an object may have, and what our hash takes of them.
const LONGEST_NAME: usize = 253;
const HASH: usize = 17;

/// The name of the object that is about an image: readable, and told apart by a hash where that is not enough.
pub fn object_name(image: &str) -> String {
    let canonical = canonical(image);
    let readable: Vec<char> = canonical
        .chars()
        .map(|letter| match letter.to_ascii_lowercase() {
            letter @ ('a'..='z' | '0'..='9') => letter,
            _ => '-',
        })
        .collect();
    // The end has the tag and the digest.
    let start = readable.len().saturating_sub(LONGEST_NAME - HASH);
    let readable: String = readable[start..].iter().collect();
    let readable = readable.trim_start_matches('-');
    format!("{readable}-{:016x}", hash(canonical.as_bytes()))
}

/// FNV-1a: short, and the same on every machine and in every version.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The full name of an image: registry, path, and tag or digest.
pub fn canonical(image: &str) -> String {
    let (registry, path) = match image.split_once('/') {
        // What is before the first slash is a host only if it looks like one.
        Some((host, path)) if host.contains(['.', ':']) || host == "localhost" => (host, path),
        _ => ("docker.io", image),
    };
    let registry = if registry == "index.docker.io" {
        "docker.io"
    } else {
        registry
    };
    let library = if registry == "docker.io" && !path.contains('/') {
        "library/"
    } else {
        ""
    };
    let last = path.rsplit('/').next().unwrap_or(path);
    let tag = if last.contains([':', '@']) {
        ""
    } else {
        ":latest"
    };
    format!("{registry}/{library}{path}{tag}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_become_full_ones() {
        for (short, full) in [
            ("nginx", "docker.io/library/nginx:latest"),
            ("nginx:1.27", "docker.io/library/nginx:1.27"),
            ("library/nginx", "docker.io/library/nginx:latest"),
            ("someone/app", "docker.io/someone/app:latest"),
            ("index.docker.io/someone/app:2", "docker.io/someone/app:2"),
            ("registry:5000/app", "registry:5000/app:latest"),
            ("localhost/app", "localhost/app:latest"),
            (
                "mcr.microsoft.com/windows/nanoserver:ltsc2022",
                "mcr.microsoft.com/windows/nanoserver:ltsc2022",
            ),
            ("app@sha256:00ff", "docker.io/library/app@sha256:00ff"),
        ] {
            assert_eq!(canonical(short), full);
            assert_eq!(canonical(full), full, "a full name stays");
        }
    }

    #[test]
    fn names_of_objects_are_valid_and_differ_where_images_do() {
        let name = object_name("registry:5000/a_b/app:1");
        assert!(name.starts_with("registry-5000-a-b-app-1-"), "{name}");
        assert_eq!(name, object_name("registry:5000/a_b/app:1"));
        assert_ne!(name, object_name("registry:5000/a-b/app:1"));
        assert_eq!(
            object_name("nginx"),
            object_name("docker.io/library/nginx:latest")
        );
        let long = format!("{}/@sha256:{}", "x".repeat(300), "0".repeat(64));
        for name in [object_name(&long), object_name("___"), object_name("")] {
            assert!(name.len() <= LONGEST_NAME, "{name}");
            assert!(name.starts_with(|first: char| first.is_ascii_alphanumeric()));
            assert!(name.ends_with(|last: char| last.is_ascii_hexdigit()));
        }
    }

    #[test]
    fn what_is_known_is_written_as_it_is_read() {
        let windows = ImagePlatform {
            os: "windows".to_owned(),
            architecture: "amd64".to_owned(),
            os_version: Some("10.0.20348.1".to_owned()),
        };
        let linux = ImagePlatform {
            os: "linux".to_owned(),
            architecture: "s390x".to_owned(),
            os_version: None,
        };
        let status = ImageStatus::of(
            Some("sha256:0".to_owned()),
            vec![windows.clone(), linux, windows],
        );
        let json = serde_json::to_value(&status).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "digest": "sha256:0",
                "platforms": [
                    {"os": "linux", "architecture": "s390x"},
                    {"os": "windows", "architecture": "amd64", "osVersion": "10.0.20348.1"},
                ],
                "runsOn": "linux/s390x, windows(10.0.20348.1)/amd64",
            })
        );
        assert_eq!(serde_json::from_value::<ImageStatus>(json).unwrap(), status);
    }

    #[test]
    fn the_build_matters_for_windows_only_and_unknown_systems_are_no_platform() {
        let of = |os: &str, architecture: &str, version: Option<&str>| {
            let platform = ImagePlatform {
                os: os.to_owned(),
                architecture: architecture.to_owned(),
                os_version: version.map(str::to_owned),
            };
            platform.platform().map(|platform| platform.to_string())
        };
        assert_eq!(
            of("linux", "amd64", Some("1")).as_deref(),
            Some("linux/amd64")
        );
        assert_eq!(
            of("windows", "amd64", Some("10.0.20348.1668")).as_deref(),
            Some("windows(10.0.20348.1668)/amd64")
        );
        assert_eq!(of("plan9", "amd64", None), None);
        assert_eq!(of("linux", "vax", None), None);
    }

    #[test]
    fn a_failure_is_an_answer_too() {
        assert!(!ImageStatus::default().is_answer());
        let failed = ImageStatus {
            message: Some("no route".to_owned()),
            ..ImageStatus::default()
        };
        assert!(failed.is_answer());
    }
}
