//! The listener: TLS only, HTTP/1 and HTTP/2, and an end that lets requests finish. Invariant: there are never
//! more connections than it was told; whoever comes then waits with the system, and costs us nothing.

mod places;
mod strangers;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
    service::TowerToHyperService,
};
use rustls::{ServerConfig, pki_types::CertificateDer};
use tokio::net::TcpListener;
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt as _;

use places::{Places, Seated};
use strangers::{Entry, Seat};

/// How long requests may take to finish after the server was told to stop.
const FINISH: Duration = Duration::from_secs(20);

/// How long the handshake may take of somebody for whom there is room only with a certificate.
const HURRIED_HANDSHAKE: Duration = Duration::from_secs(3);

/// What a connection proved about who is at its other end. In the extensions of each request.
#[derive(Clone, Debug)]
pub struct Peer {
    pub address: SocketAddr,
    /// The client's certificate, which was checked against our authority.
    pub certificate: Option<CertificateDer<'static>>,
    seat: Arc<Seat>,
}

impl Peer {
    /// Whoever is at the other end has shown who they are: the connection stays, and counts as no stranger's.
    pub(crate) fn prove(&self) {
        self.seat.prove();
    }
}

/// What clients may take of the listener.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// How many connections are open at once.
    pub(super) connections: usize,
    /// How long a client may take for its TLS handshake.
    pub(super) handshake: Duration,
    /// How long a client that has not shown who it is may ask nothing.
    pub(super) idle: Duration,
}

/// Serves until `stop` is cancelled, then lets what runs finish.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    tls: Arc<ServerConfig>,
    bounds: Bounds,
    stop: CancellationToken,
) -> io::Result<()> {
    let acceptor = TlsAcceptor::from(tls);
    let connections = TaskTracker::new();
    let mut places = Places::new(bounds.connections);
    loop {
        let (stream, address) = tokio::select! {
            () = stop.cancelled() => break,
            accepted = places.accept(&listener) => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of descriptors, most often: others will be closed in a moment.
                    tracing::warn!(%error, "could not accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        let (acceptor, router, stop) = (acceptor.clone(), router.clone(), stop.clone());
        connections.spawn(async move {
            let ended = async {
                let stream = shake_hands(stream, acceptor, bounds.handshake).await?;
                connection(stream, address, router, bounds.idle, stop).await
            };
            if let Err(error) = ended.await {
                tracing::debug!(%address, error, "connection ended");
            }
        });
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(FINISH, connections.wait())
        .await
        .is_err()
    {
        tracing::warn!(
            connections = connections.len(),
            "requests did not finish in time"
        );
    }
    Ok(())
}

async fn shake_hands(
    stream: Seated,
    acceptor: TlsAcceptor,
    longest: Duration,
) -> Result<TlsStream<Seated>, String> {
    // Watch events are small and wanted at once.
    stream.without_delay().map_err(|error| error.to_string())?;
    let seat = Arc::clone(stream.seat());
    let longest = match seat.entry() {
        Entry::Open => longest,
        Entry::CertificateOnly => longest.min(HURRIED_HANDSHAKE),
    };
    let stream = tokio::time::timeout(longest, acceptor.accept(stream))
        .await
        .map_err(|_| "the TLS handshake took too long".to_owned())?
        .map_err(|error| error.to_string())?;
    // The handshake checked the certificate.
    if stream.get_ref().1.peer_certificates().is_some() {
        seat.prove();
    } else if seat.entry() == Entry::CertificateOnly {
        return Err("there is no more room for connections without a certificate".to_owned());
    }
    Ok(stream)
}

async fn connection(
    stream: TlsStream<Seated>,
    address: SocketAddr,
    router: Router,
    idle: Duration,
    stop: CancellationToken,
) -> Result<(), String> {
    let seat = Arc::clone(stream.get_ref().0.seat());
    let certificate = stream
        .get_ref()
        .1
        .peer_certificates()
        .and_then(|chain| chain.first())
        .map(|certificate| certificate.clone().into_owned());
    let peer = Peer {
        address,
        certificate,
        seat: Arc::clone(&seat),
    };
    let service = router.layer(axum::Extension(peer));
    let service = service.map_request({
        let seat = Arc::clone(&seat);
        move |request: http::Request<hyper::body::Incoming>| {
            seat.ask();
            request
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(30));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(1000)
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(4 << 20)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(15));
    let connection = builder
        .serve_connection_with_upgrades(TokioIo::new(stream), TowerToHyperService::new(service));
    tokio::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => ended.map_err(|error| error.to_string()),
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await.map_err(|error| error.to_string())
        }
        // Pings alone keep no place: they cost nothing, and the place is wanted by others.
        () = seat.idles(idle) => Err("it asked nothing, and did not show whose it is".to_owned()),
    }
}

#[cfg(test)]
mod tests;
