//! Tables of moments in the life of a pod, and what is decided in each.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use serde_json::{Value, json};
use transom_runtime::{Container, ContainerId, ContainerState, Ended, PodId, PodState};

use super::{
    back_off::Pause,
    decide::{Decision, Stage, Step, decide},
    memory::{FailedPull, Failure, Health, Memory, Verdict, Volumes},
    resize::{Attempt, Outcome},
    status::go_duration,
    view::{Place, View},
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

const NOW: i64 = 1000;

fn pod(spec: Value) -> Pod {
    let metadata = json!({"name": "p", "namespace": "n", "uid": "u", "generation": 1});
    let mut pod = json!({"metadata": metadata});
    pod["spec"] = spec;
    serde_json::from_value(pod).unwrap()
}

fn simple(policy: &str) -> Pod {
    pod(json!({"restartPolicy": policy, "containers": [{"name": "a", "image": "x:1"}]}))
}

fn with_init() -> Pod {
    pod(json!({
        "restartPolicy": "Always",
        "initContainers": [
            {"name": "i", "image": "x:1"},
            {"name": "s", "image": "x:1", "restartPolicy": "Always"},
        ],
        "containers": [{"name": "a", "image": "x:1"}],
    }))
}

fn container(name: &str, attempt: u32, state: ContainerState) -> Container {
    Container {
        id: ContainerId(format!("{name}{attempt}")),
        pod: PodId("s0".to_owned()),
        name: name.to_owned(),
        attempt,
        image: "id".to_owned(),
        image_name: "x:1".to_owned(),
        created: at(NOW - 10),
        state,
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        log_path: "log".into(),
    }
}

fn running(name: &str, attempt: u32) -> Container {
    container(
        name,
        attempt,
        ContainerState::Running {
            started: at(NOW - 9),
        },
    )
}

fn exited(name: &str, attempt: u32, exit_code: i32) -> Container {
    let ended = Ended {
        started: Some(at(NOW - 9)),
        finished: at(NOW - 1),
        exit_code,
        reason: if exit_code == 0 { "Completed" } else { "Error" }.to_owned(),
        message: String::new(),
    };
    container(name, attempt, ContainerState::Exited(ended))
}

fn sandbox(attempt: u32, state: PodState, containers: Vec<Container>) -> transom_runtime::Pod {
    let id = PodId(format!("s{attempt}"));
    let containers = containers
        .into_iter()
        .map(|one| Container {
            pod: id.clone(),
            ..one
        })
        .collect();
    transom_runtime::Pod {
        id,
        uid: "u".to_owned(),
        namespace: "n".to_owned(),
        name: "p".to_owned(),
        attempt,
        state,
        created: at(NOW - 20),
        addresses: vec!["10.0.0.1".parse().unwrap()],
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        containers,
    }
}

fn mounted() -> Memory {
    Memory {
        volumes: Volumes::Ready,
        seen: Some(at(NOW - 30)),
        ..Memory::default()
    }
}

fn decided(pod: &Pod, sandboxes: &[transom_runtime::Pod], memory: &Memory) -> Decision {
    let node = Place {
        addresses: vec!["192.0.2.1".to_owned()],
        runtime: "fake".to_owned(),
    };
    decide(&View {
        pod,
        sandboxes,
        memory,
        now: at(NOW),
        removed: false,
        node: &node,
    })
}

fn here(pod: &Pod, containers: Vec<Container>, memory: &Memory) -> Decision {
    decided(pod, &[sandbox(0, PodState::Ready, containers)], memory)
}

/// Steps in short words.
fn steps(decision: &Decision) -> Vec<String> {
    let word = |step: &Step| match step {
        Step::MountVolumes => "mount".to_owned(),
        Step::StartSandbox { attempt } => format!("sandbox {attempt}"),
        Step::StopSandbox(id) => format!("stop {id}"),
        Step::RemoveSandbox(id) => format!("remove {id}"),
        Step::Start(start) => format!("start {}{}", start.name, start.attempt),
        Step::Kill(kills) => {
            let kills: Vec<_> = kills
                .iter()
                .map(|kill| format!("{} {}", kill.id, kill.grace.as_secs()))
                .collect();
            format!("kill {}", kills.join(" "))
        }
        Step::Forget(ids) => format!(
            "forget {}",
            ids.iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" ")
        ),
        Step::CleanUp => "clean".to_owned(),
        Step::Resize(changes) => {
            let names: Vec<_> = changes.iter().map(|one| one.name.as_str()).collect();
            format!("resize {}", names.join(" "))
        }
    };
    decision.plan.steps.iter().map(word).collect()
}

