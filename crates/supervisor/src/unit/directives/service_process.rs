//! The table of `[Service]`, continued: the surroundings of its processes.

use transom_model::os::Os;

use super::draft::{Draft, Input, set};
use super::{Directive, Section, full, limited, lists};
use crate::unit::service::{
    EnvironmentFile, MemoryLimit, Preserve, Resource, StandardInput, StandardOutput, TasksLimit,
    WorkingDirectory, WorkingPlace,
};
use crate::unit::values::{ValueError, parse_boolean, parse_mode, parse_percentage, parse_size};

const S: Section = Section::Service;

pub(super) const TABLE: &[Directive] = &[
    full(
        S,
        "Environment",
        "list of NAME=value",
        "Variables of the service",
        |draft, input| lists::environment(&mut draft.service.environment, input),
    ),
    full(
        S,
        "EnvironmentFile",
        "path",
        "A file with variables; with `-` in front it may be missing",
        add_environment_file,
    ),
    full(
        S,
        "PassEnvironment",
        "list of names",
        "Variables taken over from the supervisor",
        |draft, input| lists::word_list(&mut draft.service.pass_environment, input),
    ),
    full(
        S,
        "UnsetEnvironment",
        "list of names or pairs",
        "Variables removed at the very end",
        |draft, input| lists::word_list(&mut draft.service.unset_environment, input),
    ),
    full(
        S,
        "User",
        "name or number",
        "Whom the service runs as",
        |draft, input| set(draft, input, |draft| &mut draft.service.user, account),
    ),
    limited(
        S,
        "Group",
        "name or number",
        "The main group of the service",
        |draft, input| set(draft, input, |draft| &mut draft.service.group, account),
        "Linux only: on Windows the start fails",
    ),
    limited(
        S,
        "SupplementaryGroups",
        "list of groups",
        "More groups of the service",
        add_supplementary_groups,
        "Linux only: on Windows the start fails",
    ),
    full(
        S,
        "WorkingDirectory",
        "path or ~",
        "Where the service starts; with `-` in front it may be missing",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.service.working_directory,
                working_directory,
            )
        },
    ),
    full(
        S,
        "UMask",
        "mode",
        "Which permissions new files do not get",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.service.umask,
                |input| parse_mode(input.raw),
            )
        },
    ),
    full(
        S,
        "Nice",
        "number",
        "Priority, from -20 (most) to 19 (least)",
        |draft, input| set(draft, input, |draft| &mut draft.service.nice, nice),
    ),
    limited(
        S,
        "OOMScoreAdjust",
        "number",
        "How likely the kernel ends the service when memory is short, -1000 to 1000",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.service.oom_score_adjust,
                oom_score_adjust,
            )
        },
        "Linux only; where the kernel refuses, the status of the unit says so",
    ),
    full(
        S,
        "LimitCPU",
        "limit, or soft:hard",
        "Resource limit RLIMIT_CPU of the service",
        |draft, input| lists::limit(draft, input, Resource::CpuTime),
    ),
    full(
        S,
        "LimitFSIZE",
        "limit, or soft:hard",
        "Resource limit RLIMIT_FSIZE of the service",
        |draft, input| lists::limit(draft, input, Resource::FileSize),
    ),
    full(
        S,
        "LimitSTACK",
        "limit, or soft:hard",
        "Resource limit RLIMIT_STACK of the service",
        |draft, input| lists::limit(draft, input, Resource::Stack),
    ),
    full(
        S,
        "LimitCORE",
        "limit, or soft:hard",
        "Resource limit RLIMIT_CORE of the service",
        |draft, input| lists::limit(draft, input, Resource::Core),
    ),
    full(
        S,
        "LimitNOFILE",
        "limit, or soft:hard",
        "Resource limit RLIMIT_NOFILE of the service",
        |draft, input| lists::limit(draft, input, Resource::OpenFiles),
    ),
    full(
        S,
        "LimitAS",
        "limit, or soft:hard",
        "Resource limit RLIMIT_AS of the service",
        |draft, input| lists::limit(draft, input, Resource::AddressSpace),
    ),
    full(
        S,
        "LimitNPROC",
        "limit, or soft:hard",
        "Resource limit RLIMIT_NPROC of the service",
        |draft, input| lists::limit(draft, input, Resource::Processes),
    ),
    full(
        S,
        "LimitMEMLOCK",
        "limit, or soft:hard",
        "Resource limit RLIMIT_MEMLOCK of the service",
        |draft, input| lists::limit(draft, input, Resource::LockedMemory),
    ),
    full(
        S,
        "MemoryMax",
        "size or percentage",
        "The most memory all processes together may use",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.service.memory_max,
                memory_max,
            )
        },
    ),
    full(
        S,
        "CPUQuota",
        "percentage",
        "The most CPU time, 100% being one CPU",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.service.cpu_quota,
                cpu_quota,
            )
        },
    ),
    full(
        S,
        "TasksMax",
        "number or percentage",
        "The most processes and threads",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.service.tasks_max,
                tasks_max,
            )
        },
    ),
    limited(
        S,
        "StandardInput",
        "null, file:path",
        "Where standard input comes from",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.service.standard_input,
                standard_input,
            )
        },
        "on Windows a service with an input file is not asked to stop, but killed",
    ),
    limited(
        S,
        "StandardOutput",
        "inherit, null, journal, file:path, append:path, truncate:path",
        "Where standard output goes; journal is the log of the unit",
        |draft, input| set_output(draft, input, |draft| &mut draft.service.standard_output),
        "file: adds to the end, as append: does",
    ),
    full(
        S,
        "StandardError",
        "as StandardOutput",
        "Where standard error goes; inherit is where output goes",
        |draft, input| set_output(draft, input, |draft| &mut draft.service.standard_error),
    ),
    full(
        S,
        "RuntimeDirectory",
        "list of relative paths",
        "Folders made below the place for runtime before the start",
        |draft, input| lists::directories(&mut draft.service.runtime_directory, input),
    ),
    full(
        S,
        "RuntimeDirectoryMode",
        "mode",
        "Permissions of RuntimeDirectory=",
        |draft, input| lists::directory_mode(&mut draft.service.runtime_directory, input),
    ),
    full(
        S,
        "StateDirectory",
        "list of relative paths",
        "Folders made below the place for state before the start",
        |draft, input| lists::directories(&mut draft.service.state_directory, input),
    ),
    full(
        S,
        "StateDirectoryMode",
        "mode",
        "Permissions of StateDirectory=",
        |draft, input| lists::directory_mode(&mut draft.service.state_directory, input),
    ),
    full(
        S,
        "CacheDirectory",
        "list of relative paths",
        "Folders made below the place for cache before the start",
        |draft, input| lists::directories(&mut draft.service.cache_directory, input),
    ),
    full(
        S,
        "CacheDirectoryMode",
        "mode",
        "Permissions of CacheDirectory=",
        |draft, input| lists::directory_mode(&mut draft.service.cache_directory, input),
    ),
    full(
        S,
        "LogsDirectory",
        "list of relative paths",
        "Folders made below the place for logs before the start",
        |draft, input| lists::directories(&mut draft.service.logs_directory, input),
    ),
    full(
        S,
        "LogsDirectoryMode",
        "mode",
        "Permissions of LogsDirectory=",
        |draft, input| lists::directory_mode(&mut draft.service.logs_directory, input),
    ),
    full(
        S,
        "ConfigurationDirectory",
        "list of relative paths",
        "Folders made below the place for configuration before the start",
        |draft, input| lists::directories(&mut draft.service.configuration_directory, input),
    ),
    full(
        S,
        "ConfigurationDirectoryMode",
        "mode",
        "Permissions of ConfigurationDirectory=",
        |draft, input| lists::directory_mode(&mut draft.service.configuration_directory, input),
    ),
    full(
        S,
        "RuntimeDirectoryPreserve",
        "no, restart, yes",
        "Whether RuntimeDirectory= stays after the stop",
        |draft, input| {
            set(
                draft,
                input,
                |draft| &mut draft.service.runtime_directory_preserve,
                preserve,
            )
        },
    ),
];

