//! Turns the files of one unit into a `Unit`. Never fails: what is wrong is in `Unit::problems`, and
//! a unit with errors there must not be started.

use camino::{Utf8Path, Utf8PathBuf};

use super::check;
use super::condition::{Condition, ConditionKind};
use super::directives::{self, Draft, Found, Input, Section, Support};
use super::name::{UnitName, UnitType};
use super::problem::{Problem, Severity};
use super::specifier::SpecifierContext;
use super::syntax::{self, Assignment};
use super::values::ValueError;
use super::{Kind, Unit};

/// A file with more mistakes than this is something else than a unit file.
const MOST_PROBLEMS: usize = 1000;

/// One file with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitSource {
    pub path: Utf8PathBuf,
    pub bytes: Vec<u8>,
}

/// Parses the main file, then the drop-ins in the order given, for the system of `specifiers`.
pub fn parse(
    name: &UnitName,
    fragment: Option<&UnitSource>,
    drop_ins: &[UnitSource],
    specifiers: &SpecifierContext,
) -> Unit {
    let mut reading = Reading {
        name,
        fragment: fragment.map(|source| source.path.as_path()),
        specifiers,
        draft: Draft::default(),
        problems: Vec::new(),
    };
    for source in fragment.into_iter().chain(drop_ins) {
        reading.file(source);
    }
    let Reading {
        mut draft,
        mut problems,
        ..
    } = reading;
    check::settle(name, &mut draft, &mut problems);
    let kind = match name.unit_type() {
        UnitType::Service => Kind::Service(Box::new(draft.service)),
        UnitType::Target => Kind::Target,
        UnitType::Timer => Kind::Timer(Box::new(draft.timer)),
    };
    Unit {
        name: name.clone(),
        description: draft.description.unwrap_or_else(|| name.to_string()),
        documentation: draft.documentation,
        source: fragment.map(|source| source.path.clone()),
        drop_ins: drop_ins.iter().map(|source| source.path.clone()).collect(),
        dependencies: draft.dependencies,
        conditions: draft.conditions,
        asserts: draft.asserts,
        default_dependencies: !draft.no_default_dependencies,
        start_limit: draft.start_limit,
        refuse_manual_start: draft.refuse_manual_start,
        refuse_manual_stop: draft.refuse_manual_stop,
        stop_when_unneeded: draft.stop_when_unneeded,
        job_timeout: draft.job_timeout,
        install: draft.install,
        kind,
        problems,
    }
}

struct Reading<'a> {
    name: &'a UnitName,
    fragment: Option<&'a Utf8Path>,
    specifiers: &'a SpecifierContext,
    draft: Draft,
    problems: Vec<Problem>,
}

