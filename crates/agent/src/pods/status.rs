//! What the API is told about a pod: phase, addresses and the state of each container.
//!
//! A status is built anew each time from what is here and what was told before; nothing is patched up.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{
        Container, ContainerState, ContainerStateRunning, ContainerStateTerminated,
        ContainerStateWaiting, ContainerStatus, HostIP, PodIP, PodStatus,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};
use transom_runtime::{self as runtime, ContainerState as Actual};

use super::{
    conditions,
    decide::{Plan, Stage},
    phase, resize,
    restart::should_restart,
    view::{Kind, View, as_container},
};
use crate::resources::class_of_service;

/// Which image a container really runs, as the runtime found it when it was made.
pub(crate) const IMAGE_REFERENCE: &str = "transom.io/image-reference";

pub(crate) fn build(view: &View, plan: &Plan) -> PodStatus {
    let told = view.pod.status.clone().unwrap_or_default();
    let init: Vec<_> = view
        .init()
        .iter()
        .map(|spec| container_status(view, plan, spec, Kind::of_init(spec)))
        .collect();
    let main: Vec<_> = view
        .main()
        .iter()
        .map(|spec| container_status(view, plan, spec, Kind::Main))
        .collect();
    let ephemeral: Vec<_> = view
        .ephemeral()
        .iter()
        .map(|spec| container_status(view, plan, &as_container(spec), Kind::Ephemeral))
        .collect();
    let ended = matches!(plan.stage, Stage::Ended | Stage::Gone);
    let mut phase = phase::phase(view, &init, &main, ended);
    // An end is told when it is complete: others take the room of a pod that has ended.
    let runs = view.containers().any(|one| view.is_running(one));
    let verdict = plan.verdict.as_ref().filter(|_| !runs);
    if verdict.is_some() {
        phase = "Failed";
    }
    if runs && matches!(phase, "Failed" | "Succeeded") {
        phase = "Running";
    }
    let told_phase = told.phase.as_deref();
    if let Some(last @ ("Failed" | "Succeeded")) = told_phase {
        // A pod that has ended never comes back.
        phase = if last == "Failed" {
            "Failed"
        } else {
            "Succeeded"
        };
    }
    let addresses = pod_addresses(view, &told);
    let some = |list: Vec<ContainerStatus>| (!list.is_empty()).then_some(list);
    let mut status = PodStatus {
        phase: Some(phase.to_owned()),
        reason: verdict
            .map(|verdict| verdict.reason.clone())
            .or(told.reason),
        message: verdict
            .map(|verdict| verdict.message.clone())
            .or(told.message),
        conditions: None,
        host_ip: view.node.addresses.first().cloned(),
        host_ips: some_hosts(&view.node.addresses),
        pod_ip: addresses.first().cloned(),
        pod_ips: (!addresses.is_empty())
            .then(|| addresses.into_iter().map(|ip| PodIP { ip }).collect()),
        start_time: Some(Time(seconds(view.start_time()))),
        qos_class: told
            .qos_class
            .or_else(|| view.spec().map(|spec| class_of_service(spec).to_owned())),
        init_container_statuses: some(init),
        container_statuses: some(main),
        ephemeral_container_statuses: some(ephemeral),
        observed_generation: view.pod.metadata.generation,
        nominated_node_name: told.nominated_node_name,
        resize: told.resize,
        resource_claim_statuses: told.resource_claim_statuses,
        ..PodStatus::default()
    };
    // A pod that was refused has nothing but its reason.
    if verdict.is_some()
        && view.sandboxes.is_empty()
        && told_phase.unwrap_or("Pending") == "Pending"
    {
        status.init_container_statuses = None;
        status.container_statuses = None;
    }
    status.conditions = Some(conditions::conditions(view, &status, told.conditions));
    status
}

fn some_hosts(addresses: &[String]) -> Option<Vec<HostIP>> {
    let hosts: Vec<_> = addresses
        .iter()
        .map(|ip| HostIP { ip: ip.clone() })
        .collect();
    (!hosts.is_empty()).then_some(hosts)
}

