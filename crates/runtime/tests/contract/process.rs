//! The contract's backend of host processes, and what only those can show: agents and keepers that are killed,
//! families of processes, volumes at paths.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use futures::future::BoxFuture;
use transom_host::process::{Native, Processes};
use transom_runtime::process::{Config, ProcessRuntime};
use transom_runtime::{
    ContainerId, ContainerSpec, ContainerState, Exec, Mount, PodId, Propagation, Pull, Resources,
    Runtime, RuntimeError, Variable,
};

use super::backend::{self, Ability, Backend, Role};
use super::harness::{Case, block_on};
use super::tool::{PATIENCE, Place, is_running, pod_spec};

pub(crate) struct HostProcesses {
    folder: tempfile::TempDir,
}

fn own_program() -> Utf8PathBuf {
    Utf8PathBuf::from_path_buf(std::env::current_exe().unwrap()).unwrap()
}

fn config(folder: &Utf8Path) -> Config {
    let wanted = ["PATH", "SYSTEMROOT", "TEMP", "TMP", "LD_LIBRARY_PATH"];
    let is_wanted = |name: &str| wanted.iter().any(|one| name.eq_ignore_ascii_case(one));
    Config {
        folder: folder.join("state"),
        images: folder.join("images"),
        keeper_program: own_program(),
        keeper_arguments: vec!["keeper".to_owned()],
        environment: std::env::vars()
            .filter(|(name, _)| is_wanted(name))
            .collect(),
    }
}

impl HostProcesses {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs_err::create_dir_all(folder.path().join("state")).unwrap();
        Self { folder }
    }
}

impl Backend for HostProcesses {
    fn open(&self) -> BoxFuture<'_, Arc<dyn Runtime>> {
        Box::pin(async {
            let runtime = ProcessRuntime::open(config(self.folder())).await.unwrap();
            Arc::new(runtime) as Arc<dyn Runtime>
        })
    }

    fn folder(&self) -> &Utf8Path {
        Utf8Path::from_path(self.folder.path()).unwrap()
    }

    fn image(&self) -> String {
        "host".to_owned()
    }

    fn command(&self, role: &Role) -> Vec<String> {
        let program = match role {
            Role::Missing => self.folder().join("no-such-program"),
            _ => own_program(),
        };
        std::iter::once(program.into_string())
            .chain(role.words())
            .collect()
    }

    fn can(&self, ability: Ability) -> bool {
        ability == Ability::Signals && cfg!(unix)
    }

    /// On Windows a pod says that it is one.
    fn container(&self, name: &str, role: &Role) -> ContainerSpec {
        let mut spec = backend::container(self, name, role);
        spec.security.host_process = true;
        spec
    }
}

pub(crate) fn cases() -> Vec<Case> {
    macro_rules! cases {
        ($($name:ident),* $(,)?) => {
            vec![$(Case {
                name: format!("process::{}", stringify!($name)),
                run: Box::new(|| block_on($name())),
            }),*]
        };
    }
    cases![
        a_killed_agent_loses_nothing_and_its_containers_are_adopted,
        a_killed_keeper_takes_its_container_with_it_and_the_end_is_known,
        a_start_that_was_cut_short_is_done_again,
        children_of_a_program_do_not_outlive_it,
        a_program_run_beside_ends_when_nobody_holds_it,
        volumes_are_below_the_mount_point,
        an_image_folder_is_the_root_of_its_container,
        an_image_that_the_node_does_not_have_is_refused,
        a_container_that_is_no_host_process_is_refused_on_windows,
        a_terminal_and_strange_users_are_refused_in_words,
        a_limit_on_processes_holds,
        many_containers_start_and_end_at_once,
    ]
}

async fn place() -> Place {
    Place::new(Arc::new(HostProcesses::new())).await
}

fn folder_of(place: &Place, id: &ContainerId) -> Utf8PathBuf {
    let pods = place.backend.folder().join("state/pods");
    pods.join(&place.pod.0).join(&id.0)
}

