//! What a container sees of the node: its volumes, its hosts file, and a file for its last words.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use k8s_openapi::api::core::v1::{Container, Pod, VolumeMount};
use transom_host::files::{Access, FileError, Kind, path};
use transom_model::Os;
use transom_runtime::{Mount, Propagation, Variable};

use super::host_path;
use crate::{
    compose::{ComposeError, expand, hosts_file},
    site::Site,
};

/// Where a container's last words are kept on the node.
pub(crate) fn termination_path(
    site: &Site,
    pod: &Pod,
    container: &str,
    attempt: u32,
) -> Utf8PathBuf {
    site.below_pod(
        pod,
        &format!("containers/{container}/{attempt}.termination"),
    )
}

/// All mounts of a container. Makes the files among them.
pub(crate) fn container_mounts(
    site: &Site,
    pod: &Pod,
    container: &Container,
    attempt: u32,
    environment: &[Variable],
    addresses: &[String],
) -> Result<Vec<Mount>, ComposeError> {
    let values: BTreeMap<_, _> = environment
        .iter()
        .map(|one| (one.name.as_str(), one.value.as_str()))
        .collect();
    let mut mounts = Vec::new();
    for (index, mount) in container.volume_mounts.iter().flatten().enumerate() {
        let place = site.below_pod(pod, &format!("sub-paths/{}/{index}", container.name));
        mounts.push(volume_mount(site, pod, mount, &values, &place)?);
    }
    if site.os == Os::Linux {
        add_files(site, pod, container, attempt, addresses, &mut mounts)
            .map_err(|error| invalid(&error))?;
    }
    Ok(mounts)
}

fn invalid(error: &FileError) -> ComposeError {
    ComposeError::Invalid(error.to_string())
}

fn add_files(
    site: &Site,
    pod: &Pod,
    container: &Container,
    attempt: u32,
    addresses: &[String],
    mounts: &mut Vec<Mount>,
) -> Result<(), FileError> {
    let files = &site.options.files;
    let in_host = pod
        .spec
        .as_ref()
        .is_some_and(|spec| spec.host_network == Some(true));
    let mut add = |host_path: Utf8PathBuf, container_path: &str, text: Option<&str>| {
        if mounts
            .iter()
            .any(|mount| mount.container_path == container_path)
        {
            return Ok(());
        }
        if let Some(parent) = path::parent(site.os, &host_path) {
            files.create_dir_all(&parent)?;
        }
        match text {
            Some(text) => files.write_durable(&host_path, text.as_bytes(), Access::Public)?,
            // Programs of any user write their last words; once there they stay.
            None if files.metadata(&host_path).is_err() => {
                files.write_durable(&host_path, b"", Access::Mode(0o666))?;
            }
            None => {}
        }
        mounts.push(Mount {
            host_path,
            container_path: container_path.to_owned(),
            read_only: false,
            propagation: Propagation::Private,
        });
        Ok(())
    };
    if !in_host {
        let text = hosts_file(pod, addresses, &site.options.dns.domain);
        add(site.below_pod(pod, "etc-hosts"), "/etc/hosts", Some(&text))?;
    }
    let message = container
        .termination_message_path
        .as_deref()
        .filter(|path| !path.is_empty());
    if let Some(message) = message {
        add(
            termination_path(site, pod, &container.name, attempt),
            message,
            None,
        )?;
    }
    Ok(())
}

