//! What goes into the engine and what comes out. Both are plain values, so that a scenario is a list
//! and a test compares lists.

use serde::{Deserialize, Serialize};
use transom_host::process::Exit;

use super::job::JobId;
use crate::control::protocol::{JobResult, Whom};
use crate::unit::{ExecCommand, Signal, UnitName};

/// Names one command that a keeper was told to run. Never reused while the machine is up, so a command
/// told twice runs once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub u64);

/// Which `Exec…=` line a command comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    Condition,
    StartPre,
    Main,
    StartPost,
    Reload,
    Stop,
    StopPost,
}

/// What a keeper reports of its unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum KeeperEvent {
    /// The program of `run` is executing.
    Started {
        run: RunId,
        pid: u32,
        limits_not_enforced: Vec<String>,
    },
    /// The program of `run` could not be executed.
    SpawnFailed {
        run: RunId,
        error: String,
    },
    Exited {
        run: RunId,
        exit: Exit,
    },
    /// No process of the unit is left.
    Empty,
    /// The service spoke on its notify socket.
    Notify(Notification),
    /// The keeper died, or could not be started; what it held has been killed.
    Lost {
        reason: String,
    },
}

/// The parts of an `sd_notify` message that mean something here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notification {
    pub ready: bool,
    pub reloading: bool,
    pub stopping: bool,
    pub watchdog: bool,
    pub status: Option<String>,
    pub extend_timeout_micros: Option<u64>,
}

/// What the conditions of a unit came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Go,
    /// A `Condition…=` said no; the text is the condition as written.
    Skip(String),
    /// An `Assert…=` said no.
    Refuse(String),
}

/// What the daemon has to do, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Evaluate conditions and asserts, then call `checked`.
    Check { unit: UnitName },
    /// Have a keeper for `unit`: start one unless it is there.
    Open { unit: UnitName, invocation: String },
    Run {
        unit: UnitName,
        run: RunId,
        role: Role,
        command: ExecCommand,
    },
    /// Signal processes, and report `Empty` as soon as none is left (at once if none is there).
    Signal {
        unit: UnitName,
        signal: Signal,
        whom: Whom,
    },
    /// The unit needs no keeper any more.
    Close { unit: UnitName },
    JobFinished {
        job: JobId,
        unit: UnitName,
        result: JobResult,
        reason: Option<String>,
    },
    /// Remember on disk that a persistent timer fired.
    Stamp { unit: UnitName },
    /// A line for the unit's log.
    Note { unit: UnitName, message: String },
}

impl Notification {
    /// Reads the lines of one message. Lines that mean nothing here are skipped, as `sd_notify` asks.
    pub fn parse(text: &str) -> Self {
        let mut notification = Self::default();
        for line in text.lines() {
            match line.split_once('=') {
                Some(("READY", "1")) => notification.ready = true,
                Some(("RELOADING", "1")) => notification.reloading = true,
                Some(("STOPPING", "1")) => notification.stopping = true,
                Some(("WATCHDOG", "1")) => notification.watchdog = true,
                Some(("STATUS", status)) => notification.status = Some(status.to_owned()),
                Some(("EXTEND_TIMEOUT_USEC", micros)) => {
                    notification.extend_timeout_micros = micros.parse().ok();
                }
                _ => {}
            }
        }
        notification
    }
}