fn waiting(status: &PodStatus) -> Option<String> {
    let state = status.container_statuses.as_ref()?[0].state.as_ref()?;
    state.waiting.as_ref()?.reason.clone()
}

fn phase(decision: &Decision) -> &str {
    decision.status.phase.as_deref().unwrap()
}

#[test]
fn a_pod_begins_with_its_volumes_then_its_sandbox_then_its_containers() {
    let pod = simple("Always");
    assert_eq!(steps(&decided(&pod, &[], &Memory::default())), ["mount"]);
    let decision = decided(&pod, &[], &mounted());
    assert_eq!(
        (steps(&decision), phase(&decision)),
        (vec!["sandbox 0".to_owned()], "Pending")
    );
    assert_eq!(
        waiting(&decision.status).as_deref(),
        Some("ContainerCreating")
    );
    assert_eq!(steps(&here(&pod, vec![], &mounted())), ["start a0"]);
    let decision = here(&pod, vec![running("a", 0)], &mounted());
    assert_eq!((steps(&decision).len(), phase(&decision)), (0, "Running"));
}

#[test]
fn what_ended_is_started_again_as_its_policy_says() {
    for (policy, code, wanted, now) in [
        ("Always", 0, "start a1", "Running"),
        ("Always", 1, "start a1", "Running"),
        ("OnFailure", 1, "start a1", "Running"),
        ("OnFailure", 0, "stop s0", "Succeeded"),
        ("Never", 0, "stop s0", "Succeeded"),
        ("Never", 1, "stop s0", "Failed"),
    ] {
        let decision = here(&simple(policy), vec![exited("a", 0, code)], &mounted());
        assert_eq!(
            (steps(&decision), phase(&decision)),
            (vec![wanted.to_owned()], now),
            "{policy} {code}"
        );
    }
}

#[test]
fn rules_of_a_container_come_before_the_policy() {
    let pod = pod(json!({"restartPolicy": "Never", "containers": [{
        "name": "a", "image": "x:1", "restartPolicy": "Never",
        "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}],
    }]}));
    assert_eq!(
        steps(&here(&pod, vec![exited("a", 0, 42)], &mounted())),
        ["start a1"]
    );
    assert_eq!(
        steps(&here(&pod, vec![exited("a", 0, 41)], &mounted())),
        ["stop s0"]
    );
}

#[test]
fn a_crash_loop_waits_and_says_until_when() {
    let mut memory = mounted();
    memory
        .restarts
        .insert("a".to_owned(), Pause::next(None, at(NOW - 5), at(NOW - 5)));
    let decision = here(&simple("Always"), vec![exited("a", 1, 1)], &memory);
    assert!(steps(&decision).is_empty());
    assert_eq!(decision.plan.wake, Some(at(NOW - 1 + 10)));
    assert_eq!(
        waiting(&decision.status).as_deref(),
        Some("CrashLoopBackOff")
    );
    let status = &decision.status.container_statuses.as_ref().unwrap()[0];
    assert_eq!(
        status
            .last_state
            .as_ref()
            .unwrap()
            .terminated
            .as_ref()
            .unwrap()
            .exit_code,
        1
    );
    assert_eq!((status.restart_count, phase(&decision)), (1, "Running"));
}

