//! Access on Linux: mode bits and owner. The mode is changed through an open handle, so a file that
//! is exchanged meanwhile is never the one that gets changed.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use camino::Utf8Path;
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;

use super::{
    Access, AccessError, Account, AccountFiles, AccountFilesError, AccountId, Privacy, Restricted,
    steps_down,
};

const PASSWD: &str = "/etc/passwd";
const GROUP: &str = "/etc/group";

/// Access by mode bits and owner.
#[derive(Debug, Clone, Copy, Default)]
pub struct UnixAccess;

impl Access for UnixAccess {
    fn restrict_to_owner(&self, path: &Utf8Path) -> Result<Restricted, AccessError> {
        let failed = |errno: Errno| AccessError::Restrict {
            path: path.to_owned(),
            source: errno.into(),
        };
        let handle = open(path).map_err(failed)?;
        let stat = rustix::fs::fstat(&handle).map_err(failed)?;
        let mode = match file_type(&stat) {
            FileType::Symlink => {
                return Err(AccessError::Link {
                    path: path.to_owned(),
                });
            }
            FileType::Directory => Mode::RWXU,
            _ => Mode::RUSR | Mode::WUSR,
        };
        change_mode(&handle, mode.as_raw_mode()).map_err(failed)?;
        let after = rustix::fs::fstat(&handle).map_err(failed)?;
        match judge(&after, Mode::RWXG, Mode::RWXO) {
            Privacy::Private => Ok(Restricted::Verified),
            Privacy::Exposed { who } => Ok(Restricted::NotVerified {
                why: format!("it is still open to {}", who.join(", ")),
            }),
            Privacy::Unknown { why } => Ok(Restricted::NotVerified { why }),
        }
    }

    fn check_private(&self, path: &Utf8Path) -> Result<Privacy, AccessError> {
        Ok(judge(&look_at(path)?, Mode::RWXG, Mode::RWXO))
    }

    fn check_unchangeable(&self, path: &Utf8Path) -> Result<Privacy, AccessError> {
        Ok(judge(&look_at(path)?, Mode::WGRP, Mode::WOTH))
    }

    fn account(&self, name: &str) -> Result<Account, AccessError> {
        let files = read_account_files()?;
        if let Some(account) = files.find(name) {
            return Ok(account);
        }
        // A number needs no entry: containers and units use such users.
        name.parse()
            .map(unlisted)
            .map_err(|_| AccessError::NoSuchUser {
                name: name.to_owned(),
            })
    }

    fn group(&self, name: &str) -> Result<u32, AccessError> {
        if let Some(number) = read_account_files()?.find_group(name) {
            return Ok(number);
        }
        name.parse().map_err(|_| AccessError::NoSuchGroup {
            name: name.to_owned(),
        })
    }

