//! The four numbers of a Windows version. The revision is optional because labels and image indexes
//! often leave it out.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A Windows version such as `10.0.20348.2113`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WindowsVersion {
    pub major: u32,
    pub minor: u32,
    /// Names a release of Windows, and with it the interface between containers and kernel.
    pub build: u32,
    /// Counts the updates of a build.
    pub revision: Option<u32>,
}

impl WindowsVersion {
    pub const fn new(major: u32, minor: u32, build: u32, revision: Option<u32>) -> Self {
        Self {
            major,
            minor,
            build,
            revision,
        }
    }

    /// A build of Windows 10, 11 or Server 2016 and later, all of which are version 10.0.
    pub const fn of_build(build: u32) -> Self {
        Self::new(10, 0, build, None)
    }

    /// The value of the label `node.kubernetes.io/windows-build`.
    pub fn build_label(&self) -> String {
        self.without_revision().to_string()
    }

    /// The same build, whatever its updates.
    #[must_use]
    pub const fn without_revision(self) -> Self {
        Self {
            revision: None,
            ..self
        }
    }
}

impl fmt::Display for WindowsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.build)?;
        match self.revision {
            Some(revision) => write!(f, ".{revision}"),
            None => Ok(()),
        }
    }
}

/// The text is not a Windows version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a Windows version: {fault}")]
pub struct ParseVersionError {
    pub text: String,
    pub fault: VersionFault,
}

/// What is wrong with the text of a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VersionFault {
    #[error("it has {0} numbers instead of three or four, as in `10.0.20348.2113`")]
    Count(usize),
    #[error("`{0}` is not a number")]
    NotANumber(String),
    #[error("`{0}` is too large")]
    TooLarge(String),
}

impl FromStr for WindowsVersion {
    type Err = ParseVersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = |fault| ParseVersionError {
            text: text.to_owned(),
            fault,
        };
        let numbers = text
            .split('.')
            .map(number)
            .collect::<Result<Vec<_>, _>>()
            .map_err(refuse)?;
        match numbers[..] {
            [major, minor, build] => Ok(Self::new(major, minor, build, None)),
            [major, minor, build, revision] => Ok(Self::new(major, minor, build, Some(revision))),
            _ => Err(refuse(VersionFault::Count(numbers.len()))),
        }
    }
}

fn number(text: &str) -> Result<u32, VersionFault> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(VersionFault::NotANumber(text.to_owned()));
    }
    text.parse()
        .map_err(|_| VersionFault::TooLarge(text.to_owned()))
}

impl TryFrom<String> for WindowsVersion {
    type Error = ParseVersionError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<WindowsVersion> for String {
    fn from(version: WindowsVersion) -> Self {
        version.to_string()
    }
}
