//! Processes in memory, for tests of what is built on processes. Programs are behaviours that a test
//! registers under a path; the contract is the same as that of a real machine.

mod behaviour;
mod machine;
#[cfg(test)]
mod tests;

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use camino::Utf8PathBuf;
use fs_err::OpenOptions;

use super::{
    AdoptError, Delivered, Exit, GroupId, Identity, Input, KillError, Lifetime, LimitKind,
    LimitReport, MARKER, Member, Output, Process, Processes, Scope, Signal, SignalError, Spawn,
    SpawnError, Stats, WaitError,
};
pub use behaviour::Behaviour;
use behaviour::Echo;
use machine::Machine;

/// Our own number on the make-believe machine.
const OWN_PID: u32 = 2;

/// A machine that exists in memory. Clones are the same machine.
#[derive(Debug, Clone, Default)]
pub struct FakeProcesses {
    machine: Arc<Machine>,
    like_windows: bool,
    refused_limits: Option<String>,
}

impl FakeProcesses {
    pub fn new() -> Self {
        Self::default()
    }

    /// Behaves as Windows does: only `Kill` is delivered, users cannot be changed, and a group dies
    /// whole with its owner.
    #[must_use]
    pub fn like_windows(mut self) -> Self {
        self.like_windows = true;
        self
    }

    /// Reports every limit as not enforced, for `reason`.
    #[must_use]
    pub fn refusing_limits(mut self, reason: impl Into<String>) -> Self {
        self.refused_limits = Some(reason.into());
        self
    }

    /// Makes `program` exist, or behave differently from its next start on.
    pub fn install(&self, program: impl Into<Utf8PathBuf>, behaviour: Behaviour) {
        let program = program.into();
        self.machine
            .change(|table| table.programs.insert(program, behaviour));
    }

    /// All that was ever started, in order.
    pub fn spawned(&self) -> Vec<Spawn> {
        self.machine.look().spawned.clone()
    }

    /// Ends a process as if by itself.
    pub fn end(&self, identity: &Identity, exit: Exit) {
        self.machine.end(identity, exit);
    }

    /// We are killed and start again: what lives with its owner dies (on Linux its main process
    /// only), and the machine goes on. Handles of before must not be used any more.
    pub fn restart_owner(&self) {
        let whole = self.like_windows;
        self.machine.change(|table| {
            table.signal(Signal::Kill, |row| {
                row.lifetime == Lifetime::WithOwner && (whole || row.is_main)
            })
        });
    }

    /// Gives the number of an ended process to a stranger, who is returned.
    pub fn recycle(&self, pid: u32) -> Identity {
        self.machine.change(|table| table.recycle(pid))
    }

    fn report(&self, spec: &Spawn) -> LimitReport {
        let kinds = spec
            .limits
            .per_group()
            .map(|(kind, _)| kind)
            .chain(spec.limits.per_process().map(|(kind, _)| kind))
            .chain(
                spec.out_of_memory_score
                    .map(|_| LimitKind::OutOfMemoryScore),
            );
        let mut report = LimitReport::default();
        for kind in kinds {
            match &self.refused_limits {
                Some(reason) => report.refuse(kind, reason),
                None => report.enforced.push(kind),
            }
        }
        report
    }
}

