//! `list-units`, `list-unit-files`, `list-timers`.

use jiff::Timestamp;
use serde::Serialize;
use transom_supervisor::control::protocol::{ActiveState, UnitStatus};

use super::enable::unit_store;
use super::{list, matches, systemd};
use crate::context::Context;
use crate::failure::Exit;
use crate::output::{Cell, Column, Row, Shown, age};

#[derive(Debug, Default, clap::Args)]
struct Filter {
    /// Only units that match these patterns
    #[arg(value_name = "PATTERN")]
    patterns: Vec<String>,

    /// Only these types, such as service or timer
    #[arg(short = 't', long = "type", value_delimiter = ',', value_name = "TYPE")]
    types: Vec<String>,

    /// Only these states, such as failed, running or enabled
    #[arg(long, value_delimiter = ',', value_name = "STATE")]
    state: Vec<String>,
}

impl Filter {
    fn wants(&self, name: &str, states: &[&str]) -> bool {
        let kind = name.rsplit('.').next().unwrap_or_default();
        (self.types.is_empty() || self.types.iter().any(|wanted| wanted == kind))
            && (self.state.is_empty()
                || self
                    .state
                    .iter()
                    .any(|wanted| states.contains(&wanted.as_str())))
    }

    /// The same for systemctl.
    fn flags(&self) -> Vec<String> {
        let types = self.types.iter().map(|kind| format!("--type={kind}"));
        types
            .chain(self.state.iter().map(|state| format!("--state={state}")))
            .collect()
    }
}

/// List units that are loaded: those that run, failed, or wait
#[derive(Debug, Default, clap::Args)]
#[command(
    after_help = "Examples:\n  transom service list-units\n  transom service list-units --all\n  transom service list-units --failed -o json"
)]
pub(super) struct ListUnits {
    #[command(flatten)]
    filter: Filter,

    /// Those that are inactive, too
    #[arg(short, long)]
    all: bool,

    /// Only those that failed
    #[arg(long)]
    failed: bool,

    /// Without the line of titles and the hints
    #[arg(long, hide = true)]
    no_legend: bool,
}

/// List all unit files, and whether they are enabled
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  transom service list-unit-files\n  transom service list-unit-files --state enabled"
)]
pub(super) struct ListUnitFiles {
    #[command(flatten)]
    filter: Filter,
}

/// List timers, the next to fire first
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  transom service list-timers")]
pub(super) struct ListTimers {
    /// Only units that match these patterns
    #[arg(value_name = "PATTERN")]
    patterns: Vec<String>,

    /// Those that are stopped, too
    #[arg(short, long)]
    all: bool,
}

impl ListUnits {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        if systemd::runs(cx) {
            let mut flags = self.filter.flags();
            flags.extend(self.all.then(|| "--all".to_owned()));
            flags.extend(self.failed.then(|| "--failed".to_owned()));
            let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
            return systemd::systemctl("list-units", &flags, &self.filter.patterns);
        }
        let rows: Vec<UnitRow> = list(cx, &self.filter.patterns)?
            .into_iter()
            .filter(|unit| {
                let states = [
                    unit.active_state.name(),
                    unit.sub_state.as_str(),
                    unit.load_state.name(),
                ];
                let shown = self.all
                    || !self.filter.state.is_empty()
                    || unit.active_state != ActiveState::Inactive
                    || unit.job.is_some();
                let failed = !self.failed || unit.active_state == ActiveState::Failed;
                shown && failed && self.filter.wants(&unit.name, &states)
            })
            .map(UnitRow::from)
            .collect();
        cx.out.list(&rows)?;
        Ok(Exit::Success)
    }
}

#[derive(Serialize)]
pub(super) struct UnitRow {
    unit: String,
    load: &'static str,
    active: &'static str,
    sub: String,
    main_pid: Option<u32>,
    restarts: u32,
    since: Option<Timestamp>,
    description: String,
}

impl From<UnitStatus> for UnitRow {
    fn from(unit: UnitStatus) -> Self {
        Self {
            unit: unit.name,
            load: unit.load_state.name(),
            active: unit.active_state.name(),
            sub: unit.sub_state,
            main_pid: unit.main_pid,
            restarts: unit.restarts,
            since: unit.state_changed,
            description: unit.description,
        }
    }
}

