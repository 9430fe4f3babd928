//! Where volumes are kept, and who may use them: on a disk or in memory, with the group of their pod.
//!
//! Invariant: what is wanted in memory never comes onto a disk instead; secrets do only where the system gives no
//! memory to us, and then in files that nobody else reads.

use camino::Utf8PathBuf;
use k8s_openapi::api::core::v1::{EmptyDirVolumeSource, Pod, Volume};
use transom_host::{
    access::{Account, AccountId},
    files::{FileError, Files, path},
};
use transom_model::Os;

use super::VolumeIo;
use crate::{quantity, resources, site::Site};

/// What an empty folder is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Medium {
    Disk,
    /// With at most so many bytes.
    Memory(Option<u64>),
}

impl Medium {
    pub(super) fn of(source: &EmptyDirVolumeSource, pod: &Pod) -> Result<Self, String> {
        match source.medium.as_deref().unwrap_or_default() {
            "" => Ok(Self::Disk),
            "Memory" => {
                let own = source.size_limit.as_ref().and_then(quantity::millis);
                let own = own.and_then(|millis| u64::try_from(millis / 1_000).ok());
                // A limit of nothing is none.
                let own = own.filter(|bytes| *bytes > 0);
                let limits = own.into_iter().chain(memory_of(pod));
                Ok(Self::Memory(limits.min()))
            }
            other => Err(format!("unknown storage medium {other:?}")),
        }
    }
}

/// The memory that all containers of a pod together may use, if each has a limit.
fn memory_of(pod: &Pod) -> Option<u64> {
    let containers = pod.spec.as_ref()?.containers.iter();
    let limit = |container| resources::amount(container, true, "memory");
    let all: Option<Vec<_>> = containers.map(limit).collect();
    let sum: i128 = all?.into_iter().map(|millis| millis / 1_000).sum();
    u64::try_from(sum).ok().filter(|bytes| *bytes > 0)
}

/// Whether files are made from what nobody else may know.
pub(super) fn has_secrets(volume: &Volume) -> bool {
    let projected = volume.projected.as_ref();
    let mut sources = projected
        .and_then(|projected| projected.sources.as_ref())
        .into_iter()
        .flatten();
    volume.secret.is_some()
        || sources.any(|one| one.secret.is_some() || one.service_account_token.is_some())
}

/// The group that shares the volumes of a pod; numbers of groups are Linux's.
pub(super) fn fs_group(site: &Site, pod: &Pod) -> Option<u32> {
    let context = pod.spec.as_ref()?.security_context.as_ref()?;
    let is_linux = site.os == Os::Linux;
    u32::try_from(context.fs_group?).ok().filter(|_| is_linux)
}

/// The permission bits of a file: with a group, that group may read it.
pub(super) fn mode_of_file(mode: i32, group: Option<u32>) -> u32 {
    let mode = u32::try_from(mode).unwrap_or(0o600) & 0o777;
    if group.is_some() { mode | 0o440 } else { mode }
}

pub(super) fn ensure_memory(
    files: &dyn Files,
    folder: &Utf8PathBuf,
    limit: Option<u64>,
) -> Result<(), VolumeIo> {
    match files.ensure_memory_folder(folder, limit) {
        Ok(()) => Ok(()),
        Err(FileError::NotSupported { .. }) => Err(VolumeIo::Invalid(
            "emptyDir with medium \"Memory\" is not supported on a Windows node: use the default medium"
                .to_owned(),
        )),
        Err(FileError::Denied { .. }) => Err(VolumeIo::Invalid(
            "emptyDir with medium \"Memory\" needs an agent that runs as root: use the default medium"
                .to_owned(),
        )),
        Err(error) => Err(error.into()),
    }
}

