//! Decides conditions from facts.

use std::cmp::Ordering;

use super::{Comparison, Condition, ConditionKind, split_comparison};
use crate::unit::name::{glob_matches, is_glob};
use crate::unit::values::{parse_boolean, parse_size};

/// What the machine says. Implemented by the daemon over the real machine, by tests over values.
/// `None` means "not known here", which meets no condition, negated or not.
pub trait ConditionFacts {
    fn path_exists(&self, path: &str) -> bool;
    /// Whether any path matches a pattern.
    fn glob_exists(&self, pattern: &str) -> bool;
    fn is_directory(&self, path: &str) -> bool;
    fn is_symbolic_link(&self, path: &str) -> bool;
    fn is_mount_point(&self, path: &str) -> Option<bool>;
    fn is_writable_place(&self, path: &str) -> Option<bool>;
    fn directory_not_empty(&self, path: &str) -> bool;
    fn file_not_empty(&self, path: &str) -> bool;
    fn file_is_executable(&self, path: &str) -> bool;
    /// A variable of the supervisor's own environment.
    fn environment(&self, name: &str) -> Option<String>;
    fn host_name(&self) -> Option<String>;
    fn machine_id(&self) -> Option<String>;
    /// The supervisor's user: its name and its number or SID.
    fn user(&self) -> Option<(String, String)>;
    /// Whether the supervisor's user is root, `SYSTEM` or another system account.
    fn is_system_user(&self) -> bool;
    /// Whether the supervisor's user belongs to a group, given by name or number.
    fn is_in_group(&self, group: &str) -> Option<bool>;
    fn kernel_release(&self) -> Option<String>;
    fn kernel_command_line(&self) -> Option<String>;
    /// In systemd's spelling: `x86-64`, `arm64`.
    fn architecture(&self) -> Option<String>;
    /// `Some(("vm", "kvm"))`, `Some(("container", "docker"))`, `Some(("none", "none"))`.
    fn virtualization(&self) -> Option<(String, String)>;
    /// Whether the supervisor has a capability such as `CAP_NET_ADMIN`.
    fn has_capability(&self, capability: &str) -> Option<bool>;
    fn memory_bytes(&self) -> Option<u64>;
    fn cpus(&self) -> Option<u64>;
    /// A field of os-release, such as `ID`.
    fn os_release(&self, field: &str) -> Option<String>;
    fn is_first_boot(&self) -> Option<bool>;
}

/// How a list of conditions came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConditionOutcome {
    Met,
    /// The first condition that said no.
    NotMet(Condition),
}

/// All plain conditions must be met, and one of the triggering ones if there are any.
pub fn evaluate(conditions: &[Condition], facts: &dyn ConditionFacts) -> ConditionOutcome {
    let mut triggered = false;
    let mut last_trigger = None;
    for condition in conditions {
        let is_met = condition.is_met(facts);
        if condition.trigger {
            triggered |= is_met;
            last_trigger = Some(condition);
        } else if !is_met {
            return ConditionOutcome::NotMet(condition.clone());
        }
    }
    match last_trigger {
        Some(condition) if !triggered => ConditionOutcome::NotMet(condition.clone()),
        _ => ConditionOutcome::Met,
    }
}

impl Condition {
    /// Whether this one alone is met, its `!` included.
    pub fn is_met(&self, facts: &dyn ConditionFacts) -> bool {
        self.holds(facts).is_some_and(|holds| holds != self.negate)
    }

    fn holds(&self, facts: &dyn ConditionFacts) -> Option<bool> {
        let argument = self.argument.as_str();
        match self.kind {
            ConditionKind::PathExists => Some(facts.path_exists(argument)),
            ConditionKind::PathExistsGlob => Some(facts.glob_exists(argument)),
            ConditionKind::PathIsDirectory => Some(facts.is_directory(argument)),
            ConditionKind::PathIsSymbolicLink => Some(facts.is_symbolic_link(argument)),
            ConditionKind::PathIsMountPoint => facts.is_mount_point(argument),
            ConditionKind::PathIsReadWrite => facts.is_writable_place(argument),
            ConditionKind::DirectoryNotEmpty => Some(facts.directory_not_empty(argument)),
            ConditionKind::FileNotEmpty => Some(facts.file_not_empty(argument)),
            ConditionKind::FileIsExecutable => Some(facts.file_is_executable(argument)),
            ConditionKind::Environment => Some(match argument.split_once('=') {
                Some((name, value)) => facts.environment(name).as_deref() == Some(value),
                None => facts.environment(argument).is_some(),
            }),
            ConditionKind::Host => host_matches(argument, facts),
            ConditionKind::User => user_matches(argument, facts),
            ConditionKind::Group => facts.is_in_group(argument),
            ConditionKind::KernelVersion => {
                let release = facts.kernel_release()?;
                Some(
                    argument
                        .split_whitespace()
                        .all(|word| version_holds(&release, word)),
                )
            }
            ConditionKind::KernelCommandLine => {
                let line = facts.kernel_command_line()?;
                Some(line.split_whitespace().any(|word| {
                    word == argument
                        || (!argument.contains('=') && word.split('=').next() == Some(argument))
                }))
            }
            ConditionKind::Architecture => {
                let architecture = facts.architecture()?;
                Some(argument == "native" || argument == architecture)
            }
            ConditionKind::Virtualization => virtualization_matches(argument, facts),
            ConditionKind::Capability => facts.has_capability(argument),
            ConditionKind::Memory => {
                let (comparison, size) = split_comparison(argument);
                number_holds(facts.memory_bytes()?, comparison, parse_size(size).ok()??)
            }
            ConditionKind::Cpus => {
                let (comparison, count) = split_comparison(argument);
                number_holds(facts.cpus()?, comparison, count.parse().ok()?)
            }
            ConditionKind::OsRelease => Some(
                argument
                    .split_whitespace()
                    .all(|word| os_release_holds(word, facts)),
            ),
            ConditionKind::FirstBoot => {
                Some(facts.is_first_boot()? == parse_boolean(argument).ok()?)
            }
            ConditionKind::Undecidable(_) => None,
        }
    }
}

