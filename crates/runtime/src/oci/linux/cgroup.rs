//! Limits and counters of pods and containers, with version 1 and version 2 of cgroups alike.
//!
//! Invariant: only groups below our own are ever changed or removed.

use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{Cpu, Memory, Resources};

const ROOT: &str = "/sys/fs/cgroup";
/// The length of a period in microseconds: what everybody else takes.
const PERIOD: u64 = 100_000;
/// Killed processes end at once, unless their disk does not answer.
const LONGEST_END: Duration = Duration::from_secs(20);
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);
/// Controllers that a pod's limits need of those above it.
const NEEDED: [&str; 5] = ["cpu", "cpuset", "memory", "pids", "io"];

/// The groups of this machine.
#[derive(Clone, Debug)]
pub(super) struct Cgroups {
    /// The name of the group that all of ours are below of.
    own: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// Where each controller is mounted.
    One(Vec<(String, Utf8PathBuf)>),
    Two,
}

impl Cgroups {
    pub(super) fn find(own: &str) -> io::Result<Self> {
        let kind = if Utf8Path::new(ROOT).join("cgroup.controllers").exists() {
            Kind::Two
        } else {
            let mounts = fs::read_to_string("/proc/self/mounts")?;
            let controllers = parse_mounts(&mounts);
            if controllers.is_empty() {
                return Err(io::Error::other("no cgroup controller is mounted"));
            }
            Kind::One(controllers)
        };
        Ok(Self {
            own: own.to_owned(),
            kind,
        })
    }

    pub(super) fn is_unified(&self) -> bool {
        matches!(self.kind, Kind::Two)
    }

    /// The group of a pod, as a path below the controllers.
    pub(super) fn pod(&self, parent: &str, uid: &str) -> String {
        let names: Vec<&str> = parent
            .split('/')
            .filter(|name| !matches!(*name, "" | "." | ".."))
            .collect();
        if names.is_empty() {
            format!("/{}/pod{uid}", self.own)
        } else {
            format!("/{}/{}", self.own, names.join("/"))
        }
    }

    fn folders(&self, group: &str) -> Vec<Utf8PathBuf> {
        let group = group.trim_start_matches('/');
        match &self.kind {
            Kind::One(controllers) => controllers
                .iter()
                .map(|(_, folder)| folder.join(group))
                .collect(),
            Kind::Two => vec![Utf8Path::new(ROOT).join(group)],
        }
    }

    fn folder(&self, controller: &str, group: &str) -> Option<Utf8PathBuf> {
        let group = group.trim_start_matches('/');
        match &self.kind {
            Kind::One(controllers) => {
                let found = controllers.iter().find(|(name, _)| name == controller);
                found.map(|(_, folder)| folder.join(group))
            }
            Kind::Two => Some(Utf8Path::new(ROOT).join(group)),
        }
    }

    /// The file that counts how often memory ran out.
    pub(super) fn memory_events(&self, group: &str) -> Option<Utf8PathBuf> {
        let folder = self.folder("memory", group)?;
        Some(folder.join(if self.is_unified() {
            "memory.events"
        } else {
            "memory.oom_control"
        }))
    }

    /// The file that lists the processes of a group.
    pub(super) fn processes(&self, group: &str) -> Utf8PathBuf {
        let folder = ["pids", "memory", "cpu"]
            .iter()
            .find_map(|controller| self.folder(controller, group));
        folder
            .unwrap_or_else(|| Utf8Path::new(ROOT).join(group.trim_start_matches('/')))
            .join("cgroup.procs")
    }

    /// Makes a group with limits for all below it.
    pub(super) fn ensure(&self, group: &str, resources: &Resources) -> io::Result<()> {
        for folder in self.folders(group) {
            fs::create_dir_all(&folder)?;
        }
        match &self.kind {
            Kind::One(_) => self.fill_processors(group)?,
            Kind::Two => delegate(group)?,
        }
        self.limit(group, resources)
    }

    /// Makes a group for processes and no groups below it.
    pub(super) fn ensure_leaf(&self, group: &str) -> io::Result<()> {
        for folder in self.folders(group) {
            fs::create_dir_all(&folder)?;
        }
        match &self.kind {
            Kind::One(_) => self.fill_processors(group),
            Kind::Two => Ok(()),
        }
    }

    /// A group of version 1 takes no process before it is told which processors it has.
    fn fill_processors(&self, group: &str) -> io::Result<()> {
        let Some(top) = self.folder("cpuset", "") else {
            return Ok(());
        };
        let mut above = top;
        for name in group.split('/').filter(|name| !name.is_empty()) {
            let folder = above.join(name);
            for file in ["cpuset.cpus", "cpuset.mems"] {
                if fs::read_to_string(folder.join(file))?.trim().is_empty() {
                    fs::write(folder.join(file), fs::read(above.join(file))?)?;
                }
            }
            above = folder;
        }
        Ok(())
    }

