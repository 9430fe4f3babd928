//! Certificates for those who ask with a `CertificateSigningRequest`.
//!
//! Subject, names and public key are taken over as they are, byte for byte, once the rules of the signer are
//! kept; everything else is our decision.

use std::net::IpAddr;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, SigningKey as _};
use rustls::pki_types::{CertificateSigningRequestDer, pem::PemObject};
use serde_json::Value;
use x509_parser::{
    certification_request::X509CertificationRequest,
    cri_attributes::ParsedCriAttribute,
    extensions::{GeneralName, ParsedExtension},
    prelude::{FromDer, X509Certificate},
    x509::AttributeTypeAndValue,
};

use super::{
    FIRST_SERVICE_ADDRESS, Pki, PkiError,
    authority::{self, Authority},
    der, pem,
};

const LONGEST_REQUEST: usize = 64 << 10;
const LONGEST_LIFE: SignedDuration = SignedDuration::from_hours(24 * 365);
const SHORTEST_LIFE: SignedDuration = SignedDuration::from_mins(10);
const BACKDATED: SignedDuration = SignedDuration::from_mins(5);

const NODES: &str = "system:nodes";
const NODE_PREFIX: &str = "system:node:";
const MASTERS: &str = "system:masters";

/// The rules that a request must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signer {
    ApiClient,
    KubeletClient,
    KubeletServing,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum SigningFault {
    /// Somebody else signs such requests.
    #[error("the signer `{name}` is not one of ours")]
    NotOurs { name: String },
    /// The request will never be signed; the text is for its condition `Failed`.
    #[error("{reason}")]
    Refused { reason: String },
    #[error("the authority's key is not one of ECDSA on P-256")]
    OtherKey,
    #[error("could not sign")]
    Failed {
        #[from]
        source: PkiError,
    },
}

fn refused(reason: impl Into<String>) -> SigningFault {
    SigningFault::Refused {
        reason: reason.into(),
    }
}

impl Pki {
    /// Signs what a `CertificateSigningRequest` asks for, as PEM. Whether it is approved is the caller's
    /// question.
    pub fn sign_request(&self, object: &Value, now: Timestamp) -> Result<String, SigningFault> {
        let spec = &object["spec"];
        let name = spec["signerName"].as_str().unwrap_or_default();
        let signer = Signer::of(name).ok_or_else(|| SigningFault::NotOurs {
            name: name.to_owned(),
        })?;
        let usages: Vec<&str> = spec["usages"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let request = decode(spec["request"].as_str().unwrap_or_default())?;
        let (rest, parsed) = X509CertificationRequest::from_der(&request)
            .map_err(|_| refused("unable to parse csr"))?;
        if !rest.is_empty() {
            return Err(refused("unable to parse csr"));
        }
        parsed
            .verify_signature()
            .map_err(|_| refused("the signature of the request is wrong"))?;
        let names = signer.check(&parsed, &usages)?;
        let asked = spec["expirationSeconds"].as_i64();
        let life = asked.map_or(LONGEST_LIFE, SignedDuration::from_secs);
        let life = life.clamp(SHORTEST_LIFE, LONGEST_LIFE);
        let authority = self.authority();
        let certificate = Certificate {
            request: &parsed,
            usages: &usages,
            names,
            begins: now.saturating_sub(BACKDATED).unwrap_or(now),
            ends: now
                .saturating_add(life)
                .unwrap_or(now)
                .min(authority.ends()),
        };
        let der = certificate.issue(&authority)?;
        Ok(pem::section("CERTIFICATE", &der))
    }
}

/// The DER in a request's base64 of PEM.
fn decode(request: &str) -> Result<CertificateSigningRequestDer<'static>, SigningFault> {
    if request.len() > LONGEST_REQUEST {
        return Err(refused("the request is too long"));
    }
    let text = STANDARD.decode(request).ok();
    text.and_then(|text| CertificateSigningRequestDer::from_pem_slice(&text).ok())
        .ok_or_else(|| refused("unable to parse csr"))
}

