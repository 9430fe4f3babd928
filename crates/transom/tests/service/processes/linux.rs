//! `/proc`, and signals.

use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Pid;

/// Whether a process with this pid runs; one that only waits to be reaped does not.
pub(crate) fn is_alive(pid: u32) -> bool {
    fs_err::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
        state.is_some_and(|state| !state.starts_with(['Z', 'X']))
    })
}

pub(crate) fn kill(pid: u32) {
    // It may have ended by itself meanwhile.
    let _ = nix::sys::signal::kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
}

/// Whether any process runs `program`.
pub(crate) fn any_runs(program: &Path) -> bool {
    !with_text(&program.display().to_string()).is_empty()
}

/// Kills every process that names `root` in its command line, until there is none.
pub(crate) fn kill_below(root: &Path) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while Instant::now() < deadline {
        let pids = with_text(&root.display().to_string());
        if pids.is_empty() {
            return;
        }
        pids.into_iter().for_each(kill);
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn with_text(text: &str) -> Vec<u32> {
    let mut pids = Vec::new();
    for entry in fs_err::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let command = fs_err::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&command).contains(text) && is_alive(pid) {
            pids.push(pid);
        }
    }
    pids
}

/// Makes a script runnable.
pub(crate) fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs_err::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}