fn add_environment_file(draft: &mut Draft, input: &mut Input<'_>) -> Result<(), ValueError> {
    if input.is_empty() {
        draft.service.environment_files.clear();
        return Ok(());
    }
    let text = input.text()?;
    let (text, optional) = strip_dash(&text);
    let path = input.check_path(text)?;
    draft
        .service
        .environment_files
        .push(EnvironmentFile { path, optional });
    Ok(())
}

fn strip_dash(text: &str) -> (&str, bool) {
    match text.strip_prefix('-') {
        Some(rest) => (rest, true),
        None => (text, false),
    }
}

/// A user or group. Windows accounts may be written `.\\name`, `DOMAIN\\name` or `name@domain`.
fn account(input: &Input<'_>) -> Result<Option<String>, ValueError> {
    check_account(input, input.text()?).map(Some)
}

fn add_supplementary_groups(draft: &mut Draft, input: &mut Input<'_>) -> Result<(), ValueError> {
    let mut groups = Vec::new();
    lists::word_list(&mut groups, input)?;
    if groups.is_empty() {
        draft.service.supplementary_groups.clear();
    }
    for group in groups {
        let group = check_account(input, group)?;
        draft.service.supplementary_groups.push(group);
    }
    Ok(())
}

fn check_account(input: &Input<'_>, text: String) -> Result<String, ValueError> {
    let is_allowed = |character: char| {
        character.is_alphanumeric()
            || "_-.$".contains(character)
            || match input.os() {
                Os::Linux => false,
                Os::Windows => "\\@ ".contains(character),
            }
    };
    let is_valid = !text.is_empty()
        && !text.starts_with('-')
        && text.len() <= 256
        && text.chars().all(is_allowed);
    if is_valid {
        Ok(text)
    } else {
        Err(ValueError::new(format!(
            "`{text}` is not the name of a user or group"
        )))
    }
}

