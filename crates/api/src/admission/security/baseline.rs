//! The level `baseline`: nothing that is a known way to more power.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Violation, containers, listed, names, plural, quoted, setters};
use crate::validation::read::Read;

const CAPABILITIES: [&str; 14] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
    "NET_RAW",
];

/// With the version since which each is harmless.
const SYSCTLS: [(&str, u32); 12] = [
    ("kernel.shm_rmid_forced", 0),
    ("net.ipv4.ip_local_port_range", 0),
    ("net.ipv4.tcp_syncookies", 0),
    ("net.ipv4.ping_group_range", 0),
    ("net.ipv4.ip_unprivileged_port_start", 0),
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
];

const LINUX_TYPES: [(&str, u32); 5] = [
    ("", 0),
    ("container_t", 0),
    ("container_init_t", 0),
    ("container_kvm_t", 0),
    ("container_engine_t", 31),
];

fn is_harmless(known: &[(&str, u32)], name: &str, minor: u32) -> bool {
    known
        .iter()
        .any(|(harmless, since)| *harmless == name && *since <= minor)
}

const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// All violations in upstream's order. What the level `restricted` judges more strictly, since the version in which
/// it came to, is left to it.
pub(super) fn check(
    metadata: &Value,
    spec: &Value,
    restricted: bool,
    minor: u32,
) -> Vec<Violation> {
    let mut found = vec![
        app_armor(metadata, spec),
        host_namespaces(spec),
        host_paths(spec),
        host_ports(spec),
        (minor >= 34).then(|| hosts_of_handlers(spec)).flatten(),
        privileged(spec),
        proc_mount(spec),
        linux_options(spec, minor),
        sysctls(spec, minor),
        host_process(spec),
    ];
    if !restricted || minor < 22 {
        found.push(capabilities(spec));
    }
    if !restricted || minor < 19 {
        found.push(seccomp(spec));
    }
    found.into_iter().flatten().collect()
}

fn app_armor(metadata: &Value, spec: &Value) -> Option<Violation> {
    let kind = |holder: &Value| {
        holder["securityContext"]["appArmorProfile"]
            .maybe_text("type")
            .filter(|kind| !matches!(*kind, "RuntimeDefault" | "Localhost"))
            .map(str::to_owned)
    };
    let mut who = Vec::new();
    who.extend(setters(
        kind(spec).is_some(),
        &names(spec, |container| kind(container).is_some()),
    ));
    let kinds: BTreeSet<String> = std::iter::once(spec)
        .chain(containers(spec))
        .filter_map(kind)
        .collect();
    let annotations: Vec<String> = metadata
        .entries("annotations")
        .iter()
        .filter(|(key, _)| key.starts_with(APP_ARMOR))
        .map(|(key, value)| (key, value.as_str().unwrap_or_default()))
        .filter(|(_, value)| {
            !matches!(*value, "" | "runtime/default") && !value.starts_with("localhost/")
        })
        .map(|(key, value)| format!("{key}={value:?}"))
        .collect();
    if !annotations.is_empty() {
        who.push(plural("annotation", "annotations", annotations.len()).to_owned());
    }
    let values: Vec<&str> = kinds
        .iter()
        .chain(&annotations)
        .map(String::as_str)
        .collect();
    if who.is_empty() {
        return None;
    }
    Some(Violation::new(
        plural(
            "forbidden AppArmor profile",
            "forbidden AppArmor profiles",
            values.len(),
        ),
        format!(
            "{} must not set AppArmor profile type to {}",
            who.join(" and "),
            quoted(&values)
        ),
    ))
}

fn capabilities(spec: &Value) -> Option<Violation> {
    let foreign = |container: &Value| -> Vec<String> {
        container["securityContext"]["capabilities"]
            .texts("add")
            .filter(|name| !CAPABILITIES.contains(name))
            .map(str::to_owned)
            .collect()
    };
    let bad = names(spec, |container| !foreign(container).is_empty());
    let all: BTreeSet<String> = containers(spec).flat_map(foreign).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    if bad.is_empty() {
        return None;
    }
    Some(Violation::new(
        "non-default capabilities",
        format!(
            "{} must not include {} in securityContext.capabilities.add",
            listed(&bad),
            quoted(&all)
        ),
    ))
}

fn host_namespaces(spec: &Value) -> Option<Violation> {
    let shared: Vec<String> = ["hostNetwork", "hostPID", "hostIPC"]
        .into_iter()
        .filter(|field| spec.flag(field))
        .map(|field| format!("{field}=true"))
        .collect();
    if shared.is_empty() {
        return None;
    }
    Some(Violation::new("host namespaces", shared.join(", ")))
}

fn host_paths(spec: &Value) -> Option<Violation> {
    let volumes: Vec<&str> = spec
        .items("volumes")
        .iter()
        .filter(|volume| volume.has("hostPath"))
        .map(|volume| volume.text("name"))
        .collect();
    if volumes.is_empty() {
        return None;
    }
    Some(Violation::new(
        "hostPath volumes",
        format!(
            "{} {}",
            plural("volume", "volumes", volumes.len()),
            quoted(&volumes)
        ),
    ))
}

