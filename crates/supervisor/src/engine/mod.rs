//! Decides. Requests, keeper events and the time go in; effects come out. No I/O, no clock, no
//! randomness: the same inputs give the same effects, and a scenario can be replayed from a list.

mod catalog;
mod event;
mod job;
mod jobs;
mod moment;
mod report;
mod restart;
mod runtime;
mod service;
mod service_exit;
mod state;
#[cfg(test)]
mod tests;
mod timer;
mod transaction;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

pub use catalog::{Catalog, Definition, Dependents};
pub use event::{Effect, KeeperEvent, Notification, Role, RunId, Verdict};
pub use job::{Job, JobId, JobKind};
pub use moment::{Moment, Now};
pub use runtime::{Running, Runtime};
pub use state::State;
pub use transaction::{Transaction, plan_transaction};

use crate::control::protocol::{JobVerb, RequestError};
use crate::unit::UnitName;

/// The deciding half of the supervisor.
#[derive(Debug)]
pub struct Engine {
    catalog: Catalog,
    memory: Memory,
    /// Where calendar timers live.
    zone: TimeZone,
    /// Tells this machine from others, for delays that are spread over a fleet.
    machine: String,
}

/// What the engine has to know of where it is.
#[derive(Debug, Clone)]
pub struct Place {
    pub zone: TimeZone,
    pub machine: String,
}

/// Everything that must survive a restart of the daemon.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Distinguishes the invocations of this boot from those of all others.
    nonce: String,
    /// When the supervisor first came up after boot.
    startup: Moment,
    units: BTreeMap<UnitName, Runtime>,
    jobs: BTreeMap<UnitName, Job>,
    last_number: u64,
}

impl Memory {
    /// The units that something is remembered of.
    pub fn units(&self) -> impl Iterator<Item = &UnitName> {
        self.units.keys()
    }
}

/// What became of one unit of an accepted request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    pub unit: UnitName,
    /// The job to wait for; `None` if there was nothing to do.
    pub job: Option<JobId>,
}

impl Engine {
    /// A fresh start after boot. `nonce` must differ from that of every other boot.
    pub fn new(catalog: Catalog, place: Place, nonce: String, now: Now) -> Self {
        let memory = Memory {
            nonce,
            startup: now.boot,
            ..Memory::default()
        };
        Self::restore(catalog, place, memory)
    }

    /// Goes on where an earlier incarnation was. Follow up with `Turn::resume`.
    pub fn restore(catalog: Catalog, place: Place, memory: Memory) -> Self {
        Self {
            catalog,
            memory,
            zone: place.zone,
            machine: place.machine,
        }
    }

    /// What to save so that `restore` can go on.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    pub fn runtime(&self, unit: &UnitName) -> Option<&Runtime> {
        self.memory.units.get(unit)
    }

    /// Units that are not simply down, whether or not a file of theirs is still there.
    pub fn known(&self) -> impl Iterator<Item = (&UnitName, &Runtime)> {
        self.memory.units.iter()
    }

    pub fn job(&self, unit: &UnitName) -> Option<&Job> {
        self.memory.jobs.get(unit)
    }

    /// Whether nothing runs and nothing is pending: the daemon may exit.
    pub fn is_quiet(&self) -> bool {
        self.memory.jobs.is_empty()
            && self
                .memory
                .units
                .values()
                .all(|runtime| !runtime.kept && runtime.deadline.is_none())
    }

    /// Opens a turn: the time is fixed, effects are collected.
    pub fn turn(&mut self, now: Now) -> Turn<'_> {
        Turn {
            engine: self,
            now,
            effects: Vec::new(),
        }
    }

    /// How long nothing will happen unless something comes from outside.
    pub fn idle_for(&self, now: Now) -> Option<Duration> {
        // The wall clock may be set at any time, so calendar timers are looked at again this often.
        const WALL_CLOCK_CHECK: Duration = Duration::from_mins(1);
        let runtimes = self.memory.units.values();
        runtimes
            .flat_map(|runtime| {
                let boot = [runtime.deadline, runtime.watchdog, runtime.timer.next_boot]
                    .into_iter()
                    .flatten()
                    .map(|moment| moment.since(now.boot));
                let wall = runtime.timer.next_wall.map(|next| {
                    let left = now.wall.duration_until(next);
                    Duration::try_from(left)
                        .unwrap_or(Duration::ZERO)
                        .min(WALL_CLOCK_CHECK)
                });
                boot.chain(wall)
            })
            .chain(
                self.memory
                    .jobs
                    .values()
                    .filter_map(|job| Some(job.deadline?.since(now.boot))),
            )
            .min()
    }
}

