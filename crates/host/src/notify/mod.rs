//! `sd_notify`: a service tells its supervisor that it is ready, alive, or about to end.
//!
//! The protocol is systemd's on both systems: `NAME=value` lines, sent to the address in
//! `NOTIFY_SOCKET`. Nothing that arrives is trusted: it is short, and comes with the sender's pid.
//!
//! # Platform behavior
//!
//! The address is a datagram socket on Linux, where any `sd_notify` library works, and a named pipe on
//! Windows, to which a program writes the same text.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;
#[cfg(target_os = "linux")]
use linux as system;
#[cfg(windows)]
use windows as system;

use camino::Utf8Path;

/// The variable that tells a service where to send.
pub const VARIABLE: &str = "NOTIFY_SOCKET";

/// No message is longer; the rest of a longer one is dropped, as systemd does.
const LONGEST_MESSAGE: usize = 4096;

/// Why notifications cannot be sent or received.
#[derive(Debug, thiserror::Error)]
pub enum NotifyError {
    #[error("could not listen for notifications at `{address}`")]
    Bind {
        address: String,
        source: std::io::Error,
    },
    #[error("could not notify `{address}`")]
    Send {
        address: String,
        source: std::io::Error,
    },
}

/// One notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who sent it, as the system says, where it does.
    pub pid: Option<u32>,
    pub text: String,
}

/// Where notifications of one service arrive.
#[derive(Debug)]
pub struct Receiver(system::Receiver);

impl Receiver {
    /// Listens at the place for notifications in `folder`.
    pub fn bind(folder: &Utf8Path) -> Result<Self, NotifyError> {
        system::Receiver::bind(folder).map(Self)
    }

    /// The next message. Dropping the future loses none.
    pub async fn receive(&mut self) -> Option<Message> {
        self.0.receive().await
    }
}

/// What a service has to find in `NOTIFY_SOCKET` so that a receiver in `folder` hears it.
pub fn address(folder: &Utf8Path) -> String {
    system::address(folder)
}

/// Sends `text` to the supervisor that listens at `address`.
pub fn send(address: &str, text: &str) -> Result<(), NotifyError> {
    system::send(address, text).map_err(|source| NotifyError::Send {
        address: address.to_owned(),
        source,
    })
}
