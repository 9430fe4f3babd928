//! Limits of a whole group, kept by the kernel: one cgroup `transom/<group>` per controller (v1) or
//! one for all (v2), below the cgroup that we are in, so that whoever limits us limits our children.
//!
//! Invariant: a folder is removed only if it lies in our `transom` folder and holds no process.

use std::fs::File;
use std::io;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err::OpenOptions;

use super::super::{GroupId, LimitKind, LimitReport, Limits};

const FOLDER: &str = "transom";
/// How long an empty cgroup may have existed before it is taken for forgotten.
const SETTLED: Duration = Duration::from_secs(10);
/// The period over which processor time is shared out.
const CPU_PERIOD_MICROSECONDS: u64 = 100_000;

/// Where cgroups for one controller can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// A hierarchy of its own.
    V1(Utf8PathBuf),
    /// The unified hierarchy.
    V2(Utf8PathBuf),
}

fn controller(kind: LimitKind) -> Option<&'static str> {
    match kind {
        LimitKind::Memory => Some("memory"),
        LimitKind::Cpu => Some("cpu"),
        LimitKind::Processes => Some("pids"),
        _ => None,
    }
}

/// Makes the cgroups that `limits` need and returns the files by which a process joins them. What
/// cannot be had is in the report, with the reason.
pub(super) fn prepare(group: &GroupId, limits: &Limits, report: &mut LimitReport) -> Vec<File> {
    let mut joined: Vec<(Utf8PathBuf, File)> = Vec::new();
    for (kind, value) in limits.per_group() {
        match enforce(group, kind, value) {
            Ok((path, file)) => {
                report.enforced.push(kind);
                if !joined.iter().any(|(known, _)| *known == path) {
                    joined.push((path, file));
                }
            }
            Err(reason) => report.refuse(kind, reason),
        }
    }
    joined.into_iter().map(|(_, file)| file).collect()
}

fn enforce(group: &GroupId, kind: LimitKind, value: u64) -> Result<(Utf8PathBuf, File), String> {
    let name = controller(kind).ok_or("no controller exists for it")?;
    let places = places(name);
    if places.is_empty() {
        return Err(format!(
            "no cgroup hierarchy with the `{name}` controller is mounted"
        ));
    }
    let mut reasons = Vec::new();
    for place in places {
        match set_up(&place, group, name, kind, value) {
            Ok(joined) => return Ok(joined),
            Err(error) => reasons.push(error.to_string()),
        }
    }
    Err(reasons.join("; "))
}

fn set_up(
    place: &Place,
    group: &GroupId,
    name: &str,
    kind: LimitKind,
    value: u64,
) -> io::Result<(Utf8PathBuf, File)> {
    let (Place::V1(parent) | Place::V2(parent)) = place;
    let ours = parent.join(FOLDER);
    let path = ours.join(group.as_str());
    if matches!(place, Place::V2(_)) {
        write(&parent.join("cgroup.subtree_control"), &format!("+{name}"))?;
        fs_err::create_dir_all(&ours)?;
        write(&ours.join("cgroup.subtree_control"), &format!("+{name}"))?;
    }
    fs_err::create_dir_all(&path)?;
    let result = settings(place, kind, value)
        .iter()
        .try_for_each(|(file, text)| write(&path.join(file), text))
        .and_then(|()| {
            OpenOptions::new()
                .write(true)
                .open(path.join("cgroup.procs"))
        });
    match result {
        Ok(file) => Ok((path, file.into_file())),
        Err(error) => {
            remove_if_empty(&path);
            Err(error)
        }
    }
}

fn settings(place: &Place, kind: LimitKind, value: u64) -> Vec<(&'static str, String)> {
    let quota = (value * CPU_PERIOD_MICROSECONDS / 100).max(1000);
    match (place, kind) {
        (_, LimitKind::Processes) => vec![("pids.max", value.to_string())],
        (Place::V1(_), LimitKind::Memory) => vec![("memory.limit_in_bytes", value.to_string())],
        // Without this the kernel would swap rather than refuse.
        (Place::V2(_), LimitKind::Memory) => vec![
            ("memory.max", value.to_string()),
            ("memory.swap.max", "0".to_owned()),
        ],
        (Place::V1(_), LimitKind::Cpu) => vec![
            ("cpu.cfs_period_us", CPU_PERIOD_MICROSECONDS.to_string()),
            ("cpu.cfs_quota_us", quota.to_string()),
        ],
        (Place::V2(_), LimitKind::Cpu) => {
            vec![("cpu.max", format!("{quota} {CPU_PERIOD_MICROSECONDS}"))]
        }
        _ => Vec::new(),
    }
}