impl Processes for FakeProcesses {
    fn spawn(&self, spec: &Spawn) -> Result<Box<dyn Process>, SpawnError> {
        let program = spec.program.clone();
        // Programs of either system may be installed here, so either root will do.
        if !program.as_str().starts_with('/') && program.as_str().get(1..2) != Some(":") {
            return Err(SpawnError::RelativeProgram { program });
        }
        if let Some(user) = spec.user.clone().filter(|_| self.like_windows) {
            return Err(SpawnError::UserNotSupported { user });
        }
        let mut groups = spec.user_group.iter().chain(&spec.more_user_groups);
        if let Some(group) = groups.next().cloned().filter(|_| self.like_windows) {
            return Err(SpawnError::GroupNotSupported { group });
        }
        let Some(behaviour) = self.machine.look().programs.get(&program).cloned() else {
            return Err(SpawnError::MissingExecutable { program });
        };
        let system = |source| SpawnError::System {
            program: spec.program.clone(),
            step: "make a pipe",
            source,
        };
        let mut pipes = Pipes::default();
        let stdout = sink(&spec.stdout, &mut pipes.stdout).map_err(|e| opened(&spec.stdout, e))?;
        let stderr = sink(&spec.stderr, &mut pipes.stderr).map_err(|e| opened(&spec.stderr, e))?;
        let stdin = match spec.stdin {
            // Paths are names only here.
            Input::Null | Input::File(_) => None,
            Input::Pipe => {
                let (reader, writer) = io::pipe().map_err(system)?;
                pipes.stdin = Some(writer);
                Some(reader)
            }
        };
        let identity = self.machine.change(|table| table.add(spec, &behaviour));
        let actor = Actor {
            machine: Arc::clone(&self.machine),
            identity: identity.clone(),
            behaviour,
        };
        actor.start(spec, stdin, stdout, stderr);
        Ok(Box::new(FakeProcess {
            machine: Arc::clone(&self.machine),
            like_windows: self.like_windows,
            adopted: false,
            identity,
            group: spec.group.clone(),
            pipes: Mutex::new(pipes),
            limits: self.report(spec),
        }))
    }

    fn adopt(
        &self,
        identity: &Identity,
        group: &GroupId,
    ) -> Result<Option<Box<dyn Process>>, AdoptError> {
        let table = self.machine.look();
        let alive = table
            .row(identity)
            .is_some_and(|row| row.exit.is_none() && row.group == *group);
        Ok(alive.then(|| {
            Box::new(FakeProcess {
                machine: Arc::clone(&self.machine),
                like_windows: self.like_windows,
                adopted: true,
                identity: identity.clone(),
                group: group.clone(),
                pipes: Mutex::default(),
                limits: LimitReport::default(),
            }) as Box<dyn Process>
        }))
    }

    fn identify(&self, pid: u32) -> Option<Identity> {
        if pid == OWN_PID {
            return Some(self.current());
        }
        let table = self.machine.look();
        let live = |row: &&machine::Row| row.identity.pid == pid && row.exit.is_none();
        table.rows.iter().find(live).map(|row| row.identity.clone())
    }

    fn current(&self) -> Identity {
        Identity {
            pid: OWN_PID,
            started: 0,
        }
    }

    fn leftovers(&self, group: &GroupId) -> Vec<Identity> {
        let table = self.machine.look();
        table.live(group).map(|row| row.identity.clone()).collect()
    }

    fn kill_group(&self, group: &GroupId, _timeout: Duration) -> Result<(), KillError> {
        self.machine
            .change(|table| table.signal(Signal::Kill, |row| row.group == *group));
        Ok(())
    }

    fn sweep(&self) -> usize {
        0
    }
}

fn opened(output: &Output, source: io::Error) -> SpawnError {
    let path = match output {
        Output::Append(path) | Output::Truncate(path) => path.clone(),
        Output::Null | Output::Pipe | Output::Inherit => Utf8PathBuf::new(),
    };
    SpawnError::OpenOutput { path, source }
}

type Sink = Box<dyn Write + Send>;

fn sink(output: &Output, ours: &mut Option<PipeReader>) -> io::Result<Sink> {
    Ok(match output {
        // A make-believe program has no business on a real terminal.
        Output::Null | Output::Inherit => Box::new(io::sink()),
        Output::Pipe => {
            let (reader, writer) = io::pipe()?;
            *ours = Some(reader);
            Box::new(writer)
        }
        Output::Append(path) => {
            let file = OpenOptions::new().create(true).append(true).open(path)?;
            Box::new(file)
        }
        Output::Truncate(path) => {
            let mut options = OpenOptions::new();
            Box::new(options.create(true).write(true).truncate(true).open(path)?)
        }
    })
}

/// Acts out one behaviour.
struct Actor {
    machine: Arc<Machine>,
    identity: Identity,
    behaviour: Behaviour,
}

