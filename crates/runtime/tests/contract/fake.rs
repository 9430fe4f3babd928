//! The contract's backend of plans, and what only a fake can do: fail on demand, and live in an hour per second.

use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use futures::future::BoxFuture;
use jiff::Timestamp;
use transom_runtime::fake::{Call, ExecPlan, FakeMachines, Fault, OnStop, Plan, Runs, TokioClock};
use transom_runtime::logs::Stream;
use transom_runtime::{ContainerSpec, ContainerState, Exec, PodSpec, Pull, Runtime, RuntimeError};

use super::backend::{Ability, Backend, Role};
use super::harness::{Case, block_on};

pub(crate) struct Fake {
    folder: tempfile::TempDir,
    machines: FakeMachines,
}

fn clock() -> Arc<TokioClock> {
    Arc::new(TokioClock::starting_at(Timestamp::now()))
}

impl Fake {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            machines: FakeMachines::with_logs(clock(), |_, spec| {
                let words: Vec<&str> = spec.arguments.iter().map(String::as_str).collect();
                plan_of(&words, spec)
            }),
        }
    }
}

fn plan_of(words: &[&str], spec: &ContainerSpec) -> Plan {
    let soon = Duration::from_millis(20);
    let prints = |text: &str| (Stream::Stdout, text.to_owned());
    let mut plan = match *words {
        ["exit", code] => Plan::ends(soon, code.parse().unwrap()),
        ["lines", count] => {
            let mut plan = Plan::ends(soon, 0);
            for number in 1..=count.parse().unwrap() {
                plan.output.push(prints(&format!("line {number}")));
                let error = (Stream::Stderr, format!("error {number}"));
                plan.output.push(error);
            }
            plan
        }
        ["variable", name] => {
            let value = spec.environment.iter().find(|one| one.name == name);
            let mut plan = Plan::ends(soon, 0);
            plan.output.push(prints(&value.unwrap().value));
            plan
        }
        ["arguments", ref arguments @ ..] => {
            let mut plan = Plan::ends(soon, 0);
            plan.output
                .extend(arguments.iter().map(|word| prints(word)));
            plan
        }
        ["echo"] => Plan {
            echoes_input: true,
            ends_with_input: Some(5),
            ..Plan::default()
        },
        ["missing"] => Plan {
            refuses_to_start: Some("no such file".to_owned()),
            ..Plan::default()
        },
        ["run"] => Plan {
            output: vec![prints("ready")],
            on_stop: OnStop::Ends {
                after: Duration::ZERO,
                exit_code: 143,
            },
            ..Plan::default()
        },
        ["polite"] => Plan {
            output: vec![prints("ready")],
            on_stop: OnStop::Ends {
                after: soon,
                exit_code: 7,
            },
            ..Plan::default()
        },
        ["stubborn"] => Plan {
            output: vec![prints("ready")],
            on_stop: OnStop::Nothing,
            ..Plan::default()
        },
        ["serve", port] => Plan {
            output: vec![prints("ready")],
            echo_ports: vec![port.parse().unwrap()],
            ..Plan::default()
        },
        _ => panic!("unknown role: {words:?}"),
    };
    plan.exec = Arc::new(exec_plan);
    plan
}

fn exec_plan(exec: &Exec) -> ExecPlan {
    let words: Vec<&str> = exec.command.iter().skip(1).map(String::as_str).collect();
    match words[..] {
        ["exit", code] => ExecPlan {
            exit_code: code.parse().unwrap(),
            ..ExecPlan::default()
        },
        ["lines", "1"] => ExecPlan {
            output: b"line 1\n".to_vec(),
            errors: b"error 1\n".to_vec(),
            ..ExecPlan::default()
        },
        ["echo"] => ExecPlan {
            echoes_input: true,
            exit_code: 5,
            ..ExecPlan::default()
        },
        _ => panic!("unknown role: {words:?}"),
    }
}