fn host_matches(argument: &str, facts: &dyn ConditionFacts) -> Option<bool> {
    if facts.machine_id().as_deref() == Some(argument) {
        return Some(true);
    }
    let host = facts.host_name()?;
    Some(glob_matches(&argument.to_lowercase(), &host.to_lowercase()))
}

fn user_matches(argument: &str, facts: &dyn ConditionFacts) -> Option<bool> {
    if argument == "@system" {
        return Some(facts.is_system_user());
    }
    let (name, number) = facts.user()?;
    Some(argument == name || argument == number)
}

fn virtualization_matches(argument: &str, facts: &dyn ConditionFacts) -> Option<bool> {
    let (class, technology) = facts.virtualization()?;
    Some(match parse_boolean(argument) {
        Ok(expected) => (class != "none") == expected,
        Err(_) => argument == class || argument == technology,
    })
}

fn number_holds(actual: u64, comparison: Option<Comparison>, expected: u64) -> Option<bool> {
    // Without an operator systemd means "at least".
    let comparison = comparison.unwrap_or(Comparison::GreaterOrEqual);
    ordering_holds(actual.cmp(&expected), comparison)
}

fn ordering_holds(ordering: Ordering, comparison: Comparison) -> Option<bool> {
    match comparison {
        Comparison::Less => Some(ordering.is_lt()),
        Comparison::LessOrEqual => Some(ordering.is_le()),
        Comparison::Equal => Some(ordering.is_eq()),
        Comparison::NotEqual => Some(ordering.is_ne()),
        Comparison::GreaterOrEqual => Some(ordering.is_ge()),
        Comparison::Greater => Some(ordering.is_gt()),
        Comparison::Glob | Comparison::NotGlob => None,
    }
}

fn version_holds(actual: &str, word: &str) -> bool {
    match split_comparison(word) {
        (None, pattern) if is_glob(pattern) => glob_matches(pattern, actual),
        (None, version) => actual == version,
        (Some(Comparison::Glob), pattern) => glob_matches(pattern, actual),
        (Some(Comparison::NotGlob), pattern) => !glob_matches(pattern, actual),
        (Some(comparison), version) => {
            ordering_holds(compare_versions(actual, version), comparison).unwrap_or(false)
        }
    }
}

fn os_release_holds(word: &str, facts: &dyn ConditionFacts) -> bool {
    let Some(at) = word.find(['=', '<', '>', '!', '$']) else {
        return false;
    };
    let (field, rest) = word.split_at(at);
    let actual = facts.os_release(field).unwrap_or_default();
    let (comparison, expected) = split_comparison(rest);
    let expected = expected.trim_matches(['"', '\'']);
    match comparison {
        // Equality of fields is of texts: `ID=debian`.
        Some(Comparison::Equal) | None => actual == expected,
        Some(Comparison::NotEqual) => actual != expected,
        Some(_) => version_holds(&actual, rest),
    }
}

/// Compares like people read versions: runs of digits by value, everything else as text.
fn compare_versions(left: &str, right: &str) -> Ordering {
    let (mut left, mut right) = (left, right);
    loop {
        left = left.trim_start_matches(|character: char| !character.is_ascii_alphanumeric());
        right = right.trim_start_matches(|character: char| !character.is_ascii_alphanumeric());
        if left.is_empty() || right.is_empty() {
            return left.is_empty().cmp(&right.is_empty()).reverse();
        }
        let is_number = left.starts_with(|character: char| character.is_ascii_digit());
        let part = |text: &str| {
            text.find(|character: char| {
                !character.is_ascii_alphanumeric() || character.is_ascii_digit() != is_number
            })
            .unwrap_or(text.len())
        };
        let (left_part, left_rest) = left.split_at(part(left));
        let (right_part, right_rest) = right.split_at(part(right));
        let ordering = if is_number {
            let digits = |text: &str| text.trim_start_matches('0').len();
            digits(left_part)
                .cmp(&digits(right_part))
                .then_with(|| {
                    left_part
                        .trim_start_matches('0')
                        .cmp(right_part.trim_start_matches('0'))
                })
                // A number is newer than a word in the same place.
                .then_with(|| right_part.is_empty().cmp(&left_part.is_empty()))
        } else if right_part.is_empty() {
            Ordering::Less
        } else {
            left_part.cmp(right_part)
        };
        if ordering.is_ne() {
            return ordering;
        }
        (left, right) = (left_rest, right_rest);
    }
}
