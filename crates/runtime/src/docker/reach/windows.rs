//! By the pod's address: nobody gets into the network of a container from outside.

use tokio::net::TcpStream;

use crate::RuntimeError;
use crate::docker::pods::addresses;
use crate::docker::wire::Inspected;

pub(super) async fn connect_inside(
    sandbox: &Inspected,
    port: u16,
) -> Result<TcpStream, RuntimeError> {
    let places: Vec<_> = addresses(sandbox)
        .into_iter()
        .map(|address| std::net::SocketAddr::new(address, port))
        .collect();
    if places.is_empty() {
        return Err(RuntimeError::Invalid("the pod has no address".to_owned()));
    }
    TcpStream::connect(places.as_slice())
        .await
        .map_err(|error| RuntimeError::io(format!("connect to port {port}"), error))
}
