//! The switch: from one generation to another in one instant, with services around it, and back by
//! itself if the new one does not prove healthy.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Serialize;
use transom_host::account::NewAccount;
use transom_host::files::{FileError, path};

use super::checks::Checks;
use super::derive::Deviation;
use super::generations::Note;
use super::manifest::{self, Manifest};
use super::places::SERVICES;
use super::plan::ActivationPlan;
use super::pointer::{self, Pointer};
use super::services::{Services, ServicesError, in_start_order};
use super::{NodeError, Session, check, generation, generations};
use crate::fault::sentence;

const LONGEST_UNIT: u64 = 1 << 20;

/// How a switch is done.
#[derive(Debug, Clone, Copy)]
pub struct Switching<'a> {
    /// The time to note as that of a new generation.
    pub now: Timestamp,
    pub services: &'a dyn Services,
    /// Without one, the new generation is trusted at once.
    pub gate: Option<Gate<'a>>,
    /// Makes a new generation even if the same is active: for one that is damaged.
    pub rebuild: bool,
}

/// What a new generation must pass.
#[derive(Debug, Clone, Copy)]
pub struct Gate<'a> {
    pub checks: &'a dyn Checks,
    /// How long it may take until services are healthy and checks pass, in all.
    pub limit: Duration,
    /// Between two attempts of the checks.
    pub pause: Duration,
}

/// What a switch did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SwitchReport {
    pub outcome: Outcome,
    /// What is active now.
    pub active: Option<u64>,
    pub derived: Vec<Deviation>,
    pub remarks: Vec<String>,
}

/// How a switch ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Outcome {
    Activated {
        generation: u64,
        before: Option<u64>,
    },
    /// The same was active already.
    Unchanged { generation: u64 },
    /// The new generation did not prove healthy, and what was active before is active again.
    RolledBack { failed: u64, reasons: Vec<String> },
}

