//! The directives of unit files as one table: it drives parsing, suggestions and the reference page,
//! so what is documented is what is read.

mod draft;
mod install;
mod lists;
mod service;
mod service_process;
mod suggest;
mod timer;
mod unit;
mod unsupported;

use super::condition::{ConditionKind, KINDS, UNDECIDABLE_KINDS};
use super::values::ValueError;

pub(super) use draft::{Draft, Input, Written};
pub(super) use suggest::nearest;

/// A section that units we run can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    Unit,
    Install,
    Service,
    Timer,
}

impl Section {
    pub const ALL: [Self; 4] = [Self::Unit, Self::Install, Self::Service, Self::Timer];

    pub fn name(self) -> &'static str {
        match self {
            Self::Unit => "Unit",
            Self::Install => "Install",
            Self::Service => "Service",
            Self::Timer => "Timer",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|section| section.name() == name)
    }
}

/// Applies one assignment to what has been read so far.
pub(super) type Setter = fn(&mut Draft, &mut Input<'_>) -> Result<(), ValueError>;

/// What happens with a directive.
#[derive(Debug, Clone, Copy)]
pub(super) enum Support {
    Full(Setter),
    /// Read, with a restriction that the reference page names.
    Limited(Setter, &'static str),
    /// Known and not supported, for this reason.
    None(&'static str),
}

/// One line of the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Directive {
    pub(super) section: Section,
    pub(super) name: &'static str,
    /// What kind of value it takes, for the reference page.
    pub(super) value: &'static str,
    pub(super) summary: &'static str,
    pub(super) support: Support,
}

const fn full(
    section: Section,
    name: &'static str,
    value: &'static str,
    summary: &'static str,
    setter: Setter,
) -> Directive {
    Directive {
        section,
        name,
        value,
        summary,
        support: Support::Full(setter),
    }
}

const fn limited(
    section: Section,
    name: &'static str,
    value: &'static str,
    summary: &'static str,
    setter: Setter,
    restriction: &'static str,
) -> Directive {
    Directive {
        section,
        name,
        value,
        summary,
        support: Support::Limited(setter, restriction),
    }
}

/// What the table says about a key.
pub(super) enum Found {
    Directive(Directive),
    Condition {
        kind: ConditionKind,
        is_assert: bool,
    },
}

/// All directives except conditions, in the order of the reference page.
pub(super) fn all() -> impl Iterator<Item = Directive> {
    unit::TABLE
        .iter()
        .chain(install::TABLE)
        .chain(service::TABLE)
        .chain(service_process::TABLE)
        .chain(timer::TABLE)
        .copied()
        .chain(unsupported::all())
}

pub(super) fn find(section: Section, key: &str) -> Option<Found> {
    if let Some(directive) = all().find(|entry| entry.section == section && entry.name == key) {
        return Some(Found::Directive(directive));
    }
    if section != Section::Unit {
        return None;
    }
    let (name, is_assert) = match key.strip_prefix("Condition") {
        Some(name) => (name, false),
        None => (key.strip_prefix("Assert")?, true),
    };
    let kind = ConditionKind::from_name(name)?;
    Some(Found::Condition { kind, is_assert })
}

/// The section that knows `key`, when the one it stands in does not.
pub(super) fn section_of(key: &str) -> Option<Section> {
    Section::ALL
        .into_iter()
        .find(|section| find(*section, key).is_some())
}

/// The names that may be written in `section`.
pub(super) fn names(section: Section) -> Vec<String> {
    let mut names: Vec<String> = all()
        .filter(|entry| entry.section == section)
        .map(|entry| entry.name.to_owned())
        .collect();
    if section == Section::Unit {
        for name in KINDS.iter().map(|(name, _)| *name).chain(UNDECIDABLE_KINDS) {
            names.push(format!("Condition{name}"));
            names.push(format!("Assert{name}"));
        }
    }
    names
}
