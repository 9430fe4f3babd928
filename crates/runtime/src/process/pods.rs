//! Pods: little more than a name for containers that belong together, because all share the node's network.

use std::sync::Arc;

use camino::Utf8PathBuf;
use jiff::Timestamp;
use transom_host::files::{Files, Native as NativeFiles};
use transom_host::process::{Native, Processes};

use super::containers::Held;
use super::folder::Life;
use super::folder::{PodRecord, pod_folder, pod_id, write_pod};
use super::{Inner, blocking, discard, file_error};
use crate::{
    ContainerStats, Cpu, Memory, Pod, PodId, PodSpec, PodState, PodStats, RuntimeError, Usage,
};

impl Inner {
    pub(super) async fn start_pod(&self, spec: &PodSpec) -> Result<PodId, RuntimeError> {
        let id = pod_id(spec);
        if self.state().pods.contains_key(&id) {
            return Ok(id);
        }
        let record = PodRecord {
            spec: spec.clone(),
            created: Timestamp::now(),
            stopped: false,
        };
        let (folder, written) = (pod_folder(&self.config.folder, &id), record.clone());
        blocking(move || {
            NativeFiles.create_dir_all(&folder).map_err(file_error)?;
            write_pod(&folder, &written)
        })
        .await?;
        self.state().pods.entry(id.clone()).or_insert(record);
        self.tell(&id, None);
        Ok(id)
    }

    /// Where the logs of a pod go that may still get containers.
    pub(super) fn open_pod(&self, id: &PodId) -> Result<Utf8PathBuf, RuntimeError> {
        match self.state().pods.get(id) {
            Some(pod) if pod.stopped => Err(RuntimeError::Invalid(format!("pod {id} is stopped"))),
            Some(pod) => Ok(pod.spec.log_directory.clone()),
            None => Err(RuntimeError::NotFound {
                what: "pod",
                id: id.to_string(),
            }),
        }
    }

    fn containers_of(&self, id: &PodId) -> Vec<Arc<Held>> {
        let state = self.state();
        let all = state
            .containers
            .values()
            .filter(|held| held.record.pod == *id);
        all.cloned().collect()
    }

    pub(super) async fn stop_pod(&self, id: &PodId) -> Result<(), RuntimeError> {
        let record = match self.state().pods.get_mut(id) {
            Some(record) => {
                // From now on no container is made or started.
                record.stopped = true;
                record.clone()
            }
            None => return Ok(()),
        };
        let folder = pod_folder(&self.config.folder, id);
        blocking(move || write_pod(&folder, &record)).await?;
        let containers = self.containers_of(id);
        let ends = containers
            .iter()
            .map(|held| self.stop(&held.id, std::time::Duration::ZERO));
        for ended in futures::future::join_all(ends).await {
            ended?;
        }
        self.tell(id, None);
        Ok(())
    }

    pub(super) async fn remove_pod(&self, id: &PodId) -> Result<(), RuntimeError> {
        self.stop_pod(id).await?;
        let containers = self.containers_of(id);
        let removed = containers.iter().map(|held| self.remove(&held.id));
        for gone in futures::future::join_all(removed).await {
            gone?;
        }
        if !self.state().pods.contains_key(id) {
            return Ok(());
        }
        let folder = pod_folder(&self.config.folder, id);
        blocking(move || discard(&folder)).await?;
        self.state().pods.remove(id);
        self.tell(id, None);
        Ok(())
    }

    pub(super) fn pods(&self) -> Vec<Pod> {
        let state = self.state();
        let describe = |(id, record): (&PodId, &PodRecord)| Pod {
            id: id.clone(),
            uid: record.spec.uid.clone(),
            namespace: record.spec.namespace.clone(),
            name: record.spec.name.clone(),
            attempt: record.spec.attempt,
            state: if record.stopped {
                PodState::NotReady
            } else {
                PodState::Ready
            },
            created: record.created,
            addresses: Vec::new(),
            labels: record.spec.labels.clone(),
            annotations: record.spec.annotations.clone(),
            containers: {
                let all = state.containers.values();
                let of_pod = all.filter(|held| held.record.pod == *id);
                of_pod.map(|held| held.describe()).collect()
            },
        };
        state.pods.iter().map(describe).collect()
    }

    /// Measures all that runs. Slow: to be called where that holds nobody up.
    pub(super) fn measure(&self) -> Vec<PodStats> {
        let pods: Vec<PodId> = {
            let state = self.state();
            let ready = state.pods.iter().filter(|(_, record)| !record.stopped);
            ready.map(|(id, _)| id.clone()).collect()
        };
        let measure = |pod: PodId| {
            let mut processes = None;
            let mut containers = Vec::new();
            for held in self.containers_of(&pod) {
                let Some((stats, count)) = measure(&held) else {
                    continue;
                };
                containers.push(stats);
                if let Some(count) = count {
                    *processes.get_or_insert(0) += u64::from(count);
                }
            }
            PodStats {
                pod,
                taken: Timestamp::now(),
                containers,
                network: None,
                processes,
            }
        };
        pods.into_iter().map(measure).collect()
    }
}

fn measure(held: &Held) -> Option<(ContainerStats, Option<u32>)> {
    let Life::Running { process, .. } = held.life.borrow().clone() else {
        return None;
    };
    let process = Native.adopt(&process, &held.folder.group()).ok()??;
    let stats = process.stats();
    let log = fs_err::metadata(&held.log_path).ok();
    let container = ContainerStats {
        name: held.record.spec.name.clone(),
        cpu: stats.cpu.map(|used| Cpu {
            used_nanoseconds: u64::try_from(used.as_nanos()).unwrap_or(u64::MAX),
        }),
        memory: stats.memory_bytes.map(|bytes| Memory {
            usage_bytes: bytes,
            working_set_bytes: bytes,
            rss_bytes: Some(bytes),
            page_faults: None,
        }),
        writable: None,
        logs: log.map(|log| Usage {
            used_bytes: log.len(),
            inodes_used: None,
        }),
    };
    Some((container, stats.processes))
}
