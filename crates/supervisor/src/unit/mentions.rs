//! The other units that a unit names.

use std::collections::BTreeSet;

use super::{Dependencies, Kind, Unit, UnitName, UnitType};

impl Unit {
    /// The unit that a timer starts; `None` for all other units.
    pub fn triggers(&self) -> Option<UnitName> {
        let timer = self.timer()?;
        timer
            .unit
            .clone()
            .or_else(|| self.name.with_type(UnitType::Service).ok())
    }

    /// Every other unit that this one names, so that it can be loaded too.
    pub fn mentions(&self) -> Vec<UnitName> {
        let mut dependencies = self.dependencies.clone();
        let sets = dependencies.sets();
        sets.into_iter()
            .flat_map(std::mem::take)
            .chain(self.triggers())
            .collect()
    }

    /// Replaces every mention of another unit, for example aliases by the real names.
    pub fn rename_mentions(&mut self, rename: impl Fn(&UnitName) -> UnitName) {
        for set in self.dependencies.sets() {
            *set = set.iter().map(&rename).collect();
        }
        if let Kind::Timer(timer) = &mut self.kind
            && let Some(unit) = &mut timer.unit
        {
            *unit = rename(unit);
        }
    }
}

impl Dependencies {
    fn sets(&mut self) -> [&mut BTreeSet<UnitName>; 15] {
        [
            &mut self.requires,
            &mut self.requisite,
            &mut self.wants,
            &mut self.binds_to,
            &mut self.part_of,
            &mut self.upholds,
            &mut self.conflicts,
            &mut self.before,
            &mut self.after,
            &mut self.on_failure,
            &mut self.on_success,
            &mut self.propagates_reload_to,
            &mut self.reload_propagated_from,
            &mut self.propagates_stop_to,
            &mut self.stop_propagated_from,
        ]
    }
}
