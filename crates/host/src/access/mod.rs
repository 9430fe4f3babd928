//! Users and access lists: who may read a secret file. A file counts as private only when that was
//! seen, never because a call returned success.

mod accounts;
pub mod fake;
#[cfg(target_os = "linux")]
mod linux;
pub mod sddl;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub use linux::UnixAccess as Native;
#[cfg(windows)]
pub use windows::WindowsAccess as Native;

use std::io;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

pub use accounts::{AccountFiles, AccountFilesError};

/// Restricts files to their owner, checks that they are, and looks up users.
pub trait Access: Send + Sync {
    /// Leaves access only to the owner and to those who administer the machine. A folder passes
    /// that on to what is created in it later.
    fn restrict_to_owner(&self, path: &Utf8Path) -> Result<Restricted, AccessError>;

    /// Who else could read the file or folder.
    fn check_private(&self, path: &Utf8Path) -> Result<Privacy, AccessError>;

    /// Who else could change the file, or put something into the folder. `Private`: nobody.
    fn check_unchangeable(&self, path: &Utf8Path) -> Result<Privacy, AccessError>;

    /// The account of a user given by name, or by number or SID.
    fn account(&self, name: &str) -> Result<Account, AccessError>;

    /// The number of a group of users given by name or number.
    ///
    /// # Platform behavior
    ///
    /// Windows has no such numbers: `GroupsNotSupported`.
    fn group(&self, name: &str) -> Result<u32, AccessError>;

    /// Makes sure that the folder `name` below `base` is there, belongs to `owner` (without one: to
    /// ourselves) and has `mode`. `base` is made too when it is missing, and so is what lies between;
    /// that stays ours. No link is followed below `base`, as others may write there.
    ///
    /// # Platform behavior
    ///
    /// On Windows owner and mode are left alone: the folder inherits its access from `base`.
    fn ensure_folder(
        &self,
        base: &Utf8Path,
        name: &Utf8Path,
        owner: Option<&Account>,
        mode: u32,
    ) -> Result<(), AccessError>;

    /// The account that this process runs as.
    fn current_account(&self) -> Result<Account, AccessError>;

    /// Whether this process may administer the machine.
    fn is_elevated(&self) -> Result<bool, AccessError>;
}

/// What came of restricting a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "access that was not verified must be reported"]
pub enum Restricted {
    /// The new access was read back and is private.
    Verified,
    /// The system took the request, and does not show its effect.
    NotVerified { why: String },
}

/// Who could read, or change, a file besides its owner and the administrators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Privacy {
    Private,
    Exposed { who: Vec<String> },
    Unknown { why: String },
}

/// A user of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub name: String,
    pub id: AccountId,
    pub home: Option<Utf8PathBuf>,
    /// The program a log-in starts; Windows has none.
    pub shell: Option<Utf8PathBuf>,
}

/// How the system itself names a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountId {
    Unix {
        uid: u32,
        gid: u32,
        /// All groups, the primary one first.
        groups: Vec<u32>,
    },
    Windows {
        sid: String,
    },
}

/// The steps from a base down to `name`. Anything that does not go strictly down is refused.
fn steps_down(name: &Utf8Path) -> Result<Vec<&str>, AccessError> {
    let refused = || AccessError::NotBelow {
        name: name.to_owned(),
    };
    let steps: Option<Vec<&str>> = name
        .components()
        .map(|component| match component {
            Utf8Component::Normal(step) if !step.contains('\0') => Some(step),
            _ => None,
        })
        .collect();
    steps.filter(|steps| !steps.is_empty()).ok_or_else(refused)
}

/// Why access could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    #[error("there is no user `{name}` on this machine")]
    NoSuchUser { name: String },
    #[error("there is no group of users `{name}` on this machine")]
    NoSuchGroup { name: String },
    #[error("the group of users `{name}` means nothing on this system")]
    GroupsNotSupported { name: String },
    #[error("`{name}` is not a path below another")]
    NotBelow { name: Utf8PathBuf },
    #[error("could not make the folder `{path}` for its owner")]
    Folder {
        path: Utf8PathBuf,
        source: io::Error,
    },
    #[error("could not look up the user `{name}`")]
    LookUp { name: String, source: io::Error },
    #[error("the user database is not readable")]
    Accounts { source: AccountFilesError },
    #[error("could not read who may access `{path}`")]
    Read {
        path: Utf8PathBuf,
        source: io::Error,
    },
    #[error("could not restrict `{path}` to its owner")]
    Restrict {
        path: Utf8PathBuf,
        source: io::Error,
    },
    #[error("`{path}` is a link, and what it points to may belong to someone else")]
    Link { path: Utf8PathBuf },
    #[error("could not learn who this process runs as")]
    CurrentUser { source: io::Error },
}
