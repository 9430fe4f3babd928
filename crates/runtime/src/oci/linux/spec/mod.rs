//! From what the agent wants to the configuration of the OCI. Pure: what the machine has is given.
//!
//! Invariant: what this machine cannot give is left out and said so in a note; nothing that limits a
//! container is ever left out.

mod devices;
mod user;

use caps::CapsHashSet;
use serde_json::{Value, json};

use super::cgroup;
use super::executor::capability;
use crate::images::ImageSettings;
use crate::{ContainerSpec, PodNetwork, PodSpec, Propagation, Resources, RuntimeError, Security};

pub(super) use devices::host_devices;
pub(super) use user::{Accounts, User};

/// What a container gets that asks for nothing.
const DEFAULT_CAPABILITIES: [&str; 14] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "NET_RAW",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Paths that tell of the node or change it.
const MASKED: [&str; 12] = [
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
];
const READ_ONLY: [&str; 5] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

/// What the machine and the pod bring to a container.
#[derive(Clone, Debug)]
pub(super) struct Surroundings<'a> {
    pub(super) pod: &'a PodSpec,
    /// The process whose namespaces are the pod's.
    pub(super) shim: u32,
    /// The first process of a namespace that all containers share.
    pub(super) first_process: Option<i32>,
    pub(super) available: &'a CapsHashSet,
    /// A lower one than ours the kernel may refuse.
    pub(super) least_oom_score: i32,
    pub(super) unified: bool,
    /// Files of the pod: where, and what is there.
    pub(super) files: &'a [(&'static str, String)],
    pub(super) devices: &'a [Value],
    pub(super) hostname: &'a str,
}

/// A configuration, and what goes with it.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) configuration: Value,
    /// Without `CAP_`.
    pub(super) capabilities: Vec<String>,
    pub(super) notes: Vec<String>,
}

/// Plans a container. `root` is the folder of its root file system.
pub(super) fn plan(
    spec: &ContainerSpec,
    image: &ImageSettings,
    user: &User,
    group: &str,
    around: &Surroundings<'_>,
) -> Result<Planned, RuntimeError> {
    let mut notes = Vec::new();
    let capabilities = plan_capabilities(&spec.security, around.available, &mut notes)?;
    let mut process = plan_process(spec, image, user, around)?;
    let score = spec.resources.oom_score_adjustment.map(|wanted| {
        if wanted < around.least_oom_score {
            notes.push(format!(
                "oomScoreAdj {wanted} was raised to {}",
                around.least_oom_score
            ));
        }
        wanted.max(around.least_oom_score)
    });
    process["oomScoreAdj"] = json!(score);
    let linux = plan_linux(spec, group, around);
    let configuration = json!({
        "ociVersion": "1.0.2",
        "process": process,
        "root": {"path": "rootfs", "readonly": spec.security.read_only_root},
        "mounts": plan_mounts(spec, around)?,
        "linux": linux,
    });
    Ok(Planned {
        configuration,
        capabilities,
        notes,
    })
}

/// The description of a program that is run beside the container's own.
pub(super) fn plan_exec(container: &Value, command: &[String], terminal: bool) -> Value {
    let mut process = container["process"].clone();
    process["args"] = json!(command);
    process["terminal"] = json!(terminal);
    if terminal && let Some(environment) = process["env"].as_array_mut() {
        let has_terminal = environment.iter().any(|variable| {
            variable
                .as_str()
                .is_some_and(|text| text.starts_with("TERM="))
        });
        if !has_terminal {
            environment.push(json!("TERM=xterm"));
        }
    }
    process
}

