//! The tokens of service accounts: JSON web tokens signed with ES256.
//!
//! A token is good only while the account, and what it is bound to, exist under the same uid.

mod claims;
mod legacy;
mod remembered;
mod request;
#[cfg(test)]
mod tests;
mod verify;

pub use claims::{Claims, Kubernetes, Reference};
pub use legacy::Holder;
pub use request::{Bound, BoundKind, Found, TokenRequest};
pub use verify::{TokenFault, Verified};

use std::sync::Arc;

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde::Serialize;

use crate::access::pki::TokenKeys;
use remembered::Remembered;

/// Who signs, and for whom tokens are if nothing else is said.
pub const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// Issues and verifies tokens under one name.
#[derive(Clone, Debug)]
pub struct Tokens {
    issuer: String,
    /// The audiences that mean this server.
    audiences: Vec<String>,
    remembered: Arc<Remembered>,
}

impl Default for Tokens {
    fn default() -> Self {
        Self::new(ISSUER, vec![ISSUER.to_owned()])
    }
}

/// A token could not be signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the token could not be signed")]
pub struct SignError;

impl Tokens {
    pub fn new(issuer: &str, audiences: Vec<String>) -> Self {
        Self {
            issuer: issuer.to_owned(),
            audiences,
            remembered: Arc::default(),
        }
    }

    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    pub fn audiences(&self) -> &[String] {
        &self.audiences
    }

    /// Signs with the newest key.
    pub fn sign(&self, keys: &TokenKeys, claims: &Claims) -> Result<String, SignError> {
        Self::sign_claims(keys, claims)
    }

    fn sign_claims(keys: &TokenKeys, claims: &impl Serialize) -> Result<String, SignError> {
        let key = keys.newest();
        let header = Header {
            // Upstream's tokens have no type, and some readers compare the whole header.
            typ: None,
            kid: Some(key.id().to_owned()),
            ..Header::new(Algorithm::ES256)
        };
        let private = EncodingKey::from_ec_der(key.private());
        jsonwebtoken::encode(&header, claims, &private).map_err(|_| SignError)
    }
}
