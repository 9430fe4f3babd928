//! Connections to ports inside pods.
//!
//! # Platform behavior
//! On Linux a connection is made in the network of the pod, so that ports on loopback are reached too. On Windows it is
//! made to the pod's address.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;

use std::time::Duration;

use tokio::net::TcpStream;

#[cfg(target_os = "linux")]
use linux::connect_inside;
#[cfg(windows)]
use windows::connect_inside;

use super::Inner;
use super::labels::{self, Part};
use crate::{Connection, PodId, PodNetwork, RuntimeError};

const CONNECT: Duration = Duration::from_secs(10);

impl Inner {
    pub(super) async fn reach(&self, id: &PodId, port: u16) -> Result<Connection, RuntimeError> {
        let lost = || RuntimeError::NotFound {
            what: "pod",
            id: id.to_string(),
        };
        let sandbox = self.inspect(&id.0).await?.ok_or_else(lost)?;
        let Ok(Part::Pod(spec)) = labels::read(&sandbox.config.labels) else {
            return Err(lost());
        };
        if sandbox.state.status != "running" {
            return Err(RuntimeError::Invalid(format!("pod {id} is stopped")));
        }
        let action = || format!("connect to port {port}");
        let connecting = async {
            match spec.network {
                PodNetwork::Host => TcpStream::connect(("127.0.0.1", port))
                    .await
                    .map_err(|error| RuntimeError::io(action(), error)),
                PodNetwork::Own => connect_inside(&sandbox, port).await,
            }
        };
        let late = |_| {
            Err(RuntimeError::io(
                action(),
                std::io::ErrorKind::TimedOut.into(),
            ))
        };
        let stream = tokio::time::timeout(CONNECT, connecting)
            .await
            .unwrap_or_else(late)?;
        Ok(Connection(Box::new(stream)))
    }
}
