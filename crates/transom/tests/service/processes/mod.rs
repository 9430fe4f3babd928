//! Processes as a stranger sees them, who did not start them. Invariant: nothing here asks the
//! supervisor, so that what it says can be checked.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(windows)]
use windows as system;

pub(crate) use system::{any_runs, is_alive, kill, kill_below, make_executable};

/// The file name of a program.
pub(crate) fn program_name(name: &str) -> String {
    format!("{name}{}", std::env::consts::EXE_SUFFIX)
}
