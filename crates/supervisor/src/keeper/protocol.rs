//! The conversation between the daemon and a keeper: one JSON document per line, both ways.
//!
//! Every event has a number and is repeated on each new connection until it is acknowledged, and a
//! command told twice runs once. So either side may die between any two lines.

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};
use transom_host::process::{GroupId, Identity, Member, Spawn, Stats};

use crate::control::protocol::Whom;
use crate::engine::{KeeperEvent, Role, RunId};
use crate::logs::Rotation;
use crate::unit::{Signal, UnitName};

/// The name of a keeper's endpoint in its folder.
pub const ENDPOINT: &str = "keeper";
/// What the daemon writes before it starts the keeper.
pub const SETUP_FILE: &str = "setup.json";
/// What the keeper writes whenever something happened that was not acknowledged.
pub const RECORD_FILE: &str = "record.json";
/// No line is longer. An order carries a whole environment.
pub const LONGEST_LINE: usize = 4 << 20;

/// What a keeper has to know from the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    pub unit: UnitName,
    pub invocation: String,
    /// All processes of the unit belong to this group.
    pub group: GroupId,
    pub log: Utf8PathBuf,
    pub rotation: Rotation,
    /// Listen for notifications.
    pub notify: bool,
}

/// What a keeper leaves on disk for a daemon that comes later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub keeper: Identity,
    /// Everything it was ever told to run.
    pub runs: Vec<RunId>,
    pub events: Vec<Numbered>,
}

/// An event with its place in the sequence, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Numbered {
    pub number: u64,
    pub event: KeeperEvent,
}

/// From the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case")]
pub enum Order {
    Run {
        run: RunId,
        role: Role,
        spawn: Box<Spawn>,
    },
    /// Signal the unit's processes, and report `Empty` as soon as none is left.
    Signal { signal: Signal, whom: Whom },
    /// Write a line of the supervisor's into the unit's log.
    Note { message: String },
    /// All events up to this number have been taken in.
    Acknowledge { number: u64 },
    /// Say what the unit's processes are and use.
    Survey,
    /// Nothing more to hold: end.
    Close,
}

/// From the keeper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "kebab-case")]
pub enum Report {
    /// The first line of each connection.
    Hello {
        keeper: Identity,
        runs: Vec<RunId>,
    },
    Event(Numbered),
    Survey {
        members: Vec<Member>,
        stats: Stats,
    },
}
