//! Why an operation on a process failed. Each variant names the path or process it is about.

use std::io;
use std::time::Duration;

use camino::Utf8PathBuf;

use super::{GroupId, GroupSpec, Identity, Signal, UserSpec};

/// Why a program did not start. Nothing runs and nothing is left behind.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("`{program}` is not an absolute path")]
    RelativeProgram { program: Utf8PathBuf },
    #[error("executable `{program}` does not exist")]
    MissingExecutable { program: Utf8PathBuf },
    #[error("`{program}` may not be executed")]
    NotExecutable {
        program: Utf8PathBuf,
        source: io::Error,
    },
    #[error("interpreter `{interpreter}` of `{program}` does not exist")]
    MissingInterpreter {
        program: Utf8PathBuf,
        interpreter: String,
    },
    #[error("`{program}` is not a program that this system can run")]
    WrongFormat {
        program: Utf8PathBuf,
        source: io::Error,
    },
    #[error("could not enter directory `{directory}`")]
    Directory {
        directory: Utf8PathBuf,
        source: io::Error,
    },
    #[error("user `{user}` does not exist")]
    UnknownUser { user: UserSpec },
    #[error("could not become user `{user}`")]
    SwitchUser { user: UserSpec, source: io::Error },
    #[error("running as user `{user}` is not supported on this system")]
    UserNotSupported { user: UserSpec },
    #[error("group of users `{group}` does not exist")]
    UnknownGroup { group: GroupSpec },
    #[error("could not look up the group of users `{group}`")]
    LookUpGroup { group: GroupSpec, source: io::Error },
    #[error("could not join the groups of users that `{program}` is to have")]
    SwitchGroups {
        program: Utf8PathBuf,
        source: io::Error,
    },
    #[error("running in the group of users `{group}` is not supported on this system")]
    GroupNotSupported { group: GroupSpec },
    #[error("could not open `{path}` for input")]
    OpenInput {
        path: Utf8PathBuf,
        source: io::Error,
    },
    #[error("could not open `{path}` for output")]
    OpenOutput {
        path: Utf8PathBuf,
        source: io::Error,
    },
    /// A NUL, or a name of a variable that is empty or contains `=`.
    #[error("{what} of `{program}` cannot be passed to a program: {reason}")]
    BadText {
        program: Utf8PathBuf,
        what: String,
        reason: &'static str,
    },
    #[error("could not {step} for `{program}`")]
    System {
        program: Utf8PathBuf,
        step: &'static str,
        source: io::Error,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    #[error("could not open process {}", identity.pid)]
    Open {
        identity: Identity,
        source: io::Error,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    #[error("could not wait for process {}", identity.pid)]
    System {
        identity: Identity,
        source: io::Error,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum SignalError {
    #[error("could not send {signal} to process {}", identity.pid)]
    Send {
        signal: Signal,
        identity: Identity,
        source: io::Error,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum KillError {
    #[error("{} processes of group {group} still live after {timeout:?}, {} among them",
        left.len(), left.first().map_or(0, |identity| identity.pid))]
    StillAlive {
        group: GroupId,
        left: Vec<Identity>,
        timeout: Duration,
    },
    #[error("could not kill process {} of group {group}", identity.pid)]
    System {
        group: GroupId,
        identity: Identity,
        source: io::Error,
    },
    #[error("could not kill group {group}")]
    Group { group: GroupId, source: io::Error },
}