fn plan_capabilities(
    security: &Security,
    available: &CapsHashSet,
    notes: &mut Vec<String>,
) -> Result<Vec<String>, RuntimeError> {
    let parse = |name: &String| {
        capability(name)
            .ok_or_else(|| RuntimeError::Invalid(format!("unknown capability {name:?}")))
    };
    let is_all = |names: &[String]| names.iter().any(|name| name.eq_ignore_ascii_case("ALL"));
    let adds_all = security.privileged || is_all(&security.capabilities.add);
    let mut wanted: CapsHashSet = if adds_all {
        caps::all()
    } else if is_all(&security.capabilities.drop) {
        CapsHashSet::new()
    } else {
        DEFAULT_CAPABILITIES
            .iter()
            .filter_map(|name| capability(name))
            .collect()
    };
    for name in security
        .capabilities
        .drop
        .iter()
        .filter(|name| !name.eq_ignore_ascii_case("ALL"))
    {
        wanted.remove(&parse(name)?);
    }
    for name in security
        .capabilities
        .add
        .iter()
        .filter(|name| !name.eq_ignore_ascii_case("ALL"))
    {
        wanted.insert(parse(name)?);
    }
    if !security.privileged {
        let missing: Vec<String> = wanted
            .difference(available)
            .map(ToString::to_string)
            .collect();
        if !missing.is_empty() && !adds_all {
            notes.push(format!("this machine has no {}", missing.join(", ")));
        }
    }
    let mut names: Vec<String> = wanted
        .intersection(available)
        .map(|capability| capability.to_string().trim_start_matches("CAP_").to_owned())
        .collect();
    names.sort();
    Ok(names)
}

fn plan_process(
    spec: &ContainerSpec,
    image: &ImageSettings,
    user: &User,
    around: &Surroundings<'_>,
) -> Result<Value, RuntimeError> {
    let mut arguments = Vec::new();
    if spec.command.is_empty() {
        arguments.extend(image.entrypoint.iter().cloned());
        let last = if spec.arguments.is_empty() {
            &image.arguments
        } else {
            &spec.arguments
        };
        arguments.extend(last.iter().cloned());
    } else {
        arguments.extend(spec.command.iter().chain(&spec.arguments).cloned());
    }
    if arguments.is_empty() {
        return Err(RuntimeError::CannotRun {
            program: spec.name.clone(),
            cause: "no command specified".to_owned(),
        });
    }
    // The last steps need these to install a filter; they give up all that is not wanted.
    let mut all: Vec<String> = around.available.iter().map(ToString::to_string).collect();
    all.sort();
    let directory = spec
        .working_directory
        .as_deref()
        .filter(|directory| !directory.is_empty());
    let directory = directory.unwrap_or(&image.working_directory);
    Ok(json!({
        "terminal": spec.terminal,
        "user": {"uid": user.id, "gid": user.group, "additionalGids": user.additional},
        "args": arguments,
        "env": environment(spec, image, around.hostname),
        "cwd": if directory.is_empty() { "/" } else { directory },
        "capabilities": {"bounding": all, "effective": all, "permitted": all, "inheritable": [], "ambient": []},
        "noNewPrivileges": !spec.security.may_gain_privileges && !spec.security.privileged,
    }))
}

fn environment(spec: &ContainerSpec, image: &ImageSettings, hostname: &str) -> Vec<String> {
    let mut variables: Vec<(String, String)> = vec![
        ("PATH".to_owned(), DEFAULT_PATH.to_owned()),
        ("HOSTNAME".to_owned(), hostname.to_owned()),
    ];
    if spec.terminal {
        variables.push(("TERM".to_owned(), "xterm".to_owned()));
    }
    let of_image = image
        .environment
        .iter()
        .map(|variable| variable.split_once('=').unwrap_or((variable, "")));
    let of_pod = spec
        .environment
        .iter()
        .map(|variable| (variable.name.as_str(), variable.value.as_str()));
    for (name, value) in of_image.chain(of_pod) {
        match variables.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => value.clone_into(known),
            None => variables.push((name.to_owned(), value.to_owned())),
        }
    }
    variables
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

