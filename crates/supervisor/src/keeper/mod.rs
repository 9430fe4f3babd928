//! The process that holds one service's processes while the daemon comes and goes.
//!
//! It decides nothing: it runs what it is told, writes down what happened, and says so to whichever
//! daemon asks. It is the parent of the service, so exit codes are never lost, and it owns the
//! service's output and input, so logs go on and a graceful stop stays possible.

mod held;
pub mod protocol;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};
use transom_host::files::{self, Access as FileAccess, Files};
use transom_host::ipc::{self, Access, Endpoint, LineStream, Listener};
use transom_host::notify;
use transom_host::process::{self, Exit, Processes, become_subreaper, reap_orphans};

use self::held::Held;
use self::protocol::{
    ENDPOINT, LONGEST_LINE, Numbered, Order, RECORD_FILE, Record, Report, SETUP_FILE, Setup,
};
use crate::control::protocol::Whom;
use crate::engine::{KeeperEvent, Role, RunId};
use crate::logs::{LogWriter, Stream};
use crate::unit::Signal;

/// How often a keeper looks whether the last process of its unit has gone, while someone waits.
const LOOK_FOR_EMPTY: Duration = Duration::from_millis(50);
/// How often it collects orphans of the service otherwise.
const HOUSEKEEPING: Duration = Duration::from_secs(5);
/// How long a keeper with nothing left to hold waits for a daemon before it ends by itself. All it
/// knows is on disk by then.
const ALONE: Duration = Duration::from_mins(1);
const LARGEST_SETUP: u64 = 1 << 20;

