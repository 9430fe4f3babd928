//! Security contexts of pods and containers.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{volumes, windows};
use crate::{
    field::{FieldError, Path},
    validation::{
        fault::{Faults, Report},
        formats,
        read::Read,
    },
};

const SYSCTL_LENGTH: usize = 253;
const SYSCTL_PATTERN: &str =
    "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
const PROFILES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
const PATH_LENGTH: usize = 4095;

/// The context of a whole pod. Fields of the spec that upstream counts to it come along.
pub(super) fn pod(faults: &mut Faults, spec: &Value, path: &Path) {
    let context = &spec["securityContext"];
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        unix_id(faults, &context[field], &path.child(field));
    }
    for (index, group) in context.items("supplementalGroups").iter().enumerate() {
        unix_id(
            faults,
            group,
            &path.child("supplementalGroups").index(index),
        );
    }
    if spec.flag("shareProcessNamespace") && spec.flag("hostPID") {
        faults.invalid(
            &path.child("shareProcessNamespace"),
            true,
            "ShareProcessNamespace and HostPID cannot both be enabled",
        );
    }
    sysctls(faults, spec, &path.child("sysctls"));
    faults.choice(
        &path.child("fsGroupChangePolicy"),
        &context["fsGroupChangePolicy"],
        &["Always", "OnRootMismatch"],
    );
    seccomp(
        faults,
        &context["seccompProfile"],
        &path.child("seccompProfile"),
    );
    windows::options(
        faults,
        &context["windowsOptions"],
        &path.child("windowsOptions"),
    );
    app_armor(
        faults,
        &context["appArmorProfile"],
        &path.child("appArmorProfile"),
    );
    faults.choice(
        &path.child("supplementalGroupsPolicy"),
        &context["supplementalGroupsPolicy"],
        &["Merge", "Strict"],
    );
    faults.choice(
        &path.child("seLinuxChangePolicy"),
        &context["seLinuxChangePolicy"],
        &["MountOption", "Recursive"],
    );
}

/// The context of one container.
pub(super) fn container(faults: &mut Faults, context: &Value, host_users: bool, path: &Path) {
    for field in ["runAsUser", "runAsGroup"] {
        unix_id(faults, &context[field], &path.child(field));
    }
    if let Some(kind) = context.maybe_text("procMount") {
        let path = path.child("procMount");
        faults.choice(&path, &context["procMount"], &["Default", "Unmasked"]);
        if host_users && kind == "Unmasked" {
            faults.invalid(&path, kind, "`hostUsers` must be false to use `Unmasked`");
        }
    }
    seccomp(
        faults,
        &context["seccompProfile"],
        &path.child("seccompProfile"),
    );
    if context.maybe_flag("allowPrivilegeEscalation") == Some(false) {
        if context.flag("privileged") {
            faults.invalid(
                path,
                context.clone(),
                "cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
            );
        }
        for _ in context["capabilities"]
            .texts("add")
            .filter(|capability| *capability == "CAP_SYS_ADMIN")
        {
            faults.invalid(
                path,
                context.clone(),
                "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN",
            );
        }
    }
    windows::options(
        faults,
        &context["windowsOptions"],
        &path.child("windowsOptions"),
    );
    app_armor(
        faults,
        &context["appArmorProfile"],
        &path.child("appArmorProfile"),
    );
}

fn unix_id(faults: &mut Faults, id: &Value, path: &Path) {
    if let Some(id) = id.as_i64() {
        faults.messages(path, id, formats::unix_id(id));
    }
}

fn sysctls(faults: &mut Faults, spec: &Value, path: &Path) {
    let mut names = BTreeSet::new();
    for (index, sysctl) in spec["securityContext"].items("sysctls").iter().enumerate() {
        let path = path.index(index).child("name");
        let name = sysctl.text("name");
        if name.is_empty() {
            faults.required(&path, "");
        } else if !is_sysctl(name) {
            faults.invalid(
                &path,
                name,
                format!(
                    "must have at most {SYSCTL_LENGTH} characters and match regex {SYSCTL_PATTERN}"
                ),
            );
        } else if names.contains(name) {
            faults.push(FieldError::duplicate(&path, name));
        }
        let dotted = name.replace('/', ".");
        if spec.flag("hostNetwork") && dotted.starts_with("net.") {
            faults.invalid(
                &path,
                name,
                "may not be specified when 'hostNetwork' is true",
            );
        } else if spec.flag("hostIPC") && is_of_processes(&dotted) {
            faults.invalid(&path, name, "may not be specified when 'hostIPC' is true");
        }
        names.insert(name);
    }
}

/// Whether a setting belongs to the namespace of communication between processes.
fn is_of_processes(name: &str) -> bool {
    ["kernel.shm", "kernel.msg", "fs.mqueue."]
        .into_iter()
        .any(|prefix| name.starts_with(prefix))
        || name == "kernel.sem"
}

fn is_sysctl(name: &str) -> bool {
    let edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= SYSCTL_LENGTH
        && name.split(['.', '/']).all(|part| {
            let bytes = part.as_bytes();
            bytes.first().is_some_and(edge)
                && bytes.last().is_some_and(edge)
                && bytes.iter().all(|byte| edge(byte) || b"-_".contains(byte))
        })
}

fn seccomp(faults: &mut Faults, profile: &Value, path: &Path) {
    if profile.is_null() {
        return;
    }
    let kind = profile.text("type");
    if kind.is_empty() {
        faults.required(
            &path.child("type"),
            "type is required when seccompProfile is set",
        );
    } else {
        faults.choice(&path.child("type"), &profile["type"], &PROFILES);
    }
    let path = path.child("localhostProfile");
    match (kind, profile.maybe_text("localhostProfile")) {
        ("Localhost", None) => {
            faults.required(&path, "must be set when seccomp type is Localhost");
        }
        ("Localhost", Some(file)) => volumes::descending_path(faults, file, &path),
        (_, Some(_)) => faults.invalid(
            &path,
            profile.clone(),
            "can only be set when seccomp type is Localhost",
        ),
        (_, None) => {}
    }
}

fn app_armor(faults: &mut Faults, profile: &Value, path: &Path) {
    if profile.is_null() {
        return;
    }
    let file_path = path.child("localhostProfile");
    let file = profile.maybe_text("localhostProfile");
    match (profile.text("type"), file) {
        ("Localhost", None | Some("")) => {
            faults.required(&file_path, "must be set when AppArmor type is Localhost");
        }
        ("Localhost", Some(file)) => {
            if file.trim() != file {
                faults.invalid(&file_path, file, "must not be padded with whitespace");
            }
            if file.len() > PATH_LENGTH {
                faults.push(FieldError::too_long(&file_path, PATH_LENGTH));
            }
        }
        ("RuntimeDefault" | "Unconfined", Some(file)) => faults.invalid(
            &file_path,
            file,
            "can only be set when AppArmor type is Localhost",
        ),
        ("RuntimeDefault" | "Unconfined", None) => {}
        ("", _) => faults.required(
            &path.child("type"),
            "type is required when appArmorProfile is set",
        ),
        (other, _) => faults.push(FieldError::not_supported(
            &path.child("type"),
            other,
            &PROFILES,
        )),
    }
}
