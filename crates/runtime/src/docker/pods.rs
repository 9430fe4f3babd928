//! Pods: containers over there that hold the network of others.

use std::net::IpAddr;
use std::sync::Arc;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use hyper::{Method, StatusCode};

use super::Inner;
use super::client::{CALL, encode};
use super::labels::{self, OURS, Part, SANDBOX};
use super::translate::sandbox;
use super::wire::{Inspected, Listed, Made};
use crate::{Pod, PodId, PodNetwork, PodSpec, PodState, RuntimeError};

/// How many questions are asked at a time.
const AT_ONCE: usize = 8;

/// A filter of lists: only what is ours, of one pod or of all.
pub(super) fn filter(pod: Option<&PodId>) -> String {
    let mut labels = vec![format!("{}={}", OURS.0, OURS.1)];
    labels.extend(pod.map(|pod| format!("{SANDBOX}={pod}")));
    encode(&serde_json::json!({ "label": labels }).to_string())
}

impl Inner {
    /// All that is ours, or what is in one pod.
    pub(super) async fn list(&self, pod: Option<&PodId>) -> Result<Vec<Listed>, RuntimeError> {
        let path = format!("/containers/json?all=1&filters={}", filter(pod));
        let listed = self.client.get(&path).await;
        listed.map_err(|fault| fault.explain("containers", ""))
    }

    /// All about one container; `None` if it is not there, or not ours.
    pub(super) async fn inspect(&self, id: &str) -> Result<Option<Arc<Inspected>>, RuntimeError> {
        let path = format!("/containers/{}/json", encode(id));
        match self.client.get::<Inspected>(&path).await {
            Ok(found) if found.config.labels.get(OURS.0).map(String::as_str) != Some(OURS.1) => {
                Ok(None)
            }
            Ok(found) => {
                let found = Arc::new(found);
                self.known().insert(id.to_owned(), Arc::clone(&found));
                Ok(Some(found))
            }
            Err(fault) if fault.is_missing() => {
                self.known().remove(id);
                Ok(None)
            }
            Err(fault) => Err(fault.explain("container", id)),
        }
    }

    /// All about one of a list. While it stays in its state nothing of it changes.
    async fn look(&self, listed: &Listed) -> Result<Option<Arc<Inspected>>, RuntimeError> {
        let known = self.known().get(&listed.id).cloned();
        match known {
            Some(known) if known.state.status == listed.state && listed.state != "created" => {
                Ok(Some(known))
            }
            _ => self.inspect(&listed.id).await,
        }
    }

    pub(super) async fn start_pod(&self, spec: &PodSpec) -> Result<PodId, RuntimeError> {
        if let Some(there) = self.find_pod(spec).await? {
            // One that was made and not started was left by an agent that died in between.
            if there.state == "created" {
                self.start_sandbox(&there.id).await?;
            }
            return Ok(PodId(there.id));
        }
        let image = self.sandbox_image().await?;
        let body = sandbox(spec, &image, self.config.os)?;
        let name = labels::name_of_pod(spec);
        let path = format!("/containers/create?name={}", encode(&name));
        let made = match self.client.post::<Made>(&path, &body).await {
            Ok(made) => made.id,
            Err(fault) if fault.is(StatusCode::CONFLICT) => {
                let there = self.find_pod(spec).await?;
                there.ok_or_else(|| fault.explain("pod", &spec.name))?.id
            }
            Err(fault) => return Err(fault.explain("image", &image)),
        };
        self.start_sandbox(&made).await?;
        let id = PodId(made);
        self.tell(&id, None);
        Ok(id)
    }

    async fn find_pod(&self, spec: &PodSpec) -> Result<Option<Listed>, RuntimeError> {
        let is_same = |one: &Listed| {
            matches!(labels::read(&one.labels), Ok(Part::Pod(known))
                if known.uid == spec.uid && known.attempt == spec.attempt)
        };
        Ok(self.list(None).await?.into_iter().find(is_same))
    }

    /// Starts what holds a pod; one that cannot be started is taken away, so that the next attempt begins anew.
    async fn start_sandbox(&self, id: &str) -> Result<(), RuntimeError> {
        let path = format!("/containers/{id}/start");
        let Err(fault) = self.client.act(Method::POST, &path, CALL).await else {
            return Ok(());
        };
        if let Err(error) = self.delete(id).await {
            tracing::debug!(%error, id, "a pod that did not start could not be removed");
        }
        Err(match fault.explain("pod", id) {
            RuntimeError::NotFound { .. } => RuntimeError::Other(fault.message().to_owned()),
            other => other,
        })
    }

    pub(super) async fn stop_pod(&self, id: &PodId) -> Result<(), RuntimeError> {
        for container in self.list(Some(id)).await? {
            self.kill(&container.id).await?;
        }
        self.kill(&id.0).await?;
        self.tell(id, None);
        Ok(())
    }

    pub(super) async fn remove_pod(self: &Arc<Self>, id: &PodId) -> Result<(), RuntimeError> {
        self.stop_pod(id).await?;
        for container in self.list(Some(id)).await? {
            self.remove(&crate::ContainerId(container.id)).await?;
        }
        self.delete(&id.0).await?;
        self.tell(id, None);
        Ok(())
    }

    pub(super) async fn pods(self: &Arc<Self>) -> Result<Vec<Pod>, RuntimeError> {
        let listed = self.list(None).await?;
        self.forget_all_but(&listed);
        let looks = stream::iter(listed).map(|one| {
            let inner = Arc::clone(self);
            async move { inner.look(&one).await }
        });
        // One that is `None` went while we looked.
        let all: Vec<Arc<Inspected>> = looks
            .buffered(AT_ONCE)
            .try_filter_map(|found| futures::future::ready(Ok(found)))
            .try_collect()
            .await?;
        let mut pods: Vec<Pod> = Vec::new();
        let mut containers = Vec::new();
        for one in &all {
            match labels::read(&one.config.labels)? {
                Part::Pod(spec) => pods.push(describe(one, *spec)),
                Part::Container { pod, kept } => {
                    containers.push(self.describe_container(one, PodId(pod), *kept).await?);
                }
            }
        }
        containers.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
        for container in containers {
            if let Some(pod) = pods.iter_mut().find(|pod| pod.id == container.pod) {
                pod.containers.push(container);
            }
        }
        pods.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(pods)
    }

    fn forget_all_but(&self, listed: &[Listed]) {
        let is_there = |id: &str| listed.iter().any(|one| one.id == id);
        self.known().retain(|id, _| is_there(id));
        self.logs.forget_all_but(is_there);
    }
}

fn describe(one: &Inspected, spec: PodSpec) -> Pod {
    let addresses = match spec.network {
        PodNetwork::Host => Vec::new(),
        PodNetwork::Own => addresses(one),
    };
    Pod {
        id: PodId(one.id.clone()),
        uid: spec.uid,
        namespace: spec.namespace,
        name: spec.name,
        attempt: spec.attempt,
        state: match one.state.status.as_str() {
            "running" => PodState::Ready,
            _ => PodState::NotReady,
        },
        created: super::containers::time(&one.created).unwrap_or_default(),
        addresses,
        labels: spec.labels,
        annotations: spec.annotations,
        containers: Vec::new(),
    }
}

pub(super) fn addresses(one: &Inspected) -> Vec<IpAddr> {
    let joined = one.network_settings.networks.values();
    joined
        .flat_map(|network| [&network.address, &network.address_v6])
        .filter_map(|text| text.parse().ok())
        .collect()
}
