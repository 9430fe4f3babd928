//! Folders whose content is only in memory, on Linux: a `tmpfs` of their own.
//!
//! Invariant: a file system is taken away only where it is a `tmpfs` that is empty.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::Path;

use camino::Utf8Path;
use nix::mount::{MntFlags, MsFlags, mount as mount_file_system, umount2};
use nix::sys::statfs::{TMPFS_MAGIC, fstatfs};

/// Puts an empty `tmpfs` over an empty folder. What has content, or is a mount already, stays.
pub(super) fn mount(folder: &Utf8Path, limit: Option<u64>) -> io::Result<()> {
    if std::fs::read_dir(folder)?.next().is_some() || is_mounted(folder)? {
        return Ok(());
    }
    // A size of zero would be no limit at all.
    let size = limit.map_or_else(String::new, |limit| format!(",size={}", limit.max(1)));
    let options = format!("mode=0755{size}");
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount_file_system(
        Some("transom"),
        folder.as_std_path(),
        Some("tmpfs"),
        flags,
        Some(options.as_str()),
    )
    .map_err(|errno| match io::Error::from(errno) {
        error if error.kind() == ErrorKind::PermissionDenied => io::Error::new(
            ErrorKind::PermissionDenied,
            "only root can make folders in memory",
        ),
        error => error,
    })
}

/// Whether a `tmpfs` begins at this folder.
fn is_mounted(folder: &Utf8Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;

    let own = std::fs::symlink_metadata(folder)?.dev();
    let Some(parent) = folder.parent() else {
        return Ok(false);
    };
    Ok(own != std::fs::metadata(parent)?.dev())
}

/// Takes the empty `tmpfs` away that `inner` is the top of. Returns whether that was done.
pub(super) fn unmount(inner: &OwnedFd, path: &Path) -> bool {
    let is_in_memory = fstatfs(inner).is_ok_and(|found| found.filesystem_type() == TMPFS_MAGIC);
    let flags = MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW;
    is_in_memory && umount2(path, flags).is_ok()
}
