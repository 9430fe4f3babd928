//! Between our words and those of the interface. Pure.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use transom_host::process::Signal;
use transom_model::os::Os;

use super::Config;
use super::wire::{
    CREATED, CapabilityChange, ContainerConfig, ContainerMetadata, ContainerStatus, DnsConfig,
    ImageSpec, Int64Value, KeyValue, LinuxContainer, LinuxResources, LinuxSandbox,
    LinuxSandboxSecurity, LinuxSecurity, MountConfig, NamespaceOption, PortMapping, RUNNING,
    SandboxConfig, SandboxMetadata, SecurityProfile, WindowsContainer, WindowsResources,
    WindowsSandbox, WindowsSandboxSecurity, WindowsSecurity,
};
use crate::{
    ContainerSpec, ContainerState, Ended, PodNetwork, PodSpec, Propagation, Protocol, Resources,
    RuntimeError, Seccomp, Security,
};

/// Only what carries this label is ours.
pub(super) const OURS: (&str, &str) = ("transom.io/runtime", "cri");
/// Annotations in which we keep what the interface has no place for.
const POD_SPEC: &str = "transom.io/pod";
const IMAGE: &str = "transom.io/image";
const IMAGE_NAME: &str = "transom.io/image-name";
const LOG_PATH: &str = "transom.io/log-path";
const TERMINAL: &str = "transom.io/terminal";
const OWN: [&str; 5] = [POD_SPEC, IMAGE, IMAGE_NAME, LOG_PATH, TERMINAL];

const CPU_PERIOD: u64 = 100_000;
const LEAST_SHARES: u64 = 2;
const MOST_SHARES: u64 = 262_144;
const OF_POD: i32 = 0;
const OF_CONTAINER: i32 = 1;
const OF_NODE: i32 = 2;

/// The signals of the interface in the order of their numbers, which are no numbers of any system.
const SIGNALS: [&str; 34] = [
    "ABRT", "ALRM", "BUS", "CHLD", "CLD", "CONT", "FPE", "HUP", "ILL", "INT", "IO", "IOT", "KILL",
    "PIPE", "POLL", "PROF", "PWR", "QUIT", "SEGV", "STKFLT", "STOP", "SYS", "TERM", "TRAP", "TSTP",
    "TTIN", "TTOU", "URG", "USR1", "USR2", "VTALRM", "WINCH", "XCPU", "XFSZ",
];

/// What is kept of a container beside what the interface tells.
pub(super) struct Kept {
    pub(super) image: String,
    pub(super) image_name: String,
    pub(super) log_path: String,
    pub(super) terminal: bool,
}

pub(super) fn our_label() -> HashMap<String, String> {
    [(OURS.0.to_owned(), OURS.1.to_owned())].into()
}

fn labelled(labels: &BTreeMap<String, String>) -> HashMap<String, String> {
    let mut all = our_label();
    all.extend(labels.clone());
    all
}

