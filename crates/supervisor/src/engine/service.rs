//! A service's way through its states. Each `enter_…` function does what entering that state means;
//! `service_exit` decides where an exit leads.

use std::ops::Deref;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::event::{Effect, KeeperEvent, Notification, Role, RunId, Verdict};
use super::restart::{restart_delay, wants_restart};
use super::runtime::Running;
use super::state::State;
use super::{JobKind, Turn};
use crate::control::protocol::{JobResult, UnitResult, Whom};
use crate::unit::{ExecCommand, KillMode, Kind, Service, ServiceType, Signal, Unit, UnitName};

/// The service section of a unit, held so that the engine may change meanwhile.
pub(super) struct ServiceOf(Option<Arc<Unit>>);

impl Deref for ServiceOf {
    type Target = Service;

    fn deref(&self) -> &Service {
        static DEFAULTS: LazyLock<Service> = LazyLock::new(Service::default);
        self.0
            .as_ref()
            .and_then(|unit| unit.service())
            .unwrap_or(&DEFAULTS)
    }
}

impl Turn<'_> {
    /// The service section of a unit. A unit whose file has gone while it runs is stopped by the
    /// defaults.
    pub(super) fn service(&self, unit: &UnitName) -> ServiceOf {
        ServiceOf(self.engine.catalog.unit(unit).cloned())
    }

    pub(super) fn can_reload(&self, unit: &UnitName) -> bool {
        let service = self.service(unit);
        !service.exec_reload.is_empty() || service.service_type == ServiceType::NotifyReload
    }

    /// The conditions have been looked at: the start goes on, or ends here.
    pub(super) fn service_checked(&mut self, unit: &UnitName, verdict: Verdict) {
        if !self.state(unit).is_down() && self.state(unit) != State::AutoRestart {
            return;
        }
        self.runtime(unit).condition_failed = None;
        match verdict {
            Verdict::Skip(condition) => {
                self.note(unit, format!("not started: {condition} is not met"));
                let runtime = self.runtime(unit);
                runtime.condition_failed = Some(condition);
                runtime.result = UnitResult::Success;
                self.set_state(unit, State::Dead);
            }
            Verdict::Refuse(assertion) => {
                let reason = format!("{assertion} is not met");
                self.note(unit, format!("not started: {reason}"));
                let runtime = self.runtime(unit);
                runtime.result = UnitResult::Assert;
                runtime.reason = Some(reason);
                self.set_state(unit, State::Failed);
            }
            Verdict::Go => match self.engine.catalog.unit(unit).map(|unit| unit.kind.clone()) {
                Some(Kind::Timer(_)) => self.timer_start(unit),
                Some(Kind::Service(_)) => self.service_start(unit),
                Some(Kind::Target) | None => {}
            },
        }
    }

    fn service_start(&mut self, unit: &UnitName) {
        let number = self.number();
        let invocation = format!("{}{number:016x}", self.engine.memory.nonce);
        let automatic = self.state(unit) == State::AutoRestart;
        let service = self.service(unit);
        let runtime = self.runtime(unit);
        runtime.result = UnitResult::Success;
        runtime.reason = None;
        runtime.main = None;
        runtime.control = None;
        runtime.main_ended = None;
        runtime.status_text = None;
        runtime.invocation = Some(invocation.clone());
        runtime.kept = true;
        runtime.restarts = if automatic { runtime.restarts + 1 } else { 0 };
        self.effects.push(Effect::Open {
            unit: unit.clone(),
            invocation,
        });
        self.note(unit, format!("Starting {}...", self.title(unit)));
        if service.exec_condition.is_empty() {
            self.enter_start_pre(unit);
        } else {
            self.enter(unit, State::Condition, service.timeout_start);
            self.run(unit, Role::Condition, 0);
        }
    }

    pub(super) fn enter_start_pre(&mut self, unit: &UnitName) {
        let service = self.service(unit);
        if service.exec_start_pre.is_empty() {
            return self.enter_start(unit);
        }
        self.enter(unit, State::StartPre, service.timeout_start);
        self.run(unit, Role::StartPre, 0);
    }

    pub(super) fn enter_start(&mut self, unit: &UnitName) {
        let service = self.service(unit);
        if service.exec_start.is_empty() {
            // Allowed for a oneshot that only has ExecStop=.
            return self.enter_start_post(unit);
        }
        self.enter(unit, State::Start, service.timeout_start);
        self.run(unit, Role::Main, 0);
    }

    pub(super) fn enter_start_post(&mut self, unit: &UnitName) {
        let service = self.service(unit);
        if service.exec_start_post.is_empty() {
            return self.enter_running(unit);
        }
        self.enter(unit, State::StartPost, service.timeout_start);
        self.run(unit, Role::StartPost, 0);
    }

    /// Started, as far as `Exec…=` lines go: running, resting, or over already.
    pub(super) fn enter_running(&mut self, unit: &UnitName) {
        let service = self.service(unit);
        let first_time = self.state(unit) != State::Reload;
        let runtime = self.runtime(unit);
        if runtime.main.is_some() {
            let watchdog = service.watchdog_sec;
            self.enter(unit, State::Running, service.runtime_max);
            let now = self.now.boot;
            self.runtime(unit).watchdog = watchdog.map(|limit| now.after(limit));
            if first_time {
                self.note(unit, format!("Started {}.", self.title(unit)));
            }
            return;
        }
        if runtime.result != UnitResult::Success {
            return self.enter_signal(unit, State::StopSigterm);
        }
        if service.remain_after_exit {
            self.note(unit, format!("Finished {}.", self.title(unit)));
            return self.enter(unit, State::Exited, None);
        }
        if service.is_oneshot() {
            self.note(unit, format!("Finished {}.", self.title(unit)));
        }
        self.enter_stop(unit);
    }

    pub(super) fn service_reload(&mut self, unit: &UnitName) {
        if self.state(unit) != State::Running {
            let reason = format!("it is {}", self.state(unit).name());
            return self.finish_job(unit, JobResult::Failed, Some(reason));
        }
        let service = self.service(unit);
        self.runtime(unit).reload_failed = false;
        self.enter(unit, State::Reload, service.timeout_start);
        if service.exec_reload.is_empty() {
            self.signal(unit, service.reload_signal, Whom::Main);
        } else {
            self.run(unit, Role::Reload, 0);
        }
    }

    /// Someone wants the service down.
    pub(super) fn service_stop(&mut self, unit: &UnitName) {
        match self.state(unit) {
            State::Running | State::Exited | State::Reload | State::StartPost => {
                self.note(unit, format!("Stopping {}...", self.title(unit)));
                self.runtime(unit).control = None;
                self.enter_stop(unit);
            }
            State::Condition | State::StartPre | State::Start => {
                // It never came up, so ExecStop= has nothing to stop.
                self.note(unit, format!("Stopping {}...", self.title(unit)));
                self.enter_signal(unit, State::StopSigterm);
            }
            _ => {} // On its way down already.
        }
    }

    pub(super) fn enter_stop(&mut self, unit: &UnitName) {
        let service = self.service(unit);
        if service.exec_stop.is_empty() {
            return self.enter_signal(unit, State::StopSigterm);
        }
        self.enter(unit, State::Stop, service.timeout_stop);
        self.run(unit, Role::Stop, 0);
    }

    /// Asks (or, with `StopSigkill`, tells) what is left to end.
    pub(super) fn enter_signal(&mut self, unit: &UnitName, state: State) {
        let service = self.service(unit);
        if service.kill_mode == KillMode::None {
            return self.enter_stop_post(unit);
        }
        if state == State::StopSigkill && !service.send_sigkill {
            self.note(unit, "still running, and SendSIGKILL=no: left alone");
            return self.enter_stop_post(unit);
        }
        self.enter(unit, state, service.timeout_stop);
        let (signal, whom) = match (state, service.kill_mode) {
            (State::StopSigkill, KillMode::Process) => (service.final_kill_signal, Whom::Main),
            (State::StopSigkill, _) => (service.final_kill_signal, Whom::All),
            (_, KillMode::ControlGroup) => (service.kill_signal, Whom::All),
            (_, _) => (service.kill_signal, Whom::Main),
        };
        self.signal(unit, signal, whom);
        if service.send_sighup && state == State::StopSigterm {
            self.signal(unit, Signal::HUP, whom);
        }
    }

    pub(super) fn enter_stop_post(&mut self, unit: &UnitName) {
        let service = self.service(unit);
        self.runtime(unit).control = None;
        if service.exec_stop_post.is_empty() {
            return self.enter_final(unit);
        }
        self.enter(unit, State::StopPost, service.timeout_stop);
        self.run(unit, Role::StopPost, 0);
    }

    /// Nothing of the unit may be left, unless its file says so.
    pub(super) fn enter_final(&mut self, unit: &UnitName) {
        let service = self.service(unit);
        if matches!(service.kill_mode, KillMode::Process | KillMode::None) {
            return self.enter_dead(unit);
        }
        self.enter(unit, State::FinalSigkill, service.timeout_stop);
        self.signal(unit, Signal::KILL, Whom::All);
    }

    /// The end of this invocation, and perhaps the beginning of the next.
    pub(super) fn enter_dead(&mut self, unit: &UnitName) {
        let service = self.service(unit);
        let title = self.title(unit);
        let runtime = self.runtime(unit);
        runtime.deadline = None;
        runtime.watchdog = None;
        runtime.main = None;
        runtime.control = None;
        let result = runtime.result;
        let exit = runtime.main_ended.as_ref().map(|ended| ended.exit);
        let restart = !runtime.stop_wanted && wants_restart(&service, result, exit);
        let restarts = runtime.restarts;
        if std::mem::take(&mut runtime.kept) {
            self.effects.push(Effect::Close { unit: unit.clone() });
        }
        match result {
            UnitResult::ExecCondition => {
                self.note(unit, format!("{title} was skipped by ExecCondition=."));
            }
            UnitResult::Success => self.note(unit, format!("Stopped {title}.")),
            result => self.note(
                unit,
                format!("{title} failed with result '{}'.", result.name()),
            ),
        }
        if restart {
            let delay = restart_delay(&service, restarts);
            self.note(unit, format!("Scheduled restart number {}.", restarts + 1));
            let due = self.now.boot.after(delay);
            self.set_state(unit, State::AutoRestart);
            self.runtime(unit).deadline = Some(due);
        } else if matches!(result, UnitResult::Success | UnitResult::ExecCondition) {
            self.set_state(unit, State::Dead);
        } else {
            self.set_state(unit, State::Failed);
        }
    }

    /// Time is up for whatever the service was doing.
    pub(super) fn service_deadline(&mut self, unit: &UnitName) {
        let now = self.now.boot;
        let Some(runtime) = self.engine.memory.units.get_mut(unit) else {
            return;
        };
        if runtime.watchdog.is_some_and(|due| due <= now) && runtime.state == State::Running {
            runtime.watchdog = None;
            self.note(unit, "no sign of life within WatchdogSec=");
            self.fail(
                unit,
                UnitResult::Watchdog,
                "the watchdog saw no sign of life",
            );
            return self.enter_signal(unit, State::StopSigterm);
        }
        if runtime.deadline.is_none_or(|due| due > now) {
            return;
        }
        runtime.deadline = None;
        match runtime.state {
            State::AutoRestart => self.enqueue_ourselves(unit, JobKind::Start),
            State::Condition | State::StartPre | State::Start | State::StartPost => {
                self.note(unit, "start timed out");
                self.fail(
                    unit,
                    UnitResult::Timeout,
                    "it was not ready within TimeoutStartSec=",
                );
                self.enter_signal(unit, State::StopSigterm);
            }
            State::Running => {
                self.note(unit, "RuntimeMaxSec= is over");
                self.fail(
                    unit,
                    UnitResult::Timeout,
                    "it ran for longer than RuntimeMaxSec=",
                );
                self.enter_stop(unit);
            }
            State::Reload => {
                self.note(unit, "reload timed out");
                self.signal(unit, Signal::KILL, Whom::Control);
                self.runtime(unit).control = None;
                self.runtime(unit).reload_failed = true;
                self.enter_running(unit);
            }
            State::Stop => {
                self.note(unit, "ExecStop= timed out");
                self.fail(
                    unit,
                    UnitResult::Timeout,
                    "ExecStop= took longer than TimeoutStopSec=",
                );
                self.enter_signal(unit, State::StopSigterm);
            }
            State::StopSigterm => {
                self.note(unit, "did not stop in time, killing it");
                self.fail(
                    unit,
                    UnitResult::Timeout,
                    "it did not stop within TimeoutStopSec=",
                );
                self.enter_signal(unit, State::StopSigkill);
            }
            State::StopSigkill => {
                self.note(unit, "processes are left that cannot be killed");
                self.enter_stop_post(unit);
            }
            State::StopPost => {
                self.note(unit, "ExecStopPost= timed out");
                self.fail(
                    unit,
                    UnitResult::Timeout,
                    "ExecStopPost= took longer than TimeoutStopSec=",
                );
                self.enter_final(unit);
            }
            State::FinalSigkill => {
                self.note(unit, "processes are left that cannot be killed");
                self.enter_dead(unit);
            }
            _ => {}
        }
    }

    /// Takes in what the keeper says.
    pub(super) fn service_event(&mut self, unit: &UnitName, event: KeeperEvent) {
        if !self.runtime(unit).kept {
            return; // A late word of an invocation that is over.
        }
        match event {
            KeeperEvent::Started {
                run,
                pid,
                limits_not_enforced,
            } => {
                self.started(unit, run, pid, limits_not_enforced);
            }
            KeeperEvent::SpawnFailed { run, error } => self.spawn_failed(unit, run, &error),
            KeeperEvent::Exited { run, exit } => self.exited(unit, run, exit),
            KeeperEvent::Empty => self.empty(unit),
            KeeperEvent::Notify(notification) => self.notified(unit, &notification),
            KeeperEvent::Lost { reason } => self.lost(unit, &reason),
        }
    }

    fn started(&mut self, unit: &UnitName, run: RunId, pid: u32, limits: Vec<String>) {
        let runtime = self.runtime(unit);
        let is_main = runtime.main.as_ref().is_some_and(|main| main.run == run);
        let known = runtime
            .main
            .iter_mut()
            .chain(&mut runtime.control)
            .find(|r| r.run == run);
        let Some(known) = known else { return };
        known.pid = Some(pid);
        if !is_main {
            return;
        }
        runtime.limits_not_enforced = limits;
        let waits = matches!(
            self.service(unit).service_type,
            ServiceType::Oneshot | ServiceType::Notify | ServiceType::NotifyReload
        );
        if !waits && self.state(unit) == State::Start {
            self.enter_start_post(unit);
        }
    }

    fn notified(&mut self, unit: &UnitName, notification: &Notification) {
        let service = self.service(unit);
        let now = self.now.boot;
        let state = self.state(unit);
        let runtime = self.runtime(unit);
        if notification.status.is_some() {
            runtime.status_text.clone_from(&notification.status);
        }
        if notification.watchdog && state == State::Running {
            runtime.watchdog = service.watchdog_sec.map(|limit| now.after(limit));
        }
        if let (Some(more), Some(_)) = (notification.extend_timeout_micros, runtime.deadline) {
            runtime.deadline = Some(now.after(Duration::from_micros(more)));
        }
        let waits_for_ready = matches!(
            service.service_type,
            ServiceType::Notify | ServiceType::NotifyReload
        );
        if !notification.ready || notification.reloading || !waits_for_ready {
            return;
        }
        match state {
            State::Start => self.enter_start_post(unit),
            State::Reload if runtime.control.is_none() => self.enter_running(unit),
            _ => {}
        }
    }

    fn empty(&mut self, unit: &UnitName) {
        let by_process = self.service(unit).kill_mode == KillMode::Process;
        match self.state(unit) {
            State::StopSigterm | State::StopSigkill if !by_process => self.enter_stop_post(unit),
            State::StopSigterm | State::StopSigkill if self.runtime(unit).main.is_none() => {
                self.enter_stop_post(unit);
            }
            State::FinalSigkill => self.enter_dead(unit),
            _ => {}
        }
    }

    fn lost(&mut self, unit: &UnitName, reason: &str) {
        self.note(unit, format!("lost: {reason}"));
        self.runtime(unit).kept = false;
        self.fail(unit, UnitResult::Resources, reason);
        self.enter_dead(unit);
    }

    /// Notes the first thing that went wrong; later ones are consequences.
    pub(super) fn fail(&mut self, unit: &UnitName, result: UnitResult, reason: &str) {
        let runtime = self.runtime(unit);
        if runtime.result == UnitResult::Success {
            runtime.result = result;
            runtime.reason = Some(reason.to_owned());
        }
    }

    fn enter(&mut self, unit: &UnitName, state: State, limit: Option<Duration>) {
        let due = limit.map(|limit| self.now.boot.after(limit));
        let runtime = self.runtime(unit);
        runtime.deadline = due;
        runtime.watchdog = None;
        self.set_state(unit, state);
    }

    /// Gives command `index` of `role` to the keeper.
    pub(super) fn run(&mut self, unit: &UnitName, role: Role, index: usize) {
        let service = self.service(unit);
        let Some(command) = commands(&service, role).get(index).cloned() else {
            return;
        };
        let run = RunId(self.number());
        let running = Running {
            run,
            role,
            index,
            pid: None,
        };
        let runtime = self.runtime(unit);
        if role == Role::Main {
            runtime.main = Some(running);
        } else {
            runtime.control = Some(running);
        }
        self.effects.push(Effect::Run {
            unit: unit.clone(),
            run,
            role,
            command,
        });
    }

    pub(super) fn signal(&mut self, unit: &UnitName, signal: Signal, whom: Whom) {
        self.effects.push(Effect::Signal {
            unit: unit.clone(),
            signal,
            whom,
        });
    }

    pub(super) fn title(&self, unit: &UnitName) -> String {
        match self.engine.catalog.unit(unit) {
            Some(known) if known.description != unit.as_str() => {
                format!("{unit} - {}", known.description)
            }
            _ => unit.to_string(),
        }
    }
}

/// The commands of one role, in the order of the file.
pub(super) fn commands(service: &Service, role: Role) -> &[ExecCommand] {
    match role {
        Role::Condition => &service.exec_condition,
        Role::StartPre => &service.exec_start_pre,
        Role::Main => &service.exec_start,
        Role::StartPost => &service.exec_start_post,
        Role::Reload => &service.exec_reload,
        Role::Stop => &service.exec_stop,
        Role::StopPost => &service.exec_stop_post,
    }
}
