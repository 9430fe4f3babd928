//! Why a piece of work could not be done; all of it may go better later.

use std::time::Duration;

/// How long a request may take that changes something: whether it did would not be known.
const CHANGE: Duration = Duration::from_secs(30);
/// How long a request may take that only reads. To ask again costs little.
const READ: Duration = Duration::from_secs(8);

#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("the API answered {code}: {message}")]
    Answer { code: u16, message: String },
    #[error("the API could not be asked")]
    Request(#[source] Box<kube::Error>),
    #[error("no answer within {limit:?}")]
    Late { limit: Duration },
    #[error("the work took longer than {limit:?}")]
    TooLong { limit: Duration },
    #[error("kind `{kind}` of `{api_version}`, which an owner has, is not served")]
    UnknownKind { api_version: String, kind: String },
    #[error("not all objects are known yet")]
    Incomplete,
    #[error("{what} is being deleted")]
    Going { what: String },
    #[error("the work panicked")]
    Panic,
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
            _ => None,
        }
    }

    /// What went wrong, in words for people: those of the API where there are some.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Answer { message, .. } => message.clone(),
            Self::Request(error) => error.to_string(),
            other => other.to_string(),
        }
    }

    pub(crate) fn is_absent(&self) -> bool {
        self.code() == Some(404)
    }

    /// Somebody else was faster: what was decided was decided on old news.
    pub(crate) fn is_conflict(&self) -> bool {
        self.code() == Some(409)
    }

    pub(crate) fn is_forbidden(&self) -> bool {
        self.code() == Some(403)
    }
}

/// Waits for an answer, but not for ever.
pub(crate) fn ask<T>(
    request: impl Future<Output = Result<T, kube::Error>>,
) -> impl Future<Output = Result<T, Fault>> {
    within(CHANGE, request)
}

/// Waits for the answer to a request that changes nothing.
pub(crate) fn fetch<T>(
    request: impl Future<Output = Result<T, kube::Error>>,
) -> impl Future<Output = Result<T, Fault>> {
    within(READ, request)
}

async fn within<T>(
    limit: Duration,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, Fault> {
    match tokio::time::timeout(limit, request).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(Fault::Late { limit }),
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
