//! Calls to etcd: which server, how long, and what to try again.
//!
//! A call that may have happened is never repeated, unless repeating it does no harm.

use std::{
    error::Error,
    fmt,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use fs_err as fs;
use prost::Message;
use tokio::sync::mpsc;
use tonic::{
    Code, Request, Status, Streaming,
    client::Grpc,
    codegen::http::uri::PathAndQuery,
    metadata::MetadataValue,
    transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity},
};
use tonic_prost::ProstCodec;

use super::{
    EtcdOptions, EtcdTls,
    wire::{WatchRequest, WatchResponse},
};
use crate::{StoreError, blocking};

const CONNECT: Duration = Duration::from_secs(3);
pub(super) const CALL: Duration = Duration::from_secs(15);
const KEEP_ALIVE: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Every server twice, and some more.
pub(super) const ATTEMPTS: u32 = 6;
/// A page of the longest values; etcd's own limit is on requests only.
const LONGEST_ANSWER: usize = 1 << 30;
/// Requests of a watch that wait to be sent.
const WATCH_REQUESTS: usize = 8;
/// Has etcd end a watch on a server that has no leader.
const NEEDS_LEADER: &str = "hasleader";

/// Whether a call that may have happened may be made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    Harmless,
    OnlyIfUnsent,
}

/// The two directions of a watch.
pub(super) struct WatchCall {
    pub(super) requests: mpsc::Sender<WatchRequest>,
    pub(super) responses: Streaming<WatchResponse>,
}

pub(super) struct Client {
    channels: Vec<Channel>,
    current: AtomicUsize,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("servers", &self.channels.len())
            .finish_non_exhaustive()
    }
}

/// How long to wait before attempt number `attempt`, counted from zero.
pub(super) fn pause(attempt: u32) -> Duration {
    LONGEST_PAUSE.min(FIRST_PAUSE * 2_u32.saturating_pow(attempt.min(10)))
}

impl Client {
    pub(super) async fn new(options: &EtcdOptions) -> Result<Self, StoreError> {
        let tls = match &options.tls {
            Some(tls) => Some(read_tls(tls.clone()).await?),
            None => None,
        };
        let mut channels = Vec::new();
        for url in &options.endpoints {
            let mut endpoint = Endpoint::from_shared(url.to_string())
                .map_err(unavailable)?
                .connect_timeout(CONNECT)
                .http2_keep_alive_interval(KEEP_ALIVE)
                .keep_alive_timeout(KEEP_ALIVE)
                .keep_alive_while_idle(true);
            if let Some(tls) = &tls {
                endpoint = endpoint.tls_config(tls.clone()).map_err(unavailable)?;
            }
            channels.push(endpoint.connect_lazy());
        }
        if channels.is_empty() {
            return Err(unavailable("no endpoint is given"));
        }
        Ok(Self {
            channels,
            current: AtomicUsize::new(0),
        })
    }

    fn grpc(&self) -> (usize, Grpc<Channel>) {
        let number = self.current.load(Ordering::Relaxed) % self.channels.len();
        let grpc = Grpc::new(self.channels[number].clone());
        (number, grpc.max_decoding_message_size(LONGEST_ANSWER))
    }

    /// The next call goes to another server, unless somebody else has seen to that.
    fn move_on(&self, from: usize) {
        let next = (from + 1) % self.channels.len();
        let moved = Ordering::Relaxed;
        self.current.compare_exchange(from, next, moved, moved).ok();
    }

    pub(super) async fn call<Q, A>(
        &self,
        path: &'static str,
        request: &Q,
        repeat: Repeat,
    ) -> Result<A, Status>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let mut attempt = 0;
        loop {
            let (number, grpc) = self.grpc();
            let error = match self.call_once(grpc, path, request.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            attempt += 1;
            if is_unreachable(&error) {
                self.move_on(number);
            }
            let again = match repeat {
                Repeat::Harmless => is_unreachable(&error),
                Repeat::OnlyIfUnsent => is_unsent(&error),
            };
            if !again || attempt >= ATTEMPTS {
                return Err(error);
            }
            tokio::time::sleep(pause(attempt)).await;
        }
    }

