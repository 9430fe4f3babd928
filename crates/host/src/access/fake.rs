//! Access kept in memory. Paths are names only; nothing on disk is read or changed.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};

use super::{Access, AccessError, Account, AccountId, Privacy, Restricted, steps_down};

/// Access kept in memory.
#[derive(Debug)]
pub struct FakeAccess {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    files: BTreeMap<Utf8PathBuf, Privacy>,
    folders: BTreeMap<Utf8PathBuf, (Account, u32)>,
    groups: BTreeMap<String, u32>,
    accounts: Vec<Account>,
    elevated: bool,
}

impl Default for FakeAccess {
    fn default() -> Self {
        Self::new(Account {
            name: "root".to_owned(),
            id: AccountId::Unix {
                uid: 0,
                gid: 0,
                groups: vec![0],
            },
            home: Some("/root".into()),
            shell: Some("/bin/sh".into()),
        })
    }
}

impl FakeAccess {
    /// A machine with one user, who runs this process and may administer the machine.
    pub fn new(current: Account) -> Self {
        Self {
            state: Mutex::new(State {
                files: BTreeMap::new(),
                folders: BTreeMap::new(),
                groups: BTreeMap::new(),
                accounts: vec![current],
                elevated: true,
            }),
        }
    }

    /// Puts a file there, readable by everyone.
    pub fn add_file(&self, path: impl Into<Utf8PathBuf>) {
        let exposed = Privacy::Exposed {
            who: vec!["everyone".to_owned()],
        };
        self.state().files.insert(path.into(), exposed);
    }

    pub fn add_account(&self, account: Account) {
        self.state().accounts.push(account);
    }

    pub fn add_group(&self, name: impl Into<String>, number: u32) {
        self.state().groups.insert(name.into(), number);
    }

    /// Owner and mode of a folder that was made here.
    pub fn folder(&self, path: &Utf8Path) -> Option<(Account, u32)> {
        self.state().folders.get(path).cloned()
    }

    pub fn set_elevated(&self, elevated: bool) {
        self.state().elevated = elevated;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is valid after each single step, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Access for FakeAccess {
    fn restrict_to_owner(&self, path: &Utf8Path) -> Result<Restricted, AccessError> {
        match self.state().files.get_mut(path) {
            Some(privacy) => {
                *privacy = Privacy::Private;
                Ok(Restricted::Verified)
            }
            None => Err(AccessError::Restrict {
                path: path.to_owned(),
                source: io::ErrorKind::NotFound.into(),
            }),
        }
    }

    fn check_private(&self, path: &Utf8Path) -> Result<Privacy, AccessError> {
        self.state()
            .files
            .get(path)
            .cloned()
            .ok_or_else(|| AccessError::Read {
                path: path.to_owned(),
                source: io::ErrorKind::NotFound.into(),
            })
    }

    /// Who can read a file here can change it.
    fn check_unchangeable(&self, path: &Utf8Path) -> Result<Privacy, AccessError> {
        self.check_private(path)
    }

    fn account(&self, name: &str) -> Result<Account, AccessError> {
        let is_meant = |account: &&Account| {
            account.name == name
                || match &account.id {
                    AccountId::Unix { uid, .. } => uid.to_string() == name,
                    AccountId::Windows { sid } => sid == name,
                }
        };
        self.state()
            .accounts
            .iter()
            .find(is_meant)
            .cloned()
            .ok_or_else(|| AccessError::NoSuchUser {
                name: name.to_owned(),
            })
    }

    fn group(&self, name: &str) -> Result<u32, AccessError> {
        let known = self.state().groups.get(name).copied();
        known
            .or_else(|| name.parse().ok())
            .ok_or_else(|| AccessError::NoSuchGroup {
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
        let mut state = self.state();
        let ourselves = state.accounts[0].clone();
        let mut path = base.to_owned();
        for step in steps {
            path.push(step);
            if state.files.contains_key(&path) {
                return Err(AccessError::Folder {
                    path,
                    source: io::ErrorKind::NotADirectory.into(),
                });
            }
            let between = (ourselves.clone(), 0o755);
            state.folders.entry(path.clone()).or_insert(between);
        }
        let owner = owner.cloned().unwrap_or(ourselves);
        state.folders.insert(path, (owner, mode));
        Ok(())
    }

    fn current_account(&self) -> Result<Account, AccessError> {
        Ok(self.state().accounts[0].clone())
    }

    fn is_elevated(&self) -> Result<bool, AccessError> {
        Ok(self.state().elevated)
    }
}
