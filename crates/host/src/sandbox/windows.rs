//! On Windows: a job object that ends with us, and nothing more.

use std::time::Duration;

use super::{Ended, Sandbox, SandboxError};
use crate::process::{Native, Output, Processes as _, Spawn};

/// How long a killed tree may take to be gone.
const KILL_PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn run_sandboxed(sandbox: &Sandbox) -> Result<Ended, SandboxError> {
    if !sandbox.mounts.is_empty() {
        return Err(SandboxError::MountsNotPossible);
    }
    let mut spawn = Spawn::new(sandbox.program.clone());
    spawn.args.clone_from(&sandbox.arguments);
    spawn.env.clone_from(&sandbox.environment);
    spawn.directory = Some(sandbox.directory.clone());
    spawn.stdout = Output::Append(sandbox.log.clone());
    spawn.stderr = Output::Append(sandbox.log.clone());
    let process = Native.spawn(&spawn).map_err(SandboxError::Spawn)?;
    let exit = process.wait(Some(sandbox.time_limit));
    // Also what the program left behind.
    process
        .kill_tree(KILL_PATIENCE)
        .map_err(SandboxError::Kill)?;
    Ok(match exit.map_err(SandboxError::WaitProcess)? {
        Some(exit) => Ended::Exit(exit),
        None => Ended::TimedOut,
    })
}
