//! Calls of the container runtime interface.

use std::time::Duration;

use prost::Message;
use tonic::client::Grpc;
use tonic::codegen::http::Uri;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::RuntimeError;
use crate::connect::{connect, path_of};

/// How long a call may take that has no time of its own.
pub(super) const CALL: Duration = Duration::from_mins(2);
const CONNECT: Duration = Duration::from_secs(10);
/// A node of hundreds of pods fits; more is a mistake.
const LONGEST_ANSWER: usize = 64 << 20;

#[derive(Clone, Debug)]
pub(super) struct Client {
    channel: Channel,
}

impl Client {
    /// Nothing is asked yet: connections are made when they are needed, again and again.
    pub(super) fn new(address: &str) -> Self {
        let path = path_of(address).to_owned();
        let connector = tower::service_fn(move |_: Uri| {
            let path = path.clone();
            async move { connect(&path).await.map(hyper_util::rt::TokioIo::new) }
        });
        // The name is a formality: the connector knows where to go.
        let endpoint = Endpoint::from_static("http://localhost").connect_timeout(CONNECT);
        Self {
            channel: endpoint.connect_with_connector_lazy(connector),
        }
    }

    async fn grpc(&self) -> Result<Grpc<Channel>, Status> {
        let mut grpc = Grpc::new(self.channel.clone()).max_decoding_message_size(LONGEST_ANSWER);
        let ready = grpc.ready().await;
        ready.map_err(|error| Status::from_error(error.into()))?;
        Ok(grpc)
    }

    pub(super) async fn call<Q, A>(
        &self,
        path: &'static str,
        request: Q,
        limit: Duration,
    ) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let call = async {
            let mut grpc = self.grpc().await?;
            let codec = ProstCodec::<Q, A>::default();
            let path = PathAndQuery::from_static(path);
            grpc.unary(Request::new(request), path, codec).await
        };
        match tokio::time::timeout(limit, call).await {
            Ok(answer) => Ok(answer?.into_inner()),
            Err(_) => Err(Status::deadline_exceeded("no answer in time")),
        }
    }

    pub(super) async fn stream<Q, A>(
        &self,
        path: &'static str,
        request: Q,
    ) -> Result<Streaming<A>, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = self.grpc().await?;
        let codec = ProstCodec::<Q, A>::default();
        let path = PathAndQuery::from_static(path);
        let answers = grpc
            .server_streaming(Request::new(request), path, codec)
            .await?;
        Ok(answers.into_inner())
    }
}

/// What a refusal means to the agent.
pub(super) fn explain(what: &'static str, id: &str, status: &Status) -> RuntimeError {
    let cause = match std::error::Error::source(status) {
        Some(source) => format!("{}: {source}", status.message()),
        None => status.message().to_owned(),
    };
    match status.code() {
        Code::NotFound => RuntimeError::NotFound {
            what,
            id: id.to_owned(),
        },
        Code::Unavailable | Code::DeadlineExceeded => RuntimeError::Unavailable {
            runtime: "the container runtime",
            cause,
        },
        Code::Unimplemented => RuntimeError::NotSupported(cause),
        Code::InvalidArgument | Code::FailedPrecondition => RuntimeError::Invalid(cause),
        _ => RuntimeError::Other(cause),
    }
}

/// Whether what a call was about is not there.
pub(super) fn is_missing(status: &Status) -> bool {
    status.code() == Code::NotFound
}
