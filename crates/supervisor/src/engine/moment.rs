//! Time as the engine sees it. The engine reads no clock: whoever calls it says what time it is.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Milliseconds since the machine booted, sleep included. Unlike a process's own monotonic clock it
/// means the same to the daemon's next incarnation, so deadlines survive a restart of ours.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Moment(u64);

impl Moment {
    pub fn from_uptime(uptime: Duration) -> Self {
        Self(u64::try_from(uptime.as_millis()).unwrap_or(u64::MAX))
    }

    /// The moment `delay` later; the end of time if there is no such moment.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self(self.0.saturating_add(Self::from_uptime(delay).0))
    }

    /// How long it is from `earlier` to here; nothing if `earlier` is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

/// Both clocks, read together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Now {
    /// For everything that is measured.
    pub boot: Moment,
    /// For everything that people read, and for calendar timers.
    pub wall: Timestamp,
}
