//! What a machine counts while it works: processor time, memory in use, processes, traffic. A count that a system
//! does not keep is absent, never zero.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;

use std::time::Duration;

#[cfg(target_os = "linux")]
pub(super) use linux::read;
#[cfg(windows)]
pub(super) use windows::read;

/// What a machine counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Time that processors worked since the boot, all of them together.
    pub processor_time: Option<Duration>,
    pub memory: Option<MemoryInUse>,
    /// What runs now, counted as the limit counts it: threads on Linux, processes on Windows.
    pub processes: Option<u64>,
    /// How many there may be.
    pub most_processes: Option<u64>,
    /// Of every link to others.
    pub traffic: Vec<Traffic>,
}

/// The memory that is in use, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryInUse {
    /// Caches included.
    pub usage: u64,
    /// Without what the system can drop at once.
    pub working_set: u64,
    /// What belongs to processes and to no file.
    pub resident: Option<u64>,
    pub page_faults: Option<u64>,
    /// Those that had to wait for a disk.
    pub major_page_faults: Option<u64>,
}

/// What went through a link since it came up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traffic {
    pub link: String,
    pub received_bytes: u64,
    pub receive_errors: u64,
    pub sent_bytes: u64,
    pub send_errors: u64,
}
