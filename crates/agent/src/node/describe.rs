//! What the API is told about the node. Pure, but for the facts that are read from the machine.

use std::{collections::BTreeMap, net::IpAddr};

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{
        ContainerImage, DaemonEndpoint, Node, NodeAddress, NodeCondition, NodeDaemonEndpoints,
        NodeSpec, NodeStatus, NodeSystemInfo,
    },
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{ObjectMeta, Time},
    },
};
use transom_host::machine::{Machine, MachineError};
use transom_model::{Os, labels};
use transom_runtime::{Image, Version};

use crate::{Options, Reserved, compose::Allocatable, pressure::Condition, quantity, site::Site};

/// What the version of kubelet is compared with: the API that this agent speaks.
const VERSION: &str = concat!("v1.36.0+transom.", env!("CARGO_PKG_VERSION"));
const MOST_IMAGES: usize = 50;
const MOST_NAMES: usize = 5;

/// A reason and its text.
type Said = (&'static str, &'static str);

/// What is told of each shortage: if there is one, and if there is none.
const PRESSURES: [(Condition, Said, Said); 3] = [
    (
        Condition::Memory,
        (
            "KubeletHasInsufficientMemory",
            "kubelet has insufficient memory available",
        ),
        (
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        ),
    ),
    (
        Condition::Disk,
        ("KubeletHasDiskPressure", "kubelet has disk pressure"),
        ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ),
    (
        Condition::Processes,
        (
            "KubeletHasInsufficientPID",
            "kubelet has insufficient PID available",
        ),
        (
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available",
        ),
    ),
];

/// How much there is of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Capacity {
    pub(crate) cpu_millis: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) storage_bytes: u64,
}

impl Capacity {
    pub(crate) fn of(options: &Options) -> Result<Self, MachineError> {
        let processors = options.machine.processors()?.logical;
        let memory = options.machine.memory()?.total;
        // A disk that cannot be measured is told as none, rather than keeping the node away.
        let storage = options
            .files
            .free_space(&options.state)
            .map(|space| space.total);
        Ok(Self {
            cpu_millis: u64::try_from(processors).unwrap_or(1) * 1000,
            memory_bytes: memory,
            storage_bytes: storage.unwrap_or(0),
        })
    }

    pub(crate) fn allocatable(self, reserved: Reserved) -> Allocatable {
        Allocatable {
            cpu_millis: self.cpu_millis.saturating_sub(reserved.cpu_millis),
            memory_bytes: self.memory_bytes.saturating_sub(reserved.memory_bytes),
            storage_bytes: self.storage_bytes.saturating_sub(reserved.storage_bytes),
        }
    }
}

/// What a description is made from.
pub(super) struct Facts<'a> {
    pub(super) site: &'a Site,
    pub(super) runtime: Result<&'a Version, &'a String>,
    pub(super) images: Vec<Image>,
}

/// The labels this node has of itself.
pub(crate) fn own_labels(site: &Site) -> BTreeMap<String, String> {
    let options = &site.options;
    let mut all = options.labels.clone();
    let mut set = |name: &str, value: String| drop(all.insert(name.to_owned(), value));
    let os = site.os.to_string();
    set(labels::OS, os.clone());
    set(labels::OS_BETA, os);
    match options.machine.system() {
        Ok(system) => {
            if let Some(arch) = system.arch {
                set(labels::ARCH, arch.to_string());
                set(labels::ARCH_BETA, arch.to_string());
            }
            if let Some(version) = system.windows_version {
                set(labels::WINDOWS_BUILD, version.build_label());
            }
        }
        Err(error) => tracing::warn!(%error, "the system of this machine is not known"),
    }
    all.entry(labels::HOSTNAME.to_owned())
        .or_insert_with(|| options.node.clone());
    all
}

pub(super) fn node(facts: &Facts<'_>, now: Timestamp) -> Node {
    let options = &facts.site.options;
    let taints = options.taints.clone();
    Node {
        metadata: ObjectMeta {
            name: Some(options.node.clone()),
            labels: Some(own_labels(facts.site)),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            taints: (!taints.is_empty()).then_some(taints),
            ..NodeSpec::default()
        }),
        status: Some(status(facts, now)),
    }
}

