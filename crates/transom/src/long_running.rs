//! Commands that go on until they are told to stop: in a console, under systemd or our supervisor, or as a
//! Windows service. Invariant: the work itself does not know which of them it is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use transom_host::footprint;
use transom_host::process;
use transom_host::service::{Ran, ServiceMain, StopToken, run_as_service};
use transom_model::os::Os;

use crate::context::Context;
use crate::failure::Exit;

/// How long those who have just begun are busy with what they do only once.
const SETTLE: Duration = Duration::from_secs(2);

/// Runs `work` under the name of a service. `registered` says that a Windows service manager started this
/// process.
pub(crate) fn run(
    cx: &Context,
    name: &str,
    registered: bool,
    work: impl FnOnce(&Stop) -> anyhow::Result<()> + Send + 'static,
) -> anyhow::Result<Exit> {
    // The service manager may call us on a thread of its own, and wants a number.
    let failure: Arc<Mutex<Option<anyhow::Error>>> = Arc::default();
    let noted = Arc::clone(&failure);
    let console = Arc::new(AtomicBool::new(false));
    let in_console = Arc::clone(&console);
    let main: ServiceMain = Box::new(move |token: StopToken| {
        let stop = Stop {
            token,
            in_console: in_console.load(Ordering::Relaxed),
        };
        match work(&stop) {
            Ok(()) => 0,
            Err(error) => {
                *noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                1
            }
        }
    });
    // Windows lets a process wait for a service manager that never started it.
    let ran = if cx.host == Os::Windows && !registered {
        Ran::NotStartedByManager(main)
    } else {
        run_as_service(name, main)?
    };
    let code = match ran {
        Ran::Finished(code) => code,
        Ran::NotStartedByManager(main) => {
            console.store(true, Ordering::Relaxed);
            main(StopToken::new())
        }
    };
    let failed = failure
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    match failed {
        Some(error) => Err(error),
        None if code == 0 => Ok(Exit::Success),
        None => Ok(Exit::Failure),
    }
}

/// Lets this process have as many files open as the system allows: one for every connection, watch and log.
pub(crate) fn raise_open_files() {
    if let Err(error) = process::raise_open_files() {
        tracing::warn!(%error, "the limit of open files could not be raised");
    }
}

/// When to stop, and how to say that the work has begun.
pub(crate) struct Stop {
    token: StopToken,
    in_console: bool,
}

impl Stop {
    /// Says that the work is being done now. A little later, what only the start needed is given back.
    pub(crate) fn ready(&self) {
        self.token.ready();
        std::thread::spawn(|| {
            std::thread::sleep(SETTLE);
            if let Err(error) = footprint::give_back() {
                tracing::debug!(%error, "the memory of the start could not be given back");
            }
        });
    }

    /// The handle for whoever must say it later.
    pub(crate) fn token(&self) -> StopToken {
        self.token.clone()
    }

    /// Completes with the request to stop. In a console there is no service manager to pass an interrupt on.
    pub(crate) async fn requested(&self) {
        tokio::select! {
            () = self.token.stopped() => {}
            _ = tokio::signal::ctrl_c(), if self.in_console => {}
        }
    }
}