fn volume_mount(
    site: &Site,
    pod: &Pod,
    mount: &VolumeMount,
    values: &BTreeMap<&str, &str>,
    place: &Utf8Path,
) -> Result<Mount, ComposeError> {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref());
    let volume = volumes
        .into_iter()
        .flatten()
        .find(|volume| volume.name == mount.name);
    let Some(volume) = volume else {
        let message = format!(
            "cannot find volume \"{}\" to mount into container",
            mount.name
        );
        return Err(ComposeError::Invalid(message));
    };
    let mut host = host_path(site, pod, volume);
    let below = match (&mount.sub_path, &mount.sub_path_expr) {
        (_, Some(text)) if !text.is_empty() => expand(text, |name| {
            values.get(name).map(|value| (*value).to_owned())
        }),
        (Some(text), _) => text.clone(),
        _ => String::new(),
    };
    let objects = matches!(super::plugin(volume), super::Plugin::Objects(_));
    if !below.is_empty() {
        check_sub_path(site.os, &below)?;
        host = if objects {
            // No container writes here: links in it are ours.
            path::join(site.os, &host, &below)
        } else {
            sub_path(site, &host, &below, place)?
        };
    }
    Ok(Mount {
        host_path: host,
        container_path: in_words_of(site.os, &mount.mount_path),
        read_only: mount.read_only == Some(true) || objects,
        propagation: match mount.mount_propagation.as_deref() {
            Some("HostToContainer") => Propagation::HostToContainer,
            Some("Bidirectional") => Propagation::Bidirectional,
            _ => Propagation::Private,
        },
    })
}

fn check_sub_path(os: Os, below: &str) -> Result<(), ComposeError> {
    let below = Utf8Path::new(below);
    if path::is_absolute(os, below) || path::names(os, below).contains(&"..") {
        return Err(ComposeError::Invalid(format!(
            "subPath {:?} must not lead out of its volume",
            below.as_str()
        )));
    }
    Ok(())
}

/// Where something below a volume is seen. Containers that share the volume may put a link in its place at any moment,
/// so it is held fast at a place of ours before a runtime looks for it.
fn sub_path(
    site: &Site,
    folder: &Utf8Path,
    below: &str,
    place: &Utf8Path,
) -> Result<Utf8PathBuf, ComposeError> {
    let files = &site.options.files;
    if let Err(FileError::NotFound { .. }) = files.metadata(folder) {
        files
            .create_dir_all(folder)
            .map_err(|error| invalid(&error))?;
    }
    match files.pin(folder, Utf8Path::new(below), place) {
        Ok(()) => Ok(place.to_owned()),
        // Without root containers are no more than their user is, and Windows has nothing of the kind.
        Err(FileError::Denied { .. } | FileError::NotSupported { .. }) => {
            sub_path_by_name(site, folder, below)
        }
        Err(error) => Err(ComposeError::Invalid(format!(
            "subPath {below:?} cannot be used: {}",
            cause(&error)
        ))),
    }
}

/// The error and what it came from, in one line.
fn cause(error: &FileError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// A path below a volume without a link in it, as far as one look can tell.
fn sub_path_by_name(
    site: &Site,
    folder: &Utf8Path,
    below: &str,
) -> Result<Utf8PathBuf, ComposeError> {
    let files = &site.options.files;
    let mut at = folder.to_owned();
    for part in path::names(site.os, Utf8Path::new(below)) {
        at = path::join(site.os, &at, part);
        match files.metadata(&at) {
            Ok(metadata) if metadata.kind == Kind::Link => {
                return Err(ComposeError::Invalid(format!(
                    "subPath {below:?} leads through a link"
                )));
            }
            Ok(_) => {}
            Err(FileError::NotFound { .. }) => {
                files.create_dir_all(&at).map_err(|error| invalid(&error))?;
            }
            Err(error) => return Err(invalid(&error)),
        }
    }
    Ok(at)
}

/// Windows containers are given paths without a drive too.
fn in_words_of(os: Os, text: &str) -> String {
    match os {
        Os::Linux => text.to_owned(),
        Os::Windows if text.starts_with(['/', '\\']) && !text.starts_with(r"\\") => {
            format!("C:{}", text.replace('/', "\\"))
        }
        Os::Windows => text.replace('/', "\\"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_paths_get_a_drive_and_pipes_stay() {
        assert_eq!(in_words_of(Os::Windows, "/mnt/a"), r"C:\mnt\a");
        assert_eq!(in_words_of(Os::Windows, r"D:\x"), r"D:\x");
        assert_eq!(in_words_of(Os::Windows, r"\\.\pipe\x"), r"\\.\pipe\x");
        assert_eq!(in_words_of(Os::Linux, "/mnt/a"), "/mnt/a");
    }
}