impl Signer {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "kubernetes.io/kube-apiserver-client" => Self::ApiClient,
            "kubernetes.io/kube-apiserver-client-kubelet" => Self::KubeletClient,
            "kubernetes.io/kubelet-serving" => Self::KubeletServing,
            _ => return None,
        })
    }

    /// Checks a request, and returns its alternative names as they stand in it.
    fn check<'a>(
        self,
        request: &'a X509CertificationRequest<'_>,
        usages: &[&str],
    ) -> Result<Option<&'a [u8]>, SigningFault> {
        let subject = &request.certification_request_info.subject;
        let texts = |values: Vec<Result<&str, _>>| -> Result<Vec<String>, SigningFault> {
            let texts: Result<Vec<&str>, x509_parser::error::X509Error> =
                values.into_iter().collect();
            let texts = texts.map_err(|_| refused("the subject cannot be read"))?;
            Ok(texts.into_iter().map(str::to_owned).collect())
        };
        let groups = texts(
            subject
                .iter_organization()
                .map(AttributeTypeAndValue::as_str)
                .collect(),
        )?;
        let common = texts(
            subject
                .iter_common_name()
                .map(AttributeTypeAndValue::as_str)
                .collect(),
        )?;
        let common = common.last().map_or("", String::as_str);
        let alternatives = Alternatives::of(request)?;
        check_usages(self, usages)?;
        if self == Self::ApiClient {
            if common.is_empty() {
                return Err(refused("the subject has no common name"));
            }
            if groups.iter().any(|group| group == MASTERS) {
                return Err(refused(
                    "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed",
                ));
            }
            return Ok(alternatives.bytes);
        }
        if groups != [NODES] {
            return Err(refused("subject organization is not system:nodes"));
        }
        if !common.starts_with(NODE_PREFIX) || common.len() == NODE_PREFIX.len() {
            return Err(refused(
                "subject common name does not begin with system:node:",
            ));
        }
        for (is_there, what) in [
            (alternatives.emails, "Email"),
            (alternatives.uris, "URI"),
            (self == Self::KubeletClient && alternatives.names, "DNS"),
            (self == Self::KubeletClient && alternatives.addresses, "IP"),
        ] {
            if is_there {
                return Err(refused(format!("{what} SANs are not allowed")));
            }
        }
        if alternatives.of_server {
            return Err(refused("the names of the API server are not for nodes"));
        }
        let nameless = !alternatives.names && !alternatives.addresses;
        if self == Self::KubeletServing && nameless {
            return Err(refused("DNS or IP subjectAltName is required"));
        }
        Ok(alternatives.bytes)
    }
}

fn check_usages(signer: Signer, usages: &[&str]) -> Result<(), SigningFault> {
    let role = if signer == Signer::KubeletServing {
        "server auth"
    } else {
        "client auth"
    };
    let is_known = |usage: &&str| [role, "digital signature", "key encipherment"].contains(usage);
    let has_role = usages.contains(&role);
    // Kubelets must ask for exactly what they need; key encipherment only makes sense for RSA.
    let is_exact = signer == Signer::ApiClient || usages.contains(&"digital signature");
    if has_role && is_exact && usages.iter().all(is_known) {
        Ok(())
    } else {
        Err(refused("usages did not match the rules of the signer"))
    }
}

/// The alternative names of a request.
#[derive(Default)]
struct Alternatives<'a> {
    bytes: Option<&'a [u8]>,
    names: bool,
    addresses: bool,
    emails: bool,
    uris: bool,
    /// Some belong to the service of the API server.
    of_server: bool,
}

impl<'a> Alternatives<'a> {
    fn of(request: &'a X509CertificationRequest<'_>) -> Result<Self, SigningFault> {
        let mut found = Self::default();
        for attribute in request.certification_request_info.iter_attributes() {
            let ParsedCriAttribute::ExtensionRequest(wanted) = attribute.parsed_attribute() else {
                continue;
            };
            for extension in &wanted.extensions {
                let ParsedExtension::SubjectAlternativeName(names) = extension.parsed_extension()
                else {
                    continue;
                };
                if found.bytes.is_some() {
                    return Err(refused("there are two lists of alternative names"));
                }
                found.bytes = Some(extension.value);
                for name in &names.general_names {
                    match name {
                        GeneralName::DNSName(name) => {
                            found.names = true;
                            found.of_server |= is_name_of_server(name);
                        }
                        GeneralName::IPAddress(bytes) => {
                            found.addresses = true;
                            found.of_server |= is_address_of_server(bytes);
                        }
                        GeneralName::RFC822Name(_) => found.emails = true,
                        GeneralName::URI(_) => found.uris = true,
                        _ => {
                            return Err(refused(
                                "an alternative name is of a sort that is not allowed",
                            ));
                        }
                    }
                }
            }
        }
        Ok(found)
    }
}

/// With such a name a node could pretend to be the API server, as both are certified by one authority.
fn is_name_of_server(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let first = name.split('.').next().unwrap_or_default();
    name == "localhost" || first == "kubernetes" || first == "*"
}

fn is_address_of_server(bytes: &[u8]) -> bool {
    match FIRST_SERVICE_ADDRESS {
        IpAddr::V4(address) => bytes == address.octets(),
        IpAddr::V6(address) => bytes == address.octets(),
    }
}

