//! Processes on Linux: sessions, pidfds and `/proc`.
//!
//! Invariant: every signal goes through a pidfd that was checked against the identity after opening.

mod account;
mod cgroup;
mod launch;
mod memory_score;
mod orphans;
mod pidfd;
mod prepare;
mod procfs;
mod rlimits;
mod tree;

use std::io::{PipeReader, PipeWriter};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{
    AdoptError, Delivered, Exit, GroupId, Identity, KillError, LimitReport, Member, Process,
    Processes, Scope, Signal, SignalError, Spawn, SpawnError, Stats, WaitError,
};
pub use orphans::{become_subreaper, reap_orphans};
use pidfd::PidFd;
use prepare::Pipes;
use procfs::Entry;
pub use rlimits::raise_open_files;
use tree::Leader;

/// A process that waits also reaps the orphans that come to it, this often.
const REAP_INTERVAL: Duration = Duration::from_secs(5);

/// The processes of this machine.
#[derive(Debug, Default, Clone, Copy)]
pub struct Native;

impl Processes for Native {
    fn spawn(&self, spec: &Spawn) -> Result<Box<dyn Process>, SpawnError> {
        let mut limits = LimitReport::default();
        let cgroups = cgroup::prepare(&spec.group, &spec.limits, &mut limits);
        let limited = !cgroups.is_empty();
        let launched =
            prepare::prepare(spec, cgroups, &mut limits).and_then(|(prepared, pipes)| {
                match launch::launch(prepared) {
                    Ok(pid) => Ok((pid, pipes)),
                    Err(error) => Err(prepare::explain(spec, error)),
                }
            });
        let (pid, pipes) = launched.inspect_err(|_| cgroup::remove(&spec.group))?;
        let identity = procfs::identify(pid).unwrap_or(Identity { pid, started: 0 });
        let pinned = PidFd::open(&identity);
        let system = |source| SpawnError::System {
            program: spec.program.clone(),
            step: "follow the process",
            source,
        };
        let pidfd = match pinned {
            Ok(Some(pidfd)) => pidfd,
            // Its number may be a stranger's by now, so it must not be killed.
            Ok(None) => {
                orphans::disown(pid);
                let gone = "another part of this program reaped it";
                return Err(system(std::io::Error::other(gone)));
            }
            Err(source) => {
                orphans::abandon(pid);
                return Err(system(source));
            }
        };
        if let Some(score) = spec.out_of_memory_score {
            memory_score::judge(pid, score, &mut limits);
        }
        Ok(Box::new(LinuxProcess {
            identity,
            group: spec.group.clone(),
            pidfd,
            outcome: Mutex::new(None),
            pipes: Mutex::new(pipes),
            limits,
            limited,
        }))
    }

    fn adopt(
        &self,
        identity: &Identity,
        group: &GroupId,
    ) -> Result<Option<Box<dyn Process>>, AdoptError> {
        let pidfd = PidFd::open(identity).map_err(|source| AdoptError::Open {
            identity: identity.clone(),
            source,
        })?;
        let alive = procfs::entry(identity.pid).is_some_and(|entry| entry.is_alive());
        Ok(pidfd.filter(|_| alive).map(|pidfd| {
            Box::new(LinuxProcess {
                identity: identity.clone(),
                group: group.clone(),
                pidfd,
                outcome: Mutex::new(None),
                pipes: Mutex::default(),
                limits: LimitReport::default(),
                limited: !cgroup::pids(group).is_empty(),
            }) as Box<dyn Process>
        }))
    }

    fn identify(&self, pid: u32) -> Option<Identity> {
        let entry = procfs::entry(pid).filter(Entry::is_alive)?;
        Some(entry.identity)
    }

    fn current(&self) -> Identity {
        let pid = std::process::id();
        procfs::identify(pid).unwrap_or(Identity { pid, started: 0 })
    }

    fn leftovers(&self, group: &GroupId) -> Vec<Identity> {
        let members = tree::members(None, group, &cgroup::pids(group));
        members.into_iter().map(|entry| entry.identity).collect()
    }

    fn kill_group(&self, group: &GroupId, timeout: Duration) -> Result<(), KillError> {
        tree::kill_all(group, timeout, || {
            tree::members(None, group, &cgroup::pids(group))
        })?;
        cgroup::remove(group);
        Ok(())
    }

    fn sweep(&self) -> usize {
        cgroup::sweep()
    }
}

/// How the main process ended, and when that was seen.
#[derive(Debug, Clone, Copy)]
struct Outcome {
    exit: Exit,
    ticks: u64,
}

