//! Unpacking archives from anywhere into a folder, with no way out of it and no way to fill the disk.
//! The folder appears in one instant when all of the archive was fine, or not at all.

mod names;
mod tar;
mod unpacker;
mod watcher;
mod zip;

use std::io;

use camino::Utf8PathBuf;
use transom_model::os::Os;

use super::FileError;

pub use self::names::{Refusal, check_link, check_name, entry_path, key};
pub use self::tar::{extract_tar, extract_tar_watched};
pub use self::watcher::{Objection, Seen, Unwatched, Watcher, What};
pub use self::zip::{extract_zip, extract_zip_watched};

/// What an archive may become at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    pub entries: u64,
    /// Bytes of the largest file.
    pub file_bytes: u64,
    /// Bytes of all files.
    pub total_bytes: u64,
    /// Bytes of the longest path, and of the longest link target.
    pub path_bytes: usize,
    /// How many names a path may consist of.
    pub depth: usize,
    /// How many times larger than the archive its content may be. Looked at above a mebibyte only:
    /// a small archive of zeros is no bomb.
    pub ratio: u64,
}

/// Where an archive goes, and by whose rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extraction {
    /// Must be free; its folder must exist.
    pub destination: Utf8PathBuf,
    /// The system that will use the content, which need not be ours: it decides which names are
    /// possible and which are the same.
    pub target: Os,
    pub limits: Limits,
}

/// What was unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    pub entries: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Why an archive was not unpacked. Nothing of it is visible then.
#[derive(Debug, thiserror::Error)]
pub enum ExtractError {
    #[error("the entry `{entry}` is refused: {reason}")]
    Refused { entry: String, reason: Refusal },
    #[error("the archive has more than {limit} entries")]
    TooManyEntries { limit: u64 },
    #[error("the entry `{entry}` has more than {limit} bytes")]
    FileTooLarge { entry: String, limit: u64 },
    #[error("the archive unpacks to more than {limit} bytes")]
    TotalTooLarge { limit: u64 },
    #[error("the archive unpacks to more than {limit} times its size")]
    RatioTooLarge { limit: u64 },
    #[error("the entry `{entry}` lies deeper than {limit} folders")]
    TooDeep { entry: String, limit: usize },
    #[error("the archive is cut off")]
    CutOff,
    #[error("the archive is damaged")]
    Damaged { source: io::Error },
    #[error("the archive is not what it should be")]
    Objected { source: Objection },
    #[error("could not write what the archive contains")]
    Write { source: FileError },
}

impl From<FileError> for ExtractError {
    fn from(source: FileError) -> Self {
        Self::Write { source }
    }
}
