//! Recovery: whatever a crash left, afterwards the node is what its pointer says and nothing else is
//! there. Idempotent; it runs before every change.

use camino::Utf8PathBuf;
use serde::Serialize;
use transom_host::files::{Discarded, FileError, Files, Kind, path};

use super::derive::{Derivation, Deviation};
use super::generations::{self, Note};
use super::places::Places;
use super::pointer::{self, Pointer};
use super::services::Services;
use super::{NodeError, Session, is_there};
use crate::fault::sentence;

/// What a recovery found and did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Recovery {
    /// What interrupted commands had left.
    pub swept: Vec<Utf8PathBuf>,
    /// A generation that had not proved itself when its command died: the one before it is back.
    pub rolled_back: Option<u64>,
    /// What was put right.
    pub repaired: Vec<Deviation>,
    /// Whether an interrupted uninstallation was ended.
    pub uninstalled: bool,
    pub remarks: Vec<String>,
}

impl Recovery {
    /// Whether everything was as it should be.
    pub fn is_clean(&self) -> bool {
        self.swept.is_empty()
            && self.rolled_back.is_none()
            && self.repaired.is_empty()
            && !self.uninstalled
    }
}

impl Session<'_> {
    pub(super) fn recover(&self, services: &dyn Services) -> Result<Recovery, NodeError> {
        let mut recovery = Recovery::default();
        if is_there(self.files, &self.places.uninstalling())? {
            self.finish_uninstall()?;
            recovery.uninstalled = true;
            return Ok(recovery);
        }
        self.sweep(&mut recovery)?;
        let Some(pointer) = pointer::read(self.files, self.places)? else {
            self.remove_orphans(&Pointer::never(), &mut recovery)?;
            return Ok(recovery);
        };
        let pointer = self.end_trial(pointer, services, &mut recovery)?;
        self.remove_orphans(&pointer, &mut recovery)?;
        let units_changed = self.derive(&pointer, &mut recovery.repaired, &mut recovery.remarks)?;
        if units_changed || recovery.rolled_back.is_some() {
            let units = match pointer.active {
                Some(active) => self.units_in_order(active)?,
                None => Vec::new(),
            };
            if let Err(error) = services.reload().and_then(|()| services.start(&units)) {
                recovery.remarks.push(sentence(&error));
            }
        }
        Ok(recovery)
    }

    /// A trial that nobody waits for any more has failed.
    fn end_trial(
        &self,
        pointer: Pointer,
        services: &dyn Services,
        recovery: &mut Recovery,
    ) -> Result<Pointer, NodeError> {
        let (Some(failed), Some(back)) = (pointer.active, pointer.returned()) else {
            return Ok(pointer);
        };
        let mut units = self.units_in_order(failed)?;
        units.reverse();
        if let Err(error) = services.stop(&units) {
            recovery.remarks.push(sentence(&error));
        }
        let reason = "the command that activated it ended before it had proved itself";
        generations::mark_failed(self.files, self.places, failed, &[reason.to_owned()])?;
        pointer::write(self.files, self.places, &back)?;
        recovery.rolled_back = Some(failed);
        Ok(back)
    }

    /// Puts links and unit files right, and says whether a unit was among them.
    pub(super) fn derive(
        &self,
        pointer: &Pointer,
        repaired: &mut Vec<Deviation>,
        remarks: &mut Vec<String>,
    ) -> Result<bool, NodeError> {
        let derivation = Derivation::new(self.files, self.places, pointer)?;
        let mut units_changed = false;
        for repair in derivation.repairs()? {
            match derivation.apply(&repair)? {
                Some(remark) => remarks.push(remark),
                None => {
                    units_changed |= repair.is_unit;
                    repaired.push(repair.deviation);
                }
            }
        }
        Ok(units_changed)
    }

    fn sweep(&self, recovery: &mut Recovery) -> Result<(), NodeError> {
        let pointer = pointer::read(self.files, self.places)?.unwrap_or_else(Pointer::never);
        let derivation = Derivation::new(self.files, self.places, &pointer)?;
        for folder in derivation.folders() {
            match self.files.sweep_temporaries(&folder) {
                Ok(swept) => recovery.swept.extend(swept),
                Err(FileError::NotFound { .. } | FileError::WrongKind { .. }) => {}
                // Somebody has a part of it open still: the next recovery tries again.
                Err(error @ FileError::InUse { .. }) => recovery.remarks.push(sentence(&error)),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Removes generations that nothing ever pointed to, and notes about those that are gone.
    fn remove_orphans(&self, pointer: &Pointer, recovery: &mut Recovery) -> Result<(), NodeError> {
        for path in orphans(self.files, self.places, pointer)? {
            match self.files.discard(&path)? {
                Discarded::Gone => {}
                Discarded::Left { reason, .. } => recovery.remarks.push(sentence(&reason)),
            }
            recovery.swept.push(path);
        }
        Ok(())
    }
}

/// Generations that nothing ever pointed to, and notes about generations that are gone.
pub(super) fn orphans(
    files: &dyn Files,
    places: &Places,
    pointer: &Pointer,
) -> Result<Vec<Utf8PathBuf>, NodeError> {
    let numbers = generations::numbers(files, places)?;
    let mut orphans: Vec<Utf8PathBuf> = numbers
        .iter()
        .filter(|number| **number > pointer.highest)
        .map(|number| places.generation(*number))
        .collect();
    let names = match files.names(&places.generations()) {
        Ok(names) => names,
        Err(FileError::NotFound { .. }) => return Ok(orphans),
        Err(error) => return Err(error.into()),
    };
    for entry in names.iter().filter(|entry| entry.kind == Kind::File) {
        let is_there = |about: u64| about <= pointer.highest && numbers.contains(&about);
        if Note::about(&entry.name).is_some_and(|about| !is_there(about)) {
            orphans.push(path::join(places.os, &places.generations(), &entry.name));
        }
    }
    Ok(orphans)
}
