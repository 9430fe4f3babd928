//! Containers over there.

use std::time::Duration;

use camino::Utf8PathBuf;

use super::client::{CALL, explain, is_missing};
use super::translate::{
    container, given, kept, linux_resources, our_label, state, time, windows_resources,
};
use super::wire::{
    CREATED, ContainerById, ContainerFilter, ContainerStatus, ContainerStatusResponse,
    CreateContainerRequest, Empty, ListContainersRequest, ListContainersResponse, ListedContainer,
    RUNNING, StopContainerRequest, UpdateResourcesRequest,
};
use super::{Inner, pods};
use crate::{
    Container, ContainerId, ContainerSpec, ContainerState, Event, PodId, PodSpec, Resources,
    RuntimeError,
};
use transom_model::os::Os;

/// How much longer than its grace the end of a container may take.
const KILL_LIMIT: Duration = Duration::from_mins(1);

impl Inner {
    pub(super) fn tell(&self, pod: &PodId, container: Option<&ContainerId>) {
        // Fails when nobody listens, which is fine.
        let _ = self.events.send(Event {
            pod: pod.clone(),
            container: container.cloned(),
        });
    }

    /// Our containers, of one sandbox or of all.
    pub(super) async fn containers(
        &self,
        sandbox: &str,
    ) -> Result<Vec<ListedContainer>, RuntimeError> {
        let request = ListContainersRequest {
            filter: Some(ContainerFilter {
                sandbox_id: sandbox.to_owned(),
                labels: our_label(),
            }),
        };
        let path = "/runtime.v1.RuntimeService/ListContainers";
        let listed: Result<ListContainersResponse, _> = self.client.call(path, request, CALL).await;
        let listed = listed.map_err(|status| explain("containers", "", &status))?;
        Ok(listed.containers)
    }

    /// How a container is; `None` if it is not there.
    pub(super) async fn status(
        &self,
        id: &ContainerId,
    ) -> Result<Option<ContainerStatus>, RuntimeError> {
        let request = ContainerById { id: id.0.clone() };
        let path = "/runtime.v1.RuntimeService/ContainerStatus";
        let answer: Result<ContainerStatusResponse, _> =
            self.client.call(path, request, CALL).await;
        match answer {
            Ok(answer) => Ok(answer.status),
            Err(status) if is_missing(&status) => Ok(None),
            Err(status) => Err(explain("container", &id.0, &status)),
        }
    }

    pub(super) async fn existing(&self, id: &ContainerId) -> Result<ContainerStatus, RuntimeError> {
        self.status(id)
            .await?
            .ok_or_else(|| RuntimeError::NotFound {
                what: "container",
                id: id.to_string(),
            })
    }

    /// `None`: it went while we looked.
    pub(super) async fn describe_container(
        &self,
        listed: ListedContainer,
        pod: &PodSpec,
    ) -> Result<Option<Container>, RuntimeError> {
        let id = ContainerId(listed.id.clone());
        let cached = self.known().statuses.get(&id).cloned();
        let status = match cached {
            // Neither when it started nor how it ended changes any more.
            Some(status) if status.state == listed.state => status,
            _ if listed.state == CREATED => ContainerStatus::default(),
            _ => match self.status(&id).await? {
                Some(status) => {
                    self.known().statuses.insert(id.clone(), status.clone());
                    status
                }
                None => return Ok(None),
            },
        };
        let kept = kept(&listed.annotations);
        let metadata = listed.metadata.unwrap_or_default();
        Ok(Some(Container {
            id,
            pod: PodId(listed.sandbox_id),
            name: metadata.name,
            attempt: metadata.attempt,
            image: kept.image,
            image_name: kept.image_name,
            created: time(listed.created_at),
            state: state(&status),
            labels: given(&listed.labels),
            annotations: given(&listed.annotations),
            log_path: pod.log_directory.join(Utf8PathBuf::from(kept.log_path)),
        }))
    }

    pub(super) async fn create(
        &self,
        pod: &PodId,
        spec: &ContainerSpec,
    ) -> Result<ContainerId, RuntimeError> {
        let sandbox = self.sandbox(pod).await?;
        let is_same = |one: &ListedContainer| {
            let metadata = one.metadata.as_ref();
            metadata.is_some_and(|known| known.name == spec.name && known.attempt == spec.attempt)
        };
        if let Some(there) = self.containers(&pod.0).await?.into_iter().find(is_same) {
            return Ok(ContainerId(there.id));
        }
        if sandbox.state != 0 {
            return Err(RuntimeError::Invalid(format!("pod {pod} is stopped")));
        }
        let (pod_spec, sandbox) = pods::config_of(&sandbox, &self.config)?;
        make_log_folder(&pod_spec, spec).await?;
        let request = CreateContainerRequest {
            sandbox_id: pod.0.clone(),
            config: Some(container(spec, &pod_spec, &self.config)?),
            sandbox: Some(sandbox),
        };
        let path = "/runtime.v1.RuntimeService/CreateContainer";
        let made: Result<ContainerById, _> = self.client.call(path, request, CALL).await;
        let made = made.map_err(|status| explain("image", &spec.image, &status))?;
        let id = ContainerId(made.id);
        self.tell(pod, Some(&id));
        Ok(id)
    }