/// Why a keeper could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    #[error("could not read the setup of the keeper")]
    ReadSetup(#[source] files::FileError),
    #[error("the setup of the keeper in `{folder}` is damaged")]
    BadSetup {
        folder: Utf8PathBuf,
        source: serde_json::Error,
    },
    #[error("could not listen for the daemon")]
    Listen(#[source] ipc::BindError),
    #[error("could not listen for notifications")]
    Notify(#[source] notify::NotifyError),
    #[error("could not write down what happened")]
    Record(#[source] files::FileError),
}

/// Runs a keeper to its end. `folder` is its own, with a `setup.json` in it.
pub async fn run(folder: &Utf8Path) -> Result<(), KeeperError> {
    let files = files::Native;
    let bytes = files
        .read(&folder.join(SETUP_FILE), LARGEST_SETUP)
        .map_err(KeeperError::ReadSetup)?;
    let setup: Setup = serde_json::from_slice(&bytes).map_err(|source| KeeperError::BadSetup {
        folder: folder.to_owned(),
        source,
    })?;
    if let Err(error) = become_subreaper() {
        tracing::warn!(error = %error, "orphans of the service may escape");
    }
    let listener = Listener::bind(&Endpoint::in_directory(folder, ENDPOINT), Access::OwnerOnly)
        .map_err(KeeperError::Listen)?;
    let notifications = setup
        .notify
        .then(|| notify::Receiver::bind(folder))
        .transpose()
        .map_err(KeeperError::Notify)?;
    let (happened, mailbox) = mpsc::channel(64);
    let processes: Arc<dyn Processes> = Arc::new(process::Native);
    let keeper = Keeper {
        record: Record {
            keeper: processes.current(),
            runs: Vec::new(),
            events: Vec::new(),
        },
        folder: folder.to_owned(),
        files,
        processes,
        log: LogWriter::new(setup.log.clone(), setup.rotation),
        setup,
        held: BTreeMap::new(),
        next_number: 1,
        happened,
        someone_waits_for_empty: false,
        closing: false,
    };
    keeper.save()?;
    keeper.serve(listener, notifications, mailbox).await
}

/// Something that one of the keeper's threads saw.
#[derive(Debug, Clone, Copy)]
enum Happening {
    Exited { run: RunId, exit: Exit },
}

struct Keeper {
    folder: Utf8PathBuf,
    files: files::Native,
    processes: Arc<dyn Processes>,
    setup: Setup,
    log: LogWriter,
    held: BTreeMap<RunId, Held>,
    record: Record,
    next_number: u64,
    happened: mpsc::Sender<Happening>,
    someone_waits_for_empty: bool,
    closing: bool,
}

impl Keeper {
    async fn serve(
        mut self,
        mut listener: Listener,
        mut notifications: Option<notify::Receiver>,
        mut mailbox: mpsc::Receiver<Happening>,
    ) -> Result<(), KeeperError> {
        let mut daemon: Option<LineStream<ipc::Stream>> = None;
        let mut look = interval(LOOK_FOR_EMPTY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut housekeeping = interval(HOUSEKEEPING);
        let mut alone_since = Instant::now();
        while !self.closing {
            let reports = tokio::select! {
                accepted = listener.accept() => {
                    let Ok(stream) = accepted else { continue };
                    // The newest daemon is the right one: an older connection is a leftover.
                    daemon = Some(LineStream::new(stream, LONGEST_LINE));
                    self.greeting()
                }
                order = next_order(&mut daemon) => match order {
                    Some(order) => self.obey(order)?,
                    None => { daemon = None; Vec::new() }
                },
                Some(happening) = mailbox.recv() => self.take_in(happening)?,
                Some(message) = next_notification(&mut notifications) => {
                    self.notified(&message)?
                }
                _ = look.tick(), if self.someone_waits_for_empty => self.look_for_empty()?,
                _ = housekeeping.tick() => { reap_orphans(); Vec::new() }
            };
            for report in reports {
                let Some(stream) = &mut daemon else { break };
                if let Err(error) = stream.send(&report).await {
                    // It may have said something before it went: reading goes on to the end.
                    tracing::debug!(error = %error, "the daemon does not listen any more");
                    break;
                }
            }
            if daemon.is_some() || !self.is_idle() {
                alone_since = Instant::now();
            } else if alone_since.elapsed() > ALONE {
                return Ok(());
            }
        }
        self.files
            .remove_tree(&self.folder)
            .map_err(KeeperError::Record)
    }

    fn is_idle(&self) -> bool {
        self.held.values().all(|held| held.ended)
            && self.processes.leftovers(&self.setup.group).is_empty()
    }

    fn greeting(&self) -> Vec<Report> {
        let hello = Report::Hello {
            keeper: self.record.keeper.clone(),
            runs: self.record.runs.clone(),
        };
        let events = self.record.events.iter().cloned().map(Report::Event);
        std::iter::once(hello).chain(events).collect()
    }

    fn obey(&mut self, order: Order) -> Result<Vec<Report>, KeeperError> {
        match order {
            Order::Run { run, .. } if self.record.runs.contains(&run) => Ok(Vec::new()),
            Order::Run { run, role, spawn } => {
                self.record.runs.push(run);
                let event = self.start(run, role, &spawn);
                self.tell(event)
            }
            Order::Signal { signal, whom } => {
                self.signal(signal, whom);
                self.someone_waits_for_empty = true;
                self.look_for_empty()
            }
            Order::Note { message } => {
                self.log.write(Stream::Supervisor, None, &message);
                Ok(Vec::new())
            }
            Order::Acknowledge { number } => {
                self.record
                    .events
                    .retain(|numbered| numbered.number > number);
                self.save()?;
                Ok(Vec::new())
            }
            Order::Survey => Ok(vec![self.survey()]),
            Order::Close => {
                self.closing = true;
                Ok(Vec::new())
            }
        }
    }

    fn start(&mut self, run: RunId, role: Role, spawn: &process::Spawn) -> KeeperEvent {
        match Held::start(
            self.processes.as_ref(),
            run,
            role,
            spawn,
            &self.log,
            &self.happened,
        ) {
            Ok(held) => {
                let limits = held.process.limits();
                let remarks = limits
                    .not_enforced
                    .iter()
                    .map(ToString::to_string)
                    .chain(limits.clamped.iter().map(ToString::to_string))
                    .collect();
                let pid = held.process.identity().pid;
                self.held.insert(run, held);
                KeeperEvent::Started {
                    run,
                    pid,
                    limits_not_enforced: remarks,
                }
            }
            Err(error) => KeeperEvent::SpawnFailed {
                run,
                error: chain(&error),
            },
        }
    }

    fn signal(&mut self, signal: Signal, whom: Whom) {
        if signal == Signal::KILL && whom == Whom::All {
            // Blocks until all are gone, so it must not block us.
            let (processes, group) = (Arc::clone(&self.processes), self.setup.group.clone());
            tokio::task::spawn_blocking(move || {
                if let Err(error) = processes.kill_group(&group, Duration::from_secs(30)) {
                    tracing::warn!(%group, error = %error, "processes could not be killed");
                }
            });
            return;
        }
        for held in self.held.values_mut().filter(|held| held.is_meant_by(whom)) {
            held.signal(signal, whom);
        }
    }

    fn take_in(&mut self, happening: Happening) -> Result<Vec<Report>, KeeperError> {
        let Happening::Exited { run, exit } = happening;
        if let Some(held) = self.held.get_mut(&run) {
            held.ended = true;
        }
        let mut reports = self.tell(KeeperEvent::Exited { run, exit })?;
        if self.someone_waits_for_empty {
            reports.extend(self.look_for_empty()?);
        }
        Ok(reports)
    }

    fn notified(&mut self, message: &notify::Message) -> Result<Vec<Report>, KeeperError> {
        // Only the service itself may speak for the service.
        if let Some(pid) = message.pid {
            let ours = self.processes.leftovers(&self.setup.group);
            if !ours.iter().any(|identity| identity.pid == pid) {
                tracing::warn!(pid, "notification of a stranger ignored");
                return Ok(Vec::new());
            }
        }
        let notification = crate::engine::Notification::parse(&message.text);
        self.tell(KeeperEvent::Notify(notification))
    }

    fn look_for_empty(&mut self) -> Result<Vec<Report>, KeeperError> {
        reap_orphans();
        let running = self.held.values().any(|held| !held.ended);
        if running || !self.processes.leftovers(&self.setup.group).is_empty() {
            return Ok(Vec::new());
        }
        self.someone_waits_for_empty = false;
        self.tell(KeeperEvent::Empty)
    }

    fn survey(&self) -> Report {
        let Some(held) = self.held.values().rfind(|held| !held.ended) else {
            return Report::Survey {
                members: Vec::new(),
                stats: process::Stats::default(),
            };
        };
        Report::Survey {
            members: held.process.members(),
            stats: held.process.stats(),
        }
    }

    /// Writes an event down, then says it.
    fn tell(&mut self, event: KeeperEvent) -> Result<Vec<Report>, KeeperError> {
        let numbered = Numbered {
            number: self.next_number,
            event,
        };
        self.next_number += 1;
        self.record.events.push(numbered.clone());
        self.save()?;
        Ok(vec![Report::Event(numbered)])
    }

    fn save(&self) -> Result<(), KeeperError> {
        let bytes = serde_json::to_vec(&self.record).unwrap_or_default();
        let path = self.folder.join(RECORD_FILE);
        self.files
            .write_durable(&path, &bytes, FileAccess::Secret)
            .map_err(KeeperError::Record)
    }
}

/// The next order; `None` when the daemon has gone. Never ready while there is no daemon.
async fn next_order(daemon: &mut Option<LineStream<ipc::Stream>>) -> Option<Order> {
    match daemon {
        Some(stream) => stream.receive::<Order>().await.unwrap_or_else(|error| {
            tracing::warn!(error = %error, "the daemon is not understood");
            None
        }),
        None => std::future::pending().await,
    }
}

async fn next_notification(receiver: &mut Option<notify::Receiver>) -> Option<notify::Message> {
    match receiver {
        Some(receiver) => receiver.receive().await,
        None => std::future::pending().await,
    }
}

/// An error with all its causes, on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
