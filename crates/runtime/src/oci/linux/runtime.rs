//! The pods of this node, and what is done with them. Everything slow is done by shims and helpers; the
//! agent only prepares folders and asks.
//!
//! Invariant: what is told of a pod is on disk before. The folder of a pod is complete once its record says
//! `ready`, that of a container once its record is there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use camino::Utf8PathBuf;
use fs_err as fs;
use jiff::Timestamp;
use tokio::sync::{broadcast, watch};

use super::super::OciSettings;
use super::cgroup::Cgroups;
use super::client::{self, ShimConnection};
use super::network::Network;
use super::protocol::{Call, Channel, Reply};
use super::records::{self, ContainerRecord, ENDED, PodFolder, PodRecord};
use super::stats::Walks;
use crate::images::{Images, Used};
use crate::{
    Container, ContainerId, ContainerState, Ended, Event, Pod, PodId, PodState, RuntimeError,
};

const QUEUED_EVENTS: usize = 1024;

/// Runs pods by itself.
#[derive(Debug)]
pub struct OciRuntime {
    pub(super) settings: OciSettings,
    pub(super) images: Arc<Images>,
    pub(super) network: Arc<dyn Network>,
    pub(super) cgroups: Cgroups,
    pub(super) stackable: bool,
    pub(super) events: broadcast::Sender<Event>,
    pods: Mutex<BTreeMap<String, Arc<PodEntry>>>,
    /// Pods that are being made, so that two who ask for the same get the same.
    pub(super) making: tokio::sync::Mutex<()>,
}

/// A pod that is there.
#[derive(Debug)]
pub(super) struct PodEntry {
    pub(super) id: String,
    pub(super) folder: PodFolder,
    /// One change at a time.
    pub(super) gate: tokio::sync::Mutex<()>,
    live: Mutex<Live>,
    changed: watch::Sender<u64>,
    pub(super) walks: Walks,
}

#[derive(Debug)]
pub(super) struct Live {
    pub(super) record: PodRecord,
    /// The shim, while it lives.
    pub(super) shim: Option<u32>,
    pub(super) containers: BTreeMap<String, ContainerEntry>,
}

#[derive(Debug)]
pub(super) struct ContainerEntry {
    pub(super) record: ContainerRecord,
    pub(super) state: ContainerState,
    pub(super) _used: Option<Used>,
}

impl PodEntry {
    pub(super) fn new(id: String, folder: PodFolder, record: PodRecord) -> Self {
        Self {
            id,
            folder,
            gate: tokio::sync::Mutex::new(()),
            live: Mutex::new(Live {
                record,
                shim: None,
                containers: BTreeMap::new(),
            }),
            changed: watch::Sender::new(0),
            walks: Walks::default(),
        }
    }

    pub(super) fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is known and wakes who waits for it.
    pub(super) fn update<T>(&self, change: impl FnOnce(&mut Live) -> T) -> T {
        let result = change(&mut self.live());
        self.changed.send_modify(|version| *version += 1);
        result
    }

