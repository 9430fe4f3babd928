//! Keeps a controller running: one that ends or panics is started again, more slowly each time. Invariant: those of
//! a crew end with it.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures::{FutureExt as _, future::BoxFuture};
use kube::Client;
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A controller that ran this long was well.
const HEALTHY: Duration = Duration::from_mins(2);

/// Controllers that work side by side, each in a task of its own, so that one that is busy holds up no other.
pub(crate) struct Crew {
    client: Client,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Crew {
    pub(crate) fn new(client: Client, stop: CancellationToken) -> Self {
        Self {
            client,
            stop,
            tasks: JoinSet::new(),
        }
    }

    /// Starts a controller, and keeps it running until the stop that it is given.
    pub(crate) fn add(
        &mut self,
        name: &'static str,
        start: impl Fn(Client, CancellationToken) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) {
        let (client, stop) = (self.client.clone(), self.stop.clone());
        self.tasks.spawn(async move {
            keep_running(name, &stop, || start(client.clone(), stop.clone())).await;
        });
    }

    /// Returns when all of them have stopped.
    pub(crate) async fn rest(mut self) {
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a controller was given up");
            }
        }
    }
}

/// Runs what `start` gives, again and again, until `stop`.
pub(crate) async fn keep_running<'a>(
    name: &'static str,
    stop: &CancellationToken,
    start: impl Fn() -> BoxFuture<'a, ()>,
) {
    let mut pause = FIRST_PAUSE;
    while !stop.is_cancelled() {
        let begun = Instant::now();
        let panicked = AssertUnwindSafe(start()).catch_unwind().await.is_err();
        if stop.is_cancelled() {
            return;
        }
        if begun.elapsed() > HEALTHY {
            pause = FIRST_PAUSE;
        }
        tracing::error!(
            controller = name,
            panicked,
            ?pause,
            "a controller ended and is started again"
        );
        if stop
            .run_until_cancelled(tokio::time::sleep(pause))
            .await
            .is_none()
        {
            return;
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_controller_that_panics_is_started_again_later_each_time() {
        let stop = CancellationToken::new();
        let starts = Cell::new(0_u32);
        let begun = Instant::now();
        keep_running("tests", &stop, || {
            starts.set(starts.get() + 1);
            if starts.get() == 4 {
                stop.cancel();
            }
            // The future must be `Send`, the counter is not.
            async { panic!("on purpose") }.boxed()
        })
        .await;
        assert_eq!(starts.get(), 4);
        assert_eq!(begun.elapsed(), Duration::from_millis(500 + 1_000 + 2_000));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_ends_the_pause() {
        let stop = CancellationToken::new();
        let runs = keep_running("tests", &stop, || async {}.boxed());
        tokio::pin!(runs);
        assert!(futures::poll!(&mut runs).is_pending());
        stop.cancel();
        assert!(futures::poll!(&mut runs).is_ready());
    }
}
