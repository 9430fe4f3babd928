//! Processes on Windows: job objects and handles.
//!
//! Invariant: a program runs only inside its job; whatever it starts is in the job as well.

mod handle;
mod job;
mod launch;
mod streams;
mod table;

use std::io::{self, PipeReader, PipeWriter};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{
    AdoptError, Delivered, Exit, GroupId, Identity, KillError, Lifetime, LimitKind, LimitReport,
    Member, Process, Processes, Scope, Signal, SignalError, Spawn, SpawnError, Stats, WaitError,
};
use handle::ProcessHandle;
use job::Job;
use launch::Asleep;
use streams::{Pipes, system};

/// A wait without a limit is made of waits of this length.
const SLICE: Duration = Duration::from_mins(1);
/// How long terminated processes get to vanish before the next look.
const SETTLE: Duration = Duration::from_millis(20);

/// See the Linux side: a job holds its processes, so there is nothing to do.
pub fn become_subreaper() -> io::Result<()> {
    Ok(())
}

/// See the Linux side: Windows has no such limit.
pub fn raise_open_files() -> io::Result<Option<u64>> {
    Ok(None)
}

/// See the Linux side: Windows has no zombies.
pub fn reap_orphans() -> usize {
    0
}

/// The processes of this machine.
#[derive(Debug, Default, Clone, Copy)]
pub struct Native;

impl Processes for Native {
    fn spawn(&self, spec: &Spawn) -> Result<Box<dyn Process>, SpawnError> {
        let (asleep, pipes) = launch::launch(spec)?;
        forget_empty_jobs();
        let settled = settle(spec, &asleep).and_then(|settled| {
            asleep.wake().map_err(system(spec, "wake the process"))?;
            Ok(settled)
        });
        let (identity, job, limits) = settled.inspect_err(|_| {
            // It never ran; there is nobody to tell if even this fails.
            let _ = asleep.process.kill();
        })?;
        Ok(Box::new(WindowsProcess {
            identity,
            group: spec.group.clone(),
            job: Some(job),
            process: asleep.process,
            pipes: Mutex::new(pipes),
            limits,
        }))
    }

    fn adopt(
        &self,
        identity: &Identity,
        group: &GroupId,
    ) -> Result<Option<Box<dyn Process>>, AdoptError> {
        let failed = |source| AdoptError::Open {
            identity: identity.clone(),
            source,
        };
        let Some(process) = ProcessHandle::open_same(identity).map_err(failed)? else {
            return Ok(None);
        };
        Ok(Some(Box::new(WindowsProcess {
            identity: identity.clone(),
            group: group.clone(),
            job: Job::open(group).map_err(failed)?,
            process,
            pipes: Mutex::default(),
            limits: LimitReport::default(),
        })))
    }

    fn identify(&self, pid: u32) -> Option<Identity> {
        let process = ProcessHandle::open(pid).ok()??;
        let ended = process.has_ended(Duration::ZERO).ok()?;
        let started = process.started().ok()?;
        (!ended).then_some(Identity { pid, started })
    }

    fn current(&self) -> Identity {
        let pid = std::process::id();
        self.identify(pid).unwrap_or(Identity { pid, started: 0 })
    }

    fn leftovers(&self, group: &GroupId) -> Vec<Identity> {
        let job = Job::open(group).unwrap_or_else(|error| {
            tracing::warn!(%group, %error, "could not open the job of a group");
            None
        });
        job.map_or_else(Vec::new, |job| {
            members(&job).into_iter().map(|(_, known)| known).collect()
        })
    }

    fn kill_group(&self, group: &GroupId, timeout: Duration) -> Result<(), KillError> {
        let job = Job::open(group).map_err(|source| KillError::Group {
            group: group.clone(),
            source,
        })?;
        job.map_or(Ok(()), |job| kill(&job, group, timeout))
    }

    fn sweep(&self) -> usize {
        // A job goes with its last process and handle.
        0
    }
}

/// Jobs whose `Process` was dropped. Closing the last handle would kill the group, which is to happen
/// when we end, and not before.
static DROPPED: Mutex<Vec<Job>> = Mutex::new(Vec::new());

fn forget_empty_jobs() {
    let mut dropped = DROPPED.lock().unwrap_or_else(PoisonError::into_inner);
    // A job that does not answer is kept: closing it might kill.
    dropped.retain(|job| job.pids().map_or(true, |pids| !pids.is_empty()));
}

/// Everything that must be true before the program runs its first instruction.
fn settle(spec: &Spawn, asleep: &Asleep) -> Result<(Identity, Job, LimitReport), SpawnError> {
    let started = asleep.process.started();
    let identity = Identity {
        pid: asleep.pid,
        started: started.map_err(system(spec, "read the start time"))?,
    };
    let (job, age) = Job::create(&spec.group).map_err(system(spec, "create the job"))?;
    let mut limits = job
        .arrange(age, spec.lifetime, &spec.limits)
        .map_err(system(spec, "limit the job"))?;
    if spec.out_of_memory_score.is_some() {
        limits.refuse(LimitKind::OutOfMemoryScore, "Windows has no such score");
    }
    job.assign(&asleep.process)
        .map_err(system(spec, "assign the job"))?;
    if spec.lifetime == Lifetime::Detached {
        // The name of a job lives as long as a handle to it. The program holds one unknowingly, so
        // that the next owner finds the job.
        asleep
            .process
            .give(job.handle())
            .map_err(system(spec, "hand over the job"))?;
    }
    Ok((identity, job, limits))
}

