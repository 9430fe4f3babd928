//! Finds and reads units in the unit folders. The folders are listed once, when the store is made;
//! files are read when they are asked for. A new look is a new store.

mod index;
mod list;

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use transom_model::os::Os;

use super::dependencies::{self, ReverseDependencies};
use super::name::UnitName;
use super::parse::{UnitSource, parse};
use super::problem::{Problem, Severity};
use super::specifier::SpecifierContext;
use super::{Unit, builtin};

pub(super) use index::{Content, Index, LinkEntry, LinkFolder, MASK_TEXT};
pub use list::{UnitFile, UnitFileState};

/// An alias of an alias of an alias is a loop or a joke.
const LONGEST_ALIAS_CHAIN: usize = 8;

/// Why the unit folders could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("cannot read `{path}`")]
    Read {
        path: Utf8PathBuf,
        source: io::Error,
    },
    #[error("the unit folders hold more than {maximum} files")]
    TooManyFiles { maximum: usize },
}

impl LoadError {
    fn read(path: &Utf8Path, source: io::Error) -> Self {
        Self::Read {
            path: path.to_owned(),
            source,
        }
    }
}

/// What became of looking for a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadOutcome {
    /// May have warnings.
    Loaded(Box<Unit>),
    NotFound,
    Masked,
    /// There is a file, and it cannot be used.
    Bad(BadUnit),
}

/// A unit that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadUnit {
    pub source: Option<Utf8PathBuf>,
    pub description: String,
    pub problems: Vec<Problem>,
}

/// The units of one machine.
#[derive(Debug, Clone)]
pub struct UnitStore {
    folders: Vec<Utf8PathBuf>,
    specifiers: SpecifierContext,
    index: Index,
}

impl UnitStore {
    /// Lists `folders`, most important first; folders that do not exist are empty. The first is
    /// where enabling writes to, the second where it writes with `--runtime`.
    pub fn load(folders: &[Utf8PathBuf], specifiers: SpecifierContext) -> Result<Self, LoadError> {
        Ok(Self {
            folders: folders.to_vec(),
            index: Index::scan(folders, specifiers.os)?,
            specifiers,
        })
    }

    pub fn os(&self) -> Os {
        self.specifiers.os
    }

    pub fn folders(&self) -> &[Utf8PathBuf] {
        &self.folders
    }

    pub(super) fn links(&self) -> &[LinkEntry] {
        &self.index.links
    }

    /// Files in unit folders that are none of ours by their names.
    pub fn ignored_files(&self) -> &[Utf8PathBuf] {
        &self.index.ignored
    }

    /// The unit that `name` stands for, aliases followed. A name without a file stands for itself.
    pub fn resolve(&self, name: &UnitName) -> UnitName {
        let mut current = name.clone();
        for _ in 0..LONGEST_ALIAS_CHAIN {
            match self.alias_target(&current) {
                Some(next) if next != current => current = next,
                _ => return current,
            }
        }
        current
    }

    fn alias_target(&self, name: &UnitName) -> Option<UnitName> {
        let Some(file) = self.file(name) else {
            return builtin::alias(name);
        };
        let Content::Alias(target) = &file.content else {
            return None;
        };
        match name.instance() {
            Some(instance) if target.is_template() => target.with_instance(instance).ok(),
            _ => Some(target.clone()),
        }
    }

    /// All files named `name`, most important first.
    pub(super) fn files_of(&self, name: &UnitName) -> &[index::FileEntry] {
        self.index.files.get(name).map_or(&[], Vec::as_slice)
    }

    /// Files in one folder that make other names for `name`.
    pub(super) fn alias_files(&self, name: &UnitName, place: usize) -> Vec<Utf8PathBuf> {
        self.index
            .files
            .values()
            .flatten()
            .filter(|file| file.folder == place && file.content == Content::Alias(name.clone()))
            .map(|file| file.path.clone())
            .collect()
    }

    /// Looks away from links and aliases of one folder.
    pub(super) fn forget_links(&mut self, place: usize) {
        self.index.links.retain(|link| link.folder != place);
        for files in self.index.files.values_mut() {
            files.retain(|file| file.folder != place || !matches!(file.content, Content::Alias(_)));
        }
        self.index.files.retain(|_, files| !files.is_empty());
    }

    /// The most important file for `name`: its own, or for an instance its template's.
    pub(super) fn file(&self, name: &UnitName) -> Option<&index::FileEntry> {
        let own = |name: &UnitName| self.index.files.get(name).and_then(|files| files.first());
        own(name).or_else(|| own(&name.template()?))
    }

