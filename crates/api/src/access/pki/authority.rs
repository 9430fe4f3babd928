//! The certificate authority: one key that issues, and the certificates of all authorities that are trusted.
//!
//! An authority is never replaced because its file is damaged: everything out there trusts it.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SerialNumber,
};
use rustls::pki_types::CertificateDer;
use time::OffsetDateTime;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{PkiError, identity::Identity, names::ServingNames};

const DAY: SignedDuration = SignedDuration::from_hours(24);
const AUTHORITY_LIFE: SignedDuration = SignedDuration::from_hours(24 * 3650);
pub(super) const LEAF_LIFE: SignedDuration = SignedDuration::from_hours(24 * 365);
/// Clocks differ: what is issued now must be good on a machine that lags a little.
const BACKDATED: SignedDuration = SignedDuration::from_mins(5);

/// The key that issues certificates.
pub(super) struct Authority {
    identity: Identity,
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
    ends: Timestamp,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority")
            .field("ends", &self.ends)
            .finish_non_exhaustive()
    }
}

/// For whom a certificate is, and what for.
pub(super) struct Leaf<'a> {
    pub(super) common_name: &'a str,
    pub(super) organization: Option<&'a str>,
    pub(super) names: Option<&'a ServingNames>,
    pub(super) usage: ExtendedKeyUsagePurpose,
    pub(super) life: SignedDuration,
}

impl Authority {
    pub(super) fn create(now: Timestamp) -> Result<Self, PkiError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        // Two authorities in one bundle must have different names, or verifiers mix them up.
        params.distinguished_name.push(
            DnType::CommonName,
            format!("transom-ca@{}", now.as_second()),
        );
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
        ];
        (params.not_before, params.not_after) = life(now, AUTHORITY_LIFE, None)?;
        params.serial_number = Some(serial_number()?);
        let key = new_key()?;
        let certificate = params.self_signed(&key)?;
        Self::of_identity(Identity::new(&certificate, &key), now)
    }

    /// Takes what was read from the authority's file.
    pub(super) fn of_identity(identity: Identity, now: Timestamp) -> Result<Self, PkiError> {
        let certificate = identity.certificate().ok_or(PkiError::Certificate)?.clone();
        let (begins, ends) = validity(&certificate)?;
        if now < begins || ends <= now {
            return Err(PkiError::AuthorityNotValid { begins, ends });
        }
        let issuer = Issuer::from_ca_cert_der(&certificate, identity.key_pair()?)?;
        Ok(Self {
            identity,
            certificate,
            issuer,
            ends,
        })
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(super) fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    pub(super) fn ends(&self) -> Timestamp {
        self.ends
    }

    /// A new key with its certificate.
    pub(super) fn issue(&self, leaf: &Leaf<'_>, now: Timestamp) -> Result<Identity, PkiError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        if let Some(organization) = leaf.organization {
            let name = &mut params.distinguished_name;
            name.push(DnType::OrganizationName, organization);
        }
        params
            .distinguished_name
            .push(DnType::CommonName, leaf.common_name);
        if let Some(names) = leaf.names {
            params.subject_alt_names = names.to_alternatives()?;
        }
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![leaf.usage.clone()];
        params.use_authority_key_identifier_extension = true;
        params.serial_number = Some(serial_number()?);
        (params.not_before, params.not_after) = life(now, leaf.life, Some(self.ends))?;
        let key = new_key()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Identity::new(&certificate, &key))
    }
}

/// Whether an authority should be rotated soon, because leaves can no longer have their full life.
pub(super) fn ends_soon(ends: Timestamp, now: Timestamp) -> bool {
    ends.duration_since(now) < LEAF_LIFE + DAY
}

/// From when until when a certificate is good.
pub(super) fn validity(
    certificate: &CertificateDer<'_>,
) -> Result<(Timestamp, Timestamp), PkiError> {
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|_| PkiError::Certificate)?;
    let moment = |seconds| Timestamp::from_second(seconds).map_err(|_| PkiError::Certificate);
    Ok((
        moment(parsed.validity().not_before.timestamp())?,
        moment(parsed.validity().not_after.timestamp())?,
    ))
}

/// A life that starts now and does not outlast the issuer.
fn life(
    now: Timestamp,
    length: SignedDuration,
    at_most: Option<Timestamp>,
) -> Result<(OffsetDateTime, OffsetDateTime), PkiError> {
    let ends = now.saturating_add(length).map_err(|_| PkiError::Clock)?;
    let ends = at_most.map_or(ends, |limit| ends.min(limit));
    let begins = now.saturating_sub(BACKDATED).map_err(|_| PkiError::Clock)?;
    let date = |moment: Timestamp| {
        OffsetDateTime::from_unix_timestamp(moment.as_second()).map_err(|_| PkiError::Clock)
    };
    Ok((date(begins)?, date(ends)?))
}

fn new_key() -> Result<KeyPair, PkiError> {
    Ok(KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?)
}

/// Random, positive and 16 bytes long: no two certificates of an authority share one.
pub(super) fn serial_number() -> Result<SerialNumber, PkiError> {
    let mut bytes = [0; 16];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| PkiError::Random)?;
    bytes[0] = bytes[0] & 0x7f | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}
