//! The pointer: one small file that says which generation is active. It is the truth; links and unit
//! files are derived from it. It is replaced in one instant, and what it names was complete before.

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};
use transom_host::files::{Access, FileError, Files, Kind};

use super::NodeError;
use super::places::Places;

const FORMAT: u32 = 1;
const LONGEST: u64 = 64 * 1024;

/// What is active, and what was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pointer {
    format: u32,
    /// The active generation; `None` after the first one failed.
    pub active: Option<u64>,
    /// The generation before it that had proved itself.
    pub previous: Option<u64>,
    /// No generation with a higher number was ever active: what is there with one is debris.
    pub highest: u64,
    /// Where to return to, while the active generation has not proved itself yet.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub trial: Option<Return>,
}

/// The state before a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Return {
    pub active: Option<u64>,
    pub previous: Option<u64>,
}

impl Pointer {
    /// Nothing was ever active.
    pub(super) fn never() -> Self {
        Self {
            format: FORMAT,
            active: None,
            previous: None,
            highest: 0,
            trial: None,
        }
    }

    /// The pointer after a switch to `generation`, on trial or for good.
    pub(super) fn switched_to(&self, generation: u64, on_trial: bool) -> Self {
        let (active, previous) = (self.active, self.previous);
        Self {
            format: FORMAT,
            active: Some(generation),
            previous: active.filter(|active| *active != generation).or(previous),
            highest: self.highest.max(generation),
            trial: on_trial.then_some(Return { active, previous }),
        }
    }

    /// The pointer after the active generation has proved itself.
    pub(super) fn confirmed(&self) -> Self {
        Self {
            trial: None,
            ..self.clone()
        }
    }

    /// The pointer after the active generation has failed. `None` if it was not on trial.
    pub(super) fn returned(&self) -> Option<Self> {
        let Return { active, previous } = self.trial?;
        Some(Self {
            active,
            previous,
            trial: None,
            ..self.clone()
        })
    }

    /// The pointer when nothing is to be active any more. What was is remembered, as its unit files
    /// need not be where they would be now.
    pub(super) fn emptied(&self) -> Self {
        Self {
            active: None,
            previous: self.active.or(self.previous),
            trial: None,
            ..self.clone()
        }
    }

    pub fn is_on_trial(&self) -> bool {
        self.trial.is_some()
    }
}

/// Reads the pointer. `None`: there is none, nothing was ever active here.
pub(super) fn read(files: &dyn Files, places: &Places) -> Result<Option<Pointer>, NodeError> {
    let path = places.pointer();
    let bytes = match files.read(&path, LONGEST) {
        Ok(bytes) => bytes,
        Err(FileError::NotFound { .. }) => return Ok(None),
        Err(error) => {
            let is_folder = files
                .metadata(&path)
                .is_ok_and(|metadata| metadata.kind == Kind::Dir);
            return Err(if is_folder {
                NodeError::ForeignRoot { path }
            } else {
                error.into()
            });
        }
    };
    let damaged = |path: Utf8PathBuf, reason: String| NodeError::Damaged { path, reason };
    let pointer: Pointer =
        serde_json::from_slice(&bytes).map_err(|error| damaged(path.clone(), error.to_string()))?;
    if pointer.format != FORMAT {
        let reason = format!("it has format {}, and {FORMAT} is known", pointer.format);
        return Err(damaged(path, reason));
    }
    Ok(Some(pointer))
}

/// Puts a pointer in place of the old one: the switch itself.
pub(super) fn write(
    files: &dyn Files,
    places: &Places,
    pointer: &Pointer,
) -> Result<(), NodeError> {
    let mut bytes = serde_json::to_vec(pointer).map_err(|error| NodeError::Damaged {
        path: places.pointer(),
        reason: error.to_string(),
    })?;
    bytes.push(b'\n');
    Ok(files.write_durable(&places.pointer(), &bytes, Access::Public)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_that_fails_leads_back_to_exactly_what_was() {
        let first = Pointer::never().switched_to(1, false);
        let second = first.switched_to(2, false);
        let third = second.switched_to(3, true);
        assert_eq!((third.active, third.previous), (Some(3), Some(2)));
        let back = third.returned().unwrap();
        assert_eq!((back.active, back.previous), (Some(2), Some(1)));
        assert_eq!(back.highest, 3);
        assert_eq!(third.confirmed().returned(), None);
    }

    #[test]
    fn the_first_trial_that_fails_leaves_nothing_active() {
        let back = Pointer::never().switched_to(1, true).returned().unwrap();
        assert_eq!((back.active, back.previous, back.highest), (None, None, 1));
    }

    #[test]
    fn switching_to_what_is_active_keeps_what_was_before() {
        let pointer = Pointer::never().switched_to(1, false).switched_to(2, false);
        assert_eq!(pointer.switched_to(2, false).previous, Some(1));
    }
}
