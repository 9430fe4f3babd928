//! What an agent that starts finds of the ones before: pods and containers on disk, keepers that still run.
//!
//! Invariant: a container whose keeper lives is adopted, one whose keeper is gone is ended and written down as
//! ended. None is left in between.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::sleep;
use transom_host::files::{FileError, Files, Kind, Native as NativeFiles, is_temporary};
use transom_host::process::{Native, Processes, reap_orphans};

use super::containers::Held;
use super::folder::{Folder, Life, Record, pods_folder, read_pod};
use super::keeper::protocol::Request;
use super::{Inner, blocking, file_error, link};
use crate::{ContainerId, Ended, PodId, RuntimeError};

/// How long a keeper that was starting when the last agent died may take to get on.
const START_LIMIT: Duration = Duration::from_mins(1);
const LOOK: Duration = Duration::from_millis(20);
/// Between two attempts to reach a keeper that lives and does not answer.
const RETRY: Duration = Duration::from_millis(500);

impl Inner {
    /// Reads everything, and takes over what runs.
    pub(super) async fn load(self: &Arc<Self>) -> Result<(), RuntimeError> {
        let inner = Arc::clone(self);
        let found = blocking(move || inner.read_all()).await?;
        for held in found {
            self.adopt(held).await?;
        }
        Ok(())
    }

    fn read_all(&self) -> Result<Vec<Arc<Held>>, RuntimeError> {
        let top = pods_folder(&self.config.folder);
        NativeFiles.create_dir_all(&top).map_err(file_error)?;
        NativeFiles.sweep_temporaries(&top).map_err(file_error)?;
        Native.sweep();
        let mut found = Vec::new();
        for pod in folders(&top)? {
            let folder = top.join(&pod);
            NativeFiles.sweep_temporaries(&folder).map_err(file_error)?;
            let Some(record) = read_pod(&folder)? else {
                // Its maker died before it was written down: nobody knows of it.
                NativeFiles.remove_tree(&folder).map_err(file_error)?;
                continue;
            };
            let logs = record.spec.log_directory.clone();
            let pod = PodId(pod);
            for name in folders(&folder)? {
                let folder = Folder(folder.join(&name));
                let Some(record) = folder.read_container()? else {
                    NativeFiles.remove_tree(&folder.0).map_err(file_error)?;
                    continue;
                };
                let id = ContainerId(name);
                found.push(Arc::new(Held::new(
                    id,
                    record,
                    folder,
                    &logs,
                    Life::Created,
                )));
            }
            self.state().pods.insert(pod, record);
        }
        Ok(found)
    }

    async fn adopt(self: &Arc<Self>, held: Arc<Held>) -> Result<(), RuntimeError> {
        let looked = Arc::clone(&held);
        let (record, is_kept) = blocking(move || {
            wait_until_settled(&looked.folder)?;
            look(&looked.folder)
        })
        .await?;
        let id = held.id.clone();
        self.state().containers.insert(id, Arc::clone(&held));
        match record {
            None => {}
            Some(Record {
                life: Life::Ended(ended),
                ..
            }) => {
                held.life.send_replace(Life::Ended(ended));
            }
            Some(record) if is_kept => {
                held.life.send_replace(record.life);
                self.watch(&held);
            }
            Some(record) => {
                held.life.send_replace(record.life);
                self.bury(&held).await?;
            }
        }
        Ok(())
    }

    /// Follows a container through its keeper until it has ended.
    pub(super) fn watch(self: &Arc<Self>, held: &Arc<Held>) {
        let (inner, held) = (Arc::clone(self), Arc::clone(held));
        tokio::spawn(async move {
            let closing = inner.closing.clone();
            tokio::select! {
                () = inner.follow(&held) => {}
                () = closing.cancelled() => {}
            }
        });
    }

    async fn follow(&self, held: &Arc<Held>) {
        while held.is_running() {
            if let Ok(mut stream) = link::open(&held.folder, &Request::Watch).await {
                while let Some(record) = link::watched(&mut stream).await {
                    self.note(held, record);
                }
            }
            if !held.is_running() {
                break;
            }
            if let Err(error) = self.look_again(held).await {
                tracing::warn!(container = %held.id, %error, "it is not known how it is");
            }
            if held.is_running() {
                sleep(RETRY).await;
            }
        }
        reap_orphans();
    }

    fn note(&self, held: &Held, record: Record) {
        let changed = held.life.send_if_modified(|life| {
            let changed = *life != record.life;
            *life = record.life;
            changed
        });
        if changed {
            self.tell(&held.record.pod, Some(&held.id));
        }
    }

    /// The keeper hung up: its record says how the container is, or it has gone and took everything with it.
    async fn look_again(&self, held: &Arc<Held>) -> Result<(), RuntimeError> {
        let folder = held.folder.clone();
        match blocking(move || look(&folder)).await? {
            (Some(record), _) if matches!(record.life, Life::Ended(_)) => {
                self.note(held, record);
                Ok(())
            }
            (_, true) => Ok(()),
            (_, false) => self.bury(held).await,
        }
    }

    /// Ends what a dead keeper left, and writes down that it is over.
    async fn bury(&self, held: &Arc<Held>) -> Result<(), RuntimeError> {
        self.kill_all(held).await?;
        let started = match *held.life.borrow() {
            Life::Running { started, .. } => Some(started),
            _ => None,
        };
        let ended = Ended {
            started,
            finished: Timestamp::now(),
            // What became of the program is what becomes of all whose keeper dies.
            exit_code: 137,
            reason: "Error".to_owned(),
            message: "the process that kept the container was lost, and the container with it"
                .to_owned(),
        };
        self.write_end(held, ended).await
    }
}

fn folders(of: &camino::Utf8Path) -> Result<Vec<String>, RuntimeError> {
    let names = match NativeFiles.names(of) {
        Ok(names) => names,
        Err(FileError::NotFound { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(file_error(error)),
    };
    let folders = names.into_iter().filter(|entry| entry.kind == Kind::Dir);
    let names = folders.map(|entry| entry.name);
    Ok(names.filter(|name| !is_temporary(name)).collect())
}

fn is_alive(folder: &Folder, record: &Record) -> bool {
    matches!(
        Native.adopt(&record.keeper, &folder.keeper_group()),
        Ok(Some(_))
    )
}

/// The record of a container, and whether its keeper lives. `None`: it was never started.
fn look(folder: &Folder) -> Result<(Option<Record>, bool), RuntimeError> {
    let record = folder.read_record()?;
    let is_kept = record.is_some_and(|record| is_alive(folder, &record));
    // Read after the look at the process: whatever it wrote, it wrote before it went.
    Ok((folder.read_record()?, is_kept))
}

/// Waits until the record of a container says more than that a keeper is at work, or no keeper is.
fn wait_until_settled(folder: &Folder) -> Result<(), RuntimeError> {
    let deadline = std::time::Instant::now() + START_LIMIT;
    loop {
        let at_work = match folder.read_record()? {
            None => folder.has_setup() && !Native.leftovers(&folder.keeper_group()).is_empty(),
            Some(record) => record.life == Life::Starting && is_alive(folder, &record),
        };
        if !at_work || std::time::Instant::now() >= deadline {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
}
