//! The life of jobs: queued by a request, run when their turn in the order has come, finished when
//! the unit has come to rest.

use std::collections::BTreeMap;

use super::event::Effect;
use super::job::{Job, JobId, JobKind, later_goes_first};
use super::state::State;
use super::transaction::{Transaction, plan_transaction};
use super::{Turn, moment::Moment};
use crate::control::protocol::{JobResult, JobVerb, RequestError, UnitResult};
use crate::unit::{Kind, UnitName};

impl Turn<'_> {
    /// Which job a verb means for a unit in its present state; none if there is nothing to do.
    pub(super) fn resolve(
        &self,
        verb: JobVerb,
        unit: &UnitName,
    ) -> Result<Option<JobKind>, RequestError> {
        let up = self.engine.counts_as_up(unit);
        let known = self.engine.catalog.definition(unit).is_some();
        let not_possible = |verb: &str, reason: &str| {
            Err(RequestError::NotPossible {
                unit: unit.to_string(),
                verb: verb.into(),
                reason: reason.into(),
            })
        };
        if let Some(definition) = self.engine.catalog.unit(unit) {
            if definition.refuse_manual_start && matches!(verb, JobVerb::Start | JobVerb::Restart) {
                return not_possible("started", "its unit file has RefuseManualStart=yes");
            }
            if definition.refuse_manual_stop && matches!(verb, JobVerb::Stop | JobVerb::Restart) {
                return not_possible("stopped", "its unit file has RefuseManualStop=yes");
            }
        }
        Ok(match verb {
            JobVerb::Start => Some(JobKind::Start),
            JobVerb::Stop if !known && !up => {
                return Err(RequestError::NotFound {
                    unit: unit.to_string(),
                });
            }
            JobVerb::Stop => Some(JobKind::Stop),
            JobVerb::Restart => Some(JobKind::Restart),
            JobVerb::TryRestart => up.then_some(JobKind::Restart),
            JobVerb::Reload if !self.state(unit).is_up() && known => {
                return Err(RequestError::NotRunning {
                    unit: unit.to_string(),
                });
            }
            JobVerb::Reload if known && !self.can_reload(unit) => {
                return not_possible("reloaded", "its unit file has no ExecReload=");
            }
            JobVerb::Reload => Some(JobKind::Reload),
            JobVerb::ReloadOrRestart if !up => Some(JobKind::Start),
            JobVerb::ReloadOrRestart if self.can_reload(unit) => Some(JobKind::Reload),
            JobVerb::ReloadOrRestart => Some(JobKind::Restart),
        })
    }

    /// Puts the jobs of a transaction in place. Contradicting jobs are canceled, equal ones joined.
    pub(super) fn enqueue(&mut self, transaction: &Transaction) -> BTreeMap<UnitName, JobId> {
        let mut ids = BTreeMap::new();
        for (unit, kind) in &transaction.jobs {
            let id = JobId(self.number());
            ids.insert(unit.clone(), id);
            match self.engine.memory.jobs.remove(unit) {
                None => self.insert(unit, *kind, id),
                Some(mut present) => match present.kind.merged_with(*kind) {
                    Some(merged) => {
                        if merged != present.kind {
                            present.running = false;
                        }
                        present.kind = merged;
                        present.ids.push(id);
                        self.engine.memory.jobs.insert(unit.clone(), present);
                    }
                    None => {
                        self.report(unit, &present, JobResult::Canceled, None);
                        self.insert(unit, *kind, id);
                    }
                },
            }
        }
        ids
    }

    fn insert(&mut self, unit: &UnitName, kind: JobKind, id: JobId) {
        let timeout = self
            .engine
            .catalog
            .unit(unit)
            .and_then(|unit| unit.job_timeout);
        let deadline = timeout.map(|timeout| self.now.boot.after(timeout));
        let job = Job {
            kind,
            ids: vec![id],
            running: false,
            deadline,
        };
        self.engine.memory.jobs.insert(unit.clone(), job);
    }

    /// Gives up jobs that took longer than `JobTimeoutSec=`. The unit goes on as it is.
    pub(super) fn expire_jobs(&mut self) {
        let now = self.now.boot;
        let expired: Vec<UnitName> = self
            .engine
            .memory
            .jobs
            .iter()
            .filter(|(_, job)| job.deadline.is_some_and(|due| due <= now))
            .map(|(unit, _)| unit.clone())
            .collect();
        for unit in expired {
            self.note(&unit, "its job took longer than JobTimeoutSec=");
            let reason = "the job took longer than JobTimeoutSec=".to_owned();
            self.finish_job(&unit, JobResult::Timeout, Some(reason));
        }
    }

    /// Starts units on the engine's own account: timers, `OnFailure=`, restarts, `BindsTo=`.
    pub(super) fn enqueue_ourselves(&mut self, unit: &UnitName, kind: JobKind) {
        let planned = {
            let engine = &*self.engine;
            plan_transaction(
                &engine.catalog,
                &|unit| engine.counts_as_up(unit),
                &[(unit.clone(), kind)],
            )
        };
        match planned {
            Ok(transaction) => {
                for warning in &transaction.warnings {
                    self.note(unit, warning.clone());
                }
                self.enqueue(&transaction);
            }
            Err(error) => self.note(unit, format!("cannot {} it: {error}", kind.name())),
        }
    }

    /// Runs every job whose turn has come, until none is left that could.
    pub(super) fn dispatch(&mut self) {
        while let Some((unit, kind)) = self.next_ready() {
            if let Some(job) = self.engine.memory.jobs.get_mut(&unit) {
                job.running = true;
            }
            self.begin(&unit, kind);
        }
    }

    fn next_ready(&self) -> Option<(UnitName, JobKind)> {
        let jobs = &self.engine.memory.jobs;
        jobs.iter()
            .filter(|(_, job)| !job.running)
            .find(|(unit, job)| self.can_begin(unit, job.kind))
            .map(|(unit, job)| (unit.clone(), job.kind))
    }

    fn can_begin(&self, unit: &UnitName, kind: JobKind) -> bool {
        // A unit on its way down is first let down.
        let going_down =
            self.state(unit).active_state() == crate::control::protocol::ActiveState::Deactivating;
        if going_down && kind == JobKind::Start {
            return false;
        }
        let catalog = &self.engine.catalog;
        self.engine.memory.jobs.iter().all(|(other, job)| {
            if other == unit {
                return true;
            }
            let waits_as_later = catalog.comes_before(other, unit) && !later_goes_first(kind);
            let waits_as_earlier = catalog.comes_before(unit, other) && later_goes_first(job.kind);
            !waits_as_later && !waits_as_earlier
        })
    }

    fn begin(&mut self, unit: &UnitName, kind: JobKind) {
        match kind {
            JobKind::Start => self.begin_start(unit),
            JobKind::Stop => self.begin_stop(unit),
            JobKind::Restart => {
                if self.state(unit).is_down() || self.state(unit) == State::AutoRestart {
                    self.turn_into_start(unit);
                } else {
                    self.stop_unit(unit);
                }
            }
            JobKind::Reload => self.service_reload(unit),
        }
    }

    fn begin_start(&mut self, unit: &UnitName) {
        let state = self.state(unit);
        if state.is_up() {
            return self.finish_job(unit, JobResult::Done, None);
        }
        if !state.is_down() && state != State::AutoRestart {
            return; // On its way up already.
        }
        if let Some(missing) = self.missing_requirement(unit) {
            let reason = format!("{missing} is not active");
            return self.finish_job(unit, JobResult::Dependency, Some(reason));
        }
        match self.engine.catalog.unit(unit).map(|unit| unit.kind.clone()) {
            None => self.finish_job(
                unit,
                JobResult::Failed,
                Some("its unit file is gone".into()),
            ),
            Some(Kind::Target) => {
                self.set_state(unit, State::Active);
            }
            Some(Kind::Timer(_) | Kind::Service(_)) => {
                if self.start_limit_hit(unit) {
                    let runtime = self.runtime(unit);
                    runtime.result = UnitResult::StartLimitHit;
                    runtime.reason = Some("started too often in a short time".into());
                    self.note(unit, "start request repeated too quickly");
                    self.set_state(unit, State::Failed);
                    return;
                }
                self.runtime(unit).stop_wanted = false;
                self.effects.push(Effect::Check { unit: unit.clone() });
            }
        }
    }

    /// The first unit that has to be active for `unit` to start, and is not: `Requisite=` always,
    /// `BindsTo=` if ordered after it.
    fn missing_requirement(&self, unit: &UnitName) -> Option<UnitName> {
        let definition = self.engine.catalog.unit(unit)?;
        let on = &definition.dependencies;
        let bound = on.binds_to.iter().filter(|other| on.after.contains(other));
        on.requisite
            .iter()
            .chain(bound)
            .find(|other| !self.state(other).is_up())
            .cloned()
    }

    /// Counts this start, and says whether it is one too many.
    fn start_limit_hit(&mut self, unit: &UnitName) -> bool {
        let now = self.now.boot;
        let Some(definition) = self.engine.catalog.unit(unit).cloned() else {
            return false;
        };
        let limit = &definition.start_limit;
        if limit.burst == 0 || limit.interval.is_zero() {
            return false;
        }
        let within = |moment: &Moment| now.since(*moment) < limit.interval;
        let starts = &mut self.runtime(unit).starts;
        starts.retain(within);
        if starts.len() >= limit.burst as usize {
            return true;
        }
        starts.push_back(now);
        false
    }

    fn begin_stop(&mut self, unit: &UnitName) {
        self.runtime(unit).stop_wanted = true;
        match self.state(unit) {
            state if state.is_down() => self.finish_job(unit, JobResult::Done, None),
            State::AutoRestart => self.set_state(unit, State::Dead),
            _ => self.stop_unit(unit),
        }
    }

    /// Takes a unit of any kind down; the job ends when it is down.
    fn stop_unit(&mut self, unit: &UnitName) {
        self.runtime(unit).stop_wanted = true;
        match self.state(unit) {
            State::Active | State::Waiting | State::TimerRunning | State::Elapsed => {
                self.runtime(unit).timer.next_boot = None;
                self.runtime(unit).timer.next_wall = None;
                self.set_state(unit, State::Dead);
            }
            _ => self.service_stop(unit),
        }
    }

    fn turn_into_start(&mut self, unit: &UnitName) {
        if let Some(job) = self.engine.memory.jobs.get_mut(unit) {
            job.kind = JobKind::Start;
            job.running = false;
        }
    }

    /// Changes a unit's state, and draws every consequence for jobs and other units.
    pub(super) fn set_state(&mut self, unit: &UnitName, state: State) {
        let now = self.now;
        let runtime = self.runtime(unit);
        let before = runtime.state;
        runtime.state = state;
        if before.active_state() != state.active_state() {
            runtime.changed = Some(now.wall);
            if state.is_up() && !before.is_up() {
                runtime.active_entered = Some(now.wall);
                runtime.active_entered_boot = Some(now.boot);
            }
            if state.is_down() || state == State::AutoRestart {
                runtime.inactive_entered = Some(now.wall);
                runtime.inactive_entered_boot = Some(now.boot);
            }
        }
        self.settle_job(unit, state);
        if state.is_down() || state == State::AutoRestart {
            self.stop_bound(unit);
        }
        if state.is_down() && !before.is_down() {
            self.stop_unneeded(unit);
            self.start_upheld(unit);
        }
        if state == State::Failed && before != State::Failed {
            self.start_all(unit, |on| &on.on_failure);
        }
        if state == State::Dead && !before.is_down() {
            self.start_all(unit, |on| &on.on_success);
        }
        if state.is_up() != before.is_up() || state.is_down() != before.is_down() {
            self.timers_of(unit);
        }
    }

    fn settle_job(&mut self, unit: &UnitName, state: State) {
        let Some(job) = self.engine.memory.jobs.get(unit).filter(|job| job.running) else {
            return;
        };
        let runtime = self
            .engine
            .memory
            .units
            .get(unit)
            .cloned()
            .unwrap_or_default();
        let ended_well = matches!(
            runtime.result,
            UnitResult::Success | UnitResult::ExecCondition
        );
        match job.kind {
            JobKind::Start if state.is_up() => self.finish_job(unit, JobResult::Done, None),
            JobKind::Start if state.is_down() || state == State::AutoRestart => {
                let result = match runtime.result {
                    _ if ended_well => JobResult::Done,
                    UnitResult::Dependency => JobResult::Dependency,
                    UnitResult::Timeout => JobResult::Timeout,
                    _ => JobResult::Failed,
                };
                self.finish_job(unit, result, runtime.reason);
            }
            JobKind::Stop if state.is_down() => self.finish_job(unit, JobResult::Done, None),
            JobKind::Restart if state.is_down() || state == State::AutoRestart => {
                self.turn_into_start(unit);
            }
            JobKind::Reload if state == State::Running => {
                let failed = runtime.reload_failed;
                let result = if failed {
                    JobResult::Failed
                } else {
                    JobResult::Done
                };
                self.finish_job(unit, result, failed.then(|| "ExecReload= failed".into()));
            }
            JobKind::Reload if !state.is_up() => {
                self.finish_job(unit, JobResult::Failed, Some("the unit went down".into()));
            }
            _ => {}
        }
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "whoever finishes a job has just made the reason"
    )]
    pub(super) fn finish_job(
        &mut self,
        unit: &UnitName,
        result: JobResult,
        reason: Option<String>,
    ) {
        let Some(job) = self.engine.memory.jobs.remove(unit) else {
            return;
        };
        self.report(unit, &job, result, reason.as_deref());
        let failed = matches!(
            result,
            JobResult::Failed | JobResult::Timeout | JobResult::Dependency
        );
        if failed && job.kind == JobKind::Start {
            self.fail_dependents(unit);
        }
        if job.kind == JobKind::Start && self.state(unit).is_down() {
            self.timers_of(unit);
        }
    }

    fn report(&mut self, unit: &UnitName, job: &Job, result: JobResult, reason: Option<&str>) {
        for id in &job.ids {
            self.effects.push(Effect::JobFinished {
                job: *id,
                unit: unit.clone(),
                result,
                reason: reason.map(ToOwned::to_owned),
            });
        }
    }

    /// Units that need `unit` and are about to start do not.
    fn fail_dependents(&mut self, unit: &UnitName) {
        let dependents = self.engine.catalog.dependents(unit);
        let waiting: Vec<UnitName> = dependents
            .required_by
            .iter()
            .chain(&dependents.requisite_of)
            .chain(&dependents.bound_by)
            .filter(|other| {
                let job = self.engine.memory.jobs.get(*other);
                job.is_some_and(|job| matches!(job.kind, JobKind::Start | JobKind::Restart))
                    && !self.state(other).is_up()
            })
            .cloned()
            .collect();
        for other in waiting {
            let reason = format!("{unit}, which it needs, did not start");
            self.note(&other, format!("not started: {reason}"));
            if self.state(&other).is_down() {
                self.finish_job(&other, JobResult::Dependency, Some(reason));
            }
        }
    }

    /// `BindsTo=`: whoever is bound to a unit that went down follows it.
    fn stop_bound(&mut self, unit: &UnitName) {
        let bound: Vec<UnitName> = self
            .engine
            .catalog
            .dependents(unit)
            .bound_by
            .iter()
            .filter(|other| {
                let pending = self.engine.memory.jobs.contains_key(*other);
                !self.state(other).is_down() && !pending
            })
            .cloned()
            .collect();
        for other in bound {
            self.note(
                &other,
                format!("stopping, because {unit}, to which it is bound, went down"),
            );
            self.enqueue_ourselves(&other, JobKind::Stop);
        }
    }

    /// `StopWhenUnneeded=`: what only `unit` needed goes down with it.
    fn stop_unneeded(&mut self, unit: &UnitName) {
        let Some(definition) = self.engine.catalog.unit(unit).cloned() else {
            return;
        };
        let on = &definition.dependencies;
        for other in on.requires.iter().chain(&on.binds_to).chain(&on.wants) {
            let optional = self
                .engine
                .catalog
                .unit(other)
                .is_some_and(|other| other.stop_when_unneeded);
            let from = self.engine.catalog.dependents(other);
            let mut needing = from
                .required_by
                .iter()
                .chain(&from.bound_by)
                .chain(&from.wanted_by);
            if optional
                && self.engine.counts_as_up(other)
                && !needing.any(|needing| self.engine.counts_as_up(needing))
            {
                self.note(other, "stopping, because nothing needs it any more");
                self.enqueue_ourselves(other, JobKind::Stop);
            }
        }
    }

    /// `Upholds=`: what an active unit upholds is started again. `StartLimit…=` bounds how often.
    fn start_upheld(&mut self, unit: &UnitName) {
        let limited = self.runtime(unit).result == UnitResult::StartLimitHit;
        let stopping = self.runtime(unit).stop_wanted;
        let upholders = &self.engine.catalog.dependents(unit).upheld_by;
        let upheld = upholders
            .iter()
            .any(|upholder| self.state(upholder).is_up());
        if upheld && !limited && !stopping {
            self.enqueue_ourselves(unit, JobKind::Start);
        }
    }

    fn start_all(
        &mut self,
        unit: &UnitName,
        which: fn(&crate::unit::Dependencies) -> &std::collections::BTreeSet<UnitName>,
    ) {
        let Some(definition) = self.engine.catalog.unit(unit).cloned() else {
            return;
        };
        for other in which(&definition.dependencies) {
            self.enqueue_ourselves(other, JobKind::Start);
        }
    }
}
