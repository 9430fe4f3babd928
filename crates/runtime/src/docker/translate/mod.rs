//! From our words to those of Docker. Pure: what cannot be said is refused here, in words.

use base64::Engine as _;
use serde_json::{Map, Value, json};
use transom_model::os::Os;

use super::labels;
use crate::{
    ContainerSpec, Credentials, Mount, PodNetwork, PodSpec, Propagation, Protocol, Resources,
    RuntimeError, Seccomp, Security,
};

const CPU_PERIOD: u64 = 100_000;
const LEAST_SHARES: u64 = 2;
const MOST_SHARES: u64 = 262_144;
/// What Docker keeps of outputs until they are in our own logs. An agent that is away for longer than this lasts
/// loses the oldest.
const LOG_FILE: (&str, &str) = ("32m", "3");

fn refused(what: &str) -> RuntimeError {
    RuntimeError::NotSupported(what.to_owned())
}

/// The container that holds a pod.
pub(super) fn sandbox(spec: &PodSpec, image: &str, os: Os) -> Result<Value, RuntimeError> {
    check_pod(spec, os)?;
    let mut host = json!({
        "NetworkMode": match spec.network {
            PodNetwork::Host => "host",
            PodNetwork::Own => "default",
        },
        "Dns": spec.dns.servers,
        "DnsSearch": spec.dns.searches,
        "DnsOptions": spec.dns.options,
        "PortBindings": ports(spec),
        "LogConfig": {"Type": "none"},
    });
    match os {
        Os::Linux => extend(
            &mut host,
            json!({
                "IpcMode": if spec.host_ipc { "host" } else { "shareable" },
                "PidMode": if spec.host_pid { "host" } else { "" },
                "Sysctls": spec.sysctls,
                "CapDrop": ["ALL"],
                "ReadonlyRootfs": true,
                "SecurityOpt": ["no-new-privileges"],
            }),
        ),
        Os::Windows => extend(&mut host, json!({"Isolation": "process"})),
    }
    let exposed: Map<String, Value> = ports(spec)
        .keys()
        .map(|port| (port.clone(), json!({})))
        .collect();
    Ok(json!({
        "Image": image,
        // In the node's network the name is the node's, which nobody may change.
        "Hostname": match spec.network {
            PodNetwork::Own => spec.hostname.as_str(),
            PodNetwork::Host => "",
        },
        "Labels": labels::of_pod(spec)?,
        "ExposedPorts": exposed,
        "HostConfig": host,
    }))
}

fn check_pod(spec: &PodSpec, os: Os) -> Result<(), RuntimeError> {
    if os == Os::Linux {
        return Ok(());
    }
    if spec.network == PodNetwork::Host {
        return Err(refused(
            "docker on Windows gives no container the network of the node; host processes have it, with the runtime process",
        ));
    }
    if spec.host_pid || spec.host_ipc || spec.share_processes {
        return Err(refused(
            "containers of Windows share no processes and no memory, neither with each other nor with the node",
        ));
    }
    if spec.sysctls.is_empty() {
        return Ok(());
    }
    Err(refused("Windows has no sysctls"))
}

fn ports(spec: &PodSpec) -> Map<String, Value> {
    let mut bindings = Map::new();
    for port in &spec.ports {
        let protocol = match port.protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Sctp => "sctp",
        };
        let address = port.host_address.map(|address| address.to_string());
        let binding = json!({
            "HostIp": address.unwrap_or_default(),
            "HostPort": port.host_port.to_string(),
        });
        let key = format!("{}/{protocol}", port.container_port);
        let there = bindings.entry(key).or_insert_with(|| json!([]));
        if let Value::Array(list) = there {
            list.push(binding);
        }
    }
    bindings
}

/// A container of a pod. `profile` is the seccomp profile of the node that it asks for.
pub(super) fn container(
    spec: &ContainerSpec,
    pod: &PodSpec,
    sandbox: &str,
    os: Os,
    profile: Option<&str>,
) -> Result<Value, RuntimeError> {
    let joined = format!("container:{sandbox}");
    let mut host = json!({
        "NetworkMode": joined,
        "Mounts": spec.mounts.iter().map(|one| mount(one, os)).collect::<Vec<_>>(),
        "LogConfig": {
            "Type": "json-file",
            "Config": {"max-size": LOG_FILE.0, "max-file": LOG_FILE.1},
        },
    });
    extend(&mut host, resources(&spec.resources, os));
    match os {
        Os::Linux => {
            extend(&mut host, linux_security(&spec.security, profile));
            extend(
                &mut host,
                json!({
                    "IpcMode": if pod.host_ipc { "host" } else { joined.as_str() },
                    "PidMode": match (pod.host_pid, pod.share_processes) {
                        (true, _) => "host",
                        (false, true) => joined.as_str(),
                        (false, false) => "",
                    },
                }),
            );
            if let Some(adjustment) = spec.resources.oom_score_adjustment {
                extend(&mut host, json!({"OomScoreAdj": adjustment}));
            }
        }
        Os::Windows => {
            check_windows(&spec.security)?;
            extend(&mut host, json!({"Isolation": "process"}));
        }
    }
    let variables = spec.environment.iter();
    let mut made = json!({
        "Image": spec.image,
        "Env": variables.map(|one| format!("{}={}", one.name, one.value)).collect::<Vec<_>>(),
        "Labels": labels::of_container(spec, pod, sandbox)?,
        "User": user(&spec.security)?,
        "WorkingDir": spec.working_directory.as_deref().unwrap_or_default(),
        "OpenStdin": spec.stdin,
        "StdinOnce": spec.stdin_once,
        "Tty": spec.terminal,
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": host,
    });
    // Lists that are there and empty would take away what the image says.
    if !spec.command.is_empty() {
        extend(&mut made, json!({"Entrypoint": spec.command}));
    }
    if !spec.arguments.is_empty() {
        extend(&mut made, json!({"Cmd": spec.arguments}));
    }
    if let Some(signal) = &spec.stop_signal {
        extend(&mut made, json!({"StopSignal": signal}));
    }
    Ok(made)
}

