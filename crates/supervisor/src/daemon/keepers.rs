//! Keepers from the daemon's side: starting one, talking to it, noticing that it has gone.

use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use transom_host::files::{self, Access, FileError, Files};
use transom_host::ipc::{self, Endpoint, LineStream, Stream};
use transom_host::process::{GroupId, Lifetime, Output, Processes, Spawn};

use super::{Arrival, Daemon};
use crate::engine::{KeeperEvent, RunId};
use crate::keeper::protocol::{ENDPOINT, LONGEST_LINE, Numbered, Order, Report, SETUP_FILE, Setup};
use crate::unit::{Service, UnitName};

/// Orders that may wait for a keeper to read them. One that lets more pile up is not working.
const MOST_ORDERS: usize = 1024;
/// How long a fresh keeper may take to answer, also on a machine that is busy booting.
const START_LIMIT: Duration = Duration::from_secs(30);
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const FAREWELL_LIMIT: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(20);
/// How long killing what a dead keeper left may take.
pub(super) const KILL_LIMIT: Duration = Duration::from_secs(10);

/// Our end of the conversation with one keeper.
#[derive(Debug)]
pub(super) struct KeeperLink {
    pub invocation: String,
    orders: mpsc::Sender<Order>,
}

/// What the conversation brings.
#[derive(Debug)]
pub(super) enum FromKeeper {
    Connected { runs: Vec<RunId> },
    Said(Report),
    Gone { reason: String },
}

impl Daemon {
    pub(super) fn keeper_folder(&self, invocation: &str) -> Utf8PathBuf {
        self.config.run_folder().join("keepers").join(invocation)
    }

    /// Starts a keeper for a new invocation, and the conversation with it.
    pub(super) fn open_keeper(&mut self, unit: &UnitName, invocation: &str) -> Result<(), String> {
        let folder = self.keeper_folder(invocation);
        self.write_setup(unit, invocation, &folder)
            .map_err(|error| format!("its keeper could not be prepared: {}", chain(&error)))?;
        let mut spawn = Spawn::new(self.config.keeper_program.clone());
        spawn.args.clone_from(&self.config.keeper_args);
        spawn.args.push(folder.to_string());
        spawn.env.clone_from(&self.config.environment);
        spawn.lifetime = Lifetime::Detached;
        spawn.group = keeper_group_of(invocation);
        spawn.stderr = Output::Append(self.config.layout.logs.join("keepers.log"));
        let keeper = self
            .processes
            .spawn(&spawn)
            .map_err(|error| format!("its keeper could not be started: {}", chain(&error)))?;
        // Collects the exit status, so that a dead keeper is no zombie that looks alive.
        std::thread::spawn(move || keeper.wait(None));
        self.converse_with(unit, invocation);
        Ok(())
    }

    fn write_setup(
        &self,
        unit: &UnitName,
        invocation: &str,
        folder: &Utf8Path,
    ) -> Result<(), FileError> {
        let service = self
            .engine
            .catalog()
            .unit(unit)
            .and_then(|unit| unit.service());
        let setup = Setup {
            unit: unit.clone(),
            invocation: invocation.to_owned(),
            group: group_of(invocation),
            log: crate::logs::log_path(&self.config.log_folder(), unit),
            rotation: self.config.rotation,
            notify: service.is_some_and(Service::hears_notifications),
        };
        self.files.create_dir_all(folder)?;
        let bytes = serde_json::to_vec(&setup).unwrap_or_default();
        self.files
            .write_durable(&folder.join(SETUP_FILE), &bytes, Access::Secret)
    }

    /// Starts the conversation with a keeper that is there, or about to be.
    pub(super) fn converse_with(&mut self, unit: &UnitName, invocation: &str) {
        let (orders, queue) = mpsc::channel(MOST_ORDERS);
        let endpoint = Endpoint::in_directory(&self.keeper_folder(invocation), ENDPOINT);
        let talk = Conversation {
            unit: unit.clone(),
            invocation: invocation.to_owned(),
            inbox: self.inbox.clone(),
        };
        tokio::spawn(talk.run(endpoint, queue));
        let link = KeeperLink {
            invocation: invocation.to_owned(),
            orders,
        };
        self.keepers.insert(unit.clone(), link);
    }

