//! Why a file operation failed. Callers match on variants, never on codes of one system: each native
//! part first translates its codes into `io::ErrorKind`, and this file sorts kinds into variants.

use std::io::{self, ErrorKind};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};

use super::Holders;

/// Why a file operation failed.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("`{path}` does not exist")]
    NotFound { path: Utf8PathBuf },
    #[error("`{path}` exists already")]
    Exists { path: Utf8PathBuf },
    #[error("no permission to {action} `{path}`")]
    Denied {
        action: &'static str,
        path: Utf8PathBuf,
        source: io::Error,
    },
    #[error("the disk is full: could not {action} `{path}`")]
    DiskFull {
        action: &'static str,
        path: Utf8PathBuf,
        source: io::Error,
    },
    #[error("could not {action} `{path}`: it is in use by {holders}")]
    InUse {
        action: &'static str,
        path: Utf8PathBuf,
        holders: Holders,
        source: io::Error,
    },
    #[error("`{path}` is larger than {limit} bytes")]
    TooLarge { path: Utf8PathBuf, limit: u64 },
    #[error("`{path}` is not {expected}")]
    WrongKind {
        path: Utf8PathBuf,
        expected: &'static str,
    },
    #[error("`{path}` is locked by {}, waited {waited:?}", holder_name(*.holder))]
    Locked {
        path: Utf8PathBuf,
        /// The process that wrote itself into the lock file, when it got that far.
        holder: Option<u32>,
        waited: Duration,
    },
    /// The system refused, or claimed success and did nothing.
    #[error("this system cannot {action} `{path}`: {reason}")]
    NotSupported {
        action: &'static str,
        path: Utf8PathBuf,
        reason: String,
    },
    #[error("`{path}` cannot be used as a path: {reason}")]
    InvalidPath {
        path: Utf8PathBuf,
        reason: &'static str,
    },
    #[error("could not {action} `{path}`")]
    Io {
        action: &'static str,
        path: Utf8PathBuf,
        source: io::Error,
    },
}

fn holder_name(holder: Option<u32>) -> String {
    match holder {
        Some(pid) => format!("process {pid}"),
        None => "a process that has not said its id yet".to_owned(),
    }
}

impl FileError {
    /// Sorts an error of one step into its variant. `InUse` comes without holders: whoever retried
    /// and gave up asks for them with [`FileError::with_holders`].
    pub(super) fn new(action: &'static str, path: &Utf8Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            ErrorKind::NotFound => Self::NotFound { path },
            ErrorKind::AlreadyExists => Self::Exists { path },
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Self::Denied {
                action,
                path,
                source,
            },
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::DiskFull {
                action,
                path,
                source,
            },
            ErrorKind::ResourceBusy | ErrorKind::ExecutableFileBusy => Self::InUse {
                action,
                path,
                holders: Holders::Unknown {
                    reason: "nobody asked the system yet".to_owned(),
                },
                source,
            },
            ErrorKind::NotADirectory => Self::WrongKind {
                path,
                expected: "a folder",
            },
            ErrorKind::IsADirectory => Self::WrongKind {
                path,
                expected: "a file",
            },
            ErrorKind::Unsupported => Self::NotSupported {
                action,
                path,
                reason: source.to_string(),
            },
            _ => Self::Io {
                action,
                path,
                source,
            },
        }
    }

    /// Fills in who holds the file, where that is why the operation failed.
    pub(super) fn with_holders(mut self, ask: impl FnOnce(&Utf8Path) -> Holders) -> Self {
        if let Self::InUse { path, holders, .. } = &mut self {
            *holders = ask(path);
        }
        self
    }

    /// Whether the same call could succeed later with nothing changed by the caller.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::InUse { .. } | Self::Locked { .. } | Self::DiskFull { .. }
        )
    }
}

/// Adds what was being done, and to which path, to the error of a step.
pub(super) trait At<T> {
    fn at(self, action: &'static str, path: &Utf8Path) -> Result<T, FileError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, action: &'static str, path: &Utf8Path) -> Result<T, FileError> {
        self.map_err(|source| FileError::new(action, path, source))
    }
}