fn check_windows(security: &Security) -> Result<(), RuntimeError> {
    if security.host_process {
        return Err(refused(
            "docker runs no host processes; the runtimes process and cri do",
        ));
    }
    if security.privileged {
        return Err(refused("Windows has no privileged containers"));
    }
    Ok(())
}

fn user(security: &Security) -> Result<String, RuntimeError> {
    match (security.user, security.group) {
        (Some(user), Some(group)) => Ok(format!("{user}:{group}")),
        (Some(user), None) => Ok(user.to_string()),
        (None, None) => Ok(security.user_name.clone().unwrap_or_default()),
        (None, Some(_)) => Err(RuntimeError::Invalid(
            "runAsGroup is specified without a runAsUser".to_owned(),
        )),
    }
}

fn mount(mount: &Mount, os: Os) -> Value {
    let (source, target) = match os {
        Os::Linux => (mount.host_path.to_string(), mount.container_path.clone()),
        Os::Windows => (
            mount.host_path.as_str().replace('/', r"\"),
            windows_target(&mount.container_path),
        ),
    };
    let mut made = json!({
        "Type": "bind",
        "Source": source,
        "Target": target,
        "ReadOnly": mount.read_only,
    });
    if os == Os::Linux {
        let propagation = match mount.propagation {
            Propagation::Private => "rprivate",
            Propagation::HostToContainer => "rslave",
            Propagation::Bidirectional => "rshared",
        };
        extend(
            &mut made,
            json!({"BindOptions": {"Propagation": propagation}}),
        );
    }
    made
}

/// A path in a container of Windows: one without a drive is on the system's.
fn windows_target(path: &str) -> String {
    let path = path.replace('/', r"\");
    if path.starts_with('\\') {
        format!("C:{path}")
    } else {
        path
    }
}

/// Limits, for a new container or one that runs.
pub(super) fn resources(resources: &Resources, os: Os) -> Value {
    let mut made = json!({});
    if let Some(memory) = resources.memory_limit_bytes {
        extend(&mut made, json!({"Memory": memory}));
    }
    match os {
        Os::Linux => {
            if let Some(memory) = resources.memory_limit_bytes {
                // As much with swap as without: no swap.
                extend(&mut made, json!({"MemorySwap": memory}));
            }
            if let Some(millis) = resources.cpu_request_millis {
                let shares = (millis * 1024 / 1000).clamp(LEAST_SHARES, MOST_SHARES);
                extend(&mut made, json!({"CpuShares": shares}));
            }
            if let Some(millis) = resources.cpu_limit_millis {
                let quota = (millis * CPU_PERIOD / 1000).max(1000);
                extend(
                    &mut made,
                    json!({"CpuQuota": quota, "CpuPeriod": CPU_PERIOD}),
                );
            }
            if let Some(pids) = resources.pids_limit {
                extend(&mut made, json!({"PidsLimit": pids}));
            }
        }
        Os::Windows => {
            if let Some(millis) = resources.cpu_limit_millis {
                extend(
                    &mut made,
                    json!({"NanoCpus": millis.saturating_mul(1_000_000)}),
                );
            }
        }
    }
    made
}

fn linux_security(security: &Security, profile: Option<&str>) -> Value {
    let mut options = Vec::new();
    if !security.may_gain_privileges && !security.privileged {
        options.push("no-new-privileges".to_owned());
    }
    match (&security.seccomp, profile) {
        (Seccomp::Unconfined, _) => options.push("seccomp=unconfined".to_owned()),
        (Seccomp::Localhost(_), Some(profile)) => options.push(format!("seccomp={profile}")),
        // Docker's own, which is there if nothing is said.
        (Seccomp::RuntimeDefault | Seccomp::Localhost(_), _) => {}
    }
    let groups: Vec<String> = security
        .supplemental_groups
        .iter()
        .map(ToString::to_string)
        .collect();
    let mut made = json!({
        "Privileged": security.privileged,
        "ReadonlyRootfs": security.read_only_root,
        "CapAdd": security.capabilities.add,
        "CapDrop": security.capabilities.drop,
        "GroupAdd": groups,
        "SecurityOpt": options,
    });
    if security.unmasked_proc {
        extend(&mut made, json!({"MaskedPaths": [], "ReadonlyPaths": []}));
    }
    made
}

/// Who asks a registry, as a header.
pub(super) fn authority(credentials: &Credentials) -> String {
    let document = match credentials {
        Credentials::Password { user, password } => {
            json!({"username": user, "password": password})
        }
        Credentials::Token(token) => json!({"registrytoken": token}),
    };
    base64::engine::general_purpose::URL_SAFE.encode(document.to_string())
}

fn extend(object: &mut Value, more: Value) {
    if let (Value::Object(object), Value::Object(more)) = (object, more) {
        object.extend(more);
    }
}

#[cfg(test)]
mod tests;
