//! From a description to a running program: fork, arrange, execute.
//!
//! Invariant: between fork and exec the child only makes system calls on memory that was prepared
//! before the fork. It allocates nothing and takes no lock, because another thread may have held one.
#![expect(unsafe_code, reason = "fork and exec have no safe form")]

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

use nix::libc::{self, c_char, c_int};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::account::Account;
use super::orphans;
use super::rlimits::PreparedLimit;

/// Where in the child it went wrong. Sent to the parent as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Session,
    Lifetime,
    Nice,
    Limits,
    Cgroup,
    Streams,
    User,
    Directory,
    Exec,
}

const STEPS: [Step; 9] = [
    Step::Session,
    Step::Lifetime,
    Step::Nice,
    Step::Limits,
    Step::Cgroup,
    Step::Streams,
    Step::User,
    Step::Directory,
    Step::Exec,
];

/// Everything the child needs, in the form that system calls take.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) program: CString,
    pub(super) argv: Vec<CString>,
    pub(super) envp: Vec<CString>,
    pub(super) directory: Option<CString>,
    /// For descriptors 0, 1 and 2; `None` leaves ours. None of them is below 3.
    pub(super) streams: [Option<OwnedFd>; 3],
    pub(super) account: Option<Account>,
    pub(super) dies_with_owner: bool,
    pub(super) limits: Vec<PreparedLimit>,
    /// Open `cgroup.procs` files to join.
    pub(super) cgroups: Vec<File>,
    pub(super) umask: Option<u32>,
    pub(super) nice: Option<i32>,
    /// What to write into `/proc/self/oom_score_adj`.
    pub(super) out_of_memory_score: Option<CString>,
}

/// Why the child did not become the program.
#[derive(Debug)]
pub(super) enum LaunchError {
    /// In the child, which is gone already.
    Child { step: Step, source: io::Error },
    /// In us, before there was a child.
    Fork(io::Error),
}

/// Forks, and returns the child's pid once it runs the program.
pub(super) fn launch(prepared: Prepared) -> Result<u32, LaunchError> {
    let (mut reader, writer) = io::pipe().map_err(LaunchError::Fork)?;
    let writer = above_standard(writer.into()).map_err(LaunchError::Fork)?;
    let (answer, forked) = channel();
    let job: Job = Box::new(move || {
        let result = fork(&prepared, writer.as_raw_fd());
        // Our copy of the writing end must be closed before anybody reads to the end.
        drop((prepared, writer));
        // The receiver lives: the caller waits for exactly this.
        let _ = answer.send(result);
    });
    let gone = || LaunchError::Fork(io::Error::other("the thread that forks has ended"));
    forker().send(job).map_err(|_| gone())?;
    let pid = forked
        .recv()
        .map_err(|_| gone())?
        .map_err(LaunchError::Fork)?;

    let mut report = [0_u8; 8];
    match reader.read_exact(&mut report) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(pid),
        Err(error) => {
            orphans::abandon(pid);
            return Err(LaunchError::Fork(error));
        }
        Ok(()) => {}
    }
    // It reports right before it exits, so this wait is short.
    if let Some(child) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // An error means that it is gone, which is what was waited for.
        let _ = waitid(WaitId::Pid(child), WaitIdOptions::EXITED);
    }
    orphans::disown(pid);
    let [a, b, c, d, errno @ ..] = report;
    let index = u32::from_ne_bytes([a, b, c, d]) as usize;
    Err(LaunchError::Child {
        step: STEPS.get(index).copied().unwrap_or(Step::Exec),
        source: io::Error::from_raw_os_error(i32::from_ne_bytes(errno)),
    })
}

/// Moves a descriptor out of the way of the three that the child overwrites.
pub(super) fn above_standard(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() > 2 {
        return Ok(fd);
    }
    // SAFETY: the descriptor is open, and the new one belongs to nobody else.
    unsafe {
        let moved = libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3);
        if moved < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(moved))
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// The one thread that forks. The kernel sends a parent-death signal when the *thread* that forked
/// ends, so that thread must live as long as we do.
fn forker() -> &'static Sender<Job> {
    static FORKER: OnceLock<Sender<Job>> = OnceLock::new();
    FORKER.get_or_init(|| {
        let (sender, jobs) = channel::<Job>();
        let thread = std::thread::Builder::new().name("transom-forker".to_owned());
        // If the thread cannot start, `jobs` is dropped and every later send says so.
        let _ = thread.spawn(move || {
            for job in jobs {
                job();
            }
        });
        sender
    })
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings
        .iter()
        .map(|string| string.as_ptr())
        .chain([std::ptr::null()])
        .collect()
}

