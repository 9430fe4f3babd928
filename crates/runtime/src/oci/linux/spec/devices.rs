//! The devices of the node, for containers that may use all of them.

use std::os::unix::fs::{FileTypeExt, MetadataExt};

use camino::Utf8PathBuf;
use fs_err as fs;
use serde_json::{Value, json};

/// A container has its own of these.
const OWN: [&str; 7] = [
    "/dev/pts",
    "/dev/shm",
    "/dev/fd",
    "/dev/mqueue",
    "/dev/.lxc",
    "/dev/console",
    "/dev/ptmx",
];
/// Every container has these anyway.
const ALWAYS: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];
const DEEPEST: usize = 8;

/// All devices below `/dev`, as the OCI describes them.
pub(in super::super) fn host_devices() -> Vec<Value> {
    let mut found = Vec::new();
    let mut pending = vec![(Utf8PathBuf::from("/dev"), 0)];
    while let Some((folder, depth)) = pending.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(path) = Utf8PathBuf::try_from(entry.path()) else {
                continue;
            };
            if OWN.contains(&path.as_str()) || ALWAYS.contains(&path.as_str()) {
                continue;
            }
            // A device that goes away meanwhile is none.
            let Ok(metadata) = fs::symlink_metadata(&path) else {
                continue;
            };
            let kind = metadata.file_type();
            if kind.is_dir() && depth < DEEPEST {
                pending.push((path, depth + 1));
            } else if kind.is_char_device() || kind.is_block_device() {
                found.push(json!({
                    "path": path,
                    "type": if kind.is_char_device() { "c" } else { "b" },
                    "major": rustix::fs::major(metadata.rdev()),
                    "minor": rustix::fs::minor(metadata.rdev()),
                    "fileMode": metadata.mode() & 0o7777,
                    "uid": metadata.uid(),
                    "gid": metadata.gid(),
                }));
            }
        }
    }
    found
}
