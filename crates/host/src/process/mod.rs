//! Processes that cannot be lost. Every process we start belongs to a group; the group can be found,
//! counted and killed as a whole, even by a later process of ours that did not start it.
//!
//! Invariant: a signal or a kill reaches only the process it was meant for. A pid alone is never
//! enough; `Identity` is.
//!
//! # Platform behavior
//!
//! A group is a session plus a marker variable (and a cgroup, if limits ask for one) on Linux, and a
//! named job object on Windows. On Windows only `Signal::Kill` can be delivered; a graceful stop is
//! the end of the program's standard input, or a service control.

pub mod command_line;
mod errors;
pub mod fake;
mod group;
mod limits;
mod signal;
mod spec;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;

use std::fmt::Debug;
use std::io::{PipeReader, PipeWriter};
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use errors::{AdoptError, KillError, SignalError, SpawnError, WaitError};
pub use group::{GroupId, InvalidGroupId, MARKER};
pub use limits::{Bound, Clamped, LimitKind, LimitReport, Limits, NotEnforced};
#[cfg(target_os = "linux")]
pub use linux::{Native, become_subreaper, raise_open_files, reap_orphans};
pub use signal::{Signal, UnknownSignal};
pub use spec::{GroupSpec, Input, InvalidGroup, InvalidUser, Lifetime, Output, Spawn, UserSpec};
#[cfg(windows)]
pub use windows::{Native, become_subreaper, raise_open_files, reap_orphans};

/// Names one process for ever: pids are reused, a pid with a start time is not.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Identity {
    pub pid: u32,
    /// Linux: clock ticks between boot and start. Windows: the creation time as a `FILETIME`.
    pub started: u64,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// It ended, but the system told its parent only, and that is not us.
    Unknown,
}

impl Exit {
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }
}

/// Whom a signal is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The process that was spawned, or adopted.
    Main,
    /// Every process of the group.
    Tree,
}

/// What became of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivered {
    /// It was sent to this many processes, at least one.
    To(usize),
    /// Nobody is left to receive it.
    Gone,
    /// This system has no such signal: stop the program another way.
    NotSupported,
}

/// One live process of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    pub identity: Identity,
    /// The command line; where the system does not show it, the path or name of the executable.
    pub command: String,
}

/// What a group uses now. `None`: this system does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Resident memory of all live processes; pages they share may be counted more than once.
    pub memory_bytes: Option<u64>,
    /// Processor time of all live processes and of those that they waited for.
    pub cpu: Option<Duration>,
    pub processes: Option<u32>,
}

/// Starts processes and finds them again.
pub trait Processes: Debug + Send + Sync {
    /// Starts `spec`. When this returns `Ok`, the program itself runs: a program that could not be
    /// executed is an error here, not an exit code later.
    fn spawn(&self, spec: &Spawn) -> Result<Box<dyn Process>, SpawnError>;
    /// Takes over a process that an earlier process of ours started in `group`. `None`: it has ended
    /// (its pid may belong to a stranger now).
    fn adopt(
        &self,
        identity: &Identity,
        group: &GroupId,
    ) -> Result<Option<Box<dyn Process>>, AdoptError>;
    /// Names the live process that has `pid` now.
    fn identify(&self, pid: u32) -> Option<Identity>;
    fn current(&self) -> Identity;
    /// Live processes of `group`, for an owner that has nothing but the group's name.
    ///
    /// # Platform behavior
    ///
    /// On Windows the name of a group lives as long as its owner or its main process. What a
    /// detached main process leaves behind after both have ended is not found.
    fn leftovers(&self, group: &GroupId) -> Vec<Identity>;
    /// Kills every process of `group` and returns when none is left.
    fn kill_group(&self, group: &GroupId, timeout: Duration) -> Result<(), KillError>;
    /// Removes what groups without processes left on this machine (empty cgroups), and says how many.
    fn sweep(&self) -> usize;
}

/// One process and its group. Dropping it closes our ends of its pipes that nobody took, and nothing
/// else: the group runs on, until its owner ends if that is its lifetime.
pub trait Process: Debug + Send + Sync {
    fn identity(&self) -> &Identity;
    fn group(&self) -> &GroupId;
    /// Waits until the main process ends; `None`: it did not within `timeout`. Any number of threads
    /// may wait, any number of times: each gets the same answer.
    fn wait(&self, timeout: Option<Duration>) -> Result<Option<Exit>, WaitError>;
    fn signal(&self, signal: Signal, scope: Scope) -> Result<Delivered, SignalError>;
    /// Our end of `Input::Pipe`, once.
    fn take_stdin(&self) -> Option<PipeWriter>;
    /// Our end of `Output::Pipe`, once.
    fn take_stdout(&self) -> Option<PipeReader>;
    /// Our end of `Output::Pipe`, once.
    fn take_stderr(&self) -> Option<PipeReader>;
    /// Every live process of the group, the main one first if it lives.
    fn members(&self) -> Vec<Member>;
    /// Kills every process of the group and returns when none is left.
    fn kill_tree(&self, timeout: Duration) -> Result<(), KillError>;
    fn stats(&self) -> Stats;
    /// What became of the limits that were asked for; empty for an adopted process.
    fn limits(&self) -> &LimitReport;
}