    /// Sets limits. What is `None` stays as it is.
    pub(super) fn limit(&self, group: &str, resources: &Resources) -> io::Result<()> {
        let set = |controller: &str, file: &str, value: String| -> io::Result<()> {
            match self.folder(controller, group) {
                Some(folder) => fs::write(folder.join(file), value),
                None => Err(io::Error::other(format!(
                    "the controller {controller} is not there"
                ))),
            }
        };
        let unified = self.is_unified();
        if let Some(millis) = resources.cpu_request_millis {
            let shares = shares(millis);
            if unified {
                set(
                    "cpu",
                    "cpu.weight",
                    (1 + (shares - 2) * 9999 / 262_142).to_string(),
                )?;
            } else {
                set("cpu", "cpu.shares", shares.to_string())?;
            }
        }
        if let Some(millis) = resources.cpu_limit_millis {
            let quota = quota(millis);
            if unified {
                set("cpu", "cpu.max", format!("{quota} {PERIOD}"))?;
            } else {
                set("cpu", "cpu.cfs_period_us", PERIOD.to_string())?;
                set("cpu", "cpu.cfs_quota_us", quota.to_string())?;
            }
        }
        if let Some(bytes) = resources.memory_limit_bytes {
            set(
                "memory",
                if unified {
                    "memory.max"
                } else {
                    "memory.limit_in_bytes"
                },
                bytes.to_string(),
            )?;
        }
        if let Some(count) = resources.pids_limit {
            set("pids", "pids.max", count.to_string())?;
        }
        Ok(())
    }

    /// Sets limits of processor and memory, and takes those away that are `None`.
    pub(super) fn change(&self, group: &str, resources: &Resources) -> io::Result<()> {
        let (cpu, memory, none) = if self.is_unified() {
            ("cpu.max", "memory.max", "max")
        } else {
            ("cpu.cfs_quota_us", "memory.limit_in_bytes", "-1")
        };
        for (is_limited, controller, file) in [
            (resources.cpu_limit_millis.is_some(), "cpu", cpu),
            (resources.memory_limit_bytes.is_some(), "memory", memory),
        ] {
            if let Some(folder) = self.folder(controller, group).filter(|_| !is_limited) {
                fs::write(folder.join(file), none)?;
            }
        }
        self.limit(group, resources)
    }

    /// Moves a process into a group.
    pub(super) fn add(&self, group: &str, pid: u32) -> io::Result<()> {
        for folder in self.folders(group) {
            fs::write(folder.join("cgroup.procs"), pid.to_string())?;
        }
        Ok(())
    }

    /// The processes of a group and of all below it.
    pub(super) fn members(&self, group: &str) -> Vec<i32> {
        let list = self.processes(group);
        list.parent().map(processes_below).unwrap_or_default()
    }

    /// Kills all that runs in a group or below it now.
    pub(super) fn kill(&self, group: &str) {
        for pid in self.members(group) {
            // Whoever is gone already needs no signal.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }

    /// Kills all that runs in a group and removes it with all below it. Waits, so never where others wait.
    pub(super) fn clear(&self, group: &str) -> io::Result<()> {
        let began = Instant::now();
        loop {
            self.kill(group);
            match self.remove(group) {
                // Whoever was killed is there for a moment longer.
                Err(error)
                    if error.kind() == io::ErrorKind::ResourceBusy
                        && began.elapsed() < LONGEST_END =>
                {
                    sleep(BETWEEN_LOOKS);
                }
                removed => return removed,
            }
        }
    }

    /// Removes the group that all of ours are below of.
    pub(super) fn clear_all(&self) -> io::Result<()> {
        self.clear(&format!("/{}", self.own))
    }

    fn remove(&self, group: &str) -> io::Result<()> {
        for folder in self.folders(group) {
            remove_folders(&folder)?;
        }
        Ok(())
    }

    pub(super) fn cpu(&self, group: &str) -> Option<Cpu> {
        let used_nanoseconds = if self.is_unified() {
            let text = fs::read_to_string(self.folder("cpu", group)?.join("cpu.stat")).ok()?;
            value_of(&text, "usage_usec")?.saturating_mul(1000)
        } else {
            read_number(&self.folder("cpuacct", group)?.join("cpuacct.usage"))?
        };
        Some(Cpu { used_nanoseconds })
    }

    pub(super) fn memory(&self, group: &str) -> Option<Memory> {
        let folder = self.folder("memory", group)?;
        let stat = fs::read_to_string(folder.join("memory.stat")).ok()?;
        let (usage, inactive, rss, faults) = if self.is_unified() {
            ("memory.current", "inactive_file", "anon", "pgfault")
        } else {
            (
                "memory.usage_in_bytes",
                "total_inactive_file",
                "total_rss",
                "total_pgfault",
            )
        };
        let usage_bytes = read_number(&folder.join(usage))?;
        Some(Memory {
            usage_bytes,
            working_set_bytes: usage_bytes.saturating_sub(value_of(&stat, inactive).unwrap_or(0)),
            rss_bytes: value_of(&stat, rss),
            page_faults: value_of(&stat, faults),
        })
    }

    pub(super) fn process_count(&self, group: &str) -> Option<u64> {
        read_number(&self.folder("pids", group)?.join("pids.current"))
    }
}

/// In version 2 a group has to be told which controllers those below it get.
fn delegate(group: &str) -> io::Result<()> {
    let mut folder = Utf8PathBuf::from(ROOT);
    for name in std::iter::once("").chain(group.split('/').filter(|name| !name.is_empty())) {
        folder.push(name);
        let there = fs::read_to_string(folder.join("cgroup.controllers"))?;
        let wanted: Vec<String> = there
            .split_whitespace()
            .filter(|name| NEEDED.contains(name))
            .map(|name| format!("+{name}"))
            .collect();
        fs::write(folder.join("cgroup.subtree_control"), wanted.join(" "))?;
    }
    Ok(())
}

fn folders_in(folder: &Utf8Path) -> Vec<Utf8PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| Utf8PathBuf::try_from(entry.path()).ok())
        .collect()
}

