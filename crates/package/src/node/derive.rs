//! What is derived from the pointer outside of generations: the link `current`, the familiar names
//! below the root, unit files. Only what is ours is replaced or removed: links below the root, and
//! unit files whose text is that of a generation.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;
use transom_host::files::{Access, FileError, Files, Kind, path};
use transom_model::os::Os;

use super::manifest::{self, Manifest};
use super::places::{FAMILIAR, Places, SERVICES};
use super::pointer::Pointer;
use super::{NodeError, generations};

const LONGEST_UNIT: u64 = 1 << 20;

/// Something that is not as the pointer says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Deviation {
    pub path: Utf8PathBuf,
    pub problem: Problem,
}

/// What is wrong with a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "detail")]
pub enum Problem {
    Missing,
    /// It is there, with another content or target.
    Differs,
    /// It belongs to a generation that is not active.
    Stale,
    /// Something that is not ours has its place.
    InTheWay,
    /// A crash left it, and a recovery will take it away.
    Debris,
    /// What is active has not proved itself, and nobody is waiting for that.
    Unconfirmed,
    /// A part of a generation or package is damaged; the text says how.
    Damaged(String),
}

impl std::fmt::Display for Deviation {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = &self.path;
        match &self.problem {
            Problem::Missing => write!(out, "`{path}` is missing"),
            Problem::Differs => write!(out, "`{path}` is not that of the active generation"),
            Problem::Stale => write!(out, "`{path}` belongs to a generation that is not active"),
            Problem::InTheWay => write!(out, "`{path}` was not made by us and is in the way"),
            Problem::Debris => write!(out, "`{path}` is left from an interrupted command"),
            Problem::Unconfirmed => write!(out, "`{path}` names a generation still on trial"),
            Problem::Damaged(how) => write!(out, "`{path}` is damaged: {how}"),
        }
    }
}

/// What should be at a path.
enum Wanted {
    Folder,
    Link(Utf8PathBuf),
    Text(Vec<u8>),
    Nothing,
}

/// One path to put right.
pub(super) struct Repair {
    pub(super) deviation: Deviation,
    wanted: Wanted,
    pub(super) is_unit: bool,
}

/// Compares what is there with what the pointer says.
pub(super) struct Derivation<'a> {
    files: &'a dyn Files,
    places: &'a Places,
    pointer: &'a Pointer,
    active: Option<Manifest>,
    /// Where unit files of ours may be.
    unit_dirs: BTreeSet<Utf8PathBuf>,
}

impl<'a> Derivation<'a> {
    pub(super) fn new(
        files: &'a dyn Files,
        places: &'a Places,
        pointer: &'a Pointer,
    ) -> Result<Self, NodeError> {
        let read = |number: Option<u64>| match number {
            Some(number) => manifest::read(files, places, number),
            None => Ok(None),
        };
        let active = read(pointer.active)?;
        let previous = match pointer.previous {
            previous if previous == pointer.active => None,
            // Only its unit folder matters: damage to it is for `check` to tell.
            previous => read(previous).unwrap_or_default(),
        };
        let unit_dirs = [&active, &previous]
            .into_iter()
            .flatten()
            .map(|manifest| manifest.contents.unit_dir.clone())
            .chain([places.unit_dir.clone()])
            .collect();
        Ok(Self {
            files,
            places,
            pointer,
            active,
            unit_dirs,
        })
    }

    pub(super) fn active(&self) -> Option<&Manifest> {
        self.active.as_ref()
    }

    /// All folders that something of ours is written into, and where a crash may leave a part of it.
    pub(super) fn folders(&self) -> BTreeSet<Utf8PathBuf> {
        let ours = [
            self.places.root.clone(),
            self.places.generations(),
            self.places.repository.clone(),
        ];
        let wants = self.unit_dirs.iter();
        let wants = wants.map(|unit_dir| wants_of(self.places.os, unit_dir));
        let unit_dirs = self.unit_dirs.iter().cloned();
        ours.into_iter().chain(wants).chain(unit_dirs).collect()
    }

    /// Everything that is not as it should be, in the order to put it right.
    pub(super) fn repairs(&self) -> Result<Vec<Repair>, NodeError> {
        let mut repairs = Vec::new();
        for (path, wanted) in self.links() {
            self.compare(path, wanted, false, &mut repairs)?;
        }
        for (path, wanted) in self.units()? {
            self.compare(path, wanted, true, &mut repairs)?;
        }
        self.stale_units(&mut repairs)?;
        Ok(repairs)
    }

