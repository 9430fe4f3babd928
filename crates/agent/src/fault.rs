//! Why the API could not be asked or did not do as it was asked; all of it may go better later.

use std::time::Duration;

/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(30);

#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("{message}")]
    Answer { code: u16, message: String },
    #[error("the API could not be asked: {0}")]
    Request(Box<kube::Error>),
    #[error("no answer within {REQUEST:?}")]
    Late,
}

impl From<kube::Error> for Fault {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Answer {
                code: status.code,
                message: status.message,
            },
            other => Self::Request(Box::new(other)),
        }
    }
}

impl Fault {
    fn code(&self) -> Option<u16> {
        match self {
            Self::Answer { code, .. } => Some(*code),
            Self::Request(_) | Self::Late => None,
        }
    }

    pub(crate) fn is_absent(&self) -> bool {
        self.code() == Some(404)
    }

    pub(crate) fn is_conflict(&self) -> bool {
        self.code() == Some(409)
    }

    /// Nobody answered: what is known locally has to do.
    pub(crate) fn is_silence(&self) -> bool {
        self.code().is_none_or(|code| code >= 500 || code == 429)
    }
}

/// Waits for an answer, but not for ever.
pub(crate) async fn ask<T>(
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, Fault> {
    match tokio::time::timeout(REQUEST, request).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(Fault::Late),
    }
}

/// An answer that may also be that there is nothing.
pub(crate) fn found<T>(answer: Result<T, Fault>) -> Result<Option<T>, Fault> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(fault) if fault.is_absent() => Ok(None),
        Err(fault) => Err(fault),
    }
}
