//! What the end of one of a service's processes leads to.

use transom_host::process::Exit;

use super::event::{Role, RunId};
use super::restart::judge_main_exit;
use super::runtime::{Ended, Running};
use super::service::commands;
use super::state::State;
use super::{Turn, Verdict};
use crate::control::protocol::UnitResult;
use crate::unit::{KillMode, ServiceType, UnitName};

impl Turn<'_> {
    pub(super) fn exited(&mut self, unit: &UnitName, run: RunId, exit: Exit) {
        let runtime = self.runtime(unit);
        if runtime.main.as_ref().is_some_and(|main| main.run == run) {
            if let Some(main) = runtime.main.take() {
                self.main_exited(unit, &main, exit);
            }
        } else if runtime
            .control
            .as_ref()
            .is_some_and(|control| control.run == run)
            && let Some(control) = runtime.control.take()
        {
            self.control_exited(unit, &control, exit);
        }
    }

    /// A program that could not be executed: for the main process that is the end of the start, for
    /// others the same as a failure of the command.
    pub(super) fn spawn_failed(&mut self, unit: &UnitName, run: RunId, error: &str) {
        self.note(unit, format!("could not run a command: {error}"));
        let runtime = self.runtime(unit);
        let is_main = runtime.main.as_ref().is_some_and(|main| main.run == run);
        let ignored = self.ignores_failure(unit, run);
        if !ignored {
            self.fail(unit, UnitResult::ExitCode, error);
        }
        if is_main && self.service(unit).service_type != ServiceType::Oneshot {
            let now = self.now.wall;
            let runtime = self.runtime(unit);
            runtime.main = None;
            runtime.main_ended = Some(Ended {
                exit: Exit::Code(EXEC),
                at: now,
            });
            return self.enter_signal(unit, State::StopSigterm);
        }
        self.exited(unit, run, Exit::Code(EXEC));
    }

    fn ignores_failure(&mut self, unit: &UnitName, run: RunId) -> bool {
        let service = self.service(unit);
        let runtime = self.runtime(unit);
        let found = runtime
            .main
            .iter()
            .chain(&runtime.control)
            .find(|running| running.run == run);
        found.is_some_and(|running| {
            commands(&service, running.role)
                .get(running.index)
                .is_some_and(|command| command.ignore_failure)
        })
    }

    fn main_exited(&mut self, unit: &UnitName, main: &Running, exit: Exit) {
        let service = self.service(unit);
        let at = self.now.wall;
        let command = service.exec_start.get(main.index);
        let ignored = command.is_some_and(|command| command.ignore_failure);
        let judged = if ignored {
            UnitResult::Success
        } else {
            judge_main_exit(&service, exit)
        };
        self.runtime(unit).main_ended = Some(Ended { exit, at });
        if judged == UnitResult::Success {
            self.note(unit, format!("main process ended: {}", describe(exit)));
        } else {
            self.note(unit, format!("main process failed: {}", describe(exit)));
            self.fail(
                unit,
                judged,
                &format!("the main process ended with {}", describe(exit)),
            );
        }
        match self.state(unit) {
            State::Start if service.is_oneshot() => {
                if judged != UnitResult::Success {
                    self.enter_signal(unit, State::StopSigterm);
                } else if main.index + 1 < service.exec_start.len() {
                    self.run(unit, Role::Main, main.index + 1);
                } else {
                    self.enter_start_post(unit);
                }
            }
            State::Start => {
                // Type=notify, and it ended before it said READY=1.
                self.fail(
                    unit,
                    UnitResult::Protocol,
                    "it ended before it reported to be ready",
                );
                self.enter_signal(unit, State::StopSigterm);
            }
            State::Running if judged != UnitResult::Success => {
                self.enter_signal(unit, State::StopSigterm);
            }
            State::Running if service.remain_after_exit => self.enter_running(unit),
            State::Running => self.enter_stop(unit),
            State::StopSigterm | State::StopSigkill if service.kill_mode == KillMode::Process => {
                self.enter_stop_post(unit);
            }
            // StartPost and Reload look at it when their command ends; a stop waits for `Empty`.
            _ => {}
        }
    }

    fn control_exited(&mut self, unit: &UnitName, control: &Running, exit: Exit) {
        let service = self.service(unit);
        let list = commands(&service, control.role);
        let ignored = list
            .get(control.index)
            .is_some_and(|command| command.ignore_failure);
        let ok = exit.is_success() || ignored;
        if control.role == Role::Condition {
            return self.condition_exited(unit, control, exit, ok);
        }
        if !ok {
            self.note(
                unit,
                format!("{} failed: {}", directive(control.role), describe(exit)),
            );
            let reason = format!("{} ended with {}", directive(control.role), describe(exit));
            match control.role {
                Role::Reload => self.runtime(unit).reload_failed = true,
                _ => self.fail(unit, failure_of(exit), &reason),
            }
        }
        let more = control.index + 1 < list.len();
        match control.role {
            Role::StartPre | Role::StartPost | Role::Reload if ok && more => {
                self.run(unit, control.role, control.index + 1);
            }
            // What stops a service goes on to the end, whatever fails on the way.
            Role::Stop | Role::StopPost if more => self.run(unit, control.role, control.index + 1),
            Role::StartPre if ok => self.enter_start(unit),
            Role::StartPre => self.enter_signal(unit, State::StopSigterm),
            Role::StartPost if ok => self.enter_running(unit),
            Role::StartPost => self.enter_stop(unit),
            Role::Reload => self.enter_running(unit),
            Role::Stop => self.enter_signal(unit, State::StopSigterm),
            Role::StopPost => self.enter_final(unit),
            Role::Condition | Role::Main => {}
        }
    }

    /// `ExecCondition=`: 0 goes on, 1 to 254 skips the unit, anything else fails it.
    fn condition_exited(&mut self, unit: &UnitName, control: &Running, exit: Exit, ok: bool) {
        let service = self.service(unit);
        if ok && control.index + 1 < service.exec_condition.len() {
            return self.run(unit, Role::Condition, control.index + 1);
        }
        if ok {
            return self.enter_start_pre(unit);
        }
        if let Exit::Code(1..=254) = exit {
            let condition = format!("ExecCondition= ({})", describe(exit));
            let runtime = self.runtime(unit);
            runtime.result = UnitResult::ExecCondition;
            runtime.condition_failed = Some(condition);
        } else {
            self.fail(unit, failure_of(exit), "ExecCondition= failed");
        }
        self.enter_signal(unit, State::StopSigterm);
    }

    /// Goes on after a restart of the daemon: `known` are the commands that the keeper was told.
    pub fn resume(&mut self, unit: &UnitName, known: &dyn Fn(RunId) -> bool) {
        let service = self.service(unit);
        let runtime = self.runtime(unit);
        let state = runtime.state;
        let told: Vec<Running> = runtime
            .main
            .iter()
            .chain(&runtime.control)
            .cloned()
            .collect();
        for running in told.iter().filter(|running| !known(running.run)) {
            if let Some(command) = commands(&service, running.role).get(running.index) {
                self.effects.push(super::Effect::Run {
                    unit: unit.clone(),
                    run: running.run,
                    role: running.role,
                    command: command.clone(),
                });
            }
        }
        match state {
            State::StopSigterm | State::StopSigkill => self.enter_signal(unit, state),
            State::FinalSigkill => self.enter_final(unit),
            _ => {}
        }
    }

    /// Goes on after a restart of the daemon with jobs that had begun but touched no process yet.
    pub fn resume_jobs(&mut self) {
        let waiting: Vec<UnitName> = self
            .engine
            .memory
            .jobs
            .iter()
            .filter(|(unit, job)| {
                let state = self.state(unit);
                job.running && (state.is_down() || state == State::AutoRestart)
            })
            .map(|(unit, _)| unit.clone())
            .collect();
        for unit in waiting {
            if let Some(job) = self.engine.memory.jobs.get_mut(&unit) {
                job.running = false;
            }
        }
    }
}

impl Verdict {
    /// Whether the unit may start.
    pub fn is_go(&self) -> bool {
        *self == Self::Go
    }
}

/// systemd's exit status for "could not be executed".
const EXEC: i32 = 203;

fn failure_of(exit: Exit) -> UnitResult {
    match exit {
        Exit::Signal(_) => UnitResult::Signal,
        Exit::Code(_) | Exit::Unknown => UnitResult::ExitCode,
    }
}

/// An exit in words.
pub(super) fn describe(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        Exit::Unknown => "an unknown exit code".into(),
    }
}

fn directive(role: Role) -> &'static str {
    match role {
        Role::Condition => "ExecCondition=",
        Role::StartPre => "ExecStartPre=",
        Role::Main => "ExecStart=",
        Role::StartPost => "ExecStartPost=",
        Role::Reload => "ExecReload=",
        Role::Stop => "ExecStop=",
        Role::StopPost => "ExecStopPost=",
    }
}