    fn links(&self) -> Vec<(Utf8PathBuf, Wanted)> {
        let Some(active) = self.pointer.active else {
            let familiar = FAMILIAR.iter().map(|name| self.places.in_root(name));
            let all = [self.places.current()].into_iter().chain(familiar);
            return all.map(|path| (path, Wanted::Nothing)).collect();
        };
        let current = self.places.current_target(active);
        let mut links = vec![(self.places.current(), Wanted::Link(current))];
        if self.places.os == Os::Linux {
            links.extend(FAMILIAR.iter().map(|name| {
                let target = format!("current/{name}");
                (self.places.in_root(name), Wanted::Link(target.into()))
            }));
        }
        links
    }

    fn units(&self) -> Result<Vec<(Utf8PathBuf, Wanted)>, NodeError> {
        let Some(active) = &self.active else {
            return Ok(Vec::new());
        };
        let unit_dir = &active.contents.unit_dir;
        let (os, wants) = (self.places.os, wants_of(self.places.os, unit_dir));
        let mut units = vec![(wants.clone(), Wanted::Folder)];
        for name in active.contents.units.keys() {
            let text = self.text_of(active.generation, name)?;
            let path = path::join(os, unit_dir, name);
            let wanted = path::join(os, &wants, name);
            match os {
                Os::Linux => {
                    units.push((path.clone(), Wanted::Text(text)));
                    units.push((wanted, Wanted::Link(path)));
                }
                Os::Windows => {
                    units.push((path, Wanted::Text(text.clone())));
                    units.push((wanted, Wanted::Text(text)));
                }
            }
        }
        Ok(units)
    }

    /// A unit as it stands in a generation.
    fn text_of(&self, generation: u64, unit: &str) -> Result<Vec<u8>, NodeError> {
        let below = format!("{SERVICES}/{unit}");
        let file = path::join(self.places.os, &self.places.generation(generation), &below);
        Ok(self.files.read(&file, LONGEST_UNIT)?)
    }

    fn compare(
        &self,
        path: Utf8PathBuf,
        wanted: Wanted,
        is_unit: bool,
        repairs: &mut Vec<Repair>,
    ) -> Result<(), NodeError> {
        let problem = match (self.kind(&path)?, &wanted) {
            (None, Wanted::Nothing) => return Ok(()),
            (None, _) => Problem::Missing,
            (Some(Kind::Dir), Wanted::Folder) => return Ok(()),
            (Some(Kind::Link), Wanted::Link(target)) => {
                if self.is_same_target(&self.files.read_link(&path)?, target) {
                    return Ok(());
                }
                Problem::Differs
            }
            (Some(Kind::Link), Wanted::Nothing) => Problem::Stale,
            (Some(Kind::File), Wanted::Text(text)) => {
                if self.has_text(&path, text)? {
                    return Ok(());
                }
                Problem::Differs
            }
            // A link where a unit file should be is replaced, not followed.
            (Some(Kind::Link), Wanted::Text(_)) => Problem::Differs,
            // Not made by us, and not in our way: nothing is to be there.
            (Some(_), Wanted::Nothing) => return Ok(()),
            _ => Problem::InTheWay,
        };
        repairs.push(Repair {
            deviation: Deviation { path, problem },
            wanted,
            is_unit,
        });
        Ok(())
    }

    fn is_same_target(&self, found: &Utf8Path, wanted: &Utf8Path) -> bool {
        match self.places.os {
            Os::Linux => found == wanted,
            Os::Windows => found.as_str().eq_ignore_ascii_case(wanted.as_str()),
        }
    }

