//! Deciding what a set of packages would become. Pure: everything the machine knows is given, all
//! faults are found at once, and a plan is a value that leaves the executor nothing to decide.

mod accounts;
mod changes;
mod fault;
mod merge;

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use transom_model::os::Os;
use transom_model::package::PackageId;

pub use accounts::KnownAccounts;
pub use changes::{Changes, Difference, PackageChange};
pub use fault::ActivationFault;

use super::load::LoadedPackage;
use super::manifest::{Contents, Manifest, PackageContents};
use super::places::Places;
use merge::{Merge, Merged};

/// Variables that the node sets itself.
const RESERVED_VARIABLES: [&str; 2] = ["LD_LIBRARY_PATH", "PATH"];

/// All that a plan is made from.
#[derive(Debug)]
pub struct Situation<'a> {
    pub places: &'a Places,
    pub roles: &'a [String],
    pub packages: Vec<LoadedPackage>,
    pub accounts: KnownAccounts,
    /// What is active now.
    pub active: Option<&'a Manifest>,
    /// Unit files of the node's unit folder, by name, that nobody of ours made.
    pub foreign_units: BTreeMap<String, Utf8PathBuf>,
    /// Places of ours that somebody else has taken.
    pub occupied: Vec<Utf8PathBuf>,
}

/// What will be done, completely.
#[derive(Debug, Clone)]
pub struct ActivationPlan {
    pub contents: Contents,
    /// Against what is active now.
    pub changes: Changes,
    /// What is active now.
    pub base: Option<u64>,
    /// What a person should know, and that keeps nothing from happening.
    pub remarks: Vec<String>,
    pub(super) folders: Vec<String>,
    pub(super) units: BTreeMap<String, Vec<u8>>,
    pub(super) buildinfo: Value,
    is_same: bool,
}

impl ActivationPlan {
    /// Whether the same is active already.
    pub fn is_unchanged(&self) -> bool {
        self.is_same
    }
}

/// Plans the activation of the packages of a situation.
pub fn plan(
    situation: Situation<'_>,
    mut faults: Vec<ActivationFault>,
) -> Result<ActivationPlan, Vec<ActivationFault>> {
    let Situation {
        places,
        roles,
        mut packages,
        accounts,
        active,
        foreign_units,
        occupied,
    } = situation;
    packages.sort_by(|a, b| a.id.name_str().cmp(b.id.name_str()).then(a.id.cmp(&b.id)));
    if roles.len() > 1 {
        faults.push(ActivationFault::SeveralRoles {
            roles: roles.to_vec(),
        });
    }
    let occupied = occupied.into_iter();
    faults.extend(occupied.map(|path| ActivationFault::OccupiedPlace { path }));
    check_names(&packages, &mut faults);
    check_environment(&packages, &mut faults);
    check_settings(&packages, &mut faults);
    check_groups(&packages, &mut faults);
    let mut remarks = Vec::new();
    let users = match places.os {
        Os::Linux => accounts::needed(&packages, &accounts, &mut faults),
        Os::Windows => {
            remarks.extend(packages.iter().filter_map(account_remark));
            BTreeMap::new()
        }
    };
    let merged = Merge::of(places.os, &packages, &mut faults);
    check_units(places, &merged, &foreign_units, &mut faults);
    if !faults.is_empty() {
        return Err(faults);
    }
    let units = merged.units.into_iter();
    let (records, texts) = units
        .map(|(name, (unit, text))| ((name.clone(), unit), (name, text)))
        .unzip();
    let contents = Contents {
        os: places.os,
        root: places.root.clone(),
        repository: places.repository.clone(),
        unit_dir: places.unit_dir.clone(),
        roles: roles.to_vec(),
        units: records,
        state_directories: state_directories(&packages, places.os),
        users,
        sysctl: settings(&packages),
        packages: packages
            .iter()
            .zip(merged.links)
            .map(|(package, links)| PackageContents {
                id: package.id.clone(),
                environment: package.info.environment.clone(),
                links,
            })
            .collect(),
    };
    let before = active.map(|manifest| &manifest.contents);
    Ok(ActivationPlan {
        changes: Changes::between(before, Some(&contents)),
        base: active.map(|manifest| manifest.generation),
        is_same: before == Some(&contents),
        contents,
        remarks,
        folders: merged.folders,
        units: texts,
        buildinfo: buildinfo(packages),
    })
}