    /// Gives an order to a unit's keeper. Never waits: a keeper that does not read its orders is lost.
    pub(super) fn order(&mut self, unit: &UnitName, order: Order) {
        let Some(link) = self.keepers.get(unit) else {
            return;
        };
        if let Err(mpsc::error::TrySendError::Full(order)) = link.orders.try_send(order) {
            let order = order.kind();
            tracing::error!(%unit, order, "the keeper does not read its orders");
            let message = FromKeeper::Gone {
                reason: "its keeper stopped listening".into(),
            };
            let invocation = link.invocation.clone();
            let arrival = Arrival::Keeper {
                unit: unit.clone(),
                invocation,
                message,
            };
            // The inbox is ours: it is full only if we are far behind, and then this can wait.
            let _ = self.inbox.try_send(arrival);
        }
    }

    /// Takes in what a keeper said. Words of an invocation that is over are dropped.
    pub(super) fn hear(&mut self, unit: &UnitName, invocation: &str, message: FromKeeper) {
        if self
            .keepers
            .get(unit)
            .is_none_or(|link| link.invocation != invocation)
        {
            return;
        }
        match message {
            FromKeeper::Connected { runs } => {
                self.act(|turn| turn.resume(unit, &|run| runs.contains(&run)));
            }
            FromKeeper::Said(Report::Event(Numbered { number, event })) => {
                self.act(|turn| turn.keeper_event(unit, event));
                // The event may have ended this invocation and begun the next, whose keeper counts
                // its own events: this number would take from it what no daemon has heard yet.
                let link = self.keepers.get(unit);
                if link.is_some_and(|link| link.invocation == invocation) {
                    self.order(unit, Order::Acknowledge { number });
                }
            }
            FromKeeper::Said(Report::Notice(notification)) => {
                self.act(|turn| turn.keeper_event(unit, KeeperEvent::Notify(notification)));
            }
            FromKeeper::Said(report) => {
                for waiting in self.surveys.remove(unit).unwrap_or_default() {
                    // A client that has gone does not need it.
                    let _ = waiting.send(report.clone());
                }
            }
            FromKeeper::Gone { reason } => {
                self.bury(unit, invocation, reason);
            }
        }
    }

    /// A keeper has gone without being told to: whatever it held is ended, then the engine is told.
    /// Ending may take seconds, so it does not happen on this task.
    pub(super) fn bury(&mut self, unit: &UnitName, invocation: &str, reason: String) {
        self.keepers.remove(unit);
        let (remains, inbox) = (self.remains(invocation), self.inbox.clone());
        let arrival = Arrival::Buried {
            unit: unit.clone(),
            invocation: invocation.to_owned(),
            reason,
        };
        tokio::task::spawn_blocking(move || {
            remains.end();
            // Fails only when the daemon is ending.
            let _ = inbox.blocking_send(arrival);
        });
    }

    /// Tells the engine of a keeper that was lost, unless the unit has moved on.
    pub(super) fn mourn(&mut self, unit: &UnitName, invocation: &str, reason: String) {
        let current = self
            .engine
            .runtime(unit)
            .and_then(|r| r.invocation.as_deref());
        if current != Some(invocation) {
            return;
        }
        self.act(|turn| turn.keeper_event(unit, KeeperEvent::Lost { reason }));
    }

    pub(super) fn remains(&self, invocation: &str) -> Remains {
        Remains {
            processes: Arc::clone(&self.processes),
            folder: self.keeper_folder(invocation),
            invocation: invocation.to_owned(),
        }
    }
}

/// What may be left of an invocation: its keeper, its processes, its folder.
pub(super) struct Remains {
    processes: Arc<dyn Processes>,
    folder: Utf8PathBuf,
    invocation: String,
}

