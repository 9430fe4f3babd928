//! The table of make-believe processes. All changes happen under one lock, and each wakes whoever
//! waits.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;

use super::super::{Exit, GroupId, Identity, Lifetime, Signal, Spawn};
use super::behaviour::{Behaviour, Reaction};

#[derive(Debug)]
pub(super) struct Row {
    pub(super) identity: Identity,
    pub(super) group: GroupId,
    pub(super) command: String,
    pub(super) is_main: bool,
    pub(super) lifetime: Lifetime,
    pub(super) on_terminate: Reaction,
    pub(super) exit: Option<Exit>,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) programs: BTreeMap<Utf8PathBuf, Behaviour>,
    pub(super) rows: Vec<Row>,
    pub(super) spawned: Vec<Spawn>,
    last_pid: u32,
    clock: u64,
}

impl Table {
    pub(super) fn add(&mut self, spec: &Spawn, behaviour: &Behaviour) -> Identity {
        let identity = self.next_identity();
        self.spawned.push(spec.clone());
        self.rows.push(Row {
            identity: identity.clone(),
            group: spec.group.clone(),
            command: [spec.program.as_str()]
                .into_iter()
                .chain(spec.args.iter().map(String::as_str))
                .collect::<Vec<_>>()
                .join(" "),
            is_main: true,
            lifetime: spec.lifetime,
            on_terminate: behaviour.on_terminate,
            exit: None,
        });
        for number in 1..=behaviour.children {
            let identity = self.next_identity();
            self.rows.push(Row {
                identity,
                group: spec.group.clone(),
                command: format!("{} child {number}", spec.program),
                is_main: false,
                lifetime: spec.lifetime,
                on_terminate: behaviour.on_terminate,
                exit: None,
            });
        }
        identity
    }

    fn next_identity(&mut self) -> Identity {
        self.last_pid += 1;
        self.clock += 1;
        Identity {
            pid: 1000 + self.last_pid,
            started: self.clock,
        }
    }

    /// Gives the number of an ended process to a stranger.
    pub(super) fn recycle(&mut self, pid: u32) -> Identity {
        self.clock += 1;
        let identity = Identity {
            pid,
            started: self.clock,
        };
        self.rows.push(Row {
            identity: identity.clone(),
            group: GroupId::unique(),
            command: "stranger".to_owned(),
            is_main: false,
            lifetime: Lifetime::Detached,
            on_terminate: Reaction::Die,
            exit: None,
        });
        identity
    }

    pub(super) fn row(&self, identity: &Identity) -> Option<&Row> {
        self.rows.iter().find(|row| row.identity == *identity)
    }

    pub(super) fn live<'a>(&'a self, group: &'a GroupId) -> impl Iterator<Item = &'a Row> {
        self.rows
            .iter()
            .filter(move |row| row.group == *group && row.exit.is_none())
    }

    /// Delivers `signal` to the live rows that `chosen` picks, and counts them.
    pub(super) fn signal(&mut self, signal: Signal, chosen: impl Fn(&Row) -> bool) -> usize {
        let signal = Signal::from_number(signal.number()).unwrap_or(signal);
        let mut reached = 0;
        for row in self.rows.iter_mut().filter(|row| row.exit.is_none()) {
            if !chosen(row) {
                continue;
            }
            reached += 1;
            row.exit = match (signal, row.on_terminate) {
                (Signal::Kill, _) | (Signal::Terminate, Reaction::Die) => {
                    Some(Exit::Signal(signal.number()))
                }
                (Signal::Terminate, Reaction::Exit(code)) => Some(Exit::Code(code)),
                _ => None,
            };
        }
        reached
    }
}

#[derive(Debug, Default)]
pub(super) struct Machine {
    table: Mutex<Table>,
    changed: Condvar,
}

impl Machine {
    pub(super) fn look(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Table) -> T) -> T {
        let result = change(&mut self.look());
        self.changed.notify_all();
        result
    }

    pub(super) fn end(&self, identity: &Identity, exit: Exit) {
        self.change(|table| {
            let row = table.rows.iter_mut().find(|row| row.identity == *identity);
            if let Some(row) = row {
                row.exit.get_or_insert(exit);
            }
        });
    }

    /// Waits until the process has ended, or `timeout` is over.
    pub(super) fn wait(&self, identity: &Identity, timeout: Option<Duration>) -> Option<Exit> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let mut table = self.look();
        loop {
            if let Some(exit) = table.row(identity).and_then(|row| row.exit) {
                return Some(exit);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            match left {
                Some(Duration::ZERO) => return None,
                Some(left) => {
                    let waited = self.changed.wait_timeout(table, left);
                    table = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                None => {
                    let waited = self.changed.wait(table);
                    table = waited.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}