    fn kind(&self, path: &Utf8Path) -> Result<Option<Kind>, NodeError> {
        match self.files.metadata(path) {
            Ok(metadata) => Ok(Some(metadata.kind)),
            Err(FileError::NotFound { .. } | FileError::WrongKind { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn has_text(&self, path: &Utf8Path, text: &[u8]) -> Result<bool, NodeError> {
        match self.files.read(path, LONGEST_UNIT) {
            Ok(found) => Ok(found == text),
            Err(FileError::TooLarge { .. } | FileError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Units of other generations that are still in a unit folder with the text we gave them.
    fn stale_units(&self, repairs: &mut Vec<Repair>) -> Result<(), NodeError> {
        let mut found = BTreeMap::new();
        for (generation, name) in self.other_units()? {
            for unit_dir in &self.unit_dirs {
                let is_active = self.active.as_ref().is_some_and(|active| {
                    active.contents.unit_dir == *unit_dir
                        && active.contents.units.contains_key(&name)
                });
                if !is_active {
                    self.stale_unit(generation, &name, unit_dir, &mut found)?;
                }
            }
        }
        let active_dir = self.active.as_ref().map(|active| &active.contents.unit_dir);
        for unit_dir in &self.unit_dirs {
            let wants = wants_of(self.places.os, unit_dir);
            if Some(unit_dir) != active_dir && self.would_be_empty(&wants, &found)? {
                found.insert(wants, Wanted::Nothing);
            }
        }
        // A folder comes before what is in it; removed in reverse it is empty when its turn comes.
        repairs.extend(found.into_iter().rev().map(|(path, wanted)| Repair {
            deviation: Deviation {
                path,
                problem: Problem::Stale,
            },
            wanted,
            is_unit: true,
        }));
        Ok(())
    }

    /// The units of all generations but the active one.
    fn other_units(&self) -> Result<Vec<(u64, String)>, NodeError> {
        let mut units = Vec::new();
        for generation in generations::numbers(self.files, self.places)? {
            if Some(generation) == self.pointer.active {
                continue;
            }
            let services = path::join(
                self.places.os,
                &self.places.generation(generation),
                SERVICES,
            );
            let names = match self.files.names(&services) {
                Ok(names) => names,
                Err(FileError::NotFound { .. }) => Vec::new(),
                Err(error) => return Err(error.into()),
            };
            units.extend(names.into_iter().map(|entry| (generation, entry.name)));
        }
        Ok(units)
    }

    fn stale_unit(
        &self,
        generation: u64,
        name: &str,
        unit_dir: &Utf8Path,
        found: &mut BTreeMap<Utf8PathBuf, Wanted>,
    ) -> Result<(), NodeError> {
        let os = self.places.os;
        let path = path::join(os, unit_dir, name);
        let wanted = path::join(os, &wants_of(os, unit_dir), name);
        for place in [&path, &wanted] {
            let is_ours = match self.kind(place)? {
                Some(Kind::File) => self.has_text(place, &self.text_of(generation, name)?)?,
                Some(Kind::Link) => *place == wanted && self.files.read_link(place)? == path,
                _ => false,
            };
            if is_ours {
                found.insert(place.clone(), Wanted::Nothing);
            }
        }
        Ok(())
    }

    fn would_be_empty(
        &self,
        folder: &Utf8Path,
        removed: &BTreeMap<Utf8PathBuf, Wanted>,
    ) -> Result<bool, NodeError> {
        match self.files.names(folder) {
            Ok(names) => Ok(names.iter().all(|entry| {
                removed.contains_key(&path::join(self.places.os, folder, &entry.name))
            })),
            Err(FileError::NotFound { .. } | FileError::WrongKind { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Puts one path right. Where the system has no links to folders, the remark says so and nothing
    /// depends on it.
    pub(super) fn apply(&self, repair: &Repair) -> Result<Option<String>, NodeError> {
        let path = &repair.deviation.path;
        if repair.deviation.problem == Problem::InTheWay {
            return Ok(Some(repair.deviation.to_string()));
        }
        let done = match &repair.wanted {
            Wanted::Folder => self.files.create_dir_all(path),
            Wanted::Link(target) => self.files.replace_link(target, path),
            Wanted::Text(text) => self.files.write_durable(path, text, Access::Public),
            Wanted::Nothing => match self.kind(path)? {
                Some(Kind::Dir) => self.files.remove_tree(path),
                _ => self.files.remove_file(path),
            },
        };
        match done {
            Err(error @ FileError::NotSupported { .. }) if *path == self.places.current() => {
                Ok(Some(error.to_string()))
            }
            Err(error) => Err(error.into()),
            Ok(()) => Ok(None),
        }
    }
}

fn wants_of(os: Os, unit_dir: &Utf8Path) -> Utf8PathBuf {
    path::join(os, unit_dir, super::places::WANTS)
}
