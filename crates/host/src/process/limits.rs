//! Limits that a program is asked to run under, and an honest account of which of them hold.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A soft limit, which the program may raise, up to the hard one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    pub soft: u64,
    pub hard: u64,
}

impl Bound {
    pub const UNLIMITED: u64 = u64::MAX;

    pub fn same(limit: u64) -> Self {
        Self {
            soft: limit,
            hard: limit,
        }
    }
}

/// The first three hold for a group as a whole, so all processes spawned into a group should be given
/// the same; the others hold for each process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    pub memory_bytes: Option<u64>,
    /// 100 is one processor's full time.
    pub cpu_percent: Option<u32>,
    pub processes: Option<u32>,
    pub open_files: Option<Bound>,
    pub core_bytes: Option<Bound>,
    pub stack_bytes: Option<Bound>,
    /// Processes of the same user, in any group.
    pub user_processes: Option<Bound>,
    pub file_bytes: Option<Bound>,
    pub cpu_seconds: Option<Bound>,
    pub locked_bytes: Option<Bound>,
    pub address_space_bytes: Option<Bound>,
}

impl Limits {
    /// The limits of each process, as far as they are set.
    pub fn per_process(&self) -> impl Iterator<Item = (LimitKind, Bound)> {
        [
            (LimitKind::OpenFiles, self.open_files),
            (LimitKind::CoreBytes, self.core_bytes),
            (LimitKind::StackBytes, self.stack_bytes),
            (LimitKind::UserProcesses, self.user_processes),
            (LimitKind::FileBytes, self.file_bytes),
            (LimitKind::CpuSeconds, self.cpu_seconds),
            (LimitKind::LockedBytes, self.locked_bytes),
            (LimitKind::AddressSpaceBytes, self.address_space_bytes),
        ]
        .into_iter()
        .filter_map(|(kind, bound)| Some((kind, bound?)))
    }

    /// The limits of the group, as far as they are set.
    pub fn per_group(&self) -> impl Iterator<Item = (LimitKind, u64)> {
        [
            (LimitKind::Memory, self.memory_bytes),
            (LimitKind::Cpu, self.cpu_percent.map(u64::from)),
            (LimitKind::Processes, self.processes.map(u64::from)),
        ]
        .into_iter()
        .filter_map(|(kind, value)| Some((kind, value?)))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitKind {
    Memory,
    Cpu,
    Processes,
    OpenFiles,
    CoreBytes,
    StackBytes,
    UserProcesses,
    FileBytes,
    CpuSeconds,
    LockedBytes,
    AddressSpaceBytes,
    /// Not a limit of the program, but of how long the kernel spares it.
    OutOfMemoryScore,
}

impl fmt::Display for LimitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::Cpu => "processor time",
            Self::Processes => "processes",
            Self::OpenFiles => "open files",
            Self::CoreBytes => "core file size",
            Self::StackBytes => "stack size",
            Self::UserProcesses => "processes of the user",
            Self::FileBytes => "file size",
            Self::CpuSeconds => "processor seconds",
            Self::LockedBytes => "locked memory",
            Self::AddressSpaceBytes => "address space",
            Self::OutOfMemoryScore => "being ended when memory is short",
        })
    }
}

/// What became of each limit that was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitReport {
    pub enforced: Vec<LimitKind>,
    /// Enforced too, at less than was asked.
    pub clamped: Vec<Clamped>,
    pub not_enforced: Vec<NotEnforced>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clamped {
    pub limit: LimitKind,
    pub asked: Bound,
    pub given: Bound,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotEnforced {
    pub limit: LimitKind,
    pub reason: String,
}

impl LimitReport {
    pub(super) fn refuse(&mut self, limit: LimitKind, reason: impl Into<String>) {
        self.not_enforced.push(NotEnforced {
            limit,
            reason: reason.into(),
        });
    }
}

impl fmt::Display for NotEnforced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "limit on {} is not enforced: {}",
            self.limit, self.reason
        )
    }
}

impl fmt::Display for Clamped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "limit on {} was lowered from {} to {}, the most this system allows us",
            self.limit, self.asked.hard, self.given.hard
        )
    }
}
