//! The contract's backend of Debian's containerd.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use futures::future::BoxFuture;
use transom_model::os::Os;
use transom_runtime::cri::{Config, CriRuntime};
use transom_runtime::{Pull, Runtime};

use super::backend::{Ability, Backend, Role};
use super::harness::{Case, block_on};
use super::tool::PATIENCE;
use super::{cases, registry, shell};

/// A containerd of our own, apart from any other of the machine. All of it is gone with this value.
struct Server {
    process: Child,
    folder: tempfile::TempDir,
    registry: u16,
}

/// The server with a folder of logs for one case.
struct Containerd {
    server: Arc<Server>,
    folder: tempfile::TempDir,
}

fn path(folder: &tempfile::TempDir) -> &Utf8Path {
    Utf8Path::from_path(folder.path()).unwrap()
}

impl Server {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let registry = registry::serve();
        let config = path(&folder).join("config.toml");
        fs_err::write(&config, configuration(path(&folder), registry)).unwrap();
        let log = fs_err::File::create(path(&folder).join("containerd.log")).unwrap();
        // Sockets of shims are in `/run`, and shims outlive who started them: both are its own.
        let script = "mount -t tmpfs tmpfs /run && exec containerd --config \"$0\"";
        let process = Command::new("unshare")
            .args([
                "--mount",
                "--pid",
                "--fork",
                "--kill-child",
                "--mount-proc",
                "--",
            ])
            .args(["sh", "-c", script, config.as_str()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.into_file())
            .spawn()
            .unwrap();
        Self {
            process,
            folder,
            registry,
        }
    }

    fn socket(&self) -> Utf8PathBuf {
        path(&self.folder).join("c.sock")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be dead already, which a case has told then.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn configuration(folder: &Utf8Path, registry: u16) -> String {
    format!(
        r#"version = 2
root = "{folder}/root"
state = "{folder}/state"
disabled_plugins = ["io.containerd.snapshotter.v1.overlayfs", "io.containerd.snapshotter.v1.btrfs"]
[grpc]
address = "{folder}/c.sock"
[plugins."io.containerd.internal.v1.opt"]
path = "{folder}/opt"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "localhost:{registry}/busybox:1"
restrict_oom_score_adj = true
disable_hugetlb_controller = true
tolerate_missing_hugetlb_controller = true
stream_server_address = "127.0.0.1"
stream_server_port = "0"
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
"#
    )
}

impl Backend for Containerd {
    fn open(&self) -> BoxFuture<'_, Arc<dyn Runtime>> {
        Box::pin(async {
            let runtime = CriRuntime::new(Config {
                address: format!("unix://{}", self.server.socket()),
                os: Os::Linux,
                processors: 2,
            });
            let deadline = tokio::time::Instant::now() + PATIENCE;
            while let Err(error) = runtime.version().await {
                let log = path(&self.server.folder).join("containerd.log");
                let said = fs_err::read_to_string(log).unwrap_or_default();
                assert!(
                    tokio::time::Instant::now() < deadline,
                    "containerd does not answer (is it installed? `cargo xtask setup`): {error}\n{said}"
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

/// One case for each part of the contract: a containerd for each sentence would take most of the time.
pub(crate) fn cases() -> Vec<Case> {
    let part = |(name, part): (&str, &'static [(&'static str, cases::Run)])| Case {
        name: format!("containerd::keeps_what_is_promised_about_{name}"),
        run: Box::new(move || {
            let server = Arc::new(Server::start());
            let mut failed = Vec::new();
            for (name, run) in part {
                let began = Instant::now();
                let case = AssertUnwindSafe(|| play(&server, *run));
                if catch_unwind(case).is_err() {
                    failed.push(name);
                }
                eprintln!("{name}: {:?}", began.elapsed());
            }
            assert!(failed.is_empty(), "not kept: {failed:?}");
        }),
    };
    cases::PARTS.iter().copied().map(part).collect()
}

fn play(server: &Arc<Server>, run: cases::Run) {
    let backend = Arc::new(Containerd {
        server: Arc::clone(server),
        folder: tempfile::tempdir().unwrap(),
    });
    block_on(async {
        // Images come before containers, as with any agent.
        let pull = Pull {
            reference: backend.image(),
            credentials: Vec::new(),
            progress: None,
        };
        let runtime = backend.open().await;
        runtime.pull(&pull).await.unwrap();
        // What a case before this one left because it failed.
        for pod in runtime.pods().await.unwrap() {
            runtime.remove_pod(&pod.id).await.unwrap();
        }
        run(backend).await;
    });
}
