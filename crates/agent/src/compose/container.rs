//! A container as the runtime is asked for it.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use k8s_openapi::api::core::v1::{Container, Pod};
use transom_host::files::path;
use transom_model::Os;
use transom_runtime::{ContainerSpec, Image, Mount, Resources, Variable};

use super::{ComposeError, expand, security::security};
use crate::{pods::IMAGE_REFERENCE, resources};

/// What a container is made of, besides its own words.
#[derive(Debug)]
pub(crate) struct Ingredients<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) container: &'a Container,
    pub(crate) attempt: u32,
    pub(crate) image: &'a Image,
    pub(crate) environment: Vec<Variable>,
    pub(crate) mounts: Vec<Mount>,
    pub(crate) os: Os,
    pub(crate) memory_of_node: u64,
    pub(crate) seccomp_folder: Utf8PathBuf,
}

/// The folder of a pod's logs.
pub(crate) fn log_folder(os: Os, logs: &Utf8Path, pod: &Pod) -> Utf8PathBuf {
    let meta = &pod.metadata;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let name = format!(
        "{}_{}_{}",
        text(&meta.namespace),
        text(&meta.name),
        text(&meta.uid)
    );
    path::join(os, logs, &name)
}

/// Where a container logs to, below the folder of its pod.
pub(crate) fn log_path(os: Os, container: &str, attempt: u32) -> Utf8PathBuf {
    path::join(os, Utf8Path::new(container), &format!("{attempt}.log"))
}

pub(crate) fn container_spec(from: Ingredients<'_>) -> Result<ContainerSpec, ComposeError> {
    let (pod, container) = (from.pod, from.container);
    let values: BTreeMap<_, _> = from
        .environment
        .iter()
        .map(|one| (one.name.as_str(), one.value.as_str()))
        .collect();
    let expanded = |list: &Option<Vec<String>>| -> Vec<String> {
        let lookup = |name: &str| values.get(name).map(|value| (*value).to_owned());
        list.iter()
            .flatten()
            .map(|text| expand(text, lookup))
            .collect()
    };
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let labels = [
        ("io.kubernetes.container.name", container.name.clone()),
        ("io.kubernetes.pod.name", text(&pod.metadata.name)),
        ("io.kubernetes.pod.namespace", text(&pod.metadata.namespace)),
        ("io.kubernetes.pod.uid", text(&pod.metadata.uid)),
    ];
    let reference = from.image.digests.first().unwrap_or(&from.image.id).clone();
    let stop_signal = container
        .lifecycle
        .as_ref()
        .and_then(|one| one.stop_signal.clone());
    Ok(ContainerSpec {
        name: container.name.clone(),
        attempt: from.attempt,
        image: from.image.id.clone(),
        image_name: text(&container.image),
        command: expanded(&container.command),
        arguments: expanded(&container.args),
        working_directory: container
            .working_dir
            .clone()
            .filter(|folder| !folder.is_empty()),
        labels: labels.map(|(name, value)| (name.to_owned(), value)).into(),
        annotations: [(IMAGE_REFERENCE.to_owned(), reference)].into(),
        log_path: log_path(from.os, &container.name, from.attempt),
        stdin: container.stdin == Some(true),
        stdin_once: container.stdin_once == Some(true),
        terminal: container.tty == Some(true),
        resources: container_limits(pod, container, from.os, from.memory_of_node),
        security: security(pod, container, from.image, &from.seccomp_folder)?,
        stop_signal,
        environment: from.environment,
        mounts: from.mounts,
    })
}

/// How much of the machine a container may use.
pub(crate) fn container_limits(pod: &Pod, container: &Container, os: Os, memory: u64) -> Resources {
    let number = |limits: bool, name: &str| {
        let millis = resources::amount(container, limits, name)?;
        u64::try_from(millis).ok()
    };
    let limit = number(true, "cpu");
    Resources {
        cpu_request_millis: number(false, "cpu").or(limit),
        cpu_limit_millis: limit,
        memory_limit_bytes: number(true, "memory").map(|millis| millis / 1000),
        pids_limit: None,
        oom_score_adjustment: (os == Os::Linux)
            .then(|| resources::oom_score_adjustment(pod, container, memory)),
    }
}
