//! As Windows counts it: the working set.
#![expect(
    unsafe_code,
    reason = "the working set is read and emptied through raw Win32 calls"
)]

use std::io;
use std::mem::size_of;

use windows::Win32::System::ProcessStatus::{K32GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS};
use windows::Win32::System::Threading::{GetCurrentProcess, SetProcessWorkingSetSize};

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

/// Gives back what was needed to start and is not needed to go on. What is used again comes back by itself.
pub fn give_back() -> io::Result<()> {
    // SAFETY: the pseudo handle of this process is always valid; the largest numbers together ask for emptying.
    unsafe { SetProcessWorkingSetSize(GetCurrentProcess(), usize::MAX, usize::MAX) }?;
    Ok(())
}
