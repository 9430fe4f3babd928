//! What clients that take too much, or too long, get.

use axum::{extract::Request, http::header};
use http::StatusCode;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    task::JoinHandle,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client};
use transom_host::{access::fake::FakeAccess, files::fake::FakeFiles};
use transom_model::os::Os;

use super::*;
use crate::access::pki::{Pki, ServingNames};

/// Longer than anything takes that happens at all.
const LIMIT: Duration = Duration::from_mins(1);
/// Long enough for a handshake that is not held up.
const MOMENT: Duration = Duration::from_millis(300);

/// Answers every request by giving up HTTP, and says then what it hears.
fn router() -> Router {
    Router::new().fallback(|mut request: Request| async move {
        tokio::spawn(async move {
            let upgraded = hyper::upgrade::on(&mut request).await.unwrap();
            let (mut reader, mut writer) = tokio::io::split(TokioIo::new(upgraded));
            tokio::io::copy(&mut reader, &mut writer).await
        });
        (
            StatusCode::SWITCHING_PROTOCOLS,
            [(header::CONNECTION, "upgrade"), (header::UPGRADE, "echo")],
        )
    })
}

struct Running {
    address: SocketAddr,
    connector: TlsConnector,
    /// Shows the certificate of the administrator.
    admin: TlsConnector,
    stop: CancellationToken,
    serving: JoinHandle<io::Result<()>>,
}

impl Running {
    async fn start(connections: usize, handshake: Duration) -> Self {
        Self::with(Bounds {
            connections,
            handshake,
            idle: LIMIT,
        })
        .await
    }

