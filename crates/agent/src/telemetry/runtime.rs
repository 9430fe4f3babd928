//! A runtime that counts what is asked of it, and leaves the doing to another.

use std::{sync::Arc, time::Duration};

use tokio::{sync::broadcast, time::Instant};
use transom_runtime::{
    Attach, Connection, ContainerId, ContainerSpec, Event, Exec, Image, ImageSpace, Pending, Pod,
    PodId, PodSpec, PodStats, Pull, Resources, Runtime, Session, Version, images::Description,
};

use super::Operations;

/// Counts, and passes on.
#[derive(Debug)]
pub(crate) struct Counted {
    inner: Arc<dyn Runtime>,
    operations: Operations,
}

impl Counted {
    pub(crate) fn new(inner: Arc<dyn Runtime>, operations: Operations) -> Self {
        Self { inner, operations }
    }

    fn count<'a, T: 'a>(&'a self, name: &'static str, pending: Pending<'a, T>) -> Pending<'a, T> {
        Box::pin(async move {
            let begun = Instant::now();
            let done = pending.await;
            self.operations.count(name, begun.elapsed(), done.is_err());
            done
        })
    }
}

impl Runtime for Counted {
    fn version(&self) -> Pending<'_, Version> {
        self.count("version", self.inner.version())
    }

    fn start_pod<'a>(&'a self, spec: &'a PodSpec) -> Pending<'a, PodId> {
        self.count("run_podsandbox", self.inner.start_pod(spec))
    }

    fn stop_pod<'a>(&'a self, id: &'a PodId) -> Pending<'a, ()> {
        self.count("stop_podsandbox", self.inner.stop_pod(id))
    }

    fn remove_pod<'a>(&'a self, id: &'a PodId) -> Pending<'a, ()> {
        self.count("remove_podsandbox", self.inner.remove_pod(id))
    }

    fn pods(&self) -> Pending<'_, Vec<Pod>> {
        self.count("list_podsandbox", self.inner.pods())
    }

    fn create_container<'a>(
        &'a self,
        pod: &'a PodId,
        spec: &'a ContainerSpec,
    ) -> Pending<'a, ContainerId> {
        self.count("create_container", self.inner.create_container(pod, spec))
    }

    fn start_container<'a>(&'a self, id: &'a ContainerId) -> Pending<'a, ()> {
        self.count("start_container", self.inner.start_container(id))
    }

    fn stop_container<'a>(&'a self, id: &'a ContainerId, grace: Duration) -> Pending<'a, ()> {
        self.count("stop_container", self.inner.stop_container(id, grace))
    }

    fn remove_container<'a>(&'a self, id: &'a ContainerId) -> Pending<'a, ()> {
        self.count("remove_container", self.inner.remove_container(id))
    }

    fn update_container<'a>(
        &'a self,
        id: &'a ContainerId,
        resources: &'a Resources,
    ) -> Pending<'a, ()> {
        self.count(
            "update_container",
            self.inner.update_container(id, resources),
        )
    }

    fn reopen_log<'a>(&'a self, id: &'a ContainerId) -> Pending<'a, ()> {
        self.count("reopen_container_log", self.inner.reopen_log(id))
    }

    fn exec<'a>(&'a self, id: &'a ContainerId, exec: &'a Exec) -> Pending<'a, Session> {
        self.count("exec", self.inner.exec(id, exec))
    }

    fn attach<'a>(&'a self, id: &'a ContainerId, attach: &'a Attach) -> Pending<'a, Session> {
        self.count("attach", self.inner.attach(id, attach))
    }

    fn connect<'a>(&'a self, id: &'a PodId, port: u16) -> Pending<'a, Connection> {
        self.count("port_forward", self.inner.connect(id, port))
    }

    fn stats(&self) -> Pending<'_, Vec<PodStats>> {
        self.count("list_container_stats", self.inner.stats())
    }

    fn events(&self) -> broadcast::Receiver<Event> {
        self.inner.events()
    }

    fn pull<'a>(&'a self, pull: &'a Pull) -> Pending<'a, Image> {
        self.count("pull_image", self.inner.pull(pull))
    }

    fn describe<'a>(&'a self, pull: &'a Pull) -> Pending<'a, Option<Description>> {
        self.inner.describe(pull)
    }

    fn image<'a>(&'a self, reference: &'a str) -> Pending<'a, Option<Image>> {
        self.count("image_status", self.inner.image(reference))
    }

    fn images(&self) -> Pending<'_, Vec<Image>> {
        self.count("list_images", self.inner.images())
    }

    fn remove_image<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        self.count("remove_image", self.inner.remove_image(id))
    }

    fn image_space(&self) -> Pending<'_, ImageSpace> {
        self.count("image_fs_info", self.inner.image_space())
    }
}
