//! What depends on the operating system of a pod, which is a value in its spec.
//!
//! A pod for Windows must not ask for what only Linux has, and the other way round.

use serde_json::Value;

use super::each_container;
use crate::{
    field::{FieldError, Path},
    validation::{
        fault::{Faults, Report},
        formats,
        read::Read,
    },
};

const NOT_ON_WINDOWS: &str = "cannot be set for a windows pod";
const NOT_ON_LINUX: &str = "windows options cannot be set for a linux pod";
const CREDENTIAL_LENGTH: usize = 64 * 1024;
const DOMAIN_LENGTH: usize = 256;
const USER_LENGTH: usize = 104;

/// Options of a security context that only Windows has.
pub(super) fn options(faults: &mut Faults, options: &Value, path: &Path) {
    if let Some(name) = options.maybe_text("gmsaCredentialSpecName") {
        faults.messages(
            &path.child("gmsaCredentialSpecName"),
            name,
            formats::subdomain(name),
        );
    }
    if let Some(spec) = options.maybe_text("gmsaCredentialSpec") {
        let path = path.child("gmsaCredentialSpec");
        if spec.is_empty() {
            faults.invalid(&path, spec, "gmsaCredentialSpec cannot be an empty string");
        } else if spec.len() > CREDENTIAL_LENGTH {
            faults.invalid(&path, spec, "gmsaCredentialSpec size must be under 64 KiB");
        }
    }
    if let Some(name) = options.maybe_text("runAsUserName") {
        let path = path.child("runAsUserName");
        for detail in user_name(name) {
            faults.invalid(&path, name, detail);
        }
    }
}

fn user_name(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["runAsUserName cannot be an empty string".to_owned()];
    }
    if name.chars().any(|each| each.is_ascii_control()) {
        return vec!["runAsUserName cannot contain control characters".to_owned()];
    }
    let parts: Vec<&str> = name.split('\\').collect();
    let (domain, user) = match parts.as_slice() {
        [user] => (None, *user),
        [domain, user] => (Some(*domain), *user),
        _ => return vec!["runAsUserName cannot contain more than one backslash".to_owned()],
    };
    let mut details = Vec::new();
    if let Some(domain) = domain {
        if domain.len() >= DOMAIN_LENGTH {
            details.push(format!(
                "runAsUserName's Domain length must be under {DOMAIN_LENGTH} characters"
            ));
        }
        if !is_short_domain(domain) && !is_domain(domain) {
            details.push(
                "runAsUserName's Domain doesn't match the NetBios nor the DNS format".to_owned(),
            );
        }
    }
    if user.is_empty() {
        details.push("runAsUserName's User cannot be empty".to_owned());
    } else if user.len() > USER_LENGTH {
        details.push(format!(
            "runAsUserName's User length must not be longer than {USER_LENGTH} characters"
        ));
    }
    if !user.is_empty() && user.chars().all(|each| each == '.' || each == ' ') {
        details.push("runAsUserName's User cannot contain only periods or spaces".to_owned());
    }
    if user.contains(|each: char| "\"/\\:;|=,+*?<>@[]".contains(each)) {
        details.push(
            "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"
                .to_owned(),
        );
    }
    details
}

/// A name as `NetBIOS` had them.
fn is_short_domain(domain: &str) -> bool {
    let forbidden = |each: char| "\\/:*?\"<>|".contains(each);
    let length = domain.chars().count();
    (1..=15).contains(&length) && !domain.starts_with('.') && !domain.contains(forbidden)
}

fn is_domain(domain: &str) -> bool {
    domain.split('.').all(|label| {
        let bytes = label.as_bytes();
        (1..=63).contains(&bytes.len())
            && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
            && bytes
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
    })
}

/// Processes of the host: all containers of a pod are such, on the network of the host, or none is.
pub(super) fn host_process(faults: &mut Faults, spec: &Value, path: &Path) {
    let of_pod = spec["securityContext"]["windowsOptions"].maybe_flag("hostProcess");
    let mut containers = 0;
    let mut on_host = 0;
    for (container, at) in each_container(spec, path) {
        containers += 1;
        let own = container["securityContext"]["windowsOptions"].maybe_flag("hostProcess");
        if let (Some(of_pod), Some(own)) = (of_pod, own)
            && of_pod != own
        {
            faults.invalid(
                &at.child("securityContext")
                    .child("windowsOptions")
                    .child("hostProcess"),
                own,
                format!(
                    "pod hostProcess value must be identical if both are specified, was {of_pod}"
                ),
            );
        }
        if own.or(of_pod) == Some(true) {
            on_host += 1;
        }
    }
    if on_host == 0 {
        return;
    }
    if on_host != containers {
        faults.invalid(
            path,
            "",
            "If pod contains any hostProcess containers then all containers must be HostProcess containers",
        );
    }
    if !spec.flag("hostNetwork") {
        faults.invalid(
            &path.child("hostNetwork"),
            false,
            "hostNetwork must be true if pod contains any hostProcess containers",
        );
    }
}

/// The system that a pod says it is for, and what follows from it.
pub(super) fn operating_system(faults: &mut Faults, spec: &Value, path: &Path) {
    if !spec.has("os") {
        return;
    }
    match spec["os"].text("name") {
        "" => faults.required(&path.child("os").child("name"), "cannot be empty"),
        "linux" => linux(faults, spec, path),
        "windows" => windows(faults, spec, path),
        other => faults.push(FieldError::not_supported(
            &path.child("os"),
            other,
            &["linux", "windows"],
        )),
    }
}

fn linux(faults: &mut Faults, spec: &Value, path: &Path) {
    if spec["securityContext"].has("windowsOptions") {
        faults.forbidden(
            &path.child("securityContext").child("windowsOptions"),
            NOT_ON_LINUX,
        );
    }
    for (container, at) in each_container(spec, path) {
        if container["securityContext"].has("windowsOptions") {
            faults.forbidden(
                &at.child("securityContext").child("windowsOptions"),
                NOT_ON_LINUX,
            );
        }
    }
}

/// Fields in upstream's order; some are of the spec, the others of its security context.
const POD_FIELDS: [(&str, bool); 15] = [
    ("appArmorProfile", true),
    ("seLinuxOptions", true),
    ("hostUsers", false),
    ("hostPID", false),
    ("hostIPC", false),
    ("seccompProfile", true),
    ("fsGroup", true),
    ("fsGroupChangePolicy", true),
    ("sysctls", true),
    ("shareProcessNamespace", false),
    ("runAsUser", true),
    ("runAsGroup", true),
    ("supplementalGroups", true),
    ("supplementalGroupsPolicy", true),
    ("seLinuxChangePolicy", true),
];

const CONTAINER_FIELDS: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

fn windows(faults: &mut Faults, spec: &Value, path: &Path) {
    for (field, in_context) in POD_FIELDS {
        let (holder, at) = if in_context {
            (&spec["securityContext"], path.child("securityContext"))
        } else {
            (spec, path.clone())
        };
        let set = match field {
            "hostPID" | "hostIPC" => holder.flag(field),
            "sysctls" => !holder.items(field).is_empty(),
            _ => holder.has(field),
        };
        if set {
            faults.forbidden(&at.child(field), NOT_ON_WINDOWS);
        }
    }
    for (container, at) in each_container(spec, path) {
        let at = at.child("securityContext");
        for field in CONTAINER_FIELDS {
            if container["securityContext"].has(field) {
                faults.forbidden(&at.child(field), NOT_ON_WINDOWS);
            }
        }
    }
}
