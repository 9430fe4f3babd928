//! The oci runtime on Linux. The agent's part prepares and asks; the shim of each pod does and remembers.
//!
//! Invariant: a call that changes something goes on to its end even if nobody waits for it any more.

mod adopt;
mod cgroup;
mod client;
mod containers;
mod descriptors;
mod executor;
mod launch;
mod leftovers;
mod network;
mod open;
mod pods;
mod probe;
mod protocol;
mod records;
mod runtime;
mod seccomp;
mod sessions;
mod shim;
mod spec;
mod stats;
mod unpack;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;

pub(crate) use network::inside as in_network;
pub use network::{Bridge, Loopback, Network};
pub(super) use open::{open, remove_all};
pub use runtime::OciRuntime;
pub use shim::shim_main;
pub use unpack::LinuxUnpacker;

use crate::images::Description;
use crate::{
    Attach, Connection, ContainerId, ContainerSpec, ContainerState, Event, Exec, Image, ImageSpace,
    Pending, Pod, PodId, PodNetwork, PodSpec, PodStats, Pull, Resources, Runtime, RuntimeError,
    Session, Version,
};
use protocol::Call;

const LONGEST_CONNECT: Duration = Duration::from_secs(10);

/// The runtime as the agent has it: calls that outlive their caller need a share of it.
#[derive(Clone, Debug)]
pub struct OciHandle(pub Arc<OciRuntime>);

impl OciHandle {
    /// Does `work` in a task of its own, so that it is not left half done.
    fn to_the_end<T: Send + 'static, F>(
        &self,
        work: impl FnOnce(Arc<OciRuntime>) -> F + Send + 'static,
    ) -> Pending<'_, T>
    where
        F: Future<Output = Result<T, RuntimeError>> + Send + 'static,
    {
        let runtime = Arc::clone(&self.0);
        Box::pin(async move {
            let done = tokio::spawn(work(runtime)).await;
            done.unwrap_or_else(|error| Err(RuntimeError::Other(error.to_string())))
        })
    }
}

