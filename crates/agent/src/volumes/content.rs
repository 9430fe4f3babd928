//! The files of volumes that are made from objects: config maps, secrets, the pod itself, and tokens.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::{DownwardAPIVolumeFile, KeyToPath, Pod, Volume, VolumeProjection};

use crate::{
    compose::{ComposeError, field, resource_field},
    pods,
    site::Site,
};

const USUAL_MODE: i32 = 0o644;

#[derive(Clone, PartialEq, Eq)]
pub(super) struct File {
    pub(super) bytes: Vec<u8>,
    pub(super) mode: i32,
}

/// By path below the volume, with slashes.
pub(super) type Content = BTreeMap<String, File>;

type Data = BTreeMap<String, Vec<u8>>;

pub(super) async fn content(
    site: &Arc<Site>,
    pod: &Pod,
    volume: &Volume,
    addresses: &[String],
) -> Result<Content, ComposeError> {
    let mut content = Content::new();
    if let Some(source) = &volume.config_map {
        let mode = source.default_mode.unwrap_or(USUAL_MODE);
        let data = config_map(site, pod, &source.name, source.optional).await?;
        take(
            &mut content,
            "ConfigMap",
            pod,
            &source.name,
            data,
            source.items.as_deref(),
            source.optional,
            mode,
        )?;
    } else if let Some(source) = &volume.secret {
        let mode = source.default_mode.unwrap_or(USUAL_MODE);
        let name = source.secret_name.clone().unwrap_or_default();
        let data = secret(site, pod, &name, source.optional).await?;
        take(
            &mut content,
            "Secret",
            pod,
            &name,
            data,
            source.items.as_deref(),
            source.optional,
            mode,
        )?;
    } else if let Some(source) = &volume.downward_api {
        let mode = source.default_mode.unwrap_or(USUAL_MODE);
        downward(
            site,
            pod,
            source.items.as_deref(),
            addresses,
            mode,
            &mut content,
        )?;
    } else if let Some(source) = &volume.projected {
        let mode = source.default_mode.unwrap_or(USUAL_MODE);
        for one in source.sources.iter().flatten() {
            projection(site, pod, volume, one, addresses, mode, &mut content).await?;
        }
    }
    Ok(content)
}

async fn projection(
    site: &Arc<Site>,
    pod: &Pod,
    volume: &Volume,
    source: &VolumeProjection,
    addresses: &[String],
    mode: i32,
    content: &mut Content,
) -> Result<(), ComposeError> {
    if let Some(source) = &source.config_map {
        let data = config_map(site, pod, &source.name, source.optional).await?;
        take(
            content,
            "ConfigMap",
            pod,
            &source.name,
            data,
            source.items.as_deref(),
            source.optional,
            mode,
        )?;
    }
    if let Some(source) = &source.secret {
        let data = secret(site, pod, &source.name, source.optional).await?;
        take(
            content,
            "Secret",
            pod,
            &source.name,
            data,
            source.items.as_deref(),
            source.optional,
            mode,
        )?;
    }
    if let Some(source) = &source.downward_api {
        downward(site, pod, source.items.as_deref(), addresses, mode, content)?;
    }
    if let Some(source) = &source.service_account_token {
        let token = match site.tokens.token(site, pod, source).await {
            Ok(token) => token.into_bytes(),
            // With the API away the token that is there has to do.
            Err(ComposeError::Fault(fault)) if fault.is_silence() => {
                let folder = super::host_path(site, pod, volume);
                let path = transom_host::files::path::join(site.os, &folder, &source.path);
                let there = site.options.files.read(&path, super::LARGEST_FILE);
                there.map_err(|_| fault)?
            }
            Err(error) => return Err(error),
        };
        insert(content, &source.path, token, mode)?;
    }
    if source.cluster_trust_bundle.is_some() || source.pod_certificate.is_some() {
        return Err(ComposeError::Invalid(
            "this kind of projected source is not supported yet".to_owned(),
        ));
    }
    Ok(())
}

