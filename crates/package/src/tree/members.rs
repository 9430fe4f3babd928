//! Finds a tree's members and their build order: depth first, by name, what is required before what
//! requires it. Invariant: the order depends on names and variants alone.

use std::collections::{BTreeMap, BTreeSet};

use transom_model::package::{PackageName, Variant};

use super::Key;
use super::folder::SourceFolder;
use super::treeinfo::{Listed, TreeInfo};
use crate::fault::{Fault, Faults, nearest};
use crate::recipe::{Reading, Required};

/// The packages of a tree.
#[derive(Debug)]
pub(super) struct Members {
    pub(super) order: Vec<Key>,
    pub(super) bootstrap: BTreeSet<Key>,
}

/// The members of a tree. None when something is wrong with them.
pub(super) fn of_tree(
    folder: &SourceFolder,
    info: &TreeInfo,
    faults: &mut Faults,
    warnings: &mut Faults,
) -> Option<Members> {
    let before = faults.iter().count();
    let mut finder = Finder {
        folder,
        info: Some(info),
        faults,
        warnings,
    };
    let core = if info.core.is_empty() {
        finder.all()
    } else {
        finder.listed(&info.core)
    };
    let all = finder.closure(core);
    let bootstrap = if info.bootstrap.is_empty() {
        all.clone()
    } else {
        let listed = finder.listed(&info.bootstrap);
        finder.closure(listed)
    };
    for (name, variant) in bootstrap.difference(&all) {
        let message = format!(
            "`{name}` (variant {variant}) is needed for the bootstrap packages, and no package of \
             the tree"
        );
        let fault = Fault {
            path: "bootstrap_package_list".to_owned(),
            ..Fault::of_file(&info.file, message)
        };
        faults.push(fault.hint("add it to `core_package_list`"));
    }
    let order = order(folder, &all, faults);
    (faults.iter().count() == before).then_some(Members { order, bootstrap })
}

/// The wanted packages and all that they require, in build order.
pub(super) fn of_packages(
    folder: &SourceFolder,
    wanted: &[Key],
    faults: &mut Faults,
    warnings: &mut Faults,
) -> Option<Vec<Key>> {
    let before = faults.iter().count();
    let mut finder = Finder {
        folder,
        info: None,
        faults,
        warnings,
    };
    let here = Fault::of_file(folder.path(), "");
    let start = wanted
        .iter()
        .filter(|(name, variant)| finder.is_there(name, variant, &here))
        .cloned()
        .collect();
    let all = finder.closure(start);
    let order = order(folder, &all, faults);
    (faults.iter().count() == before).then_some(order)
}

struct Finder<'a> {
    folder: &'a SourceFolder,
    /// None when no tree says which variants belong together.
    info: Option<&'a TreeInfo>,
    faults: &'a mut Faults,
    warnings: &'a mut Faults,
}

impl Finder<'_> {
    /// Every package that the tree does not exclude.
    fn all(&mut self) -> BTreeSet<Key> {
        let mut keys = BTreeSet::new();
        let names: Vec<&str> = self.folder.packages().map(|(name, _)| name).collect();
        for text in names {
            let Some(package) = self.folder.package(text) else {
                continue;
            };
            let name = match &package.name {
                Ok(name) => name,
                Err(message) => {
                    self.faults.push(Fault::of_file(&package.path, message));
                    continue;
                }
            };
            let Some(info) = self.info else { continue };
            if info.exclude.contains(name) {
                continue;
            }
            let variant = info.variant_of(name);
            if self.is_there(name, &variant, &Fault::of_file(&package.path, "")) {
                keys.insert((name.clone(), variant));
            }
        }
        keys
    }

    fn listed(&mut self, list: &[Listed]) -> BTreeSet<Key> {
        let mut keys = BTreeSet::new();
        for listed in list {
            let variant = match self.info {
                Some(info) => info.variant_of(&listed.name),
                None => Variant::DEFAULT,
            };
            if self.is_there(&listed.name, &variant, &listed.fault) {
                keys.insert((listed.name.clone(), variant));
            }
        }
        keys
    }

    /// `start` and everything that it requires, in turn.
    fn closure(&mut self, start: BTreeSet<Key>) -> BTreeSet<Key> {
        let mut members = start.clone();
        let mut to_visit: Vec<Key> = start.into_iter().collect();
        while let Some(key) = to_visit.pop() {
            let Some(reading) = reading(self.folder, &key) else {
                continue;
            };
            self.faults.extend(reading.faults.clone());
            self.warnings.extend(reading.warnings.clone());
            for required in &reading.requires {
                let place = place_of(self.folder, &key, required);
                let wanted = (
                    required.requirement.name.clone(),
                    required.requirement.variant.clone(),
                );
                if self.is_wanted(&wanted, &place) && members.insert(wanted.clone()) {
                    to_visit.push(wanted);
                }
            }
        }
        members
    }

    /// Whether a requirement can be met.
    fn is_wanted(&mut self, (name, variant): &Key, place: &Fault) -> bool {
        if !self.is_there(name, variant, place) {
            return false;
        }
        let Some(info) = self.info else { return true };
        if info.exclude.contains(name) {
            self.report(
                place,
                format!("`{name}` is needed here, and excluded by {}", info.file),
                Some("take it out of `exclude`, or exclude what needs it".to_owned()),
            );
            return false;
        }
        let chosen = info.variant_of(name);
        if chosen != *variant {
            self.report(
                place,
                format!(
                    "`{name}` is needed in the variant `{variant}`, and {} chooses `{chosen}`",
                    info.file
                ),
                Some(format!(
                    "name the variant under `variants` in {}, or require `{chosen}`",
                    info.file
                )),
            );
            return false;
        }
        true
    }

    fn is_there(&mut self, name: &PackageName, variant: &Variant, place: &Fault) -> bool {
        let Some(package) = self.folder.package(name.as_str()) else {
            let known = self.folder.packages().map(|(name, _)| name);
            let hint = nearest(name.as_str(), known).map(|near| format!("did you mean `{near}`?"));
            self.report(place, format!("there is no package `{name}`"), hint);
            return false;
        };
        if package.recipes.contains_key(variant) {
            return true;
        }
        // A recipe that is there and cannot be read has its fault already.
        let file = package.recipe_file(variant);
        if !self.folder.path().join(&file).exists() {
            let known: Vec<String> = package.recipes.keys().map(ToString::to_string).collect();
            let message =
                format!("the package `{name}` has no variant `{variant}`: no file {file}");
            let hint = format!("it has {}", known.join(", "));
            self.report(place, message, Some(hint));
        }
        false
    }

    fn report(&mut self, place: &Fault, message: String, hint: Option<String>) {
        self.faults.push(Fault {
            message,
            hint,
            ..place.clone()
        });
    }
}

