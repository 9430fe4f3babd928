//! The generations of a node and what is noted about them: pinned by a person, or failed. Notes are
//! files beside the folders, because a generation itself never changes.

use camino::Utf8PathBuf;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use transom_host::files::{Access, FileError, Files, Kind, path};
use transom_model::package::PackageId;

use super::places::Places;
use super::pointer::Pointer;
use super::{NodeError, manifest};

const LONGEST_NOTE: u64 = 1 << 20;

/// What a note says about a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Note {
    Pinned,
    Failed,
}

/// Why a generation failed, kept beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub reasons: Vec<String>,
}

/// One generation in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GenerationInfo {
    pub number: u64,
    pub created: Timestamp,
    pub parent: Option<u64>,
    pub packages: Vec<PackageId>,
    pub is_active: bool,
    /// Active, and has not proved itself yet.
    pub is_on_trial: bool,
    /// What a roll back without a number goes to.
    pub is_previous: bool,
    pub is_pinned: bool,
    pub failure: Option<Failure>,
}

/// The numbers of all generations, ascending.
pub(super) fn numbers(files: &dyn Files, places: &Places) -> Result<Vec<u64>, NodeError> {
    let names = match files.names(&places.generations()) {
        Ok(names) => names,
        Err(FileError::NotFound { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut numbers: Vec<u64> = names
        .into_iter()
        .filter(|entry| entry.kind == Kind::Dir)
        .filter_map(|entry| number_of(&entry.name))
        .collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Only the spelling that we give: `07` and `+7` are somebody else's.
fn number_of(name: &str) -> Option<u64> {
    let number: u64 = name.parse().ok()?;
    (number > 0 && number.to_string() == name).then_some(number)
}

/// All generations, ascending.
pub(super) fn list(
    files: &dyn Files,
    places: &Places,
    pointer: &Pointer,
) -> Result<Vec<GenerationInfo>, NodeError> {
    let mut list = Vec::new();
    for number in numbers(files, places)? {
        let Some(manifest) = manifest::read(files, places, number)? else {
            continue;
        };
        let is_active = pointer.active == Some(number);
        list.push(GenerationInfo {
            number,
            created: manifest.created,
            parent: manifest.parent,
            packages: manifest.ids(),
            is_active,
            is_on_trial: is_active && pointer.is_on_trial(),
            is_previous: pointer.previous == Some(number),
            is_pinned: has(files, places, number, Note::Pinned)?,
            failure: failure(files, places, number)?,
        });
    }
    Ok(list)
}

impl Note {
    const ALL: [Self; 2] = [Self::Pinned, Self::Failed];

    fn suffix(self) -> &'static str {
        match self {
            Self::Pinned => "pinned",
            Self::Failed => "failed",
        }
    }

    pub(super) fn path(self, places: &Places, number: u64) -> Utf8PathBuf {
        let name = format!("{number}.{}", self.suffix());
        path::join(places.os, &places.generations(), &name)
    }

    /// Which generation a file's name is a note about.
    pub(super) fn about(name: &str) -> Option<u64> {
        Self::ALL.iter().find_map(|note| {
            let number = name.strip_suffix(note.suffix())?.strip_suffix('.')?;
            number_of(number)
        })
    }
}

pub(super) fn has(
    files: &dyn Files,
    places: &Places,
    number: u64,
    note: Note,
) -> Result<bool, NodeError> {
    match files.metadata(&note.path(places, number)) {
        Ok(_) => Ok(true),
        Err(FileError::NotFound { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn failure(files: &dyn Files, places: &Places, number: u64) -> Result<Option<Failure>, NodeError> {
    let file = Note::Failed.path(places, number);
    match files.read(&file, LONGEST_NOTE) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| NodeError::Damaged {
                path: file,
                reason: error.to_string(),
            }),
        Err(FileError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn pin(files: &dyn Files, places: &Places, number: u64) -> Result<(), NodeError> {
    let file = Note::Pinned.path(places, number);
    Ok(files.write_durable(&file, b"{}\n", Access::Public)?)
}

pub(super) fn mark_failed(
    files: &dyn Files,
    places: &Places,
    number: u64,
    reasons: &[String],
) -> Result<(), NodeError> {
    let file = Note::Failed.path(places, number);
    let failure = Failure {
        reasons: reasons.to_vec(),
    };
    let bytes = serde_json::to_vec(&failure).map_err(|error| NodeError::Damaged {
        path: file.clone(),
        reason: error.to_string(),
    })?;
    Ok(files.write_durable(&file, &bytes, Access::Public)?)
}

pub(super) fn remove_note(
    files: &dyn Files,
    places: &Places,
    number: u64,
    note: Note,
) -> Result<(), NodeError> {
    Ok(files.remove_file(&note.path(places, number))?)
}

/// Removes all notes about a generation that is gone.
pub(super) fn forget(files: &dyn Files, places: &Places, number: u64) -> Result<(), NodeError> {
    Note::ALL
        .into_iter()
        .try_for_each(|note| remove_note(files, places, number, note))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_spelling_is_a_number() {
        for (name, number) in [("7", Some(7)), ("07", None), ("+7", None), ("0", None)] {
            assert_eq!(number_of(name), number, "{name}");
        }
        assert_eq!(Note::about("12.failed"), Some(12));
        assert_eq!(Note::about("12.pinned"), Some(12));
        for name in ["12", "x.failed", "12.old", "012.pinned"] {
            assert_eq!(Note::about(name), None, "{name}");
        }
    }
}
