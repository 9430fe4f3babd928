//! `status`: everything about a unit that a person wants to see at once, its last log lines included.

use std::fmt::Write as _;

use clap::builder::styling::{AnsiColor, Style};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use transom_supervisor::control::protocol::{
    ActiveState, Answer, LoadState, Request, UnitResult, UnitStatus,
};
use transom_supervisor::logs::{LogReader, Query};

use super::list::UnitRow;
use super::{ask, inspect, list, logs, resolve, systemd};
use crate::context::Context;
use crate::failure::Exit;
use crate::output::{Document, Shown, age};

/// Show units with their last log lines; without a name, what the supervisor does
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 running, 3 not running, 4 no such unit.\n\nExamples:\n  transom service status\n  transom service status web\n  transom service status -n 50 'web*'"
)]
pub(super) struct Status {
    #[arg(value_name = "UNIT")]
    units: Vec<String>,

    /// How many log lines to show
    #[arg(short = 'n', long, default_value_t = 10)]
    lines: usize,

    /// Accepted for systemctl's sake: lines are never cut
    #[arg(short = 'l', long, hide = true)]
    full: bool,
}

impl Status {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        if systemd::runs(cx) {
            let lines = format!("--lines={}", self.lines);
            return systemd::systemctl("status", &["--no-pager", &lines], &self.units);
        }
        if self.units.is_empty() {
            return overview(cx);
        }
        let units = inspect(cx, &resolve(cx, &self.units)?)?;
        let exit = units
            .iter()
            .map(exit_of)
            .max()
            .map_or(Exit::Success, |code| match code {
                0 => Exit::Success,
                code => Exit::Status(code),
            });
        let shown: Vec<Inspected> = units
            .into_iter()
            .map(|unit| Inspected {
                log: self.last_lines(&unit),
                unit,
            })
            .collect();
        cx.out.document(&Statuses(shown))?;
        Ok(exit)
    }

    fn last_lines(&self, unit: &UnitStatus) -> Vec<String> {
        let Some(path) = &unit.log_path else {
            return Vec::new();
        };
        let query = Query {
            last: Some(self.lines),
            ..Query::default()
        };
        match LogReader::new(path.clone()).read(query) {
            Ok(lines) => lines
                .iter()
                .map(|line| logs::render(&unit.name, line))
                .collect(),
            Err(error) => vec![format!("(the log cannot be read: {error})")],
        }
    }
}

fn exit_of(unit: &UnitStatus) -> u8 {
    match (unit.load_state, unit.active_state) {
        (LoadState::NotFound, ActiveState::Inactive) => 4,
        (_, ActiveState::Active | ActiveState::Reloading) => 0,
        _ => 3,
    }
}

/// What the supervisor as a whole does.
fn overview(cx: &Context) -> anyhow::Result<Exit> {
    let Answer::Pong { version, pid } = ask(cx, &Request::Ping)? else {
        anyhow::bail!("the supervisor did not answer a greeting");
    };
    let units = list(cx, &[])?;
    let failed = units
        .iter()
        .filter(|unit| unit.active_state == ActiveState::Failed)
        .count();
    let jobs = units.iter().filter(|unit| unit.job.is_some()).count();
    let state = if failed > 0 { "degraded" } else { "running" };
    cx.out.remark(&format!(
        "supervisor {version} is {state} (pid {pid}): {} units loaded, {jobs} jobs, {failed} failed",
        units.len()
    ));
    let rows: Vec<UnitRow> = units
        .into_iter()
        .filter(|unit| {
            unit.active_state != ActiveState::Inactive && unit.name.ends_with(".service")
        })
        .map(UnitRow::from)
        .collect();
    cx.out.list(&rows)?;
    Ok(Exit::Success)
}

#[derive(Serialize)]
struct Inspected {
    #[serde(flatten)]
    unit: UnitStatus,
    log: Vec<String>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Statuses(Vec<Inspected>);

impl Document for Statuses {
    fn text(&self, _wide: bool, shown: Shown) -> String {
        self.0
            .iter()
            .map(|unit| render(unit, shown))
            .collect::<Vec<_>>()
            .join("\n")
    }

    fn names(&self) -> Vec<String> {
        self.0.iter().map(|shown| shown.unit.name.clone()).collect()
    }
}

/// A time as people here read it.
pub(super) fn local_time(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system())
        .strftime("%a %Y-%m-%d %H:%M:%S %Z")
        .to_string()
}

