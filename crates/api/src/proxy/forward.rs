//! A request goes on as it came, and its answer comes back: as a stream, or as bytes both ways after an upgrade.
//!
//! Credentials of the client never leave the server, and nothing waits longer than the idle time.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, header};
use http_body_util::BodyExt as _;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::watch,
};
use tokio_util::sync::CancellationToken;

use super::{Asked, IDLE, location::Location, transport, transport::SendError};
use crate::{
    access::{authentication::websocket::TOKEN_PROTOCOL, limits::Permit},
    state::Api,
    status::ApiError,
};

/// What one direction of a tunnel holds at most.
const BUFFER: usize = 16 << 10;
/// How long the other direction may go on after the first ended.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Headers that belong to one connection.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The protocol that a client wants to change to.
pub(super) fn upgrade_wish(headers: &HeaderMap) -> Option<HeaderValue> {
    let wants = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|word| word.trim().eq_ignore_ascii_case("upgrade"));
    headers.get(header::UPGRADE).filter(|_| wants).cloned()
}

/// The headers that go on.
fn onward(headers: &HeaderMap, address: Option<String>) -> HeaderMap {
    let mut onward = headers.clone();
    strip(&mut onward);
    onward.remove(header::AUTHORIZATION);
    let private: Vec<HeaderName> = onward
        .keys()
        .filter(|name| {
            name.as_str().starts_with("impersonate-") || name.as_str().starts_with("x-remote-")
        })
        .cloned()
        .collect();
    for name in private {
        onward.remove(name);
    }
    hide_token(&mut onward);
    if let Some(address) = address {
        let before = onward
            .get("x-forwarded-for")
            .and_then(|value| value.to_str().ok());
        let chain = before.map_or(address.clone(), |before| format!("{before}, {address}"));
        if let Ok(value) = HeaderValue::from_str(&chain) {
            onward.insert("x-forwarded-for", value);
        }
    }
    onward
}

fn strip(headers: &mut HeaderMap) {
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}

/// Takes a token out of the offered subprotocols.
fn hide_token(headers: &mut HeaderMap) {
    let offered: Vec<String> = headers
        .get_all(header::SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|word| word.trim().to_owned())
        .filter(|word| !word.is_empty() && !word.starts_with(TOKEN_PROTOCOL))
        .collect();
    headers.remove(header::SEC_WEBSOCKET_PROTOCOL);
    if !offered.is_empty()
        && let Ok(value) = HeaderValue::from_str(&offered.join(", "))
    {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, value);
    }
}

/// The request for a location; the body is the client's.
pub(super) fn request(asked: &Asked<'_>, location: &Location, body: Body) -> Request<Body> {
    let peer = asked.request.peer.as_ref();
    let mut onward_headers = onward(
        &asked.request.headers,
        peer.map(|peer| peer.address.ip().to_string()),
    );
    if let Ok(host) = HeaderValue::from_str(&location.authority()) {
        onward_headers.insert(header::HOST, host);
    }
    let mut request = Request::new(body);
    *request.method_mut() = asked.request.method.clone();
    *request.headers_mut() = onward_headers;
    if let Ok(target) = location.target.parse() {
        *request.uri_mut() = target;
    }
    request
}

/// Sends an upgrade on, and connects both ends if it is accepted.
pub(super) async fn upgrade(
    api: &Api,
    mut asked: Asked<'_>,
    location: &Location,
    protocol: HeaderValue,
) -> Result<Response<Body>, ApiError> {
    let client = asked.upgrade.take().ok_or_else(|| {
        ApiError::bad_request("this connection cannot change its protocol: use HTTP/1.1")
    })?;
    let mut request = request(&asked, location, Body::empty());
    request.headers_mut().remove(header::CONTENT_LENGTH);
    request
        .headers_mut()
        .insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    request.headers_mut().insert(header::UPGRADE, protocol);
    let mut response = match transport::send(api, location, request).await {
        Ok(response) => response,
        Err(SendError::Refused(error)) => return Err(error),
        Err(error) => {
            return Err(ApiError::new(
                500,
                "",
                format!("error dialing backend: {error}"),
            ));
        }
    };
    if response.status() != http::StatusCode::SWITCHING_PROTOCOLS {
        let code = response.status().as_u16();
        if code < 400 {
            return Err(ApiError::new(
                500,
                "",
                format!("invalid upgrade response: status code {code}"),
            ));
        }
        return Ok(streamed(response, asked.permit, api.stop.clone()));
    }
    let agent = hyper::upgrade::on(&mut response);
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = http::StatusCode::SWITCHING_PROTOCOLS;
    *answer.headers_mut() = response.headers().clone();
    let (permit, stop) = (asked.permit, api.stop.clone());
    tokio::spawn(async move {
        if let Err(error) = tunnel(client, agent, stop).await {
            tracing::debug!(error, "a tunnel ended");
        }
        drop(permit);
    });
    Ok(answer)
}