impl Remains {
    /// Ends and removes all of it. The keeper goes first, or it would report the end of the others.
    pub(super) fn end(&self) {
        for group in [
            keeper_group_of(&self.invocation),
            group_of(&self.invocation),
        ] {
            if let Err(error) = self.processes.kill_group(&group, KILL_LIMIT) {
                tracing::warn!(%group, error = %error, "processes of a lost keeper are left");
            }
        }
        if let Err(error) = files::Native.remove_tree(&self.folder) {
            tracing::warn!(folder = %self.folder, error = %error, "the folder of a keeper is left");
        }
    }
}

/// The keeper itself belongs to this group.
fn keeper_group_of(invocation: &str) -> GroupId {
    format!("keeper-{invocation}")
        .parse()
        .unwrap_or_else(|_| GroupId::unique())
}

/// Every process of an invocation belongs to this group.
pub(super) fn group_of(invocation: &str) -> GroupId {
    // Invocations are made by us, of hexadecimal digits.
    invocation.parse().unwrap_or_else(|_| GroupId::unique())
}

struct Conversation {
    unit: UnitName,
    invocation: String,
    inbox: mpsc::Sender<Arrival>,
}

impl Conversation {
    async fn run(self, endpoint: Endpoint, mut orders: mpsc::Receiver<Order>) {
        let reason = match self.connect(&endpoint).await {
            Ok(mut stream) => self.talk(&mut stream, &mut orders).await,
            Err(error) => Some(format!("its keeper does not answer: {}", chain(&error))),
        };
        if let Some(reason) = reason {
            self.tell(FromKeeper::Gone { reason }).await;
        }
    }

    /// Connects, waiting for a keeper that is just starting.
    async fn connect(&self, endpoint: &Endpoint) -> Result<LineStream<Stream>, ipc::ConnectError> {
        let give_up = tokio::time::Instant::now() + START_LIMIT;
        loop {
            match ipc::connect(endpoint, CONNECT_LIMIT).await {
                Ok(stream) => return Ok(LineStream::new(stream, LONGEST_LINE)),
                Err(error) if tokio::time::Instant::now() >= give_up => return Err(error),
                Err(_) => sleep(RETRY).await,
            }
        }
    }

    /// Carries words both ways until one side ends; says why if it was not us.
    async fn talk(
        &self,
        stream: &mut LineStream<Stream>,
        orders: &mut mpsc::Receiver<Order>,
    ) -> Option<String> {
        loop {
            tokio::select! {
                report = stream.receive::<Report>() => match report {
                    Ok(Some(Report::Hello { runs, .. })) => {
                        self.tell(FromKeeper::Connected { runs }).await;
                    }
                    Ok(Some(report)) => self.tell(FromKeeper::Said(report)).await,
                    Ok(None) => return Some("its keeper ended unexpectedly".into()),
                    Err(error) => return Some(format!("its keeper hung up: {}", chain(&error))),
                },
                // All orders are given before the daemon lets go of the link.
                order = orders.recv() => match order {
                    Some(order) => {
                        if let Err(error) = stream.send(&order).await {
                            return Some(format!("its keeper hung up: {}", chain(&error)));
                        }
                    }
                    None => {
                        self.see_off(stream).await;
                        return None;
                    }
                },
            }
        }
    }

    /// Waits until the keeper has read its last order and hung up. Hanging up first could cost it the
    /// orders that it has not read yet.
    async fn see_off(&self, stream: &mut LineStream<Stream>) {
        let farewell = async { while let Ok(Some(_)) = stream.receive::<Report>().await {} };
        if timeout(FAREWELL_LIMIT, farewell).await.is_err() {
            tracing::warn!(unit = %self.unit, "the keeper did not end when it was told to");
        }
    }

    async fn tell(&self, message: FromKeeper) {
        let arrival = Arrival::Keeper {
            unit: self.unit.clone(),
            invocation: self.invocation.clone(),
            message,
        };
        // Fails only when the daemon is ending.
        let _ = self.inbox.send(arrival).await;
    }
}

/// An error with all its causes, on one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    crate::keeper::chain(error)
}
