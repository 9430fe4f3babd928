//! Who the server is when it asks a node's agent, and how it knows that it speaks to that agent.
//!
//! The certificate lives in memory only and is made when it is needed; an agent must show one of our
//! authorities' certificates for an address or the name of its own node.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use rcgen::ExtendedKeyUsagePurpose;
use rustls::{
    CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
    client::{
        WantsClientCert, WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
};

use super::{ADMIN_GROUP, Identity, Pki, PkiError, authority::Leaf};

/// Upstream's name for an API server that asks a kubelet.
const CLIENT_NAME: &str = "kube-apiserver-kubelet-client";
/// It is renewed after two thirds of this.
const CLIENT_LIFE: SignedDuration = SignedDuration::from_hours(24);

/// Whose certificate the other end of a connection must have.
#[derive(Clone, Debug)]
pub enum Expected {
    /// One of our authorities vouches for one of these names.
    Node(Vec<ServerName<'static>>),
    /// A node's agent, which needs no certificate that we know; it still sees ours.
    UnverifiedNode,
    /// Anybody's: what runs in pods has certificates that nobody here knows.
    Anybody,
}

impl Pki {
    /// TLS to a node's agent, or to what runs in a pod. Only agents see our certificate.
    pub fn client_config(
        &self,
        expected: Expected,
        now: Timestamp,
    ) -> Result<ClientConfig, PkiError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|source| PkiError::Tls { source })?
            .dangerous();
        let any = |provider| Arc::new(AnyServer { provider });
        match expected {
            Expected::Anybody => Ok(builder
                .with_custom_certificate_verifier(any(provider))
                .with_no_client_auth()),
            Expected::UnverifiedNode => {
                let builder = builder.with_custom_certificate_verifier(any(provider));
                self.identified(builder, now)
            }
            Expected::Node(names) => {
                let trust = self.read(|current| roots(&current.trusted))?;
                let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(trust), provider)
                    .build()
                    .map_err(|_| PkiError::Certificate)?;
                let verifier = Arc::new(NodeServer { inner, names });
                self.identified(builder.with_custom_certificate_verifier(verifier), now)
            }
        }
    }

    /// Adds the certificate that agents see.
    fn identified(
        &self,
        builder: ConfigBuilder<ClientConfig, WantsClientCert>,
        now: Timestamp,
    ) -> Result<ClientConfig, PkiError> {
        let identity = self.kubelet_client(now)?;
        let key = PrivateKeyDer::from_pem_slice(identity.key_pem().as_bytes())
            .map_err(|_| PkiError::Certificate)?;
        builder
            .with_client_auth_cert(identity.certificates().to_vec(), key)
            .map_err(|source| PkiError::Tls { source })
    }

    /// The certificate that agents see: the one in memory while it is fresh, else a new one.
    fn kubelet_client(&self, now: Timestamp) -> Result<Identity, PkiError> {
        let authority = self.authority();
        let held = self.read(|current| current.kubelet_client.clone());
        if let Some(identity) = held
            && identity.is_fresh(authority.certificate(), None, now)
        {
            return Ok(identity);
        }
        let leaf = Leaf {
            common_name: CLIENT_NAME,
            organization: Some(ADMIN_GROUP),
            names: None,
            usage: ExtendedKeyUsagePurpose::ClientAuth,
            life: CLIENT_LIFE,
        };
        let identity = authority.issue(&leaf, now)?;
        self.change(|current| current.kubelet_client = Some(identity.clone()));
        Ok(identity)
    }
}

fn roots(trusted: &[CertificateDer<'static>]) -> Result<RootCertStore, PkiError> {
    let mut roots = RootCertStore::empty();
    for authority in trusted {
        let added = roots.add(authority.clone());
        added.map_err(|source| PkiError::Tls { source })?;
    }
    Ok(roots)
}

/// Verifies an agent: any of its node's names will do.
#[derive(Debug)]
struct NodeServer {
    inner: Arc<WebPkiServerVerifier>,
    names: Vec<ServerName<'static>>,
}

impl ServerCertVerifier for NodeServer {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let mut refused = Error::InvalidCertificate(CertificateError::NotValidForName);
        for name in &self.names {
            match self
                .inner
                .verify_server_cert(end_entity, intermediates, name, ocsp, now)
            {
                Ok(verified) => return Ok(verified),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Takes every certificate, as upstream does for pods and services; signatures must still be right.
#[derive(Debug)]
struct AnyServer {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
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
