//! The binary that helpers run, such that no container can write to it.
//!
//! The last process before a container's program runs this binary inside of the container, and a program may get
//! hold of it there (`/proc/self/exe`). It is reached by a mount of its own that is read-only and in no namespace.

#![expect(unsafe_code, reason = "mount_setattr has no safe form")]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::libc;
use rustix::fs::CWD;
use rustix::mount::{OpenTreeFlags, open_tree};

/// What helpers are started from.
pub(super) struct Program(Option<OwnedFd>);

impl Program {
    /// Protects our own binary. A kernel that cannot do so leaves it as it is.
    pub(super) fn own() -> Self {
        match read_only() {
            Ok(mounted) => Self(Some(mounted)),
            Err(error) => {
                super::complain(&format!("containers could write to our binary: {error}"));
                Self(None)
            }
        }
    }

    pub(super) fn path(&self) -> String {
        match &self.0 {
            Some(mounted) => format!("/proc/self/fd/{}", mounted.as_raw_fd()),
            None => "/proc/self/exe".to_owned(),
        }
    }
}

fn read_only() -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let mounted = open_tree(CWD, "/proc/self/exe", flags)?;
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: the descriptor is open, the path is empty and ends, and the attributes outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mounted.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 {
        Ok(mounted)
    } else {
        Err(io::Error::last_os_error())
    }
}
