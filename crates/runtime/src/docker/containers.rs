//! Containers of pods.

use std::sync::Arc;
use std::time::Duration;

use hyper::{Method, StatusCode};
use jiff::Timestamp;
use transom_model::os::Os;

use super::Inner;
use super::client::{CALL, encode};
use super::labels::{self, Kept, Part};
use super::translate::{container, resources};
use super::wire::{Inspected, Listed, Made};
use crate::{
    Container, ContainerId, ContainerSpec, ContainerState, Ended, PodId, PodSpec, Resources,
    RuntimeError, Seccomp,
};

/// How much longer than its grace the end of a container may take.
const KILL_LIMIT: Duration = Duration::from_mins(1);
/// Between two looks whether something is gone.
const PAUSE: Duration = Duration::from_millis(50);
/// What Docker says of a program that could not be started if it says nothing.
const CANNOT_RUN: i32 = 128;

impl Inner {
    pub(super) async fn existing(&self, id: &ContainerId) -> Result<Arc<Inspected>, RuntimeError> {
        let found = self.inspect(&id.0).await?;
        found.ok_or_else(|| RuntimeError::NotFound {
            what: "container",
            id: id.to_string(),
        })
    }

    /// A container as the agent sees it. One has ended only when all that it said is in its log.
    pub(super) async fn describe_container(
        self: &Arc<Self>,
        one: &Inspected,
        pod: PodId,
        kept: Kept,
    ) -> Result<Container, RuntimeError> {
        let state = state(one);
        match &state {
            ContainerState::Created => {}
            ContainerState::Running { .. } => self.follow_log(one, &kept.log_path)?,
            ContainerState::Exited(ended) if ended.started.is_none() => {}
            ContainerState::Exited(_) => self.finish_log(one, &kept.log_path).await?,
        }
        Ok(Container {
            id: ContainerId(one.id.clone()),
            pod,
            name: kept.name,
            attempt: kept.attempt,
            image: kept.image,
            image_name: kept.image_name,
            created: time(&one.created).unwrap_or_default(),
            state,
            labels: kept.labels,
            annotations: kept.annotations,
            log_path: kept.log_path,
        })
    }

    pub(super) async fn create(
        &self,
        pod: &PodId,
        spec: &ContainerSpec,
    ) -> Result<ContainerId, RuntimeError> {
        let lost = || RuntimeError::NotFound {
            what: "pod",
            id: pod.to_string(),
        };
        let sandbox = self.inspect(&pod.0).await?.ok_or_else(lost)?;
        let Ok(Part::Pod(pod_spec)) = labels::read(&sandbox.config.labels) else {
            return Err(lost());
        };
        if let Some(there) = self.find_container(pod, spec).await? {
            return Ok(there);
        }
        if sandbox.state.status != "running" {
            return Err(RuntimeError::Invalid(format!("pod {pod} is stopped")));
        }
        make_log_folder(&pod_spec, spec).await?;
        let profile = read_profile(&spec.security.seccomp).await?;
        let mountable = self.mountable(spec).await;
        let os = self.config.os;
        let body = container(&mountable, &pod_spec, &pod.0, os, profile.as_deref())?;
        let name = labels::name_of_container(spec, &pod_spec, &pod.0);
        let path = format!("/containers/create?name={}", encode(&name));
        let id = match self.client.post::<Made>(&path, &body).await {
            Ok(made) => ContainerId(made.id),
            Err(fault) if fault.is(StatusCode::CONFLICT) => {
                let there = self.find_container(pod, spec).await?;
                there.ok_or_else(|| fault.explain("container", &spec.name))?
            }
            Err(fault) if fault.is_missing() => {
                return Err(RuntimeError::ImageMissing {
                    reference: spec.image.clone(),
                });
            }
            Err(fault) => return Err(fault.explain("container", &spec.name)),
        };
        self.tell(pod, Some(&id));
        Ok(id)
    }

    async fn find_container(
        &self,
        pod: &PodId,
        spec: &ContainerSpec,
    ) -> Result<Option<ContainerId>, RuntimeError> {
        let is_same = |one: &Listed| {
            matches!(labels::read(&one.labels), Ok(Part::Container { kept, .. })
                if kept.name == spec.name && kept.attempt == spec.attempt)
        };
        let found = self.list(Some(pod)).await?.into_iter().find(is_same);
        Ok(found.map(|one| ContainerId(one.id)))
    }

