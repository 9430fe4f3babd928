//! Executes what the engine decides, and survives being killed.
//!
//! Everything happens on one task, in this order: something arrives, the engine decides, its memory
//! goes to disk, then the effects are executed. A daemon that dies anywhere in between is followed by
//! one that reads the memory, meets the keepers again, and goes on.

mod clock;
mod conditions;
mod control;
mod effects;
mod keepers;
mod loading;
mod memory;
mod prepare;
mod requests;
mod resume;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use transom_host::files::{self, FileError, FileLock, Files};
use transom_host::ipc::{Access, BindError, Endpoint, Listener};
use transom_host::machine::{self, Machine};
use transom_host::process::{self, Processes};
use transom_model::layout::Layout;
use transom_model::os::Os;

use self::keepers::{FromKeeper, KeeperLink};
use self::requests::Waiter;
use crate::control::protocol::{Answer, Request};
use crate::engine::{Engine, JobId, Now, Turn};
use crate::keeper::protocol::Report;
use crate::logs::{LogWriter, Rotation};
use crate::unit::{SpecifierContext, UnitName};

/// How long to wait for an earlier daemon that is just ending.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// How long an orderly shutdown may take before what is left is left to the keepers.
const SHUTDOWN_LIMIT: Duration = Duration::from_mins(3);

/// How long clients may take to read their answers when the daemon ends.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// What the daemon has to be told.
#[derive(Debug, Clone)]
pub struct Config {
    pub os: Os,
    pub layout: Layout,
    /// The program that runs a keeper when given a folder after these arguments.
    pub keeper_program: Utf8PathBuf,
    pub keeper_args: Vec<String>,
    pub rotation: Rotation,
    /// Started when the machine has booted, if there is such a unit.
    pub default_target: UnitName,
    /// What services may find in their environment unless their unit file says otherwise, and what
    /// `PassEnvironment=` can pass on.
    pub environment: BTreeMap<String, String>,
    pub version: String,
}

impl Config {
    /// Where the daemon keeps what must not survive a reboot.
    pub fn run_folder(&self) -> Utf8PathBuf {
        run_folder(&self.layout)
    }

    fn log_folder(&self) -> Utf8PathBuf {
        log_folder(&self.layout)
    }

    /// Where services have their folders: on this machine's root, like everything else.
    fn places(&self) -> SpecifierContext {
        let place = |ours: &Utf8Path| match self.os {
            // On Linux our own folder is one among those of all services.
            Os::Linux => ours.parent().unwrap_or(ours).to_owned(),
            Os::Windows => ours.to_owned(),
        };
        let state = place(&self.layout.state);
        SpecifierContext {
            runtime_directory: place(&self.layout.run),
            cache_directory: state.with_file_name("cache"),
            state_directory: state,
            logs_directory: place(&self.layout.logs),
            configuration_directory: place(&self.layout.config),
            ..SpecifierContext::places(self.os)
        }
    }
}

/// Where the daemon of a node with this layout can be found.
pub fn run_folder(layout: &Layout) -> Utf8PathBuf {
    layout.run.join("supervisor")
}

/// Where the logs of units are.
pub fn log_folder(layout: &Layout) -> Utf8PathBuf {
    layout.logs.join("units")
}

/// Where clients of the daemon connect.
pub fn control_endpoint(layout: &Layout) -> Endpoint {
    Endpoint::in_directory(&run_folder(layout), "control")
}