fn members(job: &Job) -> Vec<(ProcessHandle, Identity)> {
    let live = |pid| {
        let process = ProcessHandle::open(pid).ok()??;
        let started = process.started().ok()?;
        let ended = process.has_ended(Duration::ZERO).ok()?;
        let counts = !ended && !process.is_console_host();
        counts.then_some((process, Identity { pid, started }))
    };
    let pids = job.pids().unwrap_or_default();
    let mut members: Vec<_> = pids.into_iter().filter_map(live).collect();
    members.sort_by_key(|(_, identity)| (identity.started, identity.pid));
    members
}

fn kill(job: &Job, group: &GroupId, timeout: Duration) -> Result<(), KillError> {
    let deadline = Instant::now() + timeout;
    loop {
        job.terminate().map_err(|source| KillError::Group {
            group: group.clone(),
            source,
        })?;
        let left = members(job);
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(KillError::StillAlive {
                group: group.clone(),
                left: left.into_iter().map(|(_, identity)| identity).collect(),
                timeout,
            });
        }
        let settled = Instant::now() + SETTLE;
        for (process, _) in &left {
            // Whether it ended shows at the next look.
            let _ = process.has_ended(settled.saturating_duration_since(Instant::now()));
        }
    }
}

#[derive(Debug)]
struct WindowsProcess {
    identity: Identity,
    group: GroupId,
    /// `None`: adopted, and nobody held the job any more. Then the main process is all there is.
    job: Option<Job>,
    process: ProcessHandle,
    pipes: Mutex<Pipes>,
    limits: LimitReport,
}

impl WindowsProcess {
    fn pipes(&self) -> MutexGuard<'_, Pipes> {
        self.pipes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Live processes, the main one first.
    fn live(&self) -> Vec<(ProcessHandle, Identity)> {
        let mut live = match &self.job {
            Some(job) => members(job),
            None => ProcessHandle::open_same(&self.identity)
                .ok()
                .flatten()
                .map(|process| (process, self.identity.clone()))
                .into_iter()
                .collect(),
        };
        live.sort_by_key(|(_, identity)| *identity != self.identity);
        live
    }
}

impl Drop for WindowsProcess {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            let mut dropped = DROPPED.lock().unwrap_or_else(PoisonError::into_inner);
            dropped.push(job);
            drop(dropped);
            forget_empty_jobs();
        }
    }
}

impl Process for WindowsProcess {
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
            let slice = left.map_or(SLICE, |left| left.min(SLICE));
            if self.process.has_ended(slice).map_err(failed)? {
                return self.process.exit().map(Some).map_err(failed);
            }
            if left.is_some_and(|left| left <= slice) {
                return Ok(None);
            }
        }
    }

    fn signal(&self, signal: Signal, scope: Scope) -> Result<Delivered, SignalError> {
        let failed = |source| SignalError::Send {
            signal,
            identity: self.identity.clone(),
            source,
        };
        let ended = self.process.has_ended(Duration::ZERO).map_err(failed)?;
        let reached = match scope {
            Scope::Main => usize::from(!ended),
            Scope::Tree => self.live().len(),
        };
        if reached == 0 {
            return Ok(Delivered::Gone);
        }
        if signal.number() != Signal::Kill.number() {
            return Ok(Delivered::NotSupported);
        }
        match (&self.job, scope) {
            (Some(job), Scope::Tree) => job.terminate().map_err(failed)?,
            _ if !self.process.kill().map_err(failed)? => return Ok(Delivered::Gone),
            _ => {}
        }
        Ok(Delivered::To(reached))
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
        let live = self.live();
        live.into_iter()
            .map(|(process, identity)| Member {
                command: process
                    .command_line()
                    .or_else(|| process.image())
                    .unwrap_or_else(|| format!("[{}]", identity.pid)),
                identity,
            })
            .collect()
    }

    fn kill_tree(&self, timeout: Duration) -> Result<(), KillError> {
        if let Some(job) = &self.job {
            return kill(job, &self.group, timeout);
        }
        let failed = |source| KillError::System {
            group: self.group.clone(),
            identity: self.identity.clone(),
            source,
        };
        self.process.kill().map_err(failed)?;
        if self.process.has_ended(timeout).map_err(failed)? {
            return Ok(());
        }
        Err(KillError::StillAlive {
            group: self.group.clone(),
            left: vec![self.identity.clone()],
            timeout,
        })
    }

    fn stats(&self) -> Stats {
        let live = self.live();
        let Ok(table) = table::read() else {
            return Stats::default();
        };
        let ours = |entry: &&table::Entry| live.iter().any(|(_, known)| known.pid == entry.pid);
        let entries: Vec<_> = table.iter().filter(ours).collect();
        Stats {
            memory_bytes: Some(entries.iter().map(|entry| entry.memory_bytes).sum()),
            cpu: Some(
                self.job
                    .as_ref()
                    .and_then(Job::processor_time)
                    .unwrap_or_else(|| entries.iter().map(|entry| entry.cpu).sum()),
            ),
            processes: u32::try_from(live.len()).ok(),
        }
    }

    fn limits(&self) -> &LimitReport {
        &self.limits
    }
}
