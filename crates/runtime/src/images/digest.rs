//! Digests: the names of content. Invariant: a [`Digest`] is always `sha256:` and 64 lower-case digits, so
//! that it can be a file name.

use std::fmt;
use std::io::{self, Read};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

const ALGORITHM: &str = "sha256:";

/// The name of some content.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(String);

impl Digest {
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = Hasher::default();
        hasher.update(bytes);
        hasher.finish()
    }

    /// The digits alone.
    pub fn hex(&self) -> &str {
        &self.0[ALGORITHM.len()..]
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.0
    }
}

impl TryFrom<String> for Digest {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let is_digest = text.strip_prefix(ALGORITHM).is_some_and(|hex| {
            hex.len() == 64
                && hex
                    .bytes()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        });
        if is_digest {
            Ok(Self(text))
        } else {
            Err(format!("{text:?} is no digest of the form sha256:…"))
        }
    }
}

impl TryFrom<&str> for Digest {
    type Error = String;

    fn try_from(text: &str) -> Result<Self, Self::Error> {
        Self::try_from(text.to_owned())
    }
}

/// Makes the digest of content that comes in pieces.
#[derive(Clone, Default)]
pub(super) struct Hasher(Sha256);

impl Hasher {
    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(super) fn finish(self) -> Digest {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = String::with_capacity(ALGORITHM.len() + 64);
        text.push_str(ALGORITHM);
        for byte in self.0.finalize() {
            text.push(char::from(DIGITS[usize::from(byte >> 4)]));
            text.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
        Digest(text)
    }
}

/// Reads on and remembers what it read: how much, and its digest. More than `limit` is an error.
pub(super) struct Counted<R> {
    inner: R,
    hasher: Hasher,
    count: u64,
    limit: u64,
}

impl<R: Read> Counted<R> {
    pub(super) fn new(inner: R, limit: u64) -> Self {
        Self {
            inner,
            hasher: Hasher::default(),
            count: 0,
            limit,
        }
    }

    pub(super) fn finish(self) -> (Digest, u64) {
        (self.hasher.finish(), self.count)
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        self.count += count as u64;
        if self.count > self.limit {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!(
                    "there is more than the {} bytes that are allowed",
                    self.limit
                ),
            ));
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_a_sha256_is_a_digest() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").as_str(), empty);
        assert_eq!(Digest::try_from(empty).expect("a digest").hex().len(), 64);
        for bad in [
            "",
            "sha256:",
            "sha512:00",
            "sha256:../../etc/passwd",
            &empty.to_uppercase(),
            &empty[..70],
        ] {
            assert!(Digest::try_from(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn reading_ends_at_the_limit() {
        let mut counted = Counted::new(&b"12345"[..], 4);
        let error = io::copy(&mut counted, &mut io::sink()).expect_err("too much");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}
