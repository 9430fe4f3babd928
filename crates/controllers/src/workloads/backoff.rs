//! Remembers what failed of late, so that it is not tried again at once and again and again.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_mins(15);
const REMEMBERED: usize = 16_384;

/// How often each thing failed in a row, and when it may be tried again.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    state: Mutex<HashMap<String, (u32, Instant)>>,
}

impl Backoff {
    fn state(&self) -> MutexGuard<'_, HashMap<String, (u32, Instant)>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long a thing must be left alone yet.
    pub(crate) fn left(&self, key: &str) -> Duration {
        let state = self.state();
        let until = state.get(key).map(|(_, until)| *until);
        until.map_or(Duration::ZERO, |until| {
            until.saturating_duration_since(Instant::now())
        })
    }

    /// Takes that a thing failed and is tried again now.
    pub(crate) fn failed(&self, key: &str) {
        let now = Instant::now();
        let mut state = self.state();
        if state.len() >= REMEMBERED {
            state.retain(|_, (_, until)| *until + LONGEST > now);
            if state.len() >= REMEMBERED {
                state.clear();
            }
        }
        let (count, until) = state.entry(key.to_owned()).or_insert((0, now));
        if *until + LONGEST < now {
            *count = 0;
        }
        *until = now + FIRST.saturating_mul(1 << (*count).min(16)).min(LONGEST);
        *count = count.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_fails_again_is_left_alone_for_longer_until_it_was_well_for_a_while() {
        let backoff = Backoff::default();
        assert_eq!(backoff.left("a"), Duration::ZERO);
        backoff.failed("a");
        assert_eq!(backoff.left("a"), Duration::from_secs(1));
        assert_eq!(backoff.left("b"), Duration::ZERO);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(backoff.left("a"), Duration::ZERO);
        backoff.failed("a");
        assert_eq!(backoff.left("a"), Duration::from_secs(2));
        for _ in 0..40 {
            backoff.failed("a");
        }
        assert_eq!(backoff.left("a"), LONGEST);
        tokio::time::advance(LONGEST * 3).await;
        backoff.failed("a");
        assert_eq!(backoff.left("a"), Duration::from_secs(1));
    }
}
