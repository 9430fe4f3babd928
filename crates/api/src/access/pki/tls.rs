//! TLS for the listener: our certificate, and client certificates that are optional but never unverified.
//!
//! Certificate and trusted authorities are looked up at every handshake, so that renewal and rotation
//! take effect without dropping a connection.

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, RootCertStore, ServerConfig, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, UnixTime},
    server::{
        ClientHello, ResolvesServerCert, WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
    sign::CertifiedKey,
};

use super::{Identity, PkiError};

/// What the listener shows and trusts at this moment.
pub(super) struct Listener {
    provider: Arc<CryptoProvider>,
    key: RwLock<Arc<CertifiedKey>>,
    clients: RwLock<Arc<dyn ClientCertVerifier>>,
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").finish_non_exhaustive()
    }
}

impl Listener {
    pub(super) fn new(
        server: &Identity,
        trusted: &[CertificateDer<'static>],
    ) -> Result<Self, PkiError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        Ok(Self {
            key: RwLock::new(server.certified_key(&provider)?),
            clients: RwLock::new(verifier(trusted, &provider)?),
            provider,
        })
    }

    /// New connections get this certificate; old ones stay.
    pub(super) fn show(&self, server: &Identity) -> Result<(), PkiError> {
        let key = server.certified_key(&self.provider)?;
        *self.key.write().unwrap_or_else(PoisonError::into_inner) = key;
        Ok(())
    }

    /// New connections may come with certificates of these authorities.
    pub(super) fn trust(&self, trusted: &[CertificateDer<'static>]) -> Result<(), PkiError> {
        let clients = verifier(trusted, &self.provider)?;
        *self.clients.write().unwrap_or_else(PoisonError::into_inner) = clients;
        Ok(())
    }

    fn clients(&self) -> Arc<dyn ClientCertVerifier> {
        let clients = self.clients.read();
        Arc::clone(&clients.unwrap_or_else(PoisonError::into_inner))
    }

    /// TLS 1.2 and 1.3, HTTP/2 first.
    pub(super) fn config(self: &Arc<Self>) -> Result<ServerConfig, PkiError> {
        let builder = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()
            .map_err(|source| PkiError::Tls { source })?;
        let mut config = builder
            .with_client_cert_verifier(Arc::clone(self) as Arc<dyn ClientCertVerifier>)
            .with_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn verifier(
    trusted: &[CertificateDer<'static>],
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, PkiError> {
    let mut roots = RootCertStore::empty();
    for authority in trusted {
        let added = roots.add(authority.clone());
        added.map_err(|source| PkiError::Tls { source })?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .allow_unauthenticated()
        .build()
        .map_err(|_| PkiError::Certificate)
}

impl ResolvesServerCert for Listener {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let key = self.key.read();
        Some(Arc::clone(&key.unwrap_or_else(PoisonError::into_inner)))
    }
}

impl ClientCertVerifier for Listener {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    /// No hints: they are borrowed for as long as the listener lives, and ours change. Without hints a
    /// client offers the certificate that it was given, which is what kubectl is for.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.clients()
            .verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.clients()
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.clients()
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.clients().supported_verify_schemes()
    }
}
