//! What one request means for all units: which jobs it needs, which ones it may go without, and
//! whether they can be put in an order. Nothing is changed here; a refused request leaves no trace.

use std::collections::{BTreeMap, BTreeSet};

use super::catalog::Catalog;
use super::job::JobKind;
use crate::control::protocol::{LoadState, RequestError};
use crate::unit::UnitName;

/// The jobs of an accepted request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transaction {
    pub jobs: BTreeMap<UnitName, JobKind>,
    /// What was left out to make the rest possible.
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
struct Planned {
    kind: JobKind,
    /// Whether the request fails without it.
    needed: bool,
}

struct Planner<'a> {
    catalog: &'a Catalog,
    is_up: &'a dyn Fn(&UnitName) -> bool,
    planned: BTreeMap<UnitName, Planned>,
    warnings: Vec<String>,
}

/// Plans `kind` for `anchors` with everything that follows from it.
pub fn plan_transaction(
    catalog: &Catalog,
    is_up: &dyn Fn(&UnitName) -> bool,
    anchors: &[(UnitName, JobKind)],
) -> Result<Transaction, RequestError> {
    let mut planner = Planner {
        catalog,
        is_up,
        planned: BTreeMap::new(),
        warnings: Vec::new(),
    };
    for (unit, kind) in anchors {
        planner.add(unit, *kind, true)?;
    }
    let anchors: BTreeSet<&UnitName> = anchors.iter().map(|(unit, _)| unit).collect();
    planner.break_cycles(&anchors)?;
    Ok(Transaction {
        jobs: planner
            .planned
            .into_iter()
            .map(|(unit, planned)| (unit, planned.kind))
            .collect(),
        warnings: planner.warnings,
    })
}

