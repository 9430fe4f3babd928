//! Registration of our own daemons with the system: systemd units, Windows services. Every
//! registration carries our mark, and one without it is never changed, started, stopped or removed.

pub mod fake;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod notify;
mod registration;
mod run;
pub mod unit_file;
#[cfg(windows)]
mod windows;
#[cfg(windows)]
mod windows_run;

#[cfg(target_os = "linux")]
pub use linux::{Systemd as Native, run_as_service};
#[cfg(windows)]
pub use windows::ServiceControlManager as Native;
#[cfg(windows)]
pub use windows_run::run_as_service;

use std::io;
use std::time::Duration;

pub use registration::{FailureActions, Registration, RegistrationFault, Start};
pub use run::{Ran, RunError, ServiceMain, StopToken};

/// Registers and controls our own daemons. Every call may be repeated.
pub trait ServiceManager: Send + Sync {
    /// Registers a service, or changes the registration of that name.
    fn install(&self, registration: &Registration) -> Result<(), ServiceError>;

    /// Returns once the service runs; it may run already.
    fn start(&self, name: &str, timeout: Duration) -> Result<(), ServiceError>;

    /// Returns once the service has stopped; it may be stopped already.
    fn stop(&self, name: &str, timeout: Duration) -> Result<(), ServiceError>;

    /// What the service does now, ours or not.
    fn status(&self, name: &str) -> Result<ServiceStatus, ServiceError>;

    /// Stops the service and takes its registration away; there need not be one.
    fn uninstall(&self, name: &str) -> Result<(), ServiceError>;

    /// The names of all services that carry our mark, sorted.
    fn list_ours(&self) -> Result<Vec<String>, ServiceError>;
}

/// What a service does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceStatus {
    NotInstalled,
    /// The code it ended with, where the system tells one.
    Stopped {
        exit_code: Option<u32>,
    },
    Starting,
    Running {
        process: Option<u32>,
    },
    Stopping,
}

/// Why a service could not be registered or controlled.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error("this machine has no service manager that we know: systemd does not run here")]
    NoServiceManager,
    #[error("could not reach the service manager")]
    Connect { source: io::Error },
    #[error("the service `{name}` cannot be registered: {fault}")]
    Registration {
        name: String,
        fault: RegistrationFault,
    },
    #[error("there is a service `{name}` that is not ours: it is left as it is")]
    Foreign { name: String },
    #[error("there is no service `{name}`")]
    NotInstalled { name: String },
    #[error("could not {what} the service `{name}`")]
    Failed {
        what: &'static str,
        name: String,
        source: io::Error,
    },
    #[error("the service manager refused to {what} the service `{name}`: {message}")]
    Refused {
        what: &'static str,
        name: String,
        message: String,
    },
    #[error("the service `{name}` did not {what} within {seconds} s")]
    Timeout {
        what: &'static str,
        name: String,
        seconds: u64,
    },
}

impl ServiceError {
    fn failed(what: &'static str, name: &str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Failed {
            what,
            name: name.to_owned(),
            source,
        }
    }

    fn timeout(what: &'static str, name: &str, timeout: Duration) -> Self {
        Self::Timeout {
            what,
            name: name.to_owned(),
            seconds: timeout.as_secs(),
        }
    }
}
