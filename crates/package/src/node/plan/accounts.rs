//! Which accounts a set of packages needs, and why they cannot be had. Pure: what the machine knows is
//! given.

use std::collections::BTreeMap;

use transom_host::account::SystemAccount;
use transom_model::package::{GroupName, PackageId, UserName};

use super::fault::ActivationFault;
use crate::node::load::LoadedPackage;

/// What the machine knows about the accounts that packages name.
#[derive(Debug, Clone, Default)]
pub struct KnownAccounts {
    pub users: BTreeMap<UserName, SystemAccount>,
    /// Numbers of groups.
    pub groups: BTreeMap<GroupName, u32>,
    /// Whether people make the accounts, and we must not.
    pub are_manual: bool,
}

/// Checks the accounts that packages ask for, and says which there must be.
pub(super) fn needed(
    packages: &[LoadedPackage],
    known: &KnownAccounts,
    faults: &mut Vec<ActivationFault>,
) -> BTreeMap<UserName, Option<GroupName>> {
    let mut needed: BTreeMap<UserName, (Option<GroupName>, &PackageId)> = BTreeMap::new();
    for package in packages {
        let (id, group) = (&package.id, &package.info.group);
        let Some(user) = &package.info.username else {
            continue;
        };
        check(id, user, group.as_ref(), known, faults);
        let entry = needed.entry(user.clone()).or_insert((None, id));
        match (&entry.0, group) {
            (Some(first), Some(second)) if first != second => {
                faults.push(ActivationFault::UserInTwoGroups {
                    user: user.clone(),
                    first: entry.1.clone(),
                    second: id.clone(),
                });
            }
            (None, Some(_)) => *entry = (group.clone(), id),
            _ => {}
        }
    }
    needed
        .into_iter()
        .map(|(user, (group, _))| (user, group))
        .collect()
}

fn check(
    id: &PackageId,
    user: &UserName,
    group: Option<&GroupName>,
    known: &KnownAccounts,
    faults: &mut Vec<ActivationFault>,
) {
    let account = known.users.get(user);
    if account.is_none() && known.are_manual {
        faults.push(ActivationFault::MissingUser {
            id: id.clone(),
            user: user.clone(),
        });
    }
    let Some(group) = group else { return };
    match (known.groups.get(group), account) {
        (None, _) => faults.push(ActivationFault::UnknownGroup {
            id: id.clone(),
            group: group.clone(),
        }),
        (Some(number), Some(account))
            if account.group != *number && !account.groups.contains(number) =>
        {
            faults.push(ActivationFault::UserNotInGroup {
                id: id.clone(),
                user: user.clone(),
                group: group.clone(),
            });
        }
        _ => {}
    }
}
