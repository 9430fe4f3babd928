//! Locks by `LockFileEx` on one byte far behind the content: locks on Windows are mandatory, and the
//! content must stay readable for those who want to know the holder.
#![expect(unsafe_code, reason = "the standard library locks all bytes of a file")]

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsRawHandle;

use camino::Utf8Path;
use windows::Win32::Foundation::{ERROR_IO_PENDING, ERROR_LOCK_VIOLATION, HANDLE};
use windows::Win32::Storage::FileSystem::{
    FILE_SHARE_READ, FILE_SHARE_WRITE, LOCKFILE_EXCLUSIVE_LOCK, LOCKFILE_FAIL_IMMEDIATELY,
    LockFileEx,
};
use windows::Win32::System::IO::{OVERLAPPED, OVERLAPPED_0, OVERLAPPED_0_0};

use super::super::steps::LockGuard;
use super::super::windows::{literal, translate};

#[derive(Debug)]
struct ByteLock {
    /// Closing it releases the lock.
    _file: File,
}

impl LockGuard for ByteLock {}

pub(in super::super) fn try_lock(path: &Utf8Path) -> io::Result<Option<Box<dyn LockGuard>>> {
    // Without sharing deletion nobody can remove or rename the file while it is open.
    let mut file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .share_mode(FILE_SHARE_READ.0 | FILE_SHARE_WRITE.0)
        .open(literal(path)?)
        .map_err(translate)?;
    let mut far_behind = OVERLAPPED {
        Anonymous: OVERLAPPED_0 {
            Anonymous: OVERLAPPED_0_0 {
                Offset: 0,
                OffsetHigh: 0x4000_0000,
            },
        },
        ..OVERLAPPED::default()
    };
    // SAFETY: the handle is open while `file` lives, and the call fails at once instead of keeping
    // the pointer to `far_behind`.
    let locked = unsafe {
        LockFileEx(
            HANDLE(file.as_raw_handle()),
            LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY,
            None,
            1,
            0,
            &raw mut far_behind,
        )
    };
    match locked {
        Ok(()) => {}
        Err(error)
            if error.code() == ERROR_LOCK_VIOLATION.to_hresult()
                || error.code() == ERROR_IO_PENDING.to_hresult() =>
        {
            return Ok(None);
        }
        Err(error) => return Err(super::super::windows::system_error(&error)),
    }
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(super::content().as_bytes())?;
    Ok(Some(Box::new(ByteLock { _file: file })))
}
