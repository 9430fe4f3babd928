//! Starting other programs: each is shown before it runs, and a failure keeps its exit code, so that
//! `cargo xtask` can end with it.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::console;

/// A program ended badly.
#[derive(Debug)]
pub(crate) struct Failed {
    line: String,
    /// What `cargo xtask` should exit with: the program's own code where it has one.
    pub(crate) code: u8,
}

impl std::fmt::Display for Failed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "`{}` failed with exit code {}",
            self.line, self.code
        )
    }
}

impl std::error::Error for Failed {}

/// Runs a program with our terminal, showing its command line first.
pub(crate) fn visibly(command: &mut Command) -> Result<()> {
    let line = shown(command);
    console::line(&format!("  $ {line}"));
    let status = command
        .status()
        .with_context(|| format!("could not start `{line}`"))?;
    finish(line, status)
}

/// Runs a program whose output only matters if it fails.
pub(crate) fn quietly(command: &mut Command) -> Result<()> {
    output(command).map(drop)
}

/// Shows the command line of a program that says too much, and runs it quietly.
pub(crate) fn announced(command: &mut Command) -> Result<()> {
    console::line(&format!("  $ {}", shown(command)));
    quietly(command)
}

/// Runs a program and returns what it wrote to standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = shown(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("could not start `{line}`"))?;
    finish(line, output.status).map_err(|error| {
        match String::from_utf8_lossy(&output.stderr).trim() {
            "" => error,
            reason => error.context(reason.to_owned()),
        }
    })?;
    String::from_utf8(output.stdout).context("its output is not UTF-8")
}

/// Runs a program that might hang, and ends it after `limit`.
pub(crate) fn bounded(command: &mut Command, limit: Duration) -> Result<String> {
    let line = shown(command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("could not start `{line}`"))?;
    let mut pipe = child.stdout.take().context("no pipe")?;
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).map(|_| text)
    });
    let end = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            anyhow::bail!("`{line}` did not end within {}", console::duration(limit));
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    finish(line, status)?;
    match reader.join() {
        Ok(text) => Ok(text?),
        Err(_) => anyhow::bail!("the reader of a program's output panicked"),
    }
}

fn finish(line: String, status: std::process::ExitStatus) -> Result<()> {
    if status.success() {
        return Ok(());
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Err(Failed {
        line,
        code: code.unwrap_or(1),
    }
    .into())
}

/// The command as one would type it, without the environment.
pub(crate) fn shown(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The exit code that an error stands for.
pub(crate) fn exit_code(error: &anyhow::Error) -> u8 {
    error
        .downcast_ref::<Failed>()
        .map_or(1, |failed| failed.code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_keeps_the_programs_exit_code() {
        let error = quietly(Command::new("sh").args(["-c", "echo why >&2; exit 7"])).unwrap_err();
        assert_eq!(exit_code(&error), 7);
        assert_eq!(error.to_string(), "why");
    }

    #[test]
    fn a_program_that_hangs_is_ended() {
        let started = Instant::now();
        let limit = Duration::from_millis(100);
        let error = bounded(Command::new("sleep").arg("60"), limit).unwrap_err();
        assert!(started.elapsed() < Duration::from_secs(30));
        assert_eq!(error.to_string(), "`sleep 60` did not end within 100ms");
    }

    #[test]
    fn a_program_that_does_not_exist_is_named() {
        let error = output(&mut Command::new("/nowhere/program")).unwrap_err();
        assert_eq!(error.to_string(), "could not start `/nowhere/program`");
    }
}
