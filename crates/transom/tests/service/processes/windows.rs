//! `taskkill`, and the rule that a program that runs cannot be deleted.

use std::path::Path;
use std::process::{Command, Stdio};

use transom_host::process::{Native, Processes as _};

pub(crate) fn is_alive(pid: u32) -> bool {
    Native.identify(pid).is_some()
}

pub(crate) fn kill(pid: u32) {
    // It may have ended by itself meanwhile.
    let _ = Command::new("taskkill")
        .args(["/F", "/PID", &pid.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

/// Whether any process runs `program`, which is put back when none does.
pub(crate) fn any_runs(program: &Path) -> bool {
    let Ok(bytes) = fs_err::read(program) else {
        return true;
    };
    if fs_err::remove_file(program).is_err() {
        return true;
    }
    fs_err::write(program, bytes).unwrap();
    false
}

/// Services end with their keepers, which are killed by their records: nothing is left to do.
pub(crate) fn kill_below(_root: &Path) {}

/// A script is runnable by its name.
pub(crate) fn make_executable(_path: &Path) {}
