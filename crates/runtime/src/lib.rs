//! What runs pods, behind one trait: the agent asks for pods and containers and never learns who runs them.
//!
//! Invariant: every call may be repeated. What is there already is found, what is gone already is fine; an
//! agent that dies between two calls begins again and loses nothing.

mod connect;
mod container;
pub mod cri;
pub mod docker;
mod error;
pub mod fake;
mod image;
pub mod images;
pub mod logs;
pub mod oci;
mod pod;
pub mod process;
mod session;
mod stats;

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use tokio::sync::broadcast;

pub use container::{
    Capabilities, Container, ContainerId, ContainerSpec, ContainerState, Ended, Mount, Propagation,
    Resources, Seccomp, Security, Variable,
};
pub use error::RuntimeError;
pub use image::{Credentials, Image, Progress, Pull};
pub use pod::{Dns, Pod, PodId, PodNetwork, PodSpec, PodState, PortMap, Protocol};
pub use session::{Attach, Connection, Exec, Session, Size};
pub use stats::{ContainerStats, Cpu, Memory, PodStats, Usage};

/// The answer of a runtime that is on its way.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, RuntimeError>> + Send + 'a>>;

/// Something happened to a pod. Only a hint to look: events may be lost, never the state they tell of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub pod: PodId,
    /// The container, if it is about one.
    pub container: Option<ContainerId>,
}

/// Who runs the pods of a node, as nodes tell it (`containerd://1.7.2`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub name: String,
    pub version: String,
}

/// A room for images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImageSpace {
    pub used_bytes: u64,
    pub capacity_bytes: u64,
    pub available_bytes: u64,
}

/// Runs pods: a pod is a sandbox with containers in it, an image is what a container starts from.
pub trait Runtime: Send + Sync + fmt::Debug {
    /// Who answers. Fails if nobody does: the node is not ready then.
    fn version(&self) -> Pending<'_, Version>;

    /// Makes the sandbox of a pod: network, namespaces, room. Finds the one there is for the same uid and attempt.
    fn start_pod<'a>(&'a self, spec: &'a PodSpec) -> Pending<'a, PodId>;

    /// Kills what still runs in a pod and gives its network back. Its containers and logs stay readable.
    fn stop_pod<'a>(&'a self, id: &'a PodId) -> Pending<'a, ()>;

    /// Forgets a pod with all its containers. Stops it before, if need be.
    fn remove_pod<'a>(&'a self, id: &'a PodId) -> Pending<'a, ()>;

    /// All pods of this runtime with their containers, ended ones too. Foreign ones never.
    fn pods(&self) -> Pending<'_, Vec<Pod>>;

    /// Makes a container that does not run yet. Finds the one there is for the same name and attempt.
    fn create_container<'a>(
        &'a self,
        pod: &'a PodId,
        spec: &'a ContainerSpec,
    ) -> Pending<'a, ContainerId>;

    /// Starts a container. One that ran already is not started again.
    fn start_container<'a>(&'a self, id: &'a ContainerId) -> Pending<'a, ()>;

    /// Asks a container to end and kills it after `grace`. Returns when it has ended.
    fn stop_container<'a>(&'a self, id: &'a ContainerId, grace: Duration) -> Pending<'a, ()>;

    /// Forgets a container, killing it before. Its log file stays.
    fn remove_container<'a>(&'a self, id: &'a ContainerId) -> Pending<'a, ()>;

    /// Changes the limits of a container while it runs.
    fn update_container<'a>(
        &'a self,
        id: &'a ContainerId,
        resources: &'a Resources,
    ) -> Pending<'a, ()>;

    /// Changes the limits of a pod as a whole while it runs. Those that are `None` are taken away.
    ///
    /// A runtime whose pods have no limits of their own has nothing to do.
    fn update_pod<'a>(&'a self, id: &'a PodId, resources: &'a Resources) -> Pending<'a, ()> {
        let _ = (id, resources);
        Box::pin(async { Ok(()) })
    }

    /// Has the writer of a container's log begin a new file, after the old one was renamed.
    fn reopen_log<'a>(&'a self, id: &'a ContainerId) -> Pending<'a, ()>;

    /// Runs a program beside the container's own.
    fn exec<'a>(&'a self, id: &'a ContainerId, exec: &'a Exec) -> Pending<'a, Session>;

    /// Joins the container's own program: its output from now on, and its input if it has one.
    fn attach<'a>(&'a self, id: &'a ContainerId, attach: &'a Attach) -> Pending<'a, Session>;

    /// Connects to a port inside the pod, also one that listens on loopback only.
    fn connect<'a>(&'a self, id: &'a PodId, port: u16) -> Pending<'a, Connection>;

    /// What the running pods use, measured now.
    fn stats(&self) -> Pending<'_, Vec<PodStats>>;

    /// Hints that something changed. A receiver that lags lists the pods again.
    fn events(&self) -> broadcast::Receiver<Event>;

    /// Gets an image from its registry, or finds that it is there.
    fn pull<'a>(&'a self, pull: &'a Pull) -> Pending<'a, Image>;

    /// What an image is for, whether this node can run it or not: from its registry, or from this node if it was
    /// made here. `None` from a runtime that cannot tell.
    fn describe<'a>(&'a self, pull: &'a Pull) -> Pending<'a, Option<images::Description>> {
        let _ = pull;
        Box::pin(async { Ok(None) })
    }

    /// The image of a name or an id, if it is here.
    fn image<'a>(&'a self, reference: &'a str) -> Pending<'a, Option<Image>>;

    fn images(&self) -> Pending<'_, Vec<Image>>;

    /// Removes an image with all its names. Refuses while a container uses it.
    fn remove_image<'a>(&'a self, id: &'a str) -> Pending<'a, ()>;

    /// How full the disk of the images is.
    fn image_space(&self) -> Pending<'_, ImageSpace>;
}