/// One step of the engine: everything done through it happens at the same time.
#[derive(Debug)]
pub struct Turn<'a> {
    engine: &'a mut Engine,
    now: Now,
    effects: Vec<Effect>,
}

impl Turn<'_> {
    /// Ends the turn. The daemon saves `Engine::memory`, then executes the effects in order.
    pub fn finish(mut self) -> Vec<Effect> {
        self.dispatch();
        self.effects
    }

    /// Takes a request apart into jobs. Refused requests change nothing.
    pub fn request(
        &mut self,
        verb: JobVerb,
        units: &[UnitName],
    ) -> Result<(Vec<Accepted>, Vec<String>), RequestError> {
        let mut anchors = Vec::new();
        for unit in units {
            if let Some(kind) = self.resolve(verb, unit)? {
                anchors.push((unit.clone(), kind));
            }
        }
        let transaction = {
            let engine = &*self.engine;
            plan_transaction(&engine.catalog, &|unit| engine.counts_as_up(unit), &anchors)?
        };
        let ids = self.enqueue(&transaction);
        let accepted = units
            .iter()
            .map(|unit| Accepted {
                unit: unit.clone(),
                job: ids.get(unit).copied(),
            })
            .collect();
        Ok((accepted, transaction.warnings))
    }

    /// Answers `Effect::Check`.
    pub fn checked(&mut self, unit: &UnitName, verdict: Verdict) {
        self.service_checked(unit, verdict);
    }

    /// Takes in what a keeper reports.
    pub fn keeper_event(&mut self, unit: &UnitName, event: KeeperEvent) {
        self.service_event(unit, event);
        self.dispatch();
    }

    /// Lets time pass: deadlines and timers that are due take effect.
    pub fn tick(&mut self) {
        self.expire_jobs();
        let units: Vec<UnitName> = self.engine.memory.units.keys().cloned().collect();
        for unit in units {
            self.service_deadline(&unit);
            self.timer_deadline(&unit);
        }
        self.dispatch();
    }

    /// Takes over freshly read unit files. What runs goes on running; the new settings count from the
    /// next start on, except for timers, which are set anew.
    pub fn replace_catalog(&mut self, catalog: Catalog) {
        self.engine.catalog = catalog;
        let timers: Vec<UnitName> = self.engine.memory.units.keys().cloned().collect();
        for unit in timers {
            self.timer_rearm(&unit);
        }
    }

    /// Forgets that a unit failed, and how often it was started.
    pub fn reset_failed(&mut self, unit: &UnitName) {
        let Some(runtime) = self.engine.memory.units.get_mut(unit) else {
            return;
        };
        runtime.starts.clear();
        runtime.restarts = 0;
        if runtime.state == State::Failed {
            runtime.result = crate::control::protocol::UnitResult::Success;
            self.set_state(unit, State::Dead);
        }
    }

    fn runtime(&mut self, unit: &UnitName) -> &mut Runtime {
        self.engine.memory.units.entry(unit.clone()).or_default()
    }

    fn state(&self, unit: &UnitName) -> State {
        self.engine
            .memory
            .units
            .get(unit)
            .map(|runtime| runtime.state)
            .unwrap_or_default()
    }

    fn number(&mut self) -> u64 {
        self.engine.memory.last_number += 1;
        self.engine.memory.last_number
    }

    fn note(&mut self, unit: &UnitName, message: impl Into<String>) {
        self.effects.push(Effect::Note {
            unit: unit.clone(),
            message: message.into(),
        });
    }
}

impl Engine {
    /// Whether a stop or restart of what `unit` needs has to reach it.
    fn counts_as_up(&self, unit: &UnitName) -> bool {
        self.memory
            .units
            .get(unit)
            .is_some_and(|runtime| !runtime.state.is_down())
            || self
                .memory
                .jobs
                .get(unit)
                .is_some_and(|job| job.kind != JobKind::Stop)
    }
}
