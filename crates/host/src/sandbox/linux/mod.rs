//! Namespaces. The program is the first process of its own process namespace and a direct child of ours:
//! when it ends, or dies with us, the kernel ends everything else in there.

mod child;

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::libc;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};

use self::child::clone_child;
use super::plan::{Action, plan};
use super::{Ended, Sandbox, SandboxError};
use crate::files::Native;
use crate::process::Exit;

/// How long a killed namespace may take to be gone. Only a hanging disk makes it long.
const KILL_PATIENCE: Duration = Duration::from_mins(1);
/// Steps of the child that are no action of the plan; sent as numbers behind the plan's.
const STEPS: [&str; 10] = [
    "bind its life to ours",
    "map its users",
    "take the mounts for itself",
    "set up the loopback",
    "set the host name",
    "mount its root",
    "enter its root",
    "connect its output",
    "give up rights",
    "execute the program",
];

/// All that the child needs, in the form that system calls take.
struct Prepared {
    workspace: CString,
    actions: Vec<PreparedAction>,
    maps: Option<Maps>,
    program: CString,
    argv: Vec<CString>,
    envp: Vec<CString>,
    directory: CString,
    log: OwnedFd,
    null: OwnedFd,
}

enum PreparedAction {
    Dir {
        at: CString,
        mode: libc::mode_t,
    },
    File {
        at: CString,
    },
    Symlink {
        target: CString,
        at: CString,
    },
    Memory {
        at: CString,
        options: CString,
    },
    Bind {
        from: CString,
        at: CString,
        writable: bool,
    },
    Processes {
        at: CString,
    },
}

/// The one user and the one group of a user namespace: root inside, us outside.
struct Maps {
    users: CString,
    groups: CString,
}

pub(super) fn run_sandboxed(sandbox: &Sandbox) -> Result<Ended, SandboxError> {
    let actions = plan(sandbox, &Native)?;
    let mut prepared = prepare(sandbox, &actions)?;
    let (mut reader, writer) = io::pipe().map_err(SandboxError::Namespaces)?;
    let writer = OwnedFd::from(writer);
    let child = match clone_child(&prepared, writer.as_raw_fd()) {
        // Not allowed as we are: as root of a user namespace of its own it may be.
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
            prepared.maps = Some(Maps::new()?);
            clone_child(&prepared, writer.as_raw_fd())
        }
        cloned => cloned,
    }
    .map_err(SandboxError::Namespaces)?;
    drop((prepared, writer));
    let child = Child::new(child)?;

    let mut report = [0_u8; 8];
    match reader.read_exact(&mut report) {
        // Closed by the exec: the program runs.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
        Err(error) => {
            child.kill()?;
            return Err(SandboxError::Wait(error));
        }
        Ok(()) => {
            child.wait(KILL_PATIENCE)?;
            return Err(step_error(report, &actions));
        }
    }
    if let Some(exit) = child.wait(sandbox.time_limit)? {
        return Ok(Ended::Exit(exit));
    }
    child.kill()?;
    Ok(Ended::TimedOut)
}

fn step_error(report: [u8; 8], actions: &[Action]) -> SandboxError {
    let [a, b, c, d, errno @ ..] = report;
    let index = u32::from_ne_bytes([a, b, c, d]) as usize;
    let step = match actions.get(index) {
        Some(action) => action.describe(),
        None => STEPS
            .get(index.saturating_sub(actions.len()))
            .copied()
            .unwrap_or("do something unknown")
            .to_owned(),
    };
    SandboxError::Step {
        step,
        source: io::Error::from_raw_os_error(i32::from_ne_bytes(errno)),
    }
}

/// The first process of the sandbox, which must not outlive this value.
struct Child {
    descriptor: OwnedFd,
}

impl Child {
    fn new(pid: i32) -> Result<Self, SandboxError> {
        let pid = Pid::from_raw(pid)
            .ok_or_else(|| SandboxError::Wait(io::ErrorKind::InvalidInput.into()))?;
        // Our child keeps its number until we have waited for it.
        let descriptor = pidfd_open(pid, PidfdFlags::empty())
            .map_err(|error| SandboxError::Wait(error.into()))?;
        Ok(Self { descriptor })
    }