/// Labels or annotations as they were given, without ours.
pub(super) fn given(all: &HashMap<String, String>) -> BTreeMap<String, String> {
    let is_own = |name: &str| name == OURS.0 || OWN.contains(&name);
    let given = all.iter().filter(|(name, _)| !is_own(name));
    given
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// What a sandbox was made from.
pub(super) fn pod_spec(annotations: &HashMap<String, String>) -> Result<PodSpec, RuntimeError> {
    let text = annotations.get(POD_SPEC).map_or("", String::as_str);
    serde_json::from_str(text)
        .map_err(|error| RuntimeError::Other(format!("the pod's description is lost: {error}")))
}

pub(super) fn kept(annotations: &HashMap<String, String>) -> Kept {
    let get = |name: &str| annotations.get(name).cloned().unwrap_or_default();
    Kept {
        image: get(IMAGE),
        image_name: get(IMAGE_NAME),
        log_path: get(LOG_PATH),
        terminal: annotations.contains_key(TERMINAL),
    }
}

pub(super) fn sandbox(spec: &PodSpec, config: &Config) -> Result<SandboxConfig, RuntimeError> {
    let described = serde_json::to_string(spec)
        .map_err(|error| RuntimeError::Other(format!("the pod cannot be described: {error}")))?;
    let mut annotations: HashMap<String, String> = spec.annotations.clone().into_iter().collect();
    annotations.insert(POD_SPEC.to_owned(), described);
    let ports = spec.ports.iter().map(|port| PortMapping {
        protocol: match port.protocol {
            Protocol::Tcp => 0,
            Protocol::Udp => 1,
            Protocol::Sctp => 2,
        },
        container_port: port.container_port.into(),
        host_port: port.host_port.into(),
        host_ip: port
            .host_address
            .map(|address| address.to_string())
            .unwrap_or_default(),
    });
    Ok(SandboxConfig {
        metadata: Some(SandboxMetadata {
            name: spec.name.clone(),
            uid: spec.uid.clone(),
            namespace: spec.namespace.clone(),
            attempt: spec.attempt,
        }),
        // In the node's network the name is the node's, which nobody may change.
        hostname: match spec.network {
            PodNetwork::Own => spec.hostname.clone(),
            PodNetwork::Host => String::new(),
        },
        log_directory: spec.log_directory.to_string(),
        dns: Some(DnsConfig {
            servers: spec.dns.servers.clone(),
            searches: spec.dns.searches.clone(),
            options: spec.dns.options.clone(),
        }),
        ports: ports.collect(),
        labels: labelled(&spec.labels),
        annotations,
        linux: (config.os == Os::Linux).then(|| LinuxSandbox {
            cgroup_parent: spec.cgroup_parent.clone(),
            security: Some(LinuxSandboxSecurity {
                namespaces: Some(namespaces(spec)),
                // No container may be privileged in a sandbox that is not.
                privileged: spec.privileged,
                seccomp: Some(SecurityProfile::default()),
            }),
            sysctls: spec.sysctls.clone().into_iter().collect(),
            resources: Some(linux_resources(&spec.resources)),
        }),
        windows: (config.os == Os::Windows).then(|| WindowsSandbox {
            security: Some(WindowsSandboxSecurity {
                // On Windows only host processes are in the node's network.
                host_process: spec.network == PodNetwork::Host,
            }),
        }),
    })
}

fn namespaces(spec: &PodSpec) -> NamespaceOption {
    NamespaceOption {
        network: match spec.network {
            PodNetwork::Own => OF_POD,
            PodNetwork::Host => OF_NODE,
        },
        pid: match (spec.host_pid, spec.share_processes) {
            (true, _) => OF_NODE,
            (false, true) => OF_POD,
            (false, false) => OF_CONTAINER,
        },
        ipc: if spec.host_ipc { OF_NODE } else { OF_POD },
    }
}

pub(super) fn container(
    spec: &ContainerSpec,
    pod: &PodSpec,
    config: &Config,
) -> Result<ContainerConfig, RuntimeError> {
    let mut annotations: HashMap<String, String> = spec.annotations.clone().into_iter().collect();
    annotations.insert(IMAGE.to_owned(), spec.image.clone());
    annotations.insert(IMAGE_NAME.to_owned(), spec.image_name.clone());
    annotations.insert(LOG_PATH.to_owned(), spec.log_path.to_string());
    if spec.terminal {
        annotations.insert(TERMINAL.to_owned(), true.to_string());
    }
    let variables = spec.environment.iter().map(|variable| KeyValue {
        key: variable.name.clone(),
        value: variable.value.clone(),
    });
    let mounts = spec.mounts.iter().map(|mount| MountConfig {
        container_path: mount.container_path.clone(),
        host_path: mount.host_path.to_string(),
        read_only: mount.read_only,
        propagation: match mount.propagation {
            Propagation::Private => 0,
            Propagation::HostToContainer => 1,
            Propagation::Bidirectional => 2,
        },
    });
    Ok(ContainerConfig {
        metadata: Some(ContainerMetadata {
            name: spec.name.clone(),
            attempt: spec.attempt,
        }),
        image: Some(ImageSpec {
            image: spec.image.clone(),
        }),
        command: spec.command.clone(),
        arguments: spec.arguments.clone(),
        working_directory: spec.working_directory.clone().unwrap_or_default(),
        environment: variables.collect(),
        mounts: mounts.collect(),
        labels: labelled(&spec.labels),
        annotations,
        log_path: spec.log_path.to_string(),
        stdin: spec.stdin,
        stdin_once: spec.stdin_once,
        terminal: spec.terminal,
        linux: (config.os == Os::Linux).then(|| LinuxContainer {
            resources: Some(linux_resources(&spec.resources)),
            security: Some(linux_security(&spec.security, namespaces(pod))),
        }),
        windows: (config.os == Os::Windows).then(|| WindowsContainer {
            resources: Some(windows_resources(&spec.resources, config.processors)),
            security: Some(WindowsSecurity {
                user_name: spec.security.user_name.clone().unwrap_or_default(),
                host_process: spec.security.host_process,
            }),
        }),
        stop_signal: spec.stop_signal.as_deref().map_or(Ok(0), stop_signal)?,
    })
}

/// The number of a signal in the interface.
fn stop_signal(name: &str) -> Result<i32, RuntimeError> {
    let signal: Signal = name
        .parse()
        .map_err(|error| RuntimeError::Invalid(format!("{error}")))?;
    let spelled = signal.to_string();
    let bare = spelled.trim_start_matches("SIG");
    let place = (1..).zip(SIGNALS).find(|(_, known)| *known == bare);
    place.map(|(number, _)| number).ok_or_else(|| {
        RuntimeError::NotSupported(format!("the container runtime interface has no {spelled}"))
    })
}

pub(super) fn linux_resources(resources: &Resources) -> LinuxResources {
    let shares = resources.cpu_request_millis.map_or(0, |millis| {
        (millis * 1024 / 1000).clamp(LEAST_SHARES, MOST_SHARES)
    });
    let quota = resources
        .cpu_limit_millis
        .map_or(0, |millis| (millis * CPU_PERIOD / 1000).max(1000));
    LinuxResources {
        cpu_period: if quota > 0 { signed(CPU_PERIOD) } else { 0 },
        cpu_quota: signed(quota),
        cpu_shares: signed(shares),
        memory_limit: signed(resources.memory_limit_bytes.unwrap_or(0)),
        oom_score_adjustment: resources.oom_score_adjustment.unwrap_or(0).into(),
    }
}

pub(super) fn windows_resources(resources: &Resources, processors: u32) -> WindowsResources {
    let all = u64::from(processors.max(1)) * 1000;
    let maximum = resources
        .cpu_limit_millis
        .map_or(0, |millis| (millis * 10_000 / all).clamp(1, 10_000));
    WindowsResources {
        cpu_shares: 0,
        cpu_maximum: signed(maximum),
        memory_limit: signed(resources.memory_limit_bytes.unwrap_or(0)),
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// What a container should not see or change of the node under `/proc` and `/sys`.
const MASKED: [&str; 11] = [
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
];
const READ_ONLY: [&str; 5] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

fn linux_security(security: &Security, namespaces: NamespaceOption) -> LinuxSecurity {
    let hides = !security.privileged && !security.unmasked_proc;
    let paths = |paths: &[&str]| {
        let paths = paths.iter().filter(|_| hides);
        paths.map(ToString::to_string).collect::<Vec<_>>()
    };
    LinuxSecurity {
        capabilities: Some(CapabilityChange {
            add: security.capabilities.add.clone(),
            drop: security.capabilities.drop.clone(),
        }),
        privileged: security.privileged,
        namespaces: Some(namespaces),
        user: security.user.map(|value| Int64Value { value }),
        user_name: security.user_name.clone().unwrap_or_default(),
        read_only_root: security.read_only_root,
        supplemental_groups: security.supplemental_groups.clone(),
        no_new_privileges: !security.may_gain_privileges,
        group: security.group.map(|value| Int64Value { value }),
        masked_paths: paths(&MASKED),
        read_only_paths: paths(&READ_ONLY),
        seccomp: Some(match &security.seccomp {
            Seccomp::RuntimeDefault => SecurityProfile::default(),
            Seccomp::Unconfined => SecurityProfile {
                kind: 1,
                localhost: String::new(),
            },
            Seccomp::Localhost(path) => SecurityProfile {
                kind: 2,
                localhost: path.to_string(),
            },
        }),
    }
}

pub(super) fn time(nanoseconds: i64) -> Timestamp {
    Timestamp::from_nanosecond(nanoseconds.into()).unwrap_or(Timestamp::UNIX_EPOCH)
}

pub(super) fn state(status: &ContainerStatus) -> ContainerState {
    match status.state {
        CREATED => ContainerState::Created,
        RUNNING => ContainerState::Running {
            started: time(status.started_at),
        },
        // One whose state is unknown over there does not run for all we know.
        _ => ContainerState::Exited(ended(status)),
    }
}

fn ended(status: &ContainerStatus) -> Ended {
    let never_ran = status.started_at <= 0 || status.reason == "StartError";
    let reason = match status.reason.as_str() {
        "StartError" => "ContainerCannotRun",
        "" if status.exit_code == 0 => "Completed",
        "" => "Error",
        other => other,
    };
    let started = (!never_ran).then(|| time(status.started_at));
    let finished = time(status.finished_at);
    Ended {
        started,
        // A program that ends at once is over there before it was seen to start.
        finished: started.map_or(finished, |started| finished.max(started)),
        exit_code: status.exit_code,
        reason: reason.to_owned(),
        message: status.message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(os: Os) -> Config {
        Config {
            address: String::new(),
            os,
            processors: 4,
        }
    }

    #[test]
    fn a_pod_comes_back_from_its_annotations_and_ours_are_not_shown() {
        let spec = PodSpec {
            uid: "u".to_owned(),
            labels: [("app".to_owned(), "x".to_owned())].into(),
            annotations: [("a".to_owned(), "b".to_owned())].into(),
            network: PodNetwork::Host,
            ..PodSpec::default()
        };
        let made = sandbox(&spec, &config(Os::Linux)).unwrap();
        assert_eq!(pod_spec(&made.annotations).unwrap(), spec);
        assert_eq!(given(&made.annotations), spec.annotations);
        assert_eq!(given(&made.labels), spec.labels);
        assert_eq!(made.labels[OURS.0], OURS.1);
        let linux = made.linux.unwrap().security.unwrap().namespaces.unwrap();
        assert_eq!(
            (linux.network, linux.pid, linux.ipc),
            (OF_NODE, OF_CONTAINER, OF_POD)
        );
        assert!(made.windows.is_none());
        assert!(pod_spec(&HashMap::new()).is_err());
        let windows = sandbox(&spec, &config(Os::Windows)).unwrap();
        assert!(windows.linux.is_none());
        assert!(windows.windows.unwrap().security.unwrap().host_process);
    }

    #[test]
    fn a_sandbox_is_privileged_if_one_of_its_containers_is_to_be() {
        for privileged in [true, false] {
            let spec = PodSpec {
                privileged,
                ..PodSpec::default()
            };
            let made = sandbox(&spec, &config(Os::Linux)).unwrap();
            let security = made.linux.unwrap().security.unwrap();
            assert_eq!(security.privileged, privileged);
        }
    }

    #[test]
    fn whether_a_container_has_a_terminal_is_known_later() {
        for terminal in [true, false] {
            let spec = ContainerSpec {
                terminal,
                ..ContainerSpec::default()
            };
            let made = container(&spec, &PodSpec::default(), &config(Os::Linux)).unwrap();
            assert_eq!(kept(&made.annotations).terminal, terminal);
            assert_eq!(given(&made.annotations), BTreeMap::new());
        }
    }

    #[test]
    fn shares_of_processors_are_counted_as_each_system_does() {
        let resources = Resources {
            cpu_request_millis: Some(250),
            cpu_limit_millis: Some(1500),
            memory_limit_bytes: Some(1 << 20),
            ..Resources::default()
        };
        let linux = linux_resources(&resources);
        assert_eq!((linux.cpu_quota, linux.cpu_period), (150_000, 100_000));
        assert_eq!((linux.cpu_shares, linux.memory_limit), (256, 1 << 20));
        assert_eq!(
            linux_resources(&Resources::default()),
            LinuxResources::default()
        );
        // One and a half of four processors.
        assert_eq!(windows_resources(&resources, 4).cpu_maximum, 3750);
        assert_eq!(windows_resources(&Resources::default(), 0).cpu_maximum, 0);
    }

    #[test]
    fn signals_have_the_numbers_of_the_interface() {
        assert_eq!(stop_signal("SIGTERM").unwrap(), 23);
        assert_eq!(stop_signal("USR1").unwrap(), 29);
        assert_eq!(stop_signal("1").unwrap(), 8);
        assert!(matches!(
            stop_signal("nonsense"),
            Err(RuntimeError::Invalid(_))
        ));
        assert!(matches!(
            stop_signal("40"),
            Err(RuntimeError::NotSupported(_))
        ));
    }

    #[test]
    fn a_start_that_failed_is_told_in_our_words() {
        let status = ContainerStatus {
            state: 2,
            finished_at: 5,
            exit_code: 128,
            reason: "StartError".to_owned(),
            message: "no such file".to_owned(),
            ..ContainerStatus::default()
        };
        let ContainerState::Exited(ended) = state(&status) else {
            panic!("it has ended");
        };
        assert_eq!(
            (ended.started, ended.reason.as_str()),
            (None, "ContainerCannotRun")
        );
    }
}