fn reading<'a>(folder: &'a SourceFolder, (name, variant): &Key) -> Option<&'a Reading> {
    folder.package(name.as_str())?.recipes.get(variant)
}

fn place_of(folder: &SourceFolder, (name, variant): &Key, required: &Required) -> Fault {
    let file = match folder.package(name.as_str()) {
        Some(package) => package.recipe_file(variant),
        None => name.as_str().into(),
    };
    Fault {
        line: Some(required.line),
        path: format!("requires[{}]", required.at),
        ..Fault::of_file(file, "")
    }
}

/// Sorts the members so that requirements come first. Each circle is reported once.
fn order(folder: &SourceFolder, members: &BTreeSet<Key>, faults: &mut Faults) -> Vec<Key> {
    let mut walk = Walk {
        folder,
        members,
        states: BTreeMap::new(),
        order: Vec::new(),
        faults,
    };
    for key in members {
        walk.visit(key);
    }
    walk.order
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Done,
}

struct Walk<'a> {
    folder: &'a SourceFolder,
    members: &'a BTreeSet<Key>,
    states: BTreeMap<Key, State>,
    order: Vec<Key>,
    faults: &'a mut Faults,
}

/// A member whose requirements are being visited.
struct Step {
    key: Key,
    requires: Vec<(Key, Required)>,
    next: usize,
}

impl Walk<'_> {
    /// Depth first, with a stack of our own: a chain of requirements may be as long as the tree.
    fn visit(&mut self, start: &Key) {
        if self.states.contains_key(start) {
            return;
        }
        let mut path = vec![self.open(start)];
        while let Some(step) = path.last_mut() {
            let Some((key, required)) = step.requires.get(step.next).cloned() else {
                self.states.insert(step.key.clone(), State::Done);
                self.order.push(step.key.clone());
                path.pop();
                continue;
            };
            step.next += 1;
            match self.states.get(&key) {
                Some(State::Done) => {}
                Some(State::Open) => self.circle(&path, &key, &required),
                None => {
                    let step = self.open(&key);
                    path.push(step);
                }
            }
        }
    }

    fn open(&mut self, key: &Key) -> Step {
        self.states.insert(key.clone(), State::Open);
        let mut requires: Vec<(Key, Required)> = reading(self.folder, key)
            .map(|reading| reading.requires.as_slice())
            .unwrap_or_default()
            .iter()
            .map(|required| {
                let requirement = &required.requirement;
                let key = (requirement.name.clone(), requirement.variant.clone());
                (key, required.clone())
            })
            .filter(|(key, _)| self.members.contains(key))
            .collect();
        requires.sort_by(|left, right| left.0.cmp(&right.0));
        Step {
            key: key.clone(),
            requires,
            next: 0,
        }
    }

    fn circle(&mut self, path: &[Step], to: &Key, required: &Required) {
        let from = path.iter().position(|step| step.key == *to).unwrap_or(0);
        let mut names: Vec<&str> = path[from..]
            .iter()
            .map(|step| step.key.0.as_str())
            .collect();
        names.push(to.0.as_str());
        let Some(last) = path.last() else { return };
        let fault = Fault {
            message: format!(
                "packages require each other in a circle: {}",
                names.join(" → ")
            ),
            ..place_of(self.folder, &last.key, required)
        };
        self.faults
            .push(fault.hint("one of them must do without the next"));
    }
}
