//! Who a container's program is and what it may do: the container's own wishes before those of the pod.

use camino::Utf8PathBuf;
use k8s_openapi::api::core::v1::{
    Container, Pod, PodSecurityContext, SeccompProfile, SecurityContext,
};
use transom_runtime::{Capabilities, Image, Seccomp, Security};

use super::ComposeError;

/// Checks the wish not to be root, and gathers everything else.
pub(crate) fn security(
    pod: &Pod,
    container: &Container,
    image: &Image,
    seccomp_folder: &Utf8PathBuf,
) -> Result<Security, ComposeError> {
    let whole = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.security_context.clone())
        .unwrap_or_default();
    let own = container.security_context.clone().unwrap_or_default();
    let user = own.run_as_user.or(whole.run_as_user);
    check_not_root(pod, container, &own, &whole, user, image)?;
    let windows = own.windows_options.as_ref();
    let windows_of_pod = whole.windows_options.as_ref();
    let user_name = windows.and_then(|one| one.run_as_user_name.clone());
    let host_process = windows.and_then(|one| one.host_process);
    let capabilities = own.capabilities.unwrap_or_default();
    let mut groups = whole.supplemental_groups.unwrap_or_default();
    groups.extend(whole.fs_group);
    let privileged = own.privileged == Some(true);
    Ok(Security {
        user,
        group: own.run_as_group.or(whole.run_as_group),
        supplemental_groups: groups,
        user_name: user_name
            .or_else(|| windows_of_pod.and_then(|one| one.run_as_user_name.clone())),
        privileged,
        read_only_root: own.read_only_root_filesystem == Some(true),
        may_gain_privileges: own.allow_privilege_escalation.unwrap_or(true),
        capabilities: Capabilities {
            add: capabilities.add.unwrap_or_default(),
            drop: capabilities.drop.unwrap_or_default(),
        },
        seccomp: seccomp(
            privileged,
            own.seccomp_profile.or(whole.seccomp_profile),
            seccomp_folder,
        ),
        unmasked_proc: own.proc_mount.as_deref() == Some("Unmasked"),
        host_process: host_process
            .or(windows_of_pod.and_then(|one| one.host_process))
            .unwrap_or(false),
    })
}

fn seccomp(privileged: bool, profile: Option<SeccompProfile>, folder: &Utf8PathBuf) -> Seccomp {
    match profile {
        _ if privileged => Seccomp::Unconfined,
        None => Seccomp::RuntimeDefault,
        Some(profile) => match (profile.type_.as_str(), profile.localhost_profile) {
            ("Unconfined", _) => Seccomp::Unconfined,
            ("Localhost", Some(path)) => Seccomp::Localhost(folder.join(path)),
            _ => Seccomp::RuntimeDefault,
        },
    }
}

fn check_not_root(
    pod: &Pod,
    container: &Container,
    own: &SecurityContext,
    whole: &PodSecurityContext,
    user: Option<i64>,
    image: &Image,
) -> Result<(), ComposeError> {
    if own.run_as_non_root.or(whole.run_as_non_root) != Some(true) {
        return Ok(());
    }
    let place = format!(
        "(pod: \"{}\", container: {})",
        crate::pods::full_name(pod),
        container.name
    );
    let refuse = |text: String| Err(ComposeError::Invalid(format!("{text} {place}")));
    match user {
        Some(0) => return refuse("container's runAsUser breaks non-root policy".to_owned()),
        Some(_) => return Ok(()),
        None => {}
    }
    if image.os == "windows" {
        return match image.user.as_str() {
            "ContainerAdministrator" => refuse("container's runAsUserName (ContainerAdministrator) which will be regarded as root identity and will break non-root policy".to_owned()),
            _ => Ok(()),
        };
    }
    let name = image.user.split(':').next().unwrap_or_default();
    match name.parse::<u64>() {
        Ok(0) => refuse("container has runAsNonRoot and image will run as root".to_owned()),
        Ok(_) => Ok(()),
        Err(_) if name.is_empty() => {
            refuse("container has runAsNonRoot and image will run as root".to_owned())
        }
        Err(_) => refuse(format!(
            "container has runAsNonRoot and image has non-numeric user ({name}), cannot verify user is non-root"
        )),
    }
}
