//! What is to be done next for a pod. Pure: the same moment gives the same steps.
//!
//! Only the next few steps are decided; when they are done everything is looked at again.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, PodStatus, Probe};
use transom_runtime::{self as runtime, ContainerId, ContainerState, PodId, PodState};

use super::{
    back_off::Pause,
    memory::{Verdict, Volumes},
    resize::{self, Change},
    restart::should_restart,
    status,
    view::{Kind, View, full_name},
};

/// The shortest time a program gets to end, unless it is to get none.
const LEAST_GRACE: i64 = 2;
/// What an evicted one gets, as the node cannot wait.
const EVICTION_GRACE: i64 = 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    MountVolumes,
    StartSandbox {
        attempt: u32,
    },
    StopSandbox(PodId),
    RemoveSandbox(PodId),
    Start(Start),
    /// Ends containers, all at the same time.
    Kill(Vec<Kill>),
    /// Gives running containers other resources.
    Resize(Vec<Change>),
    /// Forgets dead containers that nobody asks about any more.
    Forget(Vec<ContainerId>),
    CleanUp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) attempt: u32,
    /// When the one before it ended.
    pub(crate) after: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kill {
    pub(crate) id: ContainerId,
    pub(crate) name: String,
    pub(crate) grace: Duration,
    /// What people are told.
    pub(crate) message: String,
}

/// How far a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Stage {
    #[default]
    Alive,
    /// Its containers are being ended.
    Ending,
    /// Nothing runs and nothing ever will.
    Ended,
    /// Nothing is left here.
    Gone,
}

/// Why a container waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) reason: String,
    pub(crate) message: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    pub(crate) waiting: BTreeMap<String, Waiting>,
    pub(crate) wake: Option<Timestamp>,
    pub(crate) stage: Stage,
    pub(crate) verdict: Option<Verdict>,
}

