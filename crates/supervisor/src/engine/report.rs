//! A unit's status as clients see it: everything the engine knows. The daemon adds what only the
//! machine knows (processes, memory).

use std::collections::{BTreeMap, BTreeSet};

use transom_host::process::Exit;

use super::Engine;
use super::runtime::Runtime;
use crate::control::protocol::{ExitStatus, LoadState, TimerStatus, UnitResult, UnitStatus};
use crate::unit::UnitName;

impl Engine {
    /// The status of any name, known or not.
    pub fn status(&self, name: &UnitName) -> UnitStatus {
        let nothing = Runtime::default();
        let runtime = self.memory.units.get(name).unwrap_or(&nothing);
        let definition = self.catalog.definition(name);
        let unit = self.catalog.unit(name);
        let mut status = UnitStatus {
            name: name.to_string(),
            description: unit.map_or_else(|| name.to_string(), |unit| unit.description.clone()),
            load_state: definition.map_or(LoadState::NotFound, |d| d.load_state),
            load_error: definition.and_then(|d| d.load_error.clone()),
            load_warnings: definition.map(|d| d.problems.clone()).unwrap_or_default(),
            fragment_path: definition.and_then(|d| d.source.clone()),
            drop_in_paths: unit.map(|unit| unit.drop_ins.clone()).unwrap_or_default(),
            unit_file_state: definition.map(|d| d.file_state.clone()).unwrap_or_default(),
            active_state: runtime.state.active_state(),
            sub_state: runtime.state.name().to_owned(),
            result: runtime.result,
            state_changed: runtime.changed,
            active_entered: runtime.active_entered,
            inactive_entered: runtime.inactive_entered,
            condition_failed: runtime.condition_failed.clone(),
            invocation_id: runtime.invocation.clone(),
            main_pid: runtime.main.as_ref().and_then(|main| main.pid),
            main_exit: runtime.main_ended.as_ref().map(|ended| {
                let (kind, status) = match ended.exit {
                    Exit::Code(code) => ("exited", code),
                    Exit::Signal(signal) => ("killed", signal),
                    Exit::Unknown => ("unknown", 0),
                };
                ExitStatus {
                    kind: kind.into(),
                    status,
                    at: ended.at,
                }
            }),
            control_pid: runtime.control.as_ref().and_then(|control| control.pid),
            status_text: runtime.status_text.clone(),
            restarts: runtime.restarts,
            processes: Vec::new(),
            memory_bytes: None,
            cpu_nanoseconds: None,
            limits_not_enforced: runtime.limits_not_enforced.clone(),
            log_path: None,
            timer: unit.and_then(|unit| {
                Some(TimerStatus {
                    unit: unit.triggers()?.to_string(),
                    next: next_elapse(runtime),
                    last: runtime.timer.last,
                })
            }),
            triggered_by: names(&self.catalog.dependents(name).triggered_by),
            job: self.memory.jobs.get(name).map(|job| {
                let progress = if job.running { "running" } else { "waiting" };
                format!("{} ({progress})", job.kind.name())
            }),
            dependencies: self.dependencies(name),
            properties: BTreeMap::new(),
        };
        status.properties = properties(&status, runtime.reason.as_deref());
        status
    }

    fn dependencies(&self, name: &UnitName) -> BTreeMap<String, Vec<String>> {
        let mut all = BTreeMap::new();
        let mut put = |property: &str, units: &BTreeSet<UnitName>| {
            if !units.is_empty() {
                all.insert(property.to_owned(), names(units));
            }
        };
        if let Some(unit) = self.catalog.unit(name) {
            let on = &unit.dependencies;
            put("Requires", &on.requires);
            put("Requisite", &on.requisite);
            put("Wants", &on.wants);
            put("BindsTo", &on.binds_to);
            put("PartOf", &on.part_of);
            put("Upholds", &on.upholds);
            put("Conflicts", &on.conflicts);
            put("Before", &on.before);
            put("OnFailure", &on.on_failure);
            put("OnSuccess", &on.on_success);
            put("PropagatesReloadTo", &on.propagates_reload_to);
            put("PropagatesStopTo", &on.propagates_stop_to);
            put("Triggers", &unit.triggers().into_iter().collect());
        }
        put("After", self.catalog.predecessors(name));
        let from = self.catalog.dependents(name);
        put("RequiredBy", &from.required_by);
        put("RequisiteOf", &from.requisite_of);
        put("WantedBy", &from.wanted_by);
        put("BoundBy", &from.bound_by);
        put("ConsistsOf", &from.consists_of);
        put("UpheldBy", &from.upheld_by);
        put("ConflictedBy", &from.conflicted_by);
        put("TriggeredBy", &from.triggered_by);
        all
    }
}

/// When a timer fires next, as a time of day.
fn next_elapse(runtime: &Runtime) -> Option<jiff::Timestamp> {
    let by_span = runtime.timer.next_boot.and_then(|next| {
        let anchor = runtime.timer.anchor?;
        anchor.wall.checked_add(next.since(anchor.boot)).ok()
    });
    by_span.into_iter().chain(runtime.timer.next_wall).min()
}

fn names(units: &BTreeSet<UnitName>) -> Vec<String> {
    units.iter().map(ToString::to_string).collect()
}

/// `systemctl show`: the same facts under systemd's names.
fn properties(status: &UnitStatus, reason: Option<&str>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut put = |name: &str, value: String| {
        all.insert(name.to_owned(), value);
    };
    put("Id", status.name.clone());
    put("Names", status.name.clone());
    put("Description", status.description.clone());
    put("LoadState", status.load_state.name().to_owned());
    put("LoadError", status.load_error.clone().unwrap_or_default());
    put("ActiveState", status.active_state.name().to_owned());
    put("SubState", status.sub_state.clone());
    put("Result", status.result.name().to_owned());
    put("UnitFileState", status.unit_file_state.clone());
    put(
        "FragmentPath",
        status
            .fragment_path
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
    );
    put("DropInPaths", joined(&status.drop_in_paths));
    put(
        "InvocationID",
        status.invocation_id.clone().unwrap_or_default(),
    );
    put("MainPID", status.main_pid.unwrap_or(0).to_string());
    put("ControlPID", status.control_pid.unwrap_or(0).to_string());
    put("NRestarts", status.restarts.to_string());
    put("StatusText", status.status_text.clone().unwrap_or_default());
    put("ConditionResult", yes_no(status.condition_failed.is_none()));
    put("AssertResult", yes_no(status.result != UnitResult::Assert));
    put("Job", status.job.clone().unwrap_or_default());
    put("FailureReason", reason.unwrap_or_default().to_owned());
    let (code, exit) = match &status.main_exit {
        Some(exit) => (exit.kind.clone(), exit.status),
        None => (String::new(), 0),
    };
    put("ExecMainCode", code);
    put("ExecMainStatus", exit.to_string());
    let time = |at: Option<jiff::Timestamp>| at.map(|at| at.to_string()).unwrap_or_default();
    put("StateChangeTimestamp", time(status.state_changed));
    put("ActiveEnterTimestamp", time(status.active_entered));
    put("InactiveEnterTimestamp", time(status.inactive_entered));
    if let Some(timer) = &status.timer {
        put("Unit", timer.unit.clone());
        put("NextElapse", time(timer.next));
        put("LastTrigger", time(timer.last));
    }
    for (property, units) in &status.dependencies {
        all.insert(property.clone(), units.join(" "));
    }
    all
}

fn joined(paths: &[camino::Utf8PathBuf]) -> String {
    paths
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" ")
}

fn yes_no(value: bool) -> String {
    if value { "yes".into() } else { "no".into() }
}
