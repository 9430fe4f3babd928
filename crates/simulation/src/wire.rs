//! What is written to the API: nodes, leases, workloads, and what hollow nodes say of their pods. Pure.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use transom_model::{Os, labels};

use crate::ledger::Errand;
use crate::plan::{MOST_PODS, PlannedNode, Workload};

/// The namespace of everything that has one.
pub(crate) const NAMESPACE: &str = "simulation";
/// The label that tells pods before an upgrade from those after it.
pub(crate) const REVISION: &str = "simulation.transom.dev/revision";
const WORKLOAD: &str = "simulation.transom.dev/workload";
const ZONE: &str = "topology.kubernetes.io/zone";
const VERSION: &str = concat!("v1.36.0+transom.", env!("CARGO_PKG_VERSION"));
/// How long a pod may take to end, as a Deployment of people would have it.
const GRACE_SECONDS: u32 = 30;

/// Before an upgrade, or after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Revision {
    Old,
    New,
}

impl Revision {
    fn word(self) -> &'static str {
        match self {
            Self::Old => "old",
            Self::New => "new",
        }
    }
}

pub(crate) fn is_upgraded(label: Option<&String>) -> bool {
    label.is_some_and(|label| label == Revision::New.word())
}

/// A hollow node, ready for pods.
pub(crate) fn node(planned: &PlannedNode, index: usize, now: Timestamp) -> Value {
    let os = planned.os.to_string();
    let mut all = json!({
        labels::OS: os,
        labels::OS_BETA: os,
        labels::ARCH: "amd64",
        labels::ARCH_BETA: "amd64",
        labels::HOSTNAME: planned.name,
        ZONE: planned.zone,
    });
    if let Some(build) = &planned.windows_build {
        all[labels::WINDOWS_BUILD] = build.as_str().into();
    }
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": planned.name, "labels": all},
        "status": node_status(planned, index, now),
    })
}

/// What a node that is well says of itself.
pub(crate) fn node_status(planned: &PlannedNode, index: usize, now: Timestamp) -> Value {
    let amounts = json!({
        "cpu": "64",
        "memory": "256Gi",
        "ephemeral-storage": "512Gi",
        "pods": MOST_PODS.to_string(),
    });
    let (image, kernel) = match &planned.windows_build {
        Some(build) => ("Windows Server", format!("{build}.1")),
        None => ("Linux", "6.12.0".to_owned()),
    };
    let now = seconds(now);
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        })
    };
    json!({
        "capacity": amounts,
        "allocatable": amounts,
        "addresses": [
            {"type": "InternalIP", "address": address(10, index)},
            {"type": "Hostname", "address": planned.name},
        ],
        "nodeInfo": {
            "operatingSystem": planned.os.to_string(),
            "architecture": "amd64",
            "osImage": image,
            "kernelVersion": kernel,
            "kubeletVersion": VERSION,
            "kubeProxyVersion": "",
            "containerRuntimeVersion": "hollow://1",
            "machineID": "", "systemUUID": "", "bootID": "",
        },
        "conditions": [
            condition("MemoryPressure", "False", "KubeletHasSufficientMemory",
                      "kubelet has sufficient memory available"),
            condition("DiskPressure", "False", "KubeletHasNoDiskPressure",
                      "kubelet has no disk pressure"),
            condition("PIDPressure", "False", "KubeletHasSufficientPID",
                      "kubelet has sufficient PID available"),
            condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
        ],
    })
}

pub(crate) fn lease(name: &str, seconds: u64, now: Timestamp) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": seconds.max(1), "renewTime": micros(now)},
    })
}

pub(crate) fn renewal(now: Timestamp) -> Value {
    json!({"spec": {"renewTime": micros(now)}})
}

/// What a pod of a workload is like.
fn template(workload: &Workload, revision: Revision, tolerate: Duration) -> Value {
    let tolerations = ["not-ready", "unreachable"].map(|state| {
        json!({
            "key": format!("node.kubernetes.io/{state}"),
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": tolerate.as_secs(),
        })
    });
    let mut spec = json!({
        "nodeSelector": {labels::OS: workload.os.to_string()},
        "os": {"name": workload.os.to_string()},
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "automountServiceAccountToken": false,
        "containers": [{
            "name": "work",
            "image": format!("registry.example.org/work:{}", revision.word()),
            "imagePullPolicy": "IfNotPresent",
            "ports": [{"containerPort": 8080}],
            "env": [{"name": "WORKLOAD", "value": workload.name}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        }],
        "tolerations": tolerations,
    });
    if workload.os == Os::Windows {
        spec["containers"][0]["command"] = json!(["C:\\work.exe"]);
    }
    json!({
        "metadata": {"labels": {WORKLOAD: workload.name, REVISION: revision.word()}},
        "spec": spec,
    })
}

pub(crate) fn deployment(workload: &Workload, tolerate: Duration) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": workload.name, "namespace": NAMESPACE},
        "spec": {
            "replicas": workload.pods,
            "selector": {"matchLabels": {WORKLOAD: workload.name}},
            "template": template(workload, Revision::Old, tolerate),
        },
    })
}

/// What makes a Deployment one of the new revision.
pub(crate) fn upgrade(workload: &Workload, tolerate: Duration) -> Value {
    json!({"spec": {"template": template(workload, Revision::New, tolerate)}})
}

/// A pod that no Deployment has.
pub(crate) fn pod(workload: &Workload, name: &str, tolerate: Duration) -> Value {
    let mut pod = template(workload, Revision::Old, tolerate);
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    pod["metadata"]["name"] = name.into();
    pod["metadata"]["namespace"] = NAMESPACE.into();
    pod
}

/// What a node says of a pod whose container runs.
pub(crate) fn running(errand: &Errand, number: u64, now: Timestamp) -> Value {
    let now = seconds(now);
    let is_true = |kind: &str| json!({"type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": now});
    let conditions = [
        "PodReadyToStartContainers",
        "Initialized",
        "ContainersReady",
        "Ready",
    ]
    .map(is_true);
    let number = usize::try_from(number).unwrap_or_default();
    let (host, own) = (address(10, errand.node), address(100, number));
    json!({
        "metadata": {"uid": errand.uid},
        "status": {
            "phase": "Running",
            "startTime": now,
            "hostIP": host, "hostIPs": [{"ip": host}],
            "podIP": own, "podIPs": [{"ip": own}],
            "conditions": conditions,
            "containerStatuses": [{
                "name": "work",
                "image": "registry.example.org/work:1",
                "imageID": "registry.example.org/work@sha256:0",
                "containerID": format!("hollow://{}", errand.uid),
                "ready": true,
                "started": true,
                "restartCount": 0,
                "state": {"running": {"startedAt": now}},
            }],
        },
    })
}

/// One of sixteen million addresses.
fn address(first: u8, number: usize) -> String {
    let [_, .., third, second, one] = number.to_be_bytes();
    format!("{first}.{third}.{second}.{one}")
}

fn seconds(now: Timestamp) -> String {
    Timestamp::from_second(now.as_second())
        .unwrap_or(now)
        .to_string()
}

fn micros(now: Timestamp) -> String {
    format!("{now:.6}")
}
