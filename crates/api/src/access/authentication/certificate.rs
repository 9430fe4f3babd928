//! The user in a client certificate: the common name, and a group for each organization.
//!
//! The chain was verified in the handshake. Whether the certificate is still good is asked again for every
//! request, because a connection may outlive it.

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::User;

/// The key of what is recorded about the credential itself.
pub(super) const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// Why a certificate names nobody.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateFault {
    #[error("the client certificate cannot be read")]
    Unreadable,
    #[error("x509: certificate has expired or is not yet valid")]
    NotValid,
    #[error("the client certificate has no common name")]
    Nameless,
}

/// The user that a verified client certificate names.
pub fn user_of_certificate(der: &[u8], now: Timestamp) -> Result<User, CertificateFault> {
    let (rest, certificate) =
        X509Certificate::from_der(der).map_err(|_| CertificateFault::Unreadable)?;
    if !rest.is_empty() {
        return Err(CertificateFault::Unreadable);
    }
    let seconds = now.as_second();
    let validity = certificate.validity();
    if seconds < validity.not_before.timestamp() || validity.not_after.timestamp() < seconds {
        return Err(CertificateFault::NotValid);
    }
    let subject = certificate.subject();
    let name = last_text(subject.iter_common_name()).ok_or(CertificateFault::Nameless)?;
    let groups = subject
        .iter_organization()
        .map(|value| value.as_str().map(str::to_owned))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| CertificateFault::Unreadable)?;
    let mut user = User::authenticated(name, groups);
    let id = format!("X509SHA256={}", hex(&Sha256::digest(der)));
    user.extra.insert(CREDENTIAL_ID.to_owned(), vec![id]);
    Ok(user)
}

/// Of several common names the last one counts, as in upstream.
fn last_text<'a>(
    values: impl Iterator<Item = &'a x509_parser::x509::AttributeTypeAndValue<'a>>,
) -> Option<String> {
    let text = values.last()?.as_str().ok()?;
    (!text.is_empty()).then(|| text.to_owned())
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
