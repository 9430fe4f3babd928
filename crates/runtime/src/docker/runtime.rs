//! The runtime's promises, each kept by the file of its concern.

use std::time::Duration;

use tokio::sync::broadcast;

use super::DockerRuntime;
use crate::images::Description;
use crate::{
    Attach, Connection, ContainerId, ContainerSpec, Event, Exec, Image, ImageSpace, Pending, Pod,
    PodId, PodSpec, PodStats, Pull, Resources, Runtime, RuntimeError, Session, Version,
};

const VERSION: Duration = Duration::from_secs(10);

impl DockerRuntime {
    /// Takes the images of an archive, as `docker save` writes it.
    pub async fn import(&self, archive: bytes::Bytes) -> Result<(), RuntimeError> {
        self.inner.import(archive).await
    }
}

impl Runtime for DockerRuntime {
    fn version(&self) -> Pending<'_, Version> {
        Box::pin(async {
            let told = self.inner.client.greet(VERSION).await;
            let told = told.map_err(|fault| fault.explain("version", ""))?;
            Ok(Version {
                name: "docker".to_owned(),
                version: told.version,
            })
        })
    }

    fn start_pod<'a>(&'a self, spec: &'a PodSpec) -> Pending<'a, PodId> {
        Box::pin(self.inner.start_pod(spec))
    }

    fn stop_pod<'a>(&'a self, id: &'a PodId) -> Pending<'a, ()> {
        Box::pin(self.inner.stop_pod(id))
    }

    fn remove_pod<'a>(&'a self, id: &'a PodId) -> Pending<'a, ()> {
        Box::pin(self.inner.remove_pod(id))
    }

    fn pods(&self) -> Pending<'_, Vec<Pod>> {
        Box::pin(self.inner.pods())
    }

    fn create_container<'a>(
        &'a self,
        pod: &'a PodId,
        spec: &'a ContainerSpec,
    ) -> Pending<'a, ContainerId> {
        Box::pin(self.inner.create(pod, spec))
    }

    fn start_container<'a>(&'a self, id: &'a ContainerId) -> Pending<'a, ()> {
        Box::pin(self.inner.start(id))
    }

    fn stop_container<'a>(&'a self, id: &'a ContainerId, grace: Duration) -> Pending<'a, ()> {
        Box::pin(self.inner.stop(id, grace))
    }

    fn remove_container<'a>(&'a self, id: &'a ContainerId) -> Pending<'a, ()> {
        Box::pin(self.inner.remove(id))
    }

    fn update_container<'a>(
        &'a self,
        id: &'a ContainerId,
        resources: &'a Resources,
    ) -> Pending<'a, ()> {
        Box::pin(self.inner.update(id, resources))
    }

    fn reopen_log<'a>(&'a self, id: &'a ContainerId) -> Pending<'a, ()> {
        Box::pin(async move { self.inner.reopen_log(id) })
    }

    fn exec<'a>(&'a self, id: &'a ContainerId, exec: &'a Exec) -> Pending<'a, Session> {
        Box::pin(self.inner.exec(id, exec))
    }

    fn attach<'a>(&'a self, id: &'a ContainerId, attach: &'a Attach) -> Pending<'a, Session> {
        Box::pin(self.inner.attach(id, attach))
    }

    fn connect<'a>(&'a self, id: &'a PodId, port: u16) -> Pending<'a, Connection> {
        Box::pin(self.inner.reach(id, port))
    }

    fn stats(&self) -> Pending<'_, Vec<PodStats>> {
        Box::pin(self.inner.measure())
    }

    fn events(&self) -> broadcast::Receiver<Event> {
        self.inner.events.subscribe()
    }

    fn pull<'a>(&'a self, pull: &'a Pull) -> Pending<'a, Image> {
        Box::pin(self.inner.pull(pull))
    }

    fn describe<'a>(&'a self, pull: &'a Pull) -> Pending<'a, Option<Description>> {
        Box::pin(async {
            let image = self.inner.image(&pull.reference).await?;
            Ok(image.and_then(Image::describe_local))
        })
    }

    fn image<'a>(&'a self, reference: &'a str) -> Pending<'a, Option<Image>> {
        Box::pin(self.inner.image(reference))
    }

    fn images(&self) -> Pending<'_, Vec<Image>> {
        Box::pin(self.inner.images())
    }

    fn remove_image<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        Box::pin(self.inner.remove_image(id))
    }

    fn image_space(&self) -> Pending<'_, ImageSpace> {
        Box::pin(self.inner.image_space())
    }
}