    async fn call_once<Q, A>(
        &self,
        mut grpc: Grpc<Channel>,
        path: &'static str,
        request: Q,
    ) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let call = async {
            ready(&mut grpc).await?;
            let codec = ProstCodec::<Q, A>::default();
            let path = PathAndQuery::from_static(path);
            grpc.unary(Request::new(request), path, codec).await
        };
        match tokio::time::timeout(CALL, call).await {
            Ok(answer) => Ok(answer?.into_inner()),
            Err(_) => Err(Status::deadline_exceeded("etcd did not answer in time")),
        }
    }

    /// Sends one request on a stream and takes the first answer.
    pub(super) async fn call_stream<Q, A>(
        &self,
        path: &'static str,
        request: Q,
    ) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let (number, mut grpc) = self.grpc();
        let call = async {
            ready(&mut grpc).await?;
            let codec = ProstCodec::<Q, A>::default();
            let path = PathAndQuery::from_static(path);
            let requests = futures::stream::iter([request]);
            let answers = grpc.streaming(Request::new(requests), path, codec).await?;
            let first = answers.into_inner().message().await?;
            first.ok_or_else(|| Status::unavailable("etcd ended the stream"))
        };
        let answer = match tokio::time::timeout(CALL, call).await {
            Ok(answer) => answer,
            Err(_) => Err(Status::deadline_exceeded("etcd did not answer in time")),
        };
        answer.inspect_err(|error| {
            if is_unreachable(error) {
                self.move_on(number);
            }
        })
    }

    pub(super) async fn watch(&self, first: WatchRequest) -> Result<WatchCall, Status> {
        let (number, mut grpc) = self.grpc();
        let (requests, queue) = mpsc::channel(WATCH_REQUESTS);
        let call = async {
            ready(&mut grpc).await?;
            // There is room for the first one.
            requests.try_send(first).ok();
            let queue = futures::stream::unfold(queue, |mut queue| async move {
                queue.recv().await.map(|request| (request, queue))
            });
            let codec = ProstCodec::<WatchRequest, WatchResponse>::default();
            let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
            let mut request = Request::new(queue);
            // A server that is cut off from the others would keep the watch and say nothing.
            let wish = MetadataValue::from_static("true");
            request.metadata_mut().insert(NEEDS_LEADER, wish);
            grpc.streaming(request, path, codec).await
        };
        let answer = match tokio::time::timeout(CALL, call).await {
            Ok(answer) => answer,
            Err(_) => Err(Status::deadline_exceeded("etcd did not answer in time")),
        };
        match answer {
            Ok(responses) => Ok(WatchCall {
                requests,
                responses: responses.into_inner(),
            }),
            Err(error) => {
                self.move_on(number);
                Err(error)
            }
        }
    }
}

async fn ready(grpc: &mut Grpc<Channel>) -> Result<(), Status> {
    let ready = grpc.ready().await;
    ready.map_err(|error| Status::from_error(error.into()))
}

/// Whether another server, or the same one later, may answer.
pub(super) fn is_unreachable(error: &Status) -> bool {
    matches!(
        error.code(),
        Code::Unavailable | Code::DeadlineExceeded | Code::Unknown | Code::Cancelled
    )
}

/// Whether there was no connection to send the request on.
fn is_unsent(error: &Status) -> bool {
    let mut source = error.source();
    while let Some(error) = source {
        if error.is::<tonic::ConnectError>() {
            return true;
        }
        source = error.source();
    }
    false
}

pub(super) fn unavailable(source: impl Into<Box<dyn Error + Send + Sync>>) -> StoreError {
    StoreError::Unavailable {
        source: source.into(),
    }
}

async fn read_tls(tls: EtcdTls) -> Result<ClientTlsConfig, StoreError> {
    blocking(move || {
        let read = |path: &camino::Utf8Path| {
            fs::read(path).map_err(|source| StoreError::Files {
                action: "read",
                path: path.to_owned(),
                source,
            })
        };
        let mut config =
            ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(&tls.authority)?));
        if let Some(own) = &tls.own {
            let identity = Identity::from_pem(read(&own.certificate)?, read(&own.key)?);
            config = config.identity(identity);
        }
        Ok(config)
    })
    .await
}
