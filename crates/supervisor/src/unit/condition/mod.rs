//! `Condition…=` and `Assert…=`: what must be true before a unit starts. Evaluation is a pure
//! function of `ConditionFacts`. A condition that cannot be decided here is not met: a unit that
//! asks for something we cannot check does not start as if it were so.

mod evaluate;

use transom_model::os::Os;

use super::paths::is_absolute;
use super::values::{ValueError, parse_boolean, parse_size};

pub use evaluate::{ConditionFacts, ConditionOutcome, evaluate};

/// What a condition looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConditionKind {
    PathExists,
    PathExistsGlob,
    PathIsDirectory,
    PathIsSymbolicLink,
    PathIsMountPoint,
    PathIsReadWrite,
    DirectoryNotEmpty,
    FileNotEmpty,
    FileIsExecutable,
    Environment,
    Host,
    User,
    Group,
    KernelVersion,
    KernelCommandLine,
    Architecture,
    Virtualization,
    Capability,
    Memory,
    Cpus,
    OsRelease,
    FirstBoot,
    /// Known to systemd, not decidable here: never met.
    Undecidable(&'static str),
}

/// Names behind `Condition` and `Assert`.
pub const KINDS: [(&str, ConditionKind); 22] = [
    ("PathExists", ConditionKind::PathExists),
    ("PathExistsGlob", ConditionKind::PathExistsGlob),
    ("PathIsDirectory", ConditionKind::PathIsDirectory),
    ("PathIsSymbolicLink", ConditionKind::PathIsSymbolicLink),
    ("PathIsMountPoint", ConditionKind::PathIsMountPoint),
    ("PathIsReadWrite", ConditionKind::PathIsReadWrite),
    ("DirectoryNotEmpty", ConditionKind::DirectoryNotEmpty),
    ("FileNotEmpty", ConditionKind::FileNotEmpty),
    ("FileIsExecutable", ConditionKind::FileIsExecutable),
    ("Environment", ConditionKind::Environment),
    ("Host", ConditionKind::Host),
    ("User", ConditionKind::User),
    ("Group", ConditionKind::Group),
    ("KernelVersion", ConditionKind::KernelVersion),
    ("KernelCommandLine", ConditionKind::KernelCommandLine),
    ("Architecture", ConditionKind::Architecture),
    ("Virtualization", ConditionKind::Virtualization),
    ("Capability", ConditionKind::Capability),
    ("Memory", ConditionKind::Memory),
    ("CPUs", ConditionKind::Cpus),
    ("OSRelease", ConditionKind::OsRelease),
    ("FirstBoot", ConditionKind::FirstBoot),
];

/// Conditions of systemd that nothing here can answer.
pub const UNDECIDABLE_KINDS: [&str; 13] = [
    "ACPower",
    "CPUFeature",
    "CPUPressure",
    "ControlGroupController",
    "Credential",
    "Firmware",
    "IOPressure",
    "KernelModuleLoaded",
    "MemoryPressure",
    "NeedsUpdate",
    "PathIsEncrypted",
    "PathIsSocket",
    "Security",
];

impl ConditionKind {
    /// The kind behind `Condition` or `Assert`, and whether it can be decided.
    pub fn from_name(name: &str) -> Option<Self> {
        KINDS
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, kind)| *kind)
            .or_else(|| {
                let known = UNDECIDABLE_KINDS.iter().find(|known| **known == name)?;
                Some(Self::Undecidable(known))
            })
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Undecidable(name) => name,
            decidable => KINDS
                .iter()
                .find(|(_, kind)| *kind == decidable)
                .map_or("", |(name, _)| *name),
        }
    }

    fn takes_path(self) -> bool {
        matches!(
            self,
            Self::PathExists
                | Self::PathExistsGlob
                | Self::PathIsDirectory
                | Self::PathIsSymbolicLink
                | Self::PathIsMountPoint
                | Self::PathIsReadWrite
                | Self::DirectoryNotEmpty
                | Self::FileNotEmpty
                | Self::FileIsExecutable
        )
    }
}

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub kind: ConditionKind,
    pub argument: String,
    /// `!`: must not be so.
    pub negate: bool,
    /// `|`: of all conditions with this mark, one is enough.
    pub trigger: bool,
}

impl Condition {
    /// Parses the value of a condition whose specifiers are expanded already.
    pub fn parse(kind: ConditionKind, text: &str, os: Os) -> Result<Self, ValueError> {
        let (text, trigger) = strip_mark(text, '|');
        let (argument, negate) = strip_mark(text, '!');
        let condition = Self {
            kind,
            argument: argument.to_owned(),
            negate,
            trigger,
        };
        condition.check(os)?;
        Ok(condition)
    }

    fn check(&self, os: Os) -> Result<(), ValueError> {
        let argument = self.argument.as_str();
        if argument.is_empty() {
            return Err(ValueError::new("there is nothing after the marks"));
        }
        if self.kind.takes_path() && !is_absolute(argument, os) {
            return Err(ValueError::new(format!(
                "`{argument}` is not an absolute path"
            )));
        }
        match self.kind {
            ConditionKind::FirstBoot => parse_boolean(argument).map(|_| ()),
            ConditionKind::Memory => {
                let (_, size) = split_comparison(argument);
                parse_size(size).map(|_| ())
            }
            ConditionKind::Cpus => {
                let (_, count) = split_comparison(argument);
                count
                    .parse::<u64>()
                    .map(|_| ())
                    .map_err(|_| ValueError::new(format!("`{count}` is not a number of CPUs")))
            }
            ConditionKind::OsRelease => argument
                .split_whitespace()
                .all(|word| word.contains(['=', '<', '>']))
                .then_some(())
                .ok_or_else(|| {
                    ValueError::new("expected words such as ID=debian or VERSION_ID>=12")
                }),
            _ => Ok(()),
        }
    }

    /// As `systemctl status` shows it: `ConditionPathExists=!/etc/x`.
    pub fn describe(&self, directive_prefix: &str) -> String {
        format!(
            "{directive_prefix}{}={}{}{}",
            self.kind.name(),
            if self.trigger { "|" } else { "" },
            if self.negate { "!" } else { "" },
            self.argument
        )
    }
}

fn strip_mark(text: &str, mark: char) -> (&str, bool) {
    match text.strip_prefix(mark) {
        Some(rest) => (rest.trim_start(), true),
        None => (text, false),
    }
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    GreaterOrEqual,
    Greater,
    Glob,
    NotGlob,
}

/// Operators, longer ones first so that none hides another.
const COMPARISONS: [(&str, Comparison); 10] = [
    ("!$=", Comparison::NotGlob),
    ("$=", Comparison::Glob),
    ("<=", Comparison::LessOrEqual),
    ("<>", Comparison::NotEqual),
    ("!=", Comparison::NotEqual),
    (">=", Comparison::GreaterOrEqual),
    ("==", Comparison::Equal),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
    ("=", Comparison::Equal),
];

/// The operator in front of `text`, if any, and what follows it.
fn split_comparison(text: &str) -> (Option<Comparison>, &str) {
    COMPARISONS
        .iter()
        .find_map(|(sign, comparison)| {
            Some((Some(*comparison), text.strip_prefix(sign)?.trim_start()))
        })
        .unwrap_or((None, text))
}