/// A certificate to be.
struct Certificate<'a> {
    request: &'a X509CertificationRequest<'a>,
    usages: &'a [&'a str],
    names: Option<&'a [u8]>,
    begins: Timestamp,
    ends: Timestamp,
}

// The contents of object identifiers.
const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const AUTHORITY_KEY: &[u8] = &[0x55, 0x1d, 0x23];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const SERVER_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];
const CLIENT_AUTH: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02];

impl Certificate<'_> {
    fn issue(&self, authority: &Authority) -> Result<Vec<u8>, SigningFault> {
        let key: KeyPair = authority.identity().key_pair().map_err(PkiError::from)?;
        if !key.is_compatible(&PKCS_ECDSA_P256_SHA256) {
            return Err(SigningFault::OtherKey);
        }
        let (_, issuer) = X509Certificate::from_der(authority.certificate())
            .map_err(|_| PkiError::Certificate)?;
        let info = &self.request.certification_request_info;
        let algorithm = der::value(
            der::SEQUENCE,
            &[&der::value(der::OBJECT_IDENTIFIER, &[ECDSA_WITH_SHA256])],
        );
        let serial = authority::serial_number()?;
        let body = der::value(
            der::SEQUENCE,
            &[
                &der::value(der::explicit(0), &[&der::value(der::INTEGER, &[&[2]])]),
                &der::value(der::INTEGER, &[serial.as_ref()]),
                &algorithm,
                issuer.subject().as_raw(),
                &der::value(der::SEQUENCE, &[&time(self.begins), &time(self.ends)]),
                info.subject.as_raw(),
                info.subject_pki.raw,
                &der::value(der::explicit(3), &[&self.extensions(&issuer)]),
            ],
        );
        let signature = key.sign(&body).map_err(PkiError::from)?;
        let signature = der::value(der::BIT_STRING, &[&[0], &signature]);
        Ok(der::value(der::SEQUENCE, &[&body, &algorithm, &signature]))
    }

    fn extensions(&self, issuer: &X509Certificate<'_>) -> Vec<u8> {
        let has = |usage: &str| self.usages.contains(&usage);
        let mut all = Vec::new();
        let (signs, enciphers) = (has("digital signature"), has("key encipherment"));
        if signs || enciphers {
            let bits = u8::from(signs) << 7 | u8::from(enciphers) << 5;
            let unused = if enciphers { 5 } else { 7 };
            let bits = der::value(der::BIT_STRING, &[&[unused], &[bits]]);
            all.push(extension(KEY_USAGE, true, &bits));
        }
        let purposes: Vec<Vec<u8>> = [("server auth", SERVER_AUTH), ("client auth", CLIENT_AUTH)]
            .into_iter()
            .filter(|(usage, _)| has(usage))
            .map(|(_, purpose)| der::value(der::OBJECT_IDENTIFIER, &[purpose]))
            .collect();
        let purposes = der::value(der::SEQUENCE, &[&purposes.concat()]);
        all.push(extension(EXTENDED_KEY_USAGE, false, &purposes));
        let no_authority = der::value(der::SEQUENCE, &[]);
        all.push(extension(BASIC_CONSTRAINTS, true, &no_authority));
        for found in issuer.extensions() {
            if let ParsedExtension::SubjectKeyIdentifier(key) = found.parsed_extension() {
                let key = der::value(der::implicit(0), &[key.0]);
                let key = der::value(der::SEQUENCE, &[&key]);
                all.push(extension(AUTHORITY_KEY, false, &key));
            }
        }
        if let Some(names) = self.names {
            all.push(extension(ALTERNATIVE_NAMES, false, names));
        }
        der::value(der::SEQUENCE, &[&all.concat()])
    }
}

fn extension(id: &[u8], critical: bool, content: &[u8]) -> Vec<u8> {
    let critical = if critical {
        der::value(der::BOOLEAN, &[&[0xff]])
    } else {
        Vec::new()
    };
    let id = der::value(der::OBJECT_IDENTIFIER, &[id]);
    let content = der::value(der::OCTET_STRING, &[content]);
    der::value(der::SEQUENCE, &[&id, &critical, &content])
}

/// Years before 2050 have two digits.
fn time(moment: Timestamp) -> Vec<u8> {
    let moment = moment.to_zoned(TimeZone::UTC);
    let (tag, form) = if moment.year() < 2050 {
        (der::UTC_TIME, "%y%m%d%H%M%SZ")
    } else {
        (der::GENERALIZED_TIME, "%Y%m%d%H%M%SZ")
    };
    der::value(tag, &[moment.strftime(form).to_string().as_bytes()])
}
