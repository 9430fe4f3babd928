//! Starts one container: image, description, creation, start, hook. The first that fails is what it waits for.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod};
use transom_host::files::path;
use transom_runtime::{ContainerId, RuntimeError};

use super::{Bench, RETRY, current};
use crate::{
    compose::{ComposeError, Ingredients, Sources, container_spec, environment, service_variables},
    config::Variables,
    events::about_container,
    hooks,
    images::ensure_image,
    pods::{
        back_off::Pause,
        checkpoint,
        decide::Start,
        memory::Failure,
        resize,
        view::{Kind, find},
    },
    site::Site,
    volumes::container_mounts,
};

/// How long the reason of a failed pull is shown before the pause is.
const SHOWN: Duration = Duration::from_secs(2);
/// How long a start waits for the services of the cluster to be known.
const SERVICES: Duration = Duration::from_secs(1);

/// Why a container does not run.
struct Refusal {
    reason: &'static str,
    message: String,
    retry: Duration,
}

impl Refusal {
    fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            retry: RETRY,
        }
    }
}

pub(super) async fn start(bench: Bench<'_>, start: &Start) {
    let Some((kind, mut container)) = find(bench.pod, &start.name) else {
        return;
    };
    // What is wanted beyond that waits until the node has room for it.
    container.resources = resize::allocated(&bench.memory(), &container);
    if let Some(after) = start.after {
        let now = bench.site.options.clock.now();
        let mut memory = bench.memory();
        let pause = Pause::next(memory.restarts.get(&start.name).copied(), after, now);
        memory.restarts.insert(start.name.clone(), pause);
    }
    bench.memory().starting.insert(start.name.clone());
    let begun = begin(bench, kind, &container, start.attempt).await;
    let mut memory = bench.memory();
    memory.starting.remove(&start.name);
    match begun {
        Ok(()) => {
            memory.failures.remove(&start.name);
        }
        Err(refusal) => {
            let retry = bench.retry(refusal.retry);
            let failure = Failure {
                reason: refusal.reason,
                message: refusal.message,
                retry,
            };
            memory.failures.insert(start.name.clone(), failure);
        }
    }
}

async fn begin(
    bench: Bench<'_>,
    kind: Kind,
    container: &Container,
    attempt: u32,
) -> Result<(), Refusal> {
    let site = bench.site;
    let image = ensure_image(site, bench.pod, kind, container, bench.memory)
        .await
        .map_err(|no| Refusal {
            reason: no.reason,
            message: no.message,
            retry: if no.reason == "ErrImagePull" {
                SHOWN
            } else {
                RETRY
            },
        })?;
    let about = || about_container(bench.pod, kind, &container.name);
    let fail = |reason: &'static str, message: String| {
        site.events
            .warning(about(), "Failed", format!("Error: {message}"));
        Refusal::new(reason, message)
    };
    let Some(sandbox) = current(bench) else {
        return Err(Refusal::new(
            "ContainerCreating",
            "the sandbox of the pod is gone",
        ));
    };
    let _permit = site.starts.acquire().await;
    let addresses = bench.addresses();
    let described = describe(bench, container, attempt, &image, &addresses).await;
    let spec = described.map_err(|error| fail("CreateContainerConfigError", error.to_string()))?;
    checkpoint::save(site, bench.pod).await;
    let runtime = &site.options.runtime;
    let id = match runtime.create_container(&sandbox, &spec).await {
        Ok(id) => id,
        Err(error) => return Err(fail("CreateContainerError", error.to_string())),
    };
    let given = container.resources.clone().unwrap_or_default();
    {
        let mut memory = bench.memory();
        memory.given.insert(id.clone(), given.clone());
        memory
            .allocated
            .entry(container.name.clone())
            .or_insert(given);
    }
    site.events
        .normal(about(), "Created", "Container created".to_owned());
    if let Some(target) = unseen_target(bench.pod, &container.name) {
        let message = format!(
            "targetContainerName has no effect on this node: the processes of container {target} are seen only in a pod with shareProcessNamespace"
        );
        site.events.warning(about(), "TargetNotSupported", message);
    }
    if let Err(error) = runtime.start_container(&id).await {
        let message = match error {
            RuntimeError::CannotRun { .. } => error.to_string(),
            other => format!("failed to start container \"{id}\": {other}"),
        };
        return Err(fail("RunContainerError", message));
    }
    site.events
        .normal(about(), "Started", "Container started".to_owned());
    bench.memory().failures.remove(&container.name);
    after_start(bench, kind, container, &id, &addresses).await
}

