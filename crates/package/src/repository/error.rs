//! Why a repository could not be read, or changed. Metadata that is not to be trusted changes nothing:
//! each of these errors comes before the first write.

use camino::Utf8PathBuf;
use jiff::Timestamp;
use tough::schema::RoleType;
use transom_host::files::FileError;
use transom_model::Os;
use transom_model::package::PackageId;

use super::{IdentityError, KeyError, PackageListId};
use crate::download::{DigestError, DownloadError};

/// Why a repository could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    #[error("`{text}` is neither an address nor a folder")]
    Location { text: String },
    #[error("there is no repository at `{url}`: it has no `{missing}`")]
    NoRepository { url: String, missing: String },
    #[error("`{url}` is out of reach")]
    Unreachable {
        url: String,
        source: Box<DownloadError>,
    },
    #[error("`{file}` is not valid metadata")]
    Malformed {
        file: String,
        source: serde_json::Error,
    },
    #[error("`{file}` is not valid metadata: {reason}")]
    Invalid { file: String, reason: String },
    #[error("the repository lists `{name}`, which is refused: {reason}")]
    BadTarget { name: String, reason: String },
    #[error("the {role} metadata expired at {expired}")]
    Expired { role: RoleType, expired: Timestamp },
    #[error(
        "the repository offers version {offered} of its {role} metadata, and version {seen} was \
         seen before"
    )]
    Rollback {
        role: RoleType,
        seen: u64,
        offered: u64,
    },
    #[error(
        "the {role} metadata version {version} has {valid} signatures of known keys, and {needed} \
         are needed"
    )]
    Signatures {
        role: RoleType,
        version: u64,
        needed: u64,
        valid: u64,
    },
    #[error("the signatures of the {role} metadata cannot be checked: {reason}")]
    Unverifiable { role: RoleType, reason: String },
    #[error("`{file}` has the digest {found}, and {expected} was signed")]
    WrongHash {
        file: String,
        expected: String,
        found: String,
    },
    #[error("no root of the repository has the pinned digest {sha256}")]
    WrongPin { sha256: String },
    #[error("`{id}` for {os} is not in the repository{}", near_names(.near))]
    NotInRepository {
        id: PackageId,
        os: Os,
        near: Vec<String>,
    },
    #[error("the package list `{id}` is not in the repository")]
    NoSuchList { id: PackageListId },
    #[error("`{path}` is listed in the repository and missing there")]
    Absent { path: String },
    #[error("could not fetch `{path}`")]
    Fetch {
        path: String,
        source: Box<DownloadError>,
    },
    #[error("could not keep what was learnt about the repository")]
    Datastore {
        #[from]
        source: FileError,
    },
    #[error("could not read the trusted root `{path}`")]
    TrustedRoot {
        path: Utf8PathBuf,
        source: FileError,
    },
}

fn near_names(near: &[String]) -> String {
    if near.is_empty() {
        return String::new();
    }
    let names: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
    format!("; it has {}", names.join(", "))
}

impl RepositoryError {
    pub(super) fn bad_target(name: &str, reason: impl Into<String>) -> Self {
        Self::BadTarget {
            name: name.escape_debug().take(200).collect(),
            reason: reason.into(),
        }
    }

    pub(super) fn invalid(file: &str, reason: impl Into<String>) -> Self {
        Self::Invalid {
            file: file.to_owned(),
            reason: reason.into(),
        }
    }
}

/// Why a repository could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error("`{path}` is a repository already")]
    Exists { path: Utf8PathBuf },
    #[error("a threshold of {threshold} cannot be reached with {keys} keys")]
    Threshold { threshold: u64, keys: usize },
    #[error(
        "the {role} metadata needs {needed} signatures, and only {found} of its keys are at hand"
    )]
    TooFewKeys {
        role: RoleType,
        needed: u64,
        found: u64,
    },
    #[error("`{id}` for {os} is in the repository already, with another content")]
    Different { id: PackageId, os: Os },
    #[error("`{id}` cannot be told from `{other}` on Windows, where letters have no case")]
    SameButForCase { id: PackageId, other: PackageId },
    #[error("`{path}` has no manifest of ours: nobody has vouched for it")]
    Unsigned { path: Utf8PathBuf },
    #[error("`{path}` is called `{named}`, and its manifest says `{id}`")]
    OtherName {
        path: Utf8PathBuf,
        named: String,
        id: PackageId,
    },
    #[error("`{path}` is neither an archive of a package nor a package list: {reason}")]
    Unknown { path: Utf8PathBuf, reason: String },
    #[error("the package list `{path}` is called `{named}`, and its packages make `{id}`")]
    WrongListId {
        path: Utf8PathBuf,
        named: String,
        id: PackageListId,
    },
    #[error("`{id}` is named by the package list `{list}`")]
    Needed { id: PackageId, list: PackageListId },
    #[error("no root waits for signatures")]
    NothingPending,
    #[error("none of the given keys is one that the waiting root needs")]
    UselessKeys,
    #[error("could not tell what `{path}` is")]
    Identity {
        path: Utf8PathBuf,
        source: IdentityError,
    },
    #[error("the repository cannot be read")]
    Repository { source: Box<RepositoryError> },
    #[error("could not use a key")]
    Key {
        #[from]
        source: KeyError,
    },
    #[error("could not change the repository")]
    File {
        #[from]
        source: FileError,
    },
    #[error("could not store an archive")]
    Store { source: Box<DownloadError> },
    #[error("could not read an archive")]
    Read {
        #[from]
        source: DigestError,
    },
    #[error("the {role} metadata could not be written")]
    Render { role: RoleType, reason: String },
    #[error("the {role} metadata would expire at no time that can be written")]
    Expiry { role: RoleType },
}

impl From<RepositoryError> for EditError {
    fn from(source: RepositoryError) -> Self {
        Self::Repository {
            source: Box::new(source),
        }
    }
}

impl From<DownloadError> for EditError {
    fn from(source: DownloadError) -> Self {
        Self::Store {
            source: Box::new(source),
        }
    }
}
