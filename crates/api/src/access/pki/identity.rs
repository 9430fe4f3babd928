//! A certificate with its private key, kept together in one file.
//!
//! One file has one content at every instant, so a key never meets the certificate of another.

use std::{fmt, sync::Arc};

use jiff::Timestamp;
use rustls::{
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::CertifiedKey,
};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{PkiError, names::ServingNames};

/// A certificate, those between it and a root, and its private key.
#[derive(Clone)]
pub struct Identity {
    certificates: Vec<CertificateDer<'static>>,
    certificate_pem: String,
    key_pem: String,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("certificates", &self.certificates.len())
            .finish_non_exhaustive()
    }
}

impl Identity {
    pub(super) fn new(certificate: &rcgen::Certificate, key: &rcgen::KeyPair) -> Self {
        Self {
            certificates: vec![certificate.der().clone()],
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
        }
    }

    /// Reads a file that [`Identity::to_file`] wrote. `None` if it is something else.
    pub(super) fn of_file(text: &str) -> Option<Self> {
        let key_at = text.find("-----BEGIN PRIVATE KEY-----")?;
        let (certificate_pem, key_pem) = text.split_at(key_at);
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(certificate_pem.as_bytes())
            .collect::<Result<_, _>>()
            .ok()?;
        let identity = Self {
            certificates,
            certificate_pem: certificate_pem.to_owned(),
            key_pem: key_pem.to_owned(),
        };
        // Only a pair that belongs together is one.
        identity
            .certified_key(&aws_lc_rs::default_provider())
            .ok()?;
        Some(identity)
    }

    pub(super) fn to_file(&self) -> String {
        format!("{}{}", self.certificate_pem, self.key_pem)
    }

    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The private key as PKCS#8 in PEM. For a file that only its owner reads, never for a log.
    pub fn key_pem(&self) -> &str {
        &self.key_pem
    }

    pub(super) fn certificate(&self) -> Option<&CertificateDer<'static>> {
        self.certificates.first()
    }

    pub(super) fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.certificates
    }

    pub(super) fn key_pair(&self) -> Result<rcgen::KeyPair, rcgen::Error> {
        rcgen::KeyPair::from_pem(&self.key_pem)
    }

    /// In the form that a TLS connection uses.
    pub(super) fn certified_key(
        &self,
        provider: &CryptoProvider,
    ) -> Result<Arc<CertifiedKey>, PkiError> {
        let key = PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes())
            .map_err(|_| PkiError::Certificate)?;
        CertifiedKey::from_der(self.certificates.clone(), key, provider)
            .map(Arc::new)
            .map_err(|source| PkiError::Tls { source })
    }

    /// The same identity, shown together with who issued it: a machine that joins knows the authority only by
    /// its digest, and finds it in what the server shows.
    pub(super) fn with_issuer(mut self, issuer: &CertificateDer<'static>) -> Self {
        self.certificates.push(issuer.clone());
        self
    }

    /// Whether it was issued by `authority`, serves `names` (where that matters) and will for a while.
    pub(super) fn is_fresh(
        &self,
        authority: &CertificateDer<'_>,
        names: Option<&ServingNames>,
        now: Timestamp,
    ) -> bool {
        let parsed = self.certificate().map(|der| X509Certificate::from_der(der));
        let issuer = X509Certificate::from_der(authority);
        let (Some(Ok((_, certificate))), Ok((_, issuer))) = (parsed, issuer) else {
            return false;
        };
        let is_ours = certificate.issuer().as_raw() == issuer.subject().as_raw()
            && certificate
                .verify_signature(Some(issuer.public_key()))
                .is_ok();
        let serves_names = names.is_none_or(|wanted| {
            let alternatives = certificate.subject_alternative_name().ok().flatten();
            alternatives.is_some_and(|found| {
                ServingNames::of_certificate(&found.value.general_names) == *wanted
            })
        });
        is_ours && serves_names && !needs_renewal(&certificate, now)
    }
}

/// Less than a third of its life is left, or it begins in the future because a clock was set back.
fn needs_renewal(certificate: &X509Certificate<'_>, now: Timestamp) -> bool {
    let begins = certificate.validity().not_before.timestamp();
    let ends = certificate.validity().not_after.timestamp();
    let left = ends.saturating_sub(now.as_second());
    now.as_second() < begins || left < ends.saturating_sub(begins) / 3
}
