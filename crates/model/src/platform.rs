//! What a node offers and an image asks for: system, architecture and, for Windows, the build. The
//! text form is OCI's `os/arch`, with the Windows build in parentheses behind the system.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::arch::{Arch, ParseArchError};
use crate::os::{Os, ParseOsError};
use crate::windows::{ParseVersionError, WindowsVersion};

/// System, architecture and, for Windows, the build.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Platform {
    pub os: Os,
    #[serde(rename = "architecture", alias = "arch")]
    pub arch: Arch,
    /// Only Windows has one: a Linux container runs on any kernel.
    #[serde(
        rename = "os.version",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub os_version: Option<WindowsVersion>,
}

impl Platform {
    pub const fn new(os: Os, arch: Arch) -> Self {
        Self {
            os,
            arch,
            os_version: None,
        }
    }

    /// A Windows platform of a known build.
    pub const fn windows(arch: Arch, version: WindowsVersion) -> Self {
        Self {
            os: Os::Windows,
            arch,
            os_version: Some(version),
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.os_version {
            Some(version) => write!(f, "{}({version})/{}", self.os, self.arch),
            None => write!(f, "{}/{}", self.os, self.arch),
        }
    }
}

/// The text is not a platform.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParsePlatformError {
    #[error("`{text}` is not a platform: write `os/arch`, for example `windows(10.0.20348)/amd64`")]
    Form { text: String },
    #[error("the system of the platform `{text}` is not known")]
    Os { text: String, source: ParseOsError },
    #[error("the architecture of the platform `{text}` is not known")]
    Arch {
        text: String,
        source: ParseArchError,
    },
    #[error("the build of the platform `{text}` cannot be read")]
    Version {
        text: String,
        source: ParseVersionError,
    },
    #[error("the platform `{text}` names a build, which only Windows has")]
    VersionWithoutWindows { text: String },
}

impl FromStr for Platform {
    type Err = ParsePlatformError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let whole = || text.to_owned();
        let (system, arch) = text
            .split_once('/')
            .ok_or_else(|| ParsePlatformError::Form { text: whole() })?;
        let (os, version) = match system.split_once('(') {
            None => (system, None),
            Some((os, rest)) => {
                let version = rest
                    .strip_suffix(')')
                    .ok_or_else(|| ParsePlatformError::Form { text: whole() })?;
                (os, Some(version))
            }
        };
        let os = os.parse().map_err(|source| ParsePlatformError::Os {
            text: whole(),
            source,
        })?;
        let arch = arch.parse().map_err(|source| ParsePlatformError::Arch {
            text: whole(),
            source,
        })?;
        let os_version = version
            .map(|version| {
                version
                    .parse()
                    .map_err(|source| ParsePlatformError::Version {
                        text: whole(),
                        source,
                    })
            })
            .transpose()?;
        if os != Os::Windows && os_version.is_some() {
            return Err(ParsePlatformError::VersionWithoutWindows { text: whole() });
        }
        Ok(Self {
            os,
            arch,
            os_version,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn platforms_are_read_as_they_are_written() {
        for text in [
            "linux/amd64",
            "linux/arm64",
            "windows/amd64",
            "windows(10.0.20348)/amd64",
            "windows(10.0.17763.5820)/arm64",
        ] {
            assert_eq!(text.parse::<Platform>().unwrap().to_string(), text);
        }
        assert_eq!(
            "linux/arm64/v8".parse::<Platform>().unwrap().to_string(),
            "linux/arm64"
        );
    }

    #[test]
    fn the_oci_form_has_the_build_under_its_own_key() {
        let platform: Platform = "windows(10.0.20348.2113)/amd64".parse().unwrap();
        let json = serde_json::to_value(&platform).unwrap();
        assert_eq!(
            json,
            serde_json::json!({"os": "windows", "architecture": "amd64", "os.version": "10.0.20348.2113"})
        );
        assert_eq!(serde_json::from_value::<Platform>(json).unwrap(), platform);
    }

    #[test]
    fn each_wrong_part_is_named() {
        let fault = |text: &str| text.parse::<Platform>().unwrap_err();
        assert!(matches!(fault("linux"), ParsePlatformError::Form { .. }));
        assert!(matches!(
            fault("windows(10.0.1/amd64"),
            ParsePlatformError::Form { .. }
        ));
        assert!(matches!(fault("beos/amd64"), ParsePlatformError::Os { .. }));
        assert!(matches!(
            fault("linux/vax"),
            ParsePlatformError::Arch { .. }
        ));
        assert!(matches!(
            fault("windows(10)/amd64"),
            ParsePlatformError::Version { .. }
        ));
        assert!(matches!(
            fault("linux(10.0.20348)/amd64"),
            ParsePlatformError::VersionWithoutWindows { .. }
        ));
    }
}
