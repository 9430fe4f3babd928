//! Why a conversation did not come about, or broke off. Each variant names the endpoint or the limit.

use std::io;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error("somebody else listens at `{endpoint}` already")]
    InUse { endpoint: String },
    #[error("could not listen at `{endpoint}`: {step}")]
    System {
        endpoint: String,
        step: &'static str,
        source: io::Error,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    #[error("could not accept a client at `{endpoint}`")]
    System { endpoint: String, source: io::Error },
}

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("nobody listens at `{endpoint}`")]
    NobodyListens { endpoint: String },
    #[error("`{endpoint}` belongs to another user")]
    Denied { endpoint: String, source: io::Error },
    #[error("`{endpoint}` was busy for {timeout:?}")]
    Busy { endpoint: String, timeout: Duration },
    #[error("could not connect to `{endpoint}`")]
    System { endpoint: String, source: io::Error },
}

#[derive(Debug, thiserror::Error)]
pub enum LineError {
    #[error("a message is longer than the limit of {limit} bytes")]
    TooLong { limit: usize },
    #[error("a message is not the JSON that was expected")]
    Broken { source: serde_json::Error },
    #[error("the other side ended in the middle of a message")]
    Truncated,
    #[error("the conversation broke off")]
    System { source: io::Error },
}
