//! Telling systemd how a daemon is: one datagram to the socket that systemd names. Without such a
//! socket there is nobody to tell.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The variable in which systemd names its socket.
const VARIABLE: &str = "NOTIFY_SOCKET";

/// Where to tell, read once at the start of the service.
#[derive(Debug, Clone)]
pub(super) struct Notifier {
    address: Option<SocketAddr>,
}

impl Notifier {
    #[expect(
        clippy::disallowed_methods,
        reason = "the variable is part of systemd's protocol, not configuration"
    )]
    pub(super) fn from_environment() -> io::Result<Self> {
        let address = match std::env::var_os(VARIABLE) {
            None => None,
            Some(name) => Some(address(name.as_bytes())?),
        };
        Ok(Self { address })
    }

    /// Sends assignments such as `READY=1`.
    pub(super) fn send(&self, message: &str) -> io::Result<()> {
        let Some(address) = &self.address else {
            return Ok(());
        };
        let socket = UnixDatagram::unbound()?;
        // A full socket must not hold up the daemon.
        socket.set_nonblocking(true)?;
        socket.send_to_addr(message.as_bytes(), address)?;
        Ok(())
    }
}

/// A path, or a name without a file behind an `@`.
fn address(name: &[u8]) -> io::Result<SocketAddr> {
    match name.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 64];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    #[test]
    fn readiness_arrives_at_a_socket_in_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let notifier = Notifier {
            address: Some(address(path.as_os_str().as_bytes()).unwrap()),
        };
        notifier.send("READY=1").unwrap();
        assert_eq!(received(&socket), "READY=1");
    }

    #[test]
    fn readiness_arrives_at_a_socket_without_a_file() {
        let name = format!("transom-test-{}", std::process::id());
        let abstract_address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&abstract_address).unwrap();
        let notifier = Notifier {
            address: Some(address(format!("@{name}").as_bytes()).unwrap()),
        };
        notifier.send("STOPPING=1").unwrap();
        assert_eq!(received(&socket), "STOPPING=1");
    }

    #[test]
    fn without_a_socket_nobody_is_told_and_nothing_fails() {
        Notifier { address: None }.send("READY=1").unwrap();
    }
}
