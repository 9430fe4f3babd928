//! Joining, against servers that are right, wrong, silent or not there.

use std::sync::Arc;

use http::Uri;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use transom_host::files::fake::FakeFiles;
use transom_host::files::{Access, Files, Native};

use super::authority::{AuthorityFault, Pin, fetch_authority};
use super::certificate::Purpose;
use super::folder::{Credentials, Folder, FolderFault};

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut wanted = CertificateParams::default();
    wanted.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(wanted, KeyPair::generate().unwrap()).unwrap()
}

/// Serves TLS handshakes with a certificate for `name`, as our API server shows it: with its issuer.
async fn server(authority: &CertifiedIssuer<'static, KeyPair>, name: &str) -> Uri {
    let key = KeyPair::generate().unwrap();
    let wanted = CertificateParams::new([name.to_owned()]).unwrap();
    let certificate = wanted.signed_by(&key, authority).unwrap();
    let chain: Vec<CertificateDer<'static>> =
        vec![certificate.der().clone(), authority.der().clone()];
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(
        rustls::crypto::aws_lc_rs::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .unwrap()
    .with_no_client_auth()
    .with_single_cert(chain, key)
    .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A client that finds us wrong hangs up: that is its test, not ours.
            let _ = acceptor.accept(stream).await;
        }
    });
    format!("https://127.0.0.1:{port}").parse().unwrap()
}

#[tokio::test]
async fn the_authority_is_what_the_pin_says() {
    let authority = authority();
    let server = server(&authority, "127.0.0.1").await;
    let text = fetch_authority(&server, &Pin::of(authority.der()))
        .await
        .unwrap();
    assert_eq!(Pin::of_pem(&text), Some(Pin::of(authority.der())));
}

#[tokio::test]
async fn a_server_of_another_cluster_is_not_trusted() {
    let server = server(&authority(), "127.0.0.1").await;
    let fault = fetch_authority(&server, &Pin::of(authority().der()))
        .await
        .unwrap_err();
    assert!(
        matches!(fault, AuthorityFault::OtherCluster { .. }),
        "{fault}"
    );
}

#[tokio::test]
async fn a_server_that_shows_the_authority_but_is_not_vouched_for_by_it_is_not_trusted() {
    let ours = authority();
    let theirs = authority();
    let key = KeyPair::generate().unwrap();
    let wanted = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let certificate = wanted.signed_by(&key, &theirs).unwrap();
    let chain = vec![certificate.der().clone(), ours.der().clone()];
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(
        rustls::crypto::aws_lc_rs::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .unwrap()
    .with_no_client_auth()
    .with_single_cert(chain, key)
    .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri: Uri = format!("https://{}", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let _ = TlsAcceptor::from(Arc::new(config)).accept(stream).await;
    });
    let fault = fetch_authority(&uri, &Pin::of(ours.der()))
        .await
        .unwrap_err();
    assert!(
        matches!(fault, AuthorityFault::Certificate { .. }),
        "{fault}"
    );
}

#[tokio::test]
async fn a_certificate_for_another_name_is_not_trusted() {
    let authority = authority();
    let server = server(&authority, "elsewhere.example.org").await;
    let fault = fetch_authority(&server, &Pin::of(authority.der()))
        .await
        .unwrap_err();
    assert!(
        matches!(fault, AuthorityFault::Certificate { .. }),
        "{fault}"
    );
}

#[tokio::test]
async fn an_address_without_tls_is_refused_before_anything_is_sent() {
    let pin = Pin::of(b"anything");
    for address in ["http://127.0.0.1:1", "/only/a/path", "127.0.0.1:6443"] {
        let server: Uri = address.parse().unwrap();
        let fault = fetch_authority(&server, &pin).await.unwrap_err();
        assert!(matches!(fault, AuthorityFault::Address { .. }), "{fault}");
    }
}

fn folder() -> (tempfile::TempDir, Folder) {
    let place = tempfile::tempdir().unwrap();
    let path = camino::Utf8Path::from_path(place.path())
        .unwrap()
        .join("pki");
    let files: Arc<dyn Files> = Arc::new(Native);
    let folder = Folder::prepare(files, &path).unwrap();
    (place, folder)
}

