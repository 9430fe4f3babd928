//! Users and their groups as numbers, looked up before the fork.

use std::ffi::CString;

use nix::unistd::{Gid, Group, Uid, User, getgrouplist, getgroups};

use super::super::{GroupSpec, Spawn, SpawnError, UserSpec};

/// Whom the child becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    /// `None`: it stays the user that we are.
    pub(super) user: Option<u32>,
    pub(super) group: u32,
    pub(super) groups: Vec<u32>,
}

impl Account {
    /// `None`: nothing changes, and an unprivileged process may not even say so.
    pub(super) fn find(spec: &Spawn) -> Result<Option<Self>, SpawnError> {
        let main = spec.user_group.as_ref().map(number).transpose()?;
        let mut account = match (&spec.user, main) {
            (Some(user), main) => Self::of_user(user, main)?,
            (None, None) if spec.more_user_groups.is_empty() => return Ok(None),
            // The groups that we are in ourselves are not for the program.
            (None, main) => {
                let group = main.unwrap_or_else(|| Gid::effective().as_raw());
                Self {
                    user: None,
                    group,
                    groups: vec![group],
                }
            }
        };
        for group in &spec.more_user_groups {
            let group = number(group)?;
            if !account.groups.contains(&group) {
                account.groups.push(group);
            }
        }
        Ok((!account.is_ourselves(spec)).then_some(account))
    }

    fn of_user(spec: &UserSpec, main: Option<u32>) -> Result<Self, SpawnError> {
        let failed = |source: nix::Error| SpawnError::SwitchUser {
            user: spec.clone(),
            source: source.into(),
        };
        match spec {
            UserSpec::Name(name) => {
                let user = User::from_name(name).map_err(failed)?;
                let user = user.ok_or_else(|| SpawnError::UnknownUser { user: spec.clone() })?;
                Self::listed(&user, main).map_err(failed)
            }
            UserSpec::Id {
                user,
                group: Some(group),
            } => Ok(Self::bare(*user, main.unwrap_or(*group))),
            UserSpec::Id { user, group: None } => {
                match User::from_uid(Uid::from_raw(*user)).map_err(failed)? {
                    Some(user) => Self::listed(&user, main).map_err(failed),
                    None => Ok(Self::bare(*user, main.unwrap_or(*user))),
                }
            }
        }
    }

    fn bare(user: u32, group: u32) -> Self {
        Self {
            user: Some(user),
            group,
            groups: vec![group],
        }
    }

    fn listed(user: &User, main: Option<u32>) -> nix::Result<Self> {
        let name = CString::new(user.name.as_bytes()).map_err(|_| nix::Error::EINVAL)?;
        let group = main.map_or(user.gid, Gid::from_raw);
        let groups = getgrouplist(&name, group)?;
        Ok(Self {
            user: Some(user.uid.as_raw()),
            group: group.as_raw(),
            groups: groups.into_iter().map(Gid::as_raw).collect(),
        })
    }

    /// Whether we are all of this already and lack the right to set it.
    fn is_ourselves(&self, spec: &Spawn) -> bool {
        if Uid::effective().is_root() {
            return false;
        }
        let same_user = self
            .user
            .is_none_or(|user| Uid::effective() == Uid::from_raw(user));
        // Groups that were asked for by name must hold; the others come from the user.
        let has_all = spec.more_user_groups.is_empty() || {
            let ours = getgroups().unwrap_or_default();
            let is_ours =
                |group: &u32| *group == self.group || ours.contains(&Gid::from_raw(*group));
            self.groups.iter().all(is_ours)
        };
        same_user && Gid::effective() == Gid::from_raw(self.group) && has_all
    }
}

fn number(spec: &GroupSpec) -> Result<u32, SpawnError> {
    match spec {
        GroupSpec::Id(number) => Ok(*number),
        GroupSpec::Name(name) => {
            let found = Group::from_name(name).map_err(|source| SpawnError::LookUpGroup {
                group: spec.clone(),
                source: source.into(),
            })?;
            let group = found.ok_or_else(|| SpawnError::UnknownGroup {
                group: spec.clone(),
            })?;
            Ok(group.gid.as_raw())
        }
    }
}
