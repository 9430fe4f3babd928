//! The contract's backend of Debian's Docker, and what only that can show.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use futures::future::BoxFuture;
use transom_model::os::Os;
use transom_runtime::docker::{Config, DockerRuntime};
use transom_runtime::{PodNetwork, Pull, Resources, Runtime, RuntimeError};

use super::backend::{Ability, Backend, Role};
use super::harness::{Case, block_on};
use super::oci::remove_cgroups;
use super::tool::{PATIENCE, Place, pod_spec};
use super::{cases, registry, shell};

/// A Docker of our own, apart from any other of the machine. All of it is gone with this value.
struct Server {
    process: Option<Child>,
    folder: tempfile::TempDir,
    registry: u16,
    cgroup: String,
}

/// The server with a folder of logs for one case.
pub(crate) struct Docker {
    server: Arc<Server>,
    folder: tempfile::TempDir,
}

fn path(folder: &tempfile::TempDir) -> &Utf8Path {
    Utf8Path::from_path(folder.path()).unwrap()
}

impl Server {
    fn start() -> Self {
        let mut server = Self {
            process: None,
            folder: tempfile::tempdir().unwrap(),
            registry: registry::serve(),
            cgroup: format!("transom-test-{}", uuid::Uuid::new_v4().simple()),
        };
        server.process = Some(server.launch());
        server
    }

    fn launch(&self) -> Child {
        let folder = path(&self.folder);
        let log = fs_err::File::create(folder.join("dockerd.log")).unwrap();
        // Sockets of shims are in `/run`, and shims outlive who started them: both are its own.
        let script = "mount -t tmpfs tmpfs /run && cd \"$0\" && exec dockerd --host \"unix://$0/d.sock\" \
            --data-root \"$0/data\" --exec-root \"$0/exec\" --pidfile \"$0/pid\" --storage-driver vfs \
            --cgroup-parent \"/$1\" --bridge none --iptables=false --ip6tables=false --ip-masq=false";
        Command::new("unshare")
            .args([
                "--mount",
                "--pid",
                "--fork",
                "--kill-child",
                "--mount-proc",
                "--",
            ])
            .args(["sh", "-c", script, folder.as_str(), &self.cgroup])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.into_file())
            .spawn()
            .unwrap()
    }

    fn socket(&self) -> Utf8PathBuf {
        path(&self.folder).join("d.sock")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // It may be dead already, which a case has told then.
            let _ = process.kill();
            let _ = process.wait();
        }
        remove_cgroups(&self.cgroup);
    }
}

impl Docker {
    fn connect(&self) -> DockerRuntime {
        DockerRuntime::new(Config {
            address: format!("unix://{}", self.server.socket()),
            os: Os::Linux,
            sandbox_image: None,
        })
    }
}

impl Backend for Docker {
    fn open(&self) -> BoxFuture<'_, Arc<dyn Runtime>> {
        Box::pin(async {
            let runtime = self.connect();
            let deadline = tokio::time::Instant::now() + PATIENCE;
            while let Err(error) = runtime.version().await {
                let log = path(&self.server.folder).join("dockerd.log");
                let said = fs_err::read_to_string(log).unwrap_or_default();
                assert!(
                    tokio::time::Instant::now() < deadline,
                    "docker does not answer (is it installed? `cargo xtask tools`): {error}\n{said}"
                );
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Arc::new(runtime) as Arc<dyn Runtime>
        })
    }

    fn folder(&self) -> &Utf8Path {
        path(&self.folder)
    }

    fn image(&self) -> String {
        format!("localhost:{}/busybox:1", self.server.registry)
    }

    fn command(&self, role: &Role) -> Vec<String> {
        shell::command(role)
    }

    fn can(&self, _ability: Ability) -> bool {
        true
    }
}

type OwnRun = fn(Arc<Docker>) -> BoxFuture<'static, ()>;

/// Names of functions, as cases of this runtime.
macro_rules! own {
    ($($name:ident),* $(,)?) => {
        const OWN: &[(&str, OwnRun)] =
            &[$((stringify!($name), |backend| Box::pin($name(backend)))),*];
    };
}