impl Row for UnitRow {
    const PLURAL: &'static str = "units";

    fn columns() -> &'static [Column] {
        const {
            &[
                Column::new("UNIT"),
                Column::new("LOAD"),
                Column::new("ACTIVE"),
                Column::new("SUB"),
                Column::wide("PID"),
                Column::wide("RESTARTS"),
                Column::wide("SINCE"),
                Column::new("DESCRIPTION"),
            ]
        }
    }

    fn cells(&self, shown: Shown) -> Vec<Cell> {
        vec![
            Cell::new(&self.unit),
            Cell::new(self.load),
            Cell::new(self.active),
            Cell::new(&self.sub),
            Cell::optional(self.main_pid.map(|pid| pid.to_string())),
            Cell::new(self.restarts.to_string()),
            Cell::optional(self.since.map(|since| age(since, shown.now))),
            Cell::new(&self.description),
        ]
    }

    fn name(&self) -> String {
        self.unit.clone()
    }
}

impl ListUnitFiles {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        if systemd::runs(cx) {
            let flags = self.filter.flags();
            let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
            return systemd::systemctl("list-unit-files", &flags, &self.filter.patterns);
        }
        let rows: Vec<FileRow> = unit_store(cx)?
            .unit_files()
            .into_iter()
            .filter(|file| {
                matches(&self.filter.patterns, &file.name)
                    && self.filter.wants(file.name.as_str(), &[file.state.name()])
            })
            .map(|file| FileRow {
                unit_file: file.name.to_string(),
                state: file.state.name(),
                path: file.path.to_string(),
            })
            .collect();
        cx.out.list(&rows)?;
        Ok(Exit::Success)
    }
}

#[derive(Serialize)]
struct FileRow {
    unit_file: String,
    state: &'static str,
    path: String,
}

impl Row for FileRow {
    const PLURAL: &'static str = "unit files";

    fn columns() -> &'static [Column] {
        const {
            &[
                Column::new("UNIT FILE"),
                Column::new("STATE"),
                Column::wide("PATH"),
            ]
        }
    }

    fn cells(&self, _shown: Shown) -> Vec<Cell> {
        vec![
            Cell::new(&self.unit_file),
            Cell::new(self.state),
            Cell::new(&self.path),
        ]
    }

    fn name(&self) -> String {
        self.unit_file.clone()
    }
}

impl ListTimers {
    pub(super) fn run(self, cx: &Context) -> anyhow::Result<Exit> {
        if systemd::runs(cx) {
            let all: &[&str] = if self.all { &["--all"] } else { &[] };
            return systemd::systemctl("list-timers", all, &self.patterns);
        }
        let mut rows: Vec<TimerRow> = list(cx, &self.patterns)?
            .into_iter()
            .filter(|unit| self.all || unit.active_state == ActiveState::Active)
            .filter_map(|unit| {
                let timer = unit.timer?;
                let (next, last) = (timer.next, timer.last);
                Some(TimerRow {
                    next,
                    last,
                    unit: unit.name,
                    activates: timer.unit,
                })
            })
            .collect();
        rows.sort_by_key(|row| (row.next.is_none(), row.next));
        cx.out.list(&rows)?;
        Ok(Exit::Success)
    }
}

#[derive(Serialize)]
struct TimerRow {
    next: Option<Timestamp>,
    last: Option<Timestamp>,
    unit: String,
    activates: String,
}

impl Row for TimerRow {
    const PLURAL: &'static str = "timers";

    fn columns() -> &'static [Column] {
        const {
            &[
                Column::new("NEXT"),
                Column::new("LEFT"),
                Column::new("LAST"),
                Column::new("PASSED"),
                Column::new("UNIT"),
                Column::new("ACTIVATES"),
            ]
        }
    }

    fn cells(&self, shown: Shown) -> Vec<Cell> {
        let time = |at: Option<Timestamp>| Cell::optional(at.map(super::status::local_time));
        vec![
            time(self.next),
            Cell::optional(self.next.map(|next| age(shown.now, next))),
            time(self.last),
            Cell::optional(self.last.map(|last| age(last, shown.now))),
            Cell::new(&self.unit),
            Cell::new(&self.activates),
        ]
    }

    fn name(&self) -> String {
        self.unit.clone()
    }
}
