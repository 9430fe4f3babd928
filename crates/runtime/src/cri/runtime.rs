//! The runtime's promises, each kept by the file of its concern.

use std::time::Duration;

use tokio::sync::broadcast;

use super::CriRuntime;
use super::client::{CALL, explain};
use super::streaming;
use super::wire::{
    AttachRequest, ContainerStatus, ExecRequest, PortForwardRequest, RUNNING, UrlResponse,
    VersionRequest, VersionResponse,
};
use crate::images::Description;
use crate::{
    Attach, Connection, ContainerId, ContainerSpec, Event, Exec, Image, ImageSpace, Pending, Pod,
    PodId, PodNetwork, PodSpec, PodStats, Pull, Resources, Runtime, RuntimeError, Session, Version,
};

const VERSION: Duration = Duration::from_secs(10);

impl CriRuntime {
    async fn running(&self, id: &ContainerId) -> Result<ContainerStatus, RuntimeError> {
        let status = self.inner.existing(id).await?;
        if status.state == RUNNING {
            return Ok(status);
        }
        let text = format!("container {id} is not running");
        Err(RuntimeError::Invalid(text))
    }

    async fn run_beside(&self, id: &ContainerId, exec: &Exec) -> Result<Session, RuntimeError> {
        self.running(id).await?;
        let request = ExecRequest {
            id: id.0.clone(),
            command: exec.command.clone(),
            terminal: exec.terminal,
            stdin: exec.stdin,
            // The interface wants one of the three; what nobody asked for is thrown away here.
            stdout: true,
            stderr: exec.stderr && !exec.terminal,
        };
        let wanted = streaming::Wanted {
            stdin: exec.stdin,
            stdout: true,
            stderr: request.stderr,
            terminal: exec.terminal,
        };
        let path = "/runtime.v1.RuntimeService/Exec";
        let url: Result<UrlResponse, _> = self.inner.client.call(path, request, CALL).await;
        let url = url.map_err(|status| explain("container", &id.0, &status))?;
        let mut session = streaming::run(&url.url, wanted).await?;
        if !exec.stdout {
            session.output = None;
        }
        Ok(session)
    }

    async fn join(&self, id: &ContainerId, attach: &Attach) -> Result<Session, RuntimeError> {
        let status = self.running(id).await?;
        let terminal = super::translate::kept(&status.annotations).terminal;
        let request = AttachRequest {
            id: id.0.clone(),
            stdin: attach.stdin,
            terminal,
            stdout: true,
            // A terminal has one stream for both.
            stderr: attach.stderr && !terminal,
        };
        let wanted = streaming::Wanted {
            stdin: attach.stdin,
            stdout: true,
            stderr: request.stderr,
            terminal,
        };
        let path = "/runtime.v1.RuntimeService/Attach";
        let url: Result<UrlResponse, _> = self.inner.client.call(path, request, CALL).await;
        let url = url.map_err(|status| explain("container", &id.0, &status))?;
        let mut session = streaming::run(&url.url, wanted).await?;
        if !attach.stdout {
            session.output = None;
        }
        // The stream of an attached program does not tell how it ended.
        let (inner, id) = (std::sync::Arc::clone(&self.inner), id.clone());
        let streamed = session.ended;
        session.ended = Box::pin(async move {
            streamed.await?;
            inner.exit_code(&id).await
        });
        Ok(session)
    }

    async fn reach(&self, id: &PodId, port: u16) -> Result<Connection, RuntimeError> {
        let sandbox = self.inner.sandbox(id).await?;
        let spec = super::translate::pod_spec(&sandbox.annotations)?;
        if spec.network == PodNetwork::Host {
            let connected = tokio::net::TcpStream::connect(("127.0.0.1", port)).await;
            let stream = connected
                .map_err(|error| RuntimeError::io(format!("connect to port {port}"), error))?;
            return Ok(Connection(Box::new(stream)));
        }
        let request = PortForwardRequest {
            id: id.0.clone(),
            ports: vec![port.into()],
        };
        let path = "/runtime.v1.RuntimeService/PortForward";
        let url: Result<UrlResponse, _> = self.inner.client.call(path, request, CALL).await;
        let url = url.map_err(|status| explain("pod", &id.0, &status))?;
        streaming::forward(&url.url, port).await
    }
}

impl super::Inner {
    /// The exit code of a container whose streams have ended.
    async fn exit_code(&self, id: &ContainerId) -> Result<i32, RuntimeError> {
        let waited = async {
            loop {
                let status = self.existing(id).await?;
                if status.state != RUNNING {
                    return Ok(status.exit_code);
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        // A program may close its outputs and run on.
        tokio::time::timeout(CALL, waited).await.unwrap_or(Ok(0))
    }
}

impl Runtime for CriRuntime {
    fn version(&self) -> Pending<'_, Version> {
        Box::pin(async {
            let request = VersionRequest {
                version: "v1".to_owned(),
            };
            let path = "/runtime.v1.RuntimeService/Version";
            let told: Result<VersionResponse, _> =
                self.inner.client.call(path, request, VERSION).await;
            let told = told.map_err(|status| explain("version", "", &status))?;
            Ok(Version {
                name: told.runtime_name,
                version: told.runtime_version,
            })
        })
    }

    fn start_pod<'a>(&'a self, spec: &'a PodSpec) -> Pending<'a, PodId> {
        Box::pin(self.inner.start_pod(spec))
    }

    fn stop_pod<'a>(&'a self, id: &'a PodId) -> Pending<'a, ()> {
        let path = "/runtime.v1.RuntimeService/StopPodSandbox";
        Box::pin(self.inner.end_pod(path, id))
    }

    fn remove_pod<'a>(&'a self, id: &'a PodId) -> Pending<'a, ()> {
        Box::pin(async move {
            self.stop_pod(id).await?;
            let path = "/runtime.v1.RuntimeService/RemovePodSandbox";
            self.inner.end_pod(path, id).await
        })
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
        Box::pin(self.inner.reopen_log(id))
    }

    fn exec<'a>(&'a self, id: &'a ContainerId, exec: &'a Exec) -> Pending<'a, Session> {
        Box::pin(self.run_beside(id, exec))
    }

    fn attach<'a>(&'a self, id: &'a ContainerId, attach: &'a Attach) -> Pending<'a, Session> {
        Box::pin(self.join(id, attach))
    }

    fn connect<'a>(&'a self, id: &'a PodId, port: u16) -> Pending<'a, Connection> {
        Box::pin(self.reach(id, port))
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
