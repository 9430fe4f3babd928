//! As Windows counts it: the working set.
#![expect(
    unsafe_code,
    reason = "the working set is read through a raw Win32 call"
)]

use std::io;
use std::mem::size_of;

use windows::Win32::System::ProcessStatus::{K32GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS};
use windows::Win32::System::Threading::GetCurrentProcess;

/// Bytes of this process that are in memory.
pub fn resident() -> io::Result<u64> {
    let size = u32::try_from(size_of::<PROCESS_MEMORY_COUNTERS>()).unwrap_or(u32::MAX);
    let mut counters = PROCESS_MEMORY_COUNTERS {
        cb: size,
        ..PROCESS_MEMORY_COUNTERS::default()
    };
    // SAFETY: the pseudo handle of this process is always valid, and the structure names its own size.
    unsafe { K32GetProcessMemoryInfo(GetCurrentProcess(), &raw mut counters, size) }.ok()?;
    Ok(counters.WorkingSetSize as u64)
}
