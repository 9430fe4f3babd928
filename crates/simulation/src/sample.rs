//! How things develop, for the plot. Invariant: never more samples than a plot can show; a long simulation has them
//! farther apart.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::ledger::Ledger;
use crate::report::Sample;

/// The shortest time between two.
const STEP: Duration = Duration::from_millis(100);
const MOST: usize = 1200;

#[derive(Debug, Default)]
pub(crate) struct Samples {
    all: Mutex<Vec<Sample>>,
}

impl Samples {
    fn all(&self) -> MutexGuard<'_, Vec<Sample>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks again and again. Never ends by itself.
    pub(crate) async fn keep(&self, ledger: &Ledger, begun: Instant) {
        let mut step = STEP;
        loop {
            if self.add(take(ledger, begun)) {
                step *= 2;
            }
            tokio::time::sleep(step).await;
        }
    }

    /// Tells whether every other one was left out, since there were too many.
    fn add(&self, sample: Sample) -> bool {
        let mut all = self.all();
        all.push(sample);
        if all.len() < MOST {
            return false;
        }
        let mut place = 0_usize;
        all.retain(|_| {
            place += 1;
            place % 2 == 1
        });
        true
    }

    pub(crate) fn take(&self) -> Vec<Sample> {
        std::mem::take(&mut *self.all())
    }
}

/// How things are now.
pub(crate) fn take(ledger: &Ledger, begun: Instant) -> Sample {
    let counts = ledger.counts();
    Sample {
        seconds: begun.elapsed().as_secs_f64(),
        pods: counts.pods,
        bound: counts.bound,
        running: counts.running,
        memory_bytes: memory(),
    }
}

/// The memory of this process; zero where it cannot be told.
pub(crate) fn memory() -> u64 {
    match transom_host::footprint::resident() {
        Ok(bytes) => bytes,
        Err(error) => {
            tracing::debug!(%error, "the memory of this process is not known");
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_simulation_has_samples_from_begin_to_end_and_not_too_many() {
        let samples = Samples::default();
        let sample = |seconds: u32| Sample {
            seconds: f64::from(seconds),
            pods: 0,
            bound: 0,
            running: 0,
            memory_bytes: 0,
        };
        let halved = (0..5000)
            .filter(|second| samples.add(sample(*second)))
            .count();
        assert!(halved >= 3, "{halved}");
        let all = samples.take();
        assert!(all.len() <= MOST && all.len() > MOST / 4);
        assert!(all[0].seconds < 1.0 && all[all.len() - 1].seconds > 4998.0);
    }
}