fn check_names(packages: &[LoadedPackage], faults: &mut Vec<ActivationFault>) {
    for pair in packages.windows(2) {
        if pair[0].id.name_str() == pair[1].id.name_str() {
            faults.push(ActivationFault::RepeatedName {
                first: pair[0].id.clone(),
                second: pair[1].id.clone(),
            });
        }
    }
    for package in packages {
        for requirement in &package.info.requires {
            let is_met = packages
                .binary_search_by(|other| other.id.name_str().cmp(requirement.name.as_str()))
                .is_ok();
            if !is_met {
                faults.push(ActivationFault::UnmetRequirement {
                    id: package.id.clone(),
                    name: requirement.name.clone(),
                });
            }
        }
    }
}

fn check_environment(packages: &[LoadedPackage], faults: &mut Vec<ActivationFault>) {
    let mut seen: BTreeMap<&str, &PackageId> = BTreeMap::new();
    for package in packages {
        for (variable, value) in &package.info.environment {
            let id = package.id.clone();
            if RESERVED_VARIABLES.contains(&variable.as_str()) {
                faults.push(ActivationFault::ReservedVariable {
                    id,
                    variable: variable.clone(),
                });
            } else if let Some(first) = seen.insert(variable, &package.id) {
                faults.push(ActivationFault::RepeatedVariable {
                    variable: variable.clone(),
                    first: first.clone(),
                    second: id,
                });
            } else if variable.is_empty()
                || variable.contains(['=', '\n', '\r', '\0'])
                || value.contains(['\n', '\r', '\0'])
            {
                faults.push(ActivationFault::ImpossibleVariable {
                    id,
                    variable: variable.clone(),
                });
            }
        }
    }
}

fn check_settings(packages: &[LoadedPackage], faults: &mut Vec<ActivationFault>) {
    let mut seen: BTreeMap<&str, (&Value, &PackageId)> = BTreeMap::new();
    for package in packages {
        if !package.sysctl.is_empty() && package.services.is_empty() {
            faults.push(ActivationFault::SettingsWithoutService {
                id: package.id.clone(),
            });
        }
        for (setting, value) in package.sysctl.values().flatten() {
            let (first_value, first) = seen.entry(setting).or_insert((value, &package.id));
            if *first_value != value {
                faults.push(ActivationFault::ConflictingSetting {
                    setting: setting.clone(),
                    first: (*first).clone(),
                    second: package.id.clone(),
                });
            }
        }
    }
}

fn check_groups(packages: &[LoadedPackage], faults: &mut Vec<ActivationFault>) {
    for package in packages {
        if let (Some(group), None) = (&package.info.group, &package.info.username) {
            faults.push(ActivationFault::GroupWithoutUser {
                id: package.id.clone(),
                group: group.clone(),
            });
        }
    }
}

fn check_units(
    places: &Places,
    merged: &Merged,
    foreign: &BTreeMap<String, Utf8PathBuf>,
    faults: &mut Vec<ActivationFault>,
) {
    for (name, (unit, _)) in &merged.units {
        if places.unit_dir == places.root && Places::is_of_root(name) {
            faults.push(ActivationFault::ReservedUnit {
                id: unit.package.clone(),
                unit: name.clone(),
            });
        } else if let Some(path) = foreign.get(name) {
            faults.push(ActivationFault::ForeignUnit {
                id: unit.package.clone(),
                path: path.clone(),
            });
        }
    }
}

fn account_remark(package: &LoadedPackage) -> Option<String> {
    let user = package.info.username.as_ref()?;
    Some(format!(
        "package `{}` asks for the account `{user}`: on Windows its services run as the system",
        package.id
    ))
}

fn state_directories(
    packages: &[LoadedPackage],
    os: Os,
) -> BTreeMap<transom_model::package::PackageName, Option<transom_model::package::UserName>> {
    packages
        .iter()
        .filter(|package| package.info.state_directory)
        .map(|package| {
            let owner = package.info.username.clone().filter(|_| os == Os::Linux);
            (package.id.name(), owner)
        })
        .collect()
}

/// The settings of each service that its own package has a unit file for.
fn settings(packages: &[LoadedPackage]) -> BTreeMap<String, Map<String, Value>> {
    packages
        .iter()
        .flat_map(|package| {
            let services = package.sysctl.iter();
            services.filter(|(service, _)| package.services.contains(*service))
        })
        .map(|(service, settings)| (service.clone(), settings.clone()))
        .collect()
}

fn buildinfo(packages: Vec<LoadedPackage>) -> Value {
    packages
        .into_iter()
        .map(|package| (package.id.name_str().to_owned(), package.buildinfo))
        .collect()
}

fn sha256_hex(bytes: &[u8]) -> String {
    crate::hash::hex(&Sha256::digest(bytes))
}
