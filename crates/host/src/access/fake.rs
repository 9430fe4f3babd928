//! Access kept in memory. Paths are names only; nothing on disk is read or changed.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};

use super::{Access, AccessError, Account, AccountId, Privacy, Restricted};

/// Access kept in memory.
#[derive(Debug)]
pub struct FakeAccess {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    files: BTreeMap<Utf8PathBuf, Privacy>,
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

    fn current_account(&self) -> Result<Account, AccessError> {
        Ok(self.state().accounts[0].clone())
    }

    fn is_elevated(&self) -> Result<bool, AccessError> {
        Ok(self.state().elevated)
    }
}
