//! Digests of downloads: SHA-256 of all, SHA-1 where a DC/OS recipe knows nothing better. Digests are
//! compared as lower-case hexadecimal, and a value of [`Digest`] is well-formed.

use std::fmt;
use std::io::{self, Read as _};
use std::str::FromStr;

use camino::{Utf8Path, Utf8PathBuf};
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

use crate::hash::hex;

const CHUNK: usize = 1 << 18;

/// What a file's content must hash to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Digest {
    Sha256(String),
    Sha1(String),
}

/// Why there is no digest.
#[derive(Debug, thiserror::Error)]
pub enum DigestError {
    #[error("`{text}` is not a SHA-256 or SHA-1 digest in hexadecimal")]
    Text { text: String },
    #[error("`{path}` does not exist")]
    Missing { path: Utf8PathBuf },
    #[error("could not read `{path}`")]
    Read {
        path: Utf8PathBuf,
        source: io::Error,
    },
}

/// The digests of one content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digests {
    pub sha256: String,
    pub sha1: String,
    pub length: u64,
}

impl Digest {
    pub fn sha256(text: &str) -> Result<Self, DigestError> {
        Ok(Self::Sha256(hexadecimal(text, 64)?))
    }

    pub fn sha1(text: &str) -> Result<Self, DigestError> {
        Ok(Self::Sha1(hexadecimal(text, 40)?))
    }

    pub fn algorithm(&self) -> &'static str {
        match self {
            Self::Sha256(_) => "sha256",
            Self::Sha1(_) => "sha1",
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::Sha256(text) | Self::Sha1(text) => text,
        }
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::sha256(text).or_else(|_| Self::sha1(text))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.algorithm(), self.as_str())
    }
}

fn hexadecimal(text: &str, length: usize) -> Result<String, DigestError> {
    if text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(text.to_ascii_lowercase())
    } else {
        Err(DigestError::Text {
            text: text.chars().take(80).collect(),
        })
    }
}

impl Digests {
    pub(super) fn matches(&self, wanted: &Digest) -> bool {
        self.of_kind(wanted) == wanted.as_str()
    }

    /// Ours, by the algorithm of `wanted`.
    pub(super) fn of_kind(&self, wanted: &Digest) -> &str {
        match wanted {
            Digest::Sha256(_) => &self.sha256,
            Digest::Sha1(_) => &self.sha1,
        }
    }
}

/// Hashes a file from its first byte to its last. Blocks.
pub fn digest_file(path: &Utf8Path) -> Result<Digests, DigestError> {
    let mut file = match fs_err::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(DigestError::Missing {
                path: path.to_owned(),
            });
        }
        Err(source) => return Err(read_error(path, source)),
    };
    let (mut sha256, mut sha1, mut length) = (Sha256::new(), Sha1::new(), 0_u64);
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(source) => return Err(read_error(path, source)),
        };
        sha256.update(&chunk[..count]);
        sha1.update(&chunk[..count]);
        length += count as u64;
    }
    Ok(Digests {
        sha256: hex(&sha256.finalize()),
        sha1: hex(&sha1.finalize()),
        length,
    })
}

fn read_error(path: &Utf8Path, source: io::Error) -> DigestError {
    DigestError::Read {
        path: path.to_owned(),
        source,
    }
}