/// Why the daemon could not start, or had to give up.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    #[error("could not prepare the supervisor's folders")]
    Folders(#[source] FileError),
    #[error("another supervisor is running for `{folder}`")]
    AlreadyRunning {
        folder: Utf8PathBuf,
        source: FileError,
    },
    #[error("could not listen for commands")]
    Listen(#[source] BindError),
    #[error("could not remove what the supervisor knew")]
    Forget(#[source] FileError),
    #[error("could not read the facts of this machine")]
    Machine(#[source] machine::MachineError),
}

/// Runs the supervisor until `stop` is ready, then stops all units in order and returns. Calls `ready`
/// when clients can connect and an earlier supervisor's services have been taken over.
pub async fn run(
    config: Config,
    ready: impl FnOnce(),
    stop: impl Future<Output = ()>,
) -> Result<(), DaemonError> {
    let (mut daemon, mut inbox) = Daemon::start(config)?;
    let endpoint = control_endpoint(&daemon.config.layout);
    let listener = Listener::bind(&endpoint, Access::OwnerOnly).map_err(DaemonError::Listen)?;
    let (open, mut conversations) = mpsc::channel(1);
    let door = tokio::spawn(control::serve(listener, daemon.inbox.clone(), open));
    daemon.resume_or_boot();
    tracing::info!(
        units = daemon.engine.catalog().names().count(),
        "supervisor is ready"
    );
    ready();
    let mut stop = std::pin::pin!(stop);
    let mut stopping = false;
    let mut last_call = None;
    while !(stopping && daemon.engine.is_quiet()) {
        let idle = daemon
            .engine
            .idle_for(daemon.now())
            .unwrap_or(Duration::from_hours(1));
        tokio::select! {
            () = &mut stop, if !stopping => {
                stopping = true;
                last_call = Some(tokio::time::Instant::now() + SHUTDOWN_LIMIT);
                daemon.begin_shutdown();
            }
            Some(arrival) = inbox.recv() => {
                let asked = daemon.take_in(arrival);
                if asked == Next::Shutdown && !stopping {
                    stopping = true;
                    last_call = Some(tokio::time::Instant::now() + SHUTDOWN_LIMIT);
                    daemon.begin_shutdown();
                }
            }
            () = tokio::time::sleep(idle) => daemon.act(|turn| { turn.tick(); }),
            () = until(last_call) => {
                tracing::warn!("not everything stopped in time; the keepers hold what is left");
                break;
            }
        }
    }
    if daemon.engine.is_quiet() {
        daemon.forget()?;
    }
    // Whoever waits for an answer gets it before we go.
    door.abort();
    drop(daemon);
    drop(inbox);
    if timeout(LAST_ANSWERS, conversations.recv()).await.is_err() {
        tracing::warn!("a client did not read its answer");
    }
    Ok(())
}

/// What is the same until all processes of this machine, or of this container, have gone.
fn boot_of(machine: &dyn Machine, processes: &dyn Processes) -> Result<String, DaemonError> {
    let boot = machine.boot_id().map_err(DaemonError::Machine)?;
    // A container is booted anew without a new boot of the machine; its first process tells.
    Ok(match processes.identify(1) {
        Some(first) => format!("{boot}/{}", first.started),
        None => boot,
    })
}

async fn until(when: Option<tokio::time::Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when).await,
        None => std::future::pending().await,
    }
}

/// Something that the main task has to deal with.
#[derive(Debug)]
enum Arrival {
    Request {
        request: Request,
        reply: oneshot::Sender<Answer>,
    },
    Keeper {
        unit: UnitName,
        invocation: String,
        message: FromKeeper,
    },
    /// What a lost keeper held has been ended.
    Buried {
        unit: UnitName,
        invocation: String,
        reason: String,
    },
}

/// Whether to go on.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    GoOn,
    Shutdown,
}

struct Daemon {
    config: Config,
    files: files::Native,
    processes: Arc<dyn Processes>,
    machine: machine::Native,
    engine: Engine,
    boot: String,
    saved: Vec<u8>,
    unsaved: bool,
    keepers: BTreeMap<UnitName, KeeperLink>,
    waiters: Vec<Waiter>,
    /// Which waiter each job belongs to is found by the job; results of jobs nobody waits for are
    /// dropped.
    surveys: HashMap<UnitName, Vec<oneshot::Sender<Report>>>,
    inbox: mpsc::Sender<Arrival>,
    /// Held for as long as we live.
    _lock: FileLock,
}