/// Live processes of one container, its own program among them.
fn members(place: &Place, id: &ContainerId) -> usize {
    let setup = fs_err::read_to_string(folder_of(place, id).join("setup.json")).unwrap();
    let setup: serde_json::Value = serde_json::from_str(&setup).unwrap();
    let group = setup["spawn"]["group"].as_str().unwrap().parse().unwrap();
    Native.leftovers(&group).len()
}

fn record(place: &Place, id: &ContainerId) -> serde_json::Value {
    let record = fs_err::read_to_string(folder_of(place, id).join("record.json")).unwrap();
    serde_json::from_str(&record).unwrap()
}

async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !condition() {
        assert!(
            tokio::time::Instant::now() < deadline,
            "never happened: {what}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Plays an agent: starts a container that runs and one that ends soon, says their names, and waits to be killed.
pub(crate) fn play_agent(folder: &str) -> i32 {
    block_on(async {
        let folder = Utf8Path::new(folder);
        let runtime = ProcessRuntime::open(config(folder)).await.unwrap();
        let backend = HostProcesses::new();
        let mut spec = pod_spec(&backend, "one");
        spec.log_directory = folder.join("logs/one");
        let pod = runtime.start_pod(&spec).await.unwrap();
        let mut names = vec![pod.0.clone()];
        for (name, role) in [("runs", Role::Run), ("reads", Role::Echo)] {
            let mut spec = backend.container(name, &role);
            spec.stdin = true;
            spec.stdin_once = true;
            let id = runtime.create_container(&pod, &spec).await.unwrap();
            runtime.start_container(&id).await.unwrap();
            names.push(id.0);
        }
        println!("{}", names.join(" "));
        tokio::time::sleep(Duration::from_mins(1)).await;
    });
    99
}

async fn a_killed_agent_loses_nothing_and_its_containers_are_adopted() {
    let backend = Arc::new(HostProcesses::new());
    let mut agent = Command::new(own_program())
        .args(["role", "agent", backend.folder().as_str()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = agent.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    agent.kill().unwrap();
    agent.wait().unwrap();
    let [pod, runs, reads] = line.split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("the agent said {line:?}");
    };
    let place = Place {
        runtime: backend.open().await,
        backend,
        pod: PodId(pod.to_owned()),
    };
    let (runs, reads) = (ContainerId(runs.to_owned()), ContainerId(reads.to_owned()));
    assert!(is_running(&place.container(&runs).await));
    place.wait_for_log(&runs, "ready\n").await;
    // Its input ends with the first who had it, and so does the program.
    crate::cases::streams::tell(&place, &reads, "after the crash\n").await;
    assert_eq!(place.wait_for_end(&reads).await.exit_code, 5);
    assert_eq!(place.log(&reads).await, "after the crash\n");
    place
        .runtime
        .stop_container(&runs, Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(place.wait_for_end(&runs).await.exit_code, 137);
    assert_eq!(members(&place, &runs), 0);
    place.clean_up().await;
}

async fn a_killed_keeper_takes_its_container_with_it_and_the_end_is_known() {
    let place = place().await;
    let id = place.start_ready("main", &Role::Run).await;
    let keeper = record(&place, &id)["keeper"].clone();
    let keeper = serde_json::from_value(keeper).unwrap();
    let group = "somebody".parse().unwrap();
    let keeper = Native.adopt(&keeper, &group).unwrap().unwrap();
    let kill = transom_host::process::Signal::Kill;
    keeper
        .signal(kill, transom_host::process::Scope::Main)
        .unwrap();
    let ended = place.wait_for_end(&id).await;
    assert_eq!(ended.exit_code, 137);
    assert!(ended.message.contains("lost"), "{ended:?}");
    assert_eq!(members(&place, &id), 0);
    let place = place.reopen().await;
    assert_eq!(place.wait_for_end(&id).await, ended);
    place.clean_up().await;
}

/// The agent died after it had prepared the keeper; or the keeper did, before it wrote anything.
async fn a_start_that_was_cut_short_is_done_again() {
    let place = place().await;
    let id = place.create(&place.spec("main", &Role::Exit(8))).await;
    fs_err::write(folder_of(&place, &id).join("setup.json"), "{ half a").unwrap();
    fs_err::create_dir_all(folder_of(&place, &id).join("root/rubbish")).unwrap();
    let place = place.reopen().await;
    assert_eq!(place.container(&id).await.state, ContainerState::Created);
    place.runtime.start_container(&id).await.unwrap();
    assert_eq!(place.wait_for_end(&id).await.exit_code, 8);
    // Half a container is none.
    let half = folder_of(&place, &ContainerId("half".to_owned()));
    fs_err::create_dir_all(&half).unwrap();
    let place = place.reopen().await;
    assert_eq!(place.pod().await.containers.len(), 1);
    assert!(!half.exists());
    place.clean_up().await;
}

async fn children_of_a_program_do_not_outlive_it() {
    let place = place().await;
    let mut spec = place.spec("main", &Role::Run);
    spec.arguments = ["role", "family"].map(str::to_owned).to_vec();
    spec.stdin = true;
    spec.stdin_once = true;
    let id = place.start(&spec).await;
    place.wait_for_log(&id, "ready\n").await;
    assert!(members(&place, &id) >= 2);
    drop(
        place
            .runtime
            .attach(
                &id,
                &transom_runtime::Attach {
                    stdin: true,
                    ..transom_runtime::Attach::default()
                },
            )
            .await
            .unwrap(),
    );
    assert_eq!(place.wait_for_end(&id).await.exit_code, 4);
    assert_eq!(members(&place, &id), 0);
    place.clean_up().await;
}

async fn a_program_run_beside_ends_when_nobody_holds_it() {
    let place = place().await;
    let id = place.start_ready("main", &Role::Run).await;
    let alone = members(&place, &id);
    let exec = Exec {
        command: place.backend.command(&Role::Stubborn),
        stdout: true,
        ..Exec::default()
    };
    let session = place.runtime.exec(&id, &exec).await.unwrap();
    eventually("it runs", || members(&place, &id) > alone).await;
    drop(session);
    eventually("it is gone", || members(&place, &id) == alone).await;
    assert!(is_running(&place.container(&id).await));
    place.clean_up().await;
}

async fn volumes_are_below_the_mount_point() {
    let place = place().await;
    let data = place.backend.folder().join("data");
    fs_err::create_dir_all(&data).unwrap();
    fs_err::write(data.join("in"), "hello from the node").unwrap();
    let mut spec = place.spec("main", &Role::Variable("FILE".to_owned()));
    spec.mounts = vec![Mount {
        host_path: data.clone(),
        container_path: "/var/data".to_owned(),
        read_only: false,
        propagation: Propagation::Private,
    }];
    spec.arguments = ["role", "read", "$CONTAINER_SANDBOX_MOUNT_POINT/var/data/in"]
        .map(str::to_owned)
        .to_vec();
    let id = place.start(&spec).await;
    assert_eq!(place.wait_for_end(&id).await.exit_code, 0);
    assert_eq!(place.log(&id).await, "hello from the node\n");
    let backend = Arc::clone(&place.backend);
    place.clean_up().await;
    assert!(backend.folder().exists());
    assert!(
        data.join("in").exists(),
        "the volume went with the container"
    );
}

async fn an_image_folder_is_the_root_of_its_container() {
    let place = place().await;
    let image = place.backend.folder().join("images/tools%3a1");
    fs_err::create_dir_all(&image).unwrap();
    fs_err::write(image.join("greeting"), "hello from the image").unwrap();
    let found = place.runtime.image("tools:1").await.unwrap().unwrap();
    let mut spec = place.spec("main", &Role::Run);
    spec.image = found.id.clone();
    spec.arguments = ["role", "read", "greeting"].map(str::to_owned).to_vec();
    let id = place.start(&spec).await;
    assert_eq!(place.wait_for_end(&id).await.exit_code, 0);
    assert_eq!(place.log(&id).await, "hello from the image\n");
    assert!(place.runtime.remove_image(&found.id).await.is_err());
    place.runtime.remove_container(&id).await.unwrap();
    place.runtime.remove_image(&found.id).await.unwrap();
    assert!(!image.exists());
    place.clean_up().await;
}

async fn an_image_that_the_node_does_not_have_is_refused() {
    let place = place().await;
    let reference = "docker.io/library/nginx:1.27".to_owned();
    assert_eq!(place.runtime.image(&reference).await.unwrap(), None);
    let pull = Pull {
        reference: reference.clone(),
        credentials: Vec::new(),
        progress: None,
    };
    let refused = place.runtime.pull(&pull).await;
    assert!(
        matches!(refused, Err(RuntimeError::Pull { .. })),
        "{refused:?}"
    );
    let mut spec = place.spec("main", &Role::Run);
    spec.image = reference;
    let refused = place.runtime.create_container(&place.pod, &spec).await;
    assert!(
        matches!(refused, Err(RuntimeError::ImageMissing { .. })),
        "{refused:?}"
    );
    place.clean_up().await;
}

async fn a_container_that_is_no_host_process_is_refused_on_windows() {
    let place = place().await;
    let mut spec = place.spec("main", &Role::Run);
    spec.security.host_process = false;
    let made = place.runtime.create_container(&place.pod, &spec).await;
    if cfg!(windows) {
        assert!(
            matches!(made, Err(RuntimeError::NotSupported(_))),
            "{made:?}"
        );
    } else {
        made.unwrap();
    }
    place.clean_up().await;
}

async fn a_terminal_and_strange_users_are_refused_in_words() {
    let place = place().await;
    let mut spec = place.spec("terminal", &Role::Run);
    spec.terminal = true;
    let refused = place.runtime.create_container(&place.pod, &spec).await;
    let error = refused.unwrap_err();
    assert!(matches!(&error, RuntimeError::NotSupported(text) if text.contains("terminal")));
    let mut spec = place.spec("user", &Role::Run);
    spec.security.user_name = Some("nobody-has-this-name".to_owned());
    let id = place.create(&spec).await;
    let error = place.runtime.start_container(&id).await.unwrap_err();
    let expected = if cfg!(unix) {
        "does not exist"
    } else {
        "not supported"
    };
    assert!(error.to_string().contains(expected), "{error}");
    let state = place.container(&id).await.state;
    let ContainerState::Exited(ended) = state else {
        panic!("it is {state:?}");
    };
    assert_eq!(ended.reason, "ContainerCannotRun");
    let resized = place
        .runtime
        .update_container(&id, &Resources::default())
        .await;
    assert!(matches!(resized, Err(RuntimeError::NotSupported(_))));
    place.clean_up().await;
}

async fn a_limit_on_processes_holds() {
    let place = place().await;
    let mut spec = place.spec("main", &Role::Run);
    spec.arguments = ["role", "breed"].map(str::to_owned).to_vec();
    spec.resources.pids_limit = Some(1);
    let id = place.start(&spec).await;
    let ended = place.wait_for_end(&id).await;
    // Where limits are not enforced the record says so, with a reason.
    let remarks = record(&place, &id)["remarks"].to_string();
    let held = ended.exit_code == 3;
    assert!(
        held || remarks.contains("not enforced"),
        "{ended:?}, {remarks}"
    );
    place.clean_up().await;
}

async fn many_containers_start_and_end_at_once() {
    let place = place().await;
    let started: Vec<_> = (0..12)
        .map(|number| {
            let mut spec = place.spec(&format!("c{number}"), &Role::Exit(number));
            spec.environment.push(Variable {
                name: "NUMBER".to_owned(),
                value: number.to_string(),
            });
            spec
        })
        .collect();
    let ids = futures::future::join_all(started.iter().map(|spec| place.start(spec))).await;
    for (number, id) in (0..).zip(&ids) {
        assert_eq!(place.wait_for_end(id).await.exit_code, number);
    }
    let distinct: BTreeSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), 12);
    place.clean_up().await;
}
