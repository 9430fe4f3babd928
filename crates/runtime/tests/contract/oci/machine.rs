//! What tests of containers need of a machine, and what they must not leave on it.

use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const LONGEST: Duration = Duration::from_secs(10);

/// Whether this process may make containers. Says why not.
pub(crate) fn is_possible() -> bool {
    let tried = std::thread::spawn(|| {
        unshare(
            CloneFlags::CLONE_FS
                | CloneFlags::CLONE_NEWNS
                | CloneFlags::CLONE_NEWNET
                | CloneFlags::CLONE_NEWIPC,
        )
    });
    let allowed = tried.join().unwrap();
    if let Err(error) = allowed {
        eprintln!("tests of the oci runtime are left out: no namespaces ({error})");
    }
    allowed.is_ok()
}

/// Kills all that is in a group of ours, in every hierarchy, and removes it.
pub(crate) fn remove_cgroups(name: &str) {
    let mut tops = vec![format!("/sys/fs/cgroup/{name}")];
    for entry in fs_err::read_dir("/sys/fs/cgroup")
        .into_iter()
        .flatten()
        .flatten()
    {
        tops.push(format!("{}/{name}", entry.path().display()));
    }
    for top in tops {
        let began = Instant::now();
        while !remove_tree(std::path::Path::new(&top)) && began.elapsed() < LONGEST {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Whether it is gone.
fn remove_tree(folder: &std::path::Path) -> bool {
    for entry in fs_err::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&entry.path());
        }
    }
    let members = fs_err::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    for pid in members
        .lines()
        .filter_map(|line| line.parse().ok())
        .filter(|pid| *pid > 1)
    {
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
    match fs_err::remove_dir(folder) {
        Ok(()) => true,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// The processes of a group and all below it.
pub(crate) fn members(group: &str) -> Vec<i32> {
    let top = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"];
    let top = top
        .iter()
        .map(|top| std::path::Path::new(top).join(group))
        .find(|folder| folder.is_dir());
    let mut pending: Vec<_> = top.into_iter().collect();
    let mut found = Vec::new();
    while let Some(folder) = pending.pop() {
        let text = fs_err::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        found.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()));
        let inner = fs_err::read_dir(&folder).into_iter().flatten().flatten();
        pending.extend(inner.map(|entry| entry.path()).filter(|path| path.is_dir()));
    }
    found
}

/// What a process does not share with others, in KiB.
pub(crate) fn own_memory(pid: i32) -> u64 {
    let text = fs_err::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let private = text.lines().filter(|line| line.starts_with("Private"));
    private
        .filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
        .sum()
}

/// Waits until a helper of a shim is at work: the one that makes a container.
pub(crate) fn wait_for_helper(cgroup: &str) {
    let began = Instant::now();
    let shims = format!("{cgroup}/shims");
    while !members(&shims).into_iter().any(is_helper) {
        assert!(began.elapsed() < LONGEST, "no container is being started");
        std::thread::yield_now();
    }
}

fn is_helper(pid: i32) -> bool {
    let words = fs_err::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    words.split(|byte| *byte == 0).any(|word| word == b"run")
}

/// Waits until so many are in a group: whoever was killed is there for a moment longer.
pub(crate) fn wait_for_members(group: &str, count: usize) {
    let began = Instant::now();
    loop {
        let found = members(group);
        if found.len() == count {
            return;
        }
        assert!(began.elapsed() < LONGEST, "{found:?} are in {group}");
        std::thread::yield_now();
    }
}