impl Backend for Fake {
    fn open(&self) -> BoxFuture<'_, Arc<dyn Runtime>> {
        Box::pin(async { Arc::new(self.machines.open("node")) as Arc<dyn Runtime> })
    }

    fn folder(&self) -> &Utf8Path {
        Utf8Path::from_path(self.folder.path()).unwrap()
    }

    fn image(&self) -> String {
        "registry.example/program:1".to_owned()
    }

    fn command(&self, role: &Role) -> Vec<String> {
        role.words()
    }

    fn can(&self, ability: Ability) -> bool {
        ability == Ability::Signals
    }
}

pub(crate) fn cases() -> Vec<Case> {
    let case = |name: &str, run: fn()| Case {
        name: format!("fake::{name}"),
        run: Box::new(run),
    };
    vec![
        case(
            "a_call_fails_as_often_as_it_was_told_to",
            a_call_fails_as_often_as_it_was_told_to,
        ),
        case(
            "thousands_of_nodes_age_a_year_with_one_timer",
            thousands_of_nodes_age_a_year_with_one_timer,
        ),
    ]
}

fn pod(number: usize) -> PodSpec {
    PodSpec {
        uid: format!("uid-{number}"),
        name: format!("pod-{number}"),
        namespace: "default".to_owned(),
        log_directory: Utf8PathBuf::from("nowhere"),
        ..PodSpec::default()
    }
}

fn a_call_fails_as_often_as_it_was_told_to() {
    block_on(async {
        let node = FakeMachines::new(clock(), |_, _| Plan::default()).open("node");
        node.fail(Call::StartPod, 2, Fault::Unavailable);
        let spec = pod(1);
        for _ in 0..2 {
            let refused = node.start_pod(&spec).await;
            assert!(matches!(refused, Err(RuntimeError::Unavailable { .. })));
        }
        node.start_pod(&spec).await.unwrap();
        node.fail(Call::Pull, 1, Fault::Pull("manifest unknown".to_owned()));
        let pull = Pull {
            reference: "a:b".to_owned(),
            credentials: Vec::new(),
            progress: None,
        };
        let error = node.pull(&pull).await.unwrap_err();
        assert_eq!(error.to_string(), "image \"a:b\": manifest unknown");
        assert_eq!(node.image("a:b").await.unwrap(), None);
    });
}

/// A year in which everything ends once and is started again, in paused time.
fn thousands_of_nodes_age_a_year_with_one_timer() {
    const NODES: usize = 2000;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let month = Duration::from_hours(24 * 30);
    runtime.block_on(async {
        let machines = FakeMachines::new(clock(), move |_, _| Plan {
            runs: Runs::For {
                duration: month,
                exit_code: 3,
            },
            ..Plan::default()
        });
        let spec = ContainerSpec {
            name: "main".to_owned(),
            ..ContainerSpec::default()
        };
        let mut nodes = Vec::new();
        for number in 0..NODES {
            let node = machines.open(&format!("node-{number}"));
            let pod = node.start_pod(&pod(number)).await.unwrap();
            let container = node.create_container(&pod, &spec).await.unwrap();
            node.start_container(&container).await.unwrap();
            nodes.push((node.events(), node));
        }
        let tasks = tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks();
        assert!(tasks <= 1, "{tasks} tasks for {NODES} containers");
        tokio::time::sleep(month * 12).await;
        for (events, node) in &mut nodes {
            assert!(events.try_recv().is_ok(), "its end was not told");
            let pods = node.pods().await.unwrap();
            let ContainerState::Exited(ended) = &pods[0].containers[0].state else {
                panic!("it still runs");
            };
            assert_eq!(ended.exit_code, 3);
            let ran = ended.finished.duration_since(ended.started.unwrap());
            assert_eq!(ran.unsigned_abs(), month);
        }
        let tasks = tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks();
        assert_eq!(tasks, 0, "somebody still waits");
    });
}