/// A certificate for a key, as the API would sign it.
fn signed(key: &KeyPair, node: &str) -> String {
    let mut wanted = CertificateParams::default();
    wanted
        .distinguished_name
        .push(rcgen::DnType::CommonName, format!("system:node:{node}"));
    wanted.signed_by(key, &authority()).unwrap().pem()
}

#[test]
fn a_key_is_made_once_for_each_certificate() {
    let (_place, folder) = folder();
    let key = |purpose| folder.next_key(purpose).unwrap().serialize_pem();
    let first = key(Purpose::Client);
    assert_eq!(key(Purpose::Client), first);
    assert_ne!(key(Purpose::Serving), first);
    keep(&folder, "n1").unwrap();
    assert_ne!(key(Purpose::Client), first);
}

/// Has the next key signed, and keeps what was signed.
fn keep(folder: &Folder, node: &str) -> Result<Credentials, FolderFault> {
    let key = folder.next_key(Purpose::Client).unwrap();
    let authority = authority().pem();
    folder.keep(Purpose::Client, node, &authority, &signed(&key, node))
}

#[test]
fn a_join_that_ended_early_has_left_no_credentials() {
    let (_place, folder) = folder();
    folder.next_key(Purpose::Client).unwrap();
    assert!(folder.credentials(Purpose::Client).unwrap().is_none());
}

#[test]
fn credentials_are_found_again() {
    let (_place, folder) = folder();
    let kept = keep(&folder, "n1").unwrap();
    let found = folder.credentials(Purpose::Client).unwrap().unwrap();
    assert_eq!(found.node, "n1");
    assert_eq!(found.key, kept.key);
    assert_eq!(found.certificate, kept.certificate);
}

#[test]
fn a_certificate_for_another_key_or_node_is_not_kept() {
    let (_place, folder) = folder();
    let stranger = KeyPair::generate().unwrap();
    let ours = folder.next_key(Purpose::Client).unwrap();
    for certificate in [signed(&stranger, "n1"), signed(&ours, "n2")] {
        let fault = folder
            .keep(Purpose::Client, "n1", &authority().pem(), &certificate)
            .unwrap_err();
        assert!(matches!(fault, FolderFault::OtherKey), "{fault}");
    }
    assert!(folder.credentials(Purpose::Client).unwrap().is_none());
}

#[test]
fn a_renewal_that_dies_leaves_the_old_certificate_or_the_new_one() {
    let files = FakeFiles::new(transom_model::Os::Linux);
    let prepare = || Folder::prepare(Arc::new(files.clone()), "/pki".into()).unwrap();
    let current = || {
        let found = prepare().credentials(Purpose::Client).unwrap();
        found.unwrap().key
    };
    let old = keep(&prepare(), "n1").unwrap().key;

    let waiting = prepare().next_key(Purpose::Client).unwrap().serialize_pem();
    files.crash();
    assert_eq!(current(), old);
    let again = prepare().next_key(Purpose::Client).unwrap().serialize_pem();
    assert_eq!(again, waiting, "the request would not be found again");

    keep(&prepare(), "n1").unwrap();
    files.crash();
    assert_eq!(current(), waiting);

    // The last step did not come to be: the key still waits, and is in use.
    let path = "/pki/client.next.key".into();
    files
        .write_durable(path, waiting.as_bytes(), Access::Secret)
        .unwrap();
    let next = prepare().next_key(Purpose::Client).unwrap();
    assert_ne!(next.serialize_pem(), waiting);
}

#[test]
fn a_key_that_waits_and_is_damaged_is_made_again() {
    let (place, folder) = folder();
    let path = place.path().join("pki").join("client.next.key");
    for damage in [&b"nonsense"[..], b"\xff\xfe"] {
        fs_err::write(&path, damage).unwrap();
        folder.next_key(Purpose::Client).unwrap();
        keep(&folder, "n1").unwrap();
    }
}

#[test]
fn a_damaged_certificate_is_named() {
    let (place, folder) = folder();
    keep(&folder, "n1").unwrap();
    let path = place.path().join("pki").join("client.pem");
    let whole = fs_err::read_to_string(&path).unwrap();
    for damage in ["", "nonsense", &whole[..whole.len() / 2]] {
        fs_err::write(&path, damage).unwrap();
        let fault = folder.credentials(Purpose::Client).unwrap_err();
        assert!(fault.to_string().contains("client.pem"), "{fault}");
    }
}
