//! Handles of processes, and what can be asked of one. A handle means the same process for ever.
#![expect(unsafe_code, reason = "Win32 calls")]

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::time::Duration;

use windows::Wdk::System::Threading::{NtQueryInformationProcess, ProcessCommandLineInformation};
use windows::Win32::Foundation::{
    DUPLICATE_SAME_ACCESS, DuplicateHandle, ERROR_ACCESS_DENIED, ERROR_INVALID_PARAMETER, FILETIME,
    HANDLE, UNICODE_STRING, WAIT_OBJECT_0, WAIT_TIMEOUT,
};
use windows::Win32::System::Threading::{
    GetCurrentProcess, GetExitCodeProcess, GetProcessTimes, INFINITE, OpenProcess,
    PROCESS_NAME_WIN32, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE, PROCESS_TERMINATE,
    QueryFullProcessImageNameW, TerminateProcess, WaitForSingleObject,
};
use windows::core::PWSTR;

use super::super::{Exit, Identity};

/// The exit code of what we killed, so that we know our own work again.
pub(super) const KILLED: u32 = 0xE000_0009;

#[derive(Debug)]
pub(super) struct ProcessHandle(OwnedHandle);

pub(super) fn raw(handle: &impl AsRawHandle) -> HANDLE {
    HANDLE(handle.as_raw_handle())
}

/// # Safety
/// `handle` is open and belongs to nobody else.
pub(super) unsafe fn own(handle: HANDLE) -> OwnedHandle {
    // SAFETY: promised by the caller.
    unsafe { OwnedHandle::from_raw_handle(handle.0) }
}

impl ProcessHandle {
    pub(super) fn new(handle: OwnedHandle) -> Self {
        Self(handle)
    }

    pub(super) fn raw(&self) -> HANDLE {
        raw(&self.0)
    }

    /// Opens the process that has `pid` now; `None`: there is none.
    pub(super) fn open(pid: u32) -> io::Result<Option<Self>> {
        let access = PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE | PROCESS_TERMINATE;
        // SAFETY: takes numbers only; the handle is ours.
        match unsafe { OpenProcess(access, false, pid) } {
            // SAFETY: just opened.
            Ok(handle) => Ok(Some(Self(unsafe { own(handle) }))),
            Err(error) if error.code() == ERROR_INVALID_PARAMETER.to_hresult() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens `identity` and nothing else that got its number.
    pub(super) fn open_same(identity: &Identity) -> io::Result<Option<Self>> {
        let Some(handle) = Self::open(identity.pid)? else {
            return Ok(None);
        };
        let same = handle.started()? == identity.started && !handle.has_ended(Duration::ZERO)?;
        Ok(same.then_some(handle))
    }

    pub(super) fn started(&self) -> io::Result<u64> {
        let mut times = [FILETIME::default(); 4];
        let [created, exited, kernel, user] = &mut times;
        // SAFETY: the handle is open and all four times outlive the call.
        unsafe { GetProcessTimes(self.raw(), created, exited, kernel, user)? };
        Ok(u64::from(created.dwHighDateTime) << 32 | u64::from(created.dwLowDateTime))
    }

    /// Waits until the process has ended.
    pub(super) fn has_ended(&self, timeout: Duration) -> io::Result<bool> {
        let milliseconds = u32::try_from(timeout.as_millis()).unwrap_or(INFINITE - 1);
        // SAFETY: the handle is open.
        match unsafe { WaitForSingleObject(self.raw(), milliseconds.min(INFINITE - 1)) } {
            WAIT_OBJECT_0 => Ok(true),
            WAIT_TIMEOUT => Ok(false),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// How the process ended, which it must have.
    pub(super) fn exit(&self) -> io::Result<Exit> {
        let mut code = 0;
        // SAFETY: the handle is open and `code` outlives the call.
        unsafe { GetExitCodeProcess(self.raw(), &raw mut code)? };
        Ok(match code {
            KILLED => Exit::Signal(9),
            code => Exit::Code(code.cast_signed()),
        })
    }

    /// Kills the process; `false`: it had ended already.
    pub(super) fn kill(&self) -> io::Result<bool> {
        // SAFETY: the handle is open.
        match unsafe { TerminateProcess(self.raw(), KILLED) } {
            Ok(()) => Ok(true),
            // What has ended denies access.
            Err(error) if error.code() == ERROR_ACCESS_DENIED.to_hresult() => {
                if self.has_ended(Duration::ZERO)? {
                    Ok(false)
                } else {
                    Err(error.into())
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the process a handle of its own to `object`, closed when it ends.
    pub(super) fn give(&self, object: &OwnedHandle) -> io::Result<()> {
        let mut theirs = HANDLE::default();
        // SAFETY: both handles are open; the new one belongs to the other process.
        unsafe {
            DuplicateHandle(
                GetCurrentProcess(),
                raw(object),
                self.raw(),
                &raw mut theirs,
                0,
                false,
                DUPLICATE_SAME_ACCESS,
            )?;
        }
        Ok(())
    }

    /// The path of the executable.
    pub(super) fn image(&self) -> Option<String> {
        let mut buffer = vec![0_u16; 4096];
        let mut length = 4096;
        let text = PWSTR(buffer.as_mut_ptr());
        // SAFETY: the buffer is as long as said.
        unsafe {
            let format = PROCESS_NAME_WIN32;
            QueryFullProcessImageNameW(self.raw(), format, text, &raw mut length).ok()?;
        }
        Some(String::from_utf16_lossy(buffer.get(..length as usize)?))
    }

    /// Whether this is the system's own helper that holds a program's console. It comes and goes
    /// with the program, and nobody started it.
    pub(super) fn is_console_host(&self) -> bool {
        self.image().is_some_and(|path| {
            let path = path.to_lowercase();
            path.ends_with(r"\system32\conhost.exe")
        })
    }

    /// The command line; `None`: this system does not show it.
    pub(super) fn command_line(&self) -> Option<String> {
        let mut buffer = vec![0_u64; 8192];
        let mut used = 0;
        // SAFETY: the buffer is as large as said and aligned for the structure at its start, whose
        // text lies behind it in the same buffer; it is read before the buffer goes.
        unsafe {
            NtQueryInformationProcess(
                self.raw(),
                ProcessCommandLineInformation,
                buffer.as_mut_ptr().cast(),
                u32::try_from(size_of_val(buffer.as_slice())).ok()?,
                &raw mut used,
            )
            .ok()
            .ok()?;
            let text = buffer.as_ptr().cast::<UNICODE_STRING>().read();
            if text.Buffer.is_null() {
                return None;
            }
            let length = usize::from(text.Length) / 2;
            let text = std::slice::from_raw_parts(text.Buffer.0, length);
            Some(String::from_utf16_lossy(text))
        }
    }
}
