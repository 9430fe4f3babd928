//! The crash walk: a scenario runs in a child process that dies at its first fault point, then at its
//! second, and so on until it completes; after every death the caller checks what is left on disk.

use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use super::fault::{DEATH_EXIT_CODE, TRANSOM_FAULT};

/// No scenario has more points than this; one that seems to runs in a circle.
const MOST_POINTS: u64 = 10_000;
const LONGEST_RUN: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(2);

/// Why a walk ended early.
#[derive(Debug, thiserror::Error)]
pub enum WalkError {
    #[error("could not run the scenario that dies at point {point}")]
    Run { point: u64, source: std::io::Error },
    #[error("the scenario that was to die at point {point} ended with {status}")]
    Failed { point: u64, status: ExitStatus },
    #[error("the scenario that dies at point {point} did not end in {LONGEST_RUN:?}")]
    TooSlow { point: u64 },
    #[error("the scenario did not complete after {MOST_POINTS} deaths")]
    Endless,
}

/// Runs the scenario until it completes, and returns how often it died.
///
/// `scenario` says how to start the child, whose `main` (or test) must call
/// [`arm_from_environment`](super::fault::arm_from_environment); it is called once for each death, so
/// it may prepare a fresh folder. `check` gets the number of the point after each death.
pub fn crash_walk(
    mut scenario: impl FnMut() -> Command,
    mut check: impl FnMut(u64),
) -> Result<u64, WalkError> {
    for point in 1..=MOST_POINTS {
        let child = scenario()
            .env(TRANSOM_FAULT, format!("die@{point}"))
            .spawn()
            .map_err(|source| WalkError::Run { point, source })?;
        let status = wait(child, point)?;
        if status.success() {
            return Ok(point - 1);
        }
        if !is_death(status) {
            return Err(WalkError::Failed { point, status });
        }
        check(point);
    }
    Err(WalkError::Endless)
}

/// A killed process has no exit code on Linux, and ours on Windows; a failed test has another.
fn is_death(status: ExitStatus) -> bool {
    status.code().is_none_or(|code| code == DEATH_EXIT_CODE)
}

fn wait(mut child: Child, point: u64) -> Result<ExitStatus, WalkError> {
    let started = Instant::now();
    let failed = |source| WalkError::Run { point, source };
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(status);
        }
        if started.elapsed() > LONGEST_RUN {
            child.kill().map_err(failed)?;
            child.wait().map_err(failed)?;
            return Err(WalkError::TooSlow { point });
        }
        std::thread::sleep(POLL);
    }
}
