//! What cases have in common: a pod to work in, and waiting for things to become so.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_util::sync::CancellationToken;
use transom_runtime::logs::{LogReader, ReadOptions};
use transom_runtime::{
    Container, ContainerId, ContainerSpec, ContainerState, Ended, Pod, PodId, PodNetwork, PodSpec,
    Runtime,
};

use super::backend::{Backend, Role};

/// Long enough for a slow machine, short enough to fail a test.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// A pod of a runtime, gone when the case is.
pub(crate) struct Place {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) pod: PodId,
}

pub(crate) fn pod_spec(backend: &dyn Backend, uid: &str) -> PodSpec {
    PodSpec {
        uid: uid.to_owned(),
        namespace: "space".to_owned(),
        name: format!("pod-{uid}"),
        labels: [("app".to_owned(), "x".to_owned())].into(),
        annotations: [("note".to_owned(), "y".to_owned())].into(),
        hostname: "pod".to_owned(),
        log_directory: backend.folder().join("logs").join(uid),
        network: PodNetwork::Host,
        ..PodSpec::default()
    }
}

impl Place {
    pub(crate) async fn new(backend: Arc<dyn Backend>) -> Self {
        let runtime = backend.open().await;
        let spec = pod_spec(&*backend, "one");
        let pod = runtime.start_pod(&spec).await.unwrap();
        Self {
            backend,
            runtime,
            pod,
        }
    }

    /// Forgets the runtime, then opens it again.
    pub(crate) async fn reopen(self) -> Self {
        let Self {
            backend,
            runtime,
            pod,
        } = self;
        drop(runtime);
        let runtime = backend.open().await;
        Self {
            backend,
            runtime,
            pod,
        }
    }

    pub(crate) fn spec(&self, name: &str, role: &Role) -> ContainerSpec {
        self.backend.container(name, role)
    }

    pub(crate) async fn create(&self, spec: &ContainerSpec) -> ContainerId {
        self.runtime
            .create_container(&self.pod, spec)
            .await
            .unwrap()
    }

    pub(crate) async fn start(&self, spec: &ContainerSpec) -> ContainerId {
        let id = self.create(spec).await;
        self.runtime.start_container(&id).await.unwrap();
        id
    }

    /// Starts a program that says when it is ready, and waits for that.
    pub(crate) async fn start_ready(&self, name: &str, role: &Role) -> ContainerId {
        let id = self.start(&self.spec(name, role)).await;
        self.wait_for_log(&id, "ready\n").await;
        id
    }

    pub(crate) async fn pod(&self) -> Pod {
        let pods = self.runtime.pods().await.unwrap();
        pods.into_iter().find(|pod| pod.id == self.pod).unwrap()
    }

    pub(crate) async fn container(&self, id: &ContainerId) -> Container {
        let pod = self.pod().await;
        let mut all = pod.containers.into_iter();
        all.find(|one| one.id == *id).unwrap()
    }

    pub(crate) async fn wait_for_end(&self, id: &ContainerId) -> Ended {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            if let ContainerState::Exited(ended) = self.container(id).await.state {
                return ended;
            }
            assert!(tokio::time::Instant::now() < deadline, "it never ended");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) async fn log(&self, id: &ContainerId) -> String {
        let path = self.container(id).await.log_path;
        let Ok(mut reader) =
            LogReader::open(&path, ReadOptions::default(), CancellationToken::new()).await
        else {
            return String::new();
        };
        let mut text = Vec::new();
        while let Some(bytes) = reader.next().await.unwrap() {
            text.extend_from_slice(&bytes);
        }
        String::from_utf8(text).unwrap()
    }

    pub(crate) async fn wait_for_log(&self, id: &ContainerId, wanted: &str) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let log = self.log(id).await;
            if log.contains(wanted) {
                return;
            }
            assert!(
                tokio::time::Instant::now() < deadline,
                "never wrote {wanted:?}, only {log:?}"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) async fn clean_up(self) {
        self.runtime.remove_pod(&self.pod).await.unwrap();
    }
}

pub(crate) async fn read_all(stream: &mut Option<Box<dyn AsyncRead + Send + Unpin>>) -> String {
    let mut text = String::new();
    let stream = stream.as_mut().expect("the stream was asked for");
    let read = stream.read_to_string(&mut text);
    tokio::time::timeout(PATIENCE, read).await.unwrap().unwrap();
    text
}

pub(crate) fn is_running(container: &Container) -> bool {
    matches!(container.state, ContainerState::Running { .. })
}
