//! Scenarios: unit files in, a transcript of what the engine did out. The keeper is played by the
//! test, so every race can be written down.

mod dependencies;
mod service;
mod timer;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use transom_host::process::Exit;
use transom_model::os::Os;

use super::{
    Catalog, Definition, Effect, Engine, KeeperEvent, Moment, Notification, Now, Place, RunId,
    Verdict,
};
use crate::control::protocol::{JobVerb, LoadState, RequestError};
use crate::unit::parse::{UnitSource, parse};
use crate::unit::{SpecifierContext, UnitName};

pub(super) struct Scenario {
    engine: Engine,
    now: Now,
    transcript: String,
    /// Commands that the engine had run, by unit and role, in the order given.
    runs: Vec<(UnitName, RunId)>,
    verdicts: BTreeMap<UnitName, Verdict>,
    /// Whether processes end as soon as they are signalled.
    pub obedient: bool,
}

pub(super) fn name(text: &str) -> UnitName {
    text.parse().unwrap()
}

fn catalog(files: &[(&str, &str)]) -> Catalog {
    let specifiers = SpecifierContext::places(Os::Linux);
    let definitions = files.iter().map(|(unit, text)| {
        let unit = name(unit);
        let bytes = text.replace("; ", "\n").into_bytes();
        let source = UnitSource {
            path: format!("/units/{unit}").into(),
            bytes,
        };
        let parsed = parse(&unit, Some(&source), &[], &specifiers);
        assert!(parsed.is_usable(), "{unit}: {:?}", parsed.problems);
        let definition = Definition {
            load_state: LoadState::Loaded,
            load_error: None,
            file_state: "static".into(),
            source: parsed.source.clone(),
            problems: Vec::new(),
            last_trigger: None,
            unit: Some(Arc::new(parsed)),
        };
        (unit, definition)
    });
    Catalog::new(definitions.collect())
}