    fn ensure_folder(
        &self,
        base: &Utf8Path,
        name: &Utf8Path,
        owner: Option<&Account>,
        mode: u32,
    ) -> Result<(), AccessError> {
        let steps = steps_down(name)?;
        fs_err::create_dir_all(base).map_err(|source| AccessError::Folder {
            path: base.to_owned(),
            source,
        })?;
        let mut path = base.to_owned();
        let failed = |path: &Utf8Path, errno: Errno| AccessError::Folder {
            path: path.to_owned(),
            source: errno.into(),
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut folder = rustix::fs::open(base.as_std_path(), flags, Mode::empty())
            .map_err(|errno| failed(&path, errno))?;
        for step in steps {
            path.push(step);
            // Closed to others until its owner and mode are set.
            let is_new = match rustix::fs::mkdirat(&folder, step, Mode::RWXU) {
                Ok(()) => true,
                Err(Errno::EXIST) => false,
                Err(errno) => return Err(failed(&path, errno)),
            };
            let flags = flags | OFlags::NOFOLLOW;
            folder = rustix::fs::openat(&folder, step, flags, Mode::empty())
                .map_err(|errno| failed(&path, errno))?;
            if is_new && path != base.join(name) {
                change_mode(&folder, 0o755).map_err(|errno| failed(&path, errno))?;
            }
        }
        settle_folder(&folder, owner, mode).map_err(|errno| failed(&path, errno))
    }

    fn current_account(&self) -> Result<Account, AccessError> {
        let uid = rustix::process::geteuid().as_raw();
        Ok(read_account_files()?
            .find_by_uid(uid)
            .unwrap_or_else(|| unlisted(uid)))
    }

    fn is_elevated(&self) -> Result<bool, AccessError> {
        Ok(rustix::process::geteuid().is_root())
    }
}

/// Owner and mode of what is at `path`; a link is refused.
fn look_at(path: &Utf8Path) -> Result<Stat, AccessError> {
    let failed = |errno: Errno| AccessError::Read {
        path: path.to_owned(),
        source: errno.into(),
    };
    let handle = open(path).map_err(failed)?;
    let stat = rustix::fs::fstat(&handle).map_err(failed)?;
    if file_type(&stat) == FileType::Symlink {
        return Err(AccessError::Link {
            path: path.to_owned(),
        });
    }
    Ok(stat)
}

fn open(path: &Utf8Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(
        path.as_std_path(),
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

fn change_mode(handle: &OwnedFd, mode: u32) -> rustix::io::Result<()> {
    // A handle opened with `O_PATH` cannot be changed itself, its name in /proc can.
    let name = format!("/proc/self/fd/{}", handle.as_raw_fd());
    rustix::fs::chmod(&name, Mode::from_raw_mode(mode))
}

/// Sets owner and mode of a folder where they differ: who is not root may not even repeat them.
fn settle_folder(folder: &OwnedFd, owner: Option<&Account>, mode: u32) -> rustix::io::Result<()> {
    let (user, group) = match owner.map(|owner| &owner.id) {
        Some(AccountId::Unix { uid, gid, .. }) => (*uid, *gid),
        // An account of Windows has no number to own a file here.
        Some(AccountId::Windows { .. }) => return Err(Errno::INVAL),
        None => (
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
        ),
    };
    let stat = rustix::fs::fstat(folder)?;
    if (stat.st_uid, stat.st_gid) != (user, group) {
        rustix::fs::chownat(
            folder,
            "",
            Some(Uid::from_raw(user)),
            Some(Gid::from_raw(group)),
            AtFlags::EMPTY_PATH,
        )?;
    }
    if Mode::from_raw_mode(stat.st_mode).as_raw_mode() != mode {
        change_mode(folder, mode)?;
    }
    Ok(())
}

fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Private means: owned by us or by root, and without these rights of group and others.
fn judge(stat: &Stat, of_group: Mode, of_others: Mode) -> Privacy {
    let mode = Mode::from_raw_mode(stat.st_mode);
    let mut who = Vec::new();
    let us = rustix::process::geteuid().as_raw();
    if stat.st_uid != us && stat.st_uid != 0 {
        who.push(format!("its owner, user {}", stat.st_uid));
    }
    if mode.intersects(of_group) {
        who.push(format!("group {}", stat.st_gid));
    }
    if mode.intersects(of_others) {
        who.push("everyone".to_owned());
    }
    if who.is_empty() {
        Privacy::Private
    } else {
        Privacy::Exposed { who }
    }
}

fn unlisted(uid: u32) -> Account {
    Account {
        name: uid.to_string(),
        id: AccountId::Unix {
            uid,
            gid: uid,
            groups: vec![uid],
        },
        home: None,
        shell: None,
    }
}

fn read_account_files() -> Result<AccountFiles, AccessError> {
    let read = |path: &str| -> Result<String, AccessError> {
        match fs_err::read(path) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            // A machine without the files has no users by name; numbers still work.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(source) => Err(AccessError::Accounts {
                source: AccountFilesError::Read { source },
            }),
        }
    };
    Ok(AccountFiles {
        passwd: read(PASSWD)?,
        group: read(GROUP)?,
    })
}
