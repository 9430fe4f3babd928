//! Accounts in memory, for tests of what is built on accounts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};

use super::{AccountError, Accounts, NewAccount, SystemAccount};
use crate::files::fault;

/// The first number of an account made here.
const FIRST: u32 = 900;

/// Accounts in memory. Clones are the same machine.
#[derive(Debug, Clone, Default)]
pub struct FakeAccounts {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    users: BTreeMap<String, SystemAccount>,
    groups: BTreeMap<String, u32>,
    given: BTreeMap<Utf8PathBuf, String>,
}

impl FakeAccounts {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a group that was there before.
    pub fn add_group(&self, name: &str) {
        self.state().group(name);
    }

    /// The names of all accounts.
    pub fn names(&self) -> Vec<String> {
        self.state().users.keys().cloned().collect()
    }

    /// Who owns what was given away.
    pub fn owner(&self, path: &Utf8Path) -> Option<String> {
        self.state().given.get(path).cloned()
    }
}

impl State {
    fn group(&mut self, name: &str) -> u32 {
        let next = FIRST + u32::try_from(self.groups.len()).unwrap_or(u32::MAX - FIRST);
        *self.groups.entry(name.to_owned()).or_insert(next)
    }
}

impl Accounts for FakeAccounts {
    fn find(&self, name: &str) -> Result<Option<SystemAccount>, AccountError> {
        Ok(self.state().users.get(name).cloned())
    }

    fn find_group(&self, name: &str) -> Result<Option<u32>, AccountError> {
        Ok(self.state().groups.get(name).copied())
    }

    fn create(&self, account: &NewAccount) -> Result<(), AccountError> {
        fault::point("account.create").map_err(|source| AccountError::Run {
            program: "nothing",
            name: account.name.clone(),
            source,
        })?;
        let mut state = self.state();
        if state.users.contains_key(&account.name) {
            return Ok(());
        }
        let group = match &account.group {
            None => state.group(&account.name),
            Some(group) => *state
                .groups
                .get(group)
                .ok_or_else(|| AccountError::Refused {
                    program: "nothing",
                    name: account.name.clone(),
                    status: "a refusal".to_owned(),
                    output: format!("group `{group}` does not exist"),
                })?,
        };
        let user = FIRST + u32::try_from(state.users.len()).unwrap_or(u32::MAX - FIRST);
        let made = SystemAccount {
            name: account.name.clone(),
            user,
            group,
            groups: vec![group],
        };
        state.users.insert(account.name.clone(), made);
        Ok(())
    }

    fn give_tree(&self, folder: &Utf8Path, account: &SystemAccount) -> Result<(), AccountError> {
        fault::point("account.give").map_err(|source| AccountError::Give {
            path: folder.to_owned(),
            name: account.name.clone(),
            source,
        })?;
        self.state()
            .given
            .insert(folder.to_owned(), account.name.clone());
        Ok(())
    }
}