fn host_ports(spec: &Value) -> Option<Violation> {
    let own = |container: &Value| -> Vec<i64> {
        container
            .items("ports")
            .iter()
            .map(|port| port.number("hostPort"))
            .filter(|port| *port != 0)
            .collect()
    };
    let bad = names(spec, |container| !own(container).is_empty());
    let ports: BTreeSet<i64> = containers(spec).flat_map(own).collect();
    if bad.is_empty() {
        return None;
    }
    let shown: Vec<String> = ports.iter().map(ToString::to_string).collect();
    Some(Violation::new(
        "hostPort",
        format!(
            "{} {} {} {}",
            listed(&bad),
            plural("uses", "use", bad.len()),
            plural("hostPort", "hostPorts", shown.len()),
            shown.join(", ")
        ),
    ))
}

/// Probes and hooks that ask other hosts would let a pod use the network of its node.
fn hosts_of_handlers(spec: &Value) -> Option<Violation> {
    let hosts = |container: &Value| -> Vec<String> {
        [
            &container["livenessProbe"],
            &container["readinessProbe"],
            &container["startupProbe"],
            &container["lifecycle"]["postStart"],
            &container["lifecycle"]["preStop"],
        ]
        .into_iter()
        .flat_map(|handler| ["httpGet", "tcpSocket"].map(|action| handler[action].text("host")))
        .filter(|host| !host.is_empty())
        .map(str::to_owned)
        .collect()
    };
    let bad = names(spec, |container| !hosts(container).is_empty());
    let all: BTreeSet<String> = containers(spec).flat_map(hosts).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    if bad.is_empty() {
        return None;
    }
    Some(Violation::new(
        "probe or lifecycle host",
        format!(
            "{} {} {} {}",
            listed(&bad),
            plural("uses", "use", bad.len()),
            plural(
                "probe or lifecycle host",
                "probe or lifecycle hosts",
                all.len()
            ),
            quoted(&all)
        ),
    ))
}

fn privileged(spec: &Value) -> Option<Violation> {
    let bad = names(spec, |container| {
        container["securityContext"].flag("privileged")
    });
    if bad.is_empty() {
        return None;
    }
    Some(Violation::new(
        "privileged",
        format!(
            "{} must not set securityContext.privileged=true",
            listed(&bad)
        ),
    ))
}

/// With users of its own a pod cannot use what it would see.
fn proc_mount(spec: &Value) -> Option<Violation> {
    if spec.maybe_flag("hostUsers") == Some(false) {
        return None;
    }
    let kind = |container: &Value| {
        container["securityContext"]
            .maybe_text("procMount")
            .filter(|kind| *kind != "Default")
            .map(str::to_owned)
    };
    let bad = names(spec, |container| kind(container).is_some());
    let kinds: BTreeSet<String> = containers(spec).filter_map(kind).collect();
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    if bad.is_empty() {
        return None;
    }
    Some(Violation::new(
        "procMount",
        format!(
            "{} must not set securityContext.procMount to {}",
            listed(&bad),
            quoted(&kinds)
        ),
    ))
}

fn linux_options(spec: &Value, minor: u32) -> Option<Violation> {
    let options = |holder: &Value| holder["securityContext"]["seLinuxOptions"].clone();
    let is_bad = |holder: &Value| {
        let options = options(holder);
        !is_harmless(&LINUX_TYPES, options.text("type"), minor)
            || !options.text("user").is_empty()
            || !options.text("role").is_empty()
    };
    let who = setters(is_bad(spec), &names(spec, is_bad))?;
    let holders: Vec<Value> = std::iter::once(spec)
        .chain(containers(spec))
        .map(options)
        .collect();
    let kinds: BTreeSet<&str> = holders
        .iter()
        .map(|options| options.text("type"))
        .filter(|kind| !is_harmless(&LINUX_TYPES, kind, minor))
        .collect();
    let mut details = Vec::new();
    if !kinds.is_empty() {
        let kinds: Vec<&str> = kinds.into_iter().collect();
        details.push(format!(
            "{} {}",
            plural("type", "types", kinds.len()),
            quoted(&kinds)
        ));
    }
    for field in ["user", "role"] {
        if holders
            .iter()
            .any(|options| !options.text(field).is_empty())
        {
            details.push(format!("{field} may not be set"));
        }
    }
    Some(Violation::new(
        "seLinuxOptions",
        format!(
            "{who} set forbidden securityContext.seLinuxOptions: {}",
            details.join("; ")
        ),
    ))
}

fn seccomp(spec: &Value) -> Option<Violation> {
    let is_bad =
        |holder: &Value| holder["securityContext"]["seccompProfile"].text("type") == "Unconfined";
    let who = setters(is_bad(spec), &names(spec, is_bad))?;
    Some(Violation::new(
        "seccompProfile",
        format!("{who} must not set securityContext.seccompProfile.type to \"Unconfined\""),
    ))
}

fn sysctls(spec: &Value, minor: u32) -> Option<Violation> {
    let bad: Vec<&str> = spec["securityContext"]
        .items("sysctls")
        .iter()
        .map(|sysctl| sysctl.text("name"))
        .filter(|name| !is_harmless(&SYSCTLS, name, minor))
        .collect();
    if bad.is_empty() {
        return None;
    }
    Some(Violation::new("forbidden sysctls", bad.join(", ")))
}

fn host_process(spec: &Value) -> Option<Violation> {
    let is_bad = |holder: &Value| holder["securityContext"]["windowsOptions"].flag("hostProcess");
    let who = setters(is_bad(spec), &names(spec, is_bad))?;
    Some(Violation::new(
        "hostProcess",
        format!("{who} must not set securityContext.windowsOptions.hostProcess=true"),
    ))
}
