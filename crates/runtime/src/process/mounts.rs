//! The folder that a container sees, with its volumes below it.
//!
//! Invariant: nothing is ever written through a link into a volume here.

use camino::{Utf8Path, Utf8PathBuf};
use transom_host::files::{Access, FileError, Files, How, Kind, Native};
use transom_model::os::Os;

use super::file_error;
use crate::{Mount, RuntimeError};

/// The largest file that is copied where it cannot be linked.
const LARGEST_COPY: u64 = 64 << 20;

/// Where a path of the container is below its folder, by the rules of `os`.
pub(super) fn inside(os: Os, root: &Utf8Path, path: &str) -> Result<Utf8PathBuf, RuntimeError> {
    let invalid = |reason: &str| RuntimeError::Invalid(format!("mount path {path:?} {reason}"));
    let separators: &[char] = match os {
        Os::Linux => &['/'],
        Os::Windows => &['/', '\\'],
    };
    let mut rest = path;
    if os == Os::Windows
        && let Some((drive, below)) = path.split_once(':')
        && drive.len() == 1
    {
        rest = below;
    }
    let mut place = root.to_owned();
    for name in rest
        .split(separators)
        .filter(|name| !name.is_empty() && *name != ".")
    {
        if name == ".." || (os == Os::Windows && name.contains(':')) {
            return Err(invalid("leaves the container"));
        }
        place.push(name);
    }
    if place == root {
        return Err(invalid("is the container itself"));
    }
    Ok(place)
}

/// Puts volumes at their places below `root`, which exists.
pub(super) fn arrange(root: &Utf8Path, mounts: &[Mount]) -> Result<(), RuntimeError> {
    let files = Native;
    let mut placed: Vec<Utf8PathBuf> = Vec::new();
    let mut wanted = Vec::new();
    for mount in mounts {
        wanted.push((inside(files.os(), root, &mount.container_path)?, mount));
    }
    wanted.sort_by(|(one, _), (other, _)| one.cmp(other));
    for (place, mount) in wanted {
        if placed.iter().any(|above| place.starts_with(above)) {
            return Err(RuntimeError::NotSupported(format!(
                "the mount at {:?} lies inside another: host processes have no mounts in mounts",
                mount.container_path
            )));
        }
        if let Some(folder) = place.parent() {
            files.create_dir_all(folder).map_err(file_error)?;
        }
        // From an earlier start that was cut short, or from the image.
        files.remove_tree(&place).map_err(file_error)?;
        put(&mount.host_path, &place).map_err(file_error)?;
        placed.push(place);
    }
    Ok(())
}

fn put(from: &Utf8Path, place: &Utf8Path) -> Result<(), FileError> {
    let files = Native;
    let kind = fs_err::metadata(from).map_or(Kind::Dir, |found| {
        if found.is_dir() {
            Kind::Dir
        } else {
            Kind::File
        }
    });
    if kind == Kind::Dir {
        return match files.link_dir(from, place) {
            Err(FileError::NotSupported { .. }) => {
                tracing::warn!(%from, %place, "a volume is a copy: this system cannot link");
                files.copy_tree(from, place, How::Copy)
            }
            result => result,
        };
    }
    match files.link_file(from, place) {
        Ok(()) => Ok(()),
        // On another disk, or a link itself.
        Err(_) if files.os() == Os::Linux => files.link_dir(from, place),
        Err(_) => {
            let bytes = files.read(from, LARGEST_COPY)?;
            files.write_durable(place, &bytes, Access::Public)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::Propagation;
    use transom_host::machine::OS;

    #[test]
    fn paths_stay_below_the_container_by_the_rules_of_its_system() {
        let at = |os, path| inside(os, Utf8Path::new("/c/root"), path).ok();
        let below = |path: &str| Some(Utf8PathBuf::from("/c/root").join(path));
        assert_eq!(at(Os::Linux, "/etc/app"), below("etc/app"));
        assert_eq!(at(Os::Linux, "etc//./app/"), below("etc/app"));
        assert_eq!(at(Os::Windows, r"C:\etc\app"), below("etc/app"));
        assert_eq!(at(Os::Windows, "c:/etc/app"), below("etc/app"));
        for bad in ["/", "", "/../x", "/a/../../x", "."] {
            assert_eq!(at(Os::Linux, bad), None, "{bad}");
        }
        for bad in [r"C:\", r"C:\..\x", r"\\?\C:\x", r"a:b:c"] {
            assert_eq!(at(Os::Windows, bad), None, "{bad}");
        }
    }

    #[test]
    fn volumes_are_at_their_paths_and_mounts_in_mounts_are_refused() {
        let guard = tempfile::tempdir().unwrap();
        let top = Utf8Path::from_path(guard.path()).unwrap();
        let (root, data) = (top.join("root"), top.join("data"));
        fs_err::create_dir_all(&root).unwrap();
        fs_err::create_dir_all(&data).unwrap();
        fs_err::write(top.join("file"), "one").unwrap();
        fs_err::write(data.join("old"), "there").unwrap();
        let mount = |host: &Utf8Path, at: &str| Mount {
            host_path: host.to_owned(),
            container_path: at.to_owned(),
            read_only: false,
            propagation: Propagation::Private,
        };
        let mounts = [
            mount(&data, "/var/data"),
            mount(&top.join("file"), "/etc/file"),
        ];
        arrange(&root, &mounts).unwrap();
        // A start that is tried again finds the same.
        arrange(&root, &mounts).unwrap();
        let read = |path: &str| fs_err::read_to_string(root.join(path)).unwrap();
        assert_eq!(read("var/data/old"), "there");
        assert_eq!(read("etc/file"), "one");
        // Wine cannot link: there they are copies.
        if OS == Os::Linux {
            fs_err::write(root.join("var/data/new"), "live").unwrap();
            assert_eq!(fs_err::read_to_string(data.join("new")).unwrap(), "live");
            fs_err::write(root.join("etc/file"), "two").unwrap();
            assert_eq!(fs_err::read_to_string(top.join("file")).unwrap(), "two");
        }
        let nested = [mount(&data, "/a"), mount(&data, "/a/b")];
        let refused = arrange(&root, &nested);
        assert!(matches!(refused, Err(RuntimeError::NotSupported(_))));
        assert!(!data.join("b").exists());
    }
}
