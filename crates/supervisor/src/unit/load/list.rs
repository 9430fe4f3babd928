//! The list of unit files with their states, as `list-unit-files` shows it.

use std::fmt;

use camino::Utf8PathBuf;

use super::{Content, LinkEntry, UnitStore};
use crate::unit::Unit;
use crate::unit::name::UnitName;

/// Whether and how a unit file is enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnitFileState {
    Enabled,
    EnabledRuntime,
    Linked,
    LinkedRuntime,
    Alias,
    Masked,
    MaskedRuntime,
    /// Nothing to enable: it has no `[Install]`.
    Static,
    /// Not enabled itself; its `Also=` or its instances may be.
    Indirect,
    Disabled,
    Bad,
}

impl UnitFileState {
    pub fn name(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::EnabledRuntime => "enabled-runtime",
            Self::Linked => "linked",
            Self::LinkedRuntime => "linked-runtime",
            Self::Alias => "alias",
            Self::Masked => "masked",
            Self::MaskedRuntime => "masked-runtime",
            Self::Static => "static",
            Self::Indirect => "indirect",
            Self::Disabled => "disabled",
            Self::Bad => "bad",
        }
    }
}

impl fmt::Display for UnitFileState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// One line of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitFile {
    pub name: UnitName,
    pub path: Utf8PathBuf,
    pub state: UnitFileState,
}

/// The place of the runtime folder in the search order.
const RUNTIME_FOLDER: usize = 1;

impl UnitStore {
    /// All unit files, by name.
    pub fn unit_files(&self) -> Vec<UnitFile> {
        self.index
            .files
            .iter()
            .filter_map(|(name, files)| {
                let file = files.first()?;
                let state = self.unit_file_state(name)?;
                Some(UnitFile {
                    name: name.clone(),
                    path: file.path.clone(),
                    state,
                })
            })
            .collect()
    }

    /// How `name` is enabled; `None` if it has no file.
    pub fn unit_file_state(&self, name: &UnitName) -> Option<UnitFileState> {
        let file = self.file(name)?;
        let in_runtime_folder = file.folder == RUNTIME_FOLDER;
        match &file.content {
            Content::Masked if in_runtime_folder => return Some(UnitFileState::MaskedRuntime),
            Content::Masked => return Some(UnitFileState::Masked),
            Content::Alias(_) => return Some(UnitFileState::Alias),
            Content::Unit | Content::Linked => {}
        }
        let Ok(Some(unit)) = self.read_for_install(name) else {
            return Some(UnitFileState::Bad);
        };
        if !unit.is_usable() {
            return Some(UnitFileState::Bad);
        }
        if self.is_enabled_in(name, &unit, 0) {
            return Some(UnitFileState::Enabled);
        }
        if self.is_enabled_in(name, &unit, RUNTIME_FOLDER) {
            return Some(UnitFileState::EnabledRuntime);
        }
        let install = &unit.install;
        Some(match file.content {
            Content::Linked if install.is_empty() && in_runtime_folder => {
                UnitFileState::LinkedRuntime
            }
            Content::Linked if install.is_empty() => UnitFileState::Linked,
            _ if install.is_empty() => UnitFileState::Static,
            _ if install.wanted_by.is_empty()
                && install.required_by.is_empty()
                && install.upheld_by.is_empty()
                && install.alias.is_empty() =>
            {
                UnitFileState::Indirect
            }
            _ => UnitFileState::Disabled,
        })
    }

    /// Whether links or aliases for `name` lie in the folder at `place`.
    fn is_enabled_in(&self, name: &UnitName, unit: &Unit, place: usize) -> bool {
        let is_meant = |link: &LinkEntry| {
            link.folder == place
                && !link.is_masked
                && (link.name == *name
                    || (name.is_template() && link.name.template().as_ref() == Some(name)))
        };
        let has_alias = || {
            unit.install.alias.iter().any(|alias| {
                self.index
                    .files
                    .get(alias)
                    .into_iter()
                    .flatten()
                    .any(|file| {
                        file.folder == place && file.content == Content::Alias(name.clone())
                    })
            })
        };
        self.index.links.iter().any(is_meant) || has_alias()
    }
}
