//! Unit files as values: names, parsing, dependencies, enabling.
//!
//! `syntax` reads lines, `directives` is the table that says what each line means, `parse` applies
//! it and yields a `Unit` together with everything that is wrong with it. Only `load` and `install`
//! touch files. Which system a unit is for is data (`Os`), so any machine reads units of any other.

pub mod calendar;
pub mod command;
pub mod condition;
pub mod directives;
pub mod environment_file;
mod mentions;
pub mod name;
pub mod parse;
pub mod paths;
pub mod problem;
pub mod reference;
pub mod service;
pub mod signal;
pub mod specifier;
pub mod syntax;
pub mod timer;
pub mod values;
pub mod variables;
pub mod words;

pub mod dependencies;
pub mod install;
pub mod load;

mod builtin;
mod check;
mod link;

use std::collections::BTreeSet;
use std::time::Duration;

use camino::Utf8PathBuf;

pub use calendar::CalendarEvent;
pub use command::ExecCommand;
pub use condition::{Condition, ConditionFacts};
pub use load::{BadUnit, LoadError, LoadOutcome, UnitFile, UnitFileState, UnitStore};
pub use name::{UnitName, UnitNameError, UnitPattern, UnitType};
pub use problem::{Problem, Severity};
pub use service::{KillMode, NotifyAccess, Restart, Service, ServiceType};
pub use signal::Signal;
pub use specifier::SpecifierContext;
pub use timer::Timer;

/// One unit, as its files describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    pub name: UnitName,
    /// The unit's name if the file gives none.
    pub description: String,
    pub documentation: Vec<String>,
    /// The main file; `None` if there are only drop-ins.
    pub source: Option<Utf8PathBuf>,
    /// In the order in which they were applied.
    pub drop_ins: Vec<Utf8PathBuf>,
    pub dependencies: Dependencies,
    pub conditions: Vec<Condition>,
    pub asserts: Vec<Condition>,
    pub default_dependencies: bool,
    pub start_limit: StartLimit,
    pub refuse_manual_start: bool,
    pub refuse_manual_stop: bool,
    pub stop_when_unneeded: bool,
    /// How long a job of this unit may wait and run; `None` is for ever.
    pub job_timeout: Option<Duration>,
    pub install: Install,
    pub kind: Kind,
    pub problems: Vec<Problem>,
}

/// What a unit is besides being a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Service(Box<Service>),
    Target,
    Timer(Box<Timer>),
}

impl Unit {
    /// Whether the unit may be used at all.
    pub fn is_usable(&self) -> bool {
        !self.problems.iter().any(Problem::is_error)
    }

    pub fn service(&self) -> Option<&Service> {
        match &self.kind {
            Kind::Service(service) => Some(service),
            Kind::Target | Kind::Timer(_) => None,
        }
    }

    pub fn timer(&self) -> Option<&Timer> {
        match &self.kind {
            Kind::Timer(timer) => Some(timer),
            Kind::Target | Kind::Service(_) => None,
        }
    }
}

/// How a unit stands to others. Order (`before`, `after`) and need (`requires` …) are independent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dependencies {
    pub requires: BTreeSet<UnitName>,
    pub requisite: BTreeSet<UnitName>,
    pub wants: BTreeSet<UnitName>,
    pub binds_to: BTreeSet<UnitName>,
    pub part_of: BTreeSet<UnitName>,
    pub upholds: BTreeSet<UnitName>,
    pub conflicts: BTreeSet<UnitName>,
    pub before: BTreeSet<UnitName>,
    pub after: BTreeSet<UnitName>,
    pub on_failure: BTreeSet<UnitName>,
    pub on_success: BTreeSet<UnitName>,
    pub propagates_reload_to: BTreeSet<UnitName>,
    pub reload_propagated_from: BTreeSet<UnitName>,
    pub propagates_stop_to: BTreeSet<UnitName>,
    pub stop_propagated_from: BTreeSet<UnitName>,
}

/// How often a unit may be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartLimit {
    /// Zero: no limit.
    pub interval: Duration,
    pub burst: u32,
}

impl Default for StartLimit {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(10),
            burst: 5,
        }
    }
}

/// Everything of `[Install]`: what enabling does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Install {
    pub wanted_by: BTreeSet<UnitName>,
    pub required_by: BTreeSet<UnitName>,
    pub upheld_by: BTreeSet<UnitName>,
    pub also: BTreeSet<UnitName>,
    pub alias: BTreeSet<UnitName>,
    /// For templates: the instance that is meant when none is named.
    pub default_instance: Option<String>,
}

impl Install {
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }
}

#[cfg(test)]
mod tests;
