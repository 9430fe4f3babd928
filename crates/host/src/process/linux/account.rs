//! Users as numbers, looked up before the fork.

use std::ffi::CString;

use nix::unistd::{Gid, Uid, User, getgrouplist};

use super::super::{SpawnError, UserSpec};

/// Whom the child becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) user: u32,
    pub(super) group: u32,
    pub(super) groups: Vec<u32>,
}

impl Account {
    /// `None`: that is ourselves already, and an unprivileged process may not even say so.
    pub(super) fn find(spec: &UserSpec) -> Result<Option<Self>, SpawnError> {
        let failed = |source: nix::Error| SpawnError::SwitchUser {
            user: spec.clone(),
            source: source.into(),
        };
        let account = match spec {
            UserSpec::Name(name) => {
                let user = User::from_name(name).map_err(failed)?;
                let user = user.ok_or_else(|| SpawnError::UnknownUser { user: spec.clone() })?;
                Self::of(&user).map_err(failed)?
            }
            UserSpec::Id {
                user,
                group: Some(group),
            } => Self::bare(*user, *group),
            UserSpec::Id { user, group: None } => {
                match User::from_uid(Uid::from_raw(*user)).map_err(failed)? {
                    Some(user) => Self::of(&user).map_err(failed)?,
                    None => Self::bare(*user, *user),
                }
            }
        };
        let ourselves = Uid::effective() == Uid::from_raw(account.user)
            && Gid::effective() == Gid::from_raw(account.group)
            && !Uid::effective().is_root();
        Ok((!ourselves).then_some(account))
    }

    fn bare(user: u32, group: u32) -> Self {
        Self {
            user,
            group,
            groups: vec![group],
        }
    }

    fn of(user: &User) -> nix::Result<Self> {
        let name = CString::new(user.name.as_bytes()).map_err(|_| nix::Error::EINVAL)?;
        let groups = getgrouplist(&name, user.gid)?;
        Ok(Self {
            user: user.uid.as_raw(),
            group: user.gid.as_raw(),
            groups: groups.into_iter().map(Gid::as_raw).collect(),
        })
    }
}
