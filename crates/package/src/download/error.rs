//! Why a download failed. Addresses are shown without user, password and query: those may be secrets.

use std::fmt;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::files::FileError;
use url::Url;

use super::attempt::Interruption;
use super::{Digest, DigestError, Digests};

/// Why a download failed.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    #[error("`{url}` cannot be downloaded: only http, https and file addresses can")]
    Scheme { url: String },
    #[error("`{url}` does not exist")]
    NotFound { url: String },
    #[error("the server refused `{url}` with status {status}")]
    Refused { url: String, status: u16 },
    #[error("the server redirected `{url}` to where we do not follow")]
    Redirect {
        url: String,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("`{url}` could not be fetched, tried {attempts} times")]
    Unreachable {
        url: String,
        attempts: u32,
        source: Box<Interruption>,
    },
    #[error("`{url}` has more than the {limit} bytes that are accepted")]
    TooLarge { url: String, limit: u64 },
    #[error("`{url}` has {found} bytes, and {expected} were expected{}", kept_as(.kept.as_deref()))]
    Length {
        url: String,
        expected: u64,
        found: u64,
        kept: Option<Utf8PathBuf>,
    },
    #[error(
        "`{url}` has the {algorithm} digest {found}, and {expected} was expected; it is kept as \
         `{kept}`"
    )]
    Digest {
        url: String,
        algorithm: &'static str,
        expected: String,
        found: String,
        kept: Utf8PathBuf,
    },
    #[error(
        "`{path}` needs {needed} bytes on a disk that has {available} left, of which {kept} stay free"
    )]
    Space {
        path: Utf8PathBuf,
        needed: u64,
        available: u64,
        kept: u64,
    },
    #[error("another process has been downloading `{path}` for {waited:?}")]
    Busy { path: Utf8PathBuf, waited: Duration },
    #[error("could not prepare for connections")]
    Client { source: reqwest::Error },
    #[error("could not store a download")]
    File {
        #[from]
        source: FileError,
    },
    #[error("could not write `{path}`")]
    Write {
        path: Utf8PathBuf,
        source: std::io::Error,
    },
    #[error("could not read back a download")]
    ReadBack {
        #[from]
        source: DigestError,
    },
    #[error("the download was cancelled")]
    Cancelled,
}

impl DownloadError {
    pub(super) fn scheme(url: &Url) -> Self {
        Self::Scheme { url: shown(url) }
    }

    pub(super) fn not_found(url: &Url) -> Self {
        Self::NotFound { url: shown(url) }
    }

    pub(super) fn given_up(url: &Url, attempts: u32, interruption: Interruption) -> Self {
        Self::Unreachable {
            url: shown(url),
            attempts,
            source: Box::new(interruption),
        }
    }

    pub(super) fn too_large(url: &Url, limit: u64) -> Self {
        Self::TooLarge {
            url: shown(url),
            limit,
        }
    }

    pub(super) fn length(url: &Url, expected: u64, found: u64, kept: Utf8PathBuf) -> Self {
        Self::Length {
            url: shown(url),
            expected,
            found,
            kept: Some(kept),
        }
    }

    /// The server says beforehand that it has something else.
    pub(super) fn announced_length(url: &Url, expected: u64, found: u64) -> Self {
        Self::Length {
            url: shown(url),
            expected,
            found,
            kept: None,
        }
    }

    pub(super) fn digest(url: &Url, expected: &Digest, found: &Digests, kept: Utf8PathBuf) -> Self {
        Self::Digest {
            url: shown(url),
            algorithm: expected.algorithm(),
            expected: expected.as_str().to_owned(),
            found: found.of_kind(expected).to_owned(),
            kept,
        }
    }

    /// Whether nothing is there, as opposed to nothing being reachable.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }

    /// Whether the same call could succeed later with nothing changed by the caller.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. } | Self::Busy { .. } | Self::Space { .. }
        )
    }
}

fn kept_as(kept: Option<&Utf8Path>) -> String {
    kept.map(|path| format!("; it is kept as `{path}`"))
        .unwrap_or_default()
}

/// An address as people may see it.
pub(super) struct Shown<'a>(pub(super) &'a Url);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.scheme() == "file"
            && let Ok(path) = self.0.to_file_path()
        {
            return write!(formatter, "{}", path.display());
        }
        let mut url = self.0.clone();
        // Neither can fail for addresses that have a host, and others have no user.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        url.set_fragment(None);
        formatter.write_str(url.as_str())
    }
}

pub(crate) fn shown(url: &Url) -> String {
    Shown(url).to_string()
}