fn pod_addresses(view: &View, told: &PodStatus) -> Vec<String> {
    let in_host = view
        .spec()
        .is_some_and(|spec| spec.host_network == Some(true));
    if in_host {
        return if view.sandboxes.is_empty() {
            Vec::new()
        } else {
            view.node.addresses.clone()
        };
    }
    let here = view.sandbox().map(|sandbox| &sandbox.addresses);
    match here {
        Some(addresses) => addresses.iter().map(ToString::to_string).collect(),
        // An ended pod keeps the address it had.
        None => told
            .pod_ips
            .iter()
            .flatten()
            .map(|one| one.ip.clone())
            .collect(),
    }
}

/// API times have whole seconds.
pub(crate) fn seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

fn container_status(view: &View, plan: &Plan, spec: &Container, kind: Kind) -> ContainerStatus {
    let all = view.named(&spec.name);
    let told = view.told(&spec.name);
    let mut status = match all.first() {
        Some(newest) => from_runtime(view, spec, kind, newest),
        None => without_container(view, plan, spec, kind, told),
    };
    if let Some(previous) = all.get(1) {
        status.last_state = Some(state_of(view, previous));
    } else if all.len() == 1
        && let Some(told) = told
        && told.container_id == status.container_id
    {
        status.last_state.clone_from(&told.last_state);
    }
    apply_waiting(view, plan, spec, kind, &mut status);
    status.allocated_resources =
        resize::allocated(view.memory, spec).and_then(|resources| resources.requests);
    if let Some(newest) = all.first() {
        status.resources = resize::given(view.memory, spec, newest);
    } else if status.container_id.is_some() {
        status.resources.clone_from(&spec.resources);
    }
    status
}

/// A container that is to be started and waits for something shows what it waits for.
fn apply_waiting(
    view: &View,
    plan: &Plan,
    spec: &Container,
    kind: Kind,
    status: &mut ContainerStatus,
) {
    let running = status
        .state
        .as_ref()
        .is_some_and(|state| state.running.is_some());
    if running || plan.stage != Stage::Alive {
        return;
    }
    let planned = plan.waiting.get(&spec.name);
    let failure = view.memory.failures.get(&spec.name);
    let (reason, message) = match (planned, failure) {
        (Some(waiting), _) => (waiting.reason.clone(), waiting.message.clone()),
        (None, Some(failure))
            if should_restart(view, spec, kind) || status.container_id.is_none() =>
        {
            (failure.reason.to_owned(), failure.message.clone())
        }
        _ => return,
    };
    if let Some(state) = status.state.take()
        && state.terminated.is_some()
    {
        status.last_state = Some(state);
    }
    status.state = Some(waiting(&reason, Some(message)));
}

fn waiting(reason: &str, message: Option<String>) -> ContainerState {
    ContainerState {
        waiting: Some(ContainerStateWaiting {
            reason: Some(reason.to_owned()),
            message,
        }),
        ..ContainerState::default()
    }
}

/// Nothing is here: it was never made, or it is lost.
fn without_container(
    view: &View,
    plan: &Plan,
    spec: &Container,
    kind: Kind,
    told: Option<&ContainerStatus>,
) -> ContainerStatus {
    let reason = if kind == Kind::Main && !view.init().is_empty()
        || kind != Kind::Main && kind != Kind::Ephemeral && plan.stage == Stage::Alive
    {
        "PodInitializing"
    } else {
        "ContainerCreating"
    };
    let mut status = ContainerStatus {
        name: spec.name.clone(),
        image: spec.image.clone().unwrap_or_default(),
        started: Some(false),
        state: Some(waiting(reason, None)),
        ..ContainerStatus::default()
    };
    let Some(told) = told else { return status };
    let state = told.state.as_ref();
    if state.is_some_and(|state| state.terminated.is_some()) {
        let mut kept = told.clone();
        kept.ready &= kind == Kind::Init;
        kept.started = Some(false);
        return kept;
    }
    status.restart_count = told.restart_count;
    status.last_state.clone_from(&told.last_state);
    if state.is_some_and(|state| state.running.is_some()) {
        let terminated = lost(told.container_id.clone());
        if plan.stage == Stage::Alive {
            status.last_state = Some(terminated);
        } else {
            status.state = Some(terminated);
        }
    }
    status
}