    async fn with(bounds: Bounds) -> Self {
        let permissions = FakeAccess::default();
        permissions.add_file("/pki");
        let pki = Pki::ensure(
            Arc::new(FakeFiles::new(Os::Linux)),
            &permissions,
            "/pki".into(),
            ServingNames::standard(),
            jiff::Timestamp::now(),
        )
        .unwrap();
        let mut roots = RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(pki.authorities_pem().as_bytes()) {
            roots.add(authority.unwrap()).unwrap();
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let admin = pki.admin();
        let certificate =
            CertificateDer::from_pem_slice(admin.certificate_pem().as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(admin.key_pem().as_bytes()).unwrap();
        let admin = client
            .clone()
            .with_client_auth_cert(vec![certificate], key)
            .unwrap();
        let client = client.with_no_client_auth();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let tls = pki.server_config().unwrap();
        let serving = serve(listener, router(), tls, bounds, stop.clone());
        Self {
            address,
            connector: TlsConnector::from(Arc::new(client)),
            admin: TlsConnector::from(Arc::new(admin)),
            stop,
            serving: tokio::spawn(serving),
        }
    }

    fn connect(&self) -> impl Future<Output = io::Result<client::TlsStream<TcpStream>>> + use<> {
        self.connect_by(&self.connector)
    }

    fn connect_by(
        &self,
        connector: &TlsConnector,
    ) -> impl Future<Output = io::Result<client::TlsStream<TcpStream>>> + use<> {
        let (address, connector) = (self.address, connector.clone());
        async move {
            let stream = TcpStream::connect(address).await?;
            connector.connect(address.ip().into(), stream).await
        }
    }

    async fn end(self) {
        self.stop.cancel();
        timeout(LIMIT, self.serving)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
    }
}

#[tokio::test]
async fn a_connection_too_many_waits_until_another_ends() {
    let server = Running::start(2, LIMIT).await;
    let first = server.connect().await.unwrap();
    let second = server.connect().await.unwrap();
    let mut third = std::pin::pin!(server.connect());
    assert!(timeout(MOMENT, third.as_mut()).await.is_err());
    drop(first);
    let third = timeout(LIMIT, third).await.unwrap().unwrap();
    drop((second, third));
    server.end().await;
}

#[tokio::test]
async fn a_client_that_says_nothing_loses_its_place() {
    let server = Running::start(1, MOMENT).await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    let mut answer = Vec::new();
    timeout(LIMIT, silent.read_to_end(&mut answer))
        .await
        .unwrap()
        .unwrap();
    assert!(answer.is_empty());
    // On a busy machine a client that speaks may be too slow, too; then it tries again.
    let heard = timeout(LIMIT, async {
        loop {
            if let Ok(heard) = server.connect().await {
                return heard;
            }
        }
    });
    drop(heard.await.unwrap());
    server.end().await;
}

#[tokio::test]
async fn a_full_server_can_be_told_to_stop() {
    let server = Running::start(1, LIMIT).await;
    let only = server.connect().await.unwrap();
    let mut waiting = std::pin::pin!(server.connect());
    assert!(timeout(MOMENT, waiting.as_mut()).await.is_err());
    server.stop.cancel();
    assert!(timeout(LIMIT, waiting).await.unwrap().is_err());
    drop(only);
    server.end().await;
}

#[tokio::test]
async fn a_connection_that_no_longer_speaks_http_keeps_its_place() {
    let server = Running::start(1, LIMIT).await;
    let mut upgraded = server.connect().await.unwrap();
    upgrade(&mut upgraded).await;
    upgraded.write_all(b"hello").await.unwrap();
    let mut echo = [0; 5];
    let read = timeout(LIMIT, upgraded.read_exact(&mut echo))
        .await
        .unwrap();
    read.unwrap();
    assert_eq!(&echo, b"hello");

    let mut waiting = std::pin::pin!(server.connect());
    assert!(timeout(MOMENT, waiting.as_mut()).await.is_err());
    drop(upgraded);
    let seated = timeout(LIMIT, waiting).await.unwrap().unwrap();
    drop(seated);
    server.end().await;
}

/// Gives up HTTP on a connection.
async fn upgrade(stream: &mut client::TlsStream<TcpStream>) {
    let request = "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = BufReader::new(stream);
    let mut line = String::new();
    while line.trim_end() != "" || line.is_empty() {
        line.clear();
        let read = timeout(LIMIT, answer.read_line(&mut line)).await.unwrap();
        assert_ne!(read.unwrap(), 0, "the connection ended");
    }
}

/// Returns when the server has hung up, in good order or not.
async fn until_closed(mut stream: client::TlsStream<TcpStream>) {
    let mut heard = Vec::new();
    let _ = timeout(LIMIT, stream.read_to_end(&mut heard))
        .await
        .expect("the connection stays");
}

#[tokio::test]
async fn strangers_of_one_address_do_not_keep_a_certificate_out() {
    let server = Running::start(80, LIMIT).await;
    let mut strangers = Vec::new();
    for _ in 0..10 {
        strangers.push(server.connect().await.unwrap());
    }
    // There is room for no other stranger of this address, but for whoever is known.
    if let Ok(stream) = server.connect().await {
        until_closed(stream).await;
    }
    let mut known = Vec::new();
    for _ in 0..20 {
        let mut stream = server.connect_by(&server.admin).await.unwrap();
        upgrade(&mut stream).await;
        known.push(stream);
    }
    // Those who were there before are still served.
    upgrade(&mut strangers[0]).await;
    drop((strangers, known));
    server.end().await;
}

#[tokio::test]
async fn a_stranger_that_only_pings_loses_its_place() {
    let idle = Duration::from_millis(50);
    let server = Running::with(Bounds {
        connections: 1,
        handshake: LIMIT,
        idle,
    })
    .await;
    let stream = server.connect().await.unwrap();
    let (sender, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(idle / 5)
        .keep_alive_while_idle(true)
        .handshake::<_, axum::body::Body>(TokioIo::new(stream))
        .await
        .unwrap();
    // The connection ends although its client is there and answers.
    let _ = timeout(LIMIT, connection).await.unwrap();
    drop(sender);
    // Somebody with a certificate may idle; that nothing ends is seen by the echo after many such times.
    let mut known = server.connect_by(&server.admin).await.unwrap();
    tokio::time::sleep(idle * 4).await;
    upgrade(&mut known).await;
    drop(known);
    server.end().await;
}
