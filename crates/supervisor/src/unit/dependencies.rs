//! Dependencies that no file spells out: the ones each unit has by its type, and the other direction
//! of those that are written.

use std::collections::{BTreeMap, BTreeSet};

use super::name::UnitName;
use super::{Dependencies, Kind, Unit};

/// Stopping this starts the end of everything with default dependencies.
const SHUTDOWN: &str = "shutdown.target";

/// Adds what a unit's type implies. `peek` reads another unit without its implied dependencies.
///
/// - With `DefaultDependencies=yes` every unit conflicts with `shutdown.target` and is before it.
/// - A target is after what it requires and wants, unless that unit says `DefaultDependencies=no`
///   or is itself after the target.
/// - A timer is before the unit it starts.
/// - `Requires=` and the like imply no order.
pub(super) fn add_implied(unit: &mut Unit, peek: impl Fn(&UnitName) -> Option<Unit>) {
    if let Kind::Timer(timer) = &unit.kind {
        unit.dependencies.before.extend(timer.unit.clone());
    }
    if !unit.default_dependencies {
        return;
    }
    if unit.name.as_str() != SHUTDOWN
        && let Ok(shutdown) = UnitName::new(SHUTDOWN)
    {
        unit.dependencies.conflicts.insert(shutdown.clone());
        unit.dependencies.before.insert(shutdown);
    }
    if unit.kind == Kind::Target {
        let needed: Vec<UnitName> = unit.dependencies.needed().cloned().collect();
        for name in needed {
            let is_ordered = unit.dependencies.before.contains(&name);
            let wants_no_order = peek(&name).is_some_and(|other| {
                !other.default_dependencies || other.dependencies.after.contains(&unit.name)
            });
            if !is_ordered && !wants_no_order {
                unit.dependencies.after.insert(name);
            }
        }
    }
}

impl Dependencies {
    /// Units that are started together with this one.
    pub fn needed(&self) -> impl Iterator<Item = &UnitName> {
        self.requires
            .iter()
            .chain(&self.requisite)
            .chain(&self.wants)
            .chain(&self.binds_to)
            .chain(&self.upholds)
    }
}

/// Who depends on a unit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReverseDependencies {
    pub required_by: BTreeSet<UnitName>,
    pub requisite_of: BTreeSet<UnitName>,
    pub wanted_by: BTreeSet<UnitName>,
    pub bound_by: BTreeSet<UnitName>,
    /// Units with `PartOf=` this one.
    pub consists_of: BTreeSet<UnitName>,
    pub upheld_by: BTreeSet<UnitName>,
    pub conflicted_by: BTreeSet<UnitName>,
    /// Units with `After=` this one.
    pub before: BTreeSet<UnitName>,
    /// Units with `Before=` this one.
    pub after: BTreeSet<UnitName>,
    pub on_failure_of: BTreeSet<UnitName>,
    pub on_success_of: BTreeSet<UnitName>,
    /// Timers that start this unit.
    pub triggered_by: BTreeSet<UnitName>,
}

/// Turns the dependencies of `units` around.
pub fn reverse<'a>(
    units: impl IntoIterator<Item = &'a Unit>,
) -> BTreeMap<UnitName, ReverseDependencies> {
    type Side = fn(&mut ReverseDependencies) -> &mut BTreeSet<UnitName>;
    let mut reversed: BTreeMap<UnitName, ReverseDependencies> = BTreeMap::new();
    for unit in units {
        let own = &unit.dependencies;
        let sides: [(&BTreeSet<UnitName>, Side); 11] = [
            (&own.requires, |other| &mut other.required_by),
            (&own.requisite, |other| &mut other.requisite_of),
            (&own.wants, |other| &mut other.wanted_by),
            (&own.binds_to, |other| &mut other.bound_by),
            (&own.part_of, |other| &mut other.consists_of),
            (&own.upholds, |other| &mut other.upheld_by),
            (&own.conflicts, |other| &mut other.conflicted_by),
            (&own.after, |other| &mut other.before),
            (&own.before, |other| &mut other.after),
            (&own.on_failure, |other| &mut other.on_failure_of),
            (&own.on_success, |other| &mut other.on_success_of),
        ];
        for (names, side) in sides {
            for name in names {
                side(reversed.entry(name.clone()).or_default()).insert(unit.name.clone());
            }
        }
        if let Some(started) = unit.timer().and_then(|timer| timer.unit.clone()) {
            reversed
                .entry(started)
                .or_default()
                .triggered_by
                .insert(unit.name.clone());
        }
    }
    reversed
}
