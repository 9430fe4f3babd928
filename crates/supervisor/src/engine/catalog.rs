//! All units that the engine knows, with their dependencies seen from both ends. Built once per
//! (re)load, so that deciding never reads a file and never searches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use camino::Utf8PathBuf;
use jiff::Timestamp;

use crate::control::protocol::LoadState;
use crate::unit::{Unit, UnitName};

/// What loading one name came to.
#[derive(Debug, Clone)]
pub struct Definition {
    pub load_state: LoadState,
    pub load_error: Option<String>,
    /// `enabled`, `disabled`, `static`, `masked`, …
    pub file_state: String,
    pub source: Option<Utf8PathBuf>,
    /// Everything there is to remark about its files, for people.
    pub problems: Vec<String>,
    /// When a persistent timer last fired, from its stamp on disk.
    pub last_trigger: Option<Timestamp>,
    /// Present exactly when `load_state` is `Loaded`.
    pub unit: Option<Arc<Unit>>,
}

/// The dependencies that point at a unit.
#[derive(Debug, Clone, Default)]
pub struct Dependents {
    pub required_by: BTreeSet<UnitName>,
    pub requisite_of: BTreeSet<UnitName>,
    pub wanted_by: BTreeSet<UnitName>,
    pub bound_by: BTreeSet<UnitName>,
    pub consists_of: BTreeSet<UnitName>,
    pub conflicted_by: BTreeSet<UnitName>,
    pub upheld_by: BTreeSet<UnitName>,
    /// Who is reloaded, or stopped, when this unit is.
    pub reloads_with: BTreeSet<UnitName>,
    pub stops_with: BTreeSet<UnitName>,
    pub triggered_by: BTreeSet<UnitName>,
}

/// An immutable set of definitions.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    definitions: BTreeMap<UnitName, Definition>,
    dependents: BTreeMap<UnitName, Dependents>,
    /// For each unit, the units that come up before it (`After=`, and `Before=` of the others).
    predecessors: BTreeMap<UnitName, BTreeSet<UnitName>>,
    /// Other names that people may use. Definitions and dependencies never use them.
    aliases: BTreeMap<UnitName, UnitName>,
}

impl Catalog {
    pub fn new(definitions: BTreeMap<UnitName, Definition>) -> Self {
        let mut catalog = Self {
            definitions,
            ..Self::default()
        };
        let units: Vec<Arc<Unit>> = catalog.loaded().cloned().collect();
        for unit in units {
            catalog.index(&unit);
        }
        catalog
    }

    /// The same with more names for its units.
    #[must_use]
    pub fn with_aliases(mut self, aliases: BTreeMap<UnitName, UnitName>) -> Self {
        self.aliases.extend(aliases);
        self
    }

    pub fn aliases(&self) -> &BTreeMap<UnitName, UnitName> {
        &self.aliases
    }

    /// The name under which a unit is defined.
    pub fn canonical<'a>(&'a self, name: &'a UnitName) -> &'a UnitName {
        self.aliases.get(name).unwrap_or(name)
    }

    fn index(&mut self, unit: &Unit) {
        let me = &unit.name;
        let on = &unit.dependencies;
        let mut point =
            |targets: &BTreeSet<UnitName>, list: fn(&mut Dependents) -> &mut BTreeSet<UnitName>| {
                for target in targets {
                    list(self.dependents.entry(target.clone()).or_default()).insert(me.clone());
                }
            };
        point(&on.requires, |d| &mut d.required_by);
        point(&on.requisite, |d| &mut d.requisite_of);
        point(&on.wants, |d| &mut d.wanted_by);
        point(&on.binds_to, |d| &mut d.bound_by);
        point(&on.part_of, |d| &mut d.consists_of);
        point(&on.conflicts, |d| &mut d.conflicted_by);
        point(&on.upholds, |d| &mut d.upheld_by);
        point(&on.reload_propagated_from, |d| &mut d.reloads_with);
        point(&on.stop_propagated_from, |d| &mut d.stops_with);
        let own = self.dependents.entry(me.clone()).or_default();
        own.reloads_with
            .extend(on.propagates_reload_to.iter().cloned());
        own.stops_with.extend(on.propagates_stop_to.iter().cloned());
        if let Some(triggered) = unit.triggers() {
            self.dependents
                .entry(triggered)
                .or_default()
                .triggered_by
                .insert(me.clone());
        }
        self.predecessors
            .entry(me.clone())
            .or_default()
            .extend(on.after.iter().cloned());
        for later in &on.before {
            self.predecessors
                .entry(later.clone())
                .or_default()
                .insert(me.clone());
        }
    }

    pub fn definitions(&self) -> &BTreeMap<UnitName, Definition> {
        &self.definitions
    }

    /// The same without `names`, which are about to be defined anew.
    #[must_use]
    pub fn without(&self, names: &[UnitName]) -> Self {
        let mut definitions = self.definitions.clone();
        definitions.retain(|name, _| !names.contains(name));
        Self::new(definitions).with_aliases(self.aliases.clone())
    }

    /// Every unit whose file was read without error.
    pub fn loaded(&self) -> impl Iterator<Item = &Arc<Unit>> {
        self.definitions
            .values()
            .filter_map(|definition| definition.unit.as_ref())
    }

    pub fn names(&self) -> impl Iterator<Item = &UnitName> {
        self.definitions.keys()
    }

    pub fn definition(&self, name: &UnitName) -> Option<&Definition> {
        self.definitions.get(name)
    }

    /// The unit, if its file was read without error.
    pub fn unit(&self, name: &UnitName) -> Option<&Arc<Unit>> {
        self.definitions.get(name)?.unit.as_ref()
    }

    pub fn dependents(&self, name: &UnitName) -> &Dependents {
        static NONE: Dependents = Dependents {
            required_by: BTreeSet::new(),
            requisite_of: BTreeSet::new(),
            wanted_by: BTreeSet::new(),
            bound_by: BTreeSet::new(),
            consists_of: BTreeSet::new(),
            conflicted_by: BTreeSet::new(),
            upheld_by: BTreeSet::new(),
            reloads_with: BTreeSet::new(),
            stops_with: BTreeSet::new(),
            triggered_by: BTreeSet::new(),
        };
        self.dependents.get(name).unwrap_or(&NONE)
    }

    /// The units that come up before `name` does.
    pub fn predecessors(&self, name: &UnitName) -> &BTreeSet<UnitName> {
        static NONE: BTreeSet<UnitName> = BTreeSet::new();
        self.predecessors.get(name).unwrap_or(&NONE)
    }

    /// Whether two units are ordered, and if so whether `first` comes up before `second`.
    pub fn comes_before(&self, first: &UnitName, second: &UnitName) -> bool {
        self.predecessors(second).contains(first)
    }
}
