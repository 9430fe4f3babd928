//! The listener: TLS only, and an end that does not wait for streams.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
    service::TowerToHyperService,
};
use rustls::{ServerConfig, pki_types::CertificateDer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

const HANDSHAKE: Duration = Duration::from_secs(10);
const FAREWELL: Duration = Duration::from_secs(5);
/// More connections wait until others end.
const MOST_CONNECTIONS: usize = 1024;

/// What a connection proved about who is at its other end.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    pub(super) certificate: Option<CertificateDer<'static>>,
}

pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    tls: Arc<ServerConfig>,
    stop: CancellationToken,
) {
    let acceptor = TlsAcceptor::from(tls);
    let connections = TaskTracker::new();
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = accept(&listener, &room) => accepted,
        };
        let (permit, stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(error, "could not accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (acceptor, router, stop) = (acceptor.clone(), router.clone(), stop.clone());
        connections.spawn(async move {
            let _permit = permit;
            let served = connection(stream, address, acceptor, router);
            if let Some(Err(error)) = stop.run_until_cancelled(served).await {
                tracing::debug!(%address, error, "a connection ended");
            }
        });
    }
    connections.close();
    if tokio::time::timeout(FAREWELL, connections.wait())
        .await
        .is_err()
    {
        tracing::debug!(
            connections = connections.len(),
            "connections were cut at the end"
        );
    }
}

type Accepted = (tokio::sync::OwnedSemaphorePermit, TcpStream, SocketAddr);

async fn accept(listener: &TcpListener, room: &Arc<Semaphore>) -> Result<Accepted, String> {
    let permit = Arc::clone(room)
        .acquire_owned()
        .await
        .map_err(|error| error.to_string())?;
    let (stream, address) = listener.accept().await.map_err(|error| error.to_string())?;
    Ok((permit, stream, address))
}

async fn connection(
    stream: TcpStream,
    address: SocketAddr,
    acceptor: TlsAcceptor,
    router: Router,
) -> Result<(), String> {
    stream
        .set_nodelay(true)
        .map_err(|error| error.to_string())?;
    let stream = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream))
        .await
        .map_err(|_| "the TLS handshake took too long".to_owned())?
        .map_err(|error| error.to_string())?;
    let chain = stream.get_ref().1.peer_certificates();
    let certificate = chain
        .and_then(|chain| chain.first())
        .map(|one| one.clone().into_owned());
    let service = router.layer(axum::Extension(Peer {
        address,
        certificate,
    }));
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(30));
    let served = builder
        .serve_connection_with_upgrades(TokioIo::new(stream), TowerToHyperService::new(service));
    served.await.map_err(|error| error.to_string())
}