impl Runtime for OciHandle {
    fn version(&self) -> Pending<'_, Version> {
        Box::pin(async {
            Ok(Version {
                name: "transom".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            })
        })
    }

    fn start_pod<'a>(&'a self, spec: &'a PodSpec) -> Pending<'a, PodId> {
        let spec = spec.clone();
        self.to_the_end(async move |runtime: Arc<OciRuntime>| runtime.make_pod(&spec).await)
    }

    fn stop_pod<'a>(&'a self, id: &'a PodId) -> Pending<'a, ()> {
        let id = id.clone();
        self.to_the_end(async move |runtime: Arc<OciRuntime>| {
            let Ok(entry) = runtime.pod(&id) else {
                return Ok(());
            };
            let _gate = entry.gate.lock().await;
            runtime.end_pod(&entry).await
        })
    }

    fn remove_pod<'a>(&'a self, id: &'a PodId) -> Pending<'a, ()> {
        let id = id.clone();
        self.to_the_end(async move |runtime: Arc<OciRuntime>| {
            let Ok(entry) = runtime.pod(&id) else {
                return Ok(());
            };
            let _gate = entry.gate.lock().await;
            runtime.forget_pod(&entry).await
        })
    }

    fn pods(&self) -> Pending<'_, Vec<Pod>> {
        Box::pin(async { Ok(self.0.all().iter().map(|entry| entry.describe()).collect()) })
    }

    fn create_container<'a>(
        &'a self,
        pod: &'a PodId,
        spec: &'a ContainerSpec,
    ) -> Pending<'a, ContainerId> {
        let (pod, spec) = (pod.clone(), spec.clone());
        self.to_the_end(async move |runtime: Arc<OciRuntime>| {
            let entry = runtime.pod(&pod)?;
            let _gate = entry.gate.lock().await;
            let entry = Arc::clone(&entry);
            blocking(move || runtime.make_container(&entry, &spec)).await
        })
    }

    fn start_container<'a>(&'a self, id: &'a ContainerId) -> Pending<'a, ()> {
        let id = id.clone();
        self.to_the_end(async move |runtime: Arc<OciRuntime>| {
            let entry = runtime.container(&id)?;
            let _gate = entry.gate.lock().await;
            runtime.run_container(&entry, &id.0).await
        })
    }

    fn stop_container<'a>(&'a self, id: &'a ContainerId, grace: Duration) -> Pending<'a, ()> {
        Box::pin(async move {
            let Ok(entry) = self.0.container(id) else {
                return Ok(());
            };
            self.0.end_container(&entry, &id.0, grace).await
        })
    }

    fn remove_container<'a>(&'a self, id: &'a ContainerId) -> Pending<'a, ()> {
        let id = id.clone();
        self.to_the_end(async move |runtime: Arc<OciRuntime>| {
            let Ok(entry) = runtime.container(&id) else {
                return Ok(());
            };
            let _gate = entry.gate.lock().await;
            runtime.forget_container(&entry, &id.0).await
        })
    }

    fn update_container<'a>(
        &'a self,
        id: &'a ContainerId,
        resources: &'a Resources,
    ) -> Pending<'a, ()> {
        let (id, resources) = (id.clone(), resources.clone());
        self.to_the_end(async move |runtime: Arc<OciRuntime>| {
            let entry = runtime.container(&id)?;
            let _gate = entry.gate.lock().await;
            runtime.change_limits(&entry, &id.0, &resources)
        })
    }

    fn update_pod<'a>(&'a self, id: &'a PodId, resources: &'a Resources) -> Pending<'a, ()> {
        let (id, resources) = (id.clone(), resources.clone());
        self.to_the_end(async move |runtime: Arc<OciRuntime>| {
            let entry = runtime.pod(&id)?;
            let _gate = entry.gate.lock().await;
            runtime.change_limits_of_pod(&entry, &resources)
        })
    }

    fn reopen_log<'a>(&'a self, id: &'a ContainerId) -> Pending<'a, ()> {
        Box::pin(async move {
            let entry = self.0.container(id)?;
            if !is_running(&entry, id) {
                return Ok(());
            }
            let call = Call::ReopenLog {
                container: id.0.clone(),
            };
            self.0.ask(&entry, call).await.map(drop)
        })
    }

    fn exec<'a>(&'a self, id: &'a ContainerId, exec: &'a Exec) -> Pending<'a, Session> {
        Box::pin(async move {
            let entry = self.0.container(id)?;
            if !is_running(&entry, id) {
                return Err(RuntimeError::Invalid(format!(
                    "the container {id} does not run"
                )));
            }
            self.0.run_beside(&entry, &id.0, exec).await
        })
    }

    fn attach<'a>(&'a self, id: &'a ContainerId, attach: &'a Attach) -> Pending<'a, Session> {
        Box::pin(async move {
            let entry = self.0.container(id)?;
            self.0.join(&entry, &id.0, *attach).await
        })
    }

    fn connect<'a>(&'a self, id: &'a PodId, port: u16) -> Pending<'a, Connection> {
        Box::pin(async move {
            let entry = self.0.pod(id)?;
            let (network, shim) = {
                let live = entry.live();
                (live.record.spec.network, live.shim)
            };
            let shim =
                shim.ok_or_else(|| RuntimeError::Invalid(format!("the pod {id} is stopped")))?;
            let namespace = match network {
                PodNetwork::Own => format!("/proc/{shim}/ns/net"),
                PodNetwork::Host => "/proc/self/ns/net".to_owned(),
            };
            let stream = network::inside(namespace.into(), move || connect_to(port)).await?;
            let stream = tokio::net::TcpStream::from_std(stream)
                .map_err(|error| RuntimeError::io("take over a connection", error))?;
            Ok(Connection(Box::new(stream)))
        })
    }

    fn stats(&self) -> Pending<'_, Vec<PodStats>> {
        Box::pin(async {
            let runtime = Arc::clone(&self.0);
            blocking(move || {
                Ok(runtime
                    .all()
                    .iter()
                    .filter_map(|entry| runtime.measure(entry))
                    .collect())
            })
            .await
        })
    }

    fn events(&self) -> broadcast::Receiver<Event> {
        self.0.events.subscribe()
    }

    fn pull<'a>(&'a self, pull: &'a Pull) -> Pending<'a, Image> {
        Box::pin(self.0.images.pull(pull))
    }

    fn describe<'a>(&'a self, pull: &'a Pull) -> Pending<'a, Option<Description>> {
        Box::pin(async { self.0.images.describe(pull).await.map(Some) })
    }

    fn image<'a>(&'a self, reference: &'a str) -> Pending<'a, Option<Image>> {
        Box::pin(async move { Ok(self.0.images.find(reference)) })
    }

    fn images(&self) -> Pending<'_, Vec<Image>> {
        Box::pin(async { Ok(self.0.images.all()) })
    }

    fn remove_image<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            let (images, id) = (Arc::clone(&self.0.images), id.to_owned());
            blocking(move || images.remove(&id)).await
        })
    }

    fn image_space(&self) -> Pending<'_, ImageSpace> {
        Box::pin(async {
            let images = Arc::clone(&self.0.images);
            blocking(move || images.space()).await
        })
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RuntimeError> + Send + 'static,
) -> Result<T, RuntimeError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| RuntimeError::Other(error.to_string()))?
}

fn is_running(entry: &runtime::PodEntry, id: &ContainerId) -> bool {
    let live = entry.live();
    live.containers
        .get(&id.0)
        .is_some_and(|found| matches!(found.state, ContainerState::Running { .. }))
}

/// A port may listen on either kind of loopback.
fn connect_to(port: u16) -> std::io::Result<TcpStream> {
    let first = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let second = SocketAddr::from((Ipv6Addr::LOCALHOST, port));
    let stream = TcpStream::connect_timeout(&first, LONGEST_CONNECT)
        .or_else(|error| TcpStream::connect_timeout(&second, LONGEST_CONNECT).map_err(|_| error))?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}