/// A folder for files of objects.
pub(super) fn prepare(
    files: &dyn Files,
    folder: &Utf8PathBuf,
    has_secrets: bool,
) -> Result<(), VolumeIo> {
    if has_secrets {
        match files.ensure_memory_folder(folder, None) {
            Ok(()) => return Ok(()),
            // The folder of all pods is closed to others, so a disk will do.
            Err(FileError::NotSupported { .. } | FileError::Denied { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(files.create_dir_all(folder)?)
}

/// Sets who may use a folder. What is made in one of a group belongs to that group.
pub(super) fn settle_folder(
    site: &Site,
    folder: &Utf8PathBuf,
    mode: u32,
    group: Option<u32>,
) -> Result<(), VolumeIo> {
    const GROUP_IS_INHERITED: u32 = 0o2000;
    let Some((parent, name)) = path::split(site.os, folder) else {
        return Ok(());
    };
    let access = site.options.access.as_ref();
    // Others than root cannot give their files away: their pods run as themselves.
    let owner = match group.filter(|_| access.is_elevated().unwrap_or(false)) {
        Some(group) => in_group(access.current_account()?, group),
        None => None,
    };
    let mode = match &owner {
        Some(_) => mode | GROUP_IS_INHERITED | 0o070,
        None => mode,
    };
    access.ensure_folder(&parent, name.as_str().into(), owner.as_ref(), mode)?;
    Ok(())
}

fn in_group(mut account: Account, group: u32) -> Option<Account> {
    match &mut account.id {
        AccountId::Unix { gid, .. } => {
            *gid = group;
            Some(account)
        }
        AccountId::Windows { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn medium(source: &Value, limits: &[Value]) -> Result<Medium, String> {
        let containers: Vec<Value> = limits
            .iter()
            .map(|limits| json!({"name": "c", "resources": {"limits": limits}}))
            .collect();
        let pod: Pod = serde_json::from_value(json!({"spec": {"containers": containers}})).unwrap();
        Medium::of(&serde_json::from_value(source.clone()).unwrap(), &pod)
    }

    #[test]
    fn memory_is_limited_by_the_volume_and_by_the_pod() {
        let memory = |more: Value| {
            let mut source = json!({"medium": "Memory"});
            source["sizeLimit"] = more;
            source
        };
        let limited = [json!({"memory": "1Mi"}), json!({"memory": "2Mi"})];
        for (size, limits, expected) in [
            (json!("64Ki"), &[][..], Some(64 << 10)),
            (json!("64Ki"), &limited, Some(64 << 10)),
            (json!("64Mi"), &limited, Some(3 << 20)),
            (Value::Null, &limited, Some(3 << 20)),
            (Value::Null, &[json!({"cpu": "1"})], None),
            (json!("0"), &[json!({})], None),
        ] {
            let found = medium(&memory(size.clone()), limits);
            assert_eq!(found, Ok(Medium::Memory(expected)), "{size} {limits:?}");
        }
        assert_eq!(medium(&json!({}), &limited), Ok(Medium::Disk));
        assert!(medium(&json!({"medium": "HugePages"}), &[]).is_err());
    }

    #[test]
    fn a_file_has_the_mode_it_was_given_and_its_group_may_read_it() {
        assert_eq!(mode_of_file(0o400, None), 0o400);
        assert_eq!(mode_of_file(0o400, Some(7)), 0o440);
        assert_eq!(mode_of_file(0o644, Some(7)), 0o644);
        assert_eq!(mode_of_file(0o755, None), 0o755);
        assert_eq!(mode_of_file(-1, None), 0o600);
    }

    #[test]
    fn secrets_and_tokens_are_recognized() {
        let volume = |value: Value| serde_json::from_value::<Volume>(value).unwrap();
        for (source, expected) in [
            (json!({"name": "v", "secret": {"secretName": "s"}}), true),
            (json!({"name": "v", "configMap": {"name": "m"}}), false),
            (
                json!({"name": "v", "projected": {"sources": [{"configMap": {"name": "m"}}, {"serviceAccountToken": {"path": "t"}}]}}),
                true,
            ),
            (
                json!({"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}),
                true,
            ),
            (json!({"name": "v", "projected": {}}), false),
        ] {
            assert_eq!(has_secrets(&volume(source.clone())), expected, "{source}");
        }
    }
}
