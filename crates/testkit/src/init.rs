//! The first process of a lab or of a host: a shell in new namespaces that prepares them, says
//! `ready`, collects orphans, and ends when its input closes. With it ends everything in them.

use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use fs_err as fs;

use crate::eventually;
use crate::host::census;
use crate::namespaces::{Namespaces, Scope};

/// How long preparing namespaces, or the end of everything inside of them, may take.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(1);

/// What each script ends with. Bash collects the orphans that become its children while it reads.
const KEEP: &str = "\necho ready\nwhile read -r _; do :; done\n";

/// The variables that programs started by the testkit get; nothing else of the test's environment.
pub(crate) const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A running first process and the namespaces that it holds.
#[derive(Debug)]
pub(crate) struct Init {
    /// `unshare`, which waits for the shell, so its end is the end of everything inside.
    wrapper: Child,
    /// Open for as long as everything inside is to live: closed by the kernel if the test dies.
    _lifeline: ChildStdin,
    process: u32,
    pub(crate) namespaces: Arc<Namespaces>,
}

impl Init {
    /// Starts `script` with `arguments` in new namespaces, inside of `outer` if given, and returns
    /// when it is ready. `title` is what process lists show.
    pub(crate) fn start(
        outer: Option<&Namespaces>,
        title: &str,
        script: &str,
        arguments: &[&str],
    ) -> Result<Self> {
        let mut complaints = tempfile::tempfile().context("could not make a temporary file")?;
        let mut command = Command::new("unshare");
        command
            .args([
                "--mount",
                "--net",
                "--uts",
                "--ipc",
                "--pid",
                "--fork",
                "--kill-child",
            ])
            .args(["bash", "-c", &format!("set -eu\n{script}{KEEP}"), title])
            .args(arguments)
            .env_clear()
            .env("PATH", SEARCH_PATH)
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(complaints.try_clone()?);
        let mut spawn = || {
            command
                .spawn()
                .context("could not start `unshare` (package util-linux)")
        };
        let mut wrapper = match outer {
            Some(outer) => outer.enter(Scope::Everything, spawn)?,
            None => spawn()?,
        };
        let lifeline = wrapper.stdin.take().context("`unshare` has no input")?;
        let output = wrapper.stdout.take().context("`unshare` has no output")?;
        if let Err(error) = wait_until_ready(output) {
            drop(lifeline);
            let _ = wrapper.kill();
            let _ = wrapper.wait();
            let mut said = String::new();
            complaints.seek(SeekFrom::Start(0))?;
            complaints.take(8192).read_to_string(&mut said)?;
            return Err(error.context(format!("{title} did not start: {}", said.trim())));
        }
        match inspect(&wrapper) {
            Ok((namespaces, process)) => Ok(Self {
                wrapper,
                _lifeline: lifeline,
                process,
                namespaces,
            }),
            Err(error) => {
                wrapper.kill()?;
                wrapper.wait()?;
                Err(error)
            }
        }
    }

    /// The id of the first process, as the test sees it.
    pub(crate) fn process(&self) -> u32 {
        self.process
    }

    /// The id of a process in the new network namespace that `ip` run by the test can name.
    pub(crate) fn wrapper(&self) -> u32 {
        self.wrapper.id()
    }

    /// Collects the exit status of the first process if it has ended.
    pub(crate) fn reap(&mut self) {
        let _ = self.wrapper.try_wait();
    }

    /// Kills everything inside and returns when the last process is gone. `reap` collects those
    /// that are children of the test: the kernel waits for them.
    pub(crate) fn destroy(mut self, mut reap: impl FnMut()) -> Result<()> {
        if self.wrapper.try_wait()?.is_none() {
            census::signal(self.process, nix::sys::signal::Signal::SIGKILL)?;
        }
        eventually("the end of every process of the host", TIMEOUT, || {
            reap();
            match self.wrapper.try_wait()? {
                Some(_) => Ok(()),
                None => bail!("process {} is still there", self.process),
            }
        })
    }
}

impl Drop for Init {
    /// Ends everything inside, without waiting for the last process to be gone.
    fn drop(&mut self) {
        if matches!(self.wrapper.try_wait(), Ok(None)) {
            // `unshare` takes the first process with it, and that one all others.
            let _ = self.wrapper.kill();
            let _ = self.wrapper.wait();
        }
    }
}

/// Opens the namespaces that `unshare` has made and finds the first process in them.
fn inspect(wrapper: &Child) -> Result<(Arc<Namespaces>, u32)> {
    let namespaces = Namespaces::of(wrapper.id())?;
    Ok((Arc::new(namespaces), census::only_child_of(wrapper.id())?))
}

/// Runs `script` to completion with only the mounts of `namespaces`: what it mounts stays.
pub(crate) fn run_script(namespaces: &Namespaces, script: &str, arguments: &[&str]) -> Result<()> {
    let seconds = TIMEOUT.as_secs().to_string();
    let mut command = Command::new("timeout");
    command
        .args([
            &seconds,
            "bash",
            "-c",
            &format!("set -eu\n{script}"),
            "testkit",
        ])
        .args(arguments)
        .env_clear()
        .env("PATH", SEARCH_PATH)
        .stdin(Stdio::null());
    let output = namespaces.enter(Scope::Mounts, || {
        command.output().context("could not start `bash`")
    })?;
    if !output.status.success() {
        bail!(
            "{}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}

/// Fails with a way forward if this machine cannot hold a lab.
pub(crate) fn check_machine() -> Result<()> {
    if !nix::unistd::geteuid().is_root() {
        bail!("hosts in namespaces need root: run the tests as root (`sudo cargo xtask test`)");
    }
    if !fs::read_to_string("/proc/filesystems")?
        .lines()
        .any(|line| line.ends_with("\toverlay"))
    {
        bail!("this kernel has no overlay file system: `modprobe overlay`");
    }
    Ok(())
}

fn wait_until_ready(output: std::process::ChildStdout) -> Result<()> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        let outcome = BufReader::new(output.take(64))
            .read_line(&mut line)
            .map(|_| line);
        let _ = sender.send(outcome);
    });
    let line = receiver
        .recv_timeout(TIMEOUT)
        .map_err(|_| anyhow!("not ready after {TIMEOUT:?}"))??;
    if line != "ready\n" {
        bail!("it ended while it was preparing");
    }
    Ok(())
}
