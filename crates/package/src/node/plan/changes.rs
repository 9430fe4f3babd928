//! What differs between two generations, or between the active one and a plan. Pure.

use std::collections::BTreeMap;

use serde::Serialize;
use transom_model::package::PackageId;

use crate::node::manifest::Contents;

/// What a switch would change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    pub packages: Vec<PackageChange>,
    /// Paths in the generation.
    pub files: Difference,
    pub units: Difference,
    /// Names of variables.
    pub environment: Difference,
    pub users: Difference,
    pub state_directories: Difference,
    pub roles: Difference,
}

/// A package that comes, goes, or is replaced by another with the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PackageChange {
    pub name: String,
    pub before: Option<PackageId>,
    pub after: Option<PackageId>,
}

/// Names that are on one side only, or mean something else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub added: Vec<String>,
    pub removed: Vec<String>,
    pub changed: Vec<String>,
}

impl Changes {
    /// What is different in `after`. Without a `before` all of it is new.
    pub fn between(before: Option<&Contents>, after: Option<&Contents>) -> Self {
        let difference = |of: fn(&Contents) -> BTreeMap<String, String>| {
            let side = |contents: Option<&Contents>| contents.map(of).unwrap_or_default();
            Difference::between(side(before), side(after))
        };
        Self {
            packages: packages(before, after),
            files: Difference::between(files(before), files(after)),
            units: difference(|contents| {
                let units = contents.units.iter();
                units
                    .map(|(name, unit)| (name.clone(), unit.sha256.clone()))
                    .collect()
            }),
            environment: difference(|contents| {
                let packages = contents.packages.iter();
                packages
                    .flat_map(|package| package.environment.clone())
                    .collect()
            }),
            users: difference(|contents| {
                let group = |group: &Option<_>| group.as_ref().map(ToString::to_string);
                let users = contents.users.iter();
                users
                    .map(|(user, of)| (user.to_string(), group(of).unwrap_or_default()))
                    .collect()
            }),
            state_directories: difference(|contents| {
                let owner = |owner: &Option<_>| owner.as_ref().map(ToString::to_string);
                let folders = contents.state_directories.iter();
                folders
                    .map(|(name, of)| (name.to_string(), owner(of).unwrap_or_default()))
                    .collect()
            }),
            roles: difference(|contents| {
                let roles = contents.roles.iter();
                roles.map(|role| (role.clone(), String::new())).collect()
            }),
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Where each file comes from, by its place.
fn files(contents: Option<&Contents>) -> BTreeMap<String, (&PackageId, &str)> {
    let links = contents.into_iter().flat_map(Contents::links);
    links.map(|(place, id, link)| (place, (id, link))).collect()
}

fn packages(before: Option<&Contents>, after: Option<&Contents>) -> Vec<PackageChange> {
    let by_name = |contents: Option<&Contents>| -> BTreeMap<String, PackageId> {
        contents
            .into_iter()
            .flat_map(Contents::ids)
            .map(|id| (id.name_str().to_owned(), id.clone()))
            .collect()
    };
    let (mut old, new) = (by_name(before), by_name(after));
    let mut changes: Vec<PackageChange> = Vec::new();
    for (name, id) in new {
        let before = old.remove(&name);
        if before.as_ref() != Some(&id) {
            changes.push(PackageChange {
                name,
                before,
                after: Some(id),
            });
        }
    }
    changes.extend(old.into_iter().map(|(name, id)| PackageChange {
        name,
        before: Some(id),
        after: None,
    }));
    changes.sort_by(|a, b| a.name.cmp(&b.name));
    changes
}

impl Difference {
    fn between<V: PartialEq>(mut before: BTreeMap<String, V>, after: BTreeMap<String, V>) -> Self {
        let mut difference = Self::default();
        for (name, value) in after {
            match before.remove(&name) {
                None => difference.added.push(name),
                Some(old) if old != value => difference.changed.push(name),
                Some(_) => {}
            }
        }
        difference.removed = before.into_keys().collect();
        difference
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