    /// The file that describes `name`, if there is one and it is not a mask.
    pub fn file_of(&self, name: &UnitName) -> Option<&Utf8Path> {
        self.file(&self.resolve(name))
            .filter(|file| file.content != Content::Masked)
            .map(|file| file.path.as_path())
    }

    /// Reads a unit with its drop-ins, links and implied dependencies.
    pub fn get(&self, name: &UnitName) -> LoadOutcome {
        let resolved = self.resolve(name);
        let mut outcome = self.read(&resolved, name);
        if let LoadOutcome::Loaded(unit) = &mut outcome {
            dependencies::add_implied(unit, |other| {
                let other = self.resolve(other);
                match self.read(&other, &other) {
                    LoadOutcome::Loaded(other) => Some(*other),
                    _ => None,
                }
            });
        }
        outcome
    }

    /// Reads `name`, which is no alias; `asked` is the name it was asked for by.
    fn read(&self, name: &UnitName, asked: &UnitName) -> LoadOutcome {
        if name.is_template() {
            let message = format!("`{name}` is a template and has no instance name");
            return bad(
                self.file_of(name),
                Problem::of_unit(Severity::Error, message),
            );
        }
        let fragment = match self.fragment(name) {
            Ok(Some(fragment)) => fragment,
            Ok(None) => return LoadOutcome::NotFound,
            Err(outcome) => return *outcome,
        };
        let mut drop_ins = Vec::new();
        for path in self.drop_ins(name, asked) {
            match index::read_unit_file(&path) {
                Ok(bytes) => drop_ins.push(UnitSource { path, bytes }),
                Err(error) => return bad(Some(&path), unreadable(&path, &error)),
            }
        }
        let mut unit = parse(name, Some(&fragment), &drop_ins, &self.specifiers);
        if fragment.path.as_str().is_empty() {
            unit.source = None;
        }
        self.add_links(&mut unit);
        if unit.is_usable() {
            LoadOutcome::Loaded(Box::new(unit))
        } else {
            LoadOutcome::Bad(BadUnit {
                source: unit.source,
                description: unit.description,
                problems: unit.problems,
            })
        }
    }

    fn fragment(&self, name: &UnitName) -> Result<Option<UnitSource>, Box<LoadOutcome>> {
        let Some(file) = self.file(name) else {
            let text = builtin::text(name);
            return Ok(text.map(|text| UnitSource {
                path: Utf8PathBuf::new(),
                bytes: text.into_bytes(),
            }));
        };
        match &file.content {
            Content::Masked => Err(Box::new(LoadOutcome::Masked)),
            Content::Alias(_) => {
                let message = format!("the aliases of `{name}` lead in a circle or too far");
                Err(Box::new(bad(
                    Some(&file.path),
                    Problem::of_unit(Severity::Error, message),
                )))
            }
            Content::Unit | Content::Linked => {
                let path = linked_file(file);
                match index::read_unit_file(&path) {
                    Ok(bytes) => Ok(Some(UnitSource { path, bytes })),
                    // A link whose file is gone.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                    Err(error) => Err(Box::new(bad(Some(&path), unreadable(&path, &error)))),
                }
            }
        }
    }

    /// Drop-ins in the order they apply: by file name; of equal names the more special counts.
    fn drop_ins(&self, name: &UnitName, asked: &UnitName) -> Vec<Utf8PathBuf> {
        let mut chosen: BTreeMap<String, Utf8PathBuf> = BTreeMap::new();
        let mut owners = name.drop_in_names();
        if asked != name {
            owners.extend(asked.drop_in_names());
        }
        for owner in owners {
            let found = self.index.drop_ins.get(&file_name_of(&owner, self.os()));
            // The most important folder comes last and so wins.
            for (_, path) in found.into_iter().flatten().rev() {
                let file_name = path.file_name().unwrap_or_default().to_owned();
                chosen.insert(file_name, path.clone());
            }
        }
        // A drop-in that is a link to nothing only hides others of its name.
        chosen
            .into_values()
            .filter(|path| !index::links_to_nothing(path))
            .collect()
    }

