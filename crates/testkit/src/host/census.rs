//! Counting the processes of a host, from outside of it. A process belongs to a host if it is in
//! the host's process namespace, or in one below it, as those of containers are.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt as _;

use anyhow::{Context as _, Result, bail};
use fs_err as fs;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::namespaces::Namespaces;

/// A process of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id as the test sees it, for signals.
    pub id: u32,
    /// Its id as programs of the host see it.
    pub host_id: u32,
    pub name: String,
    /// Its arguments, separated by blanks.
    pub command: String,
    /// Whether it stands still.
    pub stopped: bool,
    /// Whether it has ended and waits for its parent to notice.
    pub ended: bool,
}

impl fmt::Display for Process {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            host_id,
            name,
            command,
            ..
        } = self;
        let state = if self.stopped {
            " (stopped)"
        } else if self.ended {
            " (ended)"
        } else {
            ""
        };
        write!(formatter, "{host_id} {name}{state}: {command}")
    }
}

/// The number that no namespace has.
const NO_NAMESPACE: u64 = 0;

struct Entry {
    id: u32,
    parent: u32,
    name: String,
    state: char,
    /// The ids in the machine's, the lab's, the host's and further namespaces.
    ids: Vec<u32>,
    namespace: u64,
}

/// Every process in the process namespace of `namespaces`, or below.
pub(crate) fn members(namespaces: &Namespaces) -> Result<Vec<Process>> {
    let namespace = namespaces.process_namespace()?;
    let entries = all()?;
    let mut inside: HashSet<u32> = HashSet::new();
    let mut depth = 0;
    loop {
        let before = inside.len();
        for entry in &entries {
            if entry.namespace == namespace {
                depth = entry.ids.len() - 1;
                inside.insert(entry.id);
            } else if inside.contains(&entry.parent) {
                inside.insert(entry.id);
            }
        }
        if inside.len() == before {
            break;
        }
    }
    let members = entries
        .into_iter()
        .filter(|entry| inside.contains(&entry.id));
    Ok(members.map(|entry| entry.into_process(depth)).collect())
}

/// The one child that process `parent` has.
pub(crate) fn only_child_of(parent: u32) -> Result<u32> {
    let children: Vec<u32> = all()?
        .iter()
        .filter(|entry| entry.parent == parent)
        .map(|entry| entry.id)
        .collect();
    match children.as_slice() {
        [child] => Ok(*child),
        _ => bail!(
            "process {parent} has {} children instead of one",
            children.len()
        ),
    }
}

/// Sends `signal`; a process that has ended already is fine.
pub(crate) fn signal(id: u32, signal: Signal) -> Result<()> {
    let target = Pid::from_raw(i32::try_from(id)?);
    match kill(target, signal) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(error) => {
            Err(error).with_context(|| format!("could not send {signal} to process {id}"))
        }
    }
}

/// The id that process `id` has in its own namespace.
pub(crate) fn innermost_id(id: u32) -> Result<u32> {
    let entry = read(id)?.with_context(|| format!("process {id} has ended"))?;
    entry
        .ids
        .last()
        .copied()
        .with_context(|| format!("process {id} has no id"))
}

impl Entry {
    fn into_process(self, depth: usize) -> Process {
        // A process that has ended since has no arguments any more.
        let command = fs::read(format!("/proc/{}/cmdline", self.id)).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        Process {
            id: self.id,
            host_id: self.ids.get(depth).copied().unwrap_or_default(),
            name: self.name,
            command: command.trim_end().to_owned(),
            stopped: matches!(self.state, 'T' | 't'),
            ended: matches!(self.state, 'Z' | 'X'),
        }
    }
}

fn all() -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for folder in fs::read_dir("/proc")? {
        let Some(id) = folder?
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        entries.extend(read(id)?);
    }
    Ok(entries)
}

/// Reads what `/proc` says about a process; nothing if it has ended meanwhile.
fn read(id: u32) -> Result<Option<Entry>> {
    let Some(status) = unless_gone(fs::read_to_string(format!("/proc/{id}/status")))? else {
        return Ok(None);
    };
    let field = |name: &str| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(str::trim)
            .with_context(|| format!("/proc/{id}/status has no {name}"))
    };
    let ids = field("NSpid")?
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    Ok(Some(Entry {
        id,
        parent: field("PPid")?.parse()?,
        name: field("Name")?.to_owned(),
        state: field("State")?.chars().next().unwrap_or('?'),
        ids,
        // Not shown for one that has ended, nor for one of the machine with more rights than ours;
        // the processes of a host never have more.
        namespace: fs::metadata(format!("/proc/{id}/ns/pid"))
            .map_or(NO_NAMESPACE, |metadata| metadata.ino()),
    }))
}

fn unless_gone<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        // fs_err wraps the error of the system, whose number says that the process is gone.
        Err(error) if error.to_string().contains("os error 3)") => Ok(None),
        Err(error) => Err(error),
    }
}