#[test]
fn failures_and_pulls_are_shown_until_they_are_tried_again() {
    let mut memory = mounted();
    let failure = Failure {
        reason: "CreateContainerConfigError",
        message: "m".to_owned(),
        retry: at(NOW + 3),
    };
    memory.failures.insert("a".to_owned(), failure);
    let decision = here(&simple("Always"), vec![], &memory);
    assert_eq!(
        waiting(&decision.status).as_deref(),
        Some("CreateContainerConfigError")
    );
    assert_eq!(
        (steps(&decision).len(), decision.plan.wake),
        (0, Some(at(NOW + 3)))
    );
    let mut memory = mounted();
    let pull = FailedPull {
        pause: Pause::next(None, at(NOW), at(NOW)),
        error: "e".to_owned(),
    };
    memory.pulls.insert("x:1".to_owned(), pull);
    let decision = here(&simple("Always"), vec![], &memory);
    assert_eq!(
        waiting(&decision.status).as_deref(),
        Some("ImagePullBackOff")
    );
    assert_eq!(decision.plan.wake, Some(at(NOW + 10)));
}

#[test]
fn init_containers_come_one_after_the_other_and_sidecars_stay() {
    let pod = with_init();
    let memory = mounted();
    for (containers, wanted, now) in [
        (vec![], vec!["start i0"], "Pending"),
        (vec![running("i", 0)], vec![], "Pending"),
        (vec![exited("i", 0, 1)], vec!["start i1"], "Pending"),
        (vec![exited("i", 0, 0)], vec!["start s0"], "Pending"),
        (
            vec![exited("i", 0, 0), running("s", 0)],
            vec!["start a0"],
            "Pending",
        ),
        (
            vec![exited("i", 0, 0), running("s", 0), running("a", 0)],
            vec![],
            "Running",
        ),
        (
            vec![exited("i", 0, 0), exited("s", 0, 1), running("a", 0)],
            vec!["start s1"],
            "Running",
        ),
    ] {
        let text = format!("{containers:?}");
        let decision = here(&pod, containers, &memory);
        assert_eq!(
            (steps(&decision), phase(&decision)),
            (wanted.into_iter().map(str::to_owned).collect(), now),
            "{text}"
        );
    }
}

#[test]
fn a_failed_init_container_ends_a_pod_that_never_restarts() {
    let mut pod = with_init();
    pod.spec.as_mut().unwrap().restart_policy = Some("Never".to_owned());
    let decision = here(&pod, vec![exited("i", 0, 1)], &mounted());
    assert_eq!(
        (steps(&decision), phase(&decision)),
        (vec!["stop s0".to_owned()], "Failed")
    );
}

#[test]
fn sick_containers_are_killed_with_the_grace_of_their_probe() {
    let pod = pod(json!({"containers": [{"name": "a", "image": "x:1",
        "livenessProbe": {"tcpSocket": {"port": 1}, "terminationGracePeriodSeconds": 7},
        "readinessProbe": {"tcpSocket": {"port": 1}}, "startupProbe": {"tcpSocket": {"port": 1}}}]}));
    for (health, wanted, ready) in [
        (
            Health {
                started: None,
                ready: None,
                live: None,
            },
            None,
            false,
        ),
        (
            Health {
                started: Some(true),
                ready: None,
                live: None,
            },
            None,
            false,
        ),
        (
            Health {
                started: Some(true),
                ready: Some(true),
                live: Some(true),
            },
            None,
            true,
        ),
        (
            Health {
                started: Some(true),
                ready: Some(true),
                live: Some(false),
            },
            Some("kill a0 7"),
            true,
        ),
        (
            Health {
                started: Some(false),
                ready: None,
                live: None,
            },
            Some("kill a0 30"),
            false,
        ),
    ] {
        let mut memory = mounted();
        memory.health.insert(ContainerId("a0".to_owned()), health);
        let decision = here(&pod, vec![running("a", 0)], &memory);
        assert_eq!(
            steps(&decision).first().map(String::as_str),
            wanted,
            "{health:?}"
        );
        assert_eq!(
            decision.status.container_statuses.unwrap()[0].ready,
            ready,
            "{health:?}"
        );
    }
}

