//! What stands in the store: plain JSON, or for secrets the same sealed.

use std::borrow::Cow;

use serde_json::Value;

use crate::{
    access::encryption::{SealError, Sealer},
    object,
    registry::Kind,
};

/// Why an object could not be turned into what is stored, or back.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    #[error("`{key}` could not be written as JSON")]
    Json {
        key: String,
        source: serde_json::Error,
    },
    #[error("`{key}` could not be sealed or opened: {source}")]
    Seal { key: String, source: SealError },
    #[error("`{key}` is sealed, and this server has no keys")]
    NoKeys { key: String },
}

/// Turns objects into what is stored, and back. Without a sealer, secrets are stored as they are.
#[derive(Debug, Default)]
pub struct Codec {
    sealer: Option<Sealer>,
}

impl Codec {
    pub fn new(sealer: Sealer) -> Self {
        Self {
            sealer: Some(sealer),
        }
    }

    pub(crate) fn close(
        &self,
        kind: &Kind,
        key: &str,
        value: &Value,
    ) -> Result<Vec<u8>, CodecError> {
        let plain = object::to_stored(value).map_err(|source| CodecError::Json {
            key: key.to_owned(),
            source,
        })?;
        match &self.sealer {
            Some(sealer) if kind.secret => {
                sealer.seal(key, &plain).map_err(|source| CodecError::Seal {
                    key: key.to_owned(),
                    source,
                })
            }
            _ => Ok(plain),
        }
    }

    /// Sealed values are told by their first byte: an object begins with a brace.
    pub(crate) fn open<'a>(
        &self,
        key: &str,
        stored: &'a [u8],
    ) -> Result<Cow<'a, [u8]>, CodecError> {
        if stored.first() == Some(&b'{') {
            return Ok(Cow::Borrowed(stored));
        }
        let sealer = self.sealer.as_ref().ok_or_else(|| CodecError::NoKeys {
            key: key.to_owned(),
        })?;
        sealer
            .open(key, stored)
            .map(Cow::Owned)
            .map_err(|source| CodecError::Seal {
                key: key.to_owned(),
                source,
            })
    }

    /// Whether a stored secret is plain or sealed with an old key.
    pub(crate) fn needs_rewrite(&self, stored: &[u8]) -> bool {
        self.sealer
            .as_ref()
            .is_some_and(|sealer| sealer.needs_rewrite(stored))
    }
}
