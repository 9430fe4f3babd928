//! What a daemon knows of its service manager: when to stop, and how to say that it is ready. The
//! same for systemd, for Windows and for a console.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// The work of a daemon; returns its exit code.
pub type ServiceMain = Box<dyn FnOnce(StopToken) -> u32 + Send>;

/// What came of running as a service.
pub enum Ran {
    /// The work was done, with this exit code.
    Finished(u32),
    /// Nobody but a person started this process; the work is handed back untouched.
    NotStartedByManager(ServiceMain),
}

impl std::fmt::Debug for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Finished(code) => write!(f, "Finished({code})"),
            Self::NotStartedByManager(_) => f.write_str("NotStartedByManager"),
        }
    }
}

/// Why a daemon could not run as a service.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("could not connect the service `{name}` to the service manager")]
    Connect { name: String, source: io::Error },
    #[error("could not listen for signals")]
    Signals { source: io::Error },
    #[error("this process runs as a service already")]
    Twice,
    #[error("the service `{name}` ended without an exit code")]
    Lost { name: String },
}

/// Tells a daemon to stop, and tells the service manager that the daemon is ready.
#[derive(Clone, Default)]
pub struct StopToken {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    notify: Notify,
}

#[derive(Default)]
struct State {
    stopped: bool,
    ready: bool,
    on_ready: Option<Box<dyn FnOnce() + Send>>,
}

impl StopToken {
    /// A token that nobody else holds, for work outside a service.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs `on_ready` when the daemon says that it is ready.
    pub(super) fn with_ready(on_ready: impl FnOnce() + Send + 'static) -> Self {
        let token = Self::default();
        token.state().on_ready = Some(Box::new(on_ready));
        token
    }

    /// Says that the daemon does its work now; until then the service counts as starting.
    pub fn ready(&self) {
        let report = {
            let mut state = self.state();
            state.ready = true;
            state.on_ready.take()
        };
        if let Some(report) = report {
            report();
        }
    }

    pub fn is_ready(&self) -> bool {
        self.state().ready
    }

    /// Asks the daemon to stop.
    pub fn request_stop(&self) {
        self.state().stopped = true;
        self.shared.changed.notify_all();
        self.shared.notify.notify_waiters();
    }

    pub fn is_stopped(&self) -> bool {
        self.state().stopped
    }

    /// Waits for the request to stop, at most for `timeout`; tells whether it came.
    pub fn wait(&self, timeout: Duration) -> bool {
        let end = Instant::now() + timeout;
        let mut state = self.state();
        while !state.stopped {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self
                .shared
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        true
    }

    /// Completes with the request to stop.
    pub async fn stopped(&self) {
        // Listens before it looks, so that a request in between is not missed.
        let notified = self.shared.notify.notified();
        tokio::pin!(notified);
        notified.as_mut().enable();
        if !self.is_stopped() {
            notified.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Two flags are valid in any combination, so a panic elsewhere does not spoil them.
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn a_request_to_stop_wakes_who_waits() {
        let token = StopToken::new();
        assert!(!token.wait(Duration::ZERO));
        let other = token.clone();
        let waiter = std::thread::spawn(move || other.wait(Duration::from_secs(30)));
        token.request_stop();
        assert!(waiter.join().unwrap());
        assert!(token.is_stopped());
    }

    #[test]
    fn a_request_before_the_wait_is_not_missed() {
        let token = StopToken::new();
        token.request_stop();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(token.stopped());
        assert!(token.wait(Duration::ZERO));
    }

    #[test]
    fn readiness_is_reported_once() {
        let count = Arc::new(AtomicU32::new(0));
        let counted = count.clone();
        let token = StopToken::with_ready(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        });
        assert!(!token.is_ready());
        token.ready();
        token.clone().ready();
        assert!(token.is_ready());
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }
}