impl Daemon {
    fn start(config: Config) -> Result<(Self, mpsc::Receiver<Arrival>), DaemonError> {
        let files = files::Native;
        let folder = config.run_folder();
        files
            .create_dir_all(&folder.join("keepers"))
            .map_err(DaemonError::Folders)?;
        files
            .create_dir_all(&config.log_folder())
            .map_err(DaemonError::Folders)?;
        let lock = files
            .lock(&folder.join("lock"), LOCK_WAIT)
            .map_err(|source| DaemonError::AlreadyRunning {
                folder: folder.clone(),
                source,
            })?;
        let machine = machine::Native;
        let processes: Arc<dyn Processes> = Arc::new(process::Native);
        let boot = boot_of(&machine, processes.as_ref())?;
        if let Err(error) = process::become_subreaper() {
            tracing::warn!(error = %error, "orphans of services may escape");
        }
        let now = clock::now(&machine);
        let loader = loading::Loader::new(&config, &machine);
        let place = clock::place(&machine);
        let engine = match memory::read(&files, &folder, &boot) {
            Some(memory) => {
                let known: Vec<UnitName> = memory.units().cloned().collect();
                Engine::restore(loader.load_all(&known).unwrap_or_default(), place, memory)
            }
            None => {
                let nonce = uuid::Uuid::new_v4().simple().to_string()[..16].to_owned();
                Engine::new(loader.load_all(&[]).unwrap_or_default(), place, nonce, now)
            }
        };
        let (inbox, arrivals) = mpsc::channel(256);
        let daemon = Self {
            config,
            files,
            processes,
            machine,
            engine,
            boot,
            saved: Vec::new(),
            unsaved: false,
            keepers: BTreeMap::new(),
            waiters: Vec::new(),
            surveys: HashMap::new(),
            inbox,
            _lock: lock,
        };
        Ok((daemon, arrivals))
    }

    fn now(&self) -> Now {
        clock::now(&self.machine)
    }

    fn take_in(&mut self, arrival: Arrival) -> Next {
        match arrival {
            Arrival::Request { request, reply } => self.answer(request, reply),
            Arrival::Keeper {
                unit,
                invocation,
                message,
            } => {
                self.hear(&unit, &invocation, message);
                Next::GoOn
            }
            Arrival::Buried {
                unit,
                invocation,
                reason,
            } => {
                self.mourn(&unit, &invocation, reason);
                Next::GoOn
            }
        }
    }

    /// One step: decide, remember, do. In this order, whatever happens.
    fn act<T>(&mut self, decide: impl FnOnce(&mut Turn<'_>) -> T) -> T {
        let now = self.now();
        let mut turn = self.engine.turn(now);
        let decided = decide(&mut turn);
        let effects = turn.finish();
        self.save();
        self.execute(effects);
        decided
    }

    fn begin_shutdown(&mut self) {
        tracing::info!("stopping all units");
        self.act(|turn| {
            turn.shut_down();
        });
    }

    /// The log of a unit that has no keeper now; with a keeper, the keeper writes.
    fn own_log(&self, unit: &UnitName) -> LogWriter {
        let path = crate::logs::log_path(&self.config.log_folder(), unit);
        LogWriter::new(path, self.config.rotation)
    }

    fn job_finished(
        &mut self,
        job: JobId,
        unit: &UnitName,
        result: crate::control::protocol::JobResult,
        reason: Option<&str>,
    ) {
        tracing::debug!(%unit, ?result, reason, "job finished");
        for waiter in &mut self.waiters {
            waiter.finished(job, result, reason);
        }
        let (done, waiting) = std::mem::take(&mut self.waiters)
            .into_iter()
            .partition(Waiter::is_done);
        self.waiters = waiting;
        let done: Vec<Waiter> = done;
        done.into_iter().for_each(Waiter::reply);
    }
}
