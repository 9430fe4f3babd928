//! The runtime's promises, each kept by the file of its concern.
//!
//! Invariant: a call that changes something goes on to its end even if nobody waits for it any more.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::broadcast;
use transom_host::files::{Files, Native as NativeFiles};

use super::folder::Life;
use super::keeper::protocol::{Reply, Request};
use super::program::program_beside;
use super::{Inner, ProcessRuntime, blocking, file_error, image_store, link, session};
use crate::{
    Attach, Connection, ContainerId, ContainerSpec, Event, Exec, Image, ImageSpace, Pending, Pod,
    PodId, PodSpec, PodStats, Pull, Resources, Runtime, RuntimeError, Session, Version,
};

const CONNECT_LIMIT: Duration = Duration::from_secs(10);

impl ProcessRuntime {
    /// Does `work` in a task of its own, so that it is not left half done.
    fn to_the_end<T: Send + 'static, F>(
        &self,
        work: impl FnOnce(Arc<Inner>) -> F + Send + 'static,
    ) -> Pending<'_, T>
    where
        F: Future<Output = Result<T, RuntimeError>> + Send + 'static,
    {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let done = tokio::spawn(work(inner)).await;
            done.unwrap_or_else(|error| Err(RuntimeError::Other(error.to_string())))
        })
    }

    async fn open_session(
        &self,
        id: &ContainerId,
        request: &Request,
        wanted: Attach,
        program: &str,
    ) -> Result<Session, RuntimeError> {
        let held = self.inner.held(id)?;
        let mut stream = link::open(&held.folder, request).await?;
        match link::reply(&mut stream).await? {
            Reply::Started => Ok(session::begin(stream, wanted)),
            Reply::Failed { cause } => Err(RuntimeError::CannotRun {
                program: program.to_owned(),
                cause,
            }),
            other => Err(RuntimeError::Other(format!(
                "the keeper answered {other:?}"
            ))),
        }
    }

    fn check_running(&self, id: &ContainerId) -> Result<(), RuntimeError> {
        match *self.inner.held(id)?.life.borrow() {
            Life::Running { .. } => Ok(()),
            _ => Err(RuntimeError::Invalid(format!(
                "container {id} is not running"
            ))),
        }
    }

    async fn run_beside(&self, id: &ContainerId, exec: &Exec) -> Result<Session, RuntimeError> {
        self.check_running(id)?;
        if exec.terminal {
            let text = "a terminal: host processes have none on this runtime, leave out -t";
            return Err(RuntimeError::NotSupported(text.to_owned()));
        }
        let held = self.inner.held(id)?;
        let root = held.folder.root();
        let around = held.surroundings(&self.inner.config, &root);
        let spawn = program_beside(&exec.command, exec.stdin, &held.record.spec, &around)?;
        let wanted = Attach {
            stdin: exec.stdin,
            stdout: exec.stdout,
            stderr: exec.stderr,
        };
        let program = exec.command.first().cloned().unwrap_or_default();
        let request = Request::Exec(Box::new(spawn));
        self.open_session(id, &request, wanted, &program).await
    }

    async fn join(&self, id: &ContainerId, attach: &Attach) -> Result<Session, RuntimeError> {
        self.check_running(id)?;
        let spec = &self.inner.held(id)?.record.spec;
        let wanted = Attach {
            stdin: attach.stdin && spec.stdin,
            ..*attach
        };
        let request = Request::Attach {
            stdin: wanted.stdin,
            stdout: wanted.stdout,
            stderr: wanted.stderr,
        };
        self.open_session(id, &request, wanted, &spec.name).await
    }
}

