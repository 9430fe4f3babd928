//! From a request to a connection of another kind: WebSocket or SPDY, whichever the client asked for.

use axum::{
    body::Body,
    extract::{
        Request, WebSocketUpgrade,
        ws::{Message, WebSocket, rejection::WebSocketUpgradeRejection},
    },
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use futures::{SinkExt as _, StreamExt as _};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use super::Refusal;

const SPDY: &str = "SPDY/3.1";
const VERSIONS: &str = "x-stream-protocol-version";
const BLOCK: usize = 32 << 10;

pub(super) type Asked = Result<WebSocketUpgrade, WebSocketUpgradeRejection>;
pub(super) type Raw = TokioIo<hyper::upgrade::Upgraded>;

/// What a client wants to speak.
pub(super) enum Upgrade {
    WebSocket(WebSocketUpgrade),
    Spdy(SpdyUpgrade),
}

pub(super) struct SpdyUpgrade {
    request: Request,
    version: HeaderValue,
}

/// Chooses by what the client asked for. `versions` are the protocols within SPDY, the best first.
pub(super) fn choose(
    asked: Asked,
    request: Request,
    versions: &[&'static str],
) -> Result<Upgrade, Refusal> {
    if let Ok(socket) = asked {
        return Ok(Upgrade::WebSocket(socket));
    }
    let wanted = request
        .headers()
        .get(header::UPGRADE)
        .and_then(|value| value.to_str().ok());
    if !wanted.is_some_and(|wanted| wanted.eq_ignore_ascii_case(SPDY)) {
        return Err(Refusal::bad("Upgrade request required"));
    }
    let offered = offered(request.headers());
    let Some(version) = versions
        .iter()
        .find(|version| offered.iter().any(|one| one == *version))
    else {
        let text = format!(
            "unable to upgrade: unable to negotiate protocol: client supports {offered:?}, server accepts {versions:?}"
        );
        return Err(Refusal::new(StatusCode::FORBIDDEN, text));
    };
    Ok(Upgrade::Spdy(SpdyUpgrade {
        request,
        version: HeaderValue::from_static(version),
    }))
}

fn offered(headers: &HeaderMap) -> Vec<String> {
    let lines = headers
        .get_all(VERSIONS)
        .iter()
        .filter_map(|value| value.to_str().ok());
    lines
        .flat_map(|line| line.split(','))
        .map(|one| one.trim().to_owned())
        .collect()
}

impl SpdyUpgrade {
    /// Answers, and hands the connection over once the answer is out.
    pub(super) fn accept<F: Future<Output = ()> + Send>(
        self,
        speak: impl FnOnce(Raw) -> F + Send + 'static,
    ) -> Response {
        let Self { request, version } = self;
        tokio::spawn(async move {
            match hyper::upgrade::on(request).await {
                Ok(raw) => speak(TokioIo::new(raw)).await,
                Err(error) => tracing::debug!(%error, "a connection was not handed over"),
            }
        });
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static(SPDY));
        headers.insert(VERSIONS, version);
        response
    }
}

/// The bytes inside a WebSocket, as a connection of their own.
pub(super) async fn tunnel<F: Future<Output = ()>>(
    socket: WebSocket,
    speak: impl FnOnce(DuplexStream) -> F,
) {
    let (ours, theirs) = tokio::io::duplex(BLOCK);
    let (mut reader, mut writer) = tokio::io::split(ours);
    let (mut sink, mut stream) = socket.split();
    let inward = async {
        while let Some(Ok(message)) = stream.next().await {
            match message {
                Message::Binary(bytes) => match writer.write_all(&bytes).await {
                    Ok(()) => {}
                    Err(_) => return,
                },
                Message::Close(_) => return,
                _ => {}
            }
        }
    };
    let outward = async {
        let mut block = vec![0; BLOCK];
        while let Ok(length @ 1..) = reader.read(&mut block).await {
            if sink
                .send(Message::Binary(block[..length].to_vec().into()))
                .await
                .is_err()
            {
                return;
            }
        }
    };
    tokio::select! {
        () = speak(theirs) => {}
        () = inward => {}
        () = outward => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(upgrade: &str, versions: &[&str]) -> Request {
        let mut request = Request::new(Body::empty());
        request
            .headers_mut()
            .insert(header::UPGRADE, HeaderValue::from_str(upgrade).unwrap());
        for version in versions {
            request
                .headers_mut()
                .append(VERSIONS, HeaderValue::from_str(version).unwrap());
        }
        request
    }

    #[test]
    fn versions_come_in_one_line_or_many() {
        let headers = request(SPDY, &["a, b", "c"]).headers().clone();
        assert_eq!(offered(&headers), ["a", "b", "c"]);
    }
}
