//! The system's table of processes, read in one call. Job accounting and `GetProcessTimes` are not
//! to be trusted under Wine; this table is, on both.
#![expect(unsafe_code, reason = "the table is untyped memory")]

use std::io;
use std::mem::offset_of;
use std::time::Duration;

use windows::Wdk::System::SystemInformation::{NtQuerySystemInformation, SystemProcessInformation};
use windows::Win32::Foundation::STATUS_INFO_LENGTH_MISMATCH;

/// The largest table that is believed: 64 MiB.
const LARGEST: usize = 64 << 20;

/// The fixed part of each entry, up to what is of use here. Names by their documented meaning.
#[repr(C)]
struct Raw {
    next_entry: u32,
    threads: u32,
    reserved: [u64; 3],
    created: i64,
    user_time: i64,
    kernel_time: i64,
    name: [usize; 2],
    priority: i32,
    pid: usize,
    parent: usize,
    handles: u32,
    session: u32,
    key: usize,
    peak_virtual: usize,
    virtual_size: usize,
    faults: u32,
    peak_working_set: usize,
    working_set: usize,
}

/// One process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) pid: u32,
    pub(super) cpu: Duration,
    pub(super) memory_bytes: u64,
}

pub(super) fn read() -> io::Result<Vec<Entry>> {
    let mut size = 256 << 10;
    loop {
        let mut buffer = vec![0_u8; size];
        let mut needed = 0;
        // SAFETY: the buffer is as large as said.
        let status = unsafe {
            NtQuerySystemInformation(
                SystemProcessInformation,
                buffer.as_mut_ptr().cast(),
                u32::try_from(size).map_err(io::Error::other)?,
                &raw mut needed,
            )
        };
        if status == STATUS_INFO_LENGTH_MISMATCH && size < LARGEST {
            size *= 2;
            continue;
        }
        status.ok()?;
        return Ok(parse(&buffer));
    }
}

/// Entries may start at any address (Wine does not align them), so each is copied out first.
fn parse(table: &[u8]) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut offset = 0;
    while let Some(bytes) = table.get(offset..offset + size_of::<Raw>()) {
        // SAFETY: `bytes` is as long as `Raw`, which is made of plain numbers.
        let raw = unsafe { bytes.as_ptr().cast::<Raw>().read_unaligned() };
        let hundreds_of_nanoseconds = raw.user_time.saturating_add(raw.kernel_time);
        entries.push(Entry {
            pid: u32::try_from(raw.pid).unwrap_or_default(),
            cpu: Duration::from_nanos(
                u64::try_from(hundreds_of_nanoseconds)
                    .unwrap_or_default()
                    .saturating_mul(100),
            ),
            memory_bytes: raw.working_set as u64,
        });
        if raw.next_entry == 0 {
            break;
        }
        offset += raw.next_entry as usize;
    }
    entries
}

const _: () = assert!(offset_of!(Raw, created) == 32 && offset_of!(Raw, pid) == 80);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_in_the_table_and_uses_memory() {
        let me = std::process::id();
        let entries = read().unwrap();
        let entry = entries.iter().find(|entry| entry.pid == me).unwrap();
        assert!(entry.memory_bytes > 100_000, "{entry:?}");
    }

    #[test]
    fn a_table_that_ends_early_is_read_as_far_as_it_goes() {
        assert_eq!(parse(&[]), []);
        assert_eq!(parse(&[0; 16]), []);
    }
}