pub(super) fn status(facts: &Facts<'_>, now: Timestamp) -> NodeStatus {
    let site = facts.site;
    let options = &site.options;
    let room = site.allocatable;
    let whole = Allocatable {
        cpu_millis: room.cpu_millis + options.reserved.cpu_millis,
        memory_bytes: site.memory_bytes,
        storage_bytes: room.storage_bytes + options.reserved.storage_bytes,
    };
    NodeStatus {
        capacity: Some(amounts(whole, options.max_pods)),
        allocatable: Some(amounts(room, options.max_pods)),
        addresses: Some(addresses(options)),
        conditions: Some(conditions(facts, now)),
        daemon_endpoints: options.listen.as_ref().map(|listen| NodeDaemonEndpoints {
            kubelet_endpoint: Some(DaemonEndpoint {
                port: i32::from(listen.address.port()),
            }),
        }),
        images: Some(images(&facts.images)).filter(|images| !images.is_empty()),
        node_info: Some(node_info(site.os, options.machine.as_ref(), facts.runtime)),
        ..NodeStatus::default()
    }
}

fn amounts(room: Allocatable, pods: u32) -> BTreeMap<String, Quantity> {
    [
        ("cpu", quantity::cpu(room.cpu_millis)),
        ("memory", quantity::memory(room.memory_bytes)),
        ("ephemeral-storage", quantity::memory(room.storage_bytes)),
        ("pods", quantity::count(u64::from(pods))),
    ]
    .map(|(name, amount)| (name.to_owned(), amount))
    .into()
}

fn addresses(options: &Options) -> Vec<NodeAddress> {
    let internal = |address: &IpAddr| NodeAddress {
        type_: "InternalIP".to_owned(),
        address: address.to_string(),
    };
    let mut all: Vec<_> = options.addresses.iter().map(internal).collect();
    let name = options.machine.system().map(|system| system.host_name);
    all.push(NodeAddress {
        type_: "Hostname".to_owned(),
        address: name
            .ok()
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| options.node.clone()),
    });
    all
}

fn node_info(os: Os, machine: &dyn Machine, runtime: Result<&Version, &String>) -> NodeSystemInfo {
    let system = machine.system().ok();
    let system = system.as_ref();
    NodeSystemInfo {
        operating_system: os.to_string(),
        architecture: system
            .and_then(|system| system.arch)
            .map(|arch| arch.to_string())
            .unwrap_or_default(),
        os_image: system
            .map(|system| system.pretty_name.clone())
            .unwrap_or_default(),
        kernel_version: system
            .map(|system| system.kernel.clone())
            .unwrap_or_default(),
        boot_id: machine.boot_id().unwrap_or_default(),
        container_runtime_version: runtime
            .map(|version| format!("{}://{}", version.name, version.version))
            .unwrap_or_default(),
        kubelet_version: VERSION.to_owned(),
        ..NodeSystemInfo::default()
    }
}

/// The largest ones: pods are better placed where those are.
fn images(all: &[Image]) -> Vec<ContainerImage> {
    let mut all: Vec<_> = all.iter().collect();
    all.sort_by_key(|image| std::cmp::Reverse((image.size, image.id.clone())));
    let named = |image: &Image| ContainerImage {
        names: Some(
            image
                .digests
                .iter()
                .chain(&image.tags)
                .take(MOST_NAMES)
                .cloned()
                .collect(),
        ),
        size_bytes: i64::try_from(image.size).ok(),
    };
    all.into_iter().take(MOST_IMAGES).map(named).collect()
}

fn conditions(facts: &Facts<'_>, now: Timestamp) -> Vec<NodeCondition> {
    let site = facts.site;
    let now = Time(Timestamp::from_second(now.as_second()).unwrap_or(now));
    let say = |name: &str, is_true: bool, reason: &str, message: String| NodeCondition {
        type_: name.to_owned(),
        status: if is_true { "True" } else { "False" }.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message),
        last_heartbeat_time: Some(now.clone()),
        last_transition_time: Some(now.clone()),
    };
    let short_of = site.pressure.conditions();
    let mut all: Vec<_> = PRESSURES
        .iter()
        .map(|(condition, short, plenty)| {
            let is_short = short_of.contains(condition);
            let (reason, text) = if is_short { short } else { plenty };
            say(condition.name(), is_short, reason, (*text).to_owned())
        })
        .collect();
    let trouble = match facts.runtime {
        Err(error) => Some(format!("container runtime is down: {error}")),
        Ok(_) => site
            .observer
            .trouble()
            .map(|error| format!("PLEG is not healthy: {error}")),
    };
    all.push(match trouble {
        None => say(
            "Ready",
            true,
            "KubeletReady",
            "kubelet is posting ready status".to_owned(),
        ),
        Some(trouble) => say("Ready", false, "KubeletNotReady", trouble),
    });
    all
}

pub(super) fn is_ready(status: &NodeStatus) -> bool {
    let mut conditions = status.conditions.iter().flatten();
    conditions.any(|one| one.type_ == "Ready" && one.status == "True")
}