/// The container that an ephemeral one is to look into, and cannot.
fn unseen_target<'a>(pod: &'a Pod, name: &str) -> Option<&'a str> {
    let spec = pod.spec.as_ref()?;
    let is_seen = spec.share_process_namespace == Some(true) || spec.host_pid == Some(true);
    let mut ephemeral = spec.ephemeral_containers.iter().flatten();
    let target = ephemeral
        .find(|one| one.name == name)?
        .target_container_name
        .as_deref()?;
    Some(target).filter(|target| !is_seen && !target.is_empty())
}

async fn describe(
    bench: Bench<'_>,
    container: &Container,
    attempt: u32,
    image: &transom_runtime::Image,
    addresses: &[String],
) -> Result<transom_runtime::ContainerSpec, ComposeError> {
    let (site, pod) = (bench.site, bench.pod);
    let services = known_services(site, pod).await;
    let place = site.place();
    let sources = Sources {
        pod,
        config: &site.config,
        services: &services,
        pod_addresses: addresses,
        host_addresses: &place.addresses,
        node: site.allocatable,
    };
    let environment = environment(container, sources).await?;
    let mounts = container_mounts(site, pod, container, attempt, &environment, addresses)?;
    container_spec(Ingredients {
        pod,
        container,
        attempt,
        image,
        environment,
        mounts,
        os: site.os,
        memory_of_node: site.memory_bytes,
        seccomp_folder: path::join(site.os, &site.options.state, "seccomp"),
    })
}

/// What a pod is told of services; with the API away, what it was told before.
async fn known_services(site: &Site, pod: &Pod) -> Variables {
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let ready = tokio::time::timeout(SERVICES, site.services.wait_until_ready()).await;
    if !matches!(ready, Ok(Ok(()))) {
        return site.config.service_variables(uid);
    }
    let spec = pod.spec.as_ref();
    let links = spec
        .and_then(|spec| spec.enable_service_links)
        .unwrap_or(true);
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let all = site.services.state();
    let variables = service_variables(all.iter().map(AsRef::as_ref), namespace, links);
    site.config.set_service_variables(uid, variables.clone());
    variables
}

/// A hook that fails ends its container.
async fn after_start(
    bench: Bench<'_>,
    kind: Kind,
    container: &Container,
    id: &ContainerId,
    addresses: &[String],
) -> Result<(), Refusal> {
    let hook = container
        .lifecycle
        .as_ref()
        .and_then(|lifecycle| lifecycle.post_start.as_ref());
    let Some(hook) = hook else { return Ok(()) };
    let site = bench.site;
    let done = hooks::run(site, container, id, hook, addresses).await;
    let Err(error) = done else { return Ok(()) };
    tracing::debug!(container = container.name, %error, "a hook after a start failed");
    let about = || about_container(bench.pod, kind, &container.name);
    site.events.warning(
        about(),
        "FailedPostStartHook",
        "PostStartHook failed".to_owned(),
    );
    site.events
        .normal(about(), "Killing", "FailedPostStartHook".to_owned());
    let grace = bench
        .pod
        .spec
        .as_ref()
        .and_then(|spec| spec.termination_grace_period_seconds);
    let grace = Duration::from_secs(grace.unwrap_or(30).max(2).unsigned_abs());
    if let Err(error) = site.options.runtime.stop_container(id, grace).await {
        tracing::warn!(container = container.name, %error, "a container could not be stopped");
    }
    Err(Refusal::new("PostStartHookError", "PostStartHook failed"))
}
