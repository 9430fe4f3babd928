//! Accounts on Linux: looked up through the C library, made by `useradd`, as an administrator would.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use nix::unistd::{Gid, Group, User, getgrouplist};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Uid};
use rustix::io::Errno;

use super::{AccountError, Accounts, NewAccount, SystemAccount};
use crate::access::{AccountFiles, AccountId};
use crate::files::fault;

const PROGRAM: &str = "useradd";
const COMMENT: &str = "package account";
const SHELL: &str = "/sbin/nologin";
/// Where it is when the search path of the process does not say.
const PLACES: &str = "/usr/sbin:/usr/bin:/sbin:/bin";
/// Enough for any message of it.
const LONGEST_OUTPUT: usize = 2_000;

/// The accounts of this machine, or of a system installed below a folder.
#[derive(Debug, Clone, Default)]
pub struct LinuxAccounts {
    prefix: Option<Utf8PathBuf>,
}

impl LinuxAccounts {
    /// The accounts in `etc/passwd` and `etc/group` below `prefix`.
    pub fn below(prefix: &Utf8Path) -> Self {
        Self {
            prefix: Some(prefix.to_owned()),
        }
    }

    fn files(prefix: &Utf8Path) -> io::Result<AccountFiles> {
        let read = |name: &str| match fs_err::read_to_string(prefix.join("etc").join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            text => text,
        };
        Ok(AccountFiles {
            passwd: read("passwd")?,
            group: read("group")?,
        })
    }

    fn look_up(&self, name: &str) -> io::Result<Option<SystemAccount>> {
        if let Some(prefix) = &self.prefix {
            let found = Self::files(prefix)?.find(name);
            return Ok(found.and_then(|account| match account.id {
                AccountId::Unix { uid, gid, groups } => Some(SystemAccount {
                    name: account.name,
                    user: uid,
                    group: gid,
                    groups,
                }),
                AccountId::Windows { .. } => None,
            }));
        }
        let Some(user) = User::from_name(name)? else {
            return Ok(None);
        };
        let c_name = CString::new(name)?;
        let groups = getgrouplist(&c_name, user.gid)?;
        Ok(Some(SystemAccount {
            name: name.to_owned(),
            user: user.uid.as_raw(),
            group: user.gid.as_raw(),
            groups: groups.into_iter().map(Gid::as_raw).collect(),
        }))
    }

    fn look_up_group(&self, name: &str) -> io::Result<Option<u32>> {
        match &self.prefix {
            Some(prefix) => Ok(Self::files(prefix)?.find_group(name)),
            None => Ok(Group::from_name(name)?.map(|group| group.gid.as_raw())),
        }
    }
}

impl Accounts for LinuxAccounts {
    fn find(&self, name: &str) -> Result<Option<SystemAccount>, AccountError> {
        self.look_up(name).map_err(|source| AccountError::LookUp {
            name: name.to_owned(),
            source,
        })
    }

    fn find_group(&self, name: &str) -> Result<Option<u32>, AccountError> {
        self.look_up_group(name)
            .map_err(|source| AccountError::LookUp {
                name: name.to_owned(),
                source,
            })
    }

    fn create(&self, account: &NewAccount) -> Result<(), AccountError> {
        if self.find(&account.name)?.is_some() {
            return Ok(());
        }
        let mut command = Command::new(PROGRAM);
        command.env_clear().env("PATH", PLACES).args([
            "--system",
            "--shell",
            SHELL,
            "--comment",
            COMMENT,
            "--home-dir",
            account.home.as_str(),
        ]);
        if let Some(prefix) = &self.prefix {
            command.args(["--prefix", prefix.as_str()]);
        }
        match &account.group {
            Some(group) => command.args(["--gid", group]),
            None => command.arg("--user-group"),
        };
        let run = |source| AccountError::Run {
            program: PROGRAM,
            name: account.name.clone(),
            source,
        };
        fault::point("account.create").map_err(run)?;
        let ended = command
            .args(["--", &account.name])
            .stdin(Stdio::null())
            .output()
            .map_err(run)?;
        // Somebody else may have made it at the same moment.
        if ended.status.success() || self.find(&account.name)?.is_some() {
            return Ok(());
        }
        let mut output = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
        output.truncate(output.floor_char_boundary(LONGEST_OUTPUT));
        Err(AccountError::Refused {
            program: PROGRAM,
            name: account.name.clone(),
            status: ended.status.to_string(),
            output,
        })
    }

    fn give_tree(&self, folder: &Utf8Path, account: &SystemAccount) -> Result<(), AccountError> {
        give(CWD, folder.as_str(), folder, Uid::from_raw(account.user)).map_err(|(path, source)| {
            AccountError::Give {
                path,
                name: account.name.clone(),
                source,
            }
        })
    }
}

type Failure = (Utf8PathBuf, io::Error);