impl Session<'_> {
    /// Makes what a plan says active.
    pub fn execute(
        &self,
        plan: &ActivationPlan,
        switching: &Switching<'_>,
    ) -> Result<SwitchReport, NodeError> {
        let pointer = self.pointer()?.unwrap_or_else(Pointer::never);
        let active = self.active()?;
        let same = active.filter(|active| active.contents == plan.contents);
        if same.is_none() && pointer.active != plan.base {
            return Err(NodeError::OutdatedPlan {
                planned: plan.base,
                found: pointer.active,
            });
        }
        self.make_accounts(plan)?;
        self.make_state_directories(plan)?;
        if let Some(same) = same.filter(|_| !switching.rebuild) {
            return Ok(unchanged(same.generation, &plan.remarks));
        }
        let number = self.next_number(&pointer)?;
        generation::stage(self.files, self.places, plan, number, switching.now)?;
        let switched = self.switch(&pointer, number, switching);
        if let Err(NodeError::NotStopped { .. }) = &switched {
            // It never was active, and the next attempt makes its own.
            if let Err(error) = self.files.remove_tree(&self.places.generation(number)) {
                tracing::warn!(number, %error, "could not remove a generation, a recovery will");
            }
        }
        let mut report = switched?;
        report.remarks.extend(plan.remarks.iter().cloned());
        Ok(report)
    }

    /// Makes a generation active that was so before; without a number, the last that proved itself.
    pub fn rollback(
        &self,
        to: Option<u64>,
        switching: &Switching<'_>,
    ) -> Result<SwitchReport, NodeError> {
        let pointer = self.pointer()?.ok_or(NodeError::NothingActive)?;
        let number = to.or(pointer.previous).ok_or(NodeError::NoPrevious)?;
        let manifest = self.complete(number)?;
        if pointer.active == Some(number) {
            return Ok(unchanged(number, &[]));
        }
        self.refuse_foreign_units(&manifest)?;
        self.switch(&pointer, number, switching)
    }

    /// A generation that has all its parts.
    fn complete(&self, number: u64) -> Result<Manifest, NodeError> {
        let manifest = manifest::read(self.files, self.places, number)?
            .ok_or(NodeError::NoSuchGeneration { number })?;
        match check::damage(self.files, self.places, &manifest)?.first() {
            None => Ok(manifest),
            Some(deviation) => Err(NodeError::IncompleteGeneration {
                number,
                reason: deviation.to_string(),
            }),
        }
    }

    /// Units of a generation must not replace files that were made since it was active.
    fn refuse_foreign_units(&self, manifest: &Manifest) -> Result<(), NodeError> {
        let (os, number) = (self.places.os, manifest.generation);
        let active = self.active()?;
        let is_active = |unit: &String| {
            active.as_ref().is_some_and(|active| {
                active.contents.unit_dir == manifest.contents.unit_dir
                    && active.contents.units.contains_key(unit)
            })
        };
        let services = path::join(os, &self.places.generation(number), SERVICES);
        let units = manifest.contents.units.keys();
        for unit in units.filter(|unit| !is_active(unit)) {
            let place = path::join(os, &manifest.contents.unit_dir, unit);
            let ours = self
                .files
                .read(&path::join(os, &services, unit), LONGEST_UNIT)?;
            match self.files.read(&place, LONGEST_UNIT) {
                Ok(found) if found == ours => {}
                Err(FileError::NotFound { .. }) => {}
                _ => {
                    return Err(NodeError::IncompleteGeneration {
                        number,
                        reason: format!("its unit `{place}` was replaced by somebody else's"),
                    });
                }
            }
        }
        Ok(())
    }

    fn next_number(&self, pointer: &Pointer) -> Result<u64, NodeError> {
        let numbers = generations::numbers(self.files, self.places)?;
        Ok(numbers.last().copied().unwrap_or(0).max(pointer.highest) + 1)
    }

    fn make_accounts(&self, plan: &ActivationPlan) -> Result<(), NodeError> {
        for (user, group) in &plan.contents.users {
            if self.accounts.find(user.as_str())?.is_none() {
                self.accounts.create(&NewAccount {
                    name: user.to_string(),
                    group: group.as_ref().map(ToString::to_string),
                    home: self.places.root.clone(),
                })?;
            }
        }
        Ok(())
    }

    fn make_state_directories(&self, plan: &ActivationPlan) -> Result<(), NodeError> {
        for (package, owner) in &plan.contents.state_directories {
            let folder = path::join(self.places.os, &self.places.state_dir, package.as_str());
            self.files.create_dir_all(&folder)?;
            if let Some(owner) = owner
                && let Some(account) = self.accounts.find(owner.as_str())?
            {
                self.accounts.give_tree(&folder, &account)?;
            }
        }
        Ok(())
    }

    fn switch(
        &self,
        before: &Pointer,
        number: u64,
        switching: &Switching<'_>,
    ) -> Result<SwitchReport, NodeError> {
        let services = switching.services;
        let units = self.units_in_order(number)?;
        let old = match before.active {
            Some(active) => self.units_in_order(active)?,
            None => Vec::new(),
        };
        if let Err(source) = stop(services, &old) {
            // Nothing has changed yet: what runs is to run on.
            if let Err(error) = services.start(&old) {
                tracing::error!(error = %sentence(&error), "services did not start again");
            }
            return Err(NodeError::NotStopped { source });
        }
        let pointer = before.switched_to(number, switching.gate.is_some());
        pointer::write(self.files, self.places, &pointer)?;
        let mut report = SwitchReport {
            outcome: Outcome::Activated {
                generation: number,
                before: before.active,
            },
            active: Some(number),
            derived: Vec::new(),
            remarks: Vec::new(),
        };
        self.derive(&pointer, &mut report.derived, &mut report.remarks)?;
        let started = services.reload().and_then(|()| services.start(&units));
        let Some(gate) = &switching.gate else {
            return match started {
                Ok(()) => Ok(report),
                Err(source) => Err(NodeError::NotStarted {
                    generation: number,
                    source,
                }),
            };
        };
        let reasons = match started {
            Ok(()) => self.prove(number, &units, services, gate)?,
            Err(error) => vec![sentence(&error)],
        };
        if reasons.is_empty() {
            pointer::write(self.files, self.places, &pointer.confirmed())?;
            // Whatever was wrong with it earlier, it has proved itself now.
            generations::remove_note(self.files, self.places, number, Note::Failed)?;
            return Ok(report);
        }
        self.turn_back(&pointer, &units, &old, services, reasons, report)
    }

    /// Why the active generation is not healthy; nothing if it is.
    fn prove(
        &self,
        number: u64,
        units: &[String],
        services: &dyn Services,
        gate: &Gate<'_>,
    ) -> Result<Vec<String>, NodeError> {
        let started = Instant::now();
        let left = || gate.limit.saturating_sub(started.elapsed());
        let unhealthy = match services.wait_healthy(units, left()) {
            Ok(unhealthy) => unhealthy,
            Err(error) => vec![sentence(&error)],
        };
        if !unhealthy.is_empty() {
            return Ok(unhealthy);
        }
        let manifest = manifest::read(self.files, self.places, number)?
            .ok_or(NodeError::NoSuchGeneration { number })?;
        let folders: Vec<_> = manifest
            .contents
            .ids()
            .map(|id| (id.clone(), self.places.package(id)))
            .collect();
        loop {
            let results = gate.checks.run(&folders, left());
            let failures: Vec<String> = results
                .iter()
                .filter(|result| result.is_failure())
                .map(ToString::to_string)
                .collect();
            if failures.is_empty() || left() <= gate.pause {
                return Ok(failures);
            }
            std::thread::sleep(gate.pause);
        }
    }

    fn turn_back(
        &self,
        trial: &Pointer,
        units: &[String],
        old: &[String],
        services: &dyn Services,
        reasons: Vec<String>,
        mut report: SwitchReport,
    ) -> Result<SwitchReport, NodeError> {
        let (Some(failed), Some(back)) = (trial.active, trial.returned()) else {
            return Ok(report);
        };
        generations::mark_failed(self.files, self.places, failed, &reasons)?;
        let note = |done: Result<(), ServicesError>, remarks: &mut Vec<String>| {
            if let Err(error) = done {
                remarks.push(sentence(&error));
            }
        };
        // A service that does not stop must not keep the node on a generation that is not healthy.
        note(stop(services, units), &mut report.remarks);
        pointer::write(self.files, self.places, &back)?;
        self.derive(&back, &mut report.derived, &mut report.remarks)?;
        let started = services.reload().and_then(|()| services.start(old));
        note(started, &mut report.remarks);
        report.active = back.active;
        report.outcome = Outcome::RolledBack { failed, reasons };
        Ok(report)
    }

    /// The units of a generation, each after those that it depends on.
    pub(super) fn units_in_order(&self, generation: u64) -> Result<Vec<String>, NodeError> {
        let os = self.places.os;
        let folder = path::join(os, &self.places.generation(generation), SERVICES);
        let names = match self.files.names(&folder) {
            Ok(names) => names,
            Err(FileError::NotFound { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let mut units = BTreeMap::new();
        for entry in names {
            let text = self
                .files
                .read(&path::join(os, &folder, &entry.name), LONGEST_UNIT)?;
            units.insert(entry.name, text);
        }
        Ok(in_start_order(&units))
    }
}

fn stop(services: &dyn Services, units: &[String]) -> Result<(), ServicesError> {
    let reversed: Vec<String> = units.iter().rev().cloned().collect();
    services.stop(&reversed)
}

fn unchanged(generation: u64, remarks: &[String]) -> SwitchReport {
    SwitchReport {
        outcome: Outcome::Unchanged { generation },
        active: Some(generation),
        derived: Vec::new(),
        remarks: remarks.to_vec(),
    }
}
