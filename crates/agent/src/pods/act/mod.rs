//! Carries out the steps that were decided. Each may be repeated; what fails is remembered and tried again.

mod kill;
mod resize;
mod start;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use camino::Utf8Path;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use transom_host::files::{FileError, path};
use transom_runtime::{PodId, RuntimeError};

use super::{
    checkpoint,
    decide::Step,
    memory::{Failure, Memory, Volumes},
};
use crate::{
    compose::sandbox_spec, events::about_pod, observer::Sandboxes, site::Site,
    volumes::ensure_volumes,
};

/// When something that failed is tried again.
const RETRY: Duration = Duration::from_secs(10);

/// What steps work on.
#[derive(Clone, Copy)]
pub(crate) struct Bench<'a> {
    pub(crate) site: &'a Arc<Site>,
    pub(crate) pod: &'a Pod,
    pub(crate) sandboxes: &'a Sandboxes,
    pub(crate) memory: &'a Mutex<Memory>,
}

impl Bench<'_> {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn retry(&self, after: Duration) -> Timestamp {
        let now = self.site.options.clock.now();
        now.checked_add(after).unwrap_or(now)
    }

    /// The addresses of the pod, or of the node for pods in its network.
    fn addresses(&self) -> Vec<String> {
        pod_addresses(self.site, self.pod, self.sandboxes)
    }
}

pub(crate) fn pod_addresses(site: &Site, pod: &Pod, sandboxes: &Sandboxes) -> Vec<String> {
    if pod
        .spec
        .as_ref()
        .is_some_and(|spec| spec.host_network == Some(true))
    {
        return site.place().addresses.clone();
    }
    let newest = sandboxes.first();
    newest
        .map(|pod| pod.addresses.iter().map(ToString::to_string).collect())
        .unwrap_or_default()
}

/// Does the steps in turn. An error is one that nothing else remembers: all is decided again after a pause.
pub(crate) async fn execute(bench: Bench<'_>, steps: &[Step]) -> Result<(), RuntimeError> {
    let runtime = &bench.site.options.runtime;
    for step in steps {
        match step {
            Step::MountVolumes => mount_volumes(bench).await,
            Step::StartSandbox { attempt } => start_sandbox(bench, *attempt).await,
            Step::StopSandbox(id) => gone(runtime.stop_pod(id).await)?,
            Step::RemoveSandbox(id) => gone(runtime.remove_pod(id).await)?,
            Step::Start(start) => start::start(bench, start).await,
            Step::Kill(kills) => kill::kill_all(bench, kills).await?,
            Step::Resize(changes) => resize::resize(bench, changes).await?,
            Step::Forget(containers) => {
                for id in containers {
                    forget(bench, id).await?;
                }
            }
            Step::CleanUp => clean_up(bench).await?,
        }
    }
    Ok(())
}

/// What is gone already is fine.
fn gone(answer: Result<(), RuntimeError>) -> Result<(), RuntimeError> {
    match answer {
        Err(RuntimeError::NotFound { .. }) => Ok(()),
        other => other,
    }
}

async fn mount_volumes(bench: Bench<'_>) {
    let mounted = ensure_volumes(bench.site, bench.pod, &bench.addresses()).await;
    let volumes = match mounted {
        Ok(()) => {
            checkpoint::save(bench.site, bench.pod).await;
            Volumes::Ready
        }
        Err(error) => {
            let message = error.to_string();
            bench
                .site
                .events
                .warning(about_pod(bench.pod), "FailedMount", message.clone());
            let retry = bench.retry(Duration::from_secs(2));
            Volumes::Failed(Failure {
                reason: "FailedMount",
                message,
                retry,
            })
        }
    };
    bench.memory().volumes = volumes;
}

async fn start_sandbox(bench: Bench<'_>, attempt: u32) {
    let site = bench.site;
    let _permit = site.starts.acquire().await;
    if attempt > 0 {
        let text = "Pod sandbox changed, it will be killed and re-created.";
        site.events
            .normal(about_pod(bench.pod), "SandboxChanged", text.to_owned());
    }
    let options = &site.options;
    let spec = sandbox_spec(bench.pod, attempt, site.os, &options.logs, &options.dns);
    let started = match options.files.create_dir_all(&spec.log_directory) {
        Ok(()) => options.runtime.start_pod(&spec).await,
        Err(error) => Err(RuntimeError::Other(error.to_string())),
    };
    let failure = started.err().map(|error| {
        let message = format!("Failed to create pod sandbox: {error}");
        site.events.warning(
            about_pod(bench.pod),
            "FailedCreatePodSandBox",
            message.clone(),
        );
        Failure {
            reason: "FailedCreatePodSandBox",
            message,
            retry: bench.retry(RETRY),
        }
    });
    bench.memory().sandbox = failure;
}

async fn forget(bench: Bench<'_>, id: &transom_runtime::ContainerId) -> Result<(), RuntimeError> {
    let containers = bench
        .sandboxes
        .iter()
        .flat_map(|sandbox| &sandbox.containers);
    let log = containers
        .into_iter()
        .find(|one| one.id == *id)
        .map(|one| one.log_path.clone());
    gone(bench.site.options.runtime.remove_container(id).await)?;
    let Some(log) = log else { return Ok(()) };
    let site = Arc::clone(bench.site);
    let removed = tokio::task::spawn_blocking(move || remove_log(&site, &log)).await;
    removed
        .map_err(|error| RuntimeError::Other(error.to_string()))?
        .map_err(|error| RuntimeError::Other(error.to_string()))
}

/// Removes the log of a container with the older parts of it, whose names go on with a point and a time.
fn remove_log(site: &Site, log: &Utf8Path) -> Result<(), FileError> {
    let files = &site.options.files;
    if let Some((folder, name)) = path::split(site.os, log) {
        let older = format!("{name}.");
        let entries = match files.names(&folder) {
            Ok(entries) => entries,
            Err(FileError::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        for entry in entries.iter().filter(|one| one.name.starts_with(&older)) {
            files.remove_file(&path::join(site.os, &folder, &entry.name))?;
        }
    }
    files.remove_file(log)
}

/// Removes volumes, logs and all else that was kept for a pod. The checkpoint goes last, with the folder.
async fn clean_up(bench: Bench<'_>) -> Result<(), RuntimeError> {
    let site = Arc::clone(bench.site);
    let uid = bench.pod.metadata.uid.clone().unwrap_or_default();
    let logs = crate::compose::log_folder(site.os, &site.options.logs, bench.pod);
    site.tokens.forget(&uid);
    site.config.forget_pod(&uid);
    let work = move || {
        site.options.files.remove_tree(&logs)?;
        if uid.is_empty() {
            Ok(())
        } else {
            site.options.files.remove_tree(&site.pod_folder(&uid))
        }
    };
    let removed = tokio::task::spawn_blocking(work).await;
    removed
        .map_err(|error| RuntimeError::Other(error.to_string()))?
        .map_err(|error| RuntimeError::Other(error.to_string()))?;
    bench.memory().cleaned = true;
    Ok(())
}

/// The sandbox that a container is to run in.
fn current(bench: Bench<'_>) -> Option<PodId> {
    bench.sandboxes.first().map(|sandbox| sandbox.id.clone())
}
