//! Making, starting, stopping and removing containers.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;
use jiff::Timestamp;
use nix::sys::signal::Signal;
use tokio::time::timeout;

use super::client;
use super::executor::available_capabilities;
use super::launch::Launch;
use super::leftovers::{remove_file, remove_folder};
use super::pods::hostname;
use super::protocol::{Call, Reply, Start};
use super::records::{self, CONTAINER, ContainerRecord, ENDED};
use super::runtime::{ContainerEntry, OciRuntime, PodEntry};
use super::spec::{self, Accounts, Surroundings};
use crate::images::Contents;
use crate::{ContainerId, ContainerSpec, ContainerState, Ended, RuntimeError};

/// Killed processes end at once, unless their disk does not answer.
const LONGEST_END: Duration = Duration::from_mins(1);
/// What a start that failed looks like, as others say it.
const CANNOT_RUN: i32 = 128;

impl OciRuntime {
    pub(super) fn make_container(
        &self,
        entry: &PodEntry,
        wanted: &ContainerSpec,
    ) -> Result<ContainerId, RuntimeError> {
        let id = records::container_id(&entry.id, &wanted.name, wanted.attempt);
        if entry.live().containers.contains_key(&id) {
            return Ok(ContainerId(id));
        }
        let (used, contents) = self.images.use_image(&wanted.image, Timestamp::now())?;
        let folder = entry.folder.container(&id);
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .map_err(|error| RuntimeError::io(format!("clear {folder}"), error))?;
        }
        let made = self.prepare_container(entry, wanted, &contents, &id, &folder);
        if made.is_err()
            && let Err(error) = fs::remove_dir_all(&folder)
        {
            tracing::debug!(%folder, %error, "the folder of a container that was not made cannot be removed");
        }
        let record = made?;
        entry.update(|live| {
            live.containers.insert(
                id.clone(),
                ContainerEntry {
                    record,
                    state: ContainerState::Created,
                    _used: Some(used),
                },
            )
        });
        self.tell(&entry.id, Some(&id));
        Ok(ContainerId(id))
    }

    fn prepare_container(
        &self,
        entry: &PodEntry,
        wanted: &ContainerSpec,
        contents: &Contents,
        id: &str,
        folder: &Utf8Path,
    ) -> Result<ContainerRecord, RuntimeError> {
        let (pod, shim, first_process) = {
            let live = entry.live();
            (
                live.record.spec.clone(),
                live.shim,
                live.record.first_process,
            )
        };
        let shim =
            shim.ok_or_else(|| RuntimeError::Invalid(format!("the pod {} is stopped", entry.id)))?;
        for name in ["rootfs", "upper", "work"] {
            let path = folder.join(name);
            fs::create_dir_all(&path)
                .map_err(|error| RuntimeError::io(format!("make {path}"), error))?;
        }
        let files: Vec<(&'static str, String)> = [
            ("/etc/hosts", "hosts"),
            ("/etc/hostname", "hostname"),
            ("/etc/resolv.conf", "resolv.conf"),
        ]
        .map(|(path, name)| (path, entry.folder.shared(name).into_string()))
        .to_vec();
        let available = available_capabilities();
        let devices = if wanted.security.privileged {
            spec::host_devices()
        } else {
            Vec::new()
        };
        let around = Surroundings {
            pod: &pod,
            shim,
            first_process,
            available: &available,
            least_oom_score: own_oom_score(),
            unified: self.cgroups.is_unified(),
            files: &files,
            devices: &devices,
            hostname: hostname(&pod),
        };
        let group = format!("{}/{id}", self.cgroups.pod(&pod.cgroup_parent, &pod.uid));
        let user =
            Accounts::read(&contents.layers).find(&wanted.security, &contents.settings.user)?;
        let planned = spec::plan(wanted, &contents.settings, &user, &group, &around)?;
        for note in &planned.notes {
            tracing::info!(
                pod = pod.name,
                container = wanted.name,
                note,
                "not all of it can be had on this machine"
            );
        }
        if !self.stackable {
            self.images
                .flatten(contents.id.as_str(), &folder.join("rootfs"))?;
        }
        records::write(&folder.join("config.json"), &planned.configuration)?;
        Launch {
            capabilities: planned.capabilities,
            seccomp: if wanted.security.privileged {
                crate::Seccomp::Unconfined
            } else {
                wanted.security.seccomp.clone()
            },
            layers: if self.stackable {
                contents.layers.clone()
            } else {
                Vec::new()
            },
        }
        .write(folder)?;
        let log = pod.log_directory.join(&wanted.log_path);
        if let Some(parent) = log.parent() {
            fs::create_dir_all(parent)
                .map_err(|error| RuntimeError::io(format!("make {parent}"), error))?;
        }
        let record = ContainerRecord {
            spec: wanted.clone(),
            image: contents.id.to_string(),
            created: Timestamp::now(),
            stop_signal: stop_signal(
                wanted
                    .stop_signal
                    .as_deref()
                    .or(contents.settings.stop_signal.as_deref()),
            )?,
            cgroup: group,
            notes: planned.notes,
        };
        records::write(&folder.join(CONTAINER), &record)?;
        Ok(record)
    }

    pub(super) async fn run_container(
        &self,
        entry: &PodEntry,
        id: &str,
    ) -> Result<(), RuntimeError> {
        let (record, state, log_directory) = {
            let live = entry.live();
            let found = live.containers.get(id).ok_or_else(|| missing(id))?;
            (
                found.record.clone(),
                found.state.clone(),
                live.record.spec.log_directory.clone(),
            )
        };
        if state != ContainerState::Created {
            return Ok(());
        }
        let start = Start {
            container: id.to_owned(),
            log: log_directory.join(&record.spec.log_path).into_string(),
            stdin: record.spec.stdin,
            stdin_once: record.spec.stdin_once,
            terminal: record.spec.terminal,
            memory_events: self
                .cgroups
                .memory_events(&record.cgroup)
                .map(Utf8PathBuf::into_string),
            processes: self.cgroups.processes(&record.cgroup).into_string(),
        };
        match client::ask(&entry.folder, Call::Start(start)).await? {
            Reply::Started { .. } => {
                let started = records::read::<records::StartRecord>(
                    &entry.folder.container(id).join(records::STARTED),
                )?;
                let started = started.map_or_else(Timestamp::now, |record| record.started);
                self.container_began(entry, id, started);
                Ok(())
            }
            Reply::Failed { message } => self.start_failed(entry, id, &record, message),
            other => Err(RuntimeError::Other(format!(
                "the shim answered {other:?} to a start"
            ))),
        }
    }

    fn start_failed(
        &self,
        entry: &PodEntry,
        id: &str,
        record: &ContainerRecord,
        message: String,
    ) -> Result<(), RuntimeError> {
        let ended = Ended {
            started: None,
            finished: Timestamp::now(),
            exit_code: CANNOT_RUN,
            reason: "ContainerCannotRun".to_owned(),
            message: message.clone(),
        };
        records::write(&entry.folder.container(id).join(ENDED), &ended)?;
        entry.update(|live| {
            if let Some(found) = live.containers.get_mut(id) {
                found.state = ContainerState::Exited(ended);
            }
        });
        self.tell(&entry.id, Some(id));
        Err(RuntimeError::CannotRun {
            program: record.spec.name.clone(),
            cause: message,
        })
    }

    /// Asks a container to end, and kills it when its time is over.
    pub(super) async fn end_container(
        &self,
        entry: &PodEntry,
        id: &str,
        grace: Duration,
    ) -> Result<(), RuntimeError> {
        let has_ended = |live: &super::runtime::Live| {
            live.containers
                .get(id)
                .is_none_or(|found| !matches!(found.state, ContainerState::Running { .. }))
        };
        if has_ended(&entry.live()) {
            return Ok(());
        }
        let signal = entry
            .live()
            .containers
            .get(id)
            .map_or(Signal::SIGTERM as i32, |found| found.record.stop_signal);
        if !grace.is_zero() {
            self.signal(entry, id, signal, false).await?;
            if timeout(grace, entry.wait_until(has_ended)).await.is_ok() {
                return Ok(());
            }
        }
        self.signal(entry, id, Signal::SIGKILL as i32, true).await?;
        timeout(LONGEST_END, entry.wait_until(has_ended))
            .await
            .map_err(|_| {
                RuntimeError::Other(format!(
                    "the container {id} does not end though it was killed"
                ))
            })
    }

    /// Signals a container. One that ended meanwhile, or whose shim did, needs no signal.
    async fn signal(
        &self,
        entry: &PodEntry,
        id: &str,
        signal: i32,
        all: bool,
    ) -> Result<(), RuntimeError> {
        let call = Call::Signal {
            container: id.to_owned(),
            signal,
            all,
        };
        match self.ask(entry, call).await {
            Err(RuntimeError::Other(message)) if message.ends_with("does not run") => Ok(()),
            Err(RuntimeError::Unavailable { .. }) if entry.live().shim.is_none() => Ok(()),
            asked => asked.map(drop),
        }
    }

    pub(super) async fn forget_container(
        self: &Arc<Self>,
        entry: &PodEntry,
        id: &str,
    ) -> Result<(), RuntimeError> {
        self.end_container(entry, id, Duration::ZERO).await?;
        let Some(record) = entry
            .live()
            .containers
            .get(id)
            .map(|found| found.record.clone())
        else {
            return Ok(());
        };
        // Whatever its state is said to be: what runs in its group goes.
        self.clear_group(record.cgroup).await?;
        let folder = entry.folder.container(id);
        let state = entry.folder.0.join(records::STATES).join(id);
        let failed = format!("remove the container {id}");
        super::blocking(move || {
            // The record goes first: what is left after a crash is a container that was never made.
            remove_file(&folder.join(CONTAINER))
                .and_then(|()| remove_folder(&folder))
                .and_then(|()| remove_folder(&state))
                .map_err(|error| RuntimeError::io(failed, error))
        })
        .await?;
        entry.update(|live| live.containers.remove(id));
        self.tell(&entry.id, Some(id));
        Ok(())
    }
}

pub(super) fn missing(id: &str) -> RuntimeError {
    RuntimeError::NotFound {
        what: "the container",
        id: id.to_owned(),
    }
}

/// Lower than our own the kernel may refuse.
fn own_oom_score() -> i32 {
    let text = fs::read_to_string("/proc/self/oom_score_adj").unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// A signal by name or number.
fn stop_signal(name: Option<&str>) -> Result<i32, RuntimeError> {
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Ok(Signal::SIGTERM as i32);
    };
    let wrong = || RuntimeError::Invalid(format!("{name:?} is no signal"));
    if let Ok(number) = name.parse::<i32>() {
        return Signal::try_from(number)
            .map(|signal| signal as i32)
            .map_err(|_| wrong());
    }
    let upper = name.to_ascii_uppercase();
    let full = if upper.starts_with("SIG") {
        upper
    } else {
        format!("SIG{upper}")
    };
    Signal::from_str(&full)
        .map(|signal| signal as i32)
        .map_err(|_| wrong())
}