    /// Adds what `.wants`, `.requires` and `.upholds` folders say.
    fn add_links(&self, unit: &mut Unit) {
        let owners: Vec<String> = [Some(unit.name.clone()), unit.name.template()]
            .into_iter()
            .flatten()
            .map(|owner| owner.file_name(self.os()))
            .chain(self.other_names(&unit.name))
            .collect();
        let mut seen = BTreeSet::new();
        for link in self
            .index
            .links
            .iter()
            .filter(|link| owners.contains(&link.owner))
        {
            // The first folder decides about a link, the others repeat or are overruled.
            if !seen.insert((link.kind, &link.name)) || link.is_masked || link.name == unit.name {
                continue;
            }
            let mut name = self.resolve(&link.name);
            if name.is_template() {
                let Some(Ok(instance)) = unit
                    .name
                    .instance()
                    .map(|instance| name.with_instance(instance))
                else {
                    unit.problems.push(Problem {
                        file: Some(link.path.clone()),
                        line: None,
                        severity: Severity::Warning,
                        directive: None,
                        message: format!(
                            "`{name}` is a template and not a unit; the link is ignored"
                        ),
                        hint: None,
                    });
                    continue;
                };
                name = instance;
            }
            let set = match link.kind {
                LinkFolder::Wants => &mut unit.dependencies.wants,
                LinkFolder::Requires => &mut unit.dependencies.requires,
                LinkFolder::Upholds => &mut unit.dependencies.upholds,
            };
            set.insert(name);
        }
    }

    /// File names of the aliases of `name`.
    fn other_names(&self, name: &UnitName) -> Vec<String> {
        self.index
            .files
            .keys()
            .cloned()
            .chain(builtin::aliases())
            .filter(|other| other != name && self.resolve(other) == *name)
            .map(|other| other.file_name(self.os()))
            .collect()
    }

    /// Every name that has a file or is wanted by a link, and the built-in targets.
    pub fn names(&self) -> BTreeSet<UnitName> {
        self.index
            .files
            .keys()
            .chain(self.index.links.iter().map(|link| &link.name))
            .filter(|name| !name.is_template())
            .map(|name| self.resolve(name))
            .chain(builtin::names())
            .collect()
    }

    /// Who depends on whom, over all unit files that can be used.
    pub fn reverse_dependencies(&self) -> BTreeMap<UnitName, ReverseDependencies> {
        let units: Vec<Unit> = self
            .names()
            .iter()
            .filter_map(|name| match self.get(name) {
                LoadOutcome::Loaded(unit) => Some(*unit),
                _ => None,
            })
            .collect();
        dependencies::reverse(&units)
    }

    /// The unit as enabling sees it: templates too, problems or not.
    pub(super) fn read_for_install(&self, name: &UnitName) -> Result<Option<Unit>, LoadError> {
        let Some(file) = self.file(name) else {
            return Ok(None);
        };
        let read = |path: Utf8PathBuf| match index::read_unit_file(&path) {
            Ok(bytes) => Ok(UnitSource { path, bytes }),
            Err(source) => Err(LoadError::read(&path, source)),
        };
        let fragment = read(linked_file(file))?;
        let drop_ins: Vec<UnitSource> = self
            .drop_ins(name, name)
            .into_iter()
            .map(read)
            .collect::<Result<_, _>>()?;
        Ok(Some(parse(
            name,
            Some(&fragment),
            &drop_ins,
            &self.specifiers,
        )))
    }
}

/// Where the text is: a pointer file to the same name elsewhere holds only a path.
fn linked_file(file: &index::FileEntry) -> Utf8PathBuf {
    if file.content == Content::Linked
        && fs_err::read_link(&file.path).is_err()
        && let Ok(text) = fs_err::read_to_string(&file.path)
    {
        return Utf8PathBuf::from(text.trim());
    }
    file.path.clone()
}

/// `foo.service` or `service` as it is spelled in a folder.
fn file_name_of(owner: &str, os: Os) -> String {
    match UnitName::new(owner) {
        Ok(name) => name.file_name(os),
        Err(_) => owner.to_owned(),
    }
}

fn bad(source: Option<&Utf8Path>, problem: Problem) -> LoadOutcome {
    LoadOutcome::Bad(BadUnit {
        source: source.map(Utf8Path::to_owned),
        description: String::new(),
        problems: vec![problem],
    })
}

fn unreadable(path: &Utf8Path, error: &io::Error) -> Problem {
    Problem {
        file: Some(path.to_owned()),
        line: None,
        severity: Severity::Error,
        directive: None,
        message: format!("cannot be read: {error}"),
        hint: None,
    }
}