/// The processes of the group of a folder, and of all below it.
pub(super) fn processes_below(folder: &Utf8Path) -> Vec<i32> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        let numbers = text.lines().filter_map(|line| line.trim().parse().ok());
        // Zero stands for a process that we cannot name, and would mean ourselves.
        found.extend(numbers.filter(|pid: &i32| *pid > 1));
        pending.extend(folders_in(&folder));
    }
    found
}

/// Inner groups first.
fn remove_folders(folder: &Utf8Path) -> io::Result<()> {
    let mut found = vec![folder.to_owned()];
    let mut index = 0;
    while index < found.len() {
        let inner = folders_in(&found[index]);
        found.extend(inner);
        index += 1;
    }
    for folder in found.iter().rev() {
        match fs::remove_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn read_number(path: &Utf8Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn value_of(text: &str, name: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
        .and_then(|value| value.trim().parse().ok())
}

pub(super) fn shares(millis: u64) -> u64 {
    (millis.saturating_mul(1024) / 1000).clamp(2, 262_144)
}

/// Less than a millisecond per period the kernel does not take.
pub(super) fn quota(millis: u64) -> u64 {
    (millis.saturating_mul(PERIOD) / 1000).max(1000)
}

pub(super) const fn period() -> u64 {
    PERIOD
}

fn parse_mounts(mounts: &str) -> Vec<(String, Utf8PathBuf)> {
    const KNOWN: [&str; 12] = [
        "blkio",
        "cpu",
        "cpuacct",
        "cpuset",
        "devices",
        "freezer",
        "hugetlb",
        "memory",
        "net_cls",
        "net_prio",
        "perf_event",
        "pids",
    ];
    let mut found: Vec<(String, Utf8PathBuf)> = Vec::new();
    for line in mounts.lines() {
        let mut words = line.split_whitespace();
        let (Some(_), Some(folder), Some("cgroup"), Some(options)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        for option in options.split(',').filter(|option| KNOWN.contains(option)) {
            if !found.iter().any(|(name, _)| name == option) {
                found.push((option.to_owned(), Utf8PathBuf::from(folder)));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_found_where_they_are_mounted_also_two_in_one_folder() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
            cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,cpu,cpuacct 0 0\n\
            cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0\n\
            cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let folder = Utf8PathBuf::from("/sys/fs/cgroup/cpu,cpuacct");
        assert_eq!(
            parse_mounts(mounts),
            [
                ("cpu".to_owned(), folder.clone()),
                ("cpuacct".to_owned(), folder)
            ]
        );
    }

    #[test]
    fn shares_and_quotas_stay_in_what_the_kernel_takes() {
        assert_eq!(
            (shares(0), shares(1000), shares(u64::MAX)),
            (2, 1024, 262_144)
        );
        assert_eq!((quota(1), quota(500)), (1000, 50_000));
    }

    #[test]
    fn the_group_of_a_pod_never_leads_out_of_ours() {
        let groups = Cgroups {
            own: "ours".to_owned(),
            kind: Kind::Two,
        };
        assert_eq!(groups.pod("../../etc//x", "1"), "/ours/etc/x");
        assert_eq!(groups.pod("", "1"), "/ours/pod1");
    }
}
