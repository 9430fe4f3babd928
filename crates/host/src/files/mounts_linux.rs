//! What is mounted inside of folders of ours on Linux, and how something below a folder of others is held fast there.
//!
//! Invariant: no link below the folder of others is followed, however often somebody swaps folders for links meanwhile.

use std::ffi::CStr;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::Path;

use camino::Utf8Path;
use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, StatxAttributes, StatxFlags};
use transom_model::os::Os;

use super::path;

/// Makes `place` show what is at `below` in `folder`, and goes on to show that very thing. Folders that are missing on
/// the way are made.
pub(super) fn pin(folder: &Utf8Path, below: &Utf8Path, place: &Utf8Path) -> io::Result<()> {
    let found = find(folder, below)?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&found)?.st_mode);
    detach_all(place)?;
    make_place(place, kind == FileType::Directory)?;
    let source = format!("/proc/self/fd/{}", found.as_raw_fd());
    bind(&source, place).inspect_err(|_| {
        // Half of it must not stay; the first error is the one to tell.
        let _ = detach_all(place);
    })
}

fn find(folder: &Utf8Path, below: &Utf8Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = rustix::fs::open(folder.as_str(), flags, Mode::empty())?;
    for name in path::names(Os::Linux, below) {
        at = enter(&at, name)?;
    }
    Ok(at)
}

/// The entry of a folder, or a new folder of that name.
fn enter(at: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    // With the flag not to follow the last link the link itself would be opened; without it that is refused.
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let open = || rustix::fs::openat2(at, name, flags, Mode::empty(), resolve);
    let entered = match open() {
        Err(rustix::io::Errno::NOENT) => {
            match rustix::fs::mkdirat(at, name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => open(),
                Err(error) => Err(error),
            }
        }
        result => result,
    };
    entered.map_err(|error| match error {
        rustix::io::Errno::LOOP | rustix::io::Errno::XDEV => {
            let reason = format!("`{name}` is a link or leads out of the folder");
            io::Error::new(ErrorKind::InvalidInput, reason)
        }
        error => error.into(),
    })
}

/// A mount needs something of its own kind to lie upon.
fn make_place(place: &Utf8Path, is_folder: bool) -> io::Result<()> {
    match std::fs::symlink_metadata(place) {
        Ok(found) if found.is_dir() == is_folder && !found.is_symlink() => return Ok(()),
        Ok(found) if found.is_dir() => rustix::fs::rmdir(place.as_str())?,
        Ok(_) => rustix::fs::unlink(place.as_str())?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    if is_folder {
        rustix::fs::mkdir(place.as_str(), Mode::from_raw_mode(0o755))?;
    } else {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        rustix::fs::open(place.as_str(), flags, Mode::from_raw_mode(0o600))?;
    }
    Ok(())
}

fn bind(source: &str, place: &Utf8Path) -> io::Result<()> {
    let place = place.as_std_path();
    let nothing = None::<&str>;
    let all = MsFlags::MS_BIND | MsFlags::MS_REC;
    mount(Some(source), place, nothing, all, nothing)?;
    // What is mounted there later is seen here, too; that it is taken off here is seen nowhere else.
    let slave = MsFlags::MS_SLAVE | MsFlags::MS_REC;
    Ok(mount(nothing, place, nothing, slave, nothing)?)
}

/// Takes off whatever is mounted at `path`.
fn detach_all(path: &Utf8Path) -> io::Result<()> {
    loop {
        match detach(path.as_std_path()) {
            Ok(()) => {}
            // Nothing is mounted there, or nothing is there.
            Err(Errno::EINVAL | Errno::ENOENT) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

fn detach(path: &Path) -> nix::Result<()> {
    umount2(path, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW)
}

/// Takes off what is mounted at an entry of a folder that is held open. Returns whether something was.
pub(super) fn detach_below(folder: &OwnedFd, name: &CStr) -> bool {
    let name = name.to_string_lossy();
    let path = format!("/proc/self/fd/{}/{name}", folder.as_raw_fd());
    detach(Path::new(&path)).is_ok()
}

/// Whether a mount begins at what is open here. Systems that cannot tell say no.
pub(super) fn is_top(open: impl AsFd) -> bool {
    let found = rustix::fs::statx(open, c"", AtFlags::EMPTY_PATH, StatxFlags::empty());
    found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}
