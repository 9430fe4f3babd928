//! Accounts on Windows: none are made for packages. Every call says so, so that nobody mistakes a
//! service that runs as the system for one that runs as its own account.

use camino::Utf8Path;

use super::{AccountError, Accounts, NewAccount, SystemAccount};

/// The accounts of this machine, which packages have no part in.
#[derive(Debug, Clone, Copy, Default)]
pub struct WindowsAccounts;

fn not_supported<T>(action: &'static str, name: &str) -> Result<T, AccountError> {
    Err(AccountError::NotSupported {
        action,
        name: name.to_owned(),
    })
}

impl Accounts for WindowsAccounts {
    fn find(&self, name: &str) -> Result<Option<SystemAccount>, AccountError> {
        not_supported("look up", name)
    }

    fn find_group(&self, name: &str) -> Result<Option<u32>, AccountError> {
        not_supported("look up the group", name)
    }

    fn create(&self, account: &NewAccount) -> Result<(), AccountError> {
        not_supported("make", &account.name)
    }

    fn give_tree(&self, folder: &Utf8Path, _account: &SystemAccount) -> Result<(), AccountError> {
        not_supported("give away", folder.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_is_answered_with_a_clear_no() {
        let error = WindowsAccounts.find("dcos_a").unwrap_err();
        assert!(error.to_string().contains("could not look up `dcos_a`"));
        let account = NewAccount {
            name: "dcos_a".to_owned(),
            group: None,
            home: r"C:\Transom".into(),
        };
        assert!(WindowsAccounts.create(&account).is_err());
    }
}
