//! How one attempt ends: with all of the file, with a part of it and hope, or with an error that no
//! further attempt would change.

use std::time::Duration;

use super::DownloadError;
use super::part::Part;

/// The end of an attempt. The part comes back when it can still be of use.
pub(super) enum Attempt {
    Complete(Part),
    Interrupted(Part, Interruption),
    Failed(DownloadError),
}

/// Why an attempt broke off, though the next may succeed.
#[derive(Debug, thiserror::Error)]
pub enum Interruption {
    #[error("the server answered with status {status}")]
    Status {
        status: u16,
        asked_pause: Option<Duration>,
    },
    #[error("the connection failed")]
    Connection { source: reqwest::Error },
    #[error("the server sent {found} bytes and had announced {announced}")]
    Short { announced: u64, found: u64 },
    #[error("what was left of an earlier download was damaged")]
    DamagedPart,
    #[error("the server has changed the file meanwhile")]
    Changed,
}

impl Interruption {
    /// What the server asked for.
    pub(super) fn asked_pause(&self) -> Option<Duration> {
        match self {
            Self::Status { asked_pause, .. } => *asked_pause,
            _ => None,
        }
    }
}
