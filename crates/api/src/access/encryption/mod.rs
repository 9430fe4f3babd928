//! Secrets at rest: what is stored says nothing to whoever has only the disk.
//!
//! Each message has a key of its own, derived from a key of the ring and a random salt of 32 bytes. A random
//! nonce of 96 bits under one key would repeat, with a chance worth a thought, after some billions of writes,
//! and two messages under one nonce give both away. With the salt, two messages share key and nonce only if
//! 352 random bits agree.
//!
//! The name under which a message is stored is authenticated with it: nobody can move a secret to where they
//! may read it.

mod ring;
#[cfg(test)]
mod tests;

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf, rand,
};

pub use ring::{KeyRing, RingError};

/// How every sealed message begins: no stored JSON or protobuf does.
const MAGIC: &[u8; 8] = b"transom\x01";
const KEY_ID_LENGTH: usize = 8;
const SALT_LENGTH: usize = 32;
const HEADER_LENGTH: usize = MAGIC.len() + KEY_ID_LENGTH + SALT_LENGTH + NONCE_LEN;
const INFO: &[&[u8]] = &[b"transom secrets at rest, v1"];

/// Why a message could not be sealed or opened. Says nothing of what is in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    #[error("the system gave no randomness")]
    Random,
    #[error("the value could not be encrypted")]
    Seal,
    #[error("the value is not encrypted, or by something else")]
    NotSealed,
    #[error("the value is encrypted with the key `{id}`, which is not in the ring")]
    UnknownKey { id: String },
    #[error("the value was changed, or stood under another name")]
    Tampered,
}

/// Seals and opens with the keys of a ring: the newest seals, all open.
#[derive(Debug)]
pub struct Sealer {
    ring: KeyRing,
}

impl Sealer {
    pub fn new(ring: KeyRing) -> Self {
        Self { ring }
    }

    /// Encrypts what is to be stored under the name `context`.
    pub fn seal(&self, context: &str, plain: &[u8]) -> Result<Vec<u8>, SealError> {
        let key = self.ring.newest();
        let mut salt = [0; SALT_LENGTH];
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut salt).map_err(|_| SealError::Random)?;
        rand::fill(&mut nonce).map_err(|_| SealError::Random)?;
        let mut sealed = Vec::with_capacity(HEADER_LENGTH + plain.len() + AES_256_GCM.tag_len());
        sealed.extend_from_slice(MAGIC);
        sealed.extend_from_slice(&key.id);
        sealed.extend_from_slice(&salt);
        sealed.extend_from_slice(&nonce);
        let authenticated = authenticated(&sealed, context);
        let mut body = plain.to_vec();
        message_key(&key.secret, &salt)
            .ok_or(SealError::Seal)?
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(authenticated),
                &mut body,
            )
            .map_err(|_| SealError::Seal)?;
        sealed.append(&mut body);
        Ok(sealed)
    }

    /// Decrypts what was stored under the name `context`.
    pub fn open(&self, context: &str, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let message = Message::of(sealed).ok_or(SealError::NotSealed)?;
        let key = self.ring.find(*message.key_id);
        let key = key.ok_or_else(|| SealError::UnknownKey {
            id: ring::hex(message.key_id),
        })?;
        let mut body = message.body.to_vec();
        let plain = message_key(&key.secret, message.salt)
            .ok_or(SealError::Tampered)?
            .open_in_place(
                Nonce::assume_unique_for_key(*message.nonce),
                Aad::from(authenticated(message.header, context)),
                &mut body,
            )
            .map_err(|_| SealError::Tampered)?
            .len();
        body.truncate(plain);
        Ok(body)
    }

    /// Whether this is something that [`Sealer::seal`] made. What was stored before there were keys is not.
    pub fn is_sealed(stored: &[u8]) -> bool {
        Message::of(stored).is_some()
    }

    /// Whether what is stored should be read and written again: it is plain, or sealed with an older key.
    pub fn needs_rewrite(&self, stored: &[u8]) -> bool {
        Message::of(stored).is_none_or(|message| *message.key_id != self.ring.newest().id)
    }
}

/// The parts of a sealed message.
struct Message<'a> {
    header: &'a [u8],
    key_id: &'a [u8; KEY_ID_LENGTH],
    salt: &'a [u8; SALT_LENGTH],
    nonce: &'a [u8; NONCE_LEN],
    body: &'a [u8],
}

impl<'a> Message<'a> {
    fn of(sealed: &'a [u8]) -> Option<Self> {
        let (header, body) = sealed.split_at_checked(HEADER_LENGTH)?;
        let rest = header.strip_prefix(MAGIC)?;
        let (key_id, rest) = rest.split_first_chunk()?;
        let (salt, rest) = rest.split_first_chunk()?;
        let (nonce, _) = rest.split_first_chunk()?;
        (body.len() >= AES_256_GCM.tag_len()).then_some(Self {
            header,
            key_id,
            salt,
            nonce,
            body,
        })
    }
}

/// The header and the name. The header has a fixed length, so no two pairs make the same bytes.
fn authenticated(header: &[u8], context: &str) -> Vec<u8> {
    [header, context.as_bytes()].concat()
}

/// The key of one message.
fn message_key(secret: &[u8; 32], salt: &[u8; SALT_LENGTH]) -> Option<LessSafeKey> {
    let derived = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(secret);
    let expanded = derived.expand(INFO, &AES_256_GCM).ok()?;
    Some(LessSafeKey::new(UnboundKey::from(expanded)))
}
