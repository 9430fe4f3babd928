//! Jobs: one pending change per unit, as in systemd. A second request for the same unit joins the
//! first, or takes its place.

use serde::{Deserialize, Serialize};

use super::moment::Moment;

/// Names one request for one unit, until its result is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(pub u64);

/// What a job does once its turn has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobKind {
    Start,
    Stop,
    /// A stop that turns into a start when the unit is down.
    Restart,
    Reload,
}

impl JobKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
            Self::Reload => "reload",
        }
    }

    /// The one job that does what both would do, if there is one.
    pub fn merged_with(self, other: Self) -> Option<Self> {
        use JobKind::{Reload, Restart, Start, Stop};
        match (self, other) {
            (Stop, Stop) => Some(Stop),
            (Stop, _) | (_, Stop) => None,
            (Restart, _) | (_, Restart) => Some(Restart),
            // A unit that is just being started reads its configuration anyway.
            (Start, _) | (_, Start) => Some(Start),
            (Reload, Reload) => Some(Reload),
        }
    }

    /// Whether the job begins by taking the unit down. Such jobs go before all that start.
    pub fn goes_down_first(self) -> bool {
        matches!(self, Self::Stop | Self::Restart)
    }
}

/// The pending change of one unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    pub kind: JobKind,
    /// Everyone who waits for it.
    pub ids: Vec<JobId>,
    /// Whether its turn has come.
    pub running: bool,
    /// `JobTimeoutSec=`: given up at this moment.
    pub deadline: Option<Moment>,
}

/// Whether the job of the earlier unit of an ordered pair has to wait for the later unit's job, rather
/// than the other way round: going down happens in reverse, and before anything comes up.
pub(super) fn later_goes_first(later: JobKind) -> bool {
    later.goes_down_first()
}

#[cfg(test)]
mod tests {
    use super::{JobKind, JobKind::*};

    const ALL: [JobKind; 4] = [Start, Stop, Restart, Reload];

    #[test]
    fn merging_does_not_depend_on_who_came_first() {
        for a in ALL {
            for b in ALL {
                assert_eq!(a.merged_with(b), b.merged_with(a), "{a:?} and {b:?}");
            }
        }
    }

    #[test]
    fn nothing_merges_with_a_stop_but_a_stop() {
        for other in [Start, Restart, Reload] {
            assert_eq!(Stop.merged_with(other), None);
        }
        assert_eq!(Stop.merged_with(Stop), Some(Stop));
    }
}
