//! Who vouches for a cluster, known by a digest before anything else is known of it.
//!
//! Invariant: the only thing done over a connection that is not verified yet is looking at what it shows.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Uri;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// What a handshake may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// The SHA-256 of an authority's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin([u8; 32]);

impl Pin {
    /// The pin of a certificate in DER.
    pub fn of(certificate: &[u8]) -> Self {
        Self(Sha256::digest(certificate).into())
    }

    /// The pin of the first certificate of a PEM text, which is the one that issues.
    pub fn of_pem(text: &str) -> Option<Self> {
        let certificate = CertificateDer::from_pem_slice(text.as_bytes()).ok()?;
        Some(Self::of(&certificate))
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl FromStr for Pin {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.as_bytes();
        if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = str::from_utf8(pair).map_err(|_| ())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| ())?;
        }
        Ok(Self(bytes))
    }
}

/// Why the authority of a cluster is not known.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityFault {
    #[error("{server} is not the address of a server: it begins with https:// and has a host")]
    Address { server: Uri },
    #[error("could not reach {server}")]
    Unreachable {
        server: Uri,
        #[source]
        source: std::io::Error,
    },
    #[error("{server} did not answer within {PATIENCE:?}")]
    TooSlow { server: Uri },
    #[error(
        "{server} is not the server of the cluster that the token is for, or the cluster got a new authority since: make a new token there"
    )]
    OtherCluster { server: Uri },
    #[error("the certificate of {server} is not good for this name")]
    Certificate {
        server: Uri,
        #[source]
        source: std::io::Error,
    },
}

/// The certificate, in PEM, of the authority that vouches for `server`, if its digest is `pin`.
pub async fn fetch_authority(server: &Uri, pin: &Pin) -> Result<String, AuthorityFault> {
    let address = || AuthorityFault::Address {
        server: server.clone(),
    };
    if server.scheme_str() != Some("https") {
        return Err(address());
    }
    let host = server.host().ok_or_else(address)?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let port = server.port_u16().unwrap_or(443);
    let name = ServerName::try_from(bare.to_owned()).map_err(|_| address())?;
    let pinned = Arc::new(Pinned {
        pin: *pin,
        provider: Arc::new(aws_lc_rs::default_provider()),
        found: Mutex::new(None),
        met_another: Mutex::new(false),
    });
    let handshake = async {
        let stream = TcpStream::connect((bare, port)).await.map_err(|source| {
            AuthorityFault::Unreachable {
                server: server.clone(),
                source,
            }
        })?;
        let config = ClientConfig::builder_with_provider(Arc::clone(&pinned.provider))
            .with_safe_default_protocol_versions()
            .map_err(|source| AuthorityFault::Certificate {
                server: server.clone(),
                source: std::io::Error::other(source),
            })?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&pinned) as Arc<dyn ServerCertVerifier>)
            .with_no_client_auth();
        TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
            .map(drop)
            .map_err(|source| {
                if pinned.met_another() {
                    AuthorityFault::OtherCluster {
                        server: server.clone(),
                    }
                } else {
                    AuthorityFault::Certificate {
                        server: server.clone(),
                        source,
                    }
                }
            })
    };
    let shaken = tokio::time::timeout(PATIENCE, handshake).await;
    shaken.map_err(|_| AuthorityFault::TooSlow {
        server: server.clone(),
    })??;
    pinned.found().ok_or_else(|| AuthorityFault::OtherCluster {
        server: server.clone(),
    })
}

/// The certificates of a PEM text, as a client trusts them.
pub(super) fn certificates(text: &str) -> Vec<Vec<u8>> {
    CertificateDer::pem_slice_iter(text.as_bytes())
        .filter_map(Result::ok)
        .map(|certificate| certificate.to_vec())
        .collect()
}

/// Trusts the authority with the right digest, and nothing else.
#[derive(Debug)]
struct Pinned {
    pin: Pin,
    provider: Arc<CryptoProvider>,
    found: Mutex<Option<String>>,
    met_another: Mutex<bool>,
}

impl Pinned {
    fn found(&self) -> Option<String> {
        self.found
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    fn met_another(&self) -> bool {
        *self
            .met_another
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let is_ours = |shown: &&CertificateDer<'_>| Pin::of(shown) == self.pin;
        let Some(authority) = intermediates.iter().find(is_ours) else {
            *self
                .met_another
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = true;
            return Err(CertificateError::UnknownIssuer.into());
        };
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone().into_owned())?;
        let verifier = WebPkiServerVerifier::builder_with_provider(
            Arc::new(roots),
            Arc::clone(&self.provider),
        )
        .build()
        .map_err(|fault| Error::General(fault.to_string()))?;
        let outcome = verifier.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        )?;
        let text = pem::encode(&pem::Pem::new("CERTIFICATE", authority.to_vec()));
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        Ok(outcome)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
