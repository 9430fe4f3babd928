//! The keys that sign the tokens of service accounts: ECDSA on P-256.
//!
//! The newest key signs and every key verifies, so that a rotation breaks no token that is in use.

use std::fmt;

use aws_lc_rs::{
    encoding::{AsDer, PublicKeyX509Der},
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use rustls::pki_types::{PrivatePkcs8KeyDer, pem::PemObject};
use sha2::{Digest as _, Sha256};

use super::{PkiError, pem};

/// So many keys verify; with one more the oldest goes.
const MOST_KEYS: usize = 8;
const LABEL: &str = "PRIVATE KEY";

/// One key.
pub struct TokenKey {
    id: String,
    private: PrivatePkcs8KeyDer<'static>,
    /// The point on the curve, uncompressed.
    public: Vec<u8>,
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenKey")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl TokenKey {
    fn of_private(private: PrivatePkcs8KeyDer<'static>) -> Option<Self> {
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, private.secret_pkcs8_der())
                .ok()?;
        let public: PublicKeyX509Der<'_> = pair.public_key().as_der().ok()?;
        Some(Self {
            // As upstream does it: the hash of the public key as it stands in a certificate.
            id: URL_SAFE_NO_PAD.encode(Sha256::digest(public.as_ref())),
            public: pair.public_key().as_ref().to_vec(),
            private,
        })
    }

    fn generate() -> Result<Self, PkiError> {
        let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
        Self::of_private(pair.into()).ok_or(PkiError::Random)
    }

    fn copied(&self) -> Self {
        Self {
            id: self.id.clone(),
            private: self.private.clone_key(),
            public: self.public.clone(),
        }
    }

    /// What a token calls the key.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The point on the curve, uncompressed: a 4 and the two coordinates.
    pub fn public(&self) -> &[u8] {
        &self.public
    }

    /// The private key as PKCS#8. For signing, never for a log.
    pub fn private(&self) -> &[u8] {
        self.private.secret_pkcs8_der()
    }
}

/// All keys, the newest first. There is always one.
#[derive(Debug)]
pub struct TokenKeys {
    newest: TokenKey,
    older: Vec<TokenKey>,
}

impl TokenKeys {
    pub fn generate() -> Result<Self, PkiError> {
        Ok(Self {
            newest: TokenKey::generate()?,
            older: Vec::new(),
        })
    }

    /// Reads private keys in PEM. `None` if there is none, or something else.
    pub fn of_pem(text: &str) -> Option<Self> {
        let mut keys = PrivatePkcs8KeyDer::pem_slice_iter(text.as_bytes())
            .map(|key| TokenKey::of_private(key.ok()?));
        let newest = keys.next()??;
        let older = keys.collect::<Option<Vec<_>>>()?;
        Some(Self { newest, older })
    }

    /// The private keys in PEM, for a file that only its owner reads.
    pub(super) fn to_pem(&self) -> String {
        let sections = self.all().map(|key| pem::section(LABEL, key.private()));
        sections.collect()
    }

    /// The same keys after a new one.
    pub(super) fn rotated(&self) -> Result<Self, PkiError> {
        let copies = self.all().map(TokenKey::copied);
        Ok(Self {
            newest: TokenKey::generate()?,
            older: copies.take(MOST_KEYS - 1).collect(),
        })
    }

    /// The newest key alone.
    pub(super) fn retired(&self) -> Self {
        Self {
            newest: self.newest.copied(),
            older: Vec::new(),
        }
    }

    /// The key that signs.
    pub fn newest(&self) -> &TokenKey {
        &self.newest
    }

    /// The keys that verify.
    pub fn all(&self) -> impl Iterator<Item = &TokenKey> {
        std::iter::once(&self.newest).chain(&self.older)
    }

    pub fn find(&self, id: &str) -> Option<&TokenKey> {
        self.all().find(|key| key.id == id)
    }
}
