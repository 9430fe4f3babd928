//! Connections with what is in the folder.

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{PrivateKeyDer, ServerName, pem::PemObject},
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::*;

/// A client that trusts these authorities and shows this certificate.
pub(super) fn client(trusted_pem: &str, identity: Option<&Identity>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(trusted_pem.as_bytes()) {
        roots.add(authority.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => builder
            .with_client_auth_cert(
                vec![identity.certificate().unwrap().clone()],
                PrivateKeyDer::from_pem_slice(identity.key_pem().as_bytes()).unwrap(),
            )
            .unwrap(),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    config
}

/// What either side saw of the other: the server's certificate, and the client's.
pub(super) type Seen = (CertificateDer<'static>, Option<CertificateDer<'static>>);

pub(super) async fn handshake(
    server: Arc<ServerConfig>,
    client: ClientConfig,
    name: &str,
) -> Option<Seen> {
    let (near, far) = tokio::io::duplex(1 << 16);
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let connector = TlsConnector::from(Arc::new(client));
    let acceptor = TlsAcceptor::from(server);
    let (near, far) = tokio::join!(connector.connect(name, near), acceptor.accept(far));
    let (near, far) = (near.ok()?, far.ok()?);
    assert_eq!(far.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let first = |certificates: &[CertificateDer<'static>]| certificates[0].clone();
    Some((
        near.get_ref().1.peer_certificates().map(first)?,
        far.get_ref().1.peer_certificates().map(first),
    ))
}

#[tokio::test]
async fn a_client_certificate_is_optional_and_one_of_a_stranger_is_refused() {
    let pki = start(&FakeFiles::new(Os::Linux), names(), moment()).unwrap();
    let stranger = start(&FakeFiles::new(Os::Linux), names(), moment()).unwrap();
    let config = pki.server_config().unwrap();
    let trusted = pki.authorities_pem();
    for name in [
        "kubernetes.default.svc",
        "node-1.example",
        "192.0.2.7",
        "10.43.0.1",
    ] {
        let seen = handshake(config.clone(), client(&trusted, None), name).await;
        assert!(seen.is_some_and(|(_, peer)| peer.is_none()), "{name}");
    }
    let admin = pki.admin();
    let seen = handshake(config.clone(), client(&trusted, Some(&admin)), "localhost").await;
    assert_eq!(seen.unwrap().1.as_ref(), admin.certificate());
    for (name, trusted, identity) in [
        ("elsewhere.example", trusted.clone(), None),
        ("localhost", stranger.authorities_pem(), None),
        ("localhost", trusted.clone(), Some(stranger.admin())),
    ] {
        let seen = handshake(config.clone(), client(&trusted, identity.as_ref()), name).await;
        assert!(seen.is_none(), "{name}");
    }
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_by_the_same_listener() {
    let pki = start(&FakeFiles::new(Os::Linux), names(), moment()).unwrap();
    let config = pki.server_config().unwrap();
    let connect = || {
        handshake(
            config.clone(),
            client(&pki.authorities_pem(), None),
            "localhost",
        )
    };
    let before = connect().await.unwrap();
    pki.renew(moment() + days(300)).unwrap();
    // Issued three hundred days ahead, it is no good yet: that it is refused shows that it was sent.
    assert!(connect().await.is_none());
    pki.renew(moment()).unwrap();
    assert_ne!(connect().await.unwrap(), before);
}

#[tokio::test]
async fn while_authorities_rotate_the_certificates_of_both_are_good() {
    let files = FakeFiles::new(Os::Linux);
    let pki = start(&files, names(), moment()).unwrap();
    let config = pki.server_config().unwrap();
    let (old_admin, old_trusted) = (pki.admin(), pki.authorities_pem());
    pki.rotate_authority(moment() + SignedDuration::from_secs(1))
        .unwrap();
    let trusted = pki.authorities_pem();
    assert!(trusted.contains(&old_trusted) && trusted != old_trusted);
    let new_admin = pki.admin();
    assert_ne!(new_admin.certificate(), old_admin.certificate());
    for admin in [&old_admin, &new_admin] {
        let seen = handshake(config.clone(), client(&trusted, Some(admin)), "localhost").await;
        assert_eq!(seen.unwrap().1.as_ref(), admin.certificate());
    }
    let reread = start(&files, names(), moment() + SignedDuration::from_secs(2)).unwrap();
    assert_eq!(reread.authorities_pem(), trusted);
    assert_eq!(reread.admin().certificate(), new_admin.certificate());
}