#[derive(Debug)]
struct LinuxProcess {
    identity: Identity,
    group: GroupId,
    pidfd: PidFd,
    outcome: Mutex<Option<Outcome>>,
    pipes: Mutex<Pipes>,
    limits: LimitReport,
    /// Whether the group has cgroups.
    limited: bool,
}

impl LinuxProcess {
    fn pipes(&self) -> MutexGuard<'_, Pipes> {
        self.pipes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn outcome(&self) -> MutexGuard<'_, Option<Outcome>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the exit code, once; the process must have ended.
    fn collect(&self) -> std::io::Result<Exit> {
        let mut outcome = self.outcome();
        if let Some(known) = *outcome {
            return Ok(known.exit);
        }
        let exit = self.pidfd.collect()?;
        orphans::disown(self.identity.pid);
        *outcome = Some(Outcome {
            exit,
            ticks: procfs::now_in_ticks(),
        });
        Ok(exit)
    }

    fn entries(&self) -> Vec<Entry> {
        let leader = Leader {
            identity: self.identity.clone(),
            ended: self.outcome().map(|outcome| outcome.ticks),
        };
        let in_cgroup = if self.limited {
            cgroup::pids(&self.group)
        } else {
            Vec::new()
        };
        tree::members(Some(&leader), &self.group, &in_cgroup)
    }
}

impl Drop for LinuxProcess {
    fn drop(&mut self) {
        // Whoever did not wait for it does not want its exit code.
        if self.outcome().is_none() {
            orphans::disown(self.identity.pid);
        }
        if self.limited {
            // Refused by the kernel while anything of the group runs; then `sweep` does it later.
            cgroup::remove(&self.group);
        }
    }
}

impl Process for LinuxProcess {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn group(&self) -> &GroupId {
        &self.group
    }

    fn wait(&self, timeout: Option<Duration>) -> Result<Option<Exit>, WaitError> {
        let failed = |source| WaitError::System {
            identity: self.identity.clone(),
            source,
        };
        let started = Instant::now();
        loop {
            let left = timeout.map(|timeout| timeout.saturating_sub(started.elapsed()));
            let slice = left.map_or(REAP_INTERVAL, |left| left.min(REAP_INTERVAL));
            if self.pidfd.wait_ended(slice).map_err(failed)? {
                return self.collect().map(Some).map_err(failed);
            }
            if left.is_some_and(|left| left <= slice) {
                return Ok(None);
            }
            orphans::reap();
        }
    }

    fn signal(&self, signal: Signal, scope: Scope) -> Result<Delivered, SignalError> {
        let failed = |identity, source| SignalError::Send {
            signal,
            identity,
            source,
        };
        let reached = match scope {
            Scope::Main => {
                let ended = self.pidfd.wait_ended(Duration::ZERO);
                // A zombie takes every signal, and does nothing with it.
                let sent = ended.and_then(|ended| Ok(!ended && self.pidfd.send(signal)?));
                usize::from(sent.map_err(|error| failed(self.identity.clone(), error))?)
            }
            Scope::Tree => tree::signal_all(&self.entries(), signal)
                .map_err(|(identity, error)| failed(identity, error))?,
        };
        Ok(match reached {
            0 => Delivered::Gone,
            count => Delivered::To(count),
        })
    }

    fn take_stdin(&self) -> Option<PipeWriter> {
        self.pipes().stdin.take()
    }

    fn take_stdout(&self) -> Option<PipeReader> {
        self.pipes().stdout.take()
    }

    fn take_stderr(&self) -> Option<PipeReader> {
        self.pipes().stderr.take()
    }

    fn members(&self) -> Vec<Member> {
        let entries = self.entries();
        entries
            .iter()
            .map(|entry| Member {
                identity: entry.identity.clone(),
                command: procfs::command(entry),
            })
            .collect()
    }

    fn kill_tree(&self, timeout: Duration) -> Result<(), KillError> {
        tree::kill_all(&self.group, timeout, || self.entries())?;
        if self.limited {
            cgroup::remove(&self.group);
        }
        Ok(())
    }

    fn stats(&self) -> Stats {
        let entries = self.entries();
        let ticks: u64 = entries.iter().map(|entry| entry.cpu_ticks).sum();
        let pages: u64 = entries.iter().map(|entry| entry.resident_pages).sum();
        let milliseconds = ticks * 1000 / procfs::ticks_per_second();
        Stats {
            memory_bytes: Some(pages * rustix::param::page_size() as u64),
            cpu: Some(Duration::from_millis(milliseconds)),
            processes: u32::try_from(entries.len()).ok(),
        }
    }

    fn limits(&self) -> &LimitReport {
        &self.limits
    }
}