own! {
    limits_are_those_of_the_kernel_and_can_be_changed,
    a_program_that_wants_too_much_memory_is_told_as_such,
    a_log_has_no_gap_and_nothing_twice_after_a_pause,
    a_pod_that_shares_its_processes_has_one_first_process,
    what_is_not_ours_is_not_touched,
    an_image_that_cannot_be_had_says_why,
}

/// One case for each part of the contract: a Docker for each sentence would take most of the time.
pub(crate) fn cases() -> Vec<Case> {
    let part = |(name, part): (&str, &'static [(&'static str, cases::Run)])| Case {
        name: format!("docker::keeps_what_is_promised_about_{name}"),
        run: Box::new(move || play_all(part, |run, backend| run(backend))),
    };
    let mut all: Vec<Case> = cases::PARTS.iter().copied().map(part).collect();
    all.push(Case {
        name: "docker::keeps_what_only_it_promises".to_owned(),
        run: Box::new(|| play_all(OWN, |run, backend| run(backend))),
    });
    all
}

fn play_all<R: Copy>(part: &[(&str, R)], run: impl Fn(R, Arc<Docker>) -> BoxFuture<'static, ()>) {
    let server = Arc::new(Server::start());
    let mut failed = Vec::new();
    for (name, case) in part {
        let began = Instant::now();
        let played = AssertUnwindSafe(|| play(&server, |backend| run(*case, backend)));
        if catch_unwind(played).is_err() {
            failed.push(name);
        }
        eprintln!("{name}: {:?}", began.elapsed());
    }
    assert!(failed.is_empty(), "not kept: {failed:?}");
}

fn play(server: &Arc<Server>, run: impl FnOnce(Arc<Docker>) -> BoxFuture<'static, ()>) {
    let backend = Arc::new(Docker {
        server: Arc::clone(server),
        folder: tempfile::tempdir().unwrap(),
    });
    block_on(async {
        // Images come before containers, as with any agent.
        let runtime = backend.open().await;
        runtime.pull(&pull(&backend.image())).await.unwrap();
        // What a case before this one left because it failed.
        for pod in runtime.pods().await.unwrap() {
            runtime.remove_pod(&pod.id).await.unwrap();
        }
        run(backend).await;
    });
}

fn pull(reference: &str) -> Pull {
    Pull {
        reference: reference.to_owned(),
        credentials: Vec::new(),
        progress: None,
    }
}

/// A shell that runs some words.
fn words(place: &Place, name: &str, script: &str) -> transom_runtime::ContainerSpec {
    let mut spec = place.spec(name, &Role::Run);
    spec.command = vec!["/bin/busybox".to_owned(), "sh".to_owned(), "-c".to_owned()];
    spec.arguments = vec![script.to_owned()];
    spec
}

async fn limits_are_those_of_the_kernel_and_can_be_changed(backend: Arc<Docker>) {
    let place = Place::new(backend).await;
    let look = "while true; do cat /sys/fs/cgroup/memory/memory.limit_in_bytes \
        /sys/fs/cgroup/memory.max 2>/dev/null; busybox sleep 0.1; done";
    let mut spec = words(&place, "main", look);
    spec.resources = Resources {
        memory_limit_bytes: Some(32 << 20),
        cpu_limit_millis: Some(500),
        pids_limit: Some(50),
        ..Resources::default()
    };
    let id = place.start(&spec).await;
    place.wait_for_log(&id, "33554432\n").await;
    let more = Resources {
        memory_limit_bytes: Some(64 << 20),
        ..spec.resources
    };
    place.runtime.update_container(&id, &more).await.unwrap();
    place.wait_for_log(&id, "67108864\n").await;
    place.clean_up().await;
}

async fn a_program_that_wants_too_much_memory_is_told_as_such(backend: Arc<Docker>) {
    let place = Place::new(backend).await;
    let grow = "text=aaaaaaaaaaaaaaaa; while true; do text=$text$text; done";
    let mut spec = words(&place, "main", grow);
    spec.resources.memory_limit_bytes = Some(16 << 20);
    let id = place.start(&spec).await;
    let ended = place.wait_for_end(&id).await;
    assert_eq!((ended.exit_code, ended.reason.as_str()), (137, "OOMKilled"));
    place.clean_up().await;
}

