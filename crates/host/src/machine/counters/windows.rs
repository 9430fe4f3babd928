//! Counts of a Windows machine, by calls that Wine answers too.
#![expect(unsafe_code, reason = "counts are read through raw Win32 calls")]

use std::time::Duration;

use windows::Win32::Foundation::{ERROR_SUCCESS, FILETIME};
use windows::Win32::NetworkManagement::IpHelper::{GetIfEntry2, MIB_IF_ROW2};
use windows::Win32::System::ProcessStatus::{K32GetPerformanceInfo, PERFORMANCE_INFORMATION};
use windows::Win32::System::Threading::GetSystemTimes;

use super::{Counters, MemoryInUse, Traffic};
use crate::machine::network;

pub(in super::super) fn read() -> Counters {
    let performance = performance();
    Counters {
        processor_time: processor_time(),
        memory: performance.as_ref().map(memory),
        processes: performance.map(|found| u64::from(found.ProcessCount)),
        // Windows has no other limit than its memory.
        most_processes: None,
        traffic: traffic(),
    }
}

/// The time in the kernel has that of idling in it.
fn processor_time() -> Option<Duration> {
    let (mut idle, mut kernel, mut user) = (
        FILETIME::default(),
        FILETIME::default(),
        FILETIME::default(),
    );
    // SAFETY: the three times are ours to fill.
    unsafe {
        GetSystemTimes(
            Some(&raw mut idle),
            Some(&raw mut kernel),
            Some(&raw mut user),
        )
    }
    .ok()?;
    let ticks =
        |time: FILETIME| u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
    let busy = ticks(kernel)
        .checked_add(ticks(user))?
        .checked_sub(ticks(idle))?;
    Some(Duration::from_nanos(busy.checked_mul(100)?))
}

fn performance() -> Option<PERFORMANCE_INFORMATION> {
    let mut found = PERFORMANCE_INFORMATION::default();
    let size = u32::try_from(size_of::<PERFORMANCE_INFORMATION>()).ok()?;
    // SAFETY: the structure has the size that is named.
    let answered = unsafe { K32GetPerformanceInfo(&raw mut found, size) };
    answered.as_bool().then_some(found)
}

fn memory(found: &PERFORMANCE_INFORMATION) -> MemoryInUse {
    let bytes = |pages: usize| (pages as u64).saturating_mul(found.PageSize as u64);
    MemoryInUse {
        usage: bytes(found.CommitTotal),
        working_set: bytes(found.PhysicalTotal.saturating_sub(found.PhysicalAvailable)),
        resident: None,
        page_faults: None,
        major_page_faults: None,
    }
}

/// Only of what has an address list: the system has many more links than anybody would know.
fn traffic() -> Vec<Traffic> {
    let interfaces = network::interfaces().unwrap_or_default();
    let others = interfaces.into_iter().filter(|one| !one.loopback);
    let counted = |interface: super::super::Interface| {
        let mut row = MIB_IF_ROW2 {
            InterfaceIndex: interface.index,
            ..MIB_IF_ROW2::default()
        };
        // SAFETY: the row is ours to fill, and names its interface by index.
        let code = unsafe { GetIfEntry2(&raw mut row) };
        (code == ERROR_SUCCESS).then_some(Traffic {
            link: interface.name,
            received_bytes: row.InOctets,
            receive_errors: row.InErrors,
            sent_bytes: row.OutOctets,
            send_errors: row.OutErrors,
        })
    };
    others.filter_map(counted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_counts() {
        let now = read();
        assert!(now.processor_time.is_some_and(|time| !time.is_zero()));
        assert!(now.memory.is_some_and(|memory| memory.working_set > 0));
        assert!(now.processes.is_some_and(|count| count > 0));
    }
}
