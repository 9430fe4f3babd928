//! Sandboxes over there as our pods.

use std::collections::HashMap;
use std::net::IpAddr;

use futures::future::try_join_all;
use jiff::Timestamp;

use super::client::{CALL, explain, is_missing};
use super::translate::{given, our_label, pod_spec, sandbox, time};
use super::wire::{
    Empty, ListSandboxesRequest, ListSandboxesResponse, ListStatsRequest, ListStatsResponse,
    ListedContainer, ListedStats, RUNNING, RunSandboxRequest, Sandbox, SandboxById, SandboxFilter,
    SandboxStatusResponse, StatsFilter,
};
use super::{Inner, translate};
use crate::{
    ContainerStats, Cpu, Memory, Pod, PodId, PodNetwork, PodSpec, PodState, PodStats, RuntimeError,
    Usage,
};

impl Inner {
    pub(super) async fn sandboxes(&self) -> Result<Vec<Sandbox>, RuntimeError> {
        let request = ListSandboxesRequest {
            filter: Some(SandboxFilter {
                labels: our_label(),
            }),
        };
        let path = "/runtime.v1.RuntimeService/ListPodSandbox";
        let listed: Result<ListSandboxesResponse, _> = self.client.call(path, request, CALL).await;
        Ok(listed.map_err(|status| explain("pods", "", &status))?.items)
    }

    pub(super) async fn sandbox(&self, id: &PodId) -> Result<Sandbox, RuntimeError> {
        let all = self.sandboxes().await?;
        let found = all.into_iter().find(|one| one.id == id.0);
        found.ok_or_else(|| RuntimeError::NotFound {
            what: "pod",
            id: id.to_string(),
        })
    }

    pub(super) async fn start_pod(&self, spec: &PodSpec) -> Result<PodId, RuntimeError> {
        let is_same = |one: &Sandbox| {
            let metadata = one.metadata.as_ref();
            metadata.is_some_and(|known| known.uid == spec.uid && known.attempt == spec.attempt)
        };
        if let Some(there) = self.sandboxes().await?.into_iter().find(is_same) {
            return Ok(PodId(there.id));
        }
        let request = RunSandboxRequest {
            config: Some(sandbox(spec, &self.config)?),
        };
        let path = "/runtime.v1.RuntimeService/RunPodSandbox";
        let made: Result<SandboxById, _> = self.client.call(path, request, CALL).await;
        let id = PodId(
            made.map_err(|status| explain("pod", &spec.name, &status))?
                .id,
        );
        self.tell(&id, None);
        Ok(id)
    }

    /// Stops a sandbox, or removes it. One that is gone is fine.
    pub(super) async fn end_pod(&self, path: &'static str, id: &PodId) -> Result<(), RuntimeError> {
        let request = SandboxById { id: id.0.clone() };
        let ended: Result<Empty, _> = self.client.call(path, request, CALL).await;
        match ended {
            Ok(Empty {}) => {}
            Err(status) if is_missing(&status) => {}
            Err(status) => return Err(explain("pod", &id.0, &status)),
        }
        self.tell(id, None);
        Ok(())
    }

    pub(super) async fn pods(&self) -> Result<Vec<Pod>, RuntimeError> {
        let (sandboxes, containers) =
            futures::future::try_join(self.sandboxes(), self.containers("")).await?;
        let mut by_pod: HashMap<String, Vec<ListedContainer>> = HashMap::new();
        for container in containers {
            let pod = container.sandbox_id.clone();
            by_pod.entry(pod).or_default().push(container);
        }
        let pods = sandboxes.into_iter().map(|one| {
            let containers = by_pod.remove(&one.id).unwrap_or_default();
            self.describe_pod(one, containers)
        });
        let mut pods: Vec<Pod> = try_join_all(pods).await?.into_iter().flatten().collect();
        pods.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(pods)
    }