async fn a_log_has_no_gap_and_nothing_twice_after_a_pause(backend: Arc<Docker>) {
    let place = Place::new(backend).await;
    // It pauses now and then, so that it is still at it when its log is let go.
    let count = "i=0; while [ $i -lt 3000 ]; do echo line $i; echo line $i >&2; i=$((i+1)); \
        [ $((i % 300)) -ne 0 ] || busybox sleep 0.2; done";
    let id = place.start(&words(&place, "main", count)).await;
    let mut place = place;
    for _ in 0..3 {
        place.wait_for_log(&id, "line 1\n").await;
        place = place.reopen().await;
    }
    place.wait_for_end(&id).await;
    let log = fs_err::read_to_string(place.container(&id).await.log_path).unwrap();
    for stream in ["stdout", "stderr"] {
        let marker = format!(" {stream} F ");
        let lines: Vec<&str> = log
            .lines()
            .filter_map(|line| Some(line.split_once(&marker)?.1))
            .collect();
        let expected: Vec<String> = (0..3000).map(|number| format!("line {number}")).collect();
        assert!(lines == expected, "{stream} has {} lines", lines.len());
    }
    place.clean_up().await;
}

async fn a_pod_that_shares_its_processes_has_one_first_process(backend: Arc<Docker>) {
    let runtime = backend.open().await;
    let mut spec = pod_spec(&*backend, "shared");
    spec.share_processes = true;
    let pod = runtime.start_pod(&spec).await.unwrap();
    let place = Place {
        backend,
        runtime,
        pod,
    };
    // An orphan that ends is buried by the first process, which is not the container's.
    let script =
        "busybox sh -c 'busybox sleep 0.2 &'; busybox sleep 1; busybox ps -o pid,stat,comm";
    let id = place.start(&words(&place, "main", script)).await;
    place.wait_for_end(&id).await;
    let log = place.log(&id).await;
    assert!(log.contains("pause"), "{log}");
    assert!(!log.contains(" Z "), "{log}");
    place.clean_up().await;
}

async fn what_is_not_ours_is_not_touched(backend: Arc<Docker>) {
    let docker = |words: &[&str]| {
        let host = format!("unix://{}", backend.server.socket());
        let mut command = Command::new("docker");
        let output = command
            .args(["--host", &host])
            .args(words)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let image = backend.image();
    docker(&[
        "run",
        "--detach",
        "--network=host",
        "--name=foreign",
        &image,
        "/bin/sleep",
        "600",
    ]);
    let place = Place::new(Arc::clone(&backend) as Arc<dyn Backend>).await;
    let pods = place.runtime.pods().await.unwrap();
    assert_eq!(
        pods.iter().map(|pod| pod.containers.len()).sum::<usize>(),
        0
    );
    assert_eq!(pods.len(), 1);
    let foreign = transom_runtime::PodId("foreign".to_owned());
    let spec = place.spec("main", &Role::Run);
    let refused = place.runtime.create_container(&foreign, &spec).await;
    assert!(
        matches!(refused, Err(RuntimeError::NotFound { .. })),
        "{refused:?}"
    );
    // The image is in use, if not by us.
    assert!(place.runtime.remove_image(&image).await.is_err());
    place.clean_up().await;
    let left = docker(&["ps", "--format", "{{.Names}}"]);
    assert_eq!(left, "foreign\n");
    docker(&["rm", "--force", "foreign"]);
}

async fn an_image_that_cannot_be_had_says_why(backend: Arc<Docker>) {
    let runtime = backend.open().await;
    let missing = backend.image().replace("busybox", "nothing");
    let error = runtime.pull(&pull(&missing)).await.unwrap_err();
    assert!(matches!(error, RuntimeError::Pull { .. }), "{error:?}");
    assert!(runtime.image(&missing).await.unwrap().is_none());
    let mut spec = pod_spec(&*backend, "one");
    spec.network = PodNetwork::Host;
    let pod = runtime.start_pod(&spec).await.unwrap();
    let mut container = backend.container("main", &Role::Run);
    container.image = missing;
    let error = runtime
        .create_container(&pod, &container)
        .await
        .unwrap_err();
    assert!(
        matches!(error, RuntimeError::ImageMissing { .. }),
        "{error:?}"
    );
    runtime.remove_pod(&pod).await.unwrap();
}
