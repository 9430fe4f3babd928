//! Requests and answers. Every answer of the daemon is complete: the client needs no second question
//! to print what `systemctl` would print.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What a client may ask. One request per connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case")]
pub enum Request {
    /// Is the daemon there, and which version is it?
    Ping,
    /// Queue jobs for `units`; the answer comes when all are finished, or at once if `no_block`.
    Job {
        verb: JobVerb,
        units: Vec<String>,
        no_block: bool,
    },
    /// Send a signal to a unit's processes.
    Kill {
        units: Vec<String>,
        signal: String,
        whom: Whom,
    },
    /// Loaded units that match any of `patterns` (all loaded units if empty).
    List { patterns: Vec<String> },
    /// The named units, loaded if need be; unknown ones come back as `not-found`.
    Inspect { units: Vec<String> },
    /// Read all unit files again.
    DaemonReload,
    /// Forget failures of `units`, or of all units if empty.
    ResetFailed { units: Vec<String> },
    /// Stop all units in order, then exit.
    Shutdown,
}

/// What to do with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobVerb {
    Start,
    Stop,
    Restart,
    /// Restart if running, do nothing otherwise.
    TryRestart,
    Reload,
    ReloadOrRestart,
}

/// Which processes of a unit a signal goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Whom {
    Main,
    Control,
    All,
}

/// What the daemon answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    Pong {
        version: String,
        pid: u32,
    },
    /// One outcome for each unit asked for, in that order.
    Jobs {
        outcomes: Vec<JobOutcome>,
        warnings: Vec<String>,
    },
    Units {
        units: Vec<UnitStatus>,
    },
    Done {
        warnings: Vec<String>,
    },
    Failed {
        error: RequestError,
    },
}

/// How one job ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobOutcome {
    pub unit: String,
    pub result: JobResult,
    /// Why, for people, when the result is not `done`.
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobResult {
    /// Queued with `no_block`; how it ends is not known yet.
    Queued,
    Done,
    Failed,
    Timeout,
    /// A unit it needs did not start.
    Dependency,
    /// Another job took its place.
    Canceled,
    /// Nothing to do: for example a reload of a unit that is not running.
    Skipped,
}

/// Why a request was refused as a whole: nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RequestError {
    #[error("unit {unit} not found")]
    NotFound { unit: String },
    #[error("unit {unit} is masked")]
    Masked { unit: String },
    #[error("unit {unit} has a bad unit file: {problem}")]
    BadUnit { unit: String, problem: String },
    #[error("unit {unit} cannot be {verb}: {reason}")]
    NotPossible {
        unit: String,
        verb: String,
        reason: String,
    },
    /// The units of an ordering cycle, the first repeated at the end.
    #[error("ordering cycle: {}", units.join(" -> "))]
    Cycle { units: Vec<String> },
    #[error("unit {unit} is not running")]
    NotRunning { unit: String },
    #[error("{message}")]
    BadRequest { message: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadState {
    Loaded,
    NotFound,
    BadSetting,
    Error,
    Masked,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ActiveState {
    Active,
    Reloading,
    Inactive,
    Failed,
    Activating,
    Deactivating,
}

/// Why a unit is where it is: systemd's `Result=`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnitResult {
    #[default]
    Success,
    ExitCode,
    Signal,
    Timeout,
    StartLimitHit,
    Resources,
    Protocol,
    /// A `Condition…=` said no: not a failure.
    ExecCondition,
    /// An `Assert…=` said no.
    Assert,
    Dependency,
    Watchdog,
    OomKill,
}

/// Everything a client may want to print about one unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnitStatus {
    pub name: String,
    pub description: String,
    pub load_state: LoadState,
    pub load_error: Option<String>,
    /// Directives we do not support, and other remarks, each with file and line.
    pub load_warnings: Vec<String>,
    pub fragment_path: Option<Utf8PathBuf>,
    pub drop_in_paths: Vec<Utf8PathBuf>,
    /// `enabled`, `disabled`, `static`, `masked`, …
    pub unit_file_state: String,
    pub active_state: ActiveState,
    /// `running`, `exited`, `dead`, `start-pre`, `auto-restart`, …
    pub sub_state: String,
    pub result: UnitResult,
    /// When the unit came into its present active state.
    pub state_changed: Option<Timestamp>,
    pub active_entered: Option<Timestamp>,
    pub inactive_entered: Option<Timestamp>,
    /// Set when a condition kept the unit from starting: which one.
    pub condition_failed: Option<String>,
    pub invocation_id: Option<String>,
    pub main_pid: Option<u32>,
    /// How the main process ended, if it has: `exited`, `killed`, and the code or signal number.
    pub main_exit: Option<ExitStatus>,
    pub control_pid: Option<u32>,
    pub status_text: Option<String>,
    pub restarts: u32,
    pub processes: Vec<ProcessLine>,
    pub memory_bytes: Option<u64>,
    pub cpu_nanoseconds: Option<u64>,
    /// Limits of the unit file that this system does not enforce, with the reason.
    pub limits_not_enforced: Vec<String>,
    pub log_path: Option<Utf8PathBuf>,
    /// For timers: when it fires next and fired last, and the unit that it starts.
    pub timer: Option<TimerStatus>,
    pub triggered_by: Vec<String>,
    /// The pending job, as systemd's `Job=` would show it.
    pub job: Option<String>,
    /// Dependencies by systemd's property name: `Requires`, `WantedBy`, `After`, …
    pub dependencies: BTreeMap<String, Vec<String>>,
    /// Every property for `show`, in systemd's spelling; includes the ones above.
    pub properties: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitStatus {
    /// `exited`, `killed` or `unknown`.
    pub kind: String,
    pub status: i32,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLine {
    pub pid: u32,
    pub command: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimerStatus {
    pub unit: String,
    pub next: Option<Timestamp>,
    pub last: Option<Timestamp>,
}

impl LoadState {
    /// systemd's spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Loaded => "loaded",
            Self::NotFound => "not-found",
            Self::BadSetting => "bad-setting",
            Self::Error => "error",
            Self::Masked => "masked",
        }
    }
}

impl ActiveState {
    /// systemd's spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Reloading => "reloading",
            Self::Inactive => "inactive",
            Self::Failed => "failed",
            Self::Activating => "activating",
            Self::Deactivating => "deactivating",
        }
    }
}

impl UnitResult {
    /// systemd's spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::ExitCode => "exit-code",
            Self::Signal => "signal",
            Self::Timeout => "timeout",
            Self::StartLimitHit => "start-limit-hit",
            Self::Resources => "resources",
            Self::Protocol => "protocol",
            Self::ExecCondition => "exec-condition",
            Self::Assert => "assert",
            Self::Dependency => "dependency",
            Self::Watchdog => "watchdog",
            Self::OomKill => "oom-kill",
        }
    }
}
