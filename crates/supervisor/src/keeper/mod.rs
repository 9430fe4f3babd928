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
use tokio::time::{interval, sleep};
use transom_host::files::{self, Access as FileAccess, Files};
use transom_host::ipc::{self, Access, Endpoint, LineStream, Listener};
use transom_host::notify;
use transom_host::process::{
    self, Delivered, Exit, Processes, Scope, become_subreaper, reap_orphans,
};

use self::held::Held;
use self::protocol::{
    ENDPOINT, LONGEST_LINE, Numbered, Order, RECORD_FILE, Record, Report, SETUP_FILE, Setup,
};
use crate::control::protocol::Whom;
use crate::engine::{KeeperEvent, Notification, Role, RunId};
use crate::logs::{LogWriter, Stream};
use crate::unit::Signal;

/// How soon a keeper looks again whether the last process of its unit has gone, while someone waits.
/// Looking means to look at every process of the machine, so the pauses grow.
const FIRST_LOOK: Duration = Duration::from_millis(20);
const LAST_LOOK: Duration = Duration::from_secs(1);
/// How often it collects orphans of the service otherwise.
const HOUSEKEEPING: Duration = Duration::from_secs(5);
/// How many of the latest commands are remembered, so that one told again does not run again.
const REMEMBERED_RUNS: usize = 64;
/// How long killing all processes of a unit may take.
const KILL_LIMIT: Duration = Duration::from_secs(30);
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
        last: None,
        notified: Notification::default(),
        someone_waits_for_empty: false,
        next_look: FIRST_LOOK,
        unsaved: false,
        closing: false,
    };
    keeper.try_save().map_err(KeeperError::Record)?;
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
    /// The last one that ended: it still leads to the rest of its group.
    last: Option<Held>,
    /// What the service has said so far.
    notified: Notification,
    someone_waits_for_empty: bool,
    next_look: Duration,
    /// The record on disk is older than ours, because it could not be written.
    unsaved: bool,
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
        let mut housekeeping = interval(HOUSEKEEPING);
        while !self.closing {
            let reports = tokio::select! {
                accepted = listener.accept() => {
                    let Ok(stream) = accepted else { continue };
                    // The newest daemon is the right one: an older connection is a leftover.
                    daemon = Some(LineStream::new(stream, LONGEST_LINE));
                    self.greeting()
                }
                order = next_order(&mut daemon) => match order {
                    Some(order) => self.obey(order),
                    None => { daemon = None; Vec::new() }
                },
                Some(happening) = mailbox.recv() => self.take_in(happening),
                Some(message) = next_notification(&mut notifications) => {
                    self.notified(&message)
                }
                () = sleep(self.next_look), if self.someone_waits_for_empty => {
                    self.next_look = (self.next_look * 2).min(LAST_LOOK);
                    self.look_for_empty()
                }
                _ = housekeeping.tick() => { self.keep_house(); Vec::new() }
            };
            for report in reports {
                let Some(stream) = &mut daemon else { break };
                if let Err(error) = stream.send(&report).await {
                    // It may have said something before it went: reading goes on to the end.
                    tracing::debug!(error = %error, "the daemon does not listen any more");
                    break;
                }
            }
        }
        self.files
            .remove_tree(&self.folder)
            .map_err(KeeperError::Record)
    }

    fn greeting(&self) -> Vec<Report> {
        let hello = Report::Hello {
            keeper: self.record.keeper.clone(),
            runs: self.record.runs.clone(),
        };
        let events = self.record.events.iter().cloned().map(Report::Event);
        let notice = Report::Notice(self.notified.clone());
        std::iter::once(hello)
            .chain(events)
            .chain([notice])
            .collect()
    }

    fn keep_house(&mut self) {
        reap_orphans();
        if self.unsaved {
            self.save();
        }
    }

    fn obey(&mut self, order: Order) -> Vec<Report> {
        match order {
            Order::Run { run, .. } if self.record.runs.contains(&run) => Vec::new(),
            Order::Run { run, role, spawn } => {
                self.record.runs.push(run);
                let surplus = self.record.runs.len().saturating_sub(REMEMBERED_RUNS);
                self.record.runs.drain(..surplus);
                let event = self.start(run, role, &spawn);
                self.tell(event)
            }
            Order::Signal {
                signal,
                whom,
                until_empty,
            } => {
                self.signal(signal, whom);
                self.someone_waits_for_empty |= until_empty;
                self.next_look = FIRST_LOOK;
                if until_empty {
                    self.look_for_empty()
                } else {
                    Vec::new()
                }
            }
            Order::Note { message } => {
                self.log.write(Stream::Supervisor, None, &message);
                Vec::new()
            }
            Order::Acknowledge { number } => {
                self.record
                    .events
                    .retain(|numbered| numbered.number > number);
                self.save();
                Vec::new()
            }
            Order::Survey => vec![self.survey()],
            Order::Close => {
                self.closing = true;
                Vec::new()
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
        match whom {
            Whom::All if signal == Signal::KILL => self.kill_all(),
            Whom::All => {
                // Any process of the group leads to all of them; each must get the signal once.
                let any = self.held.values().next_back().or(self.last.as_ref());
                let delivered = any.map(|held| held.signal(signal, Scope::Tree));
                if delivered == Some(Delivered::NotSupported) {
                    self.ask_to_end(signal, whom);
                }
            }
            Whom::Main | Whom::Control => {
                let mut unsupported = false;
                for held in self.held.values().filter(|held| held.is_meant_by(whom)) {
                    unsupported |= held.signal(signal, Scope::Main) == Delivered::NotSupported;
                }
                if unsupported {
                    self.ask_to_end(signal, whom);
                }
            }
        }
    }

    /// Where the system has no signals, a polite one closes the input, which is how a service on
    /// Windows learns that it should end. Where nobody is left to be asked, the rest is ended.
    fn ask_to_end(&mut self, signal: Signal, whom: Whom) {
        if !matches!(
            signal,
            Signal::TERM | Signal::INT | Signal::HUP | Signal::QUIT
        ) {
            return;
        }
        if self.held.is_empty() {
            return self.kill_all();
        }
        for held in self.held.values_mut().filter(|held| held.is_meant_by(whom)) {
            held.close_input();
        }
    }

    fn kill_all(&self) {
        // Blocks until all are gone, so it must not block us.
        let (processes, group) = (Arc::clone(&self.processes), self.setup.group.clone());
        tokio::task::spawn_blocking(move || {
            if let Err(error) = processes.kill_group(&group, KILL_LIMIT) {
                tracing::warn!(%group, error = %error, "processes could not be killed");
            }
        });
    }

    fn take_in(&mut self, happening: Happening) -> Vec<Report> {
        let Happening::Exited { run, exit } = happening;
        self.last = self.held.remove(&run).or(self.last.take());
        let mut reports = self.tell(KeeperEvent::Exited { run, exit });
        if self.someone_waits_for_empty {
            reports.extend(self.look_for_empty());
        }
        reports
    }

    fn notified(&mut self, message: &notify::Message) -> Vec<Report> {
        if !self.is_ours(message) {
            tracing::warn!(?message.sender, "notification of a stranger ignored");
            return Vec::new();
        }
        let notification = Notification::parse(&message.text);
        self.notified.absorb(notification.clone());
        vec![Report::Notice(notification)]
    }

    /// Only the service itself may speak for the service. A sender that has ended since cannot be
    /// looked at any more; it is believed if it had our own user's rights.
    fn is_ours(&self, message: &notify::Message) -> bool {
        match message.sender {
            notify::Sender::OurUser => true,
            notify::Sender::Process { pid, is_our_user } => {
                let ours = self.processes.leftovers(&self.setup.group);
                ours.iter().any(|identity| identity.pid == pid)
                    || (is_our_user && self.processes.identify(pid).is_none())
            }
        }
    }

    fn look_for_empty(&mut self) -> Vec<Report> {
        reap_orphans();
        let running = !self.held.is_empty();
        if running || !self.processes.leftovers(&self.setup.group).is_empty() {
            return Vec::new();
        }
        self.someone_waits_for_empty = false;
        self.tell(KeeperEvent::Empty)
    }

    fn survey(&self) -> Report {
        match self.held.values().next_back().or(self.last.as_ref()) {
            None => Report::Survey {
                members: Vec::new(),
                stats: process::Stats::default(),
            },
            Some(held) => Report::Survey {
                members: held.process.members(),
                stats: held.process.stats(),
            },
        }
    }

    /// Writes an event down, then says it.
    fn tell(&mut self, event: KeeperEvent) -> Vec<Report> {
        let numbered = Numbered {
            number: self.next_number,
            event,
        };
        self.next_number += 1;
        self.record.events.push(numbered.clone());
        self.save();
        vec![Report::Event(numbered)]
    }

    /// Brings the record on disk up to date. A disk that is full must not end a service that runs:
    /// what could not be written is kept, and tried again.
    fn save(&mut self) {
        let saved = self.try_save();
        if let Err(error) = &saved
            && !self.unsaved
        {
            tracing::error!(error = %chain(error), "could not write down what happened");
        }
        self.unsaved = saved.is_err();
    }

    fn try_save(&self) -> Result<(), files::FileError> {
        let bytes = serde_json::to_vec(&self.record).unwrap_or_default();
        let path = self.folder.join(RECORD_FILE);
        self.files.write_durable(&path, &bytes, FileAccess::Secret)
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
