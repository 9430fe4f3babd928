//! Whose time it is in a simulation.

use std::fmt;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::time::Instant;

/// Tells the time and wakes up at a later one.
pub trait Clock: Send + Sync + fmt::Debug {
    fn now(&self) -> Timestamp;
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// Tokio's time: real, or as fast as a test wants where it is paused.
#[derive(Debug)]
pub struct TokioClock {
    origin: Timestamp,
    started: Instant,
}

impl TokioClock {
    /// It is `origin` now.
    pub fn starting_at(origin: Timestamp) -> Self {
        Self {
            origin,
            started: Instant::now(),
        }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        // Beyond the end of time it is the end of time.
        self.origin
            .saturating_add(self.started.elapsed())
            .unwrap_or(Timestamp::MAX)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}
