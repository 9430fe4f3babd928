//! The health question of gRPC, which servers answer themselves.

use std::time::Duration;

use k8s_openapi::api::core::v1::GRPCAction;
use tonic::{Request, client::Grpc, codegen::http::uri::PathAndQuery, transport::Endpoint};
use tonic_prost::ProstCodec;

use super::ask::Answer;

#[derive(Clone, PartialEq, prost::Message)]
struct Question {
    #[prost(string, tag = "1")]
    service: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Health {
    #[prost(int32, tag = "1")]
    status: i32,
}

const SERVING: i32 = 1;

fn name(status: i32) -> &'static str {
    match status {
        0 => "UNKNOWN",
        SERVING => "SERVING",
        2 => "NOT_SERVING",
        _ => "SERVICE_UNKNOWN",
    }
}

/// Asks whether a service serves.
pub(super) async fn ask(host: &str, action: &GRPCAction, limit: Duration) -> Answer {
    let host = if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    };
    let place = format!("{host}:{}", action.port);
    let asked = question(&place, action.service.clone().unwrap_or_default());
    match tokio::time::timeout(limit, asked).await {
        Ok(Ok(SERVING)) => Answer::Good,
        Ok(Ok(status)) => Answer::Bad(format!(
            "service unhealthy (responded with \"{}\")",
            name(status)
        )),
        Ok(Err(error)) => Answer::Bad(format!("error: {error}")),
        Err(_) => Answer::Bad(format!(
            "timeout: failed to connect service \"{place}\" within {}: context deadline exceeded",
            crate::pods::go_duration(limit)
        )),
    }
}

async fn question(place: &str, service: String) -> Result<i32, String> {
    let endpoint =
        Endpoint::from_shared(format!("http://{place}")).map_err(|error| error.to_string())?;
    let endpoint = endpoint
        .user_agent("kube-probe/1.36")
        .map_err(|error| error.to_string())?;
    let channel = endpoint
        .connect()
        .await
        .map_err(|error| error.to_string())?;
    let mut client = Grpc::new(channel);
    client.ready().await.map_err(|error| error.to_string())?;
    let path = PathAndQuery::from_static("/grpc.health.v1.Health/Check");
    let codec: ProstCodec<Question, Health> = ProstCodec::default();
    let answer = client
        .unary(Request::new(Question { service }), path, codec)
        .await;
    match answer {
        Ok(health) => Ok(health.into_inner().status),
        Err(status) if status.code() == tonic::Code::Unimplemented => Err(
            "this server does not implement the grpc health protocol (grpc.health.v1.Health)"
                .to_owned(),
        ),
        Err(status) => Err(format!("health rpc probe failed: {status}")),
    }
}
