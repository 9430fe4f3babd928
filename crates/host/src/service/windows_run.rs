//! Running as a Windows service: the dispatcher, the controls and the states that the manager wants
//! to hear. A service that takes long keeps saying so, or the manager would call it hung.

use std::ffi::OsString;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use windows_service::service::{
    ServiceControl, ServiceControlAccept, ServiceExitCode, ServiceState, ServiceStatus, ServiceType,
};
use windows_service::service_control_handler::{
    self, ServiceControlHandlerResult, ServiceStatusHandle,
};

use super::run::{Ran, RunError, ServiceMain, StopToken};

/// The manager's answer to a process that it did not start.
const NOT_STARTED_BY_MANAGER: i32 = 1063;
/// How often a pending state is confirmed, and how long the manager is asked to wait for that.
const CONFIRM: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(20);

/// What the dispatcher's callback, which gets no argument of ours, has to know.
struct Job {
    name: String,
    main: Option<ServiceMain>,
    outcome: Option<Result<u32, io::Error>>,
}

/// One per process: a process of ours is one service.
static JOB: Mutex<Option<Job>> = Mutex::new(None);

fn job() -> MutexGuard<'static, Option<Job>> {
    // Each change is one assignment, so a panic elsewhere does not spoil it.
    JOB.lock().unwrap_or_else(PoisonError::into_inner)
}

windows_service::define_windows_service!(entry, service_main);

/// Connects to the service control manager and runs `main` when it says so. Returns `main` untouched
/// if the manager did not start this process.
pub fn run_as_service(name: &str, main: ServiceMain) -> Result<Ran, RunError> {
    {
        let mut job = job();
        if job.is_some() {
            return Err(RunError::Twice);
        }
        *job = Some(Job {
            name: name.to_owned(),
            main: Some(main),
            outcome: None,
        });
    }
    let dispatched = windows_service::service_dispatcher::start(name, entry);
    let Some(job) = job().take() else {
        return Err(RunError::Twice);
    };
    if let Err(error) = dispatched {
        let source = match error {
            windows_service::Error::Winapi(error) => error,
            other => io::Error::other(other),
        };
        return match job.main {
            Some(main) if source.raw_os_error() == Some(NOT_STARTED_BY_MANAGER) => {
                Ok(Ran::NotStartedByManager(main))
            }
            _ => Err(RunError::Connect {
                name: name.to_owned(),
                source,
            }),
        };
    }
    match job.outcome {
        Some(Ok(code)) => Ok(Ran::Finished(code)),
        Some(Err(source)) => Err(RunError::Connect {
            name: name.to_owned(),
            source,
        }),
        None => Err(RunError::Lost {
            name: name.to_owned(),
        }),
    }
}

fn service_main(_: Vec<OsString>) {
    let taken = job()
        .as_mut()
        .and_then(|job| Some((job.name.clone(), job.main.take()?)));
    let Some((name, main)) = taken else {
        return;
    };
    let outcome = serve(&name, main);
    if let Some(job) = job().as_mut() {
        job.outcome = Some(outcome);
    }
}

/// Runs the work between the states `StartPending` and `Stopped`.
fn serve(name: &str, main: ServiceMain) -> Result<u32, io::Error> {
    let reporter = Arc::new(Reporter::default());
    let on_ready = reporter.clone();
    let token = StopToken::with_ready(move || on_ready.advance(ServiceState::Running));
    let (stop, on_control) = (token.clone(), reporter.clone());
    let handle = service_control_handler::register(name, move |control| match control {
        ServiceControl::Stop | ServiceControl::Shutdown | ServiceControl::Preshutdown => {
            on_control.advance(ServiceState::StopPending);
            stop.request_stop();
            ServiceControlHandlerResult::NoError
        }
        ServiceControl::Interrogate => ServiceControlHandlerResult::NoError,
        _ => ServiceControlHandlerResult::NotImplemented,
    })
    .map_err(io::Error::other)?;
    reporter.connect(handle);
    let (finished, on_finished) = channel::<()>();
    let confirming = reporter.clone();
    let confirmer = std::thread::Builder::new()
        .name("service-state".to_owned())
        .spawn(move || confirm(&confirming, &on_finished))?;
    let code = main(token);
    drop(finished);
    if confirmer.join().is_err() {
        tracing::error!("the thread that confirms the service's state panicked");
    }
    reporter.stopped(code);
    Ok(code)
}

/// Confirms pending states until the work is done.
fn confirm(reporter: &Reporter, finished: &Receiver<()>) {
    while let Err(RecvTimeoutError::Timeout) = finished.recv_timeout(CONFIRM) {
        reporter.confirm();
    }
}

/// Tells the manager the states of the service, each later than the one before.
#[derive(Default)]
struct Reporter {
    handle: OnceLock<ServiceStatusHandle>,
    now: Mutex<Now>,
}

struct Now {
    state: ServiceState,
    checkpoint: u32,
}

impl Default for Now {
    fn default() -> Self {
        Self {
            state: ServiceState::StartPending,
            checkpoint: 0,
        }
    }
}

impl Reporter {
    fn now(&self) -> MutexGuard<'_, Now> {
        // A state and a number are valid in any combination.
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connect(&self, handle: ServiceStatusHandle) {
        // Set once: `serve` runs once.
        let _ = self.handle.set(handle);
        self.report(&mut self.now(), 0);
    }

    fn advance(&self, state: ServiceState) {
        let mut now = self.now();
        // A service that is asked to stop while it starts must not call itself running afterwards.
        if state == ServiceState::Running && now.state != ServiceState::StartPending {
            return;
        }
        *now = Now {
            state,
            checkpoint: 0,
        };
        self.report(&mut now, 0);
    }

    fn confirm(&self) {
        let mut now = self.now();
        if now.state != ServiceState::Running {
            self.report(&mut now, 0);
        }
    }

    fn stopped(&self, code: u32) {
        let mut now = self.now();
        now.state = ServiceState::Stopped;
        self.report(&mut now, code);
    }

    fn report(&self, now: &mut Now, code: u32) {
        let pending = matches!(
            now.state,
            ServiceState::StartPending | ServiceState::StopPending
        );
        if pending {
            now.checkpoint += 1;
        }
        let status = ServiceStatus {
            service_type: ServiceType::OWN_PROCESS,
            current_state: now.state,
            controls_accepted: match now.state {
                ServiceState::Running => {
                    ServiceControlAccept::STOP | ServiceControlAccept::PRESHUTDOWN
                }
                _ => ServiceControlAccept::empty(),
            },
            exit_code: match code {
                0 => ServiceExitCode::Win32(0),
                code => ServiceExitCode::ServiceSpecific(code),
            },
            checkpoint: if pending { now.checkpoint } else { 0 },
            wait_hint: if pending { PATIENCE } else { Duration::ZERO },
            process_id: None,
        };
        if let Some(handle) = self.handle.get()
            && let Err(error) = handle.set_service_status(status)
        {
            tracing::warn!(%error, state = ?now.state, "could not tell the service manager");
        }
    }
}
