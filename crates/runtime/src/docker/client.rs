//! Calls of Docker's interface, a connection each. Invariant: every call ends in time, and no answer is held that is
//! larger than a bound.

use std::fmt::Write as _;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt as _;
use http_body_util::{BodyDataStream, BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderValue, UPGRADE};
use hyper::upgrade::Upgraded;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::AsyncRead;
use tokio_util::io::StreamReader;

use super::wire::VersionAnswer;
use crate::RuntimeError;
use crate::connect::{connect, path_of};

/// How long a call may take that has no time of its own.
pub(super) const CALL: Duration = Duration::from_mins(2);
/// A node of hundreds of pods fits; more is a mistake.
const LONGEST_ANSWER: usize = 64 << 20;
/// What we know how to speak: 1.41 is of 2020, later ones mean the same by all that we say.
const NEWEST: (u32, u32) = (1, 47);
const OLDEST: (u32, u32) = (1, 40);

/// Why a call came to nothing.
#[derive(Debug)]
pub(super) enum Fault {
    /// Nobody answered, or not in time, or nonsense.
    Unavailable(String),
    Refused {
        status: StatusCode,
        message: String,
    },
}

impl Fault {
    pub(super) fn is_missing(&self) -> bool {
        self.is(StatusCode::NOT_FOUND)
    }

    pub(super) fn is(&self, wanted: StatusCode) -> bool {
        matches!(self, Self::Refused { status, .. } if *status == wanted)
    }

    pub(super) fn message(&self) -> &str {
        match self {
            Self::Unavailable(message) | Self::Refused { message, .. } => message,
        }
    }

    /// What a fault means to the agent.
    pub(super) fn explain(&self, what: &'static str, id: &str) -> RuntimeError {
        match self {
            Self::Unavailable(cause) => RuntimeError::Unavailable {
                runtime: "docker",
                cause: cause.clone(),
            },
            Self::Refused { status, message } => match *status {
                StatusCode::NOT_FOUND => RuntimeError::NotFound {
                    what,
                    id: id.to_owned(),
                },
                StatusCode::BAD_REQUEST | StatusCode::CONFLICT => {
                    RuntimeError::Invalid(message.clone())
                }
                StatusCode::NOT_IMPLEMENTED => RuntimeError::NotSupported(message.clone()),
                _ => RuntimeError::Other(message.clone()),
            },
        }
    }
}

