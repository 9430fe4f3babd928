//! Pauses that double with each failure and are forgotten after a long time without one.

use std::time::Duration;

use jiff::Timestamp;

pub(crate) const FIRST: Duration = Duration::from_secs(10);
pub(crate) const LONGEST: Duration = Duration::from_mins(5);

/// A pause as of the last time something was tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pause {
    pub(crate) length: Duration,
    updated: Timestamp,
}

impl Pause {
    /// The pause that follows `earlier`, for something that ended at `ended` and is tried again now.
    pub(crate) fn next(earlier: Option<Self>, ended: Timestamp, now: Timestamp) -> Self {
        let length = match earlier {
            Some(earlier) if !earlier.is_over(ended) => (earlier.length * 2).min(LONGEST),
            _ => FIRST,
        };
        Self {
            length,
            updated: now,
        }
    }

    /// When something that ended at `ended` may be tried again; `None` if it may at once.
    pub(crate) fn until(self, ended: Timestamp, now: Timestamp) -> Option<Timestamp> {
        if self.is_over(ended) {
            return None;
        }
        let until = ended.checked_add(self.length).ok()?;
        (until > now).then_some(until)
    }

    /// When the pause that began with its last update ends.
    pub(crate) fn until_after_update(self, now: Timestamp) -> Option<Timestamp> {
        self.until(self.updated, now)
    }

    /// What held that long before it failed again starts afresh.
    fn is_over(self, ended: Timestamp) -> bool {
        ended.duration_since(self.updated).unsigned_abs() > LONGEST * 2 && ended > self.updated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_anew_after_a_long_life() {
        let mut pause = Pause::next(None, at(0), at(0));
        let mut lengths = vec![pause.length.as_secs()];
        for _ in 0..6 {
            pause = Pause::next(Some(pause), at(1), at(0));
            lengths.push(pause.length.as_secs());
        }
        assert_eq!(lengths, [10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(pause.until(at(5), at(10)), Some(at(305)));
        assert_eq!(pause.until(at(5), at(305)), None);
        assert_eq!(pause.until(at(601), at(602)), None);
        assert_eq!(Pause::next(Some(pause), at(601), at(601)).length, FIRST);
    }
}