/// One write call: the kernel takes each call for a whole value.
fn write(path: &Utf8Path, text: &str) -> io::Result<()> {
    use std::io::Write;
    let file = OpenOptions::new().write(true).open(path);
    match file {
        // Machines without swap lack the file, and need no limit on it.
        Err(error)
            if error.kind() == io::ErrorKind::NotFound && path.ends_with("memory.swap.max") =>
        {
            Ok(())
        }
        file => file?.write_all(text.as_bytes()),
    }
}

/// Processes in the cgroups of `group`.
pub(super) fn pids(group: &GroupId) -> Vec<u32> {
    let mut pids: Vec<u32> = folders(group)
        .iter()
        .filter_map(|folder| fs_err::read_to_string(folder.join("cgroup.procs")).ok())
        .flat_map(|text| {
            text.lines()
                .filter_map(|line| line.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// Removes the cgroups of `group`, if nothing runs in them.
pub(super) fn remove(group: &GroupId) {
    for folder in folders(group) {
        remove_if_empty(&folder);
    }
}

/// Removes every cgroup of ours that holds no process, and says how many groups that were.
pub(super) fn sweep() -> usize {
    let mut removed: Vec<String> = Vec::new();
    for parent in all_parents() {
        removed.extend(sweep_folder(&parent.join(FOLDER), SETTLED));
    }
    removed.sort_unstable();
    removed.dedup();
    removed.len()
}

/// Spares what is younger than `settled`: its first process may be about to join.
fn sweep_folder(folder: &Utf8Path, settled: Duration) -> Vec<String> {
    let is_old = |path: &Utf8Path| {
        let modified = fs_err::metadata(path).and_then(|metadata| metadata.modified());
        modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age >= settled))
    };
    let Ok(items) = folder.read_dir_utf8() else {
        return Vec::new();
    };
    items
        .flatten()
        .filter(|item| item.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter(|item| is_old(item.path()) && remove_if_empty(item.path()))
        .map(|item| item.file_name().to_owned())
        .collect()
}

/// The kernel refuses to remove a cgroup with a process or a child in it, which is all the care that
/// is needed.
fn remove_if_empty(folder: &Utf8Path) -> bool {
    fs_err::remove_dir(folder).is_ok()
}

fn folders(group: &GroupId) -> Vec<Utf8PathBuf> {
    all_parents()
        .into_iter()
        .map(|parent| parent.join(FOLDER).join(group.as_str()))
        .filter(|folder| folder.is_dir())
        .collect()
}

fn all_parents() -> Vec<Utf8PathBuf> {
    let mut parents: Vec<Utf8PathBuf> = ["memory", "cpu", "pids"]
        .into_iter()
        .flat_map(places)
        .map(|(Place::V1(parent) | Place::V2(parent))| parent)
        .collect();
    parents.sort_unstable();
    parents.dedup();
    parents
}

fn places(controller: &str) -> Vec<Place> {
    let mounts = fs_err::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let own = fs_err::read_to_string("/proc/self/cgroup").unwrap_or_default();
    parse_places(&mounts, &own, controller, |path| {
        fs_err::read_to_string(path.join("cgroup.controllers")).unwrap_or_default()
    })
}

/// `v2_controllers` reads which controllers a unified cgroup has.
fn parse_places(
    mounts: &str,
    own: &str,
    controller: &str,
    v2_controllers: impl Fn(&Utf8Path) -> String,
) -> Vec<Place> {
    let mut places = Vec::new();
    for line in mounts.lines() {
        let Some((left, right)) = line.split_once(" - ") else {
            continue;
        };
        let left: Vec<&str> = left.split(' ').collect();
        let right: Vec<&str> = right.split(' ').collect();
        let (&[_, _, _, root, mount, ..], &[kind, _, options]) = (&left[..], &right[..]) else {
            continue;
        };
        match kind {
            "cgroup" if options.split(',').any(|option| option == controller) => {
                let below = own_cgroup(own, Some(controller), root);
                places.push(Place::V1(Utf8Path::new(mount).join(below)));
            }
            "cgroup2" => {
                // A cgroup with processes in it (ours) may not share out controllers, unless it is
                // the root; so the root is tried as well.
                let below = Utf8Path::new(mount).join(own_cgroup(own, None, root));
                for parent in [below, mount.into()] {
                    let has = v2_controllers(&parent);
                    let place = Place::V2(parent);
                    if has.split_whitespace().any(|name| name == controller)
                        && !places.contains(&place)
                    {
                        places.push(place);
                    }
                }
            }
            _ => {}
        }
    }
    places
}

/// Our cgroup's path below a mount that shows the hierarchy from `root` on.
fn own_cgroup<'a>(own: &'a str, controller: Option<&str>, root: &str) -> &'a str {
    let path = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let ours = match controller {
            Some(controller) => controllers.split(',').any(|name| name == controller),
            None => controllers.is_empty(),
        };
        ours.then_some(path)
    });
    let path = path.unwrap_or_default();
    let below = path
        .strip_prefix(root.trim_end_matches('/'))
        .unwrap_or_default();
    below.trim_start_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "4:memory:/box/one\n2:cpu,cpuacct:/\n0::/box/one\n";

    fn memory(mounts: &str) -> Vec<Place> {
        parse_places(mounts, OWN, "memory", |_| "cpu memory pids".to_owned())
    }

    #[test]
    fn a_hierarchy_of_its_own_is_used_below_our_cgroup() {
        let mounts = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        assert_eq!(
            memory(mounts),
            [Place::V1("/sys/fs/cgroup/memory/box/one".into())]
        );
        let shared = "32 31 0:29 / /c/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n";
        assert_eq!(
            parse_places(shared, OWN, "cpu", |_| String::new()),
            [Place::V1("/c/cpu/".into())]
        );
    }

    #[test]
    fn a_mount_that_shows_our_cgroup_as_its_root_is_used_at_its_root() {
        let mounts = "35 31 0:32 /box/one /cg rw - cgroup cgroup rw,memory\n";
        assert_eq!(memory(mounts), [Place::V1("/cg/".into())]);
    }

    #[test]
    fn the_unified_hierarchy_is_tried_at_our_place_then_at_its_root() {
        let mounts = "41 31 0:38 / /u rw - cgroup2 cgroup2 rw,nsdelegate\n";
        assert_eq!(
            memory(mounts),
            [Place::V2("/u/box/one".into()), Place::V2("/u".into())]
        );
        let without = parse_places(mounts, OWN, "memory", |_| "cpu".to_owned());
        assert_eq!(without, []);
    }

    #[test]
    fn nonsense_and_other_mounts_are_no_place() {
        assert_eq!(
            memory("garbage\n1 2 3 - cgroup\n22 1 0:1 / / rw - ext4 /dev/x rw\n"),
            []
        );
    }

    #[test]
    fn only_old_and_empty_folders_are_swept() {
        let guard = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(guard.path()).unwrap();
        fs_err::create_dir_all(folder.join("used/child")).unwrap();
        fs_err::create_dir(folder.join("stale")).unwrap();
        assert_eq!(sweep_folder(folder, SETTLED), Vec::<String>::new());
        assert_eq!(sweep_folder(folder, Duration::ZERO), ["stale"]);
        assert!(folder.join("used/child").exists());
        assert_eq!(
            sweep_folder(&folder.join("missing"), SETTLED),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_percentage_becomes_a_share_of_the_period() {
        let v2 = Place::V2("/u".into());
        let settings = settings(&v2, LimitKind::Cpu, 150);
        assert_eq!(settings, [("cpu.max", "150000 100000".to_owned())]);
    }
}