fn unavailable(error: impl std::fmt::Display) -> Fault {
    Fault::Unavailable(error.to_string())
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Refusal {
    message: String,
}

#[derive(Debug)]
pub(super) struct Client {
    path: String,
    /// The version that both sides speak, once it is known.
    version: Mutex<Option<String>>,
}

impl Client {
    pub(super) fn new(address: &str) -> Self {
        Self {
            path: path_of(address).to_owned(),
            version: Mutex::default(),
        }
    }

    /// Who answers. Agrees on a version of the interface, again each time: Docker may be another one by now.
    pub(super) async fn greet(&self, limit: Duration) -> Result<VersionAnswer, Fault> {
        let request = request(Method::GET, "/version", Bytes::new());
        let answer: VersionAnswer =
            within(limit, async { read(self.send(request).await?).await }).await?;
        let spoken =
            agree(&answer.api_version, &answer.oldest_api_version).map_err(Fault::Unavailable)?;
        *self.version.lock().unwrap_or_else(PoisonError::into_inner) = Some(spoken);
        Ok(answer)
    }

    async fn prefixed(&self, path: &str) -> Result<String, Fault> {
        let known = || {
            let version = self.version.lock().unwrap_or_else(PoisonError::into_inner);
            version.clone()
        };
        if known().is_none() {
            self.greet(CALL).await?;
        }
        Ok(format!("/v{}{path}", known().unwrap_or_default()))
    }

    pub(super) async fn get<A: DeserializeOwned>(&self, path: &str) -> Result<A, Fault> {
        within(CALL, async {
            read(self.stream(Method::GET, path, Bytes::new(), &[]).await?).await
        })
        .await
    }

    /// Sends a document and reads one.
    pub(super) async fn post<A: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
    ) -> Result<A, Fault> {
        let body = Bytes::from(body.to_string());
        within(CALL, async {
            read(self.stream(Method::POST, path, body, &[]).await?).await
        })
        .await
    }

    /// Does something that is answered with yes or no.
    pub(super) async fn act(
        &self,
        method: Method,
        path: &str,
        limit: Duration,
    ) -> Result<(), Fault> {
        within(limit, async {
            collect(self.stream(method, path, Bytes::new(), &[]).await?).await
        })
        .await
        .map(drop)
    }

    /// Sends an archive.
    pub(super) async fn upload(&self, path: &str, archive: Bytes) -> Result<Bytes, Fault> {
        let kind = [(CONTENT_TYPE.as_str(), "application/x-tar".to_owned())];
        within(CALL, async {
            collect(self.stream(Method::POST, path, archive, &kind).await?).await
        })
        .await
    }

    /// Asks for an answer that may have no end. Returns when its head is there.
    pub(super) async fn stream(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        headers: &[(&str, String)],
    ) -> Result<Response<Incoming>, Fault> {
        let mut request = request(method, &self.prefixed(path).await?, body);
        for (name, value) in headers {
            let name = hyper::header::HeaderName::try_from(*name).map_err(unavailable)?;
            let mut value = HeaderValue::try_from(value).map_err(unavailable)?;
            value.set_sensitive(true);
            request.headers_mut().insert(name, value);
        }
        checked(self.send(request).await?).await
    }

    /// Takes the connection over after a request: from then on it is the streams of a program.
    pub(super) async fn take_over(
        &self,
        path: &str,
        body: &Value,
    ) -> Result<TokioIo<Upgraded>, Fault> {
        within(CALL, async {
            let path = self.prefixed(path).await?;
            let mut request = request(Method::POST, &path, Bytes::from(body.to_string()));
            let headers = request.headers_mut();
            headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
            headers.insert(UPGRADE, HeaderValue::from_static("tcp"));
            let answer = checked(self.send(request).await?).await?;
            let upgraded = hyper::upgrade::on(answer).await.map_err(unavailable)?;
            Ok(TokioIo::new(upgraded))
        })
        .await
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Fault> {
        let stream = connect(&self.path).await.map_err(unavailable)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(unavailable)?;
        // Ends with the answer, or when nobody wants the rest of it.
        tokio::spawn(async move {
            if let Err(error) = connection.with_upgrades().await {
                tracing::debug!(%error, "a connection to docker broke");
            }
        });
        sender.send_request(request).await.map_err(unavailable)
    }
}

fn request(method: Method, path: &str, body: Bytes) -> Request<Full<Bytes>> {
    let has_body = !body.is_empty();
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    // Paths are made of ids and encoded words; one that is none is answered with `not found` over there.
    *request.uri_mut() = path.parse().unwrap_or_default();
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_static("docker"));
    if has_body {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    request
}

async fn within<T>(
    limit: Duration,
    call: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    tokio::time::timeout(limit, call)
        .await
        .unwrap_or_else(|_| Err(Fault::Unavailable("no answer in time".to_owned())))
}

async fn checked(answer: Response<Incoming>) -> Result<Response<Incoming>, Fault> {
    let status = answer.status();
    if status.is_success()
        || status == StatusCode::SWITCHING_PROTOCOLS
        || status == StatusCode::NOT_MODIFIED
    {
        return Ok(answer);
    }
    let body = collect(answer).await?;
    let message = serde_json::from_slice::<Refusal>(&body)
        .map(|refusal| refusal.message)
        .unwrap_or_default();
    Err(Fault::Refused {
        status,
        message: if message.is_empty() {
            status.to_string()
        } else {
            message.trim_end().to_owned()
        },
    })
}

async fn collect(answer: Response<Incoming>) -> Result<Bytes, Fault> {
    let body = Limited::new(answer.into_body(), LONGEST_ANSWER);
    Ok(body.collect().await.map_err(unavailable)?.to_bytes())
}

async fn read<A: DeserializeOwned>(answer: Response<Incoming>) -> Result<A, Fault> {
    let body = collect(checked(answer).await?).await?;
    serde_json::from_slice(&body).map_err(unavailable)
}

/// The bytes of an answer as they come.
pub(super) fn reader(answer: Response<Incoming>) -> impl AsyncRead + Send + Unpin {
    let bytes = BodyDataStream::new(answer.into_body());
    StreamReader::new(bytes.map_err(io::Error::other))
}

/// The newest version of the interface that both sides know.
fn agree(theirs: &str, their_oldest: &str) -> Result<String, String> {
    let read = |text: &str| {
        let (major, minor) = text.split_once('.')?;
        Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
    };
    let newest = read(theirs).ok_or_else(|| format!("it says its version is {theirs:?}"))?;
    let oldest = read(their_oldest).unwrap_or(OLDEST);
    let spoken = newest.min(NEWEST);
    if spoken < OLDEST {
        return Err(format!(
            "it speaks version {theirs} of its interface, and {}.{} is needed: docker 19.03 or newer",
            OLDEST.0, OLDEST.1
        ));
    }
    // One that has left all of ours behind is asked in its own words: they hardly change.
    let spoken = spoken.max(oldest);
    Ok(format!("{}.{}", spoken.0, spoken.1))
}

/// A text as a part of a path or a query.
pub(super) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            // Writing to a text cannot fail.
            _ => drop(write!(encoded, "%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_speak_the_newest_version_that_both_know() {
        assert_eq!(agree("1.41", "1.12").as_deref(), Ok("1.41"));
        assert_eq!(agree("1.52", "1.44").as_deref(), Ok("1.47"));
        assert_eq!(agree("1.60", "1.50").as_deref(), Ok("1.50"));
        assert!(agree("1.24", "1.12").unwrap_err().contains("19.03"));
        assert!(agree("new", "").is_err());
    }

    #[test]
    fn words_in_paths_are_no_paths() {
        assert_eq!(encode("a/b:1?x=ü"), "a%2Fb%3A1%3Fx%3D%C3%BC");
        assert_eq!(encode("sha256:0_9-z.~"), "sha256%3A0_9-z.~");
    }
}
