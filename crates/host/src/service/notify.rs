//! Telling systemd how our own daemon is. Where systemd did not start us, there is nobody to tell.

use crate::notify::{self, NotifyError};

/// Where to tell, read once at the start of the service.
#[derive(Debug, Clone)]
pub(super) struct Notifier {
    address: Option<String>,
}

impl Notifier {
    #[expect(
        clippy::disallowed_methods,
        reason = "the variable is part of systemd's protocol, not configuration"
    )]
    pub(super) fn from_environment() -> Self {
        let address = std::env::var(notify::VARIABLE).ok();
        Self { address }
    }

    /// Sends assignments such as `READY=1`.
    pub(super) fn send(&self, message: &str) -> Result<(), NotifyError> {
        match &self.address {
            Some(address) => notify::send(address, message),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_socket_nobody_is_told_and_nothing_fails() {
        Notifier { address: None }.send("READY=1").unwrap();
    }

    #[test]
    fn a_socket_that_is_gone_is_an_error_and_not_a_wait() {
        let address = Some("/nonexistent/notify".to_owned());
        assert!(Notifier { address }.send("READY=1").is_err());
    }
}
