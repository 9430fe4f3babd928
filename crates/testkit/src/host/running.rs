//! A program that was started on a host. The handle can be dropped: the program goes on until it
//! ends by itself, is told to, or its host is turned off.

use std::fmt::Write as _;
use std::process::{Child, ChildStdin, ExitStatus};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use fs_err as fs;
use nix::sys::signal::Signal;
use transom_model::os::Os;

use super::census;
use super::command::read_end;
use crate::eventually;
use crate::lab::lock;

/// The most of a log that is returned.
const LARGEST: u64 = 16 << 20;
/// How much of a log a report shows.
const REPORT: u64 = 4096;

/// A program that was started on a host. Copies are handles of the same program.
#[derive(Debug, Clone)]
pub struct Running {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    title: String,
    os: Os,
    child: Mutex<Child>,
    input: Mutex<Option<ChildStdin>>,
    stdout: fs::File,
    stderr: fs::File,
}

impl Running {
    pub(super) fn new(title: String, os: Os, mut child: Child, logs: [fs::File; 2]) -> Self {
        let [stdout, stderr] = logs;
        let input = Mutex::new(child.stdin.take());
        let child = Mutex::new(child);
        Self {
            inner: Arc::new(Inner {
                title,
                os,
                child,
                input,
                stdout,
                stderr,
            }),
        }
    }

    /// The id of the process as the test sees it.
    pub fn id(&self) -> u32 {
        lock(&self.inner.child).id()
    }

    /// The id of the process as programs of its host see it; on Windows that of Wine's process.
    pub fn host_id(&self) -> Result<u32> {
        ensure!(self.is_running()?, "{} has ended", self.inner.title);
        census::innermost_id(self.id())
    }

    pub fn is_running(&self) -> Result<bool> {
        Ok(lock(&self.inner.child).try_wait()?.is_none())
    }

    /// Ends it at once. It is fine if it has ended already.
    pub fn kill(&self) -> Result<()> {
        lock(&self.inner.child).kill()?;
        self.wait(Duration::from_mins(1))?;
        Ok(())
    }

    /// Asks it to end: `SIGTERM` on Linux. Windows has no signals: there its input is closed.
    pub fn terminate(&self) -> Result<()> {
        match self.inner.os {
            Os::Windows => self.close_input(),
            Os::Linux if self.is_running()? => census::signal(self.id(), Signal::SIGTERM)?,
            Os::Linux => {}
        }
        Ok(())
    }

    /// Closes the pipe that is its input.
    pub fn close_input(&self) {
        *lock(&self.inner.input) = None;
    }

    /// Waits for its end.
    pub fn wait(&self, timeout: Duration) -> Result<ExitStatus> {
        eventually(
            &format!("the end of {}", self.inner.title),
            timeout,
            || match lock(&self.inner.child).try_wait()? {
                Some(status) => Ok(status),
                None => bail!("it is running"),
            },
        )
    }

    /// Waits until it has written `text` to its standard output.
    pub fn wait_for_output(&self, text: &str, timeout: Duration) -> Result<()> {
        eventually(
            &format!("`{text}` in the output of {}", self.inner.title),
            timeout,
            || {
                if self.stdout()?.contains(text) {
                    return Ok(());
                }
                bail!("running: {}, {}", self.is_running()?, self.report())
            },
        )
    }

    /// What it wrote to its standard output, the last 16 MiB of it.
    pub fn stdout(&self) -> Result<String> {
        read_end(&self.inner.stdout, LARGEST)
    }

    /// What it wrote to its standard error, the last 16 MiB of it.
    pub fn stderr(&self) -> Result<String> {
        read_end(&self.inner.stderr, LARGEST)
    }

    /// How it is and what it said last.
    pub(super) fn report(&self) -> String {
        let state = match lock(&self.inner.child).try_wait() {
            Ok(Some(status)) => status.to_string(),
            Ok(None) => "running".to_owned(),
            Err(error) => error.to_string(),
        };
        let mut text = format!("-- {}: {state}\n", self.inner.title);
        for (stream, log) in [
            ("stdout", &self.inner.stdout),
            ("stderr", &self.inner.stderr),
        ] {
            let end = read_end(log, REPORT).unwrap_or_else(|error| format!("{error:#}"));
            for line in end.lines() {
                let _ = writeln!(text, "   {stream}: {line}");
            }
        }
        text
    }

    /// Collects its exit status if it has ended.
    pub(super) fn reap(&self) {
        let _ = lock(&self.inner.child).try_wait();
    }
}
