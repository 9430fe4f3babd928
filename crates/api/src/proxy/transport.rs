//! One connection for one request, to an agent or to what runs in a pod.
//!
//! Connecting has a limit; what is connected is closed when the answer is dropped.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::body::Body;
use http::{Request, Response};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use super::{
    IDLE,
    location::{End, Location, server_names},
};
use crate::{access::pki::Expected, state::Api, status::ApiError};

/// For name, connection and handshake together.
const CONNECT: Duration = Duration::from_secs(10);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    #[error("dial tcp {address}: {source}")]
    Dial { address: String, source: io::Error },
    #[error("dial tcp {address}: i/o timeout")]
    Slow { address: String },
    #[error("tls: {source}")]
    Tls { source: io::Error },
    #[error("{source}")]
    Http {
        #[from]
        source: hyper::Error,
    },
    #[error("no answer came in time")]
    Silent,
    #[error("{0}")]
    Refused(ApiError),
}

/// Sends a request and waits for the head of the answer.
pub(crate) async fn send(
    api: &Api,
    location: &Location,
    request: Request<Body>,
) -> Result<Response<Incoming>, SendError> {
    let slow = || SendError::Slow {
        address: location.authority(),
    };
    let connecting = tokio::time::timeout(CONNECT, connect(api, location));
    let mut sender = connecting.await.map_err(|_| slow())??;
    tokio::time::timeout(IDLE, sender.send_request(request))
        .await
        .map_err(|_| SendError::Silent)?
        .map_err(SendError::from)
}

async fn connect(api: &Api, location: &Location) -> Result<http1::SendRequest<Body>, SendError> {
    let stream = dial(api, location).await?;
    let Some(config) = tls_config(api, location).map_err(SendError::Refused)? else {
        return handshake(stream).await;
    };
    // The verifier looks at the names that it was given; this one only fills the greeting.
    let name = ServerName::try_from(location.host.clone())
        .unwrap_or_else(|_| ServerName::IpAddress(rustls::pki_types::IpAddr::V4([0; 4].into())));
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .map_err(|source| SendError::Tls { source })?;
    handshake(stream).await
}

async fn dial(api: &Api, location: &Location) -> Result<TcpStream, SendError> {
    let fault = |source| SendError::Dial {
        address: location.authority(),
        source,
    };
    let addresses: Vec<SocketAddr> =
        tokio::net::lookup_host((location.host.as_str(), location.port))
            .await
            .map_err(fault)?
            .collect();
    let may_be_anywhere = !matches!(location.end, End::Workload { .. });
    let is_allowed =
        |address: &&SocketAddr| may_be_anywhere || (api.settings.reachable)(address.ip());
    let allowed: Vec<SocketAddr> = addresses.iter().filter(is_allowed).copied().collect();
    if allowed.is_empty() {
        return Err(SendError::Refused(super::location::not_allowed()));
    }
    let stream = TcpStream::connect(allowed.as_slice())
        .await
        .map_err(fault)?;
    stream.set_nodelay(true).map_err(fault)?;
    Ok(stream)
}

fn tls_config(api: &Api, location: &Location) -> Result<Option<ClientConfig>, ApiError> {
    let expected = match &location.end {
        End::Workload { tls: false } => return Ok(None),
        End::Workload { tls: true } => Expected::Anybody,
        End::UnverifiedAgent => Expected::UnverifiedNode,
        End::Agent(names) => Expected::Node(server_names(names)),
    };
    let config = api.guard.pki()?.client_config(expected, api.now());
    config
        .map(Some)
        .map_err(|error| ApiError::internal(error.to_string()))
}

async fn handshake(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> Result<http1::SendRequest<Body>, SendError> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // It ends with the sender and the answer, or with the connection.
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "a connection to a node or a pod ended");
        }
    });
    Ok(sender)
}
