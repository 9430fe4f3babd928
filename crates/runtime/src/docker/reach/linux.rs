//! From inside the network namespace of the first process of a pod.

use std::net::TcpStream as Blocking;
use std::time::Duration;

use tokio::net::TcpStream;

use crate::RuntimeError;
use crate::docker::wire::Inspected;
use crate::oci::in_network;

/// Loopback answers at once.
const ANSWER: Duration = Duration::from_secs(5);

pub(super) async fn connect_inside(
    sandbox: &Inspected,
    port: u16,
) -> Result<TcpStream, RuntimeError> {
    let namespace = format!("/proc/{}/ns/net", sandbox.state.pid);
    let stream = in_network(namespace.into(), move || {
        let stream = Blocking::connect_timeout(&([127, 0, 0, 1], port).into(), ANSWER)?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    })
    .await?;
    TcpStream::from_std(stream)
        .map_err(|error| RuntimeError::io(format!("connect to port {port}"), error))
}
