//! How fast something works, from what it has done in all. Pure.

use jiff::Timestamp;

/// Over a longer time than this an average says nothing about now.
const LONGEST_LIFE: i64 = 30;
/// Over a shorter time than this the steps of the counters themselves are seen.
const SHORTEST: i128 = 200_000_000;

/// Processor time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) taken: Timestamp,
    /// In all, in nanoseconds of one core.
    pub(crate) done: u64,
    pub(crate) rate: Option<Rate>,
}

/// How many nanoseconds of one core go in a second, seen over a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) nanocores: u64,
    pub(crate) window_nanoseconds: u64,
}

impl Work {
    /// What was done up to `taken`, after `before`. Who began at `began` a short while ago is compared with nothing
    /// done then.
    pub(crate) fn counted(
        done: u64,
        taken: Timestamp,
        began: Option<Timestamp>,
        before: Option<&Self>,
    ) -> Self {
        // Counters that went back are those of another life, or lost one who ended.
        let before = before.filter(|before| before.done <= done);
        let is_young = |began: &Timestamp| taken.as_second() - began.as_second() < LONGEST_LIFE;
        let rate = match (before, began.filter(is_young)) {
            (Some(before), _) => rate(done - before.done, before.taken, taken).or(before.rate),
            (None, Some(began)) => rate(done, began, taken),
            (None, None) => None,
        };
        Self { taken, done, rate }
    }

    /// Of several together. The rate is known if that of all is.
    pub(crate) fn sum(all: impl Iterator<Item = Self>) -> Option<Self> {
        all.reduce(|one, other| Self {
            taken: one.taken.max(other.taken),
            done: one.done.saturating_add(other.done),
            rate: one.rate.zip(other.rate).map(|(one, other)| Rate {
                nanocores: one.nanocores.saturating_add(other.nanocores),
                window_nanoseconds: one.window_nanoseconds.max(other.window_nanoseconds),
            }),
        })
    }
}

fn rate(done: u64, from: Timestamp, to: Timestamp) -> Option<Rate> {
    let window = to.as_nanosecond() - from.as_nanosecond();
    if window < SHORTEST {
        return None;
    }
    let nanocores = i128::from(done) * 1_000_000_000 / window;
    Some(Rate {
        nanocores: u64::try_from(nanocores).ok()?,
        window_nanoseconds: u64::try_from(window).ok()?,
    })
}
