//! What can be said about a file, in words both systems understand.

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

/// What a name in a folder stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    File,
    Dir,
    /// A symbolic link, or a junction.
    Link,
    /// A device, a pipe, a socket.
    Other,
}

/// What is at a path, links not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    pub kind: Kind,
    /// Bytes of content; 0 for all but files.
    pub length: u64,
    /// Permission bits; `None` on Windows.
    pub mode: Option<u32>,
    /// No write bit at all on Linux, the read-only attribute on Windows.
    pub read_only: bool,
}

/// One entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub path: Utf8PathBuf,
    pub metadata: Metadata,
}

/// A name in a folder, and what it stands for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named {
    pub name: String,
    pub kind: Kind,
}

/// Who may use a new file.
///
/// # Platform behavior
/// Permission bits on Linux, whatever the umask. On Windows the first two inherit from the folder,
/// and `Secret` is an access list of its own: the owner, administrators and the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// All may read (0644).
    #[default]
    Public,
    /// All may read and run (0755).
    Executable,
    /// Only the owner may read (0600).
    Secret,
    /// As these permission bits say. On Windows as `Secret` where others may not read, else as `Public`.
    Mode(u32),
}

impl Access {
    /// The permission bits on Linux.
    pub fn mode(self) -> u32 {
        match self {
            Self::Public => 0o644,
            Self::Executable => 0o755,
            Self::Secret => 0o600,
            Self::Mode(mode) => mode & 0o7777,
        }
    }

    /// Whether others than the owner are kept from reading.
    pub fn is_secret(self) -> bool {
        self.mode() & 0o044 == 0
    }
}

/// The space of a file system, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Space {
    pub total: u64,
    /// What this process may still use.
    pub available: u64,
    /// How many files and folders there may be and may still come; `None` where nothing but the space limits them.
    pub inodes: Option<Inodes>,
}

/// The room of a file system for files and folders, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inodes {
    pub total: u64,
    pub available: u64,
}
