//! What the engine remembers of one unit. It is the whole truth that survives a restart of the
//! daemon, together with what the unit's keeper reports.

use std::collections::VecDeque;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use transom_host::process::Exit;

use super::event::{Role, RunId};
use super::moment::{Moment, Now};
use super::state::State;
use crate::control::protocol::UnitResult;

/// A command that was given to the keeper and has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    pub run: RunId,
    pub role: Role,
    /// Which of the commands of that role.
    pub index: usize,
    /// Known once the keeper has started it.
    pub pid: Option<u32>,
}

/// How the main process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub exit: Exit,
    pub at: Timestamp,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Runtime {
    pub state: State,
    pub result: UnitResult,
    pub invocation: Option<String>,
    /// When the present active state was entered.
    pub changed: Option<Timestamp>,
    pub active_entered: Option<Timestamp>,
    pub inactive_entered: Option<Timestamp>,
    /// The same on the clock that timers measure with; and when the unit last began to come up, which
    /// for a oneshot is all there is.
    pub active_entered_boot: Option<Moment>,
    pub inactive_left_boot: Option<Moment>,
    pub inactive_entered_boot: Option<Moment>,
    pub main: Option<Running>,
    pub control: Option<Running>,
    pub main_ended: Option<Ended>,
    /// A keeper was asked for and has not been closed.
    pub kept: bool,
    /// What the present state waits for at most.
    pub deadline: Option<Moment>,
    pub watchdog: Option<Moment>,
    /// Someone stopped the unit, so `Restart=` does not apply.
    pub stop_wanted: bool,
    pub restarts: u32,
    /// Recent starts, for `StartLimit…=`; never longer than the burst.
    pub starts: VecDeque<Moment>,
    pub status_text: Option<String>,
    pub condition_failed: Option<String>,
    /// Why the last start failed, for people.
    pub reason: Option<String>,
    pub limits_not_enforced: Vec<String>,
    pub reload_failed: bool,
    pub timer: TimerRuntime,
}

impl Runtime {
    /// How the main process ended, if it has.
    pub fn main_exit(&self) -> Option<Exit> {
        self.main_ended.as_ref().map(|ended| ended.exit)
    }
}

/// What a timer remembers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TimerRuntime {
    pub next_boot: Option<Moment>,
    pub next_wall: Option<Timestamp>,
    pub last: Option<Timestamp>,
    pub last_boot: Option<Moment>,
    /// Both clocks when it was last set, to show a span as a time of day.
    pub anchor: Option<Now>,
}
