//! Offline bundles: one file with the metadata of a repository and some of what it lists. Inside, files
//! are named by their digest: every other name comes from signed metadata. The same state of a
//! repository makes the same bundle, byte for byte.

mod export;
mod import;
mod read;

use std::io;

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};
use transom_host::files::FileError;
use transom_model::Os;

pub use export::{Exported, export};
pub use import::{Imported, import};
pub use read::read_bundle;

use super::{EditError, PackageListId, RepositoryError};
use crate::download::DigestError;

/// The format that is written, and the only one there is.
const FORMAT: u32 = 1;
const INDEX: &str = "bundle.json";
const BLOBS: &str = "blobs";

/// What of a repository goes into a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only packages for these systems; for all if there is none.
    pub systems: Vec<Os>,
    /// Only packages of these lists, and the lists; everything if there is none.
    pub lists: Vec<PackageListId>,
}

/// The first file in a bundle: what else there is, so that one that was cut off is noticed.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    format: u32,
    /// Names below `metadata`.
    metadata: Vec<String>,
    /// Digests.
    blobs: Vec<String>,
}

/// Why a bundle could not be made or used.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    #[error("could not read the bundle")]
    Read { source: io::Error },
    #[error("the bundle is cut off or damaged: {reason}")]
    Damaged { reason: String },
    #[error("the bundle has format {found}, and only format {FORMAT} is known")]
    Format { found: u32 },
    #[error("the entry `{name}` of the bundle is refused: {reason}")]
    Refused { name: String, reason: &'static str },
    #[error("the bundle has the content {sha256}, which its metadata does not name")]
    Unnamed { sha256: String },
    #[error("nothing says whom to trust: `{folder}` is no repository yet")]
    NoRoot { folder: Utf8PathBuf },
    #[error("`{path}` has the digest {found}, and {expected} was signed")]
    WrongHash {
        path: String,
        expected: String,
        found: String,
    },
    #[error("`{path}` needs {needed} bytes on a disk that has {available} left")]
    Space {
        path: Utf8PathBuf,
        needed: u64,
        available: u64,
    },
    #[error("could not write `{path}`")]
    Write {
        path: Utf8PathBuf,
        source: io::Error,
    },
    #[error("the metadata is not to be trusted")]
    Repository { source: Box<RepositoryError> },
    #[error("the repository cannot be used")]
    Edit { source: Box<EditError> },
    #[error("could not read an archive")]
    Digest {
        #[from]
        source: DigestError,
    },
    #[error("could not change the repository")]
    File {
        #[from]
        source: FileError,
    },
}

impl From<RepositoryError> for BundleError {
    fn from(source: RepositoryError) -> Self {
        Self::Repository {
            source: Box::new(source),
        }
    }
}

impl From<EditError> for BundleError {
    fn from(source: EditError) -> Self {
        Self::Edit {
            source: Box::new(source),
        }
    }
}
