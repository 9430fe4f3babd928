//! What can go wrong in a runtime, in words that become reasons and messages of pods.

use std::io;

use thiserror::Error;

/// A runtime could not do as it was asked.
#[derive(Debug, Error)]
pub enum RuntimeError {
    /// Nobody answers: a daemon that is not there or does not speak in time.
    #[error("{runtime} does not answer: {cause}")]
    Unavailable {
        runtime: &'static str,
        cause: String,
    },
    #[error("{what} {id:?} is not here")]
    NotFound { what: &'static str, id: String },
    /// This runtime, or this system, has no such thing. The text says what and why.
    #[error("not supported: {0}")]
    NotSupported(String),
    /// The request contradicts itself or what is there.
    #[error("{0}")]
    Invalid(String),
    /// The image cannot be had. Trying again may help.
    #[error("image {reference:?}: {cause}")]
    Pull { reference: String, cause: String },
    /// The image is not here, and the pull policy forbids to get it.
    #[error("image {reference:?} is not on this node")]
    ImageMissing { reference: String },
    /// The name is no image reference: no retry can help.
    #[error("image reference {reference:?}: {cause}")]
    InvalidReference { reference: String, cause: String },
    /// The container was made and could not be started.
    #[error("{program:?} cannot be started: {cause}")]
    CannotRun { program: String, cause: String },
    #[error("{action}: {source}")]
    Io {
        action: String,
        #[source]
        source: io::Error,
    },
    #[error("{0}")]
    Other(String),
}

impl RuntimeError {
    /// An error of the system, with what was being done.
    pub fn io(action: impl Into<String>, source: io::Error) -> Self {
        Self::Io {
            action: action.into(),
            source,
        }
    }
}