#[test]
fn a_deleted_pod_ends_its_work_then_its_sidecars_then_itself() {
    let mut pod = with_init();
    pod.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
        at(NOW),
    ));
    pod.metadata.deletion_grace_period_seconds = Some(20);
    let mut memory = mounted();
    memory.ending = Some(at(NOW - 5));
    for (containers, state, wanted) in [
        (
            vec![running("s", 0), running("a", 0)],
            PodState::Ready,
            vec!["kill a0 15"],
        ),
        (
            vec![running("s", 0), exited("a", 0, 0)],
            PodState::Ready,
            vec!["kill s0 15"],
        ),
        (
            vec![exited("s", 0, 0), exited("a", 0, 0)],
            PodState::Ready,
            vec!["stop s0"],
        ),
        (
            vec![exited("s", 0, 0), exited("a", 0, 0)],
            PodState::NotReady,
            vec!["remove s0"],
        ),
    ] {
        let decision = decided(&pod, &[sandbox(0, state, containers)], &memory);
        assert_eq!(steps(&decision), wanted);
    }
    assert_eq!(steps(&decided(&pod, &[], &memory)), ["clean"]);
    memory.cleaned = true;
    assert_eq!(decided(&pod, &[], &memory).plan.stage, Stage::Gone);
}

#[test]
fn a_sandbox_that_died_is_made_again_with_all_that_has_to_run() {
    let pod = simple("Always");
    let dead = sandbox(0, PodState::NotReady, vec![running("a", 0)]);
    assert_eq!(
        steps(&decided(&pod, std::slice::from_ref(&dead), &mounted())),
        ["sandbox 1"]
    );
    let fresh = sandbox(1, PodState::Ready, vec![]);
    assert_eq!(
        steps(&decided(&pod, &[fresh, dead.clone()], &mounted())),
        ["start a1"]
    );
    assert_eq!(
        phase(&decided(&simple("Never"), &[dead], &mounted())),
        "Failed"
    );
}

#[test]
fn a_pod_past_its_deadline_fails() {
    let mut pod = simple("Always");
    pod.spec.as_mut().unwrap().active_deadline_seconds = Some(40);
    let decision = here(&pod, vec![running("a", 0)], &mounted());
    assert_eq!(
        (steps(&decision).len(), decision.plan.wake),
        (0, Some(at(NOW + 10)))
    );
    pod.spec.as_mut().unwrap().active_deadline_seconds = Some(30);
    let decision = here(&pod, vec![running("a", 0)], &mounted());
    assert_eq!(
        (steps(&decision), phase(&decision)),
        (vec!["kill a0 30".to_owned()], "Running")
    );
    let decision = here(&pod, vec![exited("a", 0, 137)], &mounted());
    assert_eq!(
        (steps(&decision), phase(&decision)),
        (vec!["stop s0".to_owned()], "Failed")
    );
    assert_eq!(decision.status.reason.as_deref(), Some("DeadlineExceeded"));
}

#[test]
fn a_refused_pod_has_its_reason_and_never_runs() {
    let verdict = Verdict {
        reason: "OutOfcpu".to_owned(),
        message: "m".to_owned(),
        ..Verdict::default()
    };
    let memory = Memory {
        verdict: Some(verdict),
        ..Memory::default()
    };
    let decision = decided(&simple("Always"), &[], &memory);
    assert_eq!((steps(&decision).len(), phase(&decision)), (0, "Failed"));
    assert_eq!(decision.status.reason.as_deref(), Some("OutOfcpu"));
    assert_eq!(decision.status.container_statuses, None);
}

#[test]
fn an_evicted_pod_ends_fast_and_is_not_to_blame() {
    let memory = Memory {
        verdict: Some(Verdict::eviction("The node was low.".to_owned())),
        ..mounted()
    };
    let decision = here(&simple("Always"), vec![running("a", 0)], &memory);
    assert_eq!(phase(&decision), "Running");
    let [Step::Kill(kills)] = decision.plan.steps.as_slice() else {
        panic!("{:?}", decision.plan);
    };
    assert_eq!(kills[0].grace, std::time::Duration::from_secs(2));
    let decision = here(&simple("Always"), vec![exited("a", 0, 137)], &memory);
    assert_eq!(phase(&decision), "Failed");
    assert_eq!(decision.status.reason.as_deref(), Some("Evicted"));
    let conditions = decision.status.conditions.unwrap();
    let target = conditions
        .iter()
        .find(|one| one.type_ == "DisruptionTarget")
        .unwrap();
    assert_eq!(target.status, "True");
    assert_eq!(target.reason.as_deref(), Some("TerminationByKubelet"));
    assert_eq!(target.message.as_deref(), Some("The node was low."));
}

