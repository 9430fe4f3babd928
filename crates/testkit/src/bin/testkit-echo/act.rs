//! `testkit-echo act STEP…`: a service in a sentence. Invariant: steps run in their order, each says
//! on standard output what it did, and the exit code is 0 unless a step says otherwise.
//!
//! ```text
//! say:TEXT  env:NAME  folder      print the text, NAME=value, or the current folder
//! pause:MS  ready  exit:CODE      wait, tell the supervisor READY=1, end with a code
//! spawn                           start a child that does not stop when asked
//! serve                           wait until asked to stop, then say `stopping`
//! deaf                            wait for ever, even when asked to stop
//! ```

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::{ending, say};

pub(crate) fn run(steps: &[&str]) -> Result<()> {
    // First of all, so that no signal finds the process unprepared.
    let ending = ending::Ending::watch(false)?;
    for step in steps {
        match step.split_once(':').unwrap_or((step, "")) {
            ("say", text) => say(text)?,
            ("env", name) => say(&format!("{name}={}", variable(name)))?,
            ("folder", _) => say(&format!("in {}", std::env::current_dir()?.display()))?,
            ("pause", milliseconds) => thread::sleep(Duration::from_millis(milliseconds.parse()?)),
            ("ready", _) => ending::report_ready()?,
            ("exit", code) => std::process::exit(code.parse()?),
            ("spawn", _) => spawn()?,
            ("serve", _) => {
                say("serving")?;
                ending.wait();
                say("stopping")?;
            }
            ("deaf", _) => {
                say("deaf")?;
                loop {
                    thread::park();
                }
            }
            _ => bail!("`{step}` is not a step"),
        }
    }
    Ok(())
}

/// Starts a child that nobody waits for, as careless services do.
fn spawn() -> Result<()> {
    let child = Command::new(std::env::current_exe()?)
        .args(["act", "deaf"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("could not start a child")?;
    say(&format!("spawned {}", child.id()))
}

#[expect(
    clippy::disallowed_methods,
    reason = "to print variables is what it is for"
)]
fn variable(name: &str) -> String {
    std::env::var_os(name).map_or_else(
        || "(not set)".to_owned(),
        |value| value.to_string_lossy().into_owned(),
    )
}
