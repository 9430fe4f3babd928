//! Merging the folders of packages: real folders become one, everything else must be there once. Pure
//! and linear in the number of files.

use std::collections::{BTreeMap, HashMap};

use transom_host::files::{Kind, archive};
use transom_model::os::Os;

use super::fault::ActivationFault;
use crate::node::load::LoadedPackage;
use crate::node::manifest::{Unit, place_of};
use crate::node::places::{SERVICE_CONFIGURATION, WANTS};

/// Units that belong to the node itself.
const RESERVED_UNITS: [&str; 3] = ["dcos.target", "dcos-download.service", "dcos-setup.service"];

/// The outcome of a merge.
#[derive(Debug, Default)]
pub(super) struct Merged {
    /// Folders to make, each after the one it is in.
    pub(super) folders: Vec<String>,
    /// What is linked, for each package.
    pub(super) links: Vec<Vec<String>>,
    pub(super) units: BTreeMap<String, (Unit, Vec<u8>)>,
}

/// Who has a place.
struct Holder<'a> {
    package: &'a LoadedPackage,
    is_folder: bool,
    place: String,
}

pub(super) struct Merge<'a> {
    os: Os,
    taken: HashMap<String, Holder<'a>>,
    merged: Merged,
    faults: &'a mut Vec<ActivationFault>,
}

impl<'a> Merge<'a> {
    pub(super) fn of(
        os: Os,
        packages: &'a [LoadedPackage],
        faults: &'a mut Vec<ActivationFault>,
    ) -> Merged {
        let expected = packages.iter().map(|package| package.items.len()).sum();
        let mut merge = Self {
            os,
            taken: HashMap::with_capacity(expected),
            merged: Merged::default(),
            faults,
        };
        for package in packages {
            let links = merge.items(package);
            merge.merged.links.push(links);
            merge.units(package);
        }
        merge.merged
    }

    fn items(&mut self, package: &'a LoadedPackage) -> Vec<String> {
        let mut links = Vec::with_capacity(package.items.len());
        for item in &package.items {
            let place = place_of(&item.path);
            let is_folder = item.kind == Kind::Dir;
            if !self.is_possible(package, &item.path, item.kind) {
                continue;
            }
            if self.is_of_node(&place) {
                self.faults.push(ActivationFault::ReservedFile {
                    id: package.id.clone(),
                    path: item.path.clone(),
                });
                continue;
            }
            if self.take(package, place, is_folder) && !is_folder {
                links.push(item.path.clone());
            }
        }
        links.sort();
        links
    }

    fn units(&mut self, package: &'a LoadedPackage) {
        for unit in &package.units {
            let id = || package.id.clone();
            if RESERVED_UNITS.contains(&unit.name.as_str()) {
                self.faults.push(ActivationFault::ReservedUnit {
                    id: id(),
                    unit: unit.name.clone(),
                });
                continue;
            }
            let place = format!("{WANTS}/{}", unit.name);
            if self.is_possible(package, &unit.path, Kind::File) && self.take(package, place, false)
            {
                let record = Unit {
                    package: id(),
                    path: unit.path.clone(),
                    sha256: super::sha256_hex(&unit.content),
                };
                let entry = (record, unit.content.clone());
                self.merged.units.insert(unit.name.clone(), entry);
            }
        }
    }

    /// Whether the node writes this file itself.
    fn is_of_node(&self, place: &str) -> bool {
        // Almost no file is as long as that, and the others need no look at their letters.
        place.len() == SERVICE_CONFIGURATION.len()
            && archive::key(self.os, place) == SERVICE_CONFIGURATION
    }

    /// Whether the node's system can have such an entry at all.
    fn is_possible(&mut self, package: &LoadedPackage, path: &str, kind: Kind) -> bool {
        if self.os != Os::Windows {
            return true;
        }
        let name = path.rsplit('/').next().unwrap_or(path);
        let fault = if let Err(reason) = archive::check_name(self.os, name) {
            ActivationFault::ImpossibleName {
                id: package.id.clone(),
                path: path.to_owned(),
                reason,
            }
        } else if kind == Kind::Link {
            ActivationFault::LinkOnWindows {
                id: package.id.clone(),
                path: path.to_owned(),
            }
        } else {
            return true;
        };
        self.faults.push(fault);
        false
    }

    /// Gives a place to a package, unless somebody has it. A folder may have many.
    fn take(&mut self, package: &'a LoadedPackage, place: String, is_folder: bool) -> bool {
        let key = archive::key(self.os, &place);
        let Some(holder) = self.taken.get(&key) else {
            if is_folder {
                self.merged.folders.push(place.clone());
            }
            let holder = Holder {
                package,
                is_folder,
                place,
            };
            self.taken.insert(key, holder);
            return true;
        };
        if is_folder && holder.is_folder {
            return true;
        }
        let (first, second) = (holder.package.id.clone(), package.id.clone());
        self.faults.push(if holder.place == place {
            ActivationFault::Collision {
                path: place,
                first,
                second,
            }
        } else {
            ActivationFault::CaseCollision {
                first,
                first_path: holder.place.clone(),
                second,
                second_path: place,
            }
        });
        false
    }
}
