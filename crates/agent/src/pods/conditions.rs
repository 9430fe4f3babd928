//! The conditions of a pod, with the reasons and texts that people match on.

use k8s_openapi::{
    api::core::v1::{ContainerStatus, PodCondition, PodStatus},
    apimachinery::pkg::apis::meta::v1::Time,
};

use super::{
    resize::{self, Outcome},
    status::seconds,
    view::{Kind, View},
};

/// The conditions that are ours to tell.
pub(crate) const OURS: [&str; 7] = [
    "PodResizePending",
    "PodResizeInProgress",
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
];

/// What one condition says.
struct Said {
    is_true: bool,
    reason: Option<&'static str>,
    message: Option<String>,
}

const fn yes() -> Said {
    Said {
        is_true: true,
        reason: None,
        message: None,
    }
}

fn no(reason: &'static str, message: String) -> Said {
    let message = Some(message).filter(|message| !message.is_empty());
    Said {
        is_true: false,
        reason: Some(reason),
        message,
    }
}

/// All conditions: ours as they are now, those of others as they were told.
pub(crate) fn conditions(
    view: &View,
    status: &PodStatus,
    told: Option<Vec<PodCondition>>,
) -> Vec<PodCondition> {
    let told = told.unwrap_or_default();
    let ready = containers_ready(view, status);
    let whole = pod_ready(view, &told, &ready);
    let mut ours = vec![
        ("PodReadyToStartContainers", sandboxed(view)),
        ("Initialized", initialized(view, status)),
        ("Ready", whole),
        ("ContainersReady", ready),
        ("PodScheduled", yes()),
    ];
    let verdict = view.memory.verdict.as_ref();
    if let Some(verdict) = verdict.filter(|verdict| verdict.is_eviction) {
        let said = Said {
            reason: Some("TerminationByKubelet"),
            message: Some(verdict.message.clone()),
            ..yes()
        };
        ours.push(("DisruptionTarget", said));
    }
    let others = told
        .iter()
        .filter(|one| !OURS.contains(&one.type_.as_str()));
    let mut all: Vec<_> = others.cloned().collect();
    for (name, said) in resizing(view).into_iter().chain(ours) {
        let before = told.iter().find(|one| one.type_ == name);
        all.push(condition(view, name, said, before));
    }
    all
}

fn condition(view: &View, name: &str, said: Said, before: Option<&PodCondition>) -> PodCondition {
    let status = if said.is_true { "True" } else { "False" };
    let same = before.filter(|before| before.status == status);
    let since = same.and_then(|before| before.last_transition_time.clone());
    PodCondition {
        type_: name.to_owned(),
        status: status.to_owned(),
        reason: said.reason.map(str::to_owned),
        message: said.message,
        last_transition_time: since.or_else(|| Some(Time(seconds(view.now)))),
        observed_generation: view.pod.metadata.generation,
        ..PodCondition::default()
    }
}

/// A wish for other resources that is not fulfilled yet.
fn resizing(view: &View) -> Option<(&'static str, Said)> {
    let said = |reason, message: &str| Said {
        is_true: true,
        reason,
        message: Some(message.to_owned()).filter(|message| !message.is_empty()),
    };
    if resize::changes(view).is_empty() {
        return None;
    }
    match resize::attempt(view).map(|attempt| &attempt.outcome) {
        Some(Outcome::Infeasible(message)) => {
            Some(("PodResizePending", said(Some("Infeasible"), message)))
        }
        Some(Outcome::Deferred(message)) => {
            Some(("PodResizePending", said(Some("Deferred"), message)))
        }
        Some(Outcome::Failed(message)) => {
            Some(("PodResizeInProgress", said(Some("Error"), message)))
        }
        None => resize::is_allocated(view).then(|| ("PodResizeInProgress", said(None, ""))),
    }
}

fn sandboxed(view: &View) -> Said {
    let in_host = view
        .spec()
        .is_some_and(|spec| spec.host_network == Some(true));
    match view.sandbox() {
        Some(sandbox) if in_host || !sandbox.addresses.is_empty() => yes(),
        _ => Said {
            is_true: false,
            reason: None,
            message: None,
        },
    }
}

fn is_finished(status: &PodStatus, phase: &str) -> bool {
    status.phase.as_deref() == Some(phase)
}

fn initialized(view: &View, status: &PodStatus) -> Said {
    if is_finished(status, "Succeeded") {
        return Said {
            reason: Some("PodCompleted"),
            ..yes()
        };
    }
    let statuses = status.init_container_statuses.iter().flatten();
    let begun = status
        .container_statuses
        .iter()
        .flatten()
        .any(|one| one.container_id.is_some());
    let incomplete: Vec<_> = view
        .init()
        .iter()
        .zip(statuses)
        .filter(|(spec, status)| match Kind::of_init(spec) {
            Kind::Sidecar => !begun && status.started != Some(true),
            _ => !begun && !status.ready,
        })
        .map(|(_, status)| status.name.as_str())
        .collect();
    if incomplete.is_empty() {
        return yes();
    }
    let message = format!(
        "containers with incomplete status: [{}]",
        incomplete.join(" ")
    );
    no("ContainersNotInitialized", message)
}

fn containers_ready(view: &View, status: &PodStatus) -> Said {
    if is_finished(status, "Succeeded") {
        return no("PodCompleted", String::new());
    }
    if is_finished(status, "Failed") {
        return no("PodFailed", String::new());
    }
    let sidecars = view
        .init()
        .iter()
        .zip(status.init_container_statuses.iter().flatten())
        .filter(|(spec, _)| Kind::of_init(spec) == Kind::Sidecar)
        .map(|(_, status)| status);
    let main = status.container_statuses.iter().flatten();
    let is_unready = |one: &&ContainerStatus| !one.ready;
    let unready: Vec<_> = sidecars
        .chain(main)
        .filter(is_unready)
        .map(|one| one.name.as_str())
        .collect();
    if unready.is_empty() {
        return yes();
    }
    let message = format!("containers with unready status: [{}]", unready.join(" "));
    no("ContainersNotReady", message)
}

fn pod_ready(view: &View, told: &[PodCondition], containers: &Said) -> Said {
    if !containers.is_true {
        return Said {
            is_true: false,
            reason: containers.reason,
            message: containers.message.clone(),
        };
    }
    let gates = view.spec().and_then(|spec| spec.readiness_gates.as_ref());
    let mut missing = Vec::new();
    for gate in gates.into_iter().flatten() {
        let name = &gate.condition_type;
        match told.iter().find(|one| one.type_ == *name) {
            None => missing.push(format!(
                "corresponding condition of pod readiness gate \"{name}\" does not exist."
            )),
            Some(one) if one.status != "True" => missing.push(format!(
                "the status of pod readiness gate \"{name}\" is not \"True\", but {}",
                one.status
            )),
            Some(_) => {}
        }
    }
    if missing.is_empty() {
        yes()
    } else {
        no("ReadinessGatesNotReady", missing.join(", "))
    }
}