    pub(super) async fn start(&self, id: &ContainerId) -> Result<(), RuntimeError> {
        if self.existing(id).await?.state != CREATED {
            return Ok(());
        }
        let request = ContainerById { id: id.0.clone() };
        let path = "/runtime.v1.RuntimeService/StartContainer";
        let started: Result<Empty, _> = self.client.call(path, request, CALL).await;
        let started = started.map(|Empty {}| ());
        let Err(refusal) = started else {
            return Ok(());
        };
        match self.status(id).await?.map(|status| state(&status)) {
            // It was made and could not run, which is written down over there.
            Some(ContainerState::Exited(ended)) => Err(RuntimeError::CannotRun {
                program: id.to_string(),
                cause: if ended.message.is_empty() {
                    refusal.message().to_owned()
                } else {
                    ended.message
                },
            }),
            _ => Err(explain("container", &id.0, &refusal)),
        }
    }

    pub(super) async fn stop(&self, id: &ContainerId, grace: Duration) -> Result<(), RuntimeError> {
        match self.status(id).await? {
            Some(status) if status.state == RUNNING => {}
            _ => return Ok(()),
        }
        // Rounded up: no program gets less than it was promised.
        let seconds = grace.as_secs() + u64::from(grace.subsec_nanos() > 0);
        let request = StopContainerRequest {
            id: id.0.clone(),
            timeout_seconds: i64::try_from(seconds).unwrap_or(i64::MAX),
        };
        let path = "/runtime.v1.RuntimeService/StopContainer";
        let limit = grace.saturating_add(KILL_LIMIT);
        let stopped: Result<Empty, _> = self.client.call(path, request, limit).await;
        match stopped {
            Ok(Empty {}) => Ok(()),
            Err(status) if is_missing(&status) => Ok(()),
            Err(status) => Err(explain("container", &id.0, &status)),
        }
    }

    pub(super) async fn remove(&self, id: &ContainerId) -> Result<(), RuntimeError> {
        self.stop(id, Duration::ZERO).await?;
        let request = ContainerById { id: id.0.clone() };
        let path = "/runtime.v1.RuntimeService/RemoveContainer";
        let removed: Result<Empty, _> = self.client.call(path, request, CALL).await;
        match removed {
            Ok(Empty {}) => {}
            Err(status) if is_missing(&status) => {}
            Err(status) => return Err(explain("container", &id.0, &status)),
        }
        self.known().statuses.remove(id);
        Ok(())
    }

    pub(super) async fn update(
        &self,
        id: &ContainerId,
        resources: &Resources,
    ) -> Result<(), RuntimeError> {
        let os = self.config.os;
        let processors = self.config.processors;
        let request = UpdateResourcesRequest {
            id: id.0.clone(),
            linux: (os == Os::Linux).then(|| linux_resources(resources)),
            windows: (os == Os::Windows).then(|| windows_resources(resources, processors)),
        };
        let path = "/runtime.v1.RuntimeService/UpdateContainerResources";
        let updated: Result<Empty, _> = self.client.call(path, request, CALL).await;
        let updated = updated.map_err(|status| explain("container", &id.0, &status))?;
        let Empty {} = updated;
        Ok(())
    }

    pub(super) async fn reopen_log(&self, id: &ContainerId) -> Result<(), RuntimeError> {
        let request = ContainerById { id: id.0.clone() };
        let path = "/runtime.v1.RuntimeService/ReopenContainerLog";
        let reopened: Result<Empty, _> = self.client.call(path, request, CALL).await;
        let reopened = reopened.map_err(|status| explain("container", &id.0, &status))?;
        let Empty {} = reopened;
        Ok(())
    }
}

/// The other runtime writes the log; its folder is ours to make.
async fn make_log_folder(pod: &PodSpec, spec: &ContainerSpec) -> Result<(), RuntimeError> {
    let log = pod.log_directory.join(&spec.log_path);
    let folder = log.parent().unwrap_or(&pod.log_directory);
    let made = fs_err::tokio::create_dir_all(folder).await;
    made.map_err(|error| RuntimeError::io("make the folder of the log", error))
}
