//! What the contract runs on: a machine, and a way to name a program that plays a role.

use std::cell::Cell;
use std::io::{BufRead, BufReader, PipeReader};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use transom_host::process::fake::{Behaviour, FakeProcesses};
use transom_host::process::{Input, Native, Output, Process, Processes, Spawn};

/// Long enough for a slow machine, short enough to fail a test.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);
/// How long is watched when nothing must happen.
pub(crate) const MOMENT: Duration = Duration::from_millis(200);

/// What a helper program does.
#[derive(Debug, Clone)]
pub(crate) enum Role {
    Exit(i32),
    /// Prints `line 1`… and `error 1`…, then exits with 0.
    Lines(usize),
    /// Prints this many bytes to each output, mixed, then exits with 0.
    Flood(usize),
    /// Prints `ready` and runs.
    Run,
    /// Prints `ready`, exits with 5 when its input ends.
    Input,
    /// Prints `ready`, exits with 7 when told to terminate.
    Polite,
    /// Prints `ready`, does not listen.
    Stubborn,
    /// Prints `ready` when this many generations of children run, and runs.
    Family(usize),
    /// Leaves two processes behind that try to get away, then exits with 0.
    Escape,
    Arguments(Vec<String>),
    Environment,
    /// Uses processor time and memory, prints `ready` and runs.
    Burn,
}

pub(crate) trait Backend {
    fn processes(&self) -> &dyn Processes;
    /// A description without environment, with both outputs as pipes.
    fn program(&self, role: &Role) -> Spawn;
    /// Whether signals other than `Kill` are delivered.
    fn has_signals(&self) -> bool;
}

#[derive(Debug)]
pub(crate) struct Real(Native);

impl Real {
    pub(crate) fn new() -> Self {
        Self(Native)
    }
}

/// This binary, playing `words`.
pub(crate) fn helper(words: &[&str]) -> Spawn {
    let program = std::env::current_exe().unwrap();
    let mut spawn = Spawn::new(Utf8PathBuf::from_path_buf(program).unwrap());
    spawn.args = ["role"]
        .iter()
        .chain(words)
        .map(ToString::to_string)
        .collect();
    spawn.stdout = Output::Pipe;
    spawn.stderr = Output::Pipe;
    spawn
}

impl Backend for Real {
    fn processes(&self) -> &dyn Processes {
        &self.0
    }

    fn program(&self, role: &Role) -> Spawn {
        match role {
            Role::Exit(code) => helper(&["exit", &code.to_string()]),
            Role::Lines(count) => helper(&["lines", &count.to_string()]),
            Role::Flood(bytes) => helper(&["flood", &bytes.to_string()]),
            Role::Run => helper(&["run"]),
            Role::Input => helper(&["input"]),
            Role::Polite => helper(&["polite"]),
            Role::Stubborn => helper(&["stubborn"]),
            Role::Family(depth) => helper(&["family", &depth.to_string()]),
            Role::Escape => helper(&["escape"]),
            Role::Arguments(arguments) => {
                let mut spawn = helper(&["arguments"]);
                spawn.args.extend(arguments.iter().cloned());
                spawn
            }
            Role::Environment => helper(&["environment"]),
            Role::Burn => helper(&["burn"]),
        }
    }

    fn has_signals(&self) -> bool {
        cfg!(unix)
    }
}

#[derive(Debug)]
pub(crate) struct Fake {
    machine: FakeProcesses,
    installed: Cell<u32>,
    like_windows: bool,
}

impl Fake {
    pub(crate) fn new(like_windows: bool) -> Self {
        let machine = FakeProcesses::new();
        Self {
            machine: if like_windows {
                machine.like_windows()
            } else {
                machine
            },
            installed: Cell::new(0),
            like_windows,
        }
    }
}

impl Backend for Fake {
    fn processes(&self) -> &dyn Processes {
        &self.machine
    }

    fn program(&self, role: &Role) -> Spawn {
        let ready = Behaviour::runs().prints("ready");
        let behaviour = match role {
            Role::Exit(code) => Behaviour::exits(*code),
            Role::Lines(count) => (1..=*count).fold(Behaviour::exits(0), |behaviour, number| {
                behaviour
                    .prints(format!("line {number}"))
                    .prints_error(format!("error {number}"))
            }),
            Role::Flood(bytes) => Behaviour::exits(0)
                .prints("o".repeat(bytes - 1))
                .prints_error("e".repeat(bytes - 1)),
            Role::Run | Role::Burn => ready,
            Role::Input => ready.exits_on_end_of_input(5),
            Role::Polite => ready.exits_on_terminate(7),
            Role::Stubborn => ready.ignores_terminate(),
            Role::Family(depth) => ready.forks(*depth),
            Role::Escape => Behaviour::exits(0).forks(2),
            Role::Arguments(_) => Behaviour::exits(0).echoes_arguments(),
            Role::Environment => Behaviour::exits(0).echoes_environment(),
        };
        self.installed.set(self.installed.get() + 1);
        let program = format!("/programs/{}", self.installed.get());
        self.machine.install(program.clone(), behaviour);
        let mut spawn = Spawn::new(program);
        if let Role::Arguments(arguments) = role {
            spawn.args.clone_from(arguments);
        }
        spawn.stdout = Output::Pipe;
        spawn.stderr = Output::Pipe;
        spawn
    }

    fn has_signals(&self) -> bool {
        !self.like_windows
    }
}

/// A started helper that is gone when the test is, however that ends.
pub(crate) struct Started {
    process: Box<dyn Process>,
}

impl std::ops::Deref for Started {
    type Target = dyn Process;

    fn deref(&self) -> &Self::Target {
        &*self.process
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Err(error) = self.process.kill_tree(PATIENCE)
            && !std::thread::panicking()
        {
            panic!("could not clean up: {error}");
        }
    }
}

pub(crate) fn start(machine: &dyn Processes, spec: &Spawn) -> Started {
    let process = machine.spawn(spec).expect("the helper starts");
    Started { process }
}

impl From<Box<dyn Process>> for Started {
    fn from(process: Box<dyn Process>) -> Self {
        Self { process }
    }
}

/// Starts `spec`, which must print `ready`, and returns what it prints later.
pub(crate) fn start_ready(
    machine: &dyn Processes,
    spec: &Spawn,
) -> (Started, BufReader<PipeReader>) {
    let process = start(machine, spec);
    let mut output = BufReader::new(process.take_stdout().expect("a pipe"));
    assert_eq!(line(&mut output), "ready");
    (process, output)
}

pub(crate) fn line(output: &mut impl BufRead) -> String {
    let mut text = String::new();
    output.read_line(&mut text).expect("readable output");
    text.trim_end().to_owned()
}

/// Looks again and again until `condition` holds.
pub(crate) fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn with_input(mut spec: Spawn) -> Spawn {
    spec.stdin = Input::Pipe;
    spec
}
