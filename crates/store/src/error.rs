//! Why a store could not answer.

use std::io;

use camino::Utf8PathBuf;

use crate::{LeaseId, Revision};

/// Why a store could not answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("revision {requested} is forgotten: the oldest kept one is {oldest}")]
    Compacted {
        requested: Revision,
        oldest: Revision,
    },
    #[error("revision {requested} has not happened: the newest one is {newest}")]
    Future {
        requested: Revision,
        newest: Revision,
    },
    #[error("lease {} has ended", .0.0)]
    NoLease(LeaseId),
    #[error("`{key}` is written twice in one transaction")]
    TwoWrites { key: String },
    #[error("a transaction of {size} bytes is too large: at most {limit}")]
    TooLarge { size: usize, limit: usize },
    #[error("a transaction of {count} conditions or writes is too large: at most {limit}")]
    TooMany { count: usize, limit: usize },
    #[error("a key has between 1 and {limit} bytes, not {length}")]
    BadKey { length: usize, limit: usize },
    #[error("the store in `{folder}` has format {found}; this version reads up to {known}")]
    NewerFormat {
        folder: Utf8PathBuf,
        found: u32,
        known: u32,
    },
    #[error("the store in `{folder}` is in use by another process")]
    InUse { folder: Utf8PathBuf },
    #[error("the store is damaged at `{place}`: {reason}")]
    Damaged { place: String, reason: String },
    #[error("the store cannot be reached")]
    Unavailable {
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("could not {action} `{path}`")]
    Files {
        action: &'static str,
        path: Utf8PathBuf,
        source: io::Error,
    },
    #[error("`{folder}` is not empty")]
    NotEmpty { folder: Utf8PathBuf },
    #[error("the store has failed and must be opened anew: {reason}")]
    Failed { reason: String },
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Whether the same call could succeed later with nothing changed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::InUse { .. })
    }
}