impl Scenario {
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        let now = Now {
            boot: Moment::from_uptime(Duration::from_secs(100)),
            wall: "2026-03-01T12:00:00Z".parse().unwrap(),
        };
        let place = Place {
            zone: TimeZone::UTC,
            machine: "m".into(),
        };
        Self {
            engine: Engine::new(catalog(files), place, "n".into(), now),
            now,
            transcript: String::new(),
            runs: Vec::new(),
            verdicts: BTreeMap::new(),
            obedient: true,
        }
    }

    /// What happened since the last call.
    pub(super) fn transcript(&mut self) -> String {
        std::mem::take(&mut self.transcript)
    }

    pub(super) fn verdict(&mut self, unit: &str, verdict: Verdict) {
        self.verdicts.insert(name(unit), verdict);
    }

    pub(super) fn request(&mut self, verb: JobVerb, units: &[&str]) -> Result<(), RequestError> {
        let units: Vec<UnitName> = units.iter().map(|unit| name(unit)).collect();
        let mut turn = self.engine.turn(self.now);
        let accepted = turn.request(verb, &units);
        let effects = turn.finish();
        let (_, warnings) = accepted?;
        for warning in warnings {
            writeln!(self.transcript, "warning: {warning}").unwrap();
        }
        self.execute(effects);
        Ok(())
    }

    pub(super) fn start(&mut self, unit: &str) {
        self.request(JobVerb::Start, &[unit]).unwrap();
    }

    pub(super) fn stop(&mut self, unit: &str) {
        self.request(JobVerb::Stop, &[unit]).unwrap();
    }

    pub(super) fn wait(&mut self, time: Duration) {
        self.now.boot = self.now.boot.after(time);
        self.now.wall = self.now.wall.checked_add(time).unwrap();
        let mut turn = self.engine.turn(self.now);
        turn.tick();
        let effects = turn.finish();
        self.execute(effects);
    }

    fn event(&mut self, unit: &UnitName, event: KeeperEvent) {
        let mut turn = self.engine.turn(self.now);
        turn.keeper_event(unit, event);
        let effects = turn.finish();
        self.execute(effects);
    }

    /// The last command of a unit ends.
    pub(super) fn exit(&mut self, unit: &str, exit: Exit) {
        let unit = name(unit);
        let run = self.last_run(&unit);
        self.event(&unit, KeeperEvent::Exited { run, exit });
    }

    pub(super) fn notify(&mut self, unit: &str, text: &str) {
        self.event(&name(unit), KeeperEvent::Notify(Notification::parse(text)));
    }

    pub(super) fn lose_keeper(&mut self, unit: &str) {
        self.event(
            &name(unit),
            KeeperEvent::Lost {
                reason: "keeper killed".into(),
            },
        );
    }

    fn last_run(&self, unit: &UnitName) -> RunId {
        self.runs.iter().rfind(|(of, _)| of == unit).unwrap().1
    }

    /// The daemon dies and comes back: only the memory is kept.
    pub(super) fn restart_daemon(&mut self) {
        let saved = serde_json::to_string(self.engine.memory()).unwrap();
        let place = Place {
            zone: TimeZone::UTC,
            machine: "m".into(),
        };
        let memory = serde_json::from_str(&saved).unwrap();
        self.engine = Engine::restore(self.engine.catalog().clone(), place, memory);
        let kept: Vec<UnitName> = self
            .engine
            .known()
            .filter(|(_, runtime)| runtime.kept)
            .map(|(unit, _)| unit.clone())
            .collect();
        let mut turn = self.engine.turn(self.now);
        for unit in &kept {
            let known: Vec<RunId> = self
                .runs
                .iter()
                .filter(|(of, _)| of == unit)
                .map(|(_, run)| *run)
                .collect();
            turn.resume(unit, &|run| known.contains(&run));
        }
        turn.resume_jobs();
        let effects = turn.finish();
        writeln!(self.transcript, "daemon restarted").unwrap();
        self.execute(effects);
    }

    pub(super) fn states(&self) -> String {
        let mut text = String::new();
        for (unit, runtime) in self.engine.known() {
            let active = runtime.state.active_state().name();
            let result = runtime.result.name();
            writeln!(text, "{unit} {active} ({}) {result}", runtime.state.name()).unwrap();
        }
        text
    }

    fn execute(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.execute_one(effect);
        }
    }

    fn execute_one(&mut self, effect: Effect) {
        match effect {
            Effect::Check { unit } => {
                let verdict = self.verdicts.get(&unit).cloned().unwrap_or(Verdict::Go);
                let mut turn = self.engine.turn(self.now);
                turn.checked(&unit, verdict);
                let effects = turn.finish();
                self.execute(effects);
            }
            Effect::Open { .. } | Effect::Stamp { .. } => {}
            Effect::Run {
                unit,
                run,
                role,
                command,
            } => {
                writeln!(self.transcript, "{unit}: run {role:?} {}", command.program).unwrap();
                self.runs.push((unit.clone(), run));
                let limits_not_enforced = Vec::new();
                self.event(
                    &unit,
                    KeeperEvent::Started {
                        run,
                        pid: 1,
                        limits_not_enforced,
                    },
                );
            }
            Effect::Signal { unit, signal, whom } => {
                writeln!(self.transcript, "{unit}: {signal} to {whom:?}").unwrap();
                if self.obedient || signal.number() == 9 {
                    let runtime = self.engine.runtime(&unit).unwrap();
                    let running: Vec<RunId> = runtime
                        .main
                        .iter()
                        .chain(&runtime.control)
                        .map(|r| r.run)
                        .collect();
                    for run in running {
                        let exit = Exit::Signal(i32::from(signal.number()));
                        self.event(&unit, KeeperEvent::Exited { run, exit });
                    }
                    self.event(&unit, KeeperEvent::Empty);
                }
            }
            Effect::Close { unit } => writeln!(self.transcript, "{unit}: closed").unwrap(),
            Effect::JobFinished {
                unit,
                result,
                reason,
                ..
            } => {
                let reason = reason
                    .map(|reason| format!(": {reason}"))
                    .unwrap_or_default();
                writeln!(self.transcript, "{unit}: job {result:?}{reason}").unwrap();
            }
            Effect::Note { .. } => {}
        }
    }
}
