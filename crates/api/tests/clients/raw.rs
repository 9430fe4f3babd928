//! A client that sends exactly what a test says, with a certificate of its choice or none. Invariant: the server's
//! certificate is checked, so a test never speaks to a stranger.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{HeaderMap, Request};
use http_body_util::BodyExt as _;
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, DnType, Issuer, KeyPair};
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::nodes::{pem, roots};
use crate::tls::Running;

const LIMIT: Duration = Duration::from_secs(20);

/// One who asks.
pub(crate) struct Client {
    address: SocketAddr,
    tls: TlsConnector,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    /// The body as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// The code and the sentence of a refusal.
    #[track_caller]
    pub(crate) fn refusal(&self) -> (u16, String) {
        let message = self.json()["message"].as_str().map(str::to_owned);
        (self.code, message.unwrap_or_else(|| panic!("{self:?}")))
    }
}

impl Client {
    /// Somebody whose certificate the cluster's authority made.
    pub(crate) fn new(
        folder: &tempfile::TempDir,
        server: &Running,
        name: &str,
        groups: &[&str],
    ) -> Self {
        let authority = String::from_utf8(pem(folder, "authority.pem")).unwrap();
        let key = &authority[authority.find("-----BEGIN PRIVATE").unwrap()..];
        let issuer = Issuer::from_ca_cert_pem(&authority, KeyPair::from_pem(key).unwrap()).unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for group in groups {
            params
                .distinguished_name
                .push(DnType::OrganizationName, *group);
        }
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        let tls = config(folder)
            .with_client_auth_cert(vec![certificate.der().clone()], key)
            .unwrap();
        Self::with(server, tls)
    }

    pub(crate) fn admin(folder: &tempfile::TempDir, server: &Running) -> Self {
        let admin = pem(folder, "admin.pem");
        let certificate = CertificateDer::from_pem_slice(&admin).unwrap();
        let key = PrivateKeyDer::from_pem_slice(&admin).unwrap();
        let tls = config(folder)
            .with_client_auth_cert(vec![certificate], key)
            .unwrap();
        Self::with(server, tls)
    }

    /// Somebody without a certificate.
    pub(crate) fn nobody(folder: &tempfile::TempDir, server: &Running) -> Self {
        Self::with(server, config(folder).with_no_client_auth())
    }

    fn with(server: &Running, tls: ClientConfig) -> Self {
        Self {
            address: server.address,
            tls: TlsConnector::from(Arc::new(tls)),
        }
    }

    /// A connection, for a test that writes and reads by itself.
    pub(crate) async fn connect(&self) -> TlsStream<TcpStream> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        self.tls.connect(name, stream).await.unwrap()
    }

    /// Sends a request over a connection of its own.
    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let answered = async {
            let stream = self.connect().await;
            let (mut sender, connection) =
                hyper::client::conn::http1::handshake(TokioIo::new(stream))
                    .await
                    .unwrap();
            tokio::spawn(connection);
            let response = sender.send_request(request).await.unwrap();
            let (parts, body) = response.into_parts();
            let bytes = body.collect().await.unwrap().to_bytes();
            Answer {
                code: parts.status.as_u16(),
                headers: parts.headers,
                text: String::from_utf8(bytes.to_vec()).unwrap(),
            }
        };
        tokio::time::timeout(LIMIT, answered).await.unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(request("GET", path, Body::empty())).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(request("POST", path, body.to_string())).await
    }

    /// Makes an object that nothing speaks against.
    pub(crate) async fn make(&self, path: &str, object: &Value) -> Value {
        let answer = self.post(path, object).await;
        assert_eq!(answer.code, 201, "{answer:?}");
        answer.json()
    }
}

/// A request with a body in JSON.
pub(crate) fn request(method: &str, path: &str, body: impl Into<Body>) -> Request<Body> {
    let content = if method == "PATCH" {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", "api.example")
        .header("content-type", content)
        .body(body.into())
        .unwrap()
}

fn config(
    folder: &tempfile::TempDir,
) -> rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots(folder))
}
