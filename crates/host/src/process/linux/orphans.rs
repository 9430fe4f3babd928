//! Zombies that nobody will wait for. As a child subreaper we inherit the orphans of our groups, and
//! must read their exit codes for them to go away.
//!
//! Invariant: a child that other code of this process started is never reaped here. Those stay in our
//! session; everything that `spawn` starts, and all that comes of it, is in another.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, set_child_subreaper, waitid,
};

use super::procfs;

/// Children whose exit code belongs to a `Process`.
pub(super) fn owned() -> MutexGuard<'static, BTreeSet<u32>> {
    static OWNED: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());
    // A set of numbers is consistent even after a panic.
    OWNED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Leaves the child to `reap`, or forgets it when it was reaped.
pub(super) fn disown(pid: u32) {
    owned().remove(&pid);
}

/// Kills a child that cannot be followed, and leaves it to `reap`. Nobody else has its number: it is
/// ours and not reaped.
pub(super) fn abandon(pid: u32) {
    if let Some(child) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // The one error there is means that it is gone.
        let _ = kill_process(child, Signal::KILL);
    }
    disown(pid);
}

/// Makes descendants whose parent dies children of this process instead of init's, so that they stay
/// within reach. Call it once, early, in a process that spawns.
///
/// # Platform behavior
///
/// Nothing to do on Windows, where a job holds its processes whoever their parent is.
pub fn become_subreaper() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Reads the exit codes of ended orphans; returns how many there were. `Process::wait` calls it now
/// and then, so that a process that waits for its children need not.
///
/// # Platform behavior
///
/// Always 0 on Windows, which has no zombies.
pub fn reap_orphans() -> usize {
    reap()
}

pub(super) fn reap() -> usize {
    let me = std::process::id();
    // Not `getsid`: the session is 0 where its leader cannot be seen, as in a container that was
    // entered from outside, and no number of a process is 0.
    let Some(own_session) = procfs::entry(me).map(|entry| entry.session) else {
        return 0;
    };
    let owned = owned();
    procfs::all()
        .into_iter()
        .filter(|entry| entry.parent == me && !entry.is_alive())
        .filter(|entry| entry.session != own_session && !owned.contains(&entry.identity.pid))
        .filter_map(|entry| Pid::from_raw(i32::try_from(entry.identity.pid).ok()?))
        .filter(|pid| {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
            matches!(waitid(WaitId::Pid(*pid), options), Ok(Some(_)))
        })
        .count()
}
