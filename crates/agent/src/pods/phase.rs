//! The phase of a pod, from the states of its containers.

use k8s_openapi::api::core::v1::ContainerStatus;

use super::view::{Kind, View};

#[derive(Default)]
struct Counts {
    waiting: usize,
    running: usize,
    stopped: usize,
    succeeded: usize,
}

impl Counts {
    fn add(&mut self, status: &ContainerStatus) {
        let state = status.state.as_ref();
        if state.is_some_and(|state| state.running.is_some()) {
            self.running += 1;
        } else if let Some(terminated) = state.and_then(|state| state.terminated.as_ref()) {
            self.stopped += 1;
            self.succeeded += usize::from(terminated.exit_code == 0);
        } else if status
            .last_state
            .as_ref()
            .is_some_and(|last| last.terminated.is_some())
        {
            self.stopped += 1;
        } else {
            self.waiting += 1;
        }
    }
}

/// `ended`: nothing runs and nothing ever will.
pub(crate) fn phase(
    view: &View,
    init: &[ContainerStatus],
    main: &[ContainerStatus],
    ended: bool,
) -> &'static str {
    let (pending, failed) = initialization(view, init, main);
    if failed && view.restart_policy() == "Never" {
        return "Failed";
    }
    let mut counts = Counts::default();
    for status in main {
        counts.add(status);
    }
    let finished = |counts: &Counts| {
        if counts.stopped == counts.succeeded {
            "Succeeded"
        } else {
            "Failed"
        }
    };
    if ended && counts.running == 0 {
        // What never started because the pod ended before is a failure of the pod.
        return if counts.waiting > 0 {
            "Failed"
        } else {
            finished(&counts)
        };
    }
    if pending || counts.waiting > 0 {
        return "Pending";
    }
    if counts.running > 0 {
        return "Running";
    }
    match (counts.stopped, view.restart_policy()) {
        (0, _) => "Pending",
        (_, "Always") => "Running",
        (stopped, _) if stopped == counts.succeeded => "Succeeded",
        (_, "Never") => "Failed",
        _ => "Running",
    }
}

/// Whether the beginning of the pod is not over, and whether it went wrong.
fn initialization(view: &View, init: &[ContainerStatus], main: &[ContainerStatus]) -> (bool, bool) {
    let begun = main.iter().any(|status| status.container_id.is_some());
    let (mut pending, mut failed) = (false, false);
    for (spec, status) in view.init().iter().zip(init) {
        if Kind::of_init(spec) == Kind::Sidecar {
            pending |= status.started != Some(true) && !begun;
            continue;
        }
        let state = status.state.as_ref();
        let last = status
            .last_state
            .as_ref()
            .and_then(|last| last.terminated.as_ref());
        match state.and_then(|state| state.terminated.as_ref()) {
            Some(terminated) => {
                failed |= terminated.exit_code != 0;
                pending |= terminated.exit_code != 0;
            }
            None => {
                failed |= last.is_some_and(|last| last.exit_code != 0);
                pending |= !begun;
            }
        }
    }
    (pending && !begun, failed)
}
