//! The volumes of pods: folders of the node that containers see.
//!
//! Each volume has one folder, known from its name alone; making it again brings it up to date.

mod content;
mod mounts;
mod place;
mod publish;
mod tokens;

use std::sync::Arc;

use camino::Utf8PathBuf;
use k8s_openapi::api::core::v1::{HostPathVolumeSource, Pod, Volume};
use transom_host::files::{Access, FileError, Files, Kind, path};
use transom_model::Os;

pub(crate) use mounts::{container_mounts, termination_path};
pub(crate) use tokens::Tokens;

use self::{
    content::{Content, content},
    place::{Medium, ensure_memory, fs_group, has_secrets, mode_of_file, prepare, settle_folder},
    publish::publish,
};
use crate::{compose::ComposeError, site::Site};

/// A file of a volume may not be larger, nor all of an object.
const LARGEST_FILE: u64 = 4 << 20;

#[derive(Debug, thiserror::Error)]
#[error("MountVolume.SetUp failed for volume \"{volume}\" : {cause}")]
pub(crate) struct VolumeError {
    volume: String,
    cause: String,
}

/// What kind of folder a volume is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plugin {
    EmptyDir,
    HostPath,
    /// Files made from objects of the API.
    Objects(&'static str),
    Unknown,
}

fn plugin(volume: &Volume) -> Plugin {
    match volume {
        _ if volume.empty_dir.is_some() => Plugin::EmptyDir,
        _ if volume.host_path.is_some() => Plugin::HostPath,
        _ if volume.config_map.is_some() => Plugin::Objects("configmap"),
        _ if volume.secret.is_some() => Plugin::Objects("secret"),
        _ if volume.downward_api.is_some() => Plugin::Objects("downward-api"),
        _ if volume.projected.is_some() => Plugin::Objects("projected"),
        // A volume that names no kind at all is an empty folder.
        _ if serde_json::to_value(volume)
            .is_ok_and(|value| value.as_object().is_some_and(|all| all.len() == 1)) =>
        {
            Plugin::EmptyDir
        }
        _ => Plugin::Unknown,
    }
}

/// Where the content of a volume is on the node.
fn host_path(site: &Site, pod: &Pod, volume: &Volume) -> Utf8PathBuf {
    let kind = match plugin(volume) {
        Plugin::HostPath => {
            let path = volume.host_path.as_ref().map(|one| one.path.clone());
            return path.unwrap_or_default().into();
        }
        Plugin::EmptyDir => "empty-dir",
        Plugin::Objects(kind) => kind,
        Plugin::Unknown => "unknown",
    };
    site.below_pod(
        pod,
        &format!("volumes/kubernetes.io~{kind}/{}", volume.name),
    )
}

/// The volumes of a pod that are folders of the agent, by name.
pub(crate) fn own_folders(site: &Site, pod: &Pod) -> Vec<(String, Utf8PathBuf)> {
    let volumes = pod.spec.iter().filter_map(|spec| spec.volumes.as_ref());
    volumes
        .flatten()
        .filter(|volume| matches!(plugin(volume), Plugin::EmptyDir | Plugin::Objects(_)))
        .map(|volume| (volume.name.clone(), host_path(site, pod, volume)))
        .collect()
}

/// Makes all volumes of a pod, and brings those up to date whose objects changed.
pub(crate) async fn ensure_volumes(
    site: &Arc<Site>,
    pod: &Pod,
    addresses: &[String],
) -> Result<(), VolumeError> {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref());
    for volume in volumes.into_iter().flatten() {
        let failed = |cause: String| VolumeError {
            volume: volume.name.clone(),
            cause,
        };
        let folder = host_path(site, pod, volume);
        let work = match plugin(volume) {
            Plugin::EmptyDir => {
                let source = volume.empty_dir.clone().unwrap_or_default();
                Work::Folder(Medium::of(&source, pod).map_err(failed)?)
            }
            Plugin::HostPath => Work::Host(volume.host_path.clone().unwrap_or_default()),
            Plugin::Objects(_) => {
                let made = content(site, pod, volume, addresses).await;
                let content = made.map_err(|error: ComposeError| failed(error.to_string()))?;
                Work::Files {
                    content,
                    has_secrets: has_secrets(volume),
                }
            }
            Plugin::Unknown => {
                let kind = serde_json::to_value(volume).ok().and_then(|value| {
                    value
                        .as_object()?
                        .keys()
                        .find(|key| *key != "name")
                        .cloned()
                });
                let kind = kind.unwrap_or_default();
                return Err(failed(format!("volume type {kind} is not supported yet")));
            }
        };
        let here = Arc::clone(site);
        let group = fs_group(site, pod);
        let done = tokio::task::spawn_blocking(move || work.carry_out(&here, &folder, group));
        let done = done.await;
        match done {
            Ok(done) => done.map_err(|error| failed(error.to_string()))?,
            Err(error) => return Err(failed(error.to_string())),
        }
    }
    Ok(())
}