fn plan_mounts(
    spec: &ContainerSpec,
    around: &Surroundings<'_>,
) -> Result<Vec<Value>, RuntimeError> {
    let system = |destination: &str, kind: &str, source: &str, options: &[&str]| json!({"destination": destination, "type": kind, "source": source, "options": options});
    let sys_access = if spec.security.privileged { "rw" } else { "ro" };
    let mut mounts = vec![
        system("/proc", "proc", "proc", &["nosuid", "noexec", "nodev"]),
        system(
            "/dev",
            "tmpfs",
            "tmpfs",
            &["nosuid", "strictatime", "mode=755", "size=65536k"],
        ),
        system(
            "/dev/pts",
            "devpts",
            "devpts",
            &[
                "nosuid",
                "noexec",
                "newinstance",
                "ptmxmode=0666",
                "mode=0620",
                "gid=5",
            ],
        ),
        system(
            "/dev/mqueue",
            "mqueue",
            "mqueue",
            &["nosuid", "noexec", "nodev"],
        ),
        system(
            "/sys",
            "sysfs",
            "sysfs",
            &["nosuid", "noexec", "nodev", sys_access],
        ),
        system(
            "/sys/fs/cgroup",
            "cgroup",
            "cgroup",
            &["nosuid", "noexec", "nodev", "relatime", sys_access],
        ),
    ];
    let is_mounted = |path: &str| spec.mounts.iter().any(|mount| mount.container_path == path);
    if around.pod.host_ipc {
        mounts.push(system("/dev/shm", "bind", "/dev/shm", &["rbind", "rw"]));
    } else if !is_mounted("/dev/shm") {
        mounts.push(system(
            "/dev/shm",
            "tmpfs",
            "shm",
            &["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"],
        ));
    }
    for (path, source) in around.files {
        if !is_mounted(path) {
            let access = if spec.security.read_only_root {
                "ro"
            } else {
                "rw"
            };
            mounts.push(system(path, "bind", source, &["rbind", "rprivate", access]));
        }
    }
    for mount in &spec.mounts {
        if !mount.container_path.starts_with('/') {
            return Err(RuntimeError::Invalid(format!(
                "the mount path {:?} is not absolute",
                mount.container_path
            )));
        }
        let propagation = match mount.propagation {
            Propagation::Private => "rprivate",
            Propagation::HostToContainer => "rslave",
            Propagation::Bidirectional => {
                return Err(RuntimeError::NotSupported(
                    "mounts of a container do not reach the node: mountPropagation Bidirectional is not possible with the oci runtime"
                        .to_owned(),
                ));
            }
        };
        let access = if mount.read_only { "ro" } else { "rw" };
        mounts.push(system(
            &mount.container_path,
            "bind",
            mount.host_path.as_str(),
            &["rbind", propagation, access],
        ));
    }
    Ok(mounts)
}

fn plan_linux(spec: &ContainerSpec, group: &str, around: &Surroundings<'_>) -> Value {
    let of_shim = |kind: &str, name: &str| json!({"type": kind, "path": format!("/proc/{}/ns/{name}", around.shim)});
    let mut namespaces = vec![json!({"type": "mount"})];
    if !around.pod.host_pid {
        namespaces.push(match around.first_process {
            Some(pid) => json!({"type": "pid", "path": format!("/proc/{pid}/ns/pid")}),
            None => json!({"type": "pid"}),
        });
    }
    if around.pod.network == PodNetwork::Own {
        namespaces.extend([of_shim("network", "net"), of_shim("uts", "uts")]);
    }
    if !around.pod.host_ipc {
        namespaces.push(of_shim("ipc", "ipc"));
    }
    if around.unified {
        namespaces.push(json!({"type": "cgroup"}));
    }
    let privileged = spec.security.privileged;
    let hides_paths = !privileged && !spec.security.unmasked_proc;
    let mut linux = json!({
        "namespaces": namespaces,
        "cgroupsPath": group,
        "resources": plan_resources(&spec.resources, privileged),
        "maskedPaths": if hides_paths { MASKED.as_slice() } else { &[] },
        "readonlyPaths": if hides_paths { READ_ONLY.as_slice() } else { &[] },
        "devices": if privileged { around.devices } else { &[] },
    });
    if spec
        .mounts
        .iter()
        .any(|mount| mount.propagation == Propagation::HostToContainer)
    {
        linux["rootfsPropagation"] = json!("rslave");
    }
    linux
}

fn plan_resources(resources: &Resources, privileged: bool) -> Value {
    let mut planned = json!({"devices": [{"allow": privileged, "access": "rwm"}]});
    let mut cpu = json!({});
    if let Some(millis) = resources.cpu_request_millis {
        cpu["shares"] = json!(cgroup::shares(millis));
    }
    if let Some(millis) = resources.cpu_limit_millis {
        cpu["quota"] = json!(cgroup::quota(millis));
        cpu["period"] = json!(cgroup::period());
    }
    if cpu != json!({}) {
        planned["cpu"] = cpu;
    }
    if let Some(bytes) = resources.memory_limit_bytes {
        planned["memory"] = json!({"limit": bytes});
    }
    if let Some(count) = resources.pids_limit {
        planned["pids"] = json!({"limit": count});
    }
    planned
}

#[cfg(test)]
mod tests;
