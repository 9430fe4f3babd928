//! The services of a node, as far as a switch needs them. The real ones are brought by the assembly:
//! systemd, or our own supervisor. Units are handed over in the order of their dependencies.

pub mod fake;
mod order;

use std::fmt::Debug;
use std::time::Duration;

pub(super) use order::in_start_order;

/// Why services did not do what they were asked to.
#[derive(Debug, thiserror::Error)]
#[error("could not {action} services")]
pub struct ServicesError {
    pub action: &'static str,
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// The services that unit files describe.
pub trait Services: Debug + Send + Sync {
    /// Stops units, the first one first. One that is stopped, or not known, is fine.
    fn stop(&self, units: &[String]) -> Result<(), ServicesError>;
    /// Unit files have changed: reads them again.
    fn reload(&self) -> Result<(), ServicesError>;
    /// Starts units, the first one first.
    fn start(&self, units: &[String]) -> Result<(), ServicesError>;
    /// Waits until all units are healthy, at most `limit`. Returns a sentence for each that is not.
    fn wait_healthy(&self, units: &[String], limit: Duration)
    -> Result<Vec<String>, ServicesError>;
}

/// No services at all, as `--no-systemd` asks for.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoServices;

impl Services for NoServices {
    fn stop(&self, _: &[String]) -> Result<(), ServicesError> {
        Ok(())
    }

    fn reload(&self) -> Result<(), ServicesError> {
        Ok(())
    }

    fn start(&self, _: &[String]) -> Result<(), ServicesError> {
        Ok(())
    }

    fn wait_healthy(&self, _: &[String], _: Duration) -> Result<Vec<String>, ServicesError> {
        Ok(Vec::new())
    }
}
