//! Who is asking: from a certificate, a token, or nothing.
//!
//! What was presented and is wrong is an error and never makes somebody anonymous.

mod authenticator;
pub mod bootstrap;
mod certificate;
pub mod discovery;
pub mod impersonation;
pub mod review;
pub mod token;
mod user;
pub(crate) mod websocket;

pub use authenticator::{AnonymousPaths, Authenticated, Authenticator, Presented, StaticToken};
pub use certificate::{CertificateFault, user_of_certificate};
pub use user::{User, group, service_account_groups, service_account_name, split_service_account};

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

/// An object that exists, as far as a token cares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    pub uid: String,
    /// When it is to be gone, if it is being deleted.
    pub deletion: Option<Timestamp>,
}

impl Live {
    /// Reads the metadata of an object.
    pub fn of(object: &Value) -> Self {
        let metadata = &object["metadata"];
        Self {
            uid: metadata["uid"].as_str().unwrap_or_default().to_owned(),
            deletion: metadata["deletionTimestamp"]
                .as_str()
                .and_then(|text| text.parse().ok()),
        }
    }
}

/// The objects that make a token good or bad, from the newest state that the server knows.
pub trait Objects {
    fn service_account(&self, namespace: &str, name: &str) -> Option<Live>;
    fn pod(&self, namespace: &str, name: &str) -> Option<Live>;
    fn secret(&self, namespace: &str, name: &str) -> Option<Live>;
    fn node(&self, name: &str) -> Option<Live>;
    /// A secret with what is in it.
    fn whole_secret(&self, namespace: &str, name: &str) -> Option<Arc<Value>>;
}

/// Why what was presented proves nothing. The texts are those of upstream; none has a part of a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("invalid bearer token")]
    InvalidToken,
    #[error("invalid bearer token, {reason}")]
    Token { reason: String },
    #[error("{0}")]
    Certificate(#[from] CertificateFault),
    #[error("no credentials were presented")]
    Nothing,
}
