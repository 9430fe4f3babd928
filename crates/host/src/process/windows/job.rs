//! Job objects: the group itself. The system keeps every descendant in the job, whatever it does.
#![expect(unsafe_code, reason = "Win32 calls")]

use std::ffi::c_void;
use std::io;
use std::mem::offset_of;
use std::os::windows::io::OwnedHandle;
use std::thread::available_parallelism;
use std::time::Duration;

use windows::Win32::Foundation::{
    ERROR_ALREADY_EXISTS, ERROR_FILE_NOT_FOUND, ERROR_MORE_DATA, GetLastError,
};
use windows::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_CPU_RATE_CONTROL_ENABLE,
    JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP, JOB_OBJECT_LIMIT_ACTIVE_PROCESS,
    JOB_OBJECT_LIMIT_JOB_MEMORY, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_BASIC_ACCOUNTING_INFORMATION, JOBOBJECT_BASIC_PROCESS_ID_LIST,
    JOBOBJECT_CPU_RATE_CONTROL_INFORMATION, JOBOBJECT_EXTENDED_LIMIT_INFORMATION,
    JOBOBJECTINFOCLASS, JobObjectBasicAccountingInformation, JobObjectBasicProcessIdList,
    JobObjectCpuRateControlInformation, JobObjectExtendedLimitInformation, OpenJobObjectW,
    QueryInformationJobObject, SetInformationJobObject, TerminateJobObject,
};
use windows::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};
use windows::core::{HSTRING, s, w};

use super::super::{GroupId, Lifetime, LimitKind, LimitReport, Limits};
use super::handle::{KILLED, ProcessHandle, own, raw};

/// The rights to assign, set attributes, query and terminate, as the Windows headers number them.
const JOB_ACCESS: u32 = 0x1 | 0x2 | 0x4 | 0x8;

#[derive(Debug)]
pub(super) struct Job(OwnedHandle);

/// Whether a job was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    New,
    Old,
}

fn name(group: &GroupId) -> HSTRING {
    HSTRING::from(format!(r"Local\transom-{group}"))
}

impl Job {
    /// The job of `group`, made if it is not there.
    pub(super) fn create(group: &GroupId) -> io::Result<(Self, Age)> {
        // SAFETY: the name outlives the call; the handle is ours; the last error is read at once.
        unsafe {
            let handle = CreateJobObjectW(None, &name(group))?;
            let age = match GetLastError() {
                ERROR_ALREADY_EXISTS => Age::Old,
                _ => Age::New,
            };
            Ok((Self(own(handle)), age))
        }
    }