async fn config_map(
    site: &Site,
    pod: &Pod,
    name: &str,
    optional: Option<bool>,
) -> Result<Data, ComposeError> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let Some(map) = site.config.config_map(namespace, name).await? else {
        return missing("configmap", name, optional);
    };
    let text = map
        .data
        .into_iter()
        .flatten()
        .map(|(key, value)| (key, value.into_bytes()));
    let binary = map
        .binary_data
        .into_iter()
        .flatten()
        .map(|(key, value)| (key, value.0));
    Ok(text.chain(binary).collect())
}

async fn secret(
    site: &Site,
    pod: &Pod,
    name: &str,
    optional: Option<bool>,
) -> Result<Data, ComposeError> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let Some(secret) = site.config.secret(namespace, name).await? else {
        return missing("secret", name, optional);
    };
    Ok(secret
        .data
        .into_iter()
        .flatten()
        .map(|(key, value)| (key, value.0))
        .collect())
}

fn missing(kind: &'static str, name: &str, optional: Option<bool>) -> Result<Data, ComposeError> {
    if optional == Some(true) {
        return Ok(Data::new());
    }
    Err(ComposeError::Absent {
        kind,
        name: name.to_owned(),
    })
}

/// All keys, or those that are listed, under the paths they are given.
#[expect(
    clippy::too_many_arguments,
    reason = "two kinds of objects with the same many fields"
)]
fn take(
    content: &mut Content,
    kind: &'static str,
    pod: &Pod,
    name: &str,
    mut data: Data,
    items: Option<&[KeyToPath]>,
    optional: Option<bool>,
    mode: i32,
) -> Result<(), ComposeError> {
    let Some(items) = items.filter(|items| !items.is_empty()) else {
        for (key, bytes) in data {
            insert(content, &key, bytes, mode)?;
        }
        return Ok(());
    };
    for item in items {
        match data.remove(&item.key) {
            Some(bytes) => insert(content, &item.path, bytes, item.mode.unwrap_or(mode))?,
            None if optional == Some(true) => {}
            None => {
                let namespace = pod.metadata.namespace.clone().unwrap_or_default();
                let (name, key) = (name.to_owned(), item.key.clone());
                return Err(ComposeError::NoKey {
                    kind,
                    namespace,
                    name,
                    key,
                });
            }
        }
    }
    Ok(())
}

/// Paths come from people: none may lead out of the volume.
fn insert(
    content: &mut Content,
    path: &str,
    bytes: Vec<u8>,
    mode: i32,
) -> Result<(), ComposeError> {
    let parts: Vec<_> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    let is_bad = |part: &&str| *part == ".." || part.contains(['\\', ':', '\0']);
    if parts.is_empty() || path.starts_with('/') || parts.iter().any(is_bad) {
        return Err(ComposeError::Invalid(format!(
            "invalid path {path:?} in a volume"
        )));
    }
    content.insert(parts.join("/"), File { bytes, mode });
    Ok(())
}

fn downward(
    site: &Site,
    pod: &Pod,
    items: Option<&[DownwardAPIVolumeFile]>,
    addresses: &[String],
    mode: i32,
    content: &mut Content,
) -> Result<(), ComposeError> {
    let hosts = site.place().addresses.clone();
    for item in items.unwrap_or_default() {
        let text = if let Some(wanted) = &item.field_ref {
            field(pod, &wanted.field_path, addresses, &hosts)?
        } else if let Some(wanted) = &item.resource_field_ref {
            let name = wanted.container_name.as_deref().unwrap_or_default();
            let (_, container) = pods::find(pod, name)
                .ok_or_else(|| ComposeError::Invalid(format!("container {name} not found")))?;
            resource_field(&container, wanted, site.allocatable)?
        } else {
            continue;
        };
        insert(
            content,
            &item.path,
            text.into_bytes(),
            item.mode.unwrap_or(mode),
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leads_out_of_a_volume() {
        let mut content = Content::new();
        for path in ["../a", "a/../../b", "/a", "", "..", "a\\b", "c:x", "."] {
            assert!(insert(&mut content, path, Vec::new(), 0).is_err(), "{path}");
        }
        assert!(content.is_empty());
        for path in ["a", "a/b", "..data", "./x"] {
            assert!(insert(&mut content, path, Vec::new(), 0).is_ok(), "{path}");
        }
    }
}
