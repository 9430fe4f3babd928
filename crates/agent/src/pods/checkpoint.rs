//! What is kept of each pod so that it can be run with the API away: the pod and the objects it needs.
//!
//! A checkpoint is written before the first container starts and goes with the last trace of the pod.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::core::v1::{Container, Pod};
use serde::{Deserialize, Serialize};
use transom_host::files::{Access, FileError, Files, Kind, path};

use crate::{
    config::{Objects, Variables},
    site::Site,
};

const LARGEST: u64 = 64 << 20;
const NAME: &str = "checkpoint.json";

#[derive(Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    pub(crate) pod: Pod,
    /// Config maps and secrets: the file is secret as a whole.
    #[serde(default)]
    pub(crate) objects: Objects,
    /// What it was told of services.
    #[serde(default)]
    pub(crate) services: Variables,
}

/// Keeps a pod. A disk that fails is told and does not stop the pod: it only cannot be run offline.
pub(crate) async fn save(site: &Arc<Site>, pod: &Pod) {
    let objects = site.config.keep(keys(pod));
    let uid = pod.metadata.uid.clone().unwrap_or_default();
    let checkpoint = Checkpoint {
        pod: pod.clone(),
        objects,
        services: site.config.service_variables(&uid),
    };
    let here = Arc::clone(site);
    let written = tokio::task::spawn_blocking(move || write(&here, &uid, &checkpoint)).await;
    match written {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "a checkpoint could not be written"),
        Err(error) => tracing::warn!(%error, "a checkpoint could not be written"),
    }
}

fn write(site: &Site, uid: &str, checkpoint: &Checkpoint) -> Result<(), FileError> {
    if uid.is_empty() {
        return Ok(());
    }
    let files = &site.options.files;
    let folder = site.pod_folder(uid);
    files.create_dir_all(&folder)?;
    let target = path::join(site.os, &folder, NAME);
    let bytes = serde_json::to_vec(checkpoint).unwrap_or_default();
    if files
        .read(&target, LARGEST)
        .is_ok_and(|before| before == bytes)
    {
        return Ok(());
    }
    files.write_durable(&target, &bytes, Access::Secret)
}

/// All pods that were kept. What cannot be read is told and left alone.
pub(crate) fn load(site: &Site) -> Vec<Checkpoint> {
    let files = site.options.files.as_ref();
    let entries = match files.names(&site.pods_folder()) {
        Ok(entries) => entries,
        Err(FileError::NotFound { .. }) => return Vec::new(),
        Err(error) => {
            tracing::warn!(%error, "checkpoints could not be listed");
            return Vec::new();
        }
    };
    let folders = entries.into_iter().filter(|entry| entry.kind == Kind::Dir);
    folders
        .filter_map(|entry| read(site, files, &entry.name))
        .collect()
}

fn read(site: &Site, files: &dyn Files, uid: &str) -> Option<Checkpoint> {
    let target = path::join(site.os, &site.pod_folder(uid), NAME);
    let bytes = match files.read(&target, LARGEST) {
        Ok(bytes) => bytes,
        Err(FileError::NotFound { .. }) => return None,
        Err(error) => {
            tracing::warn!(%error, "a checkpoint could not be read");
            return None;
        }
    };
    match serde_json::from_slice::<Checkpoint>(&bytes) {
        Ok(checkpoint) => Some(checkpoint),
        Err(error) => {
            tracing::warn!(%target, %error, "a checkpoint makes no sense");
            None
        }
    }
}

/// The objects a pod refers to, as [`Config`](crate::config::Config) calls them.
fn keys(pod: &Pod) -> Vec<String> {
    let mut names: BTreeSet<(&str, String)> = BTreeSet::new();
    let Some(spec) = &pod.spec else {
        return Vec::new();
    };
    let all = spec
        .containers
        .iter()
        .chain(spec.init_containers.iter().flatten());
    for container in all {
        of_environment(container, &mut names);
    }
    for volume in spec.volumes.iter().flatten() {
        let projected = volume
            .projected
            .iter()
            .flat_map(|one| one.sources.iter().flatten());
        for source in projected {
            names.extend(
                source
                    .config_map
                    .iter()
                    .map(|one| ("ConfigMap", one.name.clone())),
            );
            names.extend(source.secret.iter().map(|one| ("Secret", one.name.clone())));
        }
        names.extend(
            volume
                .config_map
                .iter()
                .map(|one| ("ConfigMap", one.name.clone())),
        );
        let secret = volume
            .secret
            .as_ref()
            .and_then(|one| one.secret_name.clone());
        names.extend(secret.map(|name| ("Secret", name)));
    }
    for secret in spec.image_pull_secrets.iter().flatten() {
        names.insert(("Secret", secret.name.clone()));
    }
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    names
        .into_iter()
        .map(|(kind, name)| format!("{kind}/{namespace}/{name}"))
        .collect()
}

fn of_environment(container: &Container, names: &mut BTreeSet<(&'static str, String)>) {
    for source in container.env_from.iter().flatten() {
        names.extend(
            source
                .config_map_ref
                .iter()
                .map(|one| ("ConfigMap", one.name.clone())),
        );
        names.extend(
            source
                .secret_ref
                .iter()
                .map(|one| ("Secret", one.name.clone())),
        );
    }
    for source in container
        .env
        .iter()
        .flatten()
        .filter_map(|one| one.value_from.as_ref())
    {
        names.extend(
            source
                .config_map_key_ref
                .iter()
                .map(|one| ("ConfigMap", one.name.clone())),
        );
        names.extend(
            source
                .secret_key_ref
                .iter()
                .map(|one| ("Secret", one.name.clone())),
        );
    }
}
