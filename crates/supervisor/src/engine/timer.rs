//! Timers: when the next one is due, and what happens then. Spans are measured on the boot clock,
//! calendar events on the wall clock, so that setting the clock does what people expect of each.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use jiff::Timestamp;

use super::Turn;
use super::event::Effect;
use super::job::JobKind;
use super::moment::Moment;
use super::state::State;
use crate::control::protocol::UnitResult;
use crate::unit::{Timer, UnitName};

impl Turn<'_> {
    pub(super) fn timer_start(&mut self, unit: &UnitName) {
        let last = self
            .engine
            .catalog
            .definition(unit)
            .and_then(|d| d.last_trigger);
        let runtime = self.runtime(unit);
        runtime.result = UnitResult::Success;
        runtime.timer.last_boot = None;
        runtime.timer.last = runtime.timer.last.max(last);
        self.note(unit, format!("Started {}.", self.title(unit)));
        self.set_state(unit, State::Waiting);
        self.timer_rearm(unit);
    }

    /// Works out anew when a timer fires next.
    pub(super) fn timer_rearm(&mut self, unit: &UnitName) {
        if !matches!(
            self.state(unit),
            State::Waiting | State::TimerRunning | State::Elapsed
        ) {
            return;
        }
        let Some(definition) = self.engine.catalog.unit(unit).cloned() else {
            return;
        };
        let (Some(timer), Some(triggered)) = (definition.timer(), definition.triggers()) else {
            return;
        };
        let delay = self.random_delay(unit, timer);
        let next_boot = self.next_on_boot_clock(unit, timer, &triggered);
        let next_wall = self.next_on_wall_clock(unit, timer);
        let now = self.now;
        let runtime = self.runtime(unit);
        runtime.timer.anchor = Some(now);
        runtime.timer.next_boot = next_boot.map(|moment| moment.after(delay));
        runtime.timer.next_wall = next_wall.map(|next| next.saturating_add(delay).unwrap_or(next));
        let armed = next_boot.is_some() || next_wall.is_some();
        let waits_for_unit = !timer.on_unit_active.is_empty() || !timer.on_unit_inactive.is_empty();
        if armed || waits_for_unit {
            self.set_state(unit, State::Waiting);
        } else if timer.remain_after_elapse {
            self.set_state(unit, State::Elapsed);
        } else {
            self.set_state(unit, State::Dead);
        }
    }

    fn next_on_boot_clock(
        &self,
        unit: &UnitName,
        timer: &Timer,
        triggered: &UnitName,
    ) -> Option<Moment> {
        let me = self.engine.memory.units.get(unit)?;
        let other = self.engine.memory.units.get(triggered);
        let bases = [
            (&timer.on_active, me.active_entered_boot),
            (&timer.on_boot, Some(Moment::default())),
            (&timer.on_startup, Some(self.engine.memory.startup)),
            (
                &timer.on_unit_active,
                other.and_then(|other| other.active_entered_boot),
            ),
            (
                &timer.on_unit_inactive,
                other.and_then(|other| other.inactive_entered_boot),
            ),
        ];
        let candidates = bases.into_iter().flat_map(|(spans, base)| {
            spans
                .iter()
                .filter_map(move |span| base.map(|base| base.after(*span)))
        });
        // What was due when the timer last fired has had its turn.
        candidates
            .filter(|due| me.timer.last_boot.is_none_or(|last| *due > last))
            .min()
    }

    fn next_on_wall_clock(&self, unit: &UnitName, timer: &Timer) -> Option<Timestamp> {
        let last = self.engine.memory.units.get(unit)?.timer.last;
        // A persistent timer makes up for what it missed while the machine was off.
        let from = last.filter(|_| timer.persistent).unwrap_or(self.now.wall);
        let zone = &self.engine.zone;
        timer
            .on_calendar
            .iter()
            .filter_map(|event| event.next_after(from, zone))
            .min()
    }

    /// `RandomizedDelaySec=`, spread by the names involved rather than by dice, so that a scenario can
    /// be replayed; differs between machines and, unless `FixedRandomDelay=`, from time to time.
    fn random_delay(&self, unit: &UnitName, timer: &Timer) -> Duration {
        let mut hasher = DefaultHasher::new();
        unit.hash(&mut hasher);
        if timer.fixed_random_delay {
            self.engine.machine.hash(&mut hasher);
        } else {
            self.engine.memory.nonce.hash(&mut hasher);
            self.engine.memory.last_number.hash(&mut hasher);
        }
        let fraction =
            f64::from(u32::try_from(hasher.finish() >> 32).unwrap_or(0)) / f64::from(u32::MAX);
        timer.randomized_delay.mul_f64(fraction)
    }

    /// Fires the timer if it is due.
    pub(super) fn timer_deadline(&mut self, unit: &UnitName) {
        let now = self.now;
        let Some(runtime) = self.engine.memory.units.get_mut(unit) else {
            return;
        };
        let timer = &mut runtime.timer;
        let due = timer.next_boot.is_some_and(|next| next <= now.boot)
            || timer.next_wall.is_some_and(|next| next <= now.wall);
        if !due {
            return;
        }
        timer.next_boot = None;
        timer.next_wall = None;
        timer.last = Some(now.wall);
        timer.last_boot = Some(now.boot);
        let Some(definition) = self.engine.catalog.unit(unit).cloned() else {
            return;
        };
        if definition.timer().is_some_and(|timer| timer.persistent) {
            self.effects.push(Effect::Stamp { unit: unit.clone() });
        }
        let Some(triggered) = definition.triggers() else {
            return;
        };
        self.note(unit, format!("Time to start {triggered}."));
        self.set_state(unit, State::TimerRunning);
        self.enqueue_ourselves(&triggered, JobKind::Start);
        if !self.engine.memory.jobs.contains_key(&triggered) {
            // It could not even be queued; the next time may be better.
            self.timer_rearm(unit);
        }
    }

    /// The state of `unit` changed: timers that start it, or measure from it, are set anew.
    pub(super) fn timers_of(&mut self, unit: &UnitName) {
        let timers: Vec<UnitName> = self
            .engine
            .catalog
            .dependents(unit)
            .triggered_by
            .iter()
            .cloned()
            .collect();
        let down = self.state(unit).is_down();
        for timer in timers {
            let rests = match self.state(&timer) {
                State::TimerRunning => down,
                State::Waiting | State::Elapsed => true,
                _ => false,
            };
            if rests {
                self.timer_rearm(&timer);
            }
        }
    }
}