    /// The same container without what its system cannot mount: on Windows only folders can be.
    async fn mountable(&self, spec: &ContainerSpec) -> ContainerSpec {
        let mut spec = spec.clone();
        if self.config.os == Os::Windows {
            let mut folders = Vec::new();
            for mount in std::mem::take(&mut spec.mounts) {
                let is_file = fs_err::tokio::metadata(&mount.host_path)
                    .await
                    .is_ok_and(|found| found.is_file());
                if is_file {
                    let path = mount.container_path;
                    tracing::debug!(path, "docker mounts no single files on Windows");
                } else {
                    folders.push(mount);
                }
            }
            spec.mounts = folders;
        }
        spec
    }

    pub(super) async fn start(self: &Arc<Self>, id: &ContainerId) -> Result<(), RuntimeError> {
        let found = self.existing(id).await?;
        match state(&found) {
            ContainerState::Created => {}
            ContainerState::Running { .. } => return Ok(()),
            ContainerState::Exited(ended) if ended.started.is_some() => return Ok(()),
            ContainerState::Exited(ended) => return Err(cannot_run(&found, ended.message)),
        }
        let path = format!("/containers/{id}/start");
        let started = self.client.act(Method::POST, &path, CALL).await;
        let now = self.existing(id).await?;
        match (started, state(&now)) {
            (Ok(()), _) => {
                let Part::Container { kept, .. } = labels::read(&now.config.labels)? else {
                    return Ok(());
                };
                self.follow_log(&now, &kept.log_path)
            }
            // It was made and could not run, which is written down over there.
            (Err(_), ContainerState::Exited(ended)) => Err(cannot_run(&now, ended.message)),
            (Err(fault), _) => Err(fault.explain("container", &id.0)),
        }
    }

    pub(super) async fn stop(&self, id: &ContainerId, grace: Duration) -> Result<(), RuntimeError> {
        if grace.is_zero() {
            return self.kill(&id.0).await;
        }
        if self.inspect(&id.0).await?.is_none() {
            return Ok(());
        }
        // Rounded up: no program gets less than it was promised.
        let seconds = grace.as_secs() + u64::from(grace.subsec_nanos() > 0);
        let path = format!("/containers/{}/stop?t={seconds}", encode(&id.0));
        let limit = grace.saturating_add(KILL_LIMIT);
        match self.client.act(Method::POST, &path, limit).await {
            Err(fault) if !fault.is_missing() => Err(fault.explain("container", &id.0)),
            _ => Ok(()),
        }
    }

    /// Ends a container at once. One that does not run is fine.
    pub(super) async fn kill(&self, id: &str) -> Result<(), RuntimeError> {
        if self.inspect(id).await?.is_none() {
            return Ok(());
        }
        let path = format!("/containers/{}/kill", encode(id));
        match self.client.act(Method::POST, &path, KILL_LIMIT).await {
            Err(fault) if !fault.is_missing() && !fault.is(StatusCode::CONFLICT) => {
                Err(fault.explain("container", id))
            }
            _ => Ok(()),
        }
    }

    pub(super) async fn remove(self: &Arc<Self>, id: &ContainerId) -> Result<(), RuntimeError> {
        self.kill(&id.0).await?;
        let Some(found) = self.inspect(&id.0).await? else {
            return Ok(());
        };
        if let Ok(Part::Container { kept, .. }) = labels::read(&found.config.labels)
            && time(&found.state.started_at).is_some()
        {
            self.finish_log(&found, &kept.log_path).await?;
        }
        self.delete(&id.0).await
    }

    /// Removes a container over there, and returns when it is gone.
    pub(super) async fn delete(&self, id: &str) -> Result<(), RuntimeError> {
        if self.inspect(id).await?.is_none() {
            return Ok(());
        }
        let path = format!("/containers/{}?force=1&v=1", encode(id));
        match self.client.act(Method::DELETE, &path, CALL).await {
            // Somebody else is about to.
            Err(fault) if fault.is(StatusCode::CONFLICT) => self.wait_until_gone(id).await?,
            Err(fault) if !fault.is_missing() => return Err(fault.explain("container", id)),
            _ => {}
        }
        self.known().remove(id);
        Ok(())
    }

    async fn wait_until_gone(&self, id: &str) -> Result<(), RuntimeError> {
        let gone = async {
            while self.inspect(id).await?.is_some() {
                tokio::time::sleep(PAUSE).await;
            }
            Ok(())
        };
        let late = || RuntimeError::Other(format!("container {id} is not gone in time"));
        let waited = tokio::time::timeout(KILL_LIMIT, gone).await;
        waited.unwrap_or_else(|_| Err(late()))
    }