impl Actor {
    fn start(self, spec: &Spawn, stdin: Option<PipeReader>, mut stdout: Sink, mut stderr: Sink) {
        if let (Some(mut input), Some(code)) = (stdin, self.behaviour.on_end_of_input) {
            let (machine, identity) = (Arc::clone(&self.machine), self.identity.clone());
            thread::spawn(move || {
                let mut buffer = [0; 1024];
                while input.read(&mut buffer).is_ok_and(|read| read > 0) {}
                machine.end(&identity, Exit::Code(code));
            });
        }
        let echo = match self.behaviour.echo {
            Echo::Nothing => Vec::new(),
            Echo::Arguments => spec.args.clone(),
            Echo::Environment => spec
                .env
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .chain([format!("{MARKER}={}", spec.group)])
                .collect(),
        };
        thread::spawn(move || {
            for line in self.behaviour.output.iter().chain(&echo) {
                // Nobody may listen; a program does not mind.
                let _ = writeln!(stdout, "{line}");
            }
            for line in &self.behaviour.errors {
                let _ = writeln!(stderr, "{line}");
            }
            if let Some((delay, exit)) = self.behaviour.ends {
                self.machine.wait(&self.identity, Some(delay));
                drop((stdout, stderr));
                self.machine.end(&self.identity, exit);
            } else {
                // Held open until the end, so that readers see it.
                self.machine.wait(&self.identity, None);
            }
        });
    }
}

#[derive(Debug, Default)]
struct Pipes {
    stdin: Option<PipeWriter>,
    stdout: Option<PipeReader>,
    stderr: Option<PipeReader>,
}

#[derive(Debug)]
struct FakeProcess {
    machine: Arc<Machine>,
    like_windows: bool,
    adopted: bool,
    identity: Identity,
    group: GroupId,
    pipes: Mutex<Pipes>,
    limits: LimitReport,
}

impl FakeProcess {
    fn pipes(&self) -> MutexGuard<'_, Pipes> {
        self.pipes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Process for FakeProcess {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn group(&self) -> &GroupId {
        &self.group
    }

    fn wait(&self, timeout: Option<Duration>) -> Result<Option<Exit>, WaitError> {
        let exit = self.machine.wait(&self.identity, timeout);
        // Linux tells an exit code to the parent; Windows to anyone with a handle.
        let unknown = self.adopted && !self.like_windows;
        Ok(exit.map(|exit| if unknown { Exit::Unknown } else { exit }))
    }

    fn signal(&self, signal: Signal, scope: Scope) -> Result<Delivered, SignalError> {
        let chosen = |row: &machine::Row| match scope {
            Scope::Main => row.identity == self.identity,
            Scope::Tree => row.group == self.group,
        };
        if self.like_windows && signal.number() != Signal::Kill.number() {
            let table = self.machine.look();
            let anyone = table.live(&self.group).any(chosen);
            return Ok(if anyone {
                Delivered::NotSupported
            } else {
                Delivered::Gone
            });
        }
        let reached = self.machine.change(|table| table.signal(signal, chosen));
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
        let table = self.machine.look();
        let mut members: Vec<Member> = table
            .live(&self.group)
            .map(|row| Member {
                identity: row.identity.clone(),
                command: row.command.clone(),
            })
            .collect();
        members.sort_by_key(|member| member.identity != self.identity);
        members
    }

    fn kill_tree(&self, _timeout: Duration) -> Result<(), KillError> {
        self.machine
            .change(|table| table.signal(Signal::Kill, |row| row.group == self.group));
        Ok(())
    }

    /// Made up, but plausible: a mebibyte and a millisecond for each process.
    fn stats(&self) -> Stats {
        let count = self.members().len();
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        Stats {
            memory_bytes: Some(u64::from(count) << 20),
            cpu: Some(Duration::from_millis(u64::from(count))),
            processes: Some(count),
        }
    }

    fn limits(&self) -> &LimitReport {
        &self.limits
    }
}
