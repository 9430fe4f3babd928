//! Lets the controllers have certificates and tokens signed by the API server, which keeps the keys.

use std::fmt;

use serde_json::Value;
use transom_api::access::authentication::token::{Holder, SignError};
use transom_api::access::pki::SigningFault;
use transom_controllers::{Signer, TokenSigner, Unsigned};

/// Signs with what a server gives for it.
pub(super) struct Pen<F>(F);

impl<F> Pen<F> {
    pub(super) fn new(sign: F) -> Self {
        Self(sign)
    }
}

impl<F> fmt::Debug for Pen<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Pen")
    }
}

impl<F> Signer for Pen<F>
where
    F: Fn(&Value) -> Result<String, SigningFault> + Send + Sync,
{
    fn sign(&self, request: &Value) -> Result<String, Unsigned> {
        (self.0)(request).map_err(|fault| match fault {
            SigningFault::NotOurs { .. } => Unsigned::NotOurs,
            SigningFault::Refused { reason } => Unsigned::Refused(reason),
            other => Unsigned::Failed(other.to_string()),
        })
    }
}

/// Signs tokens with what a server gives for it.
pub(super) struct Seal<F>(F);

impl<F> Seal<F> {
    pub(super) fn new(sign: F) -> Self {
        Self(sign)
    }
}

impl<F> fmt::Debug for Seal<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Seal")
    }
}

impl<F> TokenSigner for Seal<F>
where
    F: Fn(Holder<'_>) -> Result<String, SignError> + Send + Sync,
{
    fn token(
        &self,
        namespace: &str,
        secret: &str,
        account: &str,
        account_uid: &str,
    ) -> Result<String, String> {
        let holder = Holder {
            namespace,
            secret,
            account,
            account_uid,
        };
        (self.0)(holder).map_err(|error| error.to_string())
    }
}