#[test]
fn only_the_newest_and_the_one_before_are_kept() {
    let containers = vec![
        exited("a", 0, 1),
        exited("a", 1, 1),
        exited("a", 2, 1),
        running("a", 3),
    ];
    assert_eq!(
        steps(&here(&simple("Always"), containers, &mounted())),
        ["forget a1 a0"]
    );
}

#[test]
fn a_changed_image_is_a_new_container() {
    let mut pod = simple("Always");
    pod.spec.as_mut().unwrap().containers[0].image = Some("x:2".to_owned());
    assert_eq!(
        steps(&here(&pod, vec![running("a", 0)], &mounted())),
        ["kill a0 30"]
    );
}

#[test]
fn ephemeral_containers_are_started_once() {
    let pod = pod(json!({
        "containers": [{"name": "a", "image": "x:1"}],
        "ephemeralContainers": [{"name": "e", "image": "x:1"}],
    }));
    assert_eq!(
        steps(&here(&pod, vec![running("a", 0)], &mounted())),
        ["start e0"]
    );
    assert!(
        steps(&here(
            &pod,
            vec![running("a", 0), exited("e", 0, 1)],
            &mounted()
        ))
        .is_empty()
    );
}

#[test]
fn an_ended_pod_stays_as_it_was_told() {
    let mut pod = simple("Never");
    pod.status = Some(PodStatus {
        phase: Some("Succeeded".to_owned()),
        ..PodStatus::default()
    });
    let decision = decided(&pod, &[], &mounted());
    assert_eq!((steps(&decision).len(), phase(&decision)), (0, "Succeeded"));
}

#[test]
fn lengths_of_time_are_written_as_people_know_them() {
    use std::time::Duration;
    for (millis, wanted) in [
        (0, "0s"),
        (120, "120ms"),
        (1500, "1.5s"),
        (10_000, "10s"),
        (160_000, "2m40s"),
        (300_000, "5m0s"),
        (3_600_000, "1h0m0s"),
    ] {
        assert_eq!(go_duration(Duration::from_millis(millis)), wanted);
    }
}

#[test]
fn other_resources_are_given_to_what_runs_and_a_refusal_is_remembered() {
    let wanting = |cpu: &str| {
        let resources = json!({"requests": {"cpu": cpu}});
        pod(json!({"containers": [{"name": "a", "image": "x:1", "resources": resources}]}))
    };
    let mut memory = mounted();
    let given = serde_json::from_value(json!({"requests": {"cpu": "2"}})).unwrap();
    memory.given.insert(ContainerId("a0".to_owned()), given);
    let asked = |cpu: &str, memory: &Memory| here(&wanting(cpu), vec![running("a", 0)], memory);
    assert!(
        steps(&asked("2000m", &memory)).is_empty(),
        "the same in other words"
    );
    assert_eq!(steps(&asked("3", &memory)), ["resize a"]);
    let mut attempt = Attempt {
        generation: Some(1),
        outcome: Outcome::Deferred("later".to_owned()),
        retry: Some(at(NOW + 5)),
    };
    memory.resize = Some(attempt.clone());
    let decision = asked("3", &memory);
    assert!(steps(&decision).is_empty());
    assert_eq!(decision.plan.wake, Some(at(NOW + 5)));
    let conditions = decision.status.conditions.unwrap();
    let pending = conditions
        .iter()
        .find(|one| one.type_ == "PodResizePending");
    assert_eq!(pending.unwrap().reason.as_deref(), Some("Deferred"));
    // Another wish is judged anew.
    attempt.generation = Some(0);
    attempt.retry = None;
    memory.resize = Some(attempt);
    assert_eq!(steps(&asked("3", &memory)), ["resize a"]);
}