    /// Waits for its end; `None`: it goes on.
    fn wait(&self, limit: Duration) -> Result<Option<Exit>, SandboxError> {
        let fail = |error: Errno| SandboxError::Wait(error.into());
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(left.subsec_nanos()),
            };
            let mut descriptors = [PollFd::new(&self.descriptor, PollFlags::IN)];
            match poll(&mut descriptors, Some(&timeout)) {
                Ok(0) => return Ok(None),
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(fail(error)),
            }
        }
        loop {
            match waitid(
                WaitId::PidFd(self.descriptor.as_fd()),
                WaitIdOptions::EXITED,
            ) {
                Ok(Some(status)) => {
                    return Ok(Some(
                        match (status.exit_status(), status.terminating_signal()) {
                            (Some(code), _) => Exit::Code(code),
                            (None, Some(signal)) => Exit::Signal(signal),
                            (None, None) => Exit::Unknown,
                        },
                    ));
                }
                Ok(None) | Err(Errno::INTR) => {}
                Err(error) => return Err(fail(error)),
            }
        }
    }

    fn kill(&self) -> Result<(), SandboxError> {
        match pidfd_send_signal(&self.descriptor, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => {}
            Err(error) => return Err(SandboxError::Wait(error.into())),
        }
        match self.wait(KILL_PATIENCE)? {
            Some(_) => Ok(()),
            None => Err(SandboxError::Wait(io::ErrorKind::TimedOut.into())),
        }
    }
}

fn text(text: &str) -> Result<CString, SandboxError> {
    CString::new(text).map_err(|_| SandboxError::Text {
        text: text.escape_debug().to_string(),
    })
}

impl Maps {
    fn new() -> Result<Self, SandboxError> {
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        Ok(Self {
            users: text(&format!("0 {} 1", user.as_raw()))?,
            groups: text(&format!("0 {} 1", group.as_raw()))?,
        })
    }
}

fn prepare(sandbox: &Sandbox, actions: &[Action]) -> Result<Prepared, SandboxError> {
    let place = |at: &str| text(&format!("{}/{at}", sandbox.workspace));
    let actions = actions
        .iter()
        .map(|action| {
            Ok(match action {
                Action::Dir { at, mode } => PreparedAction::Dir {
                    at: place(at)?,
                    mode: *mode,
                },
                Action::File { at } => PreparedAction::File { at: place(at)? },
                Action::Symlink { target, at } => PreparedAction::Symlink {
                    target: text(target)?,
                    at: place(at)?,
                },
                Action::Memory { at, mode } => PreparedAction::Memory {
                    at: place(at)?,
                    options: text(&format!("mode={mode:o}"))?,
                },
                Action::Bind { from, at, writable } => PreparedAction::Bind {
                    from: text(from.as_str())?,
                    at: place(at)?,
                    writable: *writable,
                },
                Action::Processes { at } => PreparedAction::Processes { at: place(at)? },
            })
        })
        .collect::<Result<_, SandboxError>>()?;
    let log_error = |source| SandboxError::Log {
        path: sandbox.log.clone(),
        source,
    };
    let log = OpenOptions::new()
        .append(true)
        .create(true)
        .open(&sandbox.log)
        .map_err(log_error)?;
    let null = fs_err::File::open("/dev/null").map_err(log_error)?;
    let mut argv = vec![text(sandbox.program.as_str())?];
    for argument in &sandbox.arguments {
        argv.push(text(argument)?);
    }
    let envp = sandbox
        .environment
        .iter()
        .map(|(name, value)| text(&format!("{name}={value}")))
        .collect::<Result<_, _>>()?;
    Ok(Prepared {
        workspace: text(sandbox.workspace.as_str())?,
        actions,
        maps: None,
        program: text(sandbox.program.as_str())?,
        argv,
        envp,
        directory: text(sandbox.directory.as_str())?,
        log: above_standard(log)?,
        null: above_standard(null.into_parts().0)?,
    })
}

/// Moves a descriptor out of the way of the three that the child overwrites.
fn above_standard(file: File) -> Result<OwnedFd, SandboxError> {
    if file.as_raw_fd() > 2 {
        return Ok(file.into());
    }
    rustix::io::fcntl_dupfd_cloexec(&file, 3).map_err(|error| SandboxError::Wait(error.into()))
}
