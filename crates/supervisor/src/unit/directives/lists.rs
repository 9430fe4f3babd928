//! Setters for values that add up over several lines; an empty line starts over.

use std::collections::BTreeSet;
use std::time::Duration;

use camino::Utf8PathBuf;
use transom_model::os::Os;

use super::draft::{Draft, Input};
use crate::unit::command::{ExecCommand, is_variable_name};
use crate::unit::name::UnitName;
use crate::unit::paths::is_absolute;
use crate::unit::service::{Limit, Resource, ServiceDirectories};
use crate::unit::signal::ExitStatusSet;
use crate::unit::values::{ValueError, parse_mode, parse_size, parse_time_span};

pub(super) fn dependencies(
    set: &mut BTreeSet<UnitName>,
    input: &mut Input<'_>,
) -> Result<(), ValueError> {
    if input.is_empty() {
        // systemd keeps dependencies for ever; saying so is better than surprising either way.
        return Err(ValueError::new(
            "dependencies cannot be taken back by an empty value",
        ));
    }
    let own = input.name.clone();
    for name in input.unit_names()? {
        if name == own {
            input.warn(format!("`{name}` cannot depend on itself; it is ignored"));
        } else {
            set.insert(name);
        }
    }
    Ok(())
}

/// As `dependencies`, for `[Install]`, where an empty value does start over.
pub(super) fn install_names(
    set: &mut BTreeSet<UnitName>,
    input: &mut Input<'_>,
) -> Result<(), ValueError> {
    if input.is_empty() {
        set.clear();
        return Ok(());
    }
    for word in input.words()? {
        match UnitName::new(&word) {
            Ok(name) => {
                set.insert(name);
            }
            Err(error) => input.warn(format!("{error}; it is ignored")),
        }
    }
    Ok(())
}

pub(super) fn commands(
    list: &mut Vec<ExecCommand>,
    input: &mut Input<'_>,
) -> Result<(), ValueError> {
    if input.is_empty() {
        list.clear();
        return Ok(());
    }
    let parsed = ExecCommand::parse_line(input.raw, input.os(), |word| input.expand(word))?;
    for remark in parsed.remarks {
        input.warn(remark);
    }
    list.extend(parsed.commands);
    Ok(())
}

pub(super) fn word_list(list: &mut Vec<String>, input: &mut Input<'_>) -> Result<(), ValueError> {
    if input.is_empty() {
        list.clear();
        return Ok(());
    }
    let words = input.words()?;
    list.extend(words);
    Ok(())
}

pub(super) fn spans(list: &mut Vec<Duration>, input: &mut Input<'_>) -> Result<(), ValueError> {
    if input.is_empty() {
        list.clear();
        return Ok(());
    }
    list.push(input.span()?);
    Ok(())
}

pub(super) fn exit_statuses(
    set: &mut ExitStatusSet,
    input: &mut Input<'_>,
) -> Result<(), ValueError> {
    if input.is_empty() {
        *set = ExitStatusSet::default();
        return Ok(());
    }
    for word in input.words()? {
        if let Err(error) = set.insert(&word) {
            input.warn_about(error);
        }
    }
    Ok(())
}

pub(super) fn environment(
    list: &mut Vec<(String, String)>,
    input: &mut Input<'_>,
) -> Result<(), ValueError> {
    if input.is_empty() {
        list.clear();
        return Ok(());
    }
    for word in input.words()? {
        match word.split_once('=').filter(|(name, _)| !name.is_empty()) {
            // Windows has names such as `ProgramFiles(x86)`.
            Some((name, _)) if input.os() == Os::Linux && !is_variable_name(name) => {
                input.warn(format!(
                    "`{name}` is not the name of a variable; it is ignored"
                ));
            }
            Some((name, value)) => list.push((name.to_owned(), value.to_owned())),
            None => input.warn_about(ValueError::with_hint(
                format!("`{word}` is not NAME=value"),
                "put the whole pair in quotes if the value contains spaces",
            )),
        }
    }
    Ok(())
}

pub(super) fn directories(
    field: &mut ServiceDirectories,
    input: &mut Input<'_>,
) -> Result<(), ValueError> {
    if input.is_empty() {
        field.names.clear();
        return Ok(());
    }
    for word in input.words()? {
        let os = input.os();
        if word.contains(':') {
            input.warn(format!(
                "`{word}`: links to folders are not supported; it is ignored"
            ));
        } else if !is_plain_folder(&word, os) {
            input.warn(format!(
                "`{word}` is not a relative path without `.` and `..`; it is ignored"
            ));
        } else {
            field.names.push(Utf8PathBuf::from(word));
        }
    }
    Ok(())
}

/// Whether `word` leads strictly down: such a folder is made, given away and removed.
fn is_plain_folder(word: &str, os: Os) -> bool {
    let separators: &[char] = match os {
        Os::Linux => &['/'],
        Os::Windows => &['/', '\\'],
    };
    !word.is_empty()
        && !is_absolute(word, os)
        && word
            .split(separators)
            .all(|step| !matches!(step, "." | ".."))
}

pub(super) fn directory_mode(
    field: &mut ServiceDirectories,
    input: &Input<'_>,
) -> Result<(), ValueError> {
    field.mode = if input.is_empty() {
        ServiceDirectories::default().mode
    } else {
        parse_mode(input.raw)?
    };
    Ok(())
}

/// `soft:hard` or one value for both.
pub(super) fn limit(
    draft: &mut Draft,
    input: &Input<'_>,
    resource: Resource,
) -> Result<(), ValueError> {
    if input.is_empty() {
        draft.service.limits.remove(&resource);
        return Ok(());
    }
    let (soft, hard) = input.raw.split_once(':').unwrap_or((input.raw, input.raw));
    let limit = Limit {
        soft: limit_value(soft.trim(), resource)?,
        hard: limit_value(hard.trim(), resource)?,
    };
    if limit
        .hard
        .is_some_and(|hard| limit.soft.is_none_or(|soft| soft > hard))
    {
        return Err(ValueError::new(format!(
            "`{}`: the soft limit is above the hard one",
            input.raw
        )));
    }
    draft.service.limits.insert(resource, limit);
    Ok(())
}

/// Counts, bytes or seconds, by what is limited.
fn limit_value(text: &str, resource: Resource) -> Result<Option<u64>, ValueError> {
    match resource {
        Resource::CpuTime => {
            let span = parse_time_span(text)?;
            Ok(span
                .map(|span| span.as_micros().div_ceil(1_000_000))
                .and_then(|value| u64::try_from(value).ok()))
        }
        _ => parse_size(text),
    }
}
