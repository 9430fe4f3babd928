//! The real systemd, where it runs: the same verbs are handed to `systemctl` and `journalctl`, and
//! their exit code is ours.

use std::process::Command;

use anyhow::Context as _;
use transom_model::os::Os;

use crate::context::Context;
use crate::failure::{Advice as _, Exit};

/// Made by systemd, as its first act, exactly where it is the init.
const BOOTED: &str = "/run/systemd/system";

/// Whether systemd looks after the services of this machine. Never for a machine below `--root`.
pub(crate) fn runs(cx: &Context) -> bool {
    cx.host == Os::Linux && cx.settings.root.value == "/" && fs_err::metadata(BOOTED).is_ok()
}

/// Runs `systemctl VERB FLAGS WORDS`.
pub(crate) fn systemctl(verb: &str, flags: &[&str], words: &[String]) -> anyhow::Result<Exit> {
    run(
        "systemctl",
        std::iter::once(verb).chain(flags.iter().copied()),
        words,
    )
}

/// What systemd says of a unit: active, activating, failed…
pub(crate) fn active_state(unit: &str) -> anyhow::Result<String> {
    let output = Command::new("systemctl")
        .args(["show", "--property=ActiveState", "--value", "--", unit])
        .output()
        .context("could not run systemctl")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs `journalctl FLAGS`.
pub(super) fn journalctl(flags: &[String]) -> anyhow::Result<Exit> {
    run("journalctl", std::iter::empty(), flags)
}

fn run<'a>(
    program: &str,
    flags: impl Iterator<Item = &'a str>,
    words: &[String],
) -> anyhow::Result<Exit> {
    let status = Command::new(program)
        .args(flags)
        .args(words)
        .status()
        .with_context(|| format!("could not run {program}"))
        .hint("systemd runs here, so its own tools have to be there")?;
    // Killed by a signal: there is no code to pass on.
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(Exit::Failure, |code| {
        if code == 0 {
            Exit::Success
        } else {
            Exit::Status(code)
        }
    }))
}
