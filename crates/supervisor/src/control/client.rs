//! Asking the daemon.

use std::time::Duration;

use transom_host::ipc::{self, ConnectError, LineError, LineStream};
use transom_model::layout::Layout;

use super::LONGEST_LINE;
use super::protocol::{Answer, Request};
use crate::daemon::control_endpoint;

/// A daemon that is alive accepts at once; the time is for a machine under load.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("no supervisor is running here")]
    NotRunning(#[source] ConnectError),
    #[error("the supervisor went away before it answered")]
    WentAway,
    #[error("the conversation with the supervisor broke off")]
    BrokeOff(#[source] LineError),
}

/// Asks the daemon of the node with this layout. Jobs may take as long as their units allow, so there
/// is no limit here: the daemon bounds everything it does.
pub async fn ask(layout: &Layout, request: &Request) -> Result<Answer, AskError> {
    let stream = ipc::connect(&control_endpoint(layout), CONNECT_LIMIT)
        .await
        .map_err(AskError::NotRunning)?;
    let mut stream = LineStream::new(stream, LONGEST_LINE);
    stream.send(request).await.map_err(AskError::BrokeOff)?;
    match stream.receive::<Answer>().await {
        Ok(Some(answer)) => Ok(answer),
        Ok(None) => Err(AskError::WentAway),
        Err(error) => Err(AskError::BrokeOff(error)),
    }
}