    /// Waits until something holds of this pod.
    pub(super) async fn wait_until(&self, holds: impl Fn(&Live) -> bool) {
        let mut changes = self.changed.subscribe();
        loop {
            changes.borrow_and_update();
            if holds(&self.live()) {
                return;
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    pub(super) fn describe(&self) -> Pod {
        let live = self.live();
        let spec = &live.record.spec;
        let containers = live.containers.iter().map(|(id, entry)| Container {
            id: ContainerId(id.clone()),
            pod: PodId(self.id.clone()),
            name: entry.record.spec.name.clone(),
            attempt: entry.record.spec.attempt,
            image: entry.record.spec.image.clone(),
            image_name: entry.record.spec.image_name.clone(),
            created: entry.record.created,
            state: entry.state.clone(),
            labels: entry.record.spec.labels.clone(),
            annotations: entry.record.spec.annotations.clone(),
            log_path: spec.log_directory.join(&entry.record.spec.log_path),
        });
        Pod {
            id: PodId(self.id.clone()),
            uid: spec.uid.clone(),
            namespace: spec.namespace.clone(),
            name: spec.name.clone(),
            attempt: spec.attempt,
            state: if live.shim.is_some() && !live.record.stopped {
                PodState::Ready
            } else {
                PodState::NotReady
            },
            created: live.record.created,
            addresses: live.record.addresses.clone(),
            labels: spec.labels.clone(),
            annotations: spec.annotations.clone(),
            containers: containers.collect(),
        }
    }
}

impl OciRuntime {
    /// Opens the runtime of a state folder and takes over the pods that are there.
    pub async fn open(
        settings: &OciSettings,
        images: Arc<Images>,
        network: Arc<dyn Network>,
    ) -> Result<Arc<Self>, RuntimeError> {
        if !nix::unistd::geteuid().is_root() {
            return Err(RuntimeError::NotSupported(
                "the oci runtime needs root: without it, use the process runtime".to_owned(),
            ));
        }
        let failed =
            |error| RuntimeError::io(format!("open the pods in {}", settings.state), error);
        let cgroups = Cgroups::find(&settings.cgroup).map_err(failed)?;
        let folder = settings.state.join("pods");
        fs::create_dir_all(&folder).map_err(failed)?;
        let stackable = super::probe::overlay_works(&settings.state);
        if !stackable {
            tracing::warn!(
                "overlayfs is not permitted here: every container gets a copy of its image"
            );
        }
        let runtime = Arc::new(Self {
            settings: settings.clone(),
            images,
            network,
            cgroups,
            stackable,
            events: broadcast::Sender::new(QUEUED_EVENTS),
            pods: Mutex::default(),
            making: tokio::sync::Mutex::new(()),
        });
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let path = Utf8PathBuf::try_from(entry.map_err(failed)?.path());
            let path = path.map_err(|error| RuntimeError::Other(error.to_string()))?;
            // One that cannot be taken over must not keep the others from being.
            if let Err(error) = runtime.adopt(PodFolder(path.clone())).await {
                tracing::error!(%path, %error, "a pod cannot be taken over");
            }
        }
        let names: Vec<String> = runtime.all().iter().map(|entry| entry.id.clone()).collect();
        runtime.network.reconcile(&names).await?;
        Ok(runtime)
    }

    pub(super) fn pods_lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<PodEntry>>> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn all(&self) -> Vec<Arc<PodEntry>> {
        self.pods_lock().values().cloned().collect()
    }

    pub(super) fn pod(&self, id: &PodId) -> Result<Arc<PodEntry>, RuntimeError> {
        self.pods_lock()
            .get(&id.0)
            .cloned()
            .ok_or_else(|| RuntimeError::NotFound {
                what: "the pod",
                id: id.0.clone(),
            })
    }

    pub(super) fn container(&self, id: &ContainerId) -> Result<Arc<PodEntry>, RuntimeError> {
        let found = self
            .all()
            .into_iter()
            .find(|entry| entry.live().containers.contains_key(&id.0));
        found.ok_or_else(|| RuntimeError::NotFound {
            what: "the container",
            id: id.0.clone(),
        })
    }

    pub(super) fn tell(&self, pod: &str, container: Option<&str>) {
        // Without a listener nobody misses anything.
        drop(self.events.send(Event {
            pod: PodId(pod.to_owned()),
            container: container.map(|id| ContainerId(id.to_owned())),
        }));
    }

    /// Listens to a shim for as long as it lives.
    pub(super) async fn watch(
        self: &Arc<Self>,
        entry: &Arc<PodEntry>,
        mut connection: ShimConnection,
    ) -> Result<(), RuntimeError> {
        let pid = connection.peer()?;
        connection.ask(Call::Watch, &[]).await?;
        entry.update(|live| live.shim = Some(pid));
        // What began or ended between the last look at the disk and now.
        self.look_at_records(entry)?;
        let runtime = Arc::downgrade(self);
        let entry = Arc::clone(entry);
        tokio::spawn(async move {
            loop {
                let next = connection.next().await;
                let Some(runtime) = runtime.upgrade() else {
                    return;
                };
                match next {
                    Ok(Some((Channel::Control, content))) => {
                        if let Ok(Reply::ContainerEnded { container, ended }) =
                            serde_json::from_slice(&content)
                        {
                            runtime.container_ended(&entry, &container, ended);
                        }
                    }
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => {
                        entry.update(|live| live.shim = None);
                        runtime.shim_died(&entry);
                        return;
                    }
                }
            }
        });
        Ok(())
    }

    fn container_ended(&self, entry: &PodEntry, container: &str, ended: Ended) {
        entry.update(|live| {
            if let Some(found) = live.containers.get_mut(container) {
                found.state = ContainerState::Exited(ended);
            }
        });
        self.tell(&entry.id, Some(container));
    }

    /// Learns what became of containers from what their shim wrote down.
    fn look_at_records(&self, entry: &PodEntry) -> Result<(), RuntimeError> {
        let open: Vec<String> = {
            let live = entry.live();
            let open = live
                .containers
                .iter()
                .filter(|(_, found)| !matches!(found.state, ContainerState::Exited(_)));
            open.map(|(id, _)| id.clone()).collect()
        };
        for id in open {
            match records::state(&entry.folder.container(&id))? {
                ContainerState::Exited(ended) => self.container_ended(entry, &id, ended),
                ContainerState::Running { started } => self.container_began(entry, &id, started),
                ContainerState::Created => {}
            }
        }
        Ok(())
    }

    pub(super) fn container_began(&self, entry: &PodEntry, id: &str, started: Timestamp) {
        entry.update(|live| {
            // It may have ended before we heard that it runs.
            if let Some(found) = live
                .containers
                .get_mut(id)
                .filter(|found| found.state == ContainerState::Created)
            {
                found.state = ContainerState::Running { started };
            }
        });
        self.tell(&entry.id, Some(id));
    }

    /// Nobody is left who could tell how containers end: what still runs is killed and said to have failed.
    pub(super) fn shim_died(&self, entry: &PodEntry) {
        self.kill_attendants(&entry.folder, entry.live().record.first_process);
        if let Err(error) = self.look_at_records(entry) {
            tracing::warn!(pod = entry.id, %error, "the records of containers cannot be read");
        }
        let open: Vec<(String, String, Option<Timestamp>)> = {
            let live = entry.live();
            let open = live.containers.iter().filter_map(|(id, found)| {
                let started = match &found.state {
                    ContainerState::Running { started } => Some(*started),
                    ContainerState::Created => None,
                    ContainerState::Exited(_) => return None,
                };
                Some((id.clone(), found.record.cgroup.clone(), started))
            });
            open.collect()
        };
        for (id, cgroup, started) in open {
            // One that was just being started may be there without a record.
            self.cgroups.kill(&cgroup);
            if started.is_none() {
                continue;
            }
            let ended = Ended {
                started,
                finished: Timestamp::now(),
                exit_code: 137,
                reason: "Error".to_owned(),
                message: "the shim of the pod died".to_owned(),
            };
            if let Err(error) = records::write(&entry.folder.container(&id).join(ENDED), &ended) {
                tracing::warn!(container = id, %error, "the end of a container cannot be recorded");
            }
            self.container_ended(entry, &id, ended);
        }
        self.tell(&entry.id, None);
    }

    /// Asks the shim of a pod, and takes a refusal for an error.
    pub(super) async fn ask(&self, entry: &PodEntry, call: Call) -> Result<Reply, RuntimeError> {
        match client::ask(&entry.folder, call).await? {
            Reply::Failed { message } => Err(RuntimeError::Other(message)),
            reply => Ok(reply),
        }
    }
}