    /// The job of `group`; `None`: nobody holds it any more.
    pub(super) fn open(group: &GroupId) -> io::Result<Option<Self>> {
        // SAFETY: as in `create`.
        let opened = unsafe { OpenJobObjectW(JOB_ACCESS, false, &name(group)) };
        match opened {
            // SAFETY: just opened.
            Ok(handle) => Ok(Some(Self(unsafe { own(handle) }))),
            Err(error) if error.code() == ERROR_FILE_NOT_FOUND.to_hresult() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn handle(&self) -> &OwnedHandle {
        &self.0
    }

    pub(super) fn assign(&self, process: &ProcessHandle) -> io::Result<()> {
        // SAFETY: both handles are open.
        unsafe { AssignProcessToJobObject(raw(&self.0), process.raw())? };
        Ok(())
    }

    pub(super) fn terminate(&self) -> io::Result<()> {
        // SAFETY: the handle is open.
        unsafe { TerminateJobObject(raw(&self.0), KILLED)? };
        Ok(())
    }

    /// The numbers of all processes in the job.
    pub(super) fn pids(&self) -> io::Result<Vec<u32>> {
        let header = offset_of!(JOBOBJECT_BASIC_PROCESS_ID_LIST, ProcessIdList);
        let mut room = 64;
        loop {
            let mut buffer = vec![0_usize; header.div_ceil(size_of::<usize>()) + room];
            let size = u32::try_from(size_of_val(buffer.as_slice())).map_err(io::Error::other)?;
            // SAFETY: the buffer is as large as said and aligned for the structure.
            let result = unsafe {
                QueryInformationJobObject(
                    Some(raw(&self.0)),
                    JobObjectBasicProcessIdList,
                    buffer.as_mut_ptr().cast(),
                    size,
                    None,
                )
            };
            match result {
                Err(error) if error.code() == ERROR_MORE_DATA.to_hresult() => room *= 2,
                Err(error) => return Err(error.into()),
                Ok(()) => {
                    // SAFETY: filled by the system; the count says how many entries follow.
                    let count = unsafe {
                        let list = buffer.as_ptr().cast::<JOBOBJECT_BASIC_PROCESS_ID_LIST>();
                        (*list).NumberOfProcessIdsInList as usize
                    };
                    let ids = &buffer[header / size_of::<usize>()..];
                    return Ok(ids
                        .iter()
                        .take(count)
                        .filter_map(|pid| u32::try_from(*pid).ok())
                        .collect());
                }
            }
        }
    }

    /// The processor time of all that is or was in the job; `None` where the system does not keep that account.
    pub(super) fn processor_time(&self) -> Option<Duration> {
        if is_wine() {
            return None;
        }
        let mut account = JOBOBJECT_BASIC_ACCOUNTING_INFORMATION::default();
        let size = u32::try_from(size_of_val(&account)).ok()?;
        // SAFETY: the structure belongs to the class and has the size that is named.
        unsafe {
            QueryInformationJobObject(
                Some(raw(&self.0)),
                JobObjectBasicAccountingInformation,
                (&raw mut account).cast(),
                size,
                None,
            )
        }
        .ok()?;
        let hundreds = account.TotalUserTime.checked_add(account.TotalKernelTime)?;
        let nanoseconds = u64::try_from(hundreds).ok()?.checked_mul(100)?;
        Some(Duration::from_nanos(nanoseconds))
    }

    /// Arranges the lifetime and the limits. A job that has them keeps them, unless there are others.
    pub(super) fn arrange(
        &self,
        age: Age,
        lifetime: Lifetime,
        limits: &Limits,
    ) -> io::Result<LimitReport> {
        let mut report = LimitReport::default();
        let mut extended = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        let basic = &mut extended.BasicLimitInformation;
        if lifetime == Lifetime::WithOwner {
            basic.LimitFlags |= JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
        }
        if let Some(count) = limits.processes {
            basic.LimitFlags |= JOB_OBJECT_LIMIT_ACTIVE_PROCESS;
            basic.ActiveProcessLimit = count;
        }
        if let Some(bytes) = limits.memory_bytes {
            basic.LimitFlags |= JOB_OBJECT_LIMIT_JOB_MEMORY;
            extended.JobMemoryLimit = usize::try_from(bytes).unwrap_or(usize::MAX);
        }
        if age == Age::New || limits.per_group().next().is_some() {
            self.set(JobObjectExtendedLimitInformation, &extended)?;
        }
        let wine = is_wine();
        for (kind, value) in limits.per_group() {
            let refused = match kind {
                _ if wine => Some("Wine accepts job limits and does not enforce them".to_owned()),
                LimitKind::Cpu => self.limit_cpu(value).err().map(|error| error.to_string()),
                _ => None,
            };
            match refused {
                Some(reason) => report.refuse(kind, reason),
                None => report.enforced.push(kind),
            }
        }
        for (kind, _) in limits.per_process() {
            report.refuse(kind, "Windows has no such limit");
        }
        Ok(report)
    }

    fn limit_cpu(&self, percent: u64) -> io::Result<()> {
        let processors = available_parallelism().map_or(1, usize::from) as u64;
        let mut control = JOBOBJECT_CPU_RATE_CONTROL_INFORMATION {
            ControlFlags: JOB_OBJECT_CPU_RATE_CONTROL_ENABLE | JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP,
            ..Default::default()
        };
        // In hundredths of a percent of the whole machine.
        let rate = (percent * 100 / processors).clamp(1, 10_000);
        control.Anonymous.CpuRate = u32::try_from(rate).unwrap_or(10_000);
        self.set(JobObjectCpuRateControlInformation, &control)
    }

    fn set<T>(&self, class: JOBOBJECTINFOCLASS, value: &T) -> io::Result<()> {
        let value: *const c_void = std::ptr::from_ref(value).cast();
        let size = u32::try_from(size_of::<T>()).map_err(io::Error::other)?;
        // SAFETY: `class` and `T` belong together at each call, and the value outlives it.
        unsafe { SetInformationJobObject(raw(&self.0), class, value, size)? };
        Ok(())
    }
}

/// Wine says so itself, by exporting a function that Windows lacks.
pub(super) fn is_wine() -> bool {
    // SAFETY: ntdll is loaded in every process; the address is only compared with null.
    unsafe {
        GetModuleHandleW(w!("ntdll.dll"))
            .is_ok_and(|module| GetProcAddress(module, s!("wine_get_version")).is_some())
    }
}