impl Plan {
    fn wake_at(&mut self, when: Timestamp) {
        self.wake = Some(self.wake.map_or(when, |earlier| earlier.min(when)));
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decision {
    pub(crate) plan: Plan,
    pub(crate) status: PodStatus,
}

pub(crate) fn decide(view: &View) -> Decision {
    let mut plan = Plan::default();
    if is_deleted(view) {
        plan_end(view, &mut plan);
        if plan.steps.is_empty() {
            plan_removal(view, &mut plan);
        }
    } else if let Some(verdict) = verdict(view, &mut plan) {
        plan.verdict = Some(verdict);
        plan_end(view, &mut plan);
    } else if is_over(view) {
        plan_end(view, &mut plan);
    } else {
        plan_life(view, &mut plan);
    }
    let status = status::build(view, &plan);
    Decision { plan, status }
}

fn is_deleted(view: &View) -> bool {
    view.removed || view.pod.metadata.deletion_timestamp.is_some()
}

/// Why the pod ends before its time, if it does.
fn verdict(view: &View, plan: &mut Plan) -> Option<Verdict> {
    if let Some(verdict) = &view.memory.verdict {
        return Some(verdict.clone());
    }
    let seconds = view.spec()?.active_deadline_seconds?;
    if is_over(view) {
        return None;
    }
    let deadline = view
        .start_time()
        .checked_add(jiff::SignedDuration::from_secs(seconds))
        .ok()?;
    if deadline > view.now {
        plan.wake_at(deadline);
        return None;
    }
    Some(Verdict {
        reason: "DeadlineExceeded".to_owned(),
        message: "Pod was active on the node longer than the specified deadline".to_owned(),
        ..Verdict::default()
    })
}

/// Whether the pod has done all it will ever do.
pub(crate) fn is_over(view: &View) -> bool {
    let phase = view
        .pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    if matches!(phase, Some("Succeeded" | "Failed")) {
        return true;
    }
    let failed_init = view.init().iter().any(|init| {
        Kind::of_init(init) == Kind::Init
            && exit_code(view, &init.name).is_some_and(|code| code != 0)
            && !should_restart(view, init, Kind::Init)
    });
    let begun = view
        .main()
        .iter()
        .any(|main| view.newest(&main.name).is_some());
    if failed_init && !begun {
        return true;
    }
    !view.main().is_empty()
        && view.main().iter().all(|main| {
            exit_code(view, &main.name).is_some() && !should_restart(view, main, Kind::Main)
        })
}

/// How the newest container of a name ended, if it did.
fn exit_code(view: &View, name: &str) -> Option<i32> {
    let newest = view.newest(name)?;
    match &newest.state {
        ContainerState::Exited(ended) => Some(ended.exit_code),
        // It went with its sandbox, and nobody saw how.
        ContainerState::Running { .. } if !view.is_running(newest) => Some(137),
        _ => None,
    }
}

/// Ends what runs: first the pod's own work, then the sidecars from the last to the first, then the sandbox.
fn plan_end(view: &View, plan: &mut Plan) {
    plan.stage = Stage::Ending;
    let running: Vec<_> = view
        .containers()
        .filter(|one| view.is_running(one))
        .collect();
    let position = |name: &str| {
        let mut init = view.init().iter();
        init.position(|one| one.name == name && Kind::of_init(one) == Kind::Sidecar)
    };
    let own: Vec<_> = running
        .iter()
        .filter(|one| position(&one.name).is_none())
        .collect();
    let grace = remaining_grace(view);
    let kill = |one: &runtime::Container| Kill {
        id: one.id.clone(),
        name: one.name.clone(),
        grace,
        message: format!("Stopping container {}", one.name),
    };
    if !own.is_empty() {
        plan.steps
            .push(Step::Kill(own.into_iter().map(|one| kill(one)).collect()));
        return;
    }
    if let Some(last) = running.iter().max_by_key(|one| position(&one.name)) {
        plan.steps.push(Step::Kill(vec![kill(last)]));
        return;
    }
    let ready = view
        .sandboxes
        .iter()
        .filter(|one| one.state == PodState::Ready);
    plan.steps
        .extend(ready.map(|one| Step::StopSandbox(one.id.clone())));
    if plan.steps.is_empty() {
        plan.stage = Stage::Ended;
    }
}

fn plan_removal(view: &View, plan: &mut Plan) {
    let removals = view
        .sandboxes
        .iter()
        .map(|one| Step::RemoveSandbox(one.id.clone()));
    plan.steps.extend(removals);
    if plan.steps.is_empty() && !view.memory.cleaned {
        plan.steps.push(Step::CleanUp);
    }
    plan.stage = if plan.steps.is_empty() {
        Stage::Gone
    } else {
        Stage::Ending
    };
}

/// What is left of the time a pod has to end, counted from when its end began.
fn remaining_grace(view: &View) -> Duration {
    let asked = view.pod.metadata.deletion_grace_period_seconds;
    let usual = view
        .spec()
        .and_then(|spec| spec.termination_grace_period_seconds);
    let evicted = view
        .memory
        .verdict
        .as_ref()
        .is_some_and(|verdict| verdict.is_eviction);
    let total = if evicted {
        Some(EVICTION_GRACE)
    } else {
        asked.or(usual)
    };
    let total = total.unwrap_or(30);
    if total <= 0 {
        return Duration::ZERO;
    }
    let begun = view.memory.ending.unwrap_or(view.now);
    let passed = view.now.duration_since(begun).as_secs();
    let left = (total - passed).max(LEAST_GRACE);
    Duration::from_secs(left.unsigned_abs())
}

fn plan_life(view: &View, plan: &mut Plan) {
    match &view.memory.volumes {
        Volumes::Ready => {}
        Volumes::Failed(failure) if failure.retry > view.now => return plan.wake_at(failure.retry),
        Volumes::Missing | Volumes::Failed(_) => return plan.steps.push(Step::MountVolumes),
    }
    let Some(sandbox) = view.sandbox() else {
        return plan_sandbox(view, plan);
    };
    let forgotten: Vec<_> = view
        .sandboxes
        .iter()
        .filter(|one| one.id != sandbox.id)
        .collect();
    for old in forgotten {
        if old.state == PodState::Ready {
            plan.steps.push(Step::StopSandbox(old.id.clone()));
        }
    }
    plan_kills(view, plan);
    if plan.steps.is_empty() {
        plan_resize(view, plan);
        plan_ephemeral(view, plan);
        if plan_init(view, plan) {
            plan_main(view, plan);
        }
    }
    plan_forget(view, plan);
}

fn plan_sandbox(view: &View, plan: &mut Plan) {
    let ready = view
        .sandboxes
        .iter()
        .filter(|one| one.state == PodState::Ready);
    plan.steps
        .extend(ready.map(|one| Step::StopSandbox(one.id.clone())));
    match &view.memory.sandbox {
        Some(failure) if failure.retry > view.now => plan.wake_at(failure.retry),
        _ => {
            let attempt = view
                .sandboxes
                .iter()
                .map(|one| one.attempt + 1)
                .max()
                .unwrap_or(0);
            plan.steps.push(Step::StartSandbox { attempt });
        }
    }
}

/// Containers that run and must not: sick ones, and those whose image was changed.
fn plan_kills(view: &View, plan: &mut Plan) {
    let sidecars = view
        .init()
        .iter()
        .filter(|one| Kind::of_init(one) == Kind::Sidecar);
    let kills: Vec<_> = view
        .main()
        .iter()
        .chain(sidecars)
        .filter_map(|spec| {
            let container = view.newest(&spec.name).filter(|one| view.is_running(one))?;
            let health = view.health(container);
            let (why, probe) = if view.is_here(container) && is_changed(spec, container) {
                ("definition changed", None)
            } else if health.live == Some(false) {
                ("failed liveness probe", spec.liveness_probe.as_ref())
            } else if health.started == Some(false) {
                ("failed startup probe", spec.startup_probe.as_ref())
            } else {
                return None;
            };
            Some(Kill {
                id: container.id.clone(),
                name: spec.name.clone(),
                grace: grace_of_probe(view, probe),
                message: format!("Container {} {why}, will be restarted", spec.name),
            })
        })
        .collect();
    if !kills.is_empty() {
        plan.steps.push(Step::Kill(kills));
    }
}

/// Other resources for those that run, unless that was tried and a new try has to wait.
fn plan_resize(view: &View, plan: &mut Plan) {
    let changes = resize::changes(view);
    if changes.is_empty() {
        return;
    }
    match resize::attempt(view).map(|attempt| attempt.retry) {
        Some(None) => {}
        Some(Some(retry)) if retry > view.now => plan.wake_at(retry),
        Some(Some(_)) | None => plan.steps.push(Step::Resize(changes)),
    }
}

fn is_changed(spec: &Container, container: &runtime::Container) -> bool {
    let wanted = spec.image.as_deref().unwrap_or_default();
    !container.image_name.is_empty() && container.image_name != wanted
}

fn grace_of_probe(view: &View, probe: Option<&Probe>) -> Duration {
    let usual = view
        .spec()
        .and_then(|spec| spec.termination_grace_period_seconds);
    let asked = probe.and_then(|probe| probe.termination_grace_period_seconds);
    let seconds = asked.or(usual).unwrap_or(30).max(LEAST_GRACE);
    Duration::from_secs(seconds.unsigned_abs())
}

fn plan_ephemeral(view: &View, plan: &mut Plan) {
    for spec in view.ephemeral() {
        if view.newest(&spec.name).is_none() && view.told(&spec.name).is_none_or(is_untold) {
            let spec = super::view::as_container(spec);
            plan_start(view, plan, &spec, Kind::Ephemeral);
        }
    }
}

fn is_untold(status: &k8s_openapi::api::core::v1::ContainerStatus) -> bool {
    status.container_id.is_none()
}

/// Starts what must come before the pod's own containers; tells whether those may start now.
fn plan_init(view: &View, plan: &mut Plan) -> bool {
    let begun = view.main().iter().any(|main| {
        view.newest(&main.name)
            .is_some_and(|newest| view.is_here(newest))
    });
    for spec in view.init() {
        let kind = Kind::of_init(spec);
        let newest = view
            .newest(&spec.name)
            .filter(|newest| view.is_here(newest));
        let runs = newest.is_some_and(|newest| view.is_running(newest));
        match kind {
            Kind::Sidecar => {
                if !runs {
                    plan_start(view, plan, spec, kind);
                }
                let started = newest.is_some_and(|newest| view.has_started(spec, newest));
                if !started && !begun {
                    return false;
                }
            }
            _ if begun => {}
            _ => {
                let code = newest.and_then(|_| exit_code(view, &spec.name));
                if code == Some(0) {
                    continue;
                }
                if !runs && (code.is_none() || should_restart(view, spec, kind)) {
                    plan_start(view, plan, spec, kind);
                }
                return false;
            }
        }
    }
    true
}

fn plan_main(view: &View, plan: &mut Plan) {
    for spec in view.main() {
        let newest = view.newest(&spec.name);
        let wanted = match newest {
            None => true,
            Some(newest) if view.is_running(newest) => false,
            Some(newest) if matches!(newest.state, ContainerState::Created) => true,
            Some(_) => should_restart(view, spec, Kind::Main),
        };
        if wanted {
            plan_start(view, plan, spec, Kind::Main);
        }
    }
}

/// Starts a container, unless it has to wait for the end of a pause.
fn plan_start(view: &View, plan: &mut Plan, spec: &Container, kind: Kind) {
    let newest = view.newest(&spec.name);
    let after = newest.map(|newest| match &newest.state {
        ContainerState::Exited(ended) => ended.finished,
        _ => newest.created,
    });
    let mut wait = |reason: &str, message: String, until: Timestamp| {
        let reason = reason.to_owned();
        plan.waiting
            .insert(spec.name.clone(), Waiting { reason, message });
        plan.wake_at(until);
    };
    let pause = view.memory.restarts.get(&spec.name);
    if let Some((pause, after)) = pause.zip(after)
        && let Some(until) = pause.until(after, view.now)
    {
        return wait("CrashLoopBackOff", crash_message(view, spec, *pause), until);
    }
    if let Some(failure) = view.memory.failures.get(&spec.name)
        && failure.retry > view.now
    {
        return wait(failure.reason, failure.message.clone(), failure.retry);
    }
    let image = spec.image.as_deref().unwrap_or_default();
    if let Some(pull) = view.memory.pulls.get(image)
        && let Some(until) = pull.pause.until_after_update(view.now)
    {
        let message = format!(
            "Back-off pulling image \"{image}\": ErrImagePull: {}",
            pull.error
        );
        return wait("ImagePullBackOff", message, until);
    }
    plan.steps.push(Step::Start(Start {
        name: spec.name.clone(),
        kind,
        attempt: next_attempt(view, &spec.name),
        after,
    }));
}

fn crash_message(view: &View, spec: &Container, pause: Pause) -> String {
    let length = status::go_duration(pause.length);
    let name = &spec.name;
    format!(
        "back-off {length} restarting failed container={name} pod={}",
        full_name(view.pod)
    )
}

/// Counts on from what is here, or from what the API was told before it was cleaned up here.
fn next_attempt(view: &View, name: &str) -> u32 {
    let here = view.newest(name).map(|newest| newest.attempt + 1);
    let told = view.told(name).filter(|told| told.container_id.is_some());
    let told = told.map(|told| u32::try_from(told.restart_count).unwrap_or(0) + 1);
    here.or(told).unwrap_or(0)
}

/// Of each name the newest container and the one before it are kept: for `logs --previous`.
fn plan_forget(view: &View, plan: &mut Plan) {
    let names: std::collections::BTreeSet<_> = view.containers().map(|one| &one.name).collect();
    let old: Vec<_> = names
        .into_iter()
        .flat_map(|name| view.named(name).into_iter().skip(2))
        .filter(|one| !view.is_running(one))
        .map(|one| one.id.clone())
        .collect();
    if !old.is_empty() {
        plan.steps.push(Step::Forget(old));
    }
}