enum Work {
    Folder(Medium),
    Host(HostPathVolumeSource),
    Files {
        content: Content,
        /// Nothing of it may come onto a disk, if that can be had.
        has_secrets: bool,
    },
}

impl Work {
    fn carry_out(
        self,
        site: &Site,
        folder: &Utf8PathBuf,
        group: Option<u32>,
    ) -> Result<(), VolumeIo> {
        let files = site.options.files.as_ref();
        match self {
            Self::Folder(medium) => {
                match medium {
                    Medium::Disk => files.create_dir_all(folder)?,
                    Medium::Memory(limit) => ensure_memory(files, folder, limit)?,
                }
                // Programs of any user may write into an empty folder; the folders above keep strangers out.
                settle_folder(site, folder, 0o777, group)
            }
            Self::Host(source) => check_host_path(files, folder, &source),
            Self::Files {
                content,
                has_secrets,
            } => {
                prepare(files, folder, has_secrets)?;
                settle_folder(site, folder, 0o755, group)?;
                let access = |mode: i32| {
                    // The folders above may be open to others there.
                    if has_secrets && site.os == Os::Windows {
                        Access::Secret
                    } else {
                        Access::Mode(mode_of_file(mode, group))
                    }
                };
                match site.os {
                    Os::Linux => {
                        let now = site.options.clock.now();
                        Ok(publish(files, folder, &content, access, now)?)
                    }
                    // Where folders cannot always be linked, each file changes by itself.
                    Os::Windows => write(site, folder, &content, access),
                }
            }
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum VolumeIo {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Access(#[from] transom_host::access::AccessError),
    #[error("{0}")]
    Invalid(String),
}

fn check_host_path(
    files: &dyn Files,
    path: &Utf8PathBuf,
    source: &HostPathVolumeSource,
) -> Result<(), VolumeIo> {
    let wanted = source.type_.as_deref().unwrap_or_default();
    let there = match files.metadata(path) {
        Ok(metadata) => Some(metadata.kind),
        Err(FileError::NotFound { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let refuse = |what: &str| {
        Err(VolumeIo::Invalid(format!(
            "hostPath type check failed: {path} is not {what}"
        )))
    };
    match (wanted, there) {
        ("", _) => Ok(()),
        ("DirectoryOrCreate", None) => Ok(files.create_dir_all(path)?),
        ("FileOrCreate", None) => Ok(files.write_durable(path, b"", Access::Public)?),
        ("DirectoryOrCreate" | "Directory", Some(Kind::Dir | Kind::Link)) => Ok(()),
        ("FileOrCreate" | "File", Some(Kind::File | Kind::Link)) => Ok(()),
        ("Socket" | "CharDevice" | "BlockDevice", Some(Kind::Other | Kind::Link)) => Ok(()),
        ("DirectoryOrCreate" | "Directory", _) => refuse("a directory"),
        ("FileOrCreate" | "File", _) => refuse("a file"),
        ("Socket", _) => refuse("a socket file"),
        ("CharDevice", _) => refuse("a character device"),
        _ => refuse("a block device"),
    }
}

/// Makes a folder hold these files and no others. A file is replaced in one instant, and only if it changed.
fn write(
    site: &Site,
    folder: &Utf8PathBuf,
    content: &Content,
    access: impl Fn(i32) -> Access,
) -> Result<(), VolumeIo> {
    let files = site.options.files.as_ref();
    for (name, file) in content {
        let target = path::join(site.os, folder, name);
        let access = access(file.mode);
        let same = files
            .read(&target, LARGEST_FILE)
            .is_ok_and(|bytes| bytes == file.bytes);
        let metadata = files.metadata(&target).ok();
        let has_mode =
            metadata.is_some_and(|found| found.mode.is_none_or(|mode| mode == access.mode()));
        if same && has_mode {
            continue;
        }
        if let Some(parent) = path::parent(site.os, &target) {
            files.create_dir_all(&parent)?;
        }
        files.write_durable(&target, &file.bytes, access)?;
    }
    sweep(site, folder, "", content, 0)
}

/// Removes files that are not wanted any more.
fn sweep(
    site: &Site,
    folder: &Utf8PathBuf,
    below: &str,
    content: &Content,
    depth: usize,
) -> Result<(), VolumeIo> {
    const DEEPEST: usize = 32;
    let files = site.options.files.as_ref();
    for entry in files.names(folder)? {
        let name = format!("{below}{}", entry.name);
        let path = path::join(site.os, folder, &entry.name);
        let is_parent = || {
            content
                .keys()
                .any(|key| key.starts_with(&format!("{name}/")))
        };
        if entry.kind == Kind::Dir && is_parent() && depth < DEEPEST {
            sweep(site, &path, &format!("{name}/"), content, depth + 1)?;
        } else if !content.contains_key(&name) {
            files.remove_tree(&path)?;
        }
    }
    Ok(())
}
