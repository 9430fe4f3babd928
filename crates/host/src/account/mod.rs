//! System accounts: who a package's services run as. An account that is there already is never
//! changed, and nothing is given away by following a link.

pub mod fake;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub use linux::LinuxAccounts as Native;
#[cfg(windows)]
pub use windows::WindowsAccounts as Native;

use std::fmt::Debug;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};

/// An account of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemAccount {
    pub name: String,
    pub user: u32,
    /// Its first group.
    pub group: u32,
    /// All groups that it is a member of, the first one included.
    pub groups: Vec<u32>,
}

/// An account to be made: without a password, and without a shell that would let anybody in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAccount {
    pub name: String,
    /// A group that is there already; without one, a group of the same name is made.
    pub group: Option<String>,
    /// Written down as its home, and not made.
    pub home: Utf8PathBuf,
}

/// The accounts of one machine.
///
/// # Platform behavior
///
/// Windows services run as accounts of Windows, which we do not make: every call is `NotSupported`.
pub trait Accounts: Debug + Send + Sync {
    fn find(&self, name: &str) -> Result<Option<SystemAccount>, AccountError>;
    /// The number of a group.
    fn find_group(&self, name: &str) -> Result<Option<u32>, AccountError>;
    /// Makes a system account. Succeeds without a change if one of that name is there.
    fn create(&self, account: &NewAccount) -> Result<(), AccountError>;
    /// Makes `account` the owner of `folder` and all below it; links themselves, not their targets.
    fn give_tree(&self, folder: &Utf8Path, account: &SystemAccount) -> Result<(), AccountError>;
}

/// Why an account could not be found, made or used.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    #[error("there are no accounts of packages on this system: could not {action} `{name}`")]
    NotSupported { action: &'static str, name: String },
    #[error("could not look up `{name}`")]
    LookUp { name: String, source: io::Error },
    #[error("could not run {program} to make the account `{name}`")]
    Run {
        program: &'static str,
        name: String,
        source: io::Error,
    },
    #[error(
        "could not make the account `{name}`: {program} ended with {status} and said: {output}"
    )]
    Refused {
        program: &'static str,
        name: String,
        status: String,
        output: String,
    },
    #[error("could not give `{path}` to `{name}`")]
    Give {
        path: Utf8PathBuf,
        name: String,
        source: io::Error,
    },
}