impl Planner<'_> {
    fn add(&mut self, unit: &UnitName, kind: JobKind, needed: bool) -> Result<(), RequestError> {
        if !matches!(kind, JobKind::Stop) {
            self.must_be_loaded(unit)?;
        }
        if let Some(existing) = self.planned.get(unit).copied() {
            return self.join(unit, existing, kind, needed);
        }
        self.planned.insert(unit.clone(), Planned { kind, needed });
        self.follow(unit, kind, needed)
    }

    /// The unit is in the transaction already: once more, stronger, or in contradiction.
    fn join(
        &mut self,
        unit: &UnitName,
        existing: Planned,
        kind: JobKind,
        needed: bool,
    ) -> Result<(), RequestError> {
        let Some(merged) = existing.kind.merged_with(kind) else {
            if existing.needed && needed {
                return Err(RequestError::NotPossible {
                    unit: unit.to_string(),
                    verb: format!("both {} and {}", past(existing.kind), past(kind)),
                    reason: "the units asked for conflict with each other".into(),
                });
            }
            let (kept, dropped) = if existing.needed {
                (existing.kind, kind)
            } else {
                (kind, existing.kind)
            };
            self.warnings.push(format!(
                "{unit} is not {}, because it has to be {}",
                past(dropped),
                past(kept)
            ));
            if !existing.needed {
                self.planned.insert(unit.clone(), Planned { kind, needed });
                return self.follow(unit, kind, needed);
            }
            return Ok(());
        };
        if merged != existing.kind || (needed && !existing.needed) {
            let needed = needed || existing.needed;
            self.planned.insert(
                unit.clone(),
                Planned {
                    kind: merged,
                    needed,
                },
            );
            return self.follow(unit, merged, needed);
        }
        Ok(())
    }

    fn follow(&mut self, unit: &UnitName, kind: JobKind, needed: bool) -> Result<(), RequestError> {
        match kind {
            JobKind::Start => self.pull_in(unit, needed),
            JobKind::Restart => {
                self.pull_in(unit, needed)?;
                self.push_out(unit, JobKind::Restart)
            }
            JobKind::Stop => self.push_out(unit, JobKind::Stop),
            JobKind::Reload => {
                let targets = &self.catalog.dependents(unit).reloads_with;
                for target in targets.iter().filter(|target| (self.is_up)(target)) {
                    self.add_if_possible(target, JobKind::Reload);
                }
                Ok(())
            }
        }
    }

    /// Starting a unit starts what it needs and stops what it conflicts with.
    fn pull_in(&mut self, unit: &UnitName, needed: bool) -> Result<(), RequestError> {
        let Some(definition) = self.catalog.unit(unit).cloned() else {
            return Ok(());
        };
        let on = &definition.dependencies;
        for requirement in on.requires.iter().chain(&on.binds_to) {
            self.add(requirement, JobKind::Start, needed)?;
        }
        for conflict in on
            .conflicts
            .iter()
            .chain(&self.catalog.dependents(unit).conflicted_by)
        {
            if (self.is_up)(conflict) || self.planned.contains_key(conflict) {
                self.add(conflict, JobKind::Stop, needed)?;
            }
        }
        for wish in on.wants.iter().chain(&on.upholds) {
            self.add_if_possible(wish, JobKind::Start);
        }
        Ok(())
    }

    /// Stopping or restarting a unit does the same to what cannot be without it.
    fn push_out(&mut self, unit: &UnitName, kind: JobKind) -> Result<(), RequestError> {
        let dependents = self.catalog.dependents(unit);
        let affected = dependents
            .required_by
            .iter()
            .chain(&dependents.requisite_of)
            .chain(&dependents.bound_by)
            .chain(&dependents.consists_of)
            .chain(
                dependents
                    .stops_with
                    .iter()
                    .filter(|_| kind == JobKind::Stop),
            );
        for dependent in affected {
            if (self.is_up)(dependent) {
                self.add(dependent, kind, true)?;
            }
        }
        Ok(())
    }

    /// Adds a job that the request can do without. All or nothing: what it pulled in before failing is
    /// taken back.
    fn add_if_possible(&mut self, unit: &UnitName, kind: JobKind) {
        let before = (self.planned.clone(), self.warnings.len());
        if let Err(error) = self.add(unit, kind, false) {
            self.planned = before.0;
            self.warnings.truncate(before.1);
            let absent = matches!(error, RequestError::NotFound { .. });
            if !absent {
                self.warnings.push(format!("{unit} is left out: {error}"));
            }
        }
    }

    fn must_be_loaded(&self, unit: &UnitName) -> Result<(), RequestError> {
        let name = unit.to_string();
        let Some(definition) = self.catalog.definition(unit) else {
            return Err(RequestError::NotFound { unit: name });
        };
        match definition.load_state {
            LoadState::Loaded => Ok(()),
            LoadState::NotFound => Err(RequestError::NotFound { unit: name }),
            LoadState::Masked => Err(RequestError::Masked { unit: name }),
            LoadState::BadSetting | LoadState::Error => Err(RequestError::BadUnit {
                unit: name,
                problem: definition
                    .load_error
                    .clone()
                    .unwrap_or_else(|| "unreadable".into()),
            }),
        }
    }

    /// Leaves out unneeded jobs until the rest can be ordered; refuses, naming the cycle, if that does
    /// not help.
    fn break_cycles(&mut self, anchors: &BTreeSet<&UnitName>) -> Result<(), RequestError> {
        while let Some(cycle) = self.find_cycle() {
            let droppable = cycle
                .iter()
                .rev()
                .find(|unit| !anchors.contains(unit) && !self.planned[*unit].needed)
                .cloned();
            let mut names: Vec<String> = cycle.iter().map(ToString::to_string).collect();
            names.push(names[0].clone());
            let Some(dropped) = droppable else {
                return Err(RequestError::Cycle { units: names });
            };
            self.warnings.push(format!(
                "{dropped} is left out, to break the ordering cycle {}",
                names.join(" -> ")
            ));
            self.planned.remove(&dropped);
        }
        Ok(())
    }

    /// A cycle among jobs that bring units up, in the order in which they would have to come up.
    fn find_cycle(&self) -> Option<Vec<UnitName>> {
        let mut finished = BTreeSet::new();
        for start in self.planned.keys() {
            let mut path = Vec::new();
            if let Some(cycle) = self.walk(start, &mut path, &mut finished) {
                return Some(cycle);
            }
        }
        None
    }

    fn walk(
        &self,
        unit: &UnitName,
        path: &mut Vec<UnitName>,
        finished: &mut BTreeSet<UnitName>,
    ) -> Option<Vec<UnitName>> {
        if let Some(begin) = path.iter().position(|visited| visited == unit) {
            let mut cycle = path[begin..].to_vec();
            // The path runs from later to earlier units.
            cycle.reverse();
            return Some(cycle);
        }
        if finished.contains(unit) || !self.comes_up(unit) {
            return None;
        }
        path.push(unit.clone());
        for predecessor in self.catalog.predecessors(unit) {
            if let Some(cycle) = self.walk(predecessor, path, finished) {
                return Some(cycle);
            }
        }
        path.pop();
        finished.insert(unit.clone());
        None
    }

    fn comes_up(&self, unit: &UnitName) -> bool {
        self.planned
            .get(unit)
            .is_some_and(|planned| planned.kind != JobKind::Stop)
    }
}

fn past(kind: JobKind) -> &'static str {
    match kind {
        JobKind::Start => "started",
        JobKind::Stop => "stopped",
        JobKind::Restart => "restarted",
        JobKind::Reload => "reloaded",
    }
}
