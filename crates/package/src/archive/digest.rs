//! SHA-256 digests as values: compared as bytes, written as lower-case hexadecimal.

use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

const CHUNK: usize = 256 * 1024;

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

/// A text is no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a SHA-256 digest: it has 64 digits of `0-9a-f`")]
pub struct DigestError {
    text: String,
}

impl Digest {
    /// Wraps what a hash gave.
    pub fn from_bytes(bytes: impl Into<[u8; 32]>) -> Self {
        Self(bytes.into())
    }

    /// The digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_bytes(Sha256::digest(bytes))
    }

    /// The digest of all that a reader has, and how many bytes that was.
    pub fn of_reader(reader: &mut dyn Read) -> io::Result<(Self, u64)> {
        let mut sum = Sha256::new();
        let mut chunk = vec![0; CHUNK];
        let mut length = 0;
        loop {
            match reader.read(&mut chunk) {
                Ok(0) => return Ok((Self::from_bytes(sum.finalize()), length)),
                Ok(count) => {
                    sum.update(&chunk[..count]);
                    length += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&crate::hash::hex(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let error = || DigestError {
            text: text.escape_debug().take(100).collect(),
        };
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Ok(byte - b'0'),
            b'a'..=b'f' => Ok(byte - b'a' + 10),
            _ => Err(error()),
        };
        let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
            return Err(error());
        };
        let bytes = pairs
            .iter()
            .map(|[high, low]| Ok(digit(*high)? << 4 | digit(*low)?))
            .collect::<Result<Vec<u8>, DigestError>>()?;
        bytes.try_into().map(Self).map_err(|_| error())
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_as_it_is_written() {
        let digest = Digest::of(b"abc");
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.to_string(), text);
        assert_eq!(text.parse(), Ok(digest));
        assert_eq!(Digest::of_reader(&mut &b"abc"[..]).unwrap(), (digest, 3));
    }

    #[test]
    fn what_is_no_digest_is_refused() {
        let capitals = "B".repeat(64);
        let long = "a".repeat(66);
        for text in ["", "ab", "a", capitals.as_str(), long.as_str(), "ä"] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}
