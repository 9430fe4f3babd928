//! The namespaces of a pod. Network, messages and host name are those of the shim itself; a process
//! namespace needs a first process, which is another helper.

#![expect(unsafe_code, reason = "fork has no safe form")]

use std::fs::File;
use std::io::Write;
use std::os::fd::FromRawFd;

use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

use crate::{PodNetwork, PodSpec};

/// Gives this process namespaces of its own, as the pod asks for.
pub(super) fn enter(spec: &PodSpec) -> Result<(), String> {
    let mut flags = CloneFlags::empty();
    if spec.network == PodNetwork::Own {
        flags |= CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWUTS;
    }
    if !spec.host_ipc {
        flags |= CloneFlags::CLONE_NEWIPC;
    }
    if !flags.is_empty() {
        unshare(flags)
            .map_err(|error| format!("the system does not let us make namespaces: {error}"))?;
    }
    if flags.contains(CloneFlags::CLONE_NEWUTS) {
        let name = if spec.hostname.is_empty() {
            &spec.name
        } else {
            &spec.hostname
        };
        nix::unistd::sethostname(name)
            .map_err(|error| format!("the host name {name:?} cannot be set: {error}"))?;
    }
    for (name, value) in &spec.sysctls {
        set_parameter(name, value, spec)?;
    }
    Ok(())
}

/// Only what a namespace of the pod keeps for itself may be set: all else is the node's.
fn set_parameter(name: &str, value: &str, spec: &PodSpec) -> Result<(), String> {
    let plain = name.replace('/', ".");
    let of_messages = ["kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue."];
    let is_ours = (plain.starts_with("net.") && spec.network == PodNetwork::Own)
        || (of_messages.iter().any(|prefix| plain.starts_with(prefix)) && !spec.host_ipc);
    if !is_ours || plain.contains("..") {
        return Err(format!(
            "the sysctl {name:?} is not one of the pod's own namespaces"
        ));
    }
    let path = format!("/proc/sys/{}", plain.replace('.', "/"));
    fs_err::write(&path, value)
        .map_err(|error| format!("the sysctl {name:?} cannot be set: {error}"))
}

/// Makes a process namespace, tells the number of its first process, and ends; that process stays. It does
/// nothing but to receive the ends of those whose parents ended before.
pub(super) fn hold_processes(report: &str) -> Result<(), String> {
    let report = report
        .parse()
        .map_err(|_| format!("{report:?} is no descriptor"))?;
    unshare(CloneFlags::CLONE_NEWPID)
        .map_err(|error| format!("no namespace for processes: {error}"))?;
    // SAFETY: this process has one thread, so the child may go on as if nothing had happened.
    match unsafe { fork() }.map_err(|error| error.to_string())? {
        ForkResult::Parent { child } => {
            // SAFETY: the shim left this descriptor open for us, and nobody else here knows of it.
            let mut report = unsafe { File::from_raw_fd(report) };
            report
                .write_all(format!("pid {child}\n").as_bytes())
                .map_err(|error| error.to_string())
        }
        ForkResult::Child => {
            // SAFETY: as above; the parent has its own copy.
            drop(unsafe { File::from_raw_fd(report) });
            receive_ends()
        }
    }
}

fn receive_ends() -> Result<(), String> {
    let failed = |error: nix::Error| error.to_string();
    nix::unistd::setsid().map_err(failed)?;
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGCHLD);
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&signals), None).map_err(failed)?;
    loop {
        signals.wait().map_err(failed)?;
        while !matches!(
            waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)),
            Ok(WaitStatus::StillAlive) | Err(_)
        ) {}
    }
}