impl Runtime for ProcessRuntime {
    fn version(&self) -> Pending<'_, Version> {
        Box::pin(async {
            Ok(Version {
                name: "process".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            })
        })
    }

    fn start_pod<'a>(&'a self, spec: &'a PodSpec) -> Pending<'a, PodId> {
        let spec = spec.clone();
        self.to_the_end(async move |inner: Arc<Inner>| inner.start_pod(&spec).await)
    }

    fn stop_pod<'a>(&'a self, id: &'a PodId) -> Pending<'a, ()> {
        let id = id.clone();
        self.to_the_end(async move |inner: Arc<Inner>| inner.stop_pod(&id).await)
    }

    fn remove_pod<'a>(&'a self, id: &'a PodId) -> Pending<'a, ()> {
        let id = id.clone();
        self.to_the_end(async move |inner: Arc<Inner>| inner.remove_pod(&id).await)
    }

    fn pods(&self) -> Pending<'_, Vec<Pod>> {
        Box::pin(async { Ok(self.inner.pods()) })
    }

    fn create_container<'a>(
        &'a self,
        pod: &'a PodId,
        spec: &'a ContainerSpec,
    ) -> Pending<'a, ContainerId> {
        let (pod, spec) = (pod.clone(), spec.clone());
        self.to_the_end(async move |inner: Arc<Inner>| inner.create(&pod, &spec).await)
    }

    fn start_container<'a>(&'a self, id: &'a ContainerId) -> Pending<'a, ()> {
        let id = id.clone();
        self.to_the_end(async move |inner: Arc<Inner>| inner.start(&id).await)
    }

    fn stop_container<'a>(&'a self, id: &'a ContainerId, grace: Duration) -> Pending<'a, ()> {
        Box::pin(async move { self.inner.stop(id, grace).await })
    }

    fn remove_container<'a>(&'a self, id: &'a ContainerId) -> Pending<'a, ()> {
        let id = id.clone();
        self.to_the_end(async move |inner: Arc<Inner>| inner.remove(&id).await)
    }

    fn update_container<'a>(
        &'a self,
        id: &'a ContainerId,
        _resources: &'a Resources,
    ) -> Pending<'a, ()> {
        Box::pin(async move {
            self.inner.held(id)?;
            Err(RuntimeError::NotSupported(
                "limits of a host process hold from its start to its end".to_owned(),
            ))
        })
    }

    fn reopen_log<'a>(&'a self, id: &'a ContainerId) -> Pending<'a, ()> {
        Box::pin(async move {
            let held = self.inner.held(id)?;
            if !held.is_running() {
                return Ok(());
            }
            link::ask(&held.folder, &Request::Reopen).await
        })
    }

    fn exec<'a>(&'a self, id: &'a ContainerId, exec: &'a Exec) -> Pending<'a, Session> {
        Box::pin(self.run_beside(id, exec))
    }

    fn attach<'a>(&'a self, id: &'a ContainerId, attach: &'a Attach) -> Pending<'a, Session> {
        Box::pin(self.join(id, attach))
    }

    fn connect<'a>(&'a self, id: &'a PodId, port: u16) -> Pending<'a, Connection> {
        Box::pin(async move {
            self.inner.open_pod(id)?;
            let failed = |error| RuntimeError::io(format!("connect to port {port}"), error);
            let connecting = async {
                match TcpStream::connect(("127.0.0.1", port)).await {
                    Ok(stream) => Ok(stream),
                    // Some listen on the newer protocol only.
                    Err(error) => TcpStream::connect(("::1", port)).await.map_err(|_| error),
                }
            };
            let connected = tokio::time::timeout(CONNECT_LIMIT, connecting).await;
            let timed_out = || failed(std::io::ErrorKind::TimedOut.into());
            let stream = connected.map_err(|_| timed_out())?.map_err(failed)?;
            Ok(Connection(Box::new(stream)))
        })
    }

    fn stats(&self) -> Pending<'_, Vec<PodStats>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(blocking(move || Ok(inner.measure())))
    }

    fn events(&self) -> broadcast::Receiver<Event> {
        self.inner.events.subscribe()
    }

    fn pull<'a>(&'a self, pull: &'a Pull) -> Pending<'a, Image> {
        let (inner, reference) = (Arc::clone(&self.inner), pull.reference.clone());
        Box::pin(blocking(move || {
            image_store::pull(&inner.config.images, &reference)
        }))
    }

    fn image<'a>(&'a self, reference: &'a str) -> Pending<'a, Option<Image>> {
        let (inner, reference) = (Arc::clone(&self.inner), reference.to_owned());
        Box::pin(blocking(move || {
            Ok(image_store::find(&inner.config.images, &reference))
        }))
    }

    fn images(&self) -> Pending<'_, Vec<Image>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(blocking(move || image_store::list(&inner.config.images)))
    }

    fn remove_image<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        let (inner, id) = (Arc::clone(&self.inner), id.to_owned());
        Box::pin(blocking(move || {
            let used = {
                let state = inner.state();
                let mut containers = state.containers.values();
                containers.any(|held| held.record.spec.image == id)
            };
            if used || id == image_store::HOST {
                let text = format!("image {id} is in use");
                return Err(RuntimeError::Invalid(text));
            }
            image_store::remove(&inner.config.images, &id)
        }))
    }

    fn image_space(&self) -> Pending<'_, ImageSpace> {
        let inner = Arc::clone(&self.inner);
        Box::pin(blocking(move || {
            let images = image_store::list(&inner.config.images)?;
            let space = NativeFiles.free_space(&inner.config.folder);
            let space = space.map_err(file_error)?;
            Ok(ImageSpace {
                used_bytes: images.iter().map(|image| image.size).sum(),
                capacity_bytes: space.total,
                available_bytes: space.available,
            })
        }))
    }
}