fn render(shown_unit: &Inspected, shown: Shown) -> String {
    let unit = &shown_unit.unit;
    let mut text = String::new();
    if unit.load_state == LoadState::NotFound && unit.active_state == ActiveState::Inactive {
        return format!("Unit {} could not be found.\n", unit.name);
    }
    let style = style_of(unit.active_state);
    let dot = match (shown.unicode, unit.active_state) {
        (true, ActiveState::Inactive) => "○",
        (true, ActiveState::Failed) => "×",
        (true, _) => "●",
        (false, _) => "*",
    };
    let title = if unit.description == unit.name {
        unit.name.clone()
    } else {
        format!("{} - {}", unit.name, unit.description)
    };
    let mut line = |label: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{label:>11}{}{value}",
            if label.is_empty() { "  " } else { ": " }
        );
    };
    line("Loaded", loaded(unit));
    for path in &unit.drop_in_paths {
        line("Drop-In", path.to_string());
    }
    line("Active", active(unit, shown));
    if let Some(condition) = &unit.condition_failed {
        line("Condition", format!("{condition} was not met"));
    }
    if let Some(timer) = &unit.timer {
        let next = timer.next.map_or("n/a".to_owned(), |next| {
            format!("{}; {} left", local_time(next), age(shown.now, next))
        });
        line("Trigger", next);
        line("Triggers", timer.unit.clone());
    }
    if !unit.triggered_by.is_empty() {
        line("TriggeredBy", unit.triggered_by.join(" "));
    }
    if let Some(job) = &unit.job {
        line("Job", job.clone());
    }
    if let Some(pid) = unit.main_pid {
        line("Main PID", pid.to_string());
    } else if let Some(exit) = &unit.main_exit {
        line(
            "Main exit",
            format!("{}, status={}", exit.kind, exit.status),
        );
    }
    if let Some(status) = &unit.status_text {
        line("Status", format!("\"{status}\""));
    }
    if unit.restarts > 0 {
        line("Restarts", unit.restarts.to_string());
    }
    if !unit.processes.is_empty() {
        line("Tasks", unit.processes.len().to_string());
    }
    if let Some(memory) = unit.memory_bytes {
        line("Memory", bytes(memory));
    }
    if let Some(cpu) = unit.cpu_nanoseconds {
        line("CPU", format!("{}ms", cpu / 1_000_000));
    }
    for process in &unit.processes {
        let branch = if shown.unicode { "├─" } else { "|-" };
        line("", format!("{branch}{} {}", process.pid, process.command));
    }
    for limit in &unit.limits_not_enforced {
        line("Limit", limit.clone());
    }
    for warning in &unit.load_warnings {
        line("Remark", warning.clone());
    }
    let mut whole = format!("{style}{dot}{style:#} {title}\n{text}");
    if !shown_unit.log.is_empty() {
        whole.push('\n');
        for entry in &shown_unit.log {
            whole.push_str(entry);
            whole.push('\n');
        }
    }
    whole
}

fn style_of(state: ActiveState) -> Style {
    match state {
        ActiveState::Active | ActiveState::Reloading => AnsiColor::Green.on_default().bold(),
        ActiveState::Failed => AnsiColor::Red.on_default().bold(),
        ActiveState::Inactive => Style::new(),
        ActiveState::Activating | ActiveState::Deactivating => {
            AnsiColor::Yellow.on_default().bold()
        }
    }
}

fn loaded(unit: &UnitStatus) -> String {
    let mut inside = Vec::new();
    inside.extend(unit.fragment_path.as_ref().map(ToString::to_string));
    if !unit.unit_file_state.is_empty() {
        inside.push(unit.unit_file_state.clone());
    }
    let inside = if inside.is_empty() {
        "built in".to_owned()
    } else {
        inside.join("; ")
    };
    match &unit.load_error {
        Some(error) => format!("{} ({inside}): {error}", unit.load_state.name()),
        None => format!("{} ({inside})", unit.load_state.name()),
    }
}

fn active(unit: &UnitStatus, shown: Shown) -> String {
    let style = style_of(unit.active_state);
    let result = match unit.result {
        UnitResult::Success => String::new(),
        result => format!(" (Result: {})", result.name()),
    };
    let since = unit.state_changed.map_or(String::new(), |since| {
        format!(
            " since {}; {} ago",
            local_time(since),
            age(since, shown.now)
        )
    });
    format!(
        "{style}{} ({}){style:#}{result}{since}",
        unit.active_state.name(),
        unit.sub_state
    )
}

fn bytes(count: u64) -> String {
    const STEPS: [(&str, u64); 3] = [("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)];
    for (suffix, size) in STEPS {
        if count >= size {
            let tenths = count * 10 / size;
            return format!("{}.{}{suffix}", tenths / 10, tenths % 10);
        }
    }
    format!("{count}B")
}