/// Copies both ways until one side ends, nothing moves for the idle time, or the server stops.
async fn tunnel(
    client: OnUpgrade,
    agent: OnUpgrade,
    stop: CancellationToken,
) -> Result<(), String> {
    let both = async { tokio::try_join!(client, agent) };
    let (client, agent): (Upgraded, Upgraded) = tokio::time::timeout(LAST_WORDS, both)
        .await
        .map_err(|_| "the upgrade was not completed in time".to_owned())?
        .map_err(|error| error.to_string())?;
    let (client_in, client_out) = tokio::io::split(TokioIo::new(client));
    let (agent_in, agent_out) = tokio::io::split(TokioIo::new(agent));
    let (moved, mut movement) = watch::channel(());
    let idle = async {
        while let Ok(Ok(())) = tokio::time::timeout(IDLE, movement.changed()).await {}
        Err("nothing moved for too long".to_owned())
    };
    let copied = both_ways(
        pump(client_in, agent_out, &moved),
        pump(agent_in, client_out, &moved),
    );
    tokio::select! {
        ended = copied => ended,
        ended = idle => ended,
        () = stop.cancelled() => Ok(()),
    }
}

/// When one direction ended, the other has a moment to say what was on its way.
async fn both_ways(
    there: impl Future<Output = std::io::Result<()>>,
    back: impl Future<Output = std::io::Result<()>>,
) -> Result<(), String> {
    tokio::pin!(there, back);
    let first = tokio::select! {
        ended = &mut there => ended.map(|()| true),
        ended = &mut back => ended.map(|()| false),
    };
    let rest = if first.map_err(|error| error.to_string())? {
        tokio::time::timeout(LAST_WORDS, back).await
    } else {
        tokio::time::timeout(LAST_WORDS, there).await
    };
    match rest {
        Ok(Err(error)) => Err(error.to_string()),
        Ok(Ok(())) | Err(_) => Ok(()),
    }
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    moved: &watch::Sender<()>,
) -> std::io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..count]).await?;
        to.flush().await?;
        moved.send_replace(());
    }
}

/// An answer that is handed on piece by piece. Its place is given back when the stream ends.
pub(super) fn streamed(
    response: Response<hyper::body::Incoming>,
    permit: Permit,
    stop: CancellationToken,
) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    strip(&mut parts.headers);
    parts.version = http::Version::default();
    parts.extensions = http::Extensions::default();
    Response::from_parts(parts, stream_body(body, permit, stop))
}

pub(super) fn stream_body(
    body: hyper::body::Incoming,
    permit: Permit,
    stop: CancellationToken,
) -> Body {
    let state = Some((body, permit, stop));
    Body::from_stream(futures::stream::unfold(state, |state| async move {
        let (mut body, permit, stop) = state?;
        let piece = tokio::select! {
            piece = next_piece(&mut body) => piece?,
            () = stop.cancelled() => return None,
        };
        let next = piece.is_ok().then_some((body, permit, stop));
        Some((piece, next))
    }))
}

/// The next bytes, or nothing at the end.
async fn next_piece(body: &mut hyper::body::Incoming) -> Option<Result<Bytes, String>> {
    loop {
        match tokio::time::timeout(IDLE, body.frame()).await {
            Err(_) => return Some(Err("nothing came for too long".to_owned())),
            Ok(None) => return None,
            Ok(Some(Err(error))) => return Some(Err(error.to_string())),
            Ok(Some(Ok(frame))) => {
                // Trailers have no place in an answer that is not ours.
                if let Ok(data) = frame.into_data() {
                    return Some(Ok(data));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_and_hops_stay_here() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Bearer secret"),
            ("impersonate-user", "jane"),
            ("x-remote-user", "jane"),
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "websocket"),
            ("x-forwarded-for", "192.0.2.1"),
            (
                "sec-websocket-protocol",
                "v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.c2VjcmV0",
            ),
            ("accept", "*/*"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        assert_eq!(upgrade_wish(&headers).unwrap(), "websocket");
        let onward = onward(&headers, Some("192.0.2.2".to_owned()));
        let mut left: Vec<String> = onward
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        left.sort();
        assert_eq!(
            left,
            [
                "accept: */*",
                "sec-websocket-protocol: v5.channel.k8s.io",
                "x-forwarded-for: 192.0.2.1, 192.0.2.2"
            ]
        );
        headers.remove("connection");
        assert_eq!(upgrade_wish(&headers), None);
    }

    #[tokio::test]
    async fn a_tunnel_says_its_last_words() {
        let (client, mut user) = tokio::io::duplex(64);
        let (agent, mut program) = tokio::io::duplex(64);
        let (client_in, client_out) = tokio::io::split(client);
        let (agent_in, agent_out) = tokio::io::split(agent);
        let moved = watch::Sender::new(());
        user.write_all(b"question").await.unwrap();
        user.shutdown().await.unwrap();
        let outside = async {
            let mut asked = Vec::new();
            program.read_to_end(&mut asked).await.unwrap();
            program.write_all(b"answer").await.unwrap();
            drop(program);
            let mut answered = Vec::new();
            user.read_to_end(&mut answered).await.unwrap();
            (asked, answered)
        };
        let inside = async {
            both_ways(
                pump(client_in, agent_out, &moved),
                pump(agent_in, client_out, &moved),
            )
            .await
        };
        let (ended, (asked, answered)) = tokio::join!(inside, outside);
        assert_eq!(ended, Ok(()));
        assert_eq!(
            (asked.as_slice(), answered.as_slice()),
            (&b"question"[..], &b"answer"[..])
        );
    }
}