/// Gives one entry of an open folder, then what is below it. `path` is for messages.
fn give(at: impl AsFd, name: &str, path: &Utf8Path, owner: Uid) -> Result<(), Failure> {
    let fail = |errno: Errno| (path.to_owned(), io::Error::from(errno));
    let stat = rustix::fs::statat(&at, name, AtFlags::SYMLINK_NOFOLLOW).map_err(fail)?;
    if stat.st_uid != owner.as_raw() {
        fault::point("account.give").map_err(|error| (path.to_owned(), error))?;
        rustix::fs::chownat(&at, name, Some(owner), None, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(fail)?;
    }
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Ok(());
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder: OwnedFd = rustix::fs::openat(&at, name, flags, Mode::empty()).map_err(fail)?;
    for entry in Dir::read_from(&folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        if entry.file_name() == c"." || entry.file_name() == c".." {
            continue;
        }
        let name = entry.file_name().to_str().map_err(|_| {
            let reason = "it holds a name that is not Unicode";
            (
                path.to_owned(),
                io::Error::new(io::ErrorKind::InvalidData, reason),
            )
        })?;
        match give(&folder, name, &path.join(name), owner) {
            // A service of the earlier generation removed it meanwhile.
            Err((_, error)) if error.kind() == io::ErrorKind::NotFound => {}
            result => result?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with the account files of a small system.
    fn system() -> (tempfile::TempDir, LinuxAccounts) {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        fs_err::create_dir(root.join("etc")).unwrap();
        for (name, text) in [
            (
                "passwd",
                "root:x:0:0:root:/root:/bin/sh\ndcos_old:x:990:5::/:/sbin/nologin\n",
            ),
            ("group", "root:x:0:\ndocker:x:5:dcos_old\n"),
            ("shadow", "root:*:19000::::::\n"),
            ("gshadow", "root:*::\ndocker:!::\n"),
        ] {
            fs_err::write(root.join("etc").join(name), text).unwrap();
        }
        let accounts = LinuxAccounts::below(root);
        (folder, accounts)
    }

    fn new(name: &str, group: Option<&str>) -> NewAccount {
        NewAccount {
            name: name.to_owned(),
            group: group.map(str::to_owned),
            home: "/opt/transom".into(),
        }
    }

    #[test]
    fn an_account_is_found_with_its_groups_and_others_are_not() {
        let (_folder, accounts) = system();
        let old = accounts.find("dcos_old").unwrap().unwrap();
        assert_eq!((old.user, old.group), (990, 5));
        assert_eq!(old.groups, [5]);
        assert_eq!(accounts.find("dcos_new").unwrap(), None);
        assert_eq!(accounts.find_group("docker").unwrap(), Some(5));
        assert_eq!(accounts.find_group("podman").unwrap(), None);
    }

    #[test]
    fn this_machine_has_a_root_and_no_account_with_a_name_made_up() {
        let accounts = LinuxAccounts::default();
        assert_eq!(accounts.find("root").unwrap().unwrap().user, 0);
        assert_eq!(accounts.find("dcos_never_heard_of").unwrap(), None);
    }

    #[test]
    fn an_account_that_is_there_is_left_alone() {
        let (_folder, accounts) = system();
        let before = accounts.find("dcos_old").unwrap();
        accounts.create(&new("dcos_old", Some("root"))).unwrap();
        assert_eq!(accounts.find("dcos_old").unwrap(), before);
    }

    #[test]
    fn accounts_are_made_with_a_group_of_their_own_or_one_that_is_there() {
        let (_folder, accounts) = system();
        if !rustix::process::geteuid().is_root() {
            let refused = accounts.create(&new("dcos_a", None)).unwrap_err();
            assert!(refused.to_string().contains("`dcos_a`"), "{refused}");
            return;
        }
        accounts.create(&new("dcos_a", None)).unwrap();
        accounts.create(&new("dcos_b", Some("docker"))).unwrap();
        let own = accounts.find("dcos_a").unwrap().unwrap();
        assert_eq!(accounts.find_group("dcos_a").unwrap(), Some(own.group));
        assert!(own.user < 1000, "{own:?}");
        assert_eq!(accounts.find("dcos_b").unwrap().unwrap().group, 5);
        let error = accounts.create(&new("dcos_c", Some("podman"))).unwrap_err();
        assert!(error.to_string().contains("podman"), "{error}");
    }

    #[test]
    fn what_is_ours_already_is_given_to_us_without_a_right() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        fs_err::create_dir_all(root.join("a/b")).unwrap();
        fs_err::write(root.join("a/b/file"), "text").unwrap();
        rustix::fs::symlink("/etc/passwd", root.join("a/link").as_str()).unwrap();
        let us = SystemAccount {
            name: "us".to_owned(),
            user: rustix::process::geteuid().as_raw(),
            group: 0,
            groups: Vec::new(),
        };
        LinuxAccounts::default().give_tree(root, &us).unwrap();
        let missing = root.join("missing");
        let error = LinuxAccounts::default().give_tree(&missing, &us);
        assert!(matches!(error, Err(AccountError::Give { path, .. }) if path == missing));
    }
}
