//! Starting programs on a host. A program gets none of the test's variables, its output goes to the
//! lab's logs, and it is a child of the test process, which therefore knows how it ended.

use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use fs_err as fs;

use super::{Host, Running};
use crate::init::SEARCH_PATH;
use crate::lab::lock;
use crate::namespaces::Scope;

/// How long a program that is waited for may run, unless said otherwise. Long, because many wait by themselves.
const TIMEOUT: Duration = Duration::from_mins(2);

/// How long a file may still be open for writing by others when its program is started.
const FILE_CLOSES: Duration = Duration::from_secs(30);

/// A program to be started on a host.
#[derive(Debug, Clone)]
#[must_use = "nothing is started yet"]
pub struct HostCommand {
    host: Host,
    line: Vec<String>,
    variables: Vec<(String, String)>,
    folder: Option<String>,
    input: Vec<u8>,
    timeout: Duration,
}

/// How a program ended and what it said.
#[derive(Debug, Clone)]
pub struct Output {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    /// Turns an exit code other than 0 into an error that shows what the program said.
    pub fn success(self) -> Result<Self> {
        if self.status.success() {
            return Ok(self);
        }
        bail!(
            "{}\nstdout: {}\nstderr: {}",
            self.status,
            self.stdout.trim(),
            self.stderr.trim()
        );
    }
}

impl Host {
    /// Prepares a program: its path on the host (or a name that the host's `PATH` has), and its
    /// arguments.
    pub fn command(&self, line: impl IntoIterator<Item = impl Into<String>>) -> HostCommand {
        HostCommand {
            host: self.clone(),
            line: line.into_iter().map(Into::into).collect(),
            variables: Vec::new(),
            folder: None,
            input: Vec::new(),
            timeout: TIMEOUT,
        }
    }

    /// Runs a program to its end, at most two minutes.
    pub fn run(&self, line: impl IntoIterator<Item = impl Into<String>>) -> Result<Output> {
        self.command(line).run()
    }

    /// Starts a program in the background, with an open pipe as its input.
    pub fn spawn(&self, line: impl IntoIterator<Item = impl Into<String>>) -> Result<Running> {
        self.command(line).spawn()
    }
}

impl HostCommand {
    /// Sets a variable.
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Sets the folder to start in, a path of the host's system.
    pub fn folder(mut self, folder: impl Into<String>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Sets what the program reads from its input. Not for [`HostCommand::spawn`].
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    /// Sets how long [`HostCommand::run`] waits for the end.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Runs the program to its end. If that takes too long, the program is killed and it is an error.
    pub fn run(self) -> Result<Output> {
        let mut input = tempfile::tempfile().context("could not make a temporary file")?;
        input.write_all(&self.input)?;
        input.seek(SeekFrom::Start(0))?;
        let running = self.start(input.into())?;
        match running.wait(self.timeout) {
            Ok(status) => Ok(Output {
                status,
                stdout: running.stdout()?,
                stderr: running.stderr()?,
            }),
            Err(error) => {
                running.kill()?;
                Err(error.context(running.report()))
            }
        }
    }

    /// Starts the program in the background, with an open pipe as its input.
    pub fn spawn(self) -> Result<Running> {
        ensure!(
            self.input.is_empty(),
            "a program in the background has an open pipe as its input"
        );
        self.start(Stdio::piped())
    }

    fn start(&self, input: Stdio) -> Result<Running> {
        let host = &self.host;
        let program = self.line.first().context("there is no program to start")?;
        let title = format!("`{}` on host `{}`", self.line.join(" "), host.name());
        let [stdout, stderr] = host.inner.ground.new_logs(host.name(), program)?;
        let mut command = self.prepare(program)?;
        command
            .stdin(input)
            .stdout(stdout.file().try_clone()?)
            .stderr(stderr.file().try_clone()?);
        let child = host.namespaces()?.enter(Scope::Everything, || {
            spawn(&mut command).with_context(|| format!("could not start {title}"))
        })?;
        let running = Running::new(title, host.os(), child, [stdout, stderr]);
        lock(&host.inner.started).push(running.clone());
        Ok(running)
    }

    fn prepare(&self, program: &str) -> Result<Command> {
        let mut command = if let Some(wine) = &self.host.inner.wine {
            wine.command(program)
        } else {
            let mut command = Command::new(program);
            command
                .env_clear()
                .env("PATH", SEARCH_PATH)
                .env("HOME", "/root")
                .env("LANG", "C.UTF-8")
                .current_dir("/");
            command
        };
        if let Some(folder) = &self.folder {
            command.current_dir(self.host.inside(folder)?.0);
        }
        command
            .args(&self.line[1..])
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            // A program that signals its whole group must not hit the test.
            .process_group(0);
        Ok(command)
    }
}

/// Starts a program whose file may just have been written: a process that another thread forks at
/// that very moment holds the file open for writing until it runs its own program.
fn spawn(command: &mut Command) -> io::Result<Child> {
    let deadline = Instant::now() + FILE_CLOSES;
    loop {
        match command.spawn() {
            Err(error)
                if error.kind() == io::ErrorKind::ExecutableFileBusy
                    && Instant::now() < deadline =>
            {
                thread::sleep(Duration::from_millis(5));
            }
            outcome => return outcome,
        }
    }
}

/// Reads at most `most` bytes from the end of a log.
pub(super) fn read_end(log: &fs::File, most: u64) -> Result<String> {
    use std::os::unix::fs::FileExt as _;
    let length = log.metadata()?.len();
    let start = length.saturating_sub(most);
    let mut bytes = vec![0; usize::try_from(length - start)?];
    log.file().read_exact_at(&mut bytes, start)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
