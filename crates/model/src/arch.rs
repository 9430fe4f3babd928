//! Processor architecture of a node, an image or a package. Many spellings come in, one goes out:
//! that of Kubernetes and OCI.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The processor architecture of a node, an image or a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub enum Arch {
    Amd64,
    Arm64,
}

/// Every spelling that is understood, the one we write first.
const SPELLINGS: &[(Arch, &[&str])] = &[
    (Arch::Amd64, &["amd64", "x86_64", "x86-64", "x64"]),
    (Arch::Arm64, &["arm64", "aarch64", "arm64/v8", "arm64v8"]),
];

impl Arch {
    /// Every architecture, in the order in which lists show them.
    pub const ALL: [Self; 2] = [Self::Amd64, Self::Arm64];

    /// The spelling of Kubernetes and OCI.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }
}

impl From<Arch> for &'static str {
    fn from(arch: Arch) -> Self {
        arch.as_str()
    }
}

impl TryFrom<String> for Arch {
    type Error = ParseArchError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The text is not the name of an architecture that nodes can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an architecture of a node: use `amd64` or `arm64`")]
pub struct ParseArchError {
    pub text: String,
}

impl FromStr for Arch {
    type Err = ParseArchError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        SPELLINGS
            .iter()
            .find(|(_, spellings)| {
                spellings
                    .iter()
                    .any(|known| text.eq_ignore_ascii_case(known))
            })
            .map(|(arch, _)| *arch)
            .ok_or_else(|| ParseArchError {
                text: text.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_usual_spelling_becomes_the_one_of_kubernetes() {
        for (text, arch) in [
            ("amd64", "amd64"),
            ("x86_64", "amd64"),
            ("AMD64", "amd64"),
            ("x64", "amd64"),
            ("aarch64", "arm64"),
            ("ARM64", "arm64"),
        ] {
            assert_eq!(text.parse::<Arch>().unwrap().to_string(), arch);
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for arch in Arch::ALL {
            let json = serde_json::to_string(&arch).unwrap();
            assert_eq!(json, format!("\"{arch}\""));
            assert_eq!(serde_json::from_str::<Arch>(&json).unwrap(), arch);
        }
    }

    #[test]
    fn another_architecture_is_refused_by_name() {
        let error = serde_json::from_str::<Arch>("\"s390x\"").unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("`s390x` is not an architecture")
        );
    }
}