    /// `None`: it went while we looked.
    async fn describe_pod(
        &self,
        one: Sandbox,
        listed: Vec<ListedContainer>,
    ) -> Result<Option<Pod>, RuntimeError> {
        let spec = pod_spec(&one.annotations)?;
        let mut containers = Vec::new();
        for container in listed {
            containers.extend(self.describe_container(container, &spec).await?);
        }
        let addresses = match spec.network {
            PodNetwork::Host => Vec::new(),
            PodNetwork::Own => match self.addresses(&one.id).await? {
                Some(addresses) => addresses,
                None => return Ok(None),
            },
        };
        // Lists over there are in no order.
        containers.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
        let metadata = one.metadata.unwrap_or_default();
        Ok(Some(Pod {
            id: PodId(one.id),
            uid: metadata.uid,
            namespace: metadata.namespace,
            name: metadata.name,
            attempt: metadata.attempt,
            state: match one.state {
                0 => PodState::Ready,
                _ => PodState::NotReady,
            },
            created: time(one.created_at),
            addresses,
            labels: given(&one.labels),
            annotations: given(&one.annotations),
            containers,
        }))
    }

    async fn addresses(&self, id: &str) -> Result<Option<Vec<IpAddr>>, RuntimeError> {
        let request = SandboxById { id: id.to_owned() };
        let path = "/runtime.v1.RuntimeService/PodSandboxStatus";
        let status: Result<SandboxStatusResponse, _> = self.client.call(path, request, CALL).await;
        let status = match status {
            Ok(answer) => answer.status,
            Err(status) if is_missing(&status) => return Ok(None),
            Err(status) => return Err(explain("pod", id, &status)),
        };
        let network = status.and_then(|status| status.network).unwrap_or_default();
        let more = network.more.into_iter().map(|address| address.ip);
        let all = std::iter::once(network.ip).chain(more);
        Ok(Some(all.filter_map(|text| text.parse().ok()).collect()))
    }

    pub(super) async fn measure(&self) -> Result<Vec<PodStats>, RuntimeError> {
        let request = ListStatsRequest {
            filter: Some(StatsFilter {
                labels: our_label(),
            }),
        };
        let path = "/runtime.v1.RuntimeService/ListContainerStats";
        let measured: Result<ListStatsResponse, _> = self.client.call(path, request, CALL).await;
        let measured = measured.map_err(|status| explain("stats", "", &status))?;
        let stats: HashMap<String, ListedStats> = measured
            .stats
            .into_iter()
            .filter_map(|one| Some((one.attributes.as_ref()?.id.clone(), one)))
            .collect();
        let (sandboxes, containers) =
            futures::future::try_join(self.sandboxes(), self.containers("")).await?;
        let taken = Timestamp::now();
        let ready = sandboxes.into_iter().filter(|one| one.state == 0);
        let of_pod = |pod: Sandbox| {
            let running = containers
                .iter()
                .filter(|one| one.sandbox_id == pod.id && one.state == RUNNING);
            let measured = running.filter_map(|one| {
                let name = one.metadata.as_ref()?.name.clone();
                Some(container_stats(name, stats.get(&one.id)?))
            });
            PodStats {
                containers: measured.collect(),
                pod: PodId(pod.id),
                taken,
                network: None,
                processes: None,
            }
        };
        Ok(ready.map(of_pod).collect())
    }
}

fn container_stats(name: String, stats: &ListedStats) -> ContainerStats {
    let cpu = stats.cpu.and_then(|cpu| cpu.used_nanoseconds);
    let memory = stats.memory.and_then(|memory| {
        let working_set = memory.working_set?.value;
        Some(Memory {
            usage_bytes: memory.usage.map_or(working_set, |usage| usage.value),
            working_set_bytes: working_set,
            rss_bytes: memory.rss.map(|rss| rss.value),
            page_faults: memory.page_faults.map(|faults| faults.value),
        })
    });
    ContainerStats {
        name,
        cpu: cpu.map(|used| Cpu {
            used_nanoseconds: used.value,
        }),
        memory,
        writable: stats.writable.map(|usage| Usage {
            used_bytes: usage.bytes(),
            inodes_used: usage.inodes_used.map(|inodes| inodes.value),
        }),
        logs: None,
    }
}

/// The description of a pod that containers are made in.
pub(super) fn config_of(
    sandbox: &Sandbox,
    config: &super::Config,
) -> Result<(PodSpec, super::wire::SandboxConfig), RuntimeError> {
    let spec = pod_spec(&sandbox.annotations)?;
    let made = translate::sandbox(&spec, config)?;
    Ok((spec, made))
}
