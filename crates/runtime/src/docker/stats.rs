//! What pods use, as Docker counts it.

use std::sync::Arc;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use transom_model::os::Os;

use super::Inner;
use super::labels::{self, Part};
use super::wire::{Listed, Measured, MemoryStats};
use crate::{ContainerStats, Cpu, Memory, PodId, PodStats, RuntimeError};

const AT_ONCE: usize = 8;
/// Windows counts time in tenths of a microsecond.
const WINDOWS_TICK: u64 = 100;

impl Inner {
    pub(super) async fn measure(self: &Arc<Self>) -> Result<Vec<PodStats>, RuntimeError> {
        let listed = self.list(None).await?;
        let running = listed.into_iter().filter(|one| one.state == "running");
        let measured = stream::iter(running).map(|one| {
            let inner = Arc::clone(self);
            async move { inner.measure_one(one).await }
        });
        // One that is `None` ended while we looked.
        let measured: Vec<(Listed, Measured)> = measured
            .buffered(AT_ONCE)
            .try_filter_map(|found| futures::future::ready(Ok(found)))
            .try_collect()
            .await?;
        let taken = Timestamp::now();
        let mut pods: Vec<PodStats> = Vec::new();
        let mut containers = Vec::new();
        for (listed, measured) in measured {
            match labels::read(&listed.labels)? {
                Part::Pod(_) => pods.push(of_pod(listed.id, &measured, taken)),
                Part::Container { pod, kept } => containers.push((pod, kept.name, measured)),
            }
        }
        let os = self.config.os;
        for (pod, name, measured) in containers {
            if let Some(pod) = pods.iter_mut().find(|known| known.pod.0 == pod) {
                pod.processes = pod
                    .processes
                    .zip(measured.pids_stats.current)
                    .map(|(a, b)| a + b);
                pod.containers.push(of_container(name, &measured, os));
            }
        }
        Ok(pods)
    }

    async fn measure_one(&self, one: Listed) -> Result<Option<(Listed, Measured)>, RuntimeError> {
        let path = format!("/containers/{}/stats?stream=0&one-shot=1", one.id);
        match self.client.get::<Measured>(&path).await {
            Ok(measured) => Ok(Some((one, measured))),
            Err(fault) if fault.is_missing() => Ok(None),
            Err(fault) => Err(fault.explain("stats", &one.id)),
        }
    }
}

fn of_pod(id: String, measured: &Measured, taken: Timestamp) -> PodStats {
    // In the node's network there is nothing that only this pod has sent.
    let traffic = (!measured.networks.is_empty()).then(|| {
        let all = measured.networks.values();
        all.fold((0, 0), |(received, sent), one| {
            (received + one.rx_bytes, sent + one.tx_bytes)
        })
    });
    PodStats {
        pod: PodId(id),
        taken,
        containers: Vec::new(),
        network: traffic,
        processes: measured.pids_stats.current,
    }
}

fn of_container(name: String, measured: &Measured, os: Os) -> ContainerStats {
    let counted = measured.cpu_stats.cpu_usage.total_usage;
    let used = match os {
        Os::Linux => counted,
        Os::Windows => counted.saturating_mul(WINDOWS_TICK),
    };
    ContainerStats {
        name,
        cpu: (used > 0).then_some(Cpu {
            used_nanoseconds: used,
        }),
        memory: memory(&measured.memory_stats),
        writable: None,
        logs: None,
    }
}

fn memory(stats: &MemoryStats) -> Option<Memory> {
    if let Some(working_set) = stats.private_working_set {
        return Some(Memory {
            usage_bytes: stats.committed.unwrap_or(working_set),
            working_set_bytes: working_set,
            rss_bytes: None,
            page_faults: None,
        });
    }
    let usage = stats.usage?;
    // The first names are those of cgroup v1, the second those of v2.
    let get = |names: [&str; 2]| {
        names
            .iter()
            .find_map(|name| stats.stats.get(*name))
            .copied()
    };
    let unused = get(["total_inactive_file", "inactive_file"]).unwrap_or(0);
    Some(Memory {
        usage_bytes: usage,
        working_set_bytes: usage.saturating_sub(unused),
        rss_bytes: get(["total_rss", "anon"]),
        page_faults: get(["total_pgfault", "pgfault"]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(text: &str) -> Measured {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn linux_counts_memory_by_its_cgroup() {
        let one = measured(
            r#"{"cpu_stats":{"cpu_usage":{"total_usage":7}},
                "memory_stats":{"usage":100,"stats":{"total_inactive_file":30,"total_rss":50}}}"#,
        );
        let stats = of_container("c".to_owned(), &one, Os::Linux);
        assert_eq!(
            stats.cpu,
            Some(Cpu {
                used_nanoseconds: 7
            })
        );
        let memory = stats.memory.unwrap();
        assert_eq!((memory.usage_bytes, memory.working_set_bytes), (100, 70));
        assert_eq!(memory.rss_bytes, Some(50));
    }

    #[test]
    fn windows_counts_in_its_own_way_and_what_nobody_counts_is_absent() {
        let one = measured(
            r#"{"cpu_stats":{"cpu_usage":{"total_usage":7}},"networks":null,
                "memory_stats":{"commitbytes":90,"privateworkingset":60}}"#,
        );
        let stats = of_container("c".to_owned(), &one, Os::Windows);
        assert_eq!(
            stats.cpu,
            Some(Cpu {
                used_nanoseconds: 700
            })
        );
        assert_eq!(stats.memory.unwrap().working_set_bytes, 60);
        let pod = of_pod("p".to_owned(), &one, Timestamp::UNIX_EPOCH);
        assert_eq!((pod.network, pod.processes), (None, None));
        let nothing = of_container("c".to_owned(), &measured("{}"), Os::Linux);
        assert_eq!((nothing.cpu, nothing.memory), (None, None));
    }
}
