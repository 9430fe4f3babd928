//! `testkit-echo act STEP…`: a service in a sentence. Invariant: steps run in their order, each says
//! on standard output what it did, and the exit code is 0 unless a step says otherwise.
//!
//! ```text
//! say:TEXT  env:NAME  folder      print the text, NAME=value, or the current folder
//! cat:PATH  list:PATH             print a file, or the names in a folder
//! write:PATH=TEXT                 write a file
//! once:PATH                       make a file and fail; go on if it is there
//! need:NAME                       fail if the variable is not set
//! pause:MS  ready  exit:CODE      wait, tell the supervisor READY=1, end with a code
//! spawn                           start a child that does not stop when asked
//! serve                           wait until asked to stop, then say `stopping`
//! deaf                            wait for ever, even when asked to stop
//! ```
//!
//! A path that begins with `/` is one of the container: below `CONTAINER_SANDBOX_MOUNT_POINT` if that is set.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::{ending, say};

/// What is printed in place of a variable that there is not.
const NOT_SET: &str = "(not set)";

pub(crate) fn run(steps: &[&str]) -> Result<()> {
    // First of all, so that no signal finds the process unprepared.
    let ending = ending::Ending::watch(false)?;
    for step in steps {
        match step.split_once(':').unwrap_or((step, "")) {
            ("say", text) => say(text)?,
            ("env", name) => say(&format!("{name}={}", variable(name)))?,
            ("folder", _) => say(&format!("in {}", std::env::current_dir()?.display()))?,
            ("cat", path) => {
                let text = fs_err::read_to_string(inside(path))?;
                say(&format!("{path}: {}", text.trim_end()))?;
            }
            ("list", path) => say(&format!("{path}: {}", names(&inside(path))?.join(" ")))?,
            ("write", rest) => {
                let (path, text) = rest.split_once('=').context("write what?")?;
                fs_err::write(inside(path), text)?;
                say(&format!("wrote {path}"))?;
            }
            ("once", path) => {
                if !inside(path).try_exists()? {
                    fs_err::write(inside(path), "")?;
                    bail!("{path} was not there");
                }
            }
            ("need", name) if variable(name) == NOT_SET => bail!("{name} is not set"),
            ("need", _) => {}
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

/// Where a path of the container is for a process of the host.
fn inside(path: &str) -> PathBuf {
    match variable("CONTAINER_SANDBOX_MOUNT_POINT").as_str() {
        NOT_SET => PathBuf::from(path),
        root => Path::new(root).join(path.trim_start_matches('/')),
    }
}

/// The names in a folder, in order; those that begin with a point are nobody's business.
fn names(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
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
        || NOT_SET.to_owned(),
        |value| value.to_string_lossy().into_owned(),
    )
}