fn working_directory(input: &Input<'_>) -> Result<Option<WorkingDirectory>, ValueError> {
    let text = input.text()?;
    let (text, optional) = strip_dash(&text);
    let place = if text == "~" {
        WorkingPlace::Home
    } else {
        WorkingPlace::Path(input.check_path(text)?)
    };
    Ok(Some(WorkingDirectory { place, optional }))
}

fn nice(input: &Input<'_>) -> Result<i8, ValueError> {
    let value: i8 = input.number()?;
    if (-20..=19).contains(&value) {
        Ok(value)
    } else {
        Err(ValueError::new(format!(
            "`{value}` is not between -20 and 19"
        )))
    }
}

fn oom_score_adjust(input: &Input<'_>) -> Result<Option<i16>, ValueError> {
    let value: i16 = input.number()?;
    if (-1000..=1000).contains(&value) {
        Ok(Some(value))
    } else {
        Err(ValueError::new(format!(
            "`{value}` is not between -1000 and 1000"
        )))
    }
}

fn memory_max(input: &Input<'_>) -> Result<Option<MemoryLimit>, ValueError> {
    if input.raw.ends_with('%') {
        return parse_percentage(input.raw).map(|share| Some(MemoryLimit::Share(share)));
    }
    match parse_size(input.raw)? {
        Some(0) => Err(ValueError::new("no service runs in no memory")),
        size => Ok(size.map(MemoryLimit::Bytes)),
    }
}

fn cpu_quota(input: &Input<'_>) -> Result<Option<u64>, ValueError> {
    match parse_percentage(input.raw)? {
        0 => Err(ValueError::new("no service runs without any CPU time")),
        share => Ok(Some(share)),
    }
}

fn tasks_max(input: &Input<'_>) -> Result<Option<TasksLimit>, ValueError> {
    if input.raw.ends_with('%') {
        return parse_percentage(input.raw).map(|share| Some(TasksLimit::Share(share)));
    }
    match parse_size(input.raw)? {
        Some(0) => Err(ValueError::new("no service runs without any process")),
        count => Ok(count.map(TasksLimit::Count)),
    }
}

fn standard_input(input: &Input<'_>) -> Result<StandardInput, ValueError> {
    let text = input.text()?;
    if text == "null" {
        return Ok(StandardInput::Null);
    }
    match text.strip_prefix("file:") {
        Some(path) => input.check_path(path).map(StandardInput::File),
        None => Err(ValueError::new(format!(
            "`{text}` is not supported: services have no terminal and no socket; null and file:path are"
        ))),
    }
}

fn set_output(
    draft: &mut Draft,
    input: &mut Input<'_>,
    field: fn(&mut Draft) -> &mut StandardOutput,
) -> Result<(), ValueError> {
    set(draft, input, field, standard_output)?;
    if is_older_log(input.raw) {
        input.warn(format!(
            "`{}` is taken as journal: there is one log",
            input.raw
        ));
    }
    Ok(())
}

/// Other logs of a Linux machine, some of them for its console too.
fn is_older_log(value: &str) -> bool {
    matches!(
        value.strip_suffix("+console").unwrap_or(value),
        "syslog" | "kmsg"
    ) || value == "journal+console"
}

fn standard_output(input: &Input<'_>) -> Result<StandardOutput, ValueError> {
    let text = input.text()?;
    match text.as_str() {
        "inherit" => return Ok(StandardOutput::Inherit),
        "null" => return Ok(StandardOutput::Null),
        "journal" => return Ok(StandardOutput::Journal),
        other if is_older_log(other) => return Ok(StandardOutput::Journal),
        _ => {}
    }
    let with_path = |path: &str| input.check_path(path);
    if let Some(path) = text.strip_prefix("file:") {
        with_path(path).map(StandardOutput::File)
    } else if let Some(path) = text.strip_prefix("append:") {
        with_path(path).map(StandardOutput::Append)
    } else if let Some(path) = text.strip_prefix("truncate:") {
        with_path(path).map(StandardOutput::Truncate)
    } else {
        Err(ValueError::new(format!(
            "`{text}` is not supported: use inherit, null, journal, file:path, append:path or truncate:path"
        )))
    }
}

fn preserve(input: &Input<'_>) -> Result<Preserve, ValueError> {
    if input.raw == "restart" {
        return Ok(Preserve::Restart);
    }
    parse_boolean(input.raw).map(|value| if value { Preserve::Yes } else { Preserve::No })
}
