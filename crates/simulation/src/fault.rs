//! What can go wrong in a simulation.

use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("the API did not {what}")]
    Request {
        what: String,
        source: Box<kube::Error>,
    },
    #[error("the phase `{phase}` was not over after {limit:?}: {reached} of {wanted} {what}")]
    Late {
        phase: &'static str,
        limit: Duration,
        reached: usize,
        wanted: usize,
        what: &'static str,
    },
    #[error("the simulation was stopped")]
    Stopped,
}

impl Fault {
    /// For what was asked of the API.
    pub(crate) fn request(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        |source| Self::Request {
            what,
            source: Box::new(source),
        }
    }
}
