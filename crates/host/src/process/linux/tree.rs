//! Which processes belong to a group, and how to end them all.
//!
//! A process belongs if it carries the marker, sits in the session of the main process, is in the
//! group's cgroup, or descends from one that belongs. Each rule alone can be escaped; a program that
//! escapes all of them at once wants to be lost.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use nix::libc;

use super::super::{GroupId, Identity, KillError, Signal};
use super::orphans;
use super::pidfd::PidFd;
use super::procfs::{self, Entry};

/// How often new processes may turn up while we freeze, before we kill what we have.
const FREEZE_ROUNDS: u32 = 64;
/// How long killed processes get to vanish before the next look.
const SETTLE: Duration = Duration::from_millis(20);

/// The main process, for the rule about its session.
#[derive(Debug, Clone)]
pub(super) struct Leader {
    pub(super) identity: Identity,
    /// When it was seen to have ended, on the clock of start times. Its number may have become a
    /// stranger's session after that.
    pub(super) ended: Option<u64>,
}

/// Every live process of `group`, the leader first.
pub(super) fn members(leader: Option<&Leader>, group: &GroupId, in_cgroup: &[u32]) -> Vec<Entry> {
    let me = std::process::id();
    let mut outside: Vec<Entry> = procfs::all();
    outside.retain(|entry| entry.identity.pid > 1 && entry.identity.pid != me);
    let belongs = |entry: &Entry| {
        leader.is_some_and(|leader| is_led(entry, leader))
            || in_cgroup.contains(&entry.identity.pid)
            || procfs::is_marked(entry.identity.pid, group)
    };
    let mut found: Vec<Entry> = outside.extract_if(.., |entry| belongs(entry)).collect();
    loop {
        let parents: HashSet<u32> = found.iter().map(|entry| entry.identity.pid).collect();
        let before = found.len();
        found.extend(outside.extract_if(.., |entry| parents.contains(&entry.parent)));
        if found.len() == before {
            break;
        }
    }
    found.retain(Entry::is_alive);
    found.sort_by_key(|entry| {
        let leads = leader.is_some_and(|leader| leader.identity == entry.identity);
        (!leads, entry.identity.started, entry.identity.pid)
    });
    found
}

fn is_led(entry: &Entry, leader: &Leader) -> bool {
    if entry.identity.pid == leader.identity.pid {
        return entry.identity == leader.identity;
    }
    entry.session == leader.identity.pid
        && entry.identity.started >= leader.identity.started
        && leader
            .ended
            .is_none_or(|ended| entry.identity.started <= ended)
}

/// Sends `signal` to each, and returns how many got it.
pub(super) fn signal_all(
    entries: &[Entry],
    signal: Signal,
) -> Result<usize, (Identity, std::io::Error)> {
    let mut reached = 0;
    let mut failure = None;
    for entry in entries {
        let sent =
            PidFd::open(&entry.identity).and_then(|fd| fd.map_or(Ok(false), |fd| fd.send(signal)));
        match sent {
            Ok(sent) => reached += usize::from(sent),
            Err(error) => failure = Some((entry.identity.clone(), error)),
        }
    }
    match failure {
        Some(failure) if reached == 0 => Err(failure),
        _ => Ok(reached),
    }
}

/// Kills what `find` finds until it finds nothing. Processes are stopped first, so that none of them
/// can fork while the others are being killed.
pub(super) fn kill_all(
    group: &GroupId,
    timeout: Duration,
    find: impl Fn() -> Vec<Entry>,
) -> Result<(), KillError> {
    let deadline = Instant::now() + timeout;
    let mut frozen: HashSet<Identity> = HashSet::new();
    let mut rounds = 0;
    loop {
        let found = find();
        if found.is_empty() {
            orphans::reap();
            return Ok(());
        }
        let fresh: Vec<&Entry> = found
            .iter()
            .filter(|entry| !frozen.contains(&entry.identity))
            .collect();
        if !fresh.is_empty() && rounds < FREEZE_ROUNDS {
            rounds += 1;
            freeze(&fresh);
            frozen.extend(fresh.iter().map(|entry| entry.identity.clone()));
            continue;
        }
        kill(group, &found)?;
        if Instant::now() >= deadline {
            return Err(KillError::StillAlive {
                group: group.clone(),
                left: found.into_iter().map(|entry| entry.identity).collect(),
                timeout,
            });
        }
    }
}

fn freeze(entries: &[&Entry]) {
    for entry in entries {
        if let Ok(Some(fd)) = PidFd::open(&entry.identity) {
            // What cannot be stopped cannot be killed either, and then the kill reports it.
            let _ = fd.send_number(libc::SIGSTOP);
        }
    }
}

fn kill(group: &GroupId, entries: &[Entry]) -> Result<(), KillError> {
    let mut killed = Vec::new();
    let mut failure = None;
    for entry in entries {
        let sent = PidFd::open(&entry.identity).and_then(|fd| {
            if let Some(fd) = fd {
                fd.send(Signal::Kill)?;
                killed.push(fd);
            }
            Ok(())
        });
        if let Err(source) = sent {
            failure = Some(KillError::System {
                group: group.clone(),
                identity: entry.identity.clone(),
                source,
            });
        }
    }
    let settled = Instant::now() + SETTLE;
    for fd in &killed {
        // Whether it ended shows at the next look.
        let _ = fd.wait_ended(settled.saturating_duration_since(Instant::now()));
    }
    failure.map_or(Ok(()), Err)
}