impl Reading<'_> {
    fn file(&mut self, source: &UnitSource) {
        let earlier = self.problems.len();
        let parsed = syntax::parse(&source.bytes, &source.path, self.specifiers.os);
        self.problems.extend(parsed.problems);
        for (section, line) in parsed.sections {
            self.section(&section, &source.path, line);
        }
        for assignment in &parsed.assignments {
            self.assignment(assignment, &source.path);
            if self.problems.len() - earlier > MOST_PROBLEMS {
                break;
            }
        }
        self.problems[earlier..].sort_by_key(|problem| problem.line);
        if self.problems.len() - earlier > MOST_PROBLEMS {
            self.problems.truncate(earlier + MOST_PROBLEMS);
            let message =
                format!("there are more than {MOST_PROBLEMS} problems; it is not a unit file");
            self.problems.push(Problem {
                file: Some(source.path.clone()),
                ..Problem::of_unit(Severity::Error, message)
            });
        }
    }

    /// Reports sections that mean nothing in this unit.
    fn section(&mut self, name: &str, path: &Utf8Path, line: u32) {
        // Vendors put their own things into sections with this prefix.
        if name.starts_with("X-") || self.accepted(name).is_some() {
            return;
        }
        let message = if Section::from_name(name).is_some() {
            format!(
                "[{name}] has no meaning in a .{} file and is ignored",
                self.name.unit_type().suffix()
            )
        } else {
            format!("[{name}] is not a known section and is ignored")
        };
        let hint = directives::nearest(name, Section::ALL.iter().map(|section| section.name()))
            .filter(|near| *near != name)
            .map(|near| format!("did you mean [{near}]?"));
        self.problems.push(Problem {
            file: Some(path.to_owned()),
            line: Some(line),
            severity: Severity::Warning,
            directive: None,
            message,
            hint,
        });
    }

    /// The section, if units of this type have it.
    fn accepted(&self, name: &str) -> Option<Section> {
        Section::from_name(name).filter(|section| match section {
            Section::Unit | Section::Install => true,
            Section::Service => self.name.unit_type() == UnitType::Service,
            Section::Timer => self.name.unit_type() == UnitType::Timer,
        })
    }

    fn assignment(&mut self, assignment: &Assignment, path: &Utf8Path) {
        // Sections without meaning have been reported once; keys with the vendors' prefix are theirs.
        let Some(section) = self.accepted(&assignment.section) else {
            return;
        };
        if assignment.key.starts_with("X-") {
            return;
        }
        let mut input = Input {
            raw: &assignment.value,
            name: self.name,
            fragment: self.fragment,
            specifiers: self.specifiers,
            remarks: Vec::new(),
        };
        let outcome = match directives::find(section, &assignment.key) {
            Some(Found::Directive(directive)) => {
                self.draft.remember(directive.name, path, assignment.line);
                match directive.support {
                    Support::Full(setter) | Support::Limited(setter, _) => {
                        setter(&mut self.draft, &mut input)
                            .map_err(|error| rejected(directive.name, error))
                    }
                    Support::None(reason) => {
                        Err((Severity::Warning, format!("not supported: {reason}"), None))
                    }
                }
            }
            Some(Found::Condition { kind, is_assert }) => {
                let list = if is_assert {
                    &mut self.draft.asserts
                } else {
                    &mut self.draft.conditions
                };
                add_condition(list, kind, &mut input).map_err(|error| rejected("", error))
            }
            None => Err(unknown(section, &assignment.key)),
        };
        for (severity, message, hint) in input.remarks.into_iter().chain(outcome.err()) {
            self.problems.push(Problem {
                file: Some(path.to_owned()),
                line: Some(assignment.line),
                severity,
                directive: Some(assignment.key.clone()),
                message,
                hint,
            });
        }
    }
}

type Finding = (Severity, String, Option<String>);

/// Most bad values leave the default in place, as in systemd. Where that would run something else
/// than was asked for, or as somebody else, the unit is refused.
fn rejected(directive: &str, error: ValueError) -> Finding {
    let is_fatal = directive.starts_with("Exec")
        || matches!(
            directive,
            "User"
                | "Group"
                | "SupplementaryGroups"
                | "WorkingDirectory"
                | "EnvironmentFile"
                | "Type"
        );
    if is_fatal {
        (Severity::Error, error.reason, error.hint)
    } else {
        (
            Severity::Warning,
            format!("{}; the line is ignored", error.reason),
            error.hint,
        )
    }
}

fn unknown(section: Section, key: &str) -> Finding {
    let severity = Severity::Warning;
    if let Some(right) = directives::section_of(key) {
        let message = format!(
            "does not belong into [{}]; the line is ignored",
            section.name()
        );
        return (
            severity,
            message,
            Some(format!("it belongs into [{}]", right.name())),
        );
    }
    let names = directives::names(section);
    let hint = directives::nearest(key, names.iter().map(String::as_str))
        .map(|near| format!("did you mean {near}=?"));
    (
        severity,
        "is not a known directive; the line is ignored".to_owned(),
        hint,
    )
}

fn add_condition(
    list: &mut Vec<Condition>,
    kind: ConditionKind,
    input: &mut Input<'_>,
) -> Result<(), ValueError> {
    if input.is_empty() {
        list.clear();
        return Ok(());
    }
    let condition = Condition::parse(kind, &input.text()?, input.os())?;
    if let ConditionKind::Undecidable(_) = kind {
        input.warn("cannot be decided on this supervisor and counts as not met");
    }
    list.push(condition);
    Ok(())
}
