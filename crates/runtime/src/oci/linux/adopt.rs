//! Taking over the pods that an earlier agent left. Invariant: a pod is taken over whole or taken away whole; none
//! of them keeps the agent from starting.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use super::client::ShimConnection;
use super::protocol::Call;
use super::records::{self, CONTAINER, ContainerRecord, PodFolder, PodRecord};
use super::runtime::{ContainerEntry, OciRuntime, PodEntry};
use crate::RuntimeError;

impl OciRuntime {
    /// Takes over what an earlier agent left in a folder.
    pub(super) async fn adopt(self: &Arc<Self>, folder: PodFolder) -> Result<(), RuntimeError> {
        let id = folder.0.file_name().unwrap_or_default().to_owned();
        let record: Option<PodRecord> = records::read(&folder.record()).unwrap_or_else(|error| {
            tracing::error!(pod = id, %error, "a pod without a record that can be read is removed");
            None
        });
        let Some(record) = record.clone().filter(|record| record.ready) else {
            // A pod whose making was interrupted begins from nothing.
            let spec = record.as_ref().map(|record| &record.spec);
            return self.discard_pod(&id, &folder, spec).await;
        };
        let connected = ShimConnection::open(&folder).await.ok();
        let entry = Arc::new(PodEntry::new(id.clone(), folder, record));
        self.adopt_containers(&entry)?;
        self.pods_lock().insert(id, Arc::clone(&entry));
        match connected {
            Some(connection) if !entry.live().record.stopped => {
                if let Err(error) = self.watch(&entry, connection).await {
                    tracing::error!(pod = entry.id, %error, "the shim of a pod does not answer");
                }
            }
            Some(mut connection) => drop(connection.ask(Call::Shutdown, &[]).await),
            None => {}
        }
        if entry.live().shim.is_none() {
            self.shim_died(&entry);
        }
        Ok(())
    }

    fn adopt_containers(&self, entry: &Arc<PodEntry>) -> Result<(), RuntimeError> {
        let folder = entry.folder.containers();
        let failed = |error| RuntimeError::io(format!("read {folder}"), error);
        if !folder.is_dir() {
            return Ok(());
        }
        for found in fs::read_dir(&folder).map_err(failed)? {
            let path = Utf8PathBuf::try_from(found.map_err(failed)?.path());
            let path = path.map_err(|error| RuntimeError::Other(error.to_string()))?;
            let id = path.file_name().unwrap_or_default().to_owned();
            let adopted = self.adopt_container(&path).unwrap_or_else(|error| {
                tracing::error!(container = id, %error, "a container without records that can be read is removed");
                None
            });
            if let Some(adopted) = adopted {
                entry.update(|live| live.containers.insert(id, adopted));
            } else {
                let spec = entry.live().record.spec.clone();
                let group = self.cgroups.pod(&spec.cgroup_parent, &spec.uid);
                self.cgroups.kill(&format!("{group}/{id}"));
                fs::remove_dir_all(&path).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// `None`: it was never made completely.
    fn adopt_container(&self, folder: &Utf8Path) -> Result<Option<ContainerEntry>, RuntimeError> {
        let Some(record) = records::read::<ContainerRecord>(&folder.join(CONTAINER))? else {
            return Ok(None);
        };
        let state = records::state(folder)?;
        let used = self.images.adopt_use(&record.image);
        Ok(Some(ContainerEntry {
            record,
            state,
            _used: used,
        }))
    }
}