/// The state of a container that is not there any more.
fn lost(container_id: Option<String>) -> ContainerState {
    let message = "The container could not be located when the pod was terminated";
    ContainerState {
        terminated: Some(ContainerStateTerminated {
            exit_code: 137,
            reason: Some("ContainerStatusUnknown".to_owned()),
            message: Some(message.to_owned()),
            container_id,
            ..ContainerStateTerminated::default()
        }),
        ..ContainerState::default()
    }
}

fn from_runtime(
    view: &View,
    spec: &Container,
    kind: Kind,
    container: &runtime::Container,
) -> ContainerStatus {
    let image_id = container.annotations.get(IMAGE_REFERENCE);
    let succeeded = matches!(&container.state, Actual::Exited(ended) if ended.exit_code == 0);
    let ready = match kind {
        Kind::Init => succeeded,
        Kind::Ephemeral => false,
        Kind::Sidecar | Kind::Main => view.is_ready(spec, container),
    };
    ContainerStatus {
        name: spec.name.clone(),
        image: container.image_name.clone(),
        image_id: image_id.unwrap_or(&container.image).clone(),
        container_id: Some(container_id(view, container)),
        restart_count: i32::try_from(container.attempt).unwrap_or(i32::MAX),
        ready,
        started: Some(kind != Kind::Init && view.has_started(spec, container)),
        state: Some(state_of(view, container)),
        ..ContainerStatus::default()
    }
}

pub(super) fn container_id(view: &View, container: &runtime::Container) -> String {
    format!("{}://{}", view.node.runtime, container.id)
}

fn state_of(view: &View, container: &runtime::Container) -> ContainerState {
    match &container.state {
        Actual::Created => waiting("ContainerCreating", None),
        // It went with its sandbox, and nobody saw how.
        Actual::Running { .. } if !view.is_running(container) => {
            lost(Some(container_id(view, container)))
        }
        Actual::Running { started } => ContainerState {
            running: Some(ContainerStateRunning {
                started_at: Some(Time(seconds(*started))),
            }),
            ..ContainerState::default()
        },
        Actual::Exited(ended) => {
            let last_words = view.memory.messages.get(&container.id);
            let message = last_words
                .filter(|text| !text.is_empty())
                .unwrap_or(&ended.message);
            ContainerState {
                terminated: Some(ContainerStateTerminated {
                    container_id: Some(container_id(view, container)),
                    exit_code: ended.exit_code,
                    reason: Some(ended.reason.clone()).filter(|reason| !reason.is_empty()),
                    message: Some(message.clone()).filter(|message| !message.is_empty()),
                    started_at: ended.started.map(|time| Time(seconds(time))),
                    finished_at: Some(Time(seconds(ended.finished))),
                    ..ContainerStateTerminated::default()
                }),
                ..ContainerState::default()
            }
        }
    }
}

/// A length of time in the words that kubelet's messages have: `10s`, `2m40s`, `1.5s`, `120ms`.
pub(crate) fn go_duration(length: Duration) -> String {
    let seconds = length.as_secs();
    if seconds == 0 {
        return match length.subsec_micros() {
            0 => "0s".to_owned(),
            micros if micros < 1000 => format!("{micros}µs"),
            micros if micros % 1000 == 0 => format!("{}ms", micros / 1000),
            micros => format!("{}.{:03}ms", micros / 1000, micros % 1000),
        };
    }
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let front = match (hours, minutes) {
        (0, 0) => String::new(),
        (0, minutes) => format!("{minutes}m"),
        (hours, minutes) => format!("{hours}h{minutes}m"),
    };
    let millis = match length.subsec_millis() {
        0 => String::new(),
        millis => format!(".{millis:03}"),
    };
    format!("{front}{}{}s", seconds % 60, millis.trim_end_matches('0'))
}