    pub(super) async fn update(
        &self,
        id: &ContainerId,
        wanted: &Resources,
    ) -> Result<(), RuntimeError> {
        let path = format!("/containers/{}/update", encode(&id.0));
        let body = resources(wanted, self.config.os);
        let updated = self.client.post::<serde_json::Value>(&path, &body).await;
        updated
            .map(drop)
            .map_err(|fault| fault.explain("container", &id.0))
    }
}

fn cannot_run(found: &Inspected, cause: String) -> RuntimeError {
    RuntimeError::CannotRun {
        program: found.path.clone(),
        cause,
    }
}

async fn make_log_folder(pod: &PodSpec, spec: &ContainerSpec) -> Result<(), RuntimeError> {
    let log = pod.log_directory.join(&spec.log_path);
    let folder = log.parent().unwrap_or(&pod.log_directory);
    let made = fs_err::tokio::create_dir_all(folder).await;
    made.map_err(|error| RuntimeError::io("make the folder of the log", error))
}

async fn read_profile(seccomp: &Seccomp) -> Result<Option<String>, RuntimeError> {
    let Seccomp::Localhost(path) = seccomp else {
        return Ok(None);
    };
    let read = fs_err::tokio::read_to_string(path).await;
    let read = read.map_err(|error| RuntimeError::io("read a seccomp profile", error))?;
    Ok(Some(read))
}

/// A time as Docker writes it; `None` for one that has not come.
pub(super) fn time(text: &str) -> Option<Timestamp> {
    let time: Timestamp = text.parse().ok()?;
    (time > Timestamp::UNIX_EPOCH).then_some(time)
}

pub(super) fn state(one: &Inspected) -> ContainerState {
    let state = &one.state;
    match state.status.as_str() {
        "created" if state.error.is_empty() => ContainerState::Created,
        "running" | "paused" | "restarting" => ContainerState::Running {
            started: time(&state.started_at).unwrap_or_default(),
        },
        _ => ContainerState::Exited(ended(one)),
    }
}

fn ended(one: &Inspected) -> Ended {
    let state = &one.state;
    let started = time(&state.started_at);
    let created = time(&one.created).unwrap_or_default();
    let finished = time(&state.finished_at).unwrap_or(created);
    // Windows has codes beyond what is signed: the same bits, as everybody there reads them.
    let code = i32::try_from(state.exit_code)
        .or_else(|_| u32::try_from(state.exit_code).map(u32::cast_signed))
        .unwrap_or(i32::MAX);
    let (exit_code, reason) = match (started, code) {
        (None, 0) => (CANNOT_RUN, "ContainerCannotRun"),
        (None, code) => (code, "ContainerCannotRun"),
        (Some(_), code) if state.oom_killed => (code, "OOMKilled"),
        (Some(_), 0) => (0, "Completed"),
        (Some(_), code) => (code, "Error"),
    };
    Ended {
        started,
        finished: started.map_or(finished, |started| finished.max(started)),
        exit_code,
        reason: reason.to_owned(),
        message: state.error.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inspected(status: &str, exit_code: i64) -> Inspected {
        let mut one = Inspected {
            created: "2026-01-01T00:00:00Z".to_owned(),
            ..Inspected::default()
        };
        status.clone_into(&mut one.state.status);
        one.state.exit_code = exit_code;
        "2026-01-01T00:00:01.5Z".clone_into(&mut one.state.started_at);
        "2026-01-01T00:00:02Z".clone_into(&mut one.state.finished_at);
        one
    }

    fn end(one: &Inspected) -> (i32, String, bool) {
        let ContainerState::Exited(ended) = state(one) else {
            panic!("it has ended");
        };
        (ended.exit_code, ended.reason, ended.started.is_some())
    }

    #[test]
    fn ends_are_told_in_our_words() {
        assert_eq!(
            end(&inspected("exited", 0)),
            (0, "Completed".to_owned(), true)
        );
        assert_eq!(end(&inspected("dead", 3)), (3, "Error".to_owned(), true));
        let mut full = inspected("exited", 137);
        full.state.oom_killed = true;
        assert_eq!(end(&full), (137, "OOMKilled".to_owned(), true));
        // Of Windows: an access violation.
        let code = end(&inspected("exited", 0xc000_0005)).0;
        assert_eq!(code.cast_unsigned(), 0xc000_0005);
    }

    #[test]
    fn what_could_not_start_has_ended_and_never_ran() {
        let mut one = inspected("created", 127);
        "0001-01-01T00:00:00Z".clone_into(&mut one.state.started_at);
        "0001-01-01T00:00:00Z".clone_into(&mut one.state.finished_at);
        assert_eq!(state(&one), ContainerState::Created);
        "no such file".clone_into(&mut one.state.error);
        assert_eq!(end(&one), (127, "ContainerCannotRun".to_owned(), false));
    }
}
