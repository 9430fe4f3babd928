//! What pods use, read from cgroups, from their network namespaces and from their folders.

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::runtime::{OciRuntime, PodEntry};
use crate::{ContainerState, ContainerStats, PodId, PodNetwork, PodStats, Usage};

/// A folder is walked through this often at most: others ask much more often what a pod uses.
const WALK: Duration = Duration::from_mins(1);
/// A folder with more entries than this is not measured to its end.
const MOST_ENTRIES: u64 = 200_000;

/// What the folders of a pod's containers took when they were last walked through, by container.
#[derive(Debug, Default)]
pub(super) struct Walks(Mutex<BTreeMap<String, (Instant, Usage)>>);

impl Walks {
    /// What the folder of a container takes, as of a short while ago.
    fn usage(&self, container: &str, folder: &Utf8Path, now: Instant) -> Usage {
        let known = self.known().get(container).copied();
        if let Some((_, usage)) = known.filter(|(when, _)| now.duration_since(*when) < WALK) {
            return usage;
        }
        let found = usage(folder);
        self.known().insert(container.to_owned(), (now, found));
        found
    }

    /// Forgets containers that are no more.
    fn retain(&self, is_there: impl Fn(&str) -> bool) {
        self.known().retain(|container, _| is_there(container));
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, (Instant, Usage)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OciRuntime {
    /// What a pod uses now; `None` if nothing of it runs.
    pub(super) fn measure(&self, entry: &PodEntry) -> Option<PodStats> {
        let (shim, spec, containers) = {
            let live = entry.live();
            let running: Vec<(String, String, String, Utf8PathBuf)> = live
                .containers
                .iter()
                .filter(|(_, found)| matches!(found.state, ContainerState::Running { .. }))
                .map(|(id, found)| {
                    let log = live
                        .record
                        .spec
                        .log_directory
                        .join(&found.record.spec.log_path);
                    (
                        id.clone(),
                        found.record.spec.name.clone(),
                        found.record.cgroup.clone(),
                        log,
                    )
                })
                .collect();
            (live.shim?, live.record.spec.clone(), running)
        };
        let network = (spec.network == PodNetwork::Own)
            .then(|| fs::read_to_string(format!("/proc/{shim}/net/dev")).ok())
            .flatten()
            .map(|text| traffic(&text));
        let now = Instant::now();
        entry
            .walks
            .retain(|id| containers.iter().any(|(there, ..)| there == id));
        Some(PodStats {
            pod: PodId(entry.id.clone()),
            taken: Timestamp::now(),
            containers: containers
                .into_iter()
                .map(|(id, name, group, log)| ContainerStats {
                    name,
                    cpu: self.cgroups.cpu(&group),
                    memory: self.cgroups.memory(&group),
                    writable: Some(entry.walks.usage(
                        &id,
                        &entry.folder.container(&id).join("upper"),
                        now,
                    )),
                    logs: fs::metadata(&log).ok().map(|metadata| Usage {
                        used_bytes: metadata.blocks() * 512,
                        inodes_used: Some(1),
                    }),
                })
                .collect(),
            network,
            processes: self
                .cgroups
                .process_count(&self.cgroups.pod(&spec.cgroup_parent, &spec.uid)),
        })
    }
}

/// Bytes received and sent by all links but the one to itself.
fn traffic(text: &str) -> (u64, u64) {
    let mut total = (0, 0);
    for line in text.lines() {
        let Some((name, numbers)) = line.split_once(':') else {
            continue;
        };
        let numbers: Vec<u64> = numbers
            .split_whitespace()
            .filter_map(|number| number.parse().ok())
            .collect();
        if let (false, [received, .., _, _, _, _, _, _, _]) =
            (name.trim() == "lo", numbers.as_slice())
        {
            total.0 += received;
            total.1 += numbers.get(8).copied().unwrap_or(0);
        }
    }
    total
}

/// What a folder takes on disk.
fn usage(folder: &Utf8Path) -> Usage {
    let (mut bytes, mut entries) = (0, 0);
    let mut pending = vec![folder.as_std_path().to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            // What goes away while we look is not used any more.
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            bytes += metadata.blocks() * 512;
            entries += 1;
            if metadata.is_dir() && entries < MOST_ENTRIES {
                pending.push(entry.path());
            }
        }
    }
    Usage {
        used_bytes: bytes,
        inodes_used: Some(entries),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_not_walked_through_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap();
        let (walks, now) = (Walks::default(), Instant::now());
        assert_eq!(walks.usage("c", path, now).inodes_used, Some(0));
        fs::write(path.join("file"), "x").unwrap();
        assert_eq!(walks.usage("c", path, now + WALK / 2).inodes_used, Some(0));
        assert_eq!(walks.usage("c", path, now + WALK).inodes_used, Some(1));
        walks.retain(|container| container != "c");
        assert!(walks.known().is_empty());
    }

    #[test]
    fn traffic_is_that_of_all_links_but_loopback() {
        let text = "Inter-|   Receive                          |  Transmit\n \
            face |bytes    packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed\n    \
            lo:     500       5    0    0    0     0          0         0      500       5    0    0    0     0       0          0\n  \
            eth0:    1000      10    0    0    0     0          0         0      200       2    0    0    0     0       0          0\n";
        assert_eq!(traffic(text), (1000, 200));
    }
}
