//! Every number that the agent tells about itself, under upstream's names where the meaning is the same.
//!
//! All labels are words of this program, so there are only so many lines.

mod runtime;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

pub(crate) use runtime::Counted;

/// The upper bounds of the histogram of durations, in milliseconds.
const BOUNDS: [u64; 10] = [5, 12, 31, 78, 195, 488, 1_220, 3_051, 7_629, 30_000];

/// How often something was done and how long it took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    pub(crate) count: u64,
    pub(crate) errors: u64,
    pub(crate) took: Duration,
    /// How many took no longer than each bound.
    within: [u64; BOUNDS.len()],
}

impl Tally {
    /// The bounds in seconds, with how many took no longer.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let seconds = |bound: u64| Duration::from_millis(bound).as_secs_f64();
        BOUNDS
            .into_iter()
            .zip(self.within)
            .map(move |(bound, count)| (seconds(bound), count))
    }
}

/// What was asked of the runtime, by the name of the operation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Operations(Arc<Mutex<BTreeMap<&'static str, Tally>>>);

impl Operations {
    fn count(&self, operation: &'static str, took: Duration, failed: bool) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tally = all.entry(operation).or_default();
        tally.count += 1;
        tally.errors += u64::from(failed);
        tally.took += took;
        for (within, bound) in tally.within.iter_mut().zip(BOUNDS) {
            *within += u64::from(took <= Duration::from_millis(bound));
        }
    }

    pub(crate) fn all(&self) -> BTreeMap<&'static str, Tally> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_longer_than_all_bounds_is_counted_all_the_same() {
        let operations = Operations::default();
        operations.count("exec", Duration::from_millis(100), false);
        operations.count("exec", Duration::from_mins(1), true);
        let tally = operations.all()["exec"];
        assert_eq!((tally.count, tally.errors), (2, 1));
        assert_eq!(tally.took, Duration::from_millis(60_100));
        let counts: Vec<u64> = tally.buckets().map(|(_, count)| count).collect();
        assert_eq!(counts, [0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
    }
}
