//! One process, pinned. A pidfd means the same process for ever, so nothing done through it can hit
//! another process that got the same number.
#![expect(unsafe_code, reason = "PIDFD_GET_INFO has no safe wrapper")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::libc;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};

use super::super::{Exit, Identity, Signal};
use super::procfs;

/// How long the parent of a foreign process gets to read its exit code before we call it unknown.
const FOREIGN_REAP: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct PidFd(OwnedFd);

impl PidFd {
    /// Pins `identity`; `None`: it is gone.
    pub(super) fn open(identity: &Identity) -> io::Result<Option<Self>> {
        let Some(pid) = i32::try_from(identity.pid).ok().and_then(Pid::from_raw) else {
            return Ok(None);
        };
        let fd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(fd) => fd,
            // EINVAL: the number now belongs to a thread that leads no process.
            Err(Errno::SRCH | Errno::INVAL) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // Compared after pinning: what is pinned cannot change any more.
        let same = procfs::identify(identity.pid).as_ref() == Some(identity);
        Ok(same.then_some(Self(fd)))
    }

    /// Sends `signal`; `false`: the process is gone.
    pub(super) fn send(&self, signal: Signal) -> io::Result<bool> {
        self.send_number(signal.number())
    }

    /// As `send`, for signals that are not for callers of this crate.
    pub(super) fn send_number(&self, number: i32) -> io::Result<bool> {
        // SAFETY: the descriptor is open; a null siginfo asks the kernel to fill in the usual one.
        let result = unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.0.as_raw_fd(),
                number,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            )
        };
        if result == 0 {
            return Ok(true);
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() == Some(libc::ESRCH) {
            Ok(false)
        } else {
            Err(error)
        }
    }

    /// Waits until the process has ended (it may be a zombie still).
    pub(super) fn wait_ended(&self, timeout: Duration) -> io::Result<bool> {
        self.poll(PollFlags::IN, timeout)
    }

    fn poll(&self, events: PollFlags, timeout: Duration) -> io::Result<bool> {
        let deadline = Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(left.subsec_nanos()),
            };
            let mut fds = [PollFd::new(&self.0, events)];
            match poll(&mut fds, Some(&left)) {
                Ok(count) => return Ok(count > 0),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// How the process ended, which it must have. Reaps it if it is our child.
    pub(super) fn collect(&self) -> io::Result<Exit> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        loop {
            match waitid(WaitId::PidFd(self.0.as_fd()), options) {
                Ok(Some(status)) => {
                    return Ok(match (status.exit_status(), status.terminating_signal()) {
                        (Some(code), _) => Exit::Code(code),
                        (None, Some(signal)) => Exit::Signal(signal),
                        (None, None) => Exit::Unknown,
                    });
                }
                Err(Errno::INTR) => {}
                Ok(None) | Err(Errno::CHILD) => break,
                Err(error) => return Err(error.into()),
            }
        }
        // Not our child. The kernel tells everyone (since 6.15), but only once its parent has read
        // the code, which is when the descriptor hangs up.
        self.poll(PollFlags::empty(), FOREIGN_REAP)?;
        Ok(self.exit_info().unwrap_or(Exit::Unknown))
    }

    fn exit_info(&self) -> Option<Exit> {
        /// The first published layout of the kernel's `struct pidfd_info`: 64 bytes.
        #[repr(C)]
        #[derive(Default)]
        struct Info {
            mask: u64,
            cgroup: u64,
            pids: [u32; 3],
            credentials: [u32; 8],
            exit_code: i32,
        }
        const INFO_EXIT: u64 = 1 << 3;
        // _IOWR(0xFF, 11, struct pidfd_info)
        const GET_INFO: u64 = (3 << 30) | ((size_of::<Info>() as u64) << 16) | (0xFF << 8) | 0x0B;
        let mut info = Info {
            mask: INFO_EXIT,
            ..Info::default()
        };
        // SAFETY: the request's size field says how much of `info` the kernel may write.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), GET_INFO as _, &raw mut info) };
        if result != 0 || info.mask & INFO_EXIT == 0 {
            return None;
        }
        if libc::WIFSIGNALED(info.exit_code) {
            return Some(Exit::Signal(libc::WTERMSIG(info.exit_code)));
        }
        Some(Exit::Code(libc::WEXITSTATUS(info.exit_code)))
    }
}