fn fork(prepared: &Prepared, report: RawFd) -> io::Result<u32> {
    let argv = pointers(&prepared.argv);
    let envp = pointers(&prepared.envp);
    // Held across the fork, so that nobody takes the newborn child for an orphan.
    let mut owned = orphans::owned();
    // SAFETY: the child runs `become_program` only, which keeps to async-signal-safe calls. Signals
    // are blocked meanwhile: a handler of ours must not run in the child.
    unsafe {
        let parent = libc::getpid();
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let pid = libc::fork();
        if pid == 0 {
            become_program(prepared, argv.as_ptr(), envp.as_ptr(), report, parent);
        }
        let error = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        let pid = u32::try_from(pid).map_err(|_| error)?;
        owned.insert(pid);
        Ok(pid)
    }
}

/// The child's side. Never returns: it executes the program, or reports and exits.
unsafe fn become_program(
    prepared: &Prepared,
    argv: *const *const c_char,
    envp: *const *const c_char,
    report: RawFd,
    parent: libc::pid_t,
) -> ! {
    // SAFETY: called right after fork with memory that outlives the call; see the file's invariant.
    unsafe {
        let step = arrange(prepared, parent).err().unwrap_or_else(|| {
            reset_signals();
            libc::execve(prepared.program.as_ptr(), argv, envp);
            Step::Exec
        });
        let errno = *libc::__errno_location();
        let mut message = [0_u8; 8];
        message[..4].copy_from_slice(&(step as u32).to_ne_bytes());
        message[4..].copy_from_slice(&errno.to_ne_bytes());
        libc::write(report, message.as_ptr().cast(), message.len());
        libc::_exit(127);
    }
}

fn check(result: c_int, step: Step) -> Result<(), Step> {
    if result < 0 { Err(step) } else { Ok(()) }
}

unsafe fn arrange(prepared: &Prepared, parent: libc::pid_t) -> Result<(), Step> {
    // SAFETY: plain system calls on prepared memory.
    unsafe {
        check(libc::setsid(), Step::Session)?;
        if let Some(mask) = prepared.umask {
            libc::umask(mask);
        }
        if let Some(nice) = prepared.nice {
            check(libc::setpriority(libc::PRIO_PROCESS, 0, nice), Step::Nice)?;
        }
        if let Some(score) = &prepared.out_of_memory_score {
            write_out_of_memory_score(score);
        }
        for cgroup in &prepared.cgroups {
            // "0" stands for the writer itself.
            let written = libc::write(cgroup.as_raw_fd(), c"0".as_ptr().cast(), 1);
            check(if written == 1 { 0 } else { -1 }, Step::Cgroup)?;
        }
        for limit in &prepared.limits {
            let result = libc::setrlimit(limit.resource, &raw const limit.value);
            check(result, Step::Limits)?;
        }
        for (target, stream) in (0..).zip(&prepared.streams) {
            if let Some(stream) = stream {
                check(libc::dup2(stream.as_raw_fd(), target), Step::Streams)?;
            }
        }
        // Descriptors that somebody opened without close-on-exec are not for the program. Kernels
        // before 5.11 cannot do this, and then such descriptors stay: that is no reason to fail.
        libc::syscall(
            libc::SYS_close_range,
            3,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        );
        if let Some(account) = &prepared.account {
            let count = account.groups.len();
            let groups = account.groups.as_ptr();
            check(libc::setgroups(count, groups), Step::User)?;
            check(libc::setgid(account.group), Step::User)?;
            if let Some(user) = account.user {
                check(libc::setuid(user), Step::User)?;
            }
        }
        // After the change of user, which would clear it.
        if prepared.dies_with_owner {
            let result = libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
            check(result, Step::Lifetime)?;
            if libc::getppid() != parent {
                // The owner died before the signal was armed.
                libc::_exit(127);
            }
        }
        if let Some(directory) = &prepared.directory {
            check(libc::chdir(directory.as_ptr()), Step::Directory)?;
        }
    }
    Ok(())
}

/// A kernel that refuses is no reason to fail: the parent reads what holds, and reports it.
unsafe fn write_out_of_memory_score(score: &CString) {
    // SAFETY: plain system calls on prepared memory.
    unsafe {
        let file = libc::open(
            c"/proc/self/oom_score_adj".as_ptr(),
            libc::O_WRONLY | libc::O_CLOEXEC,
        );
        if file >= 0 {
            libc::write(file, score.as_ptr().cast(), score.count_bytes());
            libc::close(file);
        }
    }
}

/// An ignored signal stays ignored across exec, and Rust ignores SIGPIPE.
unsafe fn reset_signals() {
    // SAFETY: both calls are async-signal-safe; numbers that cannot be set are refused harmlessly.
    unsafe {
        // All zeroes is "default action" in the kernel's layout, which is no larger than this. The
        // C library's function would refuse the signals that it keeps for itself.
        let default = [0_u64; 4];
        let none = std::ptr::null::<u64>();
        for number in 1..=64 {
            let action = default.as_ptr();
            libc::syscall(
                libc::SYS_rt_sigaction,
                number,
                action,
                none,
                size_of::<u64>(),
            );
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}
