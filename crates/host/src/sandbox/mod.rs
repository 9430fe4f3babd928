//! Running one program where it can do no harm: it sees the folders it was given and nothing else of
//! ours, it reaches no network, and when it is over nothing of it is left.
//!
//! # Platform behavior
//!
//! On Linux the program has namespaces of its own (mounts, processes, network, messages, host name, and
//! users where we are not root). On Windows it is only held together: a job object ends all of it, and
//! folders cannot be put elsewhere, so a sandbox with mounts is refused.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod plan;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
use linux::run_sandboxed;
#[cfg(windows)]
use windows::run_sandboxed;

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use camino::Utf8PathBuf;

use crate::files::FileError;
use crate::process::{Exit, KillError, SpawnError, WaitError};

/// A program and all that it sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    pub root: Root,
    /// An empty folder where the root is put together. It stays empty for everybody else.
    pub workspace: Utf8PathBuf,
    /// In order: one may lie below another.
    pub mounts: Vec<Mount>,
    /// An absolute path, as the program's own world has it.
    pub program: Utf8PathBuf,
    pub arguments: Vec<String>,
    /// All of it.
    pub environment: BTreeMap<String, String>,
    /// As the program's own world has it.
    pub directory: Utf8PathBuf,
    /// Where its output goes, behind what is there.
    pub log: Utf8PathBuf,
    /// After this it is killed.
    pub time_limit: Duration,
}

/// What the program takes for the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    /// The programs and libraries of this machine, to be read only.
    Machine,
    /// All that is in a folder, to be read only.
    Folder(Utf8PathBuf),
}

/// A folder or a file of ours that the program sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    pub from: Utf8PathBuf,
    /// Absolute. What lies below another mount must exist in it.
    pub to: Utf8PathBuf,
    pub writable: bool,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Exit(Exit),
    /// It was killed, because its time was over.
    TimedOut,
}

/// Why a program could not be run.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("folders cannot be put elsewhere on this system")]
    MountsNotPossible,
    #[error("the sandbox cannot be put together")]
    Files(#[source] FileError),
    #[error("the text `{text}` contains a zero character")]
    Text { text: String },
    #[error("the log `{path}` cannot be opened")]
    Log {
        path: Utf8PathBuf,
        source: io::Error,
    },
    #[error("the system does not let us make namespaces")]
    Namespaces(#[source] io::Error),
    #[error("could not {step} in the sandbox")]
    Step { step: String, source: io::Error },
    #[error("the program cannot be started")]
    Spawn(#[source] SpawnError),
    #[error("the end of the program cannot be waited for")]
    Wait(#[source] io::Error),
    #[error("the end of the program cannot be waited for")]
    WaitProcess(#[source] WaitError),
    #[error("the program cannot be ended")]
    Kill(#[source] KillError),
}

impl Sandbox {
    /// Runs the program and waits for its end, or ends it when its time is over. All its descendants
    /// are gone when this returns; they also go when our process dies.
    pub fn run(&self) -> Result<Ended, SandboxError> {
        run_sandboxed(self)
    }
}
